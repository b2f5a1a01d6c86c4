"""Odd input: each of these once ended in another error than one of this package, or in a traceback at a later place."""

import decimal
import fractions
import json
import math
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from typing import Any

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity import golden, online
from rag_selectivity.advice.costs import measured_costs
from rag_selectivity.explain.report import explain
from rag_selectivity.grading.judge import GradingError, Reply
from rag_selectivity.measures.udcg import udcg
from rag_selectivity.single import evaluate_query
from rag_selectivity.tables.scores import answer_scores
from rag_selectivity.tables.small import read_texts

pytestmark = pytest.mark.inside

QUERIES = [f"q{number}" for number in range(1, 6)]
LABELS = {query: {"d1": 5, "d2": 1 + number % 5, "d3": 1} for number, query in enumerate(QUERIES)}
RUN = {query: ["d2", "d1", "d4"] if number % 2 else ["d1", "d3"] for number, query in enumerate(QUERIES)}
TEXTS = {each: f"the text of {each}" for each in (*QUERIES, "d1", "d2", "d3", "d4")}


def evaluated(**options: Any) -> Any:
    return rs.evaluate(LABELS, RUN, **{"scale": "utility", "corpus_size": 100, "bootstrap": None} | options)


#: Values that few arguments take, and on which a foreign error once came out.
ODD = (
    5,
    3.5,
    10**400,
    -1,
    math.nan,
    True,
    "x" * 5000,
    "\ud800",
    b"1",
    [3],
    {1.5: 1},
    (),
    np.array(3),
    np.array([1, 2]),
    ...,
)
DRAFT = {"impression": "i1", "query": "q1", "team": {"d1": "a", "d2": "b"}, "passages": ["d1", "d2"]}


async def one_claim(messages: Any, schema: Any) -> Any:
    return {}


def claims(**given: Any) -> Any:
    return rs.check_claims(**{"samples": [], **given}, store="unused.db", judge=one_claim, progress=False)


def answers(**options: Any) -> Any:
    given: dict[str, Any] = {"run": {"a": RUN}, "corpus": {}, "queries": {}, "references": {"q1": "x"}}
    return rs.measure_answers(**{**given, **options}, model=one_claim, store="unused.db", progress=False)


def arms(**options: Any) -> Any:
    return online.compare_arms([0, 1, 1], [1, 1, 0], **options)


def draft(**fields: Any) -> Any:
    return list(online.join_records([DRAFT | fields]))


def built(**options: Any) -> Any:
    return golden.build("unmade", **{"labels": LABELS, "queries": TEXTS} | options)


