"""Retrievals that fail or come back empty are failures of K slots, whoever watches them.

20 queries with one relevant passage each, N = 100 and two passages shown: a random draw of two succeeds in 2 of 100,
so BoR@2 is log2(share that works / .02).
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import isnan, log2
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity import Monitor, Retrieval
from tests.forked_cli import run_command

pytestmark = pytest.mark.contract

QUERIES = [f"question {i}" for i in range(20)]
LABELS = {query: {f"d{i}": 1} for i, query in enumerate(QUERIES)}
OPTIONS: dict[str, Any] = {"corpus_size": 100, "depths": [1, 2]}
FAILING = pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
HOW = pytest.mark.parametrize("how", ["fails", "empty"])


def right(share: float) -> float:
    """5.644, 4.644 and 2.322."""
    return log2((1 - share) / 0.02)


def lists(share: float) -> dict[str, list[str]]:
    failing = round(share * len(QUERIES))
    return {query: [] if i < failing else [f"d{i}", "x"] for i, query in enumerate(QUERIES)}


def check(report: Any, share: float) -> None:
    """The figures at K, and those of all that was shown."""
    for key in ("BoR@2", "BoR"):
        assert report[key].value == pytest.approx(right(share), abs=1e-12), key
    assert report["BoR_max@2"].value == pytest.approx(log2(50), abs=1e-12)
    assert report["lambda@2"].value == pytest.approx(0.02)
    assert report["Success@2"].n == 20
    # Nobody has candidates beyond those shown: a failure alone must not look like a retriever without any.
    assert str(report).splitlines()[2].startswith("Loss: Not known")


class Found(dict[str, list[str]]):
    """What a retriever finds; where a list is empty, it fails or returns nothing."""

    how = "empty"

    def of(self, query: str) -> list[str]:
        if not self[query] and self.how == "fails":
            raise ConnectionError("the index is away")
        return self[query]


def found(share: float, how: str) -> Found:
    made = Found(lists(share))
    made.how = how
    return made


def each(ask: Callable[[str], Any]) -> None:
    for query in QUERIES:
        with suppress(ConnectionError):
            ask(query)


@FAILING
@pytest.mark.parametrize("short_lists", ["requested", "returned"])
def test_evaluate(share, short_lists) -> None:
    report = rs.evaluate(LABELS, {"r": lists(share)}, bootstrap=None, short_lists=short_lists, **OPTIONS)
    assert report["BoR@2"].value == pytest.approx(right(share), abs=1e-12)
    missing = {query: ids for query, ids in lists(share).items() if ids}
    report = rs.evaluate(LABELS, {"r": missing}, bootstrap=None, short_lists=short_lists, **OPTIONS)
    assert report["BoR@2"].value == pytest.approx(right(share), abs=1e-12)


@FAILING
@HOW
@pytest.mark.parametrize("failures_first", [True, False])
def test_monitor(share, how, failures_first) -> None:
    monitor = Monitor(LABELS, **OPTIONS)
    for query, ids in sorted(lists(share).items(), key=lambda item: bool(item[1]) is failures_first):
        monitor.record(Retrieval(query, ids, failed=how == "fails" and not ids))
    check(monitor.report(), share)


def test_alerts() -> None:
    monitor = Monitor(LABELS, alerts=["BoR@2 < 3"], **OPTIONS)
    for share in (0.5, 0.9):
        for query, ids in lists(share).items():
            monitor.record(Retrieval(query, ids))
    assert monitor.window["BoR@2"] == pytest.approx(log2(0.3 / 0.02))


def test_precision_and_evidence_of_a_failure_are_0_and_harm_has_no_value() -> None:
    labels = {"a": {"x": 5, "y": 1}, "b": {"z": 5, "w": 1}}
    options = {"measures": ["Precision4+", "RA-nWG", "Harm", "P"], "depths": [2], "alerts": ["tokens > 9"]}
    monitor = Monitor(labels, scale="utility", **options)
    monitor.record(Retrieval("a", ["x", "y"], tokens=8))
    monitor.record(Retrieval("b", ["z"], failed=True, tokens=0))
    report = monitor.report()
    assert monitor.window["tokens"] == monitor.traffic.tokens == 8
    assert report["Precision4+@2"].value == report["P@2"].value == 0.25
    assert report["RA-nWG@2"].value == 0.5
    assert (report["Harm@2"].value, report["Harm@2"].n) == (0.5, 1)
    alone = Monitor(labels, scale="utility", measures=["Harm"], depths=[2])
    alone.record(Retrieval("b", [], failed=True))
    assert isnan(alone.report()["Harm"].value)


@HOW
def test_where_nothing_was_shown_at_all_success_is_0_at_no_depth(how) -> None:
    monitor = Monitor(LABELS, corpus_size=100)
    for query in QUERIES:
        monitor.record(Retrieval(query, [], failed=how == "fails"))
    report = monitor.report()
    assert (report["Success"].value, report["Success"].n, report.depths) == (0, 20, ())
    assert f"20 retrievals {'failed' if how == 'fails' else 'returned nothing'}" in str(report)
    assert "nan" not in str(report)


@HOW
@pytest.mark.parametrize("failing", [11, 19, 20])
def test_an_outage_comes_first(how, failing) -> None:
    """Whatever the few that worked show about labels, K and steps."""
    monitor = Monitor(LABELS, corpus_size=100)
    for query, ids in lists(failing / 20).items():
        monitor.record(Retrieval(query, ids, failed=how == "fails" and not ids))
    _, K, _, act, trust, *_ = str(monitor.report()).splitlines()
    count = f"{failing} of 20 retrievals failed or came back empty"
    assert act.startswith(f"Next: Mend the retrieval first: {count}.")
    assert f": {count}" in K
    assert "better than luck" not in trust


def test_without_a_depth_a_failure_has_as_many_slots_as_the_other_lists_have_on_average() -> None:
    monitor = Monitor({"a": {"x": 1}, "b": {"y": 1}, "c": {"z": 1}}, corpus_size=100, depths=[2, 5])
    for query, ids in (("a", ["x", "1"]), ("b", ["y", "1", "2", "3"]), ("c", [])):
        monitor.record(Retrieval(query, ids))
    report = monitor.report()
    assert report["BoR"].value == pytest.approx(log2((2 / 3) / ((0.02 + 0.04 + 0.03) / 3)))
    assert report["BoR@2"].value == pytest.approx(log2((2 / 3) / 0.02))


# -- files -----------------------------------------------------------------------------------------


@FAILING
@HOW
def test_a_trace_that_is_read_back(share, how, tmp_path: Path) -> None:
    monitor = Monitor(LABELS, trace=tmp_path / "trace.jsonl", trace_texts=True, **OPTIONS)
    for query, ids in lists(share).items():
        monitor.record(Retrieval(query, ids, failed=how == "fails" and not ids))
    monitor.close()
    assert of_trace(tmp_path) == pytest.approx(right(share), abs=1e-9)


@FAILING
@HOW
def test_a_file_of_spans(share, how, tmp_path: Path) -> None:
    from tests.test_spans import search, span_json

    spans = []
    for i, (query, ids) in enumerate(lists(share).items()):
        empty = {} if ids or how == "fails" else {"output.value": "[]"}
        span = search(ids, query, f"s{i}", failed=how == "fails" and not ids, start=10 * i, end=10 * i + 5, **empty)
        spans.append(span_json(span._replace(trace=f"t{i}")))
    document = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    (tmp_path / "trace.jsonl").write_text(json.dumps(document))
    assert of_trace(tmp_path) == pytest.approx(right(share), abs=1e-9)


def of_trace(folder: Path) -> float:
    lines = [f"{query}\t{passage}\t1\n" for query, row in LABELS.items() for passage in row]
    (folder / "qrels.tsv").write_text("query\tdocid\tgrade\n" + "".join(lines))
    options = ["--corpus-size", "100", "--measure", "BoR@2", "--resamples", "0", "--format", "json"]
    done = run_command("evaluate", "qrels.tsv", "trace.jsonl", *options, cwd=folder)
    (run,) = json.loads(done.stdout)["runs"].values()
    return float(run["measures"]["BoR@2"]["value"])


# -- frameworks ------------------------------------------------------------------------------------


@pytest.fixture
def langchain_retriever() -> Callable[[Found], Any]:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Retriever(BaseRetriever):
        lists: Any

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(id=id_, page_content=id_) for id_ in self.lists.of(query)]

    return lambda found: Retriever(lists=found)


@FAILING
@HOW
@pytest.mark.parametrize("in_a_chain", [False, True])
def test_langchain_callback(share, how, in_a_chain, langchain_retriever) -> None:
    from langchain_core.runnables import RunnableLambda
    from rag_selectivity_langchain import SelectivityCallback

    callback = SelectivityCallback(LABELS, **OPTIONS)
    retriever = langchain_retriever(found(share, how))
    chain = retriever | RunnableLambda(len) if in_a_chain else retriever
    each(lambda query: chain.invoke(query, config={"callbacks": [callback]}))
    check(callback.report(), share)


@FAILING
@HOW
@pytest.mark.filterwarnings("ignore:.*retrievals failed")
def test_langchain_retriever_in_one_pass(share, how, langchain_retriever) -> None:
    from rag_selectivity_langchain import selectivity

    retriever = langchain_retriever(found(share, how))
    asked = {query: query for query in QUERIES}
    report = selectivity(retriever, asked, LABELS, bootstrap=None, **OPTIONS)
    assert report["BoR@2"].value == pytest.approx(right(share), abs=1e-12)


def test_a_runnable_of_langchain_that_gives_none_has_failed() -> None:
    documents = pytest.importorskip("langchain_core.documents")
    from langchain_core.runnables import RunnableLambda
    from rag_selectivity_langchain import selectivity

    known = {query: [documents.Document(id=f"d{i}", page_content=query)] for i, query in enumerate(QUERIES) if i}
    # A function of Python: for `known.get` LangChain parses a signature, which in 3.11 can fail in one of many threads.
    with pytest.warns(rs.SelectivityWarning, match="1 of 20 retrievals failed .* the retriever returned None"):
        report = selectivity(RunnableLambda(lambda query: known.get(query)), None, LABELS, **OPTIONS)
    assert report["Success@1"].value == 19 / 20


@FAILING
@HOW
def test_langsmith_summary(share, how) -> None:
    pytest.importorskip("langchain_core")
    from rag_selectivity_langchain import summary_evaluator

    # A run that failed has no outputs.
    outputs = [{"documents": ids} if ids or how == "empty" else None for ids in lists(share).values()]
    done = summary_evaluator("BoR@2", corpus_size=100)(outputs, [{"relevant": list(row)} for row in LABELS.values()])
    assert done["score"] == pytest.approx(right(share), abs=1e-12)
    assert "20 of 20 examples" in done["comment"]


@pytest.fixture
def llama_index_retriever() -> Callable[[Found], Any]:
    pytest.importorskip("llama_index.core")
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Retriever(BaseRetriever):
        def __init__(self, found: Found) -> None:
            super().__init__()
            self._found = found

        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            ids = self._found.of(query_bundle.query_str)
            return [NodeWithScore(node=TextNode(id_=id_, text=id_), score=1.0) for id_ in ids]

    return Retriever


@FAILING
@HOW
def test_llama_index_live(share, how, llama_index_retriever) -> None:
    from rag_selectivity_llama_index import LiveSelectivity

    with LiveSelectivity(LABELS, **OPTIONS) as live:
        each(llama_index_retriever(found(share, how)).retrieve)
    check(live.report(), share)


@FAILING
@HOW
@pytest.mark.filterwarnings("ignore:.*retrievals failed")
def test_llama_index_evaluator(share, how, llama_index_retriever) -> None:
    from rag_selectivity_llama_index import SelectivityEvaluator

    evaluator = SelectivityEvaluator(
        llama_index_retriever(found(share, how)), labels=LABELS, corpus_size=100, depths=[2], identity="node_id"
    )
    evaluation = evaluator.evaluate_dataset(bootstrap=None)
    assert evaluation.report["BoR@2"].value == pytest.approx(right(share), abs=1e-12)
    chances = [result.metric_vals_dict["RandomSuccess@2"] for result in evaluation.results]
    assert chances == pytest.approx([0.02] * 20)


@FAILING
@HOW
def test_spans_of_this_process(share, how) -> None:
    pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace import TracerProvider
    from rag_selectivity_otel import SelectivitySpanProcessor

    processor = SelectivitySpanProcessor(LABELS, **OPTIONS)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    made = found(share, how)

    def ask(query: str) -> None:
        attributes = {"openinference.span.kind": "RETRIEVER", "input.value": query}
        with provider.get_tracer("test").start_as_current_span("search", attributes=attributes) as span:
            ids = made.of(query)
            span.set_attribute("output.value", json.dumps([{"document.id": id_} for id_ in ids]))
            for i, id_ in enumerate(ids):
                span.set_attribute(f"retrieval.documents.{i}.document.id", id_)

    each(ask)
    check(processor.report(), share)
    processor.shutdown()


@FAILING
def test_tools_of_which_a_selector_showed_none(share) -> None:
    from rag_selectivity.live.tools import ToolMonitor

    monitor = ToolMonitor(LABELS, catalogue=100, depths=[2])
    for query, names in lists(share).items():
        monitor.call(query, names)
    report = monitor.report()
    check(report.selection, share)
    assert report.BoR_max == pytest.approx(log2(50))
    assert report.lam == pytest.approx(0.02)


@FAILING
def test_tools_of_mcp_servers(share) -> None:
    pytest.importorskip("mcp")
    from rag_selectivity_mcp import ToolSelectivity

    tools = ToolSelectivity(LABELS, catalogue=100, depths=[2])
    for query, names in lists(share).items():
        with tools.model_call(query, shown=names):
            pass
    check(tools.report().selection, share)


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory) -> Iterator[Any]:
    """MLflow with a database of its own, which takes seconds to make."""
    mlflow = pytest.importorskip("mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}")
    yield mlflow
    mlflow.set_tracking_uri(before)


@HOW
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow(how, mlflow, tmp_path: Path) -> None:
    import rag_selectivity_mlflow

    mlflow.set_experiment(experiment_id=mlflow.create_experiment(how, str(tmp_path / "artifacts")))
    made = found(0.9, how)

    @mlflow.trace(span_type="RETRIEVER")
    def search(question: str) -> list[Any]:
        return [mlflow.entities.Document(id_, {}, id=id_) for id_ in made.of(question)]

    done = mlflow.genai.evaluate(
        [{"inputs": {"question": query}} for query in QUERIES],
        [rag_selectivity_mlflow.selectivity_scorer("BoR@2", labels=LABELS, scale="trec", corpus_size=100)],
        predict_fn=lambda question: len(search(question)),
    )
    traces = mlflow.search_traces(run_id=done.run_id, include_spans=False, return_type="list")
    errors = [each.error.stack_trace for trace in traces for each in trace.info.assessments if each.error]
    assert not errors, errors[0]
    bor = rag_selectivity_mlflow.log_bor(done)["BoR_at_2"]
    assert (bor.value, bor.n, bor.n_total) == (pytest.approx(right(0.9), abs=1e-12), 20, 20)


@FAILING
def test_deepeval(share) -> None:
    pytest.importorskip("deepeval")
    from deepeval.test_case import LLMTestCase
    from rag_selectivity_deepeval import SelectivityMetric

    rows = []
    for query, ids in lists(share).items():
        case = LLMTestCase(input=query, actual_output="", metadata={"retrieved_ids": ids})
        names = ("Success@2", "RandomSuccess@2")
        rows.append({name: SelectivityMetric(name, LABELS, corpus_size=100).measure(case) for name in names})
    bor = rs.single.bits_over_random_of_rows(rows, bootstrap=None)["BoR@2"]
    assert bor.value == pytest.approx(right(share), abs=1e-12)


@FAILING
def test_ragas(share) -> None:
    pytest.importorskip("ragas")
    from rag_selectivity_ragas import RowFigures, selectivity

    rows = [{"user_input": query, "retrieved_context_ids": ids} for query, ids in lists(share).items()]
    report = selectivity(rows, LABELS, bootstrap=None, **OPTIONS)
    assert report["BoR@2"].value == pytest.approx(right(share), abs=1e-12)
    figures = RowFigures(LABELS, corpus_size=100, depths=[2])
    bor = rs.single.bits_over_random_of_rows([figures.score(**row) for row in rows], bootstrap=None)["BoR@2"]
    assert bor.value == pytest.approx(right(share), abs=1e-12)


@pytest.mark.parametrize(
    ("failing", "asked", "is_first"),
    [(33, 100, True), (100, 300, True), (11, 100, True), (8, 100, False), (1, 12, False)],
)
def test_a_share_of_failures_that_is_certain_is_mended_first_and_advises_no_k(failing, asked, is_first) -> None:
    """By hand, of 100: 11 failures are less likely than 1 in 40 at a rate of 5 %, and 8 are not."""
    labels = {f"q{i}": {f"d{i}": 1} for i in range(asked)}
    lists = {f"q{i}": [] if i < failing else [f"x{i}", f"d{i}", *"abcdefgh"] for i in range(asked)}
    monitor = Monitor(labels, corpus_size=4000)
    for query, shown in lists.items():
        monitor.record(Retrieval(query, shown, failed=not shown))
    count = f"{failing} of {asked} retrievals failed or came back empty"
    for report in monitor.report(), rs.evaluate(labels, {"bm25": lists}, corpus_size=4000):
        _, K, _, act, trust = str(report).splitlines()[:5]
        assert act.startswith(f"Next: Mend the retrieval first: {count}.") == is_first
        assert (f"none is advised for {min(report.runs)}: {count}" in K) == is_first
        assert count not in trust
