"""What to look at for each cell of PROC and %PROC: only where an interval is beyond the threshold, and no cause."""

from __future__ import annotations

import math
from itertools import product

import pytest

import rag_selectivity as rs
from rag_selectivity.decision import decide
from rag_selectivity.measures.utility import diagnosis
from rag_selectivity.results.estimate import Caveat, Estimate
from rag_selectivity.results.remedy import HIGH, LOW, THRESHOLD, UNKNOWN, remedy, side_of
from rag_selectivity.results.trust import CLOSED, EQUALS_PLACEBO

pytestmark = pytest.mark.inside

OF_POOL = ("hybrid retrieval", "query rewriting", "chunking", "recall of an approximate index")
OF_SELECTION = ("cross-encoder", "filters", "duplicates")
MEASURES = ["RA-nWG", "PROC", "%PROC"]
FACTORS = {
    LOW: Estimate(0.6, 0.5, 0.79, 90, 90),
    HIGH: Estimate(0.9, 0.8, 0.95, 90, 90),
    UNKNOWN: Estimate(0.78, 0.7, 0.85, 90, 90),
}


@pytest.mark.parametrize(("pool", "share"), product(FACTORS, FACTORS))
def test_each_cell_names_what_is_low_and_nothing_else(pool, share) -> None:
    text = remedy(FACTORS[pool], FACTORS[share], 5)
    assert all(word in text for word in OF_POOL) == (pool == LOW)
    assert any(word in text for word in OF_POOL) == (pool == LOW)
    assert all(word in text for word in OF_SELECTION) == (share == LOW)
    assert any(word in text for word in OF_SELECTION) == (share == LOW)
    assert text.count("not shown on which side") == (pool, share).count(UNKNOWN)
    assert "PROC@5" in text
    assert "%PROC@5" in text
    assert "cause" not in text


def test_the_threshold_is_that_of_the_diagnosis() -> None:
    assert diagnosis(THRESHOLD, THRESHOLD) == "healthy"
    assert diagnosis(math.nextafter(THRESHOLD, 0), THRESHOLD) != "healthy"
    assert side_of(Estimate(0.8, THRESHOLD, 0.9, 9, 9)) == HIGH
    assert side_of(Estimate(0.7, 0.6, THRESHOLD, 9, 9)) == UNKNOWN


def with_caveat(estimate: Estimate, code: str) -> Estimate:
    return Estimate(estimate.value, estimate.low, estimate.high, 90, 90, caveats=(Caveat(code, "…"),))


def test_labels_that_cannot_show_a_side() -> None:
    closed = with_caveat(FACTORS[HIGH], CLOSED)
    assert side_of(closed, of_pool=True) == UNKNOWN
    assert side_of(closed) == HIGH
    assert "the labels lack what no run retrieved" in remedy(closed, FACTORS[LOW], 5)
    assert side_of(with_caveat(FACTORS[LOW], CLOSED), of_pool=True) == LOW, "with what is missing it is lower still"
    for side in (LOW, HIGH):
        placebo = with_caveat(FACTORS[side], EQUALS_PLACEBO)
        assert side_of(placebo) == UNKNOWN
        assert "is not shown to differ from what shuffled grades give" in remedy(placebo, FACTORS[LOW], 5)
    bare = Estimate(0.1, math.nan, math.nan, 90, 90)
    assert "Without an interval" in remedy(bare, bare, None)
    assert "look at" not in remedy(bare, bare, None)
    undefined = Estimate(math.nan, math.nan, math.nan, 0, 90, reason="the pool holds nothing")
    assert remedy(undefined, FACTORS[LOW], 5) == ""
    assert "%PROC@5 is undefined: the pool holds nothing." in remedy(FACTORS[LOW], undefined, 5)


def test_it_stands_in_the_report_its_json_and_the_decision() -> None:
    queries = [f"q{i}" for i in range(60)]
    # The pool holds all of the evidence, and junk is shown.
    grades = {q: {f"p{i}": 5 if i < 2 else 1 for i in range(9)} for q in queries}
    shown = {q: ["p7", "p8"] for q in queries}
    pool = {q: ["p7", "p8", "p0", "p1"] for q in queries}
    report = rs.evaluate(grades, {"run": shown}, pool=pool, scale="utility", depths=[2], measures=MEASURES)
    diagnosed = report.diagnosis("run", 2)
    assert diagnosed.overall == "selection-limited"
    assert all(word in diagnosed.remedy for word in OF_SELECTION)
    assert report.to_dict()["runs"]["run"]["diagnosis"]["2"]["remedy"] == diagnosed.remedy
    assert "a cross-encoder as reranker" in " ".join(report.details().split())
    assert diagnosed.remedy in " ".join((decide(report, k=2)["loss"].more).split())
    unknown = rs.evaluate(
        grades, {"run": shown}, pool=pool, scale="utility", depths=[2], measures=MEASURES, bootstrap=None
    )
    assert "look at" not in unknown.diagnosis("run", 2).remedy
