"""A trace that nobody asked to hold texts holds none, however a framework or the application names its questions."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.live.tools import ToolMonitor
from rag_selectivity.live.trace import Trace

pytestmark = pytest.mark.contract

QUESTION, WORD, REWORDED, PASSAGE = "does Ada owe us money?", "insolvency", "debts of Ada", "Ada owes 300 pounds."
#: A word that the application gives as an id may be one.
BY_HAND = {QUESTION: {"d1": 1}, "支払い期限はいつですか": {"d1": 1}, "q7": {"d2": 1}}
LABELS = {**BY_HAND, WORD: {"d2": 1}}
OPTIONS: dict[str, Any] = {"corpus_size": 64, "depths": [1]}


def by_hand(trace: Path) -> rs.Monitor:
    """Questions named in a request, by their id, and without a retrieval."""
    monitor = rs.Monitor(LABELS, trace=trace, **OPTIONS)
    for named in [*BY_HAND, None]:
        with monitor.request("r1", query_id=named):
            monitor.record(rs.Retrieval(QUESTION, ["d1"]))
            monitor.record(rs.Retrieval(REWORDED, ["d2"], pool=["d1", "d2"]))
    monitor.asked(WORD)
    monitor.outcome("r1", 1.0)
    return monitor


def by_langchain(trace: Path) -> rs.Monitor:
    """A retriever that is asked by itself, by its metadata, and by a chain that rewords the question."""
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda
    from rag_selectivity_langchain import SelectivityCallback

    class Retriever(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return [Document(id="d1", page_content=PASSAGE)]

    callback = SelectivityCallback(LABELS, trace=trace, **OPTIONS)
    for question in (QUESTION, WORD):
        Retriever().invoke(question, config={"callbacks": [callback]})
        Retriever().invoke(REWORDED, config={"callbacks": [callback], "metadata": {"query_id": QUESTION}})
        (RunnableLambda(lambda _: REWORDED) | Retriever()).invoke(question, config={"callbacks": [callback]})
    assert callback.faults == 0
    return callback.monitor


def by_llama_index(trace: Path) -> rs.Monitor:
    """A retriever that is asked by itself, and by an engine that rewords the question."""
    pytest.importorskip("llama_index.core")
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine, TransformQueryEngine
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from rag_selectivity_llama_index import LiveSelectivity

    class Retriever(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            return [NodeWithScore(node=TextNode(id_="d1", text=PASSAGE))]

    class Reworded(BaseQueryTransform):
        def _get_prompts(self) -> Any:
            return {}

        def _update_prompts(self, prompts: Any) -> None: ...

        def _run(self, query_bundle: Any, metadata: Any) -> Any:
            return QueryBundle(REWORDED)

    engine = RetrieverQueryEngine.from_args(Retriever(), llm=MockLLM(max_tokens=3))
    with LiveSelectivity(LABELS, trace=trace, **OPTIONS) as live:
        for question in (QUESTION, WORD):
            Retriever().retrieve(question)
            TransformQueryEngine(engine, Reworded()).query(question)
    assert live.faults == 0
    return live.monitor


def by_tools(trace: Path) -> rs.Monitor:
    tools = ToolMonitor({QUESTION: ["d1"]}, trace=trace)
    tools.call(QUESTION, {"d1": 3}, ["d1"])
    tools.call(REWORDED, {"d1": 3}, ["d1"], query_id=QUESTION)
    return tools.monitor


@pytest.mark.parametrize("watched", [by_hand, by_langchain, by_llama_index, by_tools])
def test_it_holds_no_texts_and_its_figures_are_those_of_the_monitor(watched, tmp_path, caplog) -> None:
    caplog.set_level(logging.DEBUG, logger="rag_selectivity")
    monitor = watched(tmp_path / "trace.jsonl")
    live = monitor.report()
    monitor.close()
    for written in ((tmp_path / "trace.jsonl").read_text(encoding="utf-8"), caplog.text):
        for text in (*{*LABELS} - {"q7"}, REWORDED, PASSAGE):
            assert text not in written
            assert json.dumps(text) not in written
    labels = rs.Qrels.of(monitor.labels.by_query)
    trace = Trace.read(tmp_path / "trace.jsonl", labels)
    again = rs.evaluate(trace.labels_from(labels), {"t": trace.shown}, pool=trace.pool, **OPTIONS, bootstrap=None)
    assert (again["Success@1"].value, again["Success@1"].n) == (live["Success"].value, live["Success"].n)
    assert again["Success@1"].n > 1
    names = list(map(monitor.labels.by_query.__contains__, trace.queries_in(labels).values()))
    assert names == [True] * len(monitor.retrievals)


def test_costs_of_a_trace_without_texts_are_those_of_the_labels_queries(tmp_path) -> None:
    monitor = rs.Monitor(LABELS, trace=tmp_path / "trace.jsonl", **OPTIONS)
    for question in (QUESTION, WORD):
        monitor.record(rs.Retrieval(question, ["d1"], query_id=question, tokens=300))
    monitor.close()
    costs = Trace.read(tmp_path / "trace.jsonl").costs_of_queries(rs.Qrels.of(LABELS))
    assert costs == {QUESTION: {"tokens": 300.0}, WORD: {"tokens": 300.0}}


def test_the_log_quotes_no_texts_where_watching_goes_wrong(caplog) -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from rag_selectivity_langchain import SelectivityCallback

    class Retriever(BaseRetriever):
        found: Any

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return list(self.found)

    callback = SelectivityCallback(LABELS, identity="url", **OPTIONS)
    for found in (Document(page_content=PASSAGE), PASSAGE):
        Retriever(found=[found]).invoke(QUESTION, config={"callbacks": [callback]})
    assert callback.faults == 2
    assert "document 1 has no metadata['url']" in caplog.text
    assert PASSAGE not in caplog.text
    assert QUESTION not in caplog.text


def test_the_log_quotes_no_questions_of_labels_that_meet_no_model_call(caplog) -> None:
    tools = ToolMonitor({QUESTION: ["d1"]}, catalogue=["d1", "d2"])
    tools.call(REWORDED, {"d1": 3}, ["d1"])
    with pytest.warns(rs.SelectivityWarning, match="label by the text of a query"):
        tools.report()
    assert QUESTION not in caplog.text
    assert REWORDED not in caplog.text