#: A function, and those of its arguments that get odd values, each by itself.
FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "evaluate": (
        evaluated,
        "policy ties order scale bootstrap measures depths ids corpus corpus_size weights by groups tokens pool human "
        "controls passages_of",
    ),
    "compare": (lambda **own: rs.compare(LABELS, {"a": RUN, "b": RUN}, scale="utility", **own), "bootstrap baseline"),
    "agree": (lambda **given: rs.agree(LABELS, LABELS, **given), "bootstrap scale"),
    "join": (lambda **given: rs.join(rs.Qrels.of(LABELS), rs.Run.of(RUN), **given), "scale corpus_size"),
    "Bootstrap": (rs.Bootstrap, "resamples seed level"),
    "Limits": (rs.Limits, "timeout backoff attempts"),
    "Budget": (rs.Budget, "max_cost max_calls"),
    "queries_needed": (lambda **own: rs.queries_needed(**{"bits": 1, "success": 0.5} | own), "bits level correlation"),
    "plan": (lambda **given: rs.plan(**{"corpus_size": 100, "relevant": 2} | given), "relevant m"),
    "Retrieval": (lambda **own: rs.Retrieval(**{"query": "q", "shown": ["d"]} | own), "shown tokens id texts query"),
    "calibrate_alpha": (lambda source: rs.calibrate_alpha(source, [0.5]), "source"),
    "evaluate_query": (lambda grades: evaluate_query("Harm@2", grades, ["a"]), "grades"),
    "udcg": (lambda scores: udcg(scores, [1, 0]), "scores"),
    "citations": (lambda **own: online.citations(**{"answer": "[d1]", "passages": ["d1"]} | own), "answer passages"),
    "preference": (lambda **own: online.preference(**{"records": [DRAFT]} | own), "records unit baseline sequential"),
    "a draft": (draft, "passages query team systems credit"),
    "compare_arms": (arms, "detect planned bounds kind clip sequential"),
    "Experiment": (lambda **given: online.Experiment([online.Metric("cited")], **given), "arms planned"),
    "Metric": (lambda **given: online.Metric(**{"name": "cited"} | given), "name covariate covariate_bounds"),
    "golden.build": (built, "labels queries corpus"),
    "golden.queries": (lambda **given: golden.queries(["who?"], **given), "group seed size by"),
    "measured_costs": (lambda costs: measured_costs(costs, ["a"]), "costs"),
    "scores": (lambda scores: answer_scores(scores, ["a"], ["q1"]), "scores"),
    "answers": (answers, "controls orders scores junk baseline instructions references"),
    "claims": (claims, "measures checks depths samples"),
    "ToolMonitor": (rs.ToolMonitor, "catalogue relevant"),
    "a call of a tool": (
        lambda **given: rs.ToolMonitor().call(**{"query": "q", "shown": ["t"]} | given),
        "query shown called",
    ),
    "Qrels": (lambda labels: rs.Qrels.of(labels), "labels"),
    "Run": (lambda lists: rs.Run.of(lists), "lists"),
    "texts": (lambda corpus: dict(read_texts(corpus, "corpus")), "corpus"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
def test_an_argument_of_another_type_ends_in_no_foreign_error(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    function, arguments = FUNCTIONS[name]
    for argument in arguments.split():
        for value in ODD:
            try:
                with suppress(rs.SelectivityError):
                    function(**{argument: value})
            except Exception as error:
                raise AssertionError(f"{name}({argument}={value!r})") from error


def test_numbers_of_numpy_are_traced_and_other_objects_counted(tmp_path) -> None:
    monitor = rs.Monitor(LABELS, scale="utility", corpus_size=100, trace=tmp_path / "t.jsonl")
    monitor.record(rs.Retrieval("q1", ["d1"], tokens=np.int64(3)))  # type: ignore[arg-type]
    assert json.loads((tmp_path / "t.jsonl").read_text())["tokens"] == 3
    monitor.record(rs.Retrieval("q1", ["d1"], corpus_size=decimal.Decimal(100)))  # type: ignore[arg-type]
    monitor.close()
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 1
    assert monitor.traffic.not_traced == 1


@pytest.mark.parametrize(
    ("content", "reasoning"),
    [
        ('{"reason": "half \\ud83d", "grade": 4}', None),
        ('{"reason": "half \ud83d", "grade": 4}', None),
        ({"reason": "half \ud83d", "grade": 4}, None),
        ('{"reason": "half \ufffd", "grade": 4}', "thought \ud83d"),
        ("no grade \ud83d", None),
    ],
)
def test_a_reply_that_was_cut_within_a_character_ends_no_run(tmp_path, content, reasoning) -> None:
    class Cutting:
        name, parameters = "cutting", {}

        async def ask(self, request: Any) -> Reply:
            return Reply(content, reasoning=reasoning)

    store = tmp_path / "labels.db"
    said = {"queries": {"q": "what?"}, "corpus": {"d": "text"}, "progress": False, "store": store}
    holds_grade = "no grade" not in content
    with nullcontext() if holds_grade else pytest.raises(GradingError, match="no JSON object"):
        rs.grade(pool={"q": ["d"]}, judge=Cutting(), **said)
    with closing(sqlite3.connect(store)) as opened:
        stored = opened.execute("SELECT grade, reason FROM labels").fetchall()
    assert stored == ([(4, "half \ufffd")] if holds_grade else [])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bits": 10**400}, "bits must be more than 0 and less than 1000"),
        ({"level": fractions.Fraction(10**40 - 1, 10**40)}, "level must be more than 0 and less than 1"),
        ({"rows": 10**400}, "rows must be more than 0"),
        ({"correlation": 10**400}, "correlation must be more than -1"),
        ({"bits": 5000.0}, "bits must be more than 0 and less than 1000"),
    ],
)
def test_numbers_that_no_float_holds_are_refused_in_plans(given, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        rs.queries_needed(**({"bits": 0.2, "success": 0.8} | given))


def test_plans_take_any_kind_of_number() -> None:
    fraction = fractions.Fraction(1, 5)
    assert rs.queries_needed(fraction, 4 * fraction) == rs.queries_needed(0.2, 0.8)  # type: ignore[arg-type]
    assert rs.queries_needed(np.int64(3), 0.5) == rs.queries_needed(3.0, 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [["inf", 100], [1.5, 100], [-3, 100], [None, 100], 10**30])
def test_corpus_sizes_of_a_stored_report_are_counts(tmp_path, size) -> None:
    report = evaluated(measures=["BoR"]).to_dict()
    report["runs"]["run"]["per_query"]["corpus_size"] = size
    (tmp_path / "r.json").write_text(json.dumps(report))
    with pytest.raises(rs.InputError, match=r"the report is damaged: runs.run.per_query.corpus_size"):
        explain(tmp_path / "r.json")


def test_scores_that_only_float64_holds_are_equal_as_trec_eval_compares_them() -> None:
    run = rs.Run.of({"q1": {"d1": 1e300, "d2": 1e290, "d3": 1.0}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = rs.evaluate({"q1": {"d2": 1}}, run, measures=["RR"], policy="trec_eval")
    assert report["RR"].value == 1.0


@pytest.mark.parametrize("text", ["a\n\nb", "\n\n", "a\r\n\r\nb", "a\n \nb"])
def test_blank_lines_within_a_quoted_cell_are_part_of_it(tmp_path, text) -> None:
    path = tmp_path / "corpus.csv"
    path.write_bytes(f'\n_id,text\r\n\r\nd1,"{text}"\r\n  \r\nd2,plain\r\n'.encode())
    assert dict(read_texts(path, "corpus")) == {"d1": text, "d2": "plain"}
    path.write_bytes(f'query_id,doc_id,grade\n"{text}",d,3\n\nq,d,1\n'.encode())
    assert rs.read_qrels(path).to_dict() == {text: {"d": 3}, "q": {"d": 1}}
