"""What to look at for each cell of PROC and %PROC: only where an interval is beyond the threshold, and no cause."""

from __future__ import annotations

from itertools import product

import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.remedy import remedy

pytestmark = pytest.mark.inside

LOW, HIGH, UNKNOWN = "low", "high", "unknown"
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
