"""Odd input: each of these once ended in another error than one of this package, or in a traceback at a later place."""

from __future__ import annotations

import decimal
import fractions
import json
import math
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity import golden, online
from rag_selectivity.advice.costs import measured_costs
from rag_selectivity.answers.given import answers_given
from rag_selectivity.answers.prompt import read_references
from rag_selectivity.explain.report import explain
from rag_selectivity.grading.judge import Reply
from rag_selectivity.judged.policy import resolve_policy
from rag_selectivity.measures.udcg import udcg
from rag_selectivity.single import evaluate_query
from rag_selectivity.tables.grades import parse_grade_map
from rag_selectivity.tables.scores import answer_scores
from rag_selectivity.tables.small import read_texts

pytestmark = pytest.mark.inside

QUERIES = [f"q{number}" for number in range(1, 6)]
LABELS = {query: {"d1": 5, "d2": 1 + number % 5, "d3": 1} for number, query in enumerate(QUERIES)}
RUN = {query: ["d2", "d1", "d4"] if number % 2 else ["d1", "d3"] for number, query in enumerate(QUERIES)}
TEXTS = {each: f"the text of {each}" for each in (*QUERIES, "d1", "d2", "d3", "d4")}
NO_LIST = np.array(3)


def evaluated(**options: Any) -> Any:
    return rs.evaluate(LABELS, RUN, **{"scale": "utility", "corpus_size": 100, "bootstrap": None} | options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluated(corpus=Path("corpus.jsonl")), "corpus: give the ids of all passages"),
        (lambda: evaluated(policy=7), "policy must be the name of one .* or a Policy, got 7"),
        (lambda: evaluated(ties=["as_given"]), "ties must be one of"),
        (lambda: evaluated(order=np.array([])), "order must be one of"),
        (lambda: evaluated(scale=np.array([])), "unknown scale"),
        (lambda: evaluated(bootstrap=5), "bootstrap must be a Bootstrap, as in"),
        (lambda: evaluated(measures=3.5), "measures must be a measure or a list of them, got 3.5"),
        (lambda: evaluated(depths=5), "depths must be a list of whole numbers ≥ 1, got 5"),
        (lambda: evaluated(depths=[2**70]), "larger than any list"),
        (lambda: evaluated(measures=["BoR@99999999999999999999"]), "larger than any list"),
        (lambda: evaluated(ids=[3]), "ids must be the name of a form or a list of steps"),
        (lambda: rs.compare(LABELS, {"a": RUN, "b": RUN}, bootstrap="bca"), "bootstrap must be a Bootstrap, as in"),
        (lambda: rs.agree(LABELS, LABELS, bootstrap=1.5), "bootstrap must be a Bootstrap, as in"),  # type: ignore[arg-type]
        (lambda: rs.Bootstrap(level="high"), "level must be between 0 and 1"),  # type: ignore[arg-type]
        (lambda: rs.Qrels.of({"q": NO_LIST}), "qrels of query 'q': expected"),
        (lambda: rs.Qrels.from_records(NO_LIST), "qrels: give a file, a frame, a mapping or a list of rows"),  # type: ignore[arg-type]
        (lambda: rs.Run.of([3]), "run, row 1: expected .column: value. or .query, passage, score., got 3"),
        (lambda: rs.Run.of({"q": NO_LIST}), "run: query 'q': expected a list of ids"),
        (lambda: rs.read_qrels("x" * 5000), "cannot be read .File name too long"),
        (lambda: rs.read_qrels("a\0b"), "cannot be the path of a file"),
        (lambda: rs.read_qrels("\ud800"), "cannot be the path of a file"),
        (lambda: parse_grade_map(b"0:1"), "give a dict of old and new grades"),  # type: ignore[arg-type]
        (lambda: resolve_policy(Ellipsis), "policy must be the name of one"),  # type: ignore[arg-type]
        (lambda: rs.Limits(timeout=slice(1)), "timeout must be more than 0"),  # type: ignore[arg-type]
        (lambda: rs.Limits(backoff="1"), "backoff must be a number ≥ 0"),  # type: ignore[arg-type]
        (lambda: rs.Budget(cost=b"1"), "a number ≥ 0, got b'1'"),  # type: ignore[arg-type]
        (lambda: rs.queries_needed(Path("x"), 0.5), "bits must be more than 0"),  # type: ignore[arg-type]
        (lambda: rs.queries_needed(1, 0.5, correlation="0"), "correlation must be more than -1"),  # type: ignore[arg-type]
        (lambda: rs.plan(100, 2, m={}), "m must be a whole number ≥ 1"),  # type: ignore[arg-type]
        (lambda: rs.plan(100, len), "the number of relevant passages must be"),  # type: ignore[arg-type]
        (lambda: udcg([[1], 2], [1, 0]), "udcg needs a number and a truth value"),  # type: ignore[list-item]
        (lambda: udcg([1.0], [1], weight=math.inf), "weight must be a finite number"),
        (lambda: udcg([1e308, -1e308] * 2, [0] * 4, weight=9.0), "too large to be added"),
        (lambda: rs.calibrate_alpha([1], [0.5]), "source must be a Report"),  # type: ignore[arg-type]
        (lambda: rs.Retrieval("q", NO_LIST), "shown must be a list of ids"),  # type: ignore[arg-type]
        (lambda: rs.Retrieval("q", ["d"], tokens=np.array([])), "tokens must be a number ≥ 0"),  # type: ignore[arg-type]
        (lambda: rs.Retrieval("q", ["d"], id={}), "id must be a text"),  # type: ignore[arg-type]
        (lambda: rs.Retrieval("q", ["d"], texts=b""), "texts must be .passage: text."),  # type: ignore[arg-type]
        (lambda: evaluate_query("Harm@2", {"a"}, ["a"]), "grades of a query must be"),  # type: ignore[arg-type]
        (lambda: evaluate_query("Harm@2", {"a": 2**70}, ["a"]), "grade"),
        (lambda: list(read_texts([5], "corpus")), "corpus, row 1: expected .column: value. or ._id, text., got 5"),
        (lambda: list(read_texts(5, "corpus")), "corpus: give a file, a frame, a mapping"),
        (lambda: list(read_texts({"a": "\ud800"}, "corpus")), "'a' holds half of a surrogate pair"),
    ],
)
def test_an_argument_of_another_type_is_refused_by_name(call, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        call()


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
    graded = rs.grade(pool={"q": ["d"]}, judge=Cutting(), **said)
    assert graded.failed == ("no grade" in content)
    with closing(sqlite3.connect(store)) as opened:
        assert opened.execute("SELECT grade, reason FROM labels").fetchall() == [
            (None, None) if graded.failed else (4, "half \ufffd")
        ]


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


# -- golden sets, online evaluation, tables, claims, answers and tools -------------------------------------------

DRAFT = {"impression": "i1", "query": "q1", "team": {"d1": "a", "d2": "b"}, "passages": ["d1", "d2"]}
NUMBERS = np.array([1, 2])


def experiment(metric: Any = "cited", **options: Any) -> online.Experiment:
    return online.Experiment([online.Metric(metric)], **options)


def of_a_table(name: str, value: Any) -> Any:
    return evaluated(**{name: value}, measures=["RA-nWG@2"], depths=[])


async def one_claim(messages: Any, schema: Any) -> Any:
    return {}


def costly(cost: float) -> Any:
    rows = [{"query_id": query, "milliseconds": cost} for query in LABELS]
    return measured_costs(rows, ["a"])


def claims_of(**given: Any) -> Any:
    return rs.check_claims(**{"samples": [], **given}, store="unused.db", judge=one_claim, progress=False)


def answers_of(**options: Any) -> Any:
    given: dict[str, Any] = {"run": {"a": RUN}, "corpus": {}, "queries": {}, "references": {"q1": "x"}}
    return rs.measure_answers(**{**given, **options}, model=one_claim, store="unused.db", progress=False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: online.citations(b"", ["d1"]), "the answer must be a text"),
        (lambda: online.citations("[d1]", 7), "the passages must be a list of names"),
        (lambda: online.credit(3), "the cited passages must be a list of names"),
        (lambda: online.credit([["d1"]]), "the cited passages must be a list of names"),
        (lambda: online.credit(marks="d1"), "marks must be .passage: number., got 'd1'"),
        (lambda: online.preference("no such file"), "no such file"),
        (lambda: online.preference("x" * 5000), "name too long"),
        (lambda: online.preference([DRAFT | {"team": {"d1": []}, "credit": {}}]), "must be the name of a system"),
        (lambda: list(online.join_records([DRAFT | {"passages": 1.5}])), "record 1: passages must be the ids"),
        (lambda: list(online.join_records([DRAFT | {"query": math.nan}])), "record 1: query must be a text"),
        (lambda: list(online.join_records([DRAFT | {"team": {"d1": math.inf}}])), "must be the name of a system"),
        (lambda: list(online.join_records([DRAFT | {"systems": 3}])), "systems must be the names of both"),
        (lambda: of_a_table("weights", "x" * 5000), "xxx: cannot be read"),
        (lambda: of_a_table("by", "x" * 5000), "by: there is no file 'xxx"),
        (lambda: golden.check("unmade", threshold=10**400), "threshold .* above 0 and at most 1"),
        (lambda: costly(2e100), "milliseconds is 2e.100; give a number ≥ 0, at most 1e.100"),
        (lambda: answers_of(instructions=NUMBERS), "instructions must be a text, got array"),
        (lambda: experiment(arms=3), "arms must be a list of names"),
        (lambda: online.Metric(["a"]), "the names of a metric must be texts"),
        (lambda: online.Metric("cited", covariate=("before",)), "the names of a metric must be texts"),
        (lambda: online.Metric("cited", covariate_bounds=(1, 0)), "covariate_bounds must be two numbers"),
        (lambda: experiment().add(3), "row 1: must be a row such as"),
        (lambda: experiment().add({"arm": "a", "cited": NUMBERS}), "row 1: cited must be a number"),
        (lambda: online.compare_arms([0, 1], [1, 1], planned=(1, 1e-300)), "planned shares must be at least 1e-06"),
        (lambda: golden.build("unmade", labels=LABELS, queries="x" * 5000), "xxx.*File name too long"),
        (lambda: golden.build("unmade", labels=LABELS, queries=np.array(3)), "queries: give a file, a frame"),
        (lambda: list(online.join_records(np.array(3))), "records must be a file or many rows"),
        (lambda: experiment().decide(detect=[1]), "detect must be a dict by metric"),
        (lambda: online.compare_arms([0, 1], [1, 1], detect=10**400), "detect must be a number above 0 and at most"),
        (lambda: online.compare_arms([0, 1], [1, 1], planned=(10**400, 1)), "planned must be the shares"),
        (lambda: online.compare_arms([0, 1], [1, 1], "mean", bounds=(0, 10**400)), "bounds must be two numbers"),
        (
            lambda: online.compare_arms([0, 1e200], [1, 1], "mean", sequential=False),
            "outcome of arm a: value 2 is 1e.200; its square is no number",
        ),
        (lambda: online.preference([DRAFT], unit=NUMBERS), "unit must be auto"),
        (lambda: online.preference([DRAFT], sequential=NUMBERS), "sequential must be True or False"),
        (lambda: online.preference([DRAFT | {"credit": {"d1": 1}}], baseline=NUMBERS), "baseline array"),
        (lambda: online.join_records([DRAFT], max_faults=math.inf), "max_faults must be a share"),
        (lambda: online.compare_arms([0], [1], NUMBERS), 'kind must be "rate" or "mean"'),
        (lambda: online.compare_arms([0], [1], clip=NUMBERS), "clip must be True or False"),
        (lambda: golden.queries(["who?"], group=NUMBERS), "group .--group. must be one of"),
        (lambda: golden.queries(["who?"], seed="x", size=1), "seed .--seed. must be a whole number"),
        (
            lambda: golden.build("unmade", labels=LABELS, queries=[{"id": "q1", "text": NUMBERS}]),
            "the query is no text",
        ),
        (lambda: golden.build("unmade", labels="x" * 5000, queries=TEXTS), "name too long"),
        (lambda: answer_scores([], ["a"], ["q1"], score_range=(0, 10**400)), "the range of the scores must be"),
        (lambda: answer_scores([{"query_id": "q1"}], ["a"], ["q1"], column=NUMBERS), "no column array"),
        (lambda: rs.ToolMonitor(catalogue=np.array(3)), "catalogue must be a list of tools"),
        (lambda: golden.queries(["who?"], by=1.5), "by .--by. must be the name of a column"),
        (lambda: golden.queries(["who?"], by=["x"]), "by .--by. must be the name of a column"),
        (lambda: of_a_table("weights", dict.fromkeys(LABELS, NUMBERS)), "the weight of query 'q1' is array"),
        (lambda: measured_costs({"q1": {"tokens": NUMBERS}}, ["a"]), "tokens is array"),
        (lambda: measured_costs(np.array(3), ["a"]), "costs: give a file, a frame"),
        (
            lambda: answer_scores(np.array(3), ["a"], ["q1"]),
            "scores: give a file, a frame, a mapping or a list of rows",
        ),
        (lambda: answer_scores([{"query_id": "q1", "score": NUMBERS}], ["a"], ["q1"]), "score"),
        (lambda: answer_scores([{"query_id": "q1"}], ["a"], ["q1"], column=("x",)), "no column .'x',."),
        (lambda: answers_given(7), "scores: give a file, a frame or a list of dicts"),
        (lambda: answers_given([], ends=7), "the range of the scores must be two numbers"),
        (lambda: answers_given([], correct_from="x"), "correct_from .judge.correct_from. must be above 0"),
        (lambda: answers_given([{"query_id": "q", "k": 1, "score": 1}], baseline=[]), "the baseline .. is none of"),
        (lambda: read_references({"q1": np.array([])}), "the reference is an empty list"),
        (lambda: claims_of(measures=[3]), "measures must be a list of names"),
        (lambda: claims_of(checks="recall"), "checks must be a list of names"),
        (lambda: claims_of(depths=3), "depth: give a list of whole numbers, got 3"),
        (lambda: claims_of(samples=3), "samples: give a file"),
        (lambda: answers_of(controls=3), "controls must be a list of names"),
        (lambda: answers_of(orders=3), "orders must be a list of names"),
        (lambda: answers_of(scores=3), "scores must be a list of names"),
        (lambda: answers_of(junk=True), "give a list of whole numbers"),
        (lambda: answers_of(baseline=[]), "the baseline .. is none of the runs a"),
        (lambda: rs.ToolMonitor().call("q", ["t"], [NUMBERS]), "called must be a list of names"),
        (lambda: rs.ToolMonitor().call("q", {1.5: 1}), "the name of a tool must be a str, got 1.5"),
        (lambda: rs.ToolMonitor().call(3, ["t"]), "query must be a text"),
        (lambda: rs.ToolMonitor(catalogue=10**400), "corpus_size"),
        (lambda: rs.evaluate_joined(NUMBERS), "judged must be .name: JudgedRun."),
        (lambda: rs.evaluate_joined({"a": 1.5}), "judged must be .name: JudgedRun."),
        (lambda: rs.join(rs.Qrels.of(LABELS), rs.Run.of(RUN), scale=np.array([])), "unknown scale array"),
    ],
)
def test_what_is_no_value_of_newer_functions_is_refused_by_name(call, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        call()
