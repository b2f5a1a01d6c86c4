"""Interleaving in the real frameworks: drafts in a log, and credit for what their own fake models cite."""

from __future__ import annotations

import asyncio
import json

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.base_retriever import BaseRetriever as LlamaIndexRetriever
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode
from rag_selectivity_langchain import CitationCallback, InterleavedRetriever, SelectivityCallback
from rag_selectivity_llama_index import CitationHandler
from rag_selectivity_llama_index import InterleavedRetriever as InterleavedNodes

from rag_selectivity import Monitor
from rag_selectivity.online import Interleaver, impression, join_records, preference


class Fixed(LangChainRetriever):
    ids: list[str]

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(id=id_, page_content=f"text of {id_}") for id_ in self.ids]


def chain_of(tmp_path, answers: list[str]):
    interleaver = Interleaver(tmp_path / "log.jsonl", k=3)
    retriever = InterleavedRetriever(
        retrievers={"a": Fixed(ids=["d1", "d2"]), "b": Fixed(ids=["d2", "d3"])}, interleaver=interleaver
    )
    model = FakeListChatModel(responses=answers)
    join = RunnableLambda(lambda documents: " ".join(f"[{each.id}] {each.page_content}" for each in documents))
    return interleaver, retriever | join | model


def test_a_langchain_chain_is_interleaved_and_credited(tmp_path) -> None:
    interleaver, chain = chain_of(tmp_path, ["It is so [d3].", "I do not know."])
    monitor = Monitor({"who?": {"d3": 1}}, corpus_size=9, trace=tmp_path / "trace.jsonl")
    callbacks = [CitationCallback(interleaver), SelectivityCallback(monitor=monitor)]
    for i in range(20):
        with impression(f"i{i}", user=f"u{i}", arm="interleaved"):
            chain.invoke("who?", config={"callbacks": callbacks})
    assert monitor.outcome("i3", 1)
    monitor.close()
    rows = list(join_records(tmp_path / "log.jsonl"))
    assert [row["impression"] for row in rows] == [f"i{i}" for i in range(20)]
    assert rows[0]["user"] == "u0"
    found = preference(rows)
    assert (found.wins, found.losses, found.ties, found.unit) == (10, 0, 10, "user")
    traced = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert {row["arm"] for row in traced if "arm" in row} == {"interleaved"}
    assert [row["id"] for row in traced if "shown" in row] == [f"i{i}" for i in range(20)]
    with_outcome = {
        row["impression"]: row.get("outcome")
        for row in join_records([tmp_path / "log.jsonl", tmp_path / "trace.jsonl"])
    }
    assert with_outcome["i3"] == 1.0


def test_impressions_of_tasks_stay_apart(tmp_path) -> None:
    interleaver, chain = chain_of(tmp_path, ["[d1]"])

    async def ask(i: int) -> None:
        with impression(f"i{i}"):
            await chain.ainvoke("who?", config={"callbacks": [CitationCallback(interleaver)]})

    async def all_of_them() -> None:
        await asyncio.gather(*(ask(i) for i in range(25)))

    asyncio.run(all_of_them())
    rows = list(join_records(tmp_path / "log.jsonl"))
    assert len(rows) == 25
    assert all(row["credit"] == {"d1": 1.0} for row in rows if "d1" in row["team"])


def test_an_impression_without_a_name_and_one_with_two_retrievals(tmp_path) -> None:
    interleaver, chain = chain_of(tmp_path, ["[d2]"])
    chain.invoke("who?")
    with impression("agent"):
        chain.invoke("who?")
        chain.invoke("whom?", config={"callbacks": [CitationCallback(interleaver)]})
    rows = list(join_records(tmp_path / "log.jsonl"))
    assert [row["impression"] for row in rows[1:]] == ["agent", "agent#2"]
    assert [row["credit"] for row in rows] == [{}, {"d2": 1.0}, {"d2": 1.0}]


class FixedNodes(LlamaIndexRetriever):
    def __init__(self, ids: list[str]) -> None:
        self.ids = ids
        super().__init__()

    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(id_=id_, text=f"text of {id_}"), score=1.0) for id_ in self.ids]


class Scripted(CustomLLM):
    answer: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=4000, num_output=100)

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=self.answer)

    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise NotImplementedError


@pytest.mark.parametrize("is_async", [False, True])
def test_a_llama_index_query_engine_is_interleaved_and_credited(tmp_path, is_async) -> None:
    interleaver = Interleaver(tmp_path / "log.jsonl", k=3)
    retriever = InterleavedNodes({"a": FixedNodes(["d1", "d2"]), "b": FixedNodes(["d2", "d3"])}, interleaver)
    engine = RetrieverQueryEngine(retriever, get_response_synthesizer(llm=Scripted(answer="So it is [1].")))
    handler, dispatcher = CitationHandler(interleaver=interleaver), get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        for i in range(12):
            with impression(f"i{i}", session=f"s{i}"):
                if is_async:
                    asyncio.run(engine.aquery("who?"))
                else:
                    engine.query("who?")
    finally:
        dispatcher.event_handlers = [each for each in dispatcher.event_handlers if each is not handler]
    rows = list(join_records(tmp_path / "log.jsonl"))
    assert len(rows) == 12
    assert all(row["credit"] == {row["passages"][0]: 1.0} for row in rows)
    found = preference(rows)
    assert (found.unit, found.wins + found.losses) == ("session", 12)
