"""What the tests of live LlamaIndex share: tools, scripted LLMs, and the lists that a watched application shows."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse, LLMMetadata, MessageRole, ToolCallBlock
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from rag_selectivity_llama_index import LiveSelectivity

import rag_selectivity as rs
from tests.test_llama_index import WordRetriever, engine
from tests.three_questions import BY_TEXT, GRADES, QUERIES

OPTIONS: dict[str, Any] = {"scale": "utility", "corpus_size": 6, "depths": [1, 2]}
KEYS = ("Success@1", "BoR@2", "RA-nWG@2", "PROC@2", "Harm@2")
ASKED = QUERIES["q1"]
FRANCE, GERMANY = "capital of France now", "the capital of Germany today"

#: A query id, what the LLM was shown, and the pool.
Lists = Sequence[tuple[str, tuple[str, ...], tuple[str, ...] | None]]


def watched(work: Callable[[], Coroutine[Any, Any, Any] | Any], labels: Any = None, **options: Any) -> LiveSelectivity:
    with LiveSelectivity(labels or {**GRADES, **BY_TEXT}, identity="node_id", **OPTIONS, **options) as live:
        result = work()
        if asyncio.iscoroutine(result):
            asyncio.run(result)
    assert live.faults == 0
    return live


def assert_recorded(live: LiveSelectivity, lists: Lists) -> None:
    """The lists were recorded, no other was, and the figures are those of `evaluate` for them."""
    ids = {text: query for query, text in QUERIES.items()}
    recorded = Counter(
        (ids.get(str(each.query_id), each.query_id), tuple(each.shown), each.pool and tuple(each.pool))
        for each in live.monitor.retrievals
    )
    assert recorded == Counter(lists)
    assert live.monitor.traffic.retrievals == len(lists)
    by_name = {str(i): each for i, each in enumerate(lists)}
    expected = rs.evaluate(
        {name: GRADES[query] for name, (query, _, _) in by_name.items()},
        {"live": {name: list(shown) for name, (_, shown, _) in by_name.items()}},
        pool={"live": {name: list(shown if pool is None else pool) for name, (_, shown, pool) in by_name.items()}},
        measures=[key.partition("@")[0] for key in KEYS],
        **OPTIONS,
    )
    report = live.report()
    longest = max(len(shown) for _, shown, _ in lists)
    for key in KEYS:
        if int(key.partition("@")[2]) <= longest:
            assert report[key].value == pytest.approx(expected[key].value, nan_ok=True), key
    assert report["Success"].n == len(lists)
    assert longest or report["Success"].value == 0.0


def retrieved(text: str, top_k: int = 4) -> tuple[str, ...]:
    return tuple(each.node.node_id for each in WordRetriever(top_k).retrieve(text))


def reranked(query: str, text: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    pool = retrieved(text)
    return query, pool[-2:], pool


def tools(*postprocessors: Any, retriever: BaseRetriever | None = None) -> list[Any]:
    found = retriever or WordRetriever()
    return [
        QueryEngineTool.from_defaults(engine(*postprocessors, retriever=found), name="ask", description="asks"),
        RetrieverTool.from_defaults(found, name="look", description="looks", node_postprocessors=list(postprocessors)),
    ]


def that_calls(*turns: Sequence[tuple[str, dict[str, Any]]]) -> MockFunctionCallingLLM:
    """An LLM that calls these tools turn by turn, and then answers."""

    def answer(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        asked = max(i for i, message in enumerate(messages) if message.role is MessageRole.USER)
        done = sum(message.role is MessageRole.ASSISTANT for message in messages[asked:])
        if done >= len(turns):
            return ChatMessage(role="assistant", content="done")
        blocks = [
            ToolCallBlock(tool_call_id=f"{done}-{i}", tool_name=name, tool_kwargs=arguments)
            for i, (name, arguments) in enumerate(turns[done])
        ]
        return ChatMessage(role="assistant", blocks=blocks)

    return MockFunctionCallingLLM(response_generator=answer, is_chat_model=True)


class Scripted(CustomLLM):
    """Completes with one text after another."""

    texts: list[str]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=False)

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=self.texts.pop(0))

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        text = self.texts.pop(0)
        yield CompletionResponse(text=text, delta=text)


BOTH = [reranked("q1", FRANCE), reranked("q1", f"input is {GERMANY}")]
