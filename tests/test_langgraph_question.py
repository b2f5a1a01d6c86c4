"""A retrieval in a graph whose agent rewrites the question belongs to what the user asked."""

import asyncio
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from rag_selectivity_langchain import SelectivityCallback

pytestmark = pytest.mark.contract

QUESTION = "Who wrote the first program?"


class Retriever(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(id="d1", page_content="Ada")]


class State(TypedDict):
    question: str
    documents: list[Document]


def watched(work: Any, inputs: Any, labels: Any = None, **config: Any) -> SelectivityCallback:
    callback = SelectivityCallback(
        labels or {QUESTION: {"d1": 1}}, corpus_size=64, depths=[1], identity="id", ids="exact"
    )
    work(inputs, config={"callbacks": [callback], **config})
    assert callback.faults == 0
    return callback


def messages_graph() -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("search", lambda state, config: {"messages": [str(Retriever().invoke("rewritten", config))]})
    graph.add_edge(START, "search")
    graph.add_edge("search", END)
    return graph.compile()


@pytest.mark.parametrize(
    "messages",
    [
        [HumanMessage(QUESTION)],
        [("user", "hello"), ("ai", "hello"), ("user", QUESTION)],
        [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}],
        [("user", [{"type": "image_url", "image_url": {"url": "data:"}}, {"type": "text", "text": QUESTION}])],
        [HumanMessage([{"type": "text", "text": "See the page."}, {"type": "text", "text": QUESTION}])],
    ],
)
def test_a_graph_of_messages(messages) -> None:
    graph = messages_graph()
    for work in (graph.invoke, lambda *given, **more: asyncio.run(graph.ainvoke(*given, **more))):
        callback = watched(work, {"messages": messages})
        assert callback.traffic.labelled == 1
        assert callback.report()["BoR@1"].value == 6


def test_a_graph_with_a_state_and_a_chain() -> None:
    graph = StateGraph(State)
    graph.add_node("search", lambda state, config: {"documents": Retriever().invoke("rewritten", config)})
    graph.add_edge(START, "search")
    graph.add_edge("search", END)
    assert watched(graph.compile().invoke, {"question": QUESTION}).report()["BoR@1"].value == 6
    chain = RunnableLambda(lambda question: "rewritten") | Retriever()
    assert watched(chain.invoke, QUESTION).report()["BoR@1"].value == 6


def test_the_metadata_and_the_query_of_the_retriever_itself_come_first() -> None:
    graph = messages_graph()
    both = {QUESTION: {"other": 1}, "rewritten": {"d1": 1}, "q7": {"d1": 1}}
    assert watched(graph.invoke, {"messages": [("user", QUESTION)]}, both).report()["Success@1"].value == 1
    del both["rewritten"]
    named = watched(graph.invoke, {"messages": [("user", QUESTION)]}, both, metadata={"query_id": "q7"})
    assert named.report()["Success@1"].value == 1
    assert watched(graph.invoke, {"messages": [("user", QUESTION)]}, both).report()["Success@1"].value == 0
