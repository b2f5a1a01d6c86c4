"""Agents and graphs of LangChain: what the model was shown is recorded, once, under the user's query."""

import asyncio
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from rag_selectivity_langchain import SelectivityCallback

import rag_selectivity as rs
from tests.test_langchain import ASKED, POOL, Broken, WordRetriever, classic, records
from tests.three_questions import GRADES, QUERIES, TEXTS

pytestmark = pytest.mark.contract


class Model(FakeMessagesListChatModel):
    """Calls tools as it was told to."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def agent(tools: list[Any], *turns: list[tuple[str, str]]) -> Any:
    """An agent that calls tools with these queries, turn by turn, and then answers."""
    create_agent = pytest.importorskip("langchain.agents").create_agent
    messages = [
        AIMessage("", tool_calls=[{"name": n, "args": {"query": q}, "id": f"{t}{i}"} for i, (n, q) in calls])
        for t, calls in enumerate(map(enumerate, turns))
    ]
    return create_agent(Model(responses=[*messages, AIMessage("an answer")]), tools)


QUESTION = {"messages": [("user", "whatever the user said")]}


def watching(**options: Any) -> Any:
    return SelectivityCallback(GRADES, scale="utility", corpus_size=6, depths=[1, 2], identity="id", **options)


def under(callback: Any, query_id: str | None = "q1") -> Any:
    return {"callbacks": [callback], "metadata": {"query_id": query_id}}


def settled(callback: Any, faults: int = 0) -> list[tuple[str, tuple[str, ...], tuple[str, ...] | None]]:
    """What was recorded; nothing may be left over."""
    assert callback.faults == faults
    assert callback.traffic.retrievals == len(records(callback))
    return records(callback)


def assert_as_evaluated(callback: Any, lists: dict[str, list[str]], pools: dict[str, list[str]] | None = None) -> None:
    """The figures are those of `evaluate` on the lists that were shown."""
    expected = rs.evaluate(
        {query_id: GRADES[query_id] for query_id in lists},
        lists,
        pool=pools,
        corpus_size=6,
        scale="utility",
        measures=["Success", "BoR", "RA-nWG", "Harm", *(["PROC", "%PROC"] if pools else [])],
        depths=[1, 2],
        short_lists="returned",
    )
    report = callback.report()
    for key, estimate in next(iter(expected.runs.values())).estimates.items():
        assert report[key].value == pytest.approx(estimate.value, rel=1e-12, nan_ok=True), key
        assert report[key].n == estimate.n, key


# -- agents ----------------------------------------------------------------------------------------


@tool
def search(query: str) -> str:
    """Search."""
    return "\n".join(document.page_content for document in WordRetriever().invoke(query))


@tool
async def asearch(query: str) -> str:
    """Search."""
    return "\n".join(document.page_content for document in await WordRetriever().ainvoke(query))


@tool(response_format="content_and_artifact")
def search_and_pick(query: str) -> tuple[str, list[Document]]:
    """Search, and show the last two."""
    found = WordRetriever().invoke(query)[-2:]
    return str(found), found


@tool(response_format="content_and_artifact")
def search_store(query: str) -> tuple[str, list[Document]]:
    """Search a store without a retriever, of which LangChain tells nothing."""
    found = WordRetriever()._get_relevant_documents(query, run_manager=None)
    return str(found), found


@tool(response_format="content_and_artifact")
def search_or_else(query: str) -> tuple[str, list[Document]]:
    """Search, and in other words elsewhere if that fails."""
    try:
        return "", Broken().invoke(f"{query} again")
    except ConnectionError:
        return "", WordRetriever().invoke(query)[:2]


@tool(response_format="content_and_artifact")
def search_twice(query: str) -> tuple[str, list[Document]]:
    """Ask two retrievers, and show the best of each."""
    found = [*WordRetriever(k=2).invoke(query)[:1], *WordRetriever(skip=("n1", "n3")).invoke(f"{query} again")[:1]]
    return str(found), found


def retriever_tool(**options: Any) -> Any:
    return create_retriever_tool(WordRetriever(), "search", "Searches.", **options)


TOOLS: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...] | None]] = {
    "a retriever tool": (retriever_tool(), POOL, None),
    "a retriever tool with artifact": (retriever_tool(response_format="content_and_artifact"), POOL, None),
    "a function that asks a retriever": (search, POOL, None),
    "a function that picks from a retriever": (search_and_pick, POOL[-2:], POOL),
    "a function that searches a store": (search_store, POOL, None),
    "a function that asks another retriever after an error": (search_or_else, POOL[:2], POOL),
    "a function that asks two retrievers": (search_twice, ("n1", "n2"), ("n1", "n3", "n2", "n6")),
}


def run_sync(graph: Any, given: Any, config: Any) -> None:
    graph.invoke(given, config=config)


def run_stream(graph: Any, given: Any, config: Any) -> None:
    assert list(graph.stream(given, config=config))


def run_async(graph: Any, given: Any, config: Any) -> None:
    asyncio.run(graph.ainvoke(given, config=config))


def run_events(graph: Any, given: Any, config: Any) -> None:
    async def events() -> list[Any]:
        return [event async for event in graph.astream_events(given, config=config, version="v2")]

    assert asyncio.run(events())


WAYS = [run_sync, run_stream, run_async, run_events]
Way = Callable[[Any, Any, Any], None]


@pytest.mark.parametrize("name", TOOLS)
def test_an_agent_s_tool_is_one_retrieval_of_what_the_model_was_shown(name: str) -> None:
    made, shown, pool = TOOLS[name]
    callback = watching()
    run_sync(agent([made], [(made.name, ASKED)]), QUESTION, under(callback))
    assert settled(callback) == [(ASKED, shown, pool)]
    assert [each.query_id for each in callback.monitor.retrievals] == ["q1"]
    assert_as_evaluated(callback, {"q1": list(shown)}, {"q1": list(pool)} if pool else None)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_an_agent_in_every_way_to_run_it(way: Way) -> None:
    callback = watching()
    made = asearch if way in (run_async, run_events) else search
    way(agent([made], [(made.name, f"{ASKED} rewritten")]), QUESTION, under(callback))
    ((query, shown, pool),) = settled(callback)
    assert (query, shown, pool) == (f"{ASKED} rewritten", POOL, None)
    assert_as_evaluated(callback, {"q1": list(POOL)})


def test_each_retrieval_of_an_agent_counts() -> None:
    """Three calls for one question, two of them at once: three retrievals of that question."""
    callback = watching()
    made = agent([search], [("search", ASKED), ("search", QUERIES["q2"])], [("search", f"{ASKED} again")])
    run_sync(made, QUESTION, under(callback))
    assert len(settled(callback)) == 3
    assert {each.query_id for each in callback.monitor.retrievals} == {"q1"}
    hits = [any(GRADES["q1"].get(id_, 0) >= 4 for id_ in shown[:1]) for _, shown, _ in records(callback)]
    assert (callback.report()["Success@1"].value, callback.report()["Success@1"].n) == (sum(hits) / 3, 3)


def test_many_agents_at_once_are_not_mixed_up() -> None:
    callback = watching()

    async def ask() -> None:
        agents = [(q, agent([asearch], [("asearch", QUERIES[q])])) for q in [*QUERIES] * 10]
        await asyncio.gather(*(each.ainvoke(QUESTION, config=under(callback, q)) for q, each in agents))

    asyncio.run(ask())
    own = {QUERIES[q]: (q, tuple(str(d.id) for d in WordRetriever().invoke(QUERIES[q]))) for q in QUERIES}
    assert len(settled(callback)) == 30
    for each in callback.monitor.retrievals:
        assert (each.query_id, each.shown) == own[each.query]


# -- graphs ----------------------------------------------------------------------------------------


class AsDict(TypedDict):
    question: str
    candidates: list[Any]
    documents: list[Any]


def candidates_of(state: Any) -> list[Document]:
    found: list[Document] = state["candidates"] if isinstance(state, dict) else state.candidates
    return found


def only_the_list(state: Any) -> Any:
    return {"documents": candidates_of(state)[::-1][:2]}


def whole_state(state: Any) -> Any:
    return {**state, "documents": candidates_of(state)[::-1][:2]}


def in_place(state: Any) -> Any:
    return {"candidates": candidates_of(state)[::-1][:2]}


def as_command(state: Any) -> Any:
    return pytest.importorskip("langgraph.types").Command(update=only_the_list(state))


def graph(rerank: Any, state: Any = AsDict) -> Any:
    """Retrieve, then rerank."""
    langgraph = pytest.importorskip("langgraph.graph")
    made = langgraph.StateGraph(state)
    made.add_node("retrieve", lambda _: {"candidates": WordRetriever().invoke(ASKED)})
    made.add_node("rerank", rerank)
    made.add_edge(langgraph.START, "retrieve")
    made.add_edge("retrieve", "rerank")
    return made.compile()


@pytest.mark.parametrize("rerank", [only_the_list, whole_state, in_place, as_command], ids=lambda f: f.__name__)
@pytest.mark.parametrize("way", [run_sync, run_async], ids=lambda way: way.__name__)
def test_a_graph_with_a_rerank_node(rerank: Any, way: Way) -> None:
    callback = watching(rerank="rerank")
    way(graph(rerank), {"question": ASKED}, under(callback))
    assert settled(callback) == [(ASKED, POOL[::-1][:2], POOL)]
    assert_as_evaluated(callback, {"q1": list(POOL[::-1][:2])}, {"q1": list(POOL)})


# -- retrievers of retrievers ----------------------------------------------------------------------


class Hiding(BaseRetriever):
    """Asks another retriever and does not pass on `run_manager.get_child()`."""

    inner: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found: list[Document] = self.inner.invoke(query)[-2:]
        return found


class HidingAsync(Hiding):
    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found: list[Document] = (await self.inner.ainvoke(query))[-2:]
        return found


@pytest.mark.parametrize("inner", [WordRetriever(), RunnableLambda(lambda query: query) | WordRetriever()])
@pytest.mark.parametrize("outer", [Hiding, HidingAsync])
@pytest.mark.parametrize("way", [run_sync, run_async])
def test_a_retriever_inside_another_is_never_counted_on_its_own(way: Way, outer: Any, inner: Any) -> None:
    callback = watching()
    way(RunnableLambda(lambda query: query) | outer(inner=inner), ASKED, under(callback))
    assert settled(callback) == [(ASKED, POOL[-2:], POOL)]


def test_parents_of_small_chunks_are_what_is_shown() -> None:
    """The store finds children by a vector; the LLM is shown their parents."""

    class ByWords:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[float(word in text.lower().split()) for word in ASKED.lower().split()] + [0.01] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    store: Any = InMemoryVectorStore(ByWords())  # type: ignore[arg-type,unused-ignore]
    retriever = classic("MultiVectorRetriever")(vectorstore=store, docstore=InMemoryStore(), id_key="parent")
    parents = {name: Document(page_content=text, metadata={"source": name}) for name, text in TEXTS.items()}
    retriever.docstore.mset(list(parents.items()))
    children = [
        Document(page_content=half, metadata={"parent": name})
        for name, text in TEXTS.items()
        for half in (text[: len(text) // 2], text[len(text) // 2 :])
    ]
    store.add_documents(children)
    callback = SelectivityCallback(GRADES, scale="utility", corpus_size=6, depths=[1, 2], identity="source")
    found = retriever.invoke(ASKED, config=under(callback))
    ((_, shown, pool),) = settled(callback)
    assert (list(shown), pool) == ([document.metadata["source"] for document in found], None)
    assert_as_evaluated(callback, {"q1": list(shown)})


# -- handlers given twice, cancellations, threads --------------------------------------------------


class Slow(WordRetriever):
    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
        await asyncio.sleep(60)


@pytest.mark.parametrize(("in_a_chain", "again"), [(False, "q2"), (True, "q2"), (True, "q1")])
def test_a_cancelled_retrieval_is_a_failure_unless_its_query_is_asked_again(in_a_chain: bool, again: str) -> None:
    async def ask(query: str, config: RunnableConfig) -> Any:
        try:
            async with asyncio.timeout(0.01):
                return await Slow().ainvoke(query, config=config)
        except TimeoutError:
            return await WordRetriever().ainvoke(QUERIES[again], config=config)

    callback = watching()
    asyncio.run((RunnableLambda(ask).ainvoke if in_a_chain else ask)(ASKED, under(callback)))
    failed = [(ASKED, False)] if again == "q2" else []
    found = sorted((query, bool(shown)) for query, shown, _ in settled(callback))
    assert (found, callback.traffic.failed) == ([*failed, (QUERIES[again], True)], len(failed))
