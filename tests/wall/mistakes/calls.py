"""Calls that cannot be right: {what is wrong: (the call, exception, parts of its message)}."""

from collections.abc import Callable
from typing import Any

import rag_selectivity as rs

LABELS = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 1}}
GRADES = {"q1": {"d1": 5, "d2": 1}, "q2": {"d3": 4}}
RUN = {"q1": ["d1", "d2"], "q2": ["d3"]}
QUERIES, TEXTS = {"q1": "who?", "q2": "what?"}, {"d1": "x", "d2": "y", "d3": "z"}
NAN = float("nan")


async def _judge(messages: Any, schema: Any) -> dict[str, Any]:
    return {"reason": "by rule", "grade": 4}


def _evaluate(**options: Any) -> Callable[[], Any]:
    """A call of `evaluate` in which these options are wrong."""
    return lambda: rs.evaluate(**{"qrels": LABELS, "runs": {"a": RUN}, **options})


def _run(*lists: Any) -> Callable[[], Any]:
    """A call of `evaluate` with wrong lists."""
    return _evaluate(runs={"a": dict(zip(LABELS, lists, strict=False))})


def _grade(**options: Any) -> Callable[[], Any]:
    given = {"queries": QUERIES, "corpus": TEXTS, "pool": RUN, "store": "l.db", "judge": _judge, "progress": False}
    return lambda: rs.grade(**{**given, **options})


def _claims(**options: Any) -> Callable[[], Any]:
    given = {"run": RUN, "corpus": TEXTS, "queries": QUERIES, "store": "c.db", "judge": _judge, "progress": False}
    return lambda: rs.check_claims(**{**given, **options})


def _report() -> Any:
    return rs.evaluate(LABELS, {"a": RUN}, depths=[1], bootstrap=None)


def _ragas(rows: Any, labels: Any = None, **options: Any) -> Callable[[], Any]:
    def call() -> Any:
        from rag_selectivity_ragas import selectivity

        return selectivity(rows, labels, depths=[1], **options)

    return call


def _row(**columns: Any) -> list[dict[str, Any]]:
    return [{"user_input": "q1", **columns}]


def _llama_index(labels: Any, ids: list[str]) -> Callable[[], Any]:
    def call() -> Any:
        from llama_index.core.base.base_retriever import BaseRetriever
        from llama_index.core.schema import NodeWithScore, TextNode
        from rag_selectivity_llama_index import SelectivityEvaluator

        class Fixed(BaseRetriever):
            def _retrieve(self, query_bundle: Any) -> list[Any]:
                return [NodeWithScore(node=TextNode(id_=each, text=each), score=1.0) for each in ids]

        options = {"scale": "utility", "corpus_size": 10, "depths": [1]}
        return SelectivityEvaluator(Fixed(), labels=labels, **options).evaluate_dataset({"q1": "who?"})

    return call


def _langchain(labels: Any) -> Callable[[], Any]:
    def call() -> Any:
        from langchain_core.embeddings import DeterministicFakeEmbedding
        from langchain_core.vectorstores import InMemoryVectorStore
        from rag_selectivity_langchain import selectivity

        store = InMemoryVectorStore.from_texts(["Ada."], DeterministicFakeEmbedding(size=2), ids=["d1"])
        given = store.as_retriever() if labels else store
        return selectivity(given, ["who?"], labels or {"who?": {"d1": 5}}, scale="utility", depths=[1])

    return call


def _deepeval() -> Any:
    from deepeval.test_case import LLMTestCase
    from rag_selectivity_deepeval import SelectivityMetric

    metric = SelectivityMetric("Harm@2", {"who?": {"d1": 5}}, scale="utility")
    return metric.measure(LLMTestCase(input="who?", metadata={"retrieved_ids": "d1"}))


def _pytest() -> Any:
    from rag_selectivity_pytest import assert_selectivity

    return assert_selectivity(_report(), "Success@1 = 4")


