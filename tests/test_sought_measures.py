"""RBP, ERR, DCG and IPrec11: beside trec_eval, gdeval, and sums of exact fractions."""

import math
import shutil
from fractions import Fraction

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.single import evaluate_query
from tests import reference
from tests.test_classic import COLLECTIONS, scores

pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]


def rows_of(qrels, run, measures, **options) -> dict[str, dict]:
    report = rs.evaluate(qrels, {"run": run}, measures=measures, bootstrap=None, **options)
    return {row["query"]: row for row in report.per_query()}


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl program")
def test_err_is_that_of_gdeval(data) -> None:
    qrels_file, run_file, scale, _ = COLLECTIONS["dl19"]
    qrels, run = reference.read_trec_qrels(data / qrels_file), scores(data / run_file)
    rows = rows_of(qrels, run, ["ERR@5", "ERR@20"], scale=scale, policy="trec_eval")
    wanted = [ir_measures.ERR @ 5, ir_measures.ERR @ 20]
    compared = 0
    for metric in ir_measures.providers.registry["gdeval"].iter_calc(wanted, qrels, run):
        # gdeval prints five decimals.
        assert rows[metric.query_id][str(metric.measure)] == pytest.approx(metric.value, abs=5.1e-6)
        compared += 1
    assert compared == 2 * len(run)


# -- exact fractions ----------------------------------------------------------------------------------------------


def listed(grades: dict[str, int], passages: list[str]) -> list[int | None]:
    """The grade at each rank; None for unjudged passages and for second copies."""
    seen: set[str] = set()
    found = []
    for passage in passages:
        grade = grades.get(passage)
        found.append(None if passage in seen or grade is None or grade < 0 else grade)
        seen.add(passage)
    return found


def rbp(grades, passages, rel: int, p: Fraction, depth: int) -> Fraction:
    by_rank = listed(grades, passages)[:depth]
    return (1 - p) * sum((p**i for i, g in enumerate(by_rank) if g is not None and g >= rel), Fraction(0))


def err(grades, passages, highest: int, depth: int) -> Fraction:
    total, still_reading = Fraction(0), Fraction(1)
    for i, grade in enumerate(listed(grades, passages)[:depth], 1):
        stop = Fraction(2 ** (grade or 0) - 1, 2**highest)
        total += still_reading * stop / i
        still_reading *= 1 - stop
    return total


def dcg(grades, passages, depth: int, *, exp: bool) -> float:
    by_rank = listed(grades, passages)[:depth]
    return math.fsum(((2**g - 1) if exp else g) / math.log2(i + 1) for i, g in enumerate(by_rank, 1) if g is not None)


def eleven(grades, passages, rel: int) -> Fraction:
    by_rank = listed(grades, passages)
    relevant = sum(g >= rel for g in grades.values())
    precisions = []  # at the ranks of the relevant passages
    for i, grade in enumerate(by_rank, 1):
        if grade is not None and grade >= rel:
            precisions.append(Fraction(len(precisions) + 1, i))
    total = Fraction(0)
    for level in range(11):
        needed = max(1, int(level / 10 * relevant + 0.9))  # in floats, as trec_eval rounds
        total += max(precisions[needed - 1 :], default=Fraction(0)) if relevant else 0
    return total / 11


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    """Queries with empty lists, repeats, unjudged passages (some below 0), nothing relevant, some not in the run."""
    ids = [f"d{i}" for i in range(9)]
    queries = [f"q{i}" for i in range(draw(st.integers(1, 4)))]
    qrels = {q: draw(st.dictionaries(st.sampled_from(ids), st.integers(-2, 4), max_size=7)) for q in queries}
    qrels["q0"] = qrels["q0"] or {"d0": 1}
    run = {q: draw(st.lists(st.sampled_from(ids), max_size=10)) for q in queries if q == "q0" or draw(st.booleans())}
    return qrels, run


MEASURES = {
    "RBP(rel=2)": lambda g, p: rbp(g, p, 2, Fraction(4, 5), 99),
    "RBP(p=0.5)@3": lambda g, p: rbp(g, p, 1, Fraction(1, 2), 3),
    "RBP(p=0)@3": lambda g, p: rbp(g, p, 1, Fraction(0), 3),
    "ERR@4": lambda g, p: err(g, p, 4, 4),
    "ERR(max_grade=6)@9": lambda g, p: err(g, p, 6, 9),
    "DCG@4": lambda g, p: dcg(g, p, 4, exp=False),
    "DCG(gain=exp)@9": lambda g, p: dcg(g, p, 9, exp=True),
    "IPrec11": lambda g, p: eleven(g, p, 1),
}


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_every_figure_is_that_of_exact_fractions(world) -> None:
    qrels, run = world
    rows = rows_of(qrels, run, list(MEASURES), scale="trec", ids="exact")
    for query, row in rows.items():
        for measure, formula in MEASURES.items():
            expected = float(formula(qrels[query], run.get(query, [])))
            assert row[measure] == pytest.approx(expected, rel=1e-12, abs=1e-15), (query, measure)


@pytest.mark.parametrize("policy", [{"unjudged": "condense"}, {"duplicates": "drop"}, {"unjudged": "worst"}])
def test_policies_change_the_list_and_not_the_formula(policy) -> None:
    grades = {"a": 2, "b": 0, "c": 1, "e": 0, "n": -1, "x": -1}
    passages = ["x", "b", "b", "x", "a", "y", "n", "c", "a"]
    changed = {
        "condense": [p for p in passages if grades.get(p, -1) >= 0],
        "drop": list(dict.fromkeys(passages)),
        "worst": passages,
    }[next(iter(policy.values()))]
    rows = rows_of({"q": grades}, {"q": passages}, list(MEASURES), scale="trec", policy=rs.Policy(**policy))
    for measure, formula in MEASURES.items():
        assert rows["q"][measure] == pytest.approx(float(formula(grades, changed)), rel=1e-12), measure


# -- what they refuse ---------------------------------------------------------------------------------------------


def test_a_grade_above_the_highest_is_an_error_that_names_it() -> None:
    qrels, run = {"q2": {"a": 7}, "q1": {"a": 5, "b": 1}}, {"q1": ["b"], "q2": ["b"]}
    message = r"ERR: query 'q1' has a label of grade 5, above max_grade = 4: give ERR\(max_grade=5\)"
    with pytest.raises(rs.InputError, match=message):
        rows_of(qrels, run, ["ERR@2"], scale="trec", ids="exact")
    with pytest.raises(rs.InputError, match="has a label of grade 4, above max_grade = 2"):
        evaluate_query("ERR(max_grade=2)@2", {"a": 4}, ["a"], scale="utility")
    assert evaluate_query("ERR@2", {"a": 5}, ["a"], scale="utility").value == pytest.approx(31 / 32)


def test_long_lists_keep_their_digits() -> None:
    grades = {f"d{i}": 4 for i in range(3000)}
    passages = list(grades)
    for measure, expected in (
        ("ERR@3000", float(err(grades, passages[:60], 4, 60))),
        ("RBP(p=0.999)", 1 - 0.999**3000),
    ):
        row = rows_of({"q": grades}, {"q": passages}, [measure], scale="trec")["q"]
        assert row[measure] == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(row[measure])
