"""Mistakes of a first run: each is an error that says what, where and the mend, and none a silently lower figure."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.judge import CallableJudge, GradingError
from rag_selectivity.live.tools import ToolCall, ToolDefinition
from rag_selectivity.single import Labels, evaluate_query

pytestmark = pytest.mark.inside

LABELS = {"who?": {"d1": 5, "d2": 1}}
TOOLS = [ToolDefinition("forecast"), ToolDefinition("send_mail"), ToolDefinition("clock")]


def error_of(call: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises((rs.InputError, GradingError)) as caught:
        call(*arguments, **options)
    return str(caught.value)


async def rule(messages: Any, schema: Any) -> dict[str, Any]:
    return {"reason": "by a rule", "grade": 1}


@pytest.mark.parametrize("shown", ["d1", None, {"d1": 1}, 3])
def test_what_was_retrieved_must_be_a_list(shown: Any) -> None:
    assert "shown must be a list of ids" in error_of(rs.Retrieval, "who?", shown)
    assert "pool must be a list of ids" in error_of(rs.Retrieval, "who?", ["d1"], pool=shown or 3)
    grades = Labels.of(LABELS, scale="utility").of_query("who?")
    assert "must be a list of ids" in error_of(evaluate_query, "Harm@2", grades, shown, scale="utility")


def test_amounts_are_numbers_from_0() -> None:
    assert "tokens must be a number ≥ 0, got -1" in error_of(rs.Retrieval, "who?", ["d1"], tokens=-1)
    assert "seconds must be a number ≥ 0, got 'fast'" in error_of(rs.Retrieval, "who?", ["d1"], seconds="fast")


def test_one_alert_is_a_list_too() -> None:
    assert "give alerts=['BoR < 3']" in error_of(rs.Monitor, LABELS, scale="utility", alerts="BoR < 3")


def test_a_monitor_without_retrievals_does_not_blame_the_labels() -> None:
    assert "no retrieval was recorded" in error_of(rs.Monitor(LABELS, scale="utility").report)


@pytest.mark.parametrize("wrong", ["forecast", None])
def test_tools_come_in_lists(wrong: Any) -> None:
    monitor = rs.ToolMonitor({"weather?": ["forecast"]}, catalogue=TOOLS)
    assert "shown must be a list" in error_of(monitor.call, "weather?", wrong)
    assert "called must be a list" in error_of(monitor.call, "weather?", TOOLS, wrong)
    assert "list of them, got 'many'" in error_of(rs.ToolMonitor, catalogue="many")
    assert "no model call" in error_of(monitor.report)  # nothing of it was counted


@pytest.mark.parametrize("catalogue", [None, 2, ["forecast", "send_mail"], TOOLS])
def test_the_report_on_tools_names_the_catalogue_that_was_measured(catalogue: Any) -> None:
    monitor = rs.ToolMonitor({"weather?": ["forecast"]}, catalogue=catalogue)
    monitor.call("weather?", TOOLS, [ToolCall("forecast")])
    report = monitor.report()
    names = [tool.name for tool in TOOLS]
    expected = rs.evaluate({"weather?": ["forecast"]}, {"weather?": names}, corpus_size=3, depths=[3])
    assert report.selection.corpus_size == report.catalogue == expected.corpus_size
    assert report.selection["BoR"].value == expected["BoR@3"].value


def test_no_more_tools_apply_than_there_are() -> None:
    assert "relevant=99 is more than the catalogue has, 3 tools" in error_of(
        rs.ToolMonitor, catalogue=TOOLS, relevant=99
    )
    monitor = rs.ToolMonitor(relevant=99)
    monitor.call("weather?", TOOLS)
    assert "relevant=99 is more than the 3 tools seen so far" in error_of(monitor.report)


def test_labels_of_other_queries_for_tools_are_named() -> None:
    monitor = rs.ToolMonitor({"mail?": ["send_mail"]}, catalogue=TOOLS)
    monitor.call("weather?", TOOLS)
    with pytest.warns(rs.SelectivityWarning, match=r"know none of the queries so far; they know 'mail\?'"):
        monitor.report()


def test_an_empty_file_of_spans_is_called_empty(tmp_path: Any) -> None:
    from rag_selectivity.live.trace import Trace

    (tmp_path / "spans.json").touch()
    message = error_of(Trace.read, tmp_path / "spans.json", rs.Qrels.from_dict({"who?": {"d1": 1}}))
    assert message.endswith("spans.json: the file is empty; write it again")


def test_mistakes_with_ragas() -> None:
    pytest.importorskip("ragas")
    from rag_selectivity_ragas import selectivity

    rows = [{"user_input": "who?", "retrieved_context_ids": ["d1"]}]
    options: dict[str, Any] = {"scale": "utility", "depths": [1], "bootstrap": None}
    others = error_of(selectivity, rows, {"when?": {"d1": 5}}, **options)
    assert "the samples ask 'who?', and the labels know 'when?'" in others
    assert "give len(corpus)" in error_of(selectivity, rows, LABELS, corpus_size={"d1": "Ada."}, **options)
    assert "load it" in error_of(selectivity, "rows.jsonl", LABELS, **options)


def test_mistakes_with_llama_index(tmp_path: Any) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.base.base_retriever import BaseRetriever
    from rag_selectivity_llama_index import SelectivityEvaluator, grade_retriever

    class Empty(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            return []

    queries = {"q1": "who?"}
    options: dict[str, Any] = {"scale": "utility", "corpus_size": 10, "depths": [1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        others = SelectivityEvaluator(Empty(), labels={"q9": {"d1": 5}}, **options)
        assert "the queries are 'q1', and the labels know 'q9'" in error_of(others.evaluate_dataset, queries)
        nothing = SelectivityEvaluator(Empty(), labels=LABELS, **options)
        assert "no passage at all was retrieved" in error_of(nothing.evaluate_dataset, queries)
        store = tmp_path / "labels.db"
        assert "an LLM of LlamaIndex is needed, got str" in error_of(grade_retriever, Empty(), queries, "gpt", store)
        judge = CallableJudge(rule, "rule")
        assert "there is nothing to grade" in error_of(grade_retriever, Empty(), queries, judge, store)


def test_mistakes_with_langchain(tmp_path: Any) -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import InMemoryVectorStore
    from rag_selectivity_langchain import grade_retriever, selectivity

    class Names(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return ["d1"]

    store = InMemoryVectorStore.from_texts(["Ada."], DeterministicFakeEmbedding(size=2), ids=["d1"])
    retriever = store.as_retriever()
    options: dict[str, Any] = {"scale": "utility", "depths": [1]}
    assert "give store.as_retriever()" in error_of(selectivity, store, ["who?"], LABELS, **options)
    assert "give store.as_retriever()" in error_of(grade_retriever, store, ["who?"], "gpt", tmp_path / "l.db")
    assert "must return Documents" in error_of(selectivity, Names(), ["who?"], LABELS, **options)
    others = error_of(selectivity, retriever, ["who?"], {"when?": {"d1": 5}}, **options)
    assert "the questions are 'who?', and the labels know 'when?'" in others
    assert "a chat model of LangChain is needed, got str" in error_of(
        grade_retriever, retriever, ["who?"], "gpt", tmp_path / "l.db"
    )


def test_a_text_in_place_of_ids_in_deepeval() -> None:
    pytest.importorskip("deepeval")
    from deepeval.test_case import LLMTestCase
    from rag_selectivity_deepeval import SelectivityMetric

    metric = SelectivityMetric("Harm@2", LABELS, scale="utility")
    for ids in ("d1", {"d1": 1}):
        case = LLMTestCase(input="who?", metadata={"retrieved_ids": ids})
        found = error_of(metric.measure, case)
        assert re.search(r"'who\?' holds no retrieval: a list is needed, .* metadata\['retrieved_ids'\]", found)


def test_a_text_in_place_of_ids_in_pytest() -> None:
    from rag_selectivity_pytest import Retrievals

    assert "takes a list of ids in rank order, got 'd1'" in error_of(Retrievals().record, "who?", "d1")


def test_join_says_how_to_make_what_it_takes() -> None:
    labels, run = rs.Qrels.of(LABELS), rs.Run.of({"who?": ["d1"]})
    for wrong in ("qrels.trec", LABELS, None):
        assert "Qrels.of" in error_of(rs.join, wrong, run)
    for wrong in ("run.trec", {"who?": ["d1"]}, None, 3):
        assert "Run.of" in error_of(rs.join, labels, wrong)
        if wrong is not None:
            assert "Run.of" in error_of(rs.join, labels, run, pool=wrong)
    assert "Qrels.of" in error_of(rs.join, labels, run, controls=LABELS)