WRONG = rs.InputError
CALLS: dict[str, tuple[Any, ...]] = {
    # Labels
    "labels are None": (_evaluate(qrels=None), WRONG, "qrels", "got None"),
    "no labels": (_evaluate(qrels={}), WRONG, "qrels", "no judgments"),
    "a grade that is a word": (_evaluate(qrels={"q1": {"d1": "good"}}), WRONG, "'q1'", "'d1'", "'good'"),
    "a grade and a half": (_evaluate(qrels={"q1": {"d1": 1.5}}), WRONG, "'q1'", "'d1'", "1.5"),
    "a grade that is None": (_evaluate(qrels={"q1": {"d1": None}}), WRONG, "'q1'", "'d1'", "None"),
    "a grade that is NaN": (_evaluate(qrels={"q1": {"d1": NAN}}), WRONG, "'q1'", "'d1'", "nan"),
    "an empty id in labels": (_evaluate(qrels={"q1": {"": 1}}), WRONG, "passage id", "empty"),
    "None as an id in labels": (_evaluate(qrels={"q1": {None: 1}}), WRONG, "passage id", "None"),
    "a text for a list of expected ids": (_evaluate(qrels={"q1": "d1"}), WRONG, "'q1'", "'d1'", "list"),
    "grades off the scale": (_evaluate(scale="utility"), WRONG, "'q1'", "'d2'", "grade 0", "1 to 5"),
    "grades of an unknown scale": (_evaluate(qrels=GRADES), WRONG, "1, 4 and 5", "scale='utility'", "scale='trec'"),
    "a mistyped scale": (_evaluate(qrels=GRADES, scale="utlity"), WRONG, "'utlity'", "did you mean", "utility"),
    "a grade that the map lacks": (_evaluate(qrels=GRADES, grade_map="1:1,5:5"), WRONG, "'q2'", "'d3'", "grade 4"),
    "a format that is not known": (lambda: rs.read_qrels("qrels.trec", format="trecc"), WRONG, "'trecc'", "trec"),
    # Runs
    "runs are None": (_evaluate(runs=None), WRONG, "run", "got None"),
    "no runs": (_evaluate(runs={}), WRONG, "no runs"),
    "a text for a list": (_run("d1"), WRONG, "'q1'", "'d1'", "list"),
    "a score that is a word": (_run({"d1": "high"}), WRONG, "'q1'", "'d1'", "'high'"),
    "a score that is NaN": (_run({"d1": NAN}), WRONG, "'q1'", "'d1'", "score"),
    "None in a list": (_run(["d1", None]), WRONG, "None", "string"),
    "a dict in a list": (_run([{"id": "d1"}]), WRONG, "'d1'", "dict", "string"),
    "a list in a list": (_run([["d1", "d2"]]), WRONG, "'q1'", "'d2'"),
    "a file that is not there": (_evaluate(runs={"a": "nowhere.trec"}), WRONG, "nowhere.trec", "no such file"),
    "other queries": (_evaluate(runs={"a": {"x1": ["d1"]}}), WRONG, "'x1'", "'q1'", "ids"),
    "other passages": (_run(["e1"], ["e2"]), WRONG, "'e1'", "'d1'", 'ids="exact"'),
    "repeats that are refused": (
        *(_evaluate(runs={"a": {"q1": ["d1", "d1"]}}, duplicates="error"), WRONG, "'q1'", "'d1'", "duplicates"),
    ),
    "a missing query that is refused": (
        *(_evaluate(runs={"a": {"q1": ["d1"]}}, missing_query="error"), WRONG, "'q2'", "missing_query"),
    ),
    "unjudged passages that are refused": (
        *(_evaluate(runs={"a": {"q1": ["d1", "x"]}}, unjudged="error"), WRONG, "'q1'", "unjudged"),
    ),
    "a query without relevant passages that is refused": (
        *(_evaluate(qrels={"q1": {"d1": 0}, "q2": {"d3": 1}}, no_relevant="error"), WRONG, "'q1'", "no_relevant"),
    ),
    # Measures, depths, N
    "a mistyped measure": (_evaluate(measures=["BoRR"]), WRONG, "'BoRR'", "did you mean", "BoR"),
    "a mistyped parameter": (lambda: rs.parse_measure("Harm(max_grad=1)@5"), WRONG, "'max_grad'", "max_grade"),
    "a parenthesis is missing": (lambda: rs.parse_measure("BoR(rel=4@5"), WRONG, "BoR(rel=4@5", "NAME"),
    "m is 0": (_evaluate(measures=["BoR(m=0)"]), WRONG, "BoR", "m", "0"),
    "rel is a fraction": (_evaluate(measures=["P(rel=1.5)"]), WRONG, "rel", "1.5"),
    "alpha is 2": (_evaluate(measures=["T(alpha=2)"]), WRONG, "alpha", "0 to 1", "2"),
    "a measure of other grades": (_evaluate(measures=["RA-nWG"]), WRONG, "RA-nWG", "1 to 5", "scale='utility'"),
    "a depth of 0": (_evaluate(depths=[0]), WRONG, "depth 0"),
    "a depth and a half": (_evaluate(depths=[1.5]), WRONG, "1.5"),
    "no depths": (_evaluate(depths=[]), WRONG, "depths"),
    "K above N": (_evaluate(corpus_size=3, depths=[5], measures=["BoR"]), WRONG, "K = 5", "N = 3"),
    "BoR without N": (_evaluate(measures=["BoR"]), WRONG, "BoR", "corpus_size"),
    "N below 0": (_evaluate(corpus_size=-1), WRONG, "corpus_size", "-1"),
    "N is a fraction": (_evaluate(corpus_size=10.5), WRONG, "corpus_size", "10.5"),
    "N is a word": (_evaluate(corpus_size="many"), WRONG, "corpus_size", "'many'"),
    "N lacks a query": (_evaluate(corpus_size={"q1": 9}, measures=["BoR"], depths=[1]), WRONG, "'q2'", "corpus_size"),
    "N below the judged": (_evaluate(corpus_size=1, measures=["BoR"], depths=[1]), WRONG, "'q1'", "2", "N = 1"),
    # Rules, intervals, small tables
    "a mistyped policy": (_evaluate(policy="trec"), WRONG, "'trec'", "trec_eval"),
    "a mistyped rule": (_evaluate(unjudged="wrost"), WRONG, "unjudged", "'wrost'", "worst"),
    "a mistyped option": (_evaluate(unjuged="worst"), WRONG, "'unjuged'", "unjudged"),
    "0 resamples": (lambda: rs.Bootstrap(resamples=0), WRONG, "resamples", "0"),
    "a level in percent": (lambda: rs.Bootstrap(level=95), WRONG, "level", "between 0 and 1", "95"),
    "clusters lack a query": (_evaluate(bootstrap=rs.Bootstrap(clusters={"q1": 1})), WRONG, "clusters", "'q2'"),
    "weights lack a query": (_evaluate(weights={"q1": 1}), WRONG, "weights", "'q2'"),
    "a weight below 0": (_evaluate(weights={"q1": 1, "q2": -1}), WRONG, "'q2'", "-1"),
    "tokens lack a passage": (_evaluate(tokens={"d1": 5}, measures=["P@10tok"]), WRONG, "tokens", "'d2'"),
    "slices by a word": (_evaluate(by="languages"), WRONG, "by", "'languages'"),
    "controls that have labels": (
        *(
            _evaluate(controls={"q1": {"d1": 1}}, corpus_size=9, measures=["BoR"], depths=[1]),
            WRONG,
            "no controls that the qrels lack",
        ),
    ),
    # Results and comparisons
    "a figure that was not measured": (lambda: _report()["P@7"], WRONG, "P@7", "Success@1"),
    "a run that was not measured": (lambda: _report()["b", "Success@1"], WRONG, "'b'", "a"),
    "a comparison of one run": (lambda: rs.compare(LABELS, {"a": RUN}), WRONG, "two runs"),
    "a baseline that is no run": (lambda: rs.compare(LABELS, {"a": RUN, "b": RUN}, baseline="c"), WRONG, "'c'", "a, b"),
    "a report in no folder": (lambda: _report().save("nowhere/report.json"), WRONG, "nowhere/report.json", "folder"),
    # Counts
    "a rate in percent": (lambda: rs.bits(80, N=10, K=2, R=1), WRONG, "0 to 1", "80"),
    "R above N": (lambda: rs.bits(0.5, N=10, K=2, R=11), WRONG, "11", "N = 10"),
    "K above N in bits": (lambda: rs.bits(0.5, N=10, K=12, R=1), WRONG, "K", "12", "10"),
    "R above N in a plan": (lambda: rs.plan(10, 11), WRONG, "R = 11", "N = 10"),
    "a difference of 0 bits": (lambda: rs.queries_needed(0, 0.8), WRONG, "bits", "0"),
    # Judges, claims, answers
    "no pair was graded by both": (lambda: rs.agree({"q1": {"d1": 5}}, {"q2": {"d1": 5}}), WRONG, "'q1'", "'q2'"),
    "a query without a text": (_grade(queries={"q1": "who?"}), WRONG, "queries", "'q2'", "text"),
    "a passage without a text": (_grade(corpus={"d1": "x"}), WRONG, "corpus", "'d2'", "text"),
    "a name for a judge": (_grade(judge="gpt"), rs.SelectivityError, "judge", "'gpt'", "function"),
    "a tail without a count": (_grade(tail="x"), WRONG, "tail", "200:10", "'x'"),
    "0 samples": (_grade(samples=0), WRONG, "samples", "0"),
    "a budget below 0": (lambda: rs.Budget(max_calls=-1), WRONG, "calls", "-1"),
    "no request at a time": (lambda: rs.Limits(concurrency=0), WRONG, "concurrency", "0"),
    "claims of nothing": (_claims(), WRONG, "references", "responses"),
    "claims of another query": (_claims(references={"x": "a"}), WRONG, "'x'", "text"),
    "scores at K 7": (lambda: rs.validate(_report(), [{"query_id": "q1", "k": 7, "score": 1}]), WRONG, "K = 7"),
    "a score that is a word, validated": (lambda: rs.validate(_report(), {"q1": "good"}), WRONG, "'q1'", "'good'"),
    # Live
    "a text for what was shown": (lambda: rs.Retrieval("who?", "d1"), WRONG, "list", "'d1'", "['d1']"),
    "tokens below 0": (lambda: rs.Retrieval("who?", ["d1"], tokens=-1), WRONG, "tokens", "-1"),
    "a report of no retrieval": (lambda: rs.Monitor(LABELS).report(), WRONG, "no retrieval"),
    "an alert that cannot be read": (lambda: rs.Monitor(LABELS, alerts=["BoR << 3"]), WRONG, "'BoR << 3'", "Harm > .4"),
    "one alert as a text": (lambda: rs.Monitor(LABELS, alerts="BoR < 3"), WRONG, "alerts", "['BoR < 3']"),
    "a sample of 200 %": (lambda: rs.Monitor(LABELS, sample_rate=2), WRONG, "sample_rate", "2"),
    "more tools than the catalogue": (lambda: rs.ToolMonitor(catalogue=3, relevant=9), WRONG, "relevant", "9", "3"),
    "a report of no model call": (lambda: rs.ToolMonitor(LABELS).report(), WRONG, "no model call"),
    # Frameworks
    "Ragas: labels of other questions": (
        *(_ragas(_row(retrieved_context_ids=["d1"]), {"x": {"d1": 1}}), WRONG, "'q1'", "'x'", "id_column"),
    ),
    "Ragas: a text for ids": (_ragas(_row(retrieved_context_ids="d1"), LABELS), WRONG, "sample 1", "'d1'", "list"),
    "Ragas: no retrieval": (_ragas(_row(), LABELS), WRONG, "'q1'", "retrieved_context_ids", "retrieved_contexts"),
    "Ragas: a path for a dataset": (_ragas("rows.jsonl", LABELS), WRONG, "str", "load"),
    "Ragas: a column that is not there": (
        *(_ragas(_row(retrieved_context_ids=["d1"]), LABELS, id_column="id"), WRONG, "sample 1", "id"),
    ),
    "Ragas: no labels": (_ragas(_row(retrieved_context_ids=["d1"])), WRONG, "labels", "grade_dataset"),
    "Ragas: ids as texts": (_ragas(_row(retrieved_contexts=["d1"], reference_context_ids=["d1"])), WRONG, "rename"),
    "LlamaIndex: labels of other queries": (_llama_index({"q9": {"d1": 5}}, ["d1"]), WRONG, "'q1'", "'q9'"),
    "LlamaIndex: nothing was retrieved": (_llama_index({"q1": {"d1": 5}}, []), WRONG, "no passage"),
    "LlamaIndex: other passages": (_llama_index({"q1": {"x": 5}}, ["d1"]), WRONG, "no label was found", "'d1'", "'x'"),
    "LangChain: a store for a retriever": (_langchain(None), WRONG, "store.as_retriever()"),
    "LangChain: labels of other questions": (_langchain({"when?": {"d1": 5}}), WRONG, "'who?'", "'when?'"),
    "DeepEval: a text for ids": (_deepeval, WRONG, "'who?'", "list", "retrieved_ids"),
    "pytest: a condition that cannot be read": (_pytest, WRONG, "'Success@1 = 4'", "condition"),
}
