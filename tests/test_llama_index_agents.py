"""`LiveSelectivity` in agents and workflows: every list that the LLM was shown, once, as it was."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import RetrieverTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation.dispatcher import instrument_tags
from rag_selectivity_llama_index import LiveSelectivity

from tests.llama_index_world import (
    ASKED,
    BOTH,
    FRANCE,
    GERMANY,
    Scripted,
    assert_recorded,
    reranked,
    retrieved,
    that_calls,
    tools,
    watched,
)
from tests.test_llama_index import Away, Down, KeepLast, WordRetriever
from tests.three_questions import QUERIES

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.contract]

ASK, LOOK = ("ask", {"input": FRANCE}), ("look", {"input": GERMANY})
REACT = 'Thought: I need a tool.\nAction: ask\nAction Input: {"input": "' + FRANCE + '"}\n'


def function_agent(*turns: Any, **options: Any) -> FunctionAgent:
    return FunctionAgent(tools=tools(KeepLast()), llm=that_calls(*turns), name="a", description="d", **options)


async def tagged(run: Callable[[], Any], query: str = "q1") -> None:
    with instrument_tags({"query_id": query}):
        handler = run()
        async for _ in handler.stream_events():
            pass
        await handler


@pytest.mark.parametrize(
    ("make", "lists"),
    [
        (lambda: function_agent([ASK], [LOOK]), BOTH),
        (lambda: function_agent([ASK, LOOK]), BOTH),
        (lambda: AgentWorkflow(agents=[function_agent([ASK, LOOK])], root_agent="a"), BOTH),
        (
            lambda: ReActAgent(
                tools=tools(KeepLast()), llm=Scripted(texts=[REACT, "Thought: I can answer.\nAnswer: done"])
            ),
            BOTH[:1],
        ),
    ],
    ids=["one after another", "side by side", "agent workflow", "react"],
)
@pytest.mark.parametrize("by", ["tag", "user_msg", "chat_history"])
def test_what_an_agent_retrieves_belongs_to_the_users_question(make, lists, by) -> None:
    async def ask() -> None:
        if by == "tag":
            await tagged(lambda: make().run(user_msg="rewritten"))
        elif by == "user_msg":
            await make().run(user_msg=ASKED)
        else:
            await make().run(chat_history=[ChatMessage(role="user", content=ASKED)])

    assert_recorded(watched(ask), lists)


class Late(WordRetriever):
    """Answers after a pause."""

    def __init__(self, pause: float) -> None:
        super().__init__()
        self.wait = pause
        self.begun = 0

    async def _aretrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        self.begun += 1
        await asyncio.sleep(self.wait)
        return self._retrieve(query_bundle)


class LateLast(KeepLast):
    """A reranker with asynchronous code of its own, of which LlamaIndex makes no span."""

    pause: float

    async def _apostprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        await asyncio.sleep(self.pause)
        return nodes[-2:]


def test_rerankers_of_tools_that_run_side_by_side_keep_to_their_own_lists() -> None:
    both = [
        RetrieverTool.from_defaults(Late(b), name=name, description="d", node_postprocessors=[LateLast(pause=after)])
        for name, b, after in (("first", 0.0, 0.2), ("second", 0.05, 0.0))
    ]
    llm = that_calls([("first", {"input": ASKED}), ("second", {"input": QUERIES["q2"]})])
    live = watched(lambda: tagged(lambda: FunctionAgent(tools=both, llm=llm).run(user_msg="x")))
    assert_recorded(live, [reranked("q1", f"input is {text}") for text in (ASKED, QUERIES["q2"])])


# -- workflows -------------------------------------------------------------------------------------


class Found(Event):
    nodes: list[Any]
    question: str


class TwoSteps(Workflow):
    """Retrieves for two rewritten queries in one step, and reranks in the next."""

    @step
    async def retrieve(self, start: StartEvent) -> Found:
        nodes = await WordRetriever().aretrieve(f"{start.question} now")
        nodes += await WordRetriever(2).aretrieve("flour of bread")
        return Found(nodes=nodes, question=start.question)

    @step
    async def rerank(self, found: Found) -> StopEvent:
        return StopEvent(result=await KeepLast().apostprocess_nodes(found.nodes, query_str=found.question))


def test_two_steps_of_a_workflow_are_one_retrieval_for_each_question() -> None:
    async def ask() -> None:
        await asyncio.gather(*(TwoSteps().run(question=text) for text in QUERIES.values() for _ in range(3)))

    live = watched(ask)
    lists = []
    for query, text in QUERIES.items():
        both = (*retrieved(f"{text} now"), *retrieved("flour of bread", 2))
        lists += [(query, both[-2:], tuple(dict.fromkeys(both)))] * 3
    in_any_order = [(query, shown, tuple(sorted(pool))) for query, shown, pool in lists]
    assert Counter((q, s, tuple(sorted(p))) for q, s, p in of(live)) == Counter(in_any_order)
    assert live.monitor.traffic.retrievals == 9


def of(live: LiveSelectivity) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    ids = {text: query for query, text in QUERIES.items()}
    return [(ids[str(each.query_id)], tuple(each.shown), tuple(each.pool or ())) for each in live.monitor.retrievals]


# -- what goes wrong inside ------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["retriever", "reranker", "cancel_run", "timeout", "wait_for"])
def test_a_failure_that_the_agent_swallows_is_a_failure(how) -> None:
    async def ask() -> None:
        late = Late(30)
        failing = tools(Down()) if how == "reranker" else tools(retriever=Away() if how == "retriever" else late)
        agent = FunctionAgent(tools=failing, llm=that_calls([ASK, LOOK]), timeout=3.0 if how == "timeout" else None)
        handler = agent.run(user_msg=ASKED)
        while how in ("cancel_run", "wait_for") and late.begun < 2:
            # However slow the machine is: what has not begun cannot fail.
            await asyncio.sleep(0.005)
        if how == "cancel_run":
            await handler.cancel_run()
        errors = () if how in ("retriever", "reranker") else (Exception, asyncio.CancelledError)
        with pytest.raises(errors) if errors else contextlib.nullcontext():
            await asyncio.wait_for(handler, 0.05 if how == "wait_for" else None)

    live = watched(ask)
    assert_recorded(live, [(query, (), pool if how == "reranker" else None) for query, _, pool in BOTH])
    assert live.monitor.traffic.failed == 2
