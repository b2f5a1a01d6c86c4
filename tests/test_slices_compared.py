"""Differences within slices are those of their queries alone, and one family of tests."""

import math

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.inference.paired import holm
from tests.test_slices import HARD, LABELS, LANGUAGE, OPTIONS, QUERIES, RUNS

pytestmark = pytest.mark.inside

COMPARED = {**OPTIONS, "measures": ["Success", "BoR", "RA-nWG", "Harm"], "missing_query": "fail"}


@pytest.fixture(scope="module")
def comparison() -> rs.Comparison:
    return rs.compare(LABELS, RUNS, by={"language": LANGUAGE, "kind": HARD}, **COMPARED)


def test_a_difference_is_that_of_the_queries_alone(comparison) -> None:
    some = {query for query in QUERIES if LANGUAGE[query] == "de"}
    labels = {query: row for query, row in LABELS.items() if query in some}
    runs = {name: {query: row for query, row in run.items() if query in some} for name, run in RUNS.items()}
    alone = rs.compare(labels, runs, **COMPARED)
    part = comparison.slices["language"]["de"]
    assert part.queries == len(some)
    for row in alone.rows:
        same = part[row.run, str(row.measure)]
        for name in ("difference", "low", "high", "p", "value", "baseline_value"):
            assert getattr(same, name) == pytest.approx(getattr(row, name), rel=1e-9, abs=1e-12, nan_ok=True), row
        assert (same.n, same.wins, same.ties, same.losses) == (row.n, row.wins, row.ties, row.losses)


def test_p_values_are_adjusted_over_all_slices_of_twenty_queries(comparison) -> None:
    rows = [row for by_value in comparison.slices.values() for part in by_value.values() for row in part.rows]
    tests = {(row.by, row.tested_as): row.p for row in rows if row.test and not row.few}
    expected = dict(zip(tests, holm(np.array(list(tests.values()))), strict=True))
    assert comparison.settings["family_of_slices"] == len(tests)
    for row in rows:
        if row.test and not row.few:
            assert row.p_adjusted == expected[row.by, row.tested_as]


def test_few_queries_have_no_verdict(comparison) -> None:
    hard = comparison.slices["kind"]["hard"]
    assert hard.few
    assert {row.verdict for row in hard.rows if row.test} == {"none: under 20 queries"}
    assert all(math.isnan(row.p_adjusted) for row in hard.rows)
    assert hard["other", "RA-nWG@3"].low < hard["other", "RA-nWG@3"].difference < hard["other", "RA-nWG@3"].high


def test_each_slice_has_a_winner_of_its_own() -> None:
    rng = np.random.default_rng(8)
    queries = [f"q{i}" for i in range(120)]
    labels = {query: {"a": 1} for query in queries}
    kind = {query: "short" if i < 60 else "long" for i, query in enumerate(queries)}
    hit, miss = ["a", "b"], ["b", "a"]

    def run(rates: dict[str, float]) -> dict[str, list[str]]:
        return {query: hit if rng.random() < rates[kind[query]] else miss for query in queries}

    runs = {"dense": run({"short": 0.9, "long": 0.3}), "bm25": run({"short": 0.3, "long": 0.9})}
    compared = rs.compare(labels, runs, measures=["Success", "BoR"], corpus_size=100, depths=[1], by={"kind": kind})
    assert compared["bm25", "Success@1"].verdict == "no difference shown"
    verdicts = {value: part["bm25", "Success@1"].verdict for value, part in compared.slices["kind"].items()}
    assert verdicts == {"short": "worse", "long": "better"}
    shown, part = compared.details(), compared.slices["kind"]["long"]["bm25", "Success@1"]
    assert "The figures of the groups by kind are among the details." in str(compared)
    by_kind = (
        "Next: Decide by kind: bm25 is shown to be better than dense in long, and worse in short (Success@1 and BoR@1)."
    )
    assert by_kind in " ".join(str(compared).split())
    assert "bm25 compared with dense by kind" in shown
    assert "largest differences" not in shown
    assert {f"{part.baseline_value:.3f}", f"{part.value:.3f}"} <= {*shown.split("by kind")[-1].split()}


def test_unpaired_runs_have_differences_in_slices() -> None:
    arms = {
        name: {query: row for i, (query, row) in enumerate(run.items()) if i % 2 == k}
        for k, (name, run) in enumerate(RUNS.items())
    }
    compared = rs.compare(LABELS, arms, paired=False, by={"kind": HARD}, **{**OPTIONS, "depths": [3]})
    assert compared.slices["kind"]["easy"]["other", "Success@3"].n > 0
