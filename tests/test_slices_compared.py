"""Differences within slices, and the test of whether they change: against brute force, and by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

import rag_selectivity as rs
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.chance import BoR
from rag_selectivity.statistics.interaction import heterogeneity
from rag_selectivity.statistics.paired import holm
from tests.test_slices import HARD, LABELS, LANGUAGE, OPTIONS, QUERIES, RUNS

pytestmark = pytest.mark.inside

Pairs = list[tuple[np.ndarray, np.ndarray]]
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
    tested = [test.p for test in comparison.interactions]
    np.testing.assert_array_equal([test.p_adjusted for test in comparison.interactions], holm(np.array(tested)))


def test_few_queries_have_no_verdict_and_are_in_no_test_of_interaction(comparison) -> None:
    hard = comparison.slices["kind"]["hard"]
    assert hard.few
    assert {row.verdict for row in hard.rows if row.test} == {"none: under 20 queries"}
    assert all(math.isnan(row.p_adjusted) for row in hard.rows)
    assert hard["other", "RA-nWG@3"].low < hard["other", "RA-nWG@3"].difference < hard["other", "RA-nWG@3"].high
    of_kind = [test for test in comparison.interactions if test.column == "kind"]
    assert {test.verdict for test in of_kind} == {"not tested"}
    assert {test.reason for test in of_kind} == {"fewer than two slices have 20 queries with a figure"}


def test_a_winner_that_changes_is_found_and_said() -> None:
    rng = np.random.default_rng(8)
    queries = [f"q{i}" for i in range(120)]
    labels = {query: {"a": 1} for query in queries}
    kind = {query: "short" if i < 60 else "long" for i, query in enumerate(queries)}
    hit, miss = ["a", "b"], ["b", "a"]

    def run(rates: dict[str, float]) -> dict[str, list[str]]:
        return {query: hit if rng.random() < rates[kind[query]] else miss for query in queries}

    runs = {"dense": run({"short": 0.9, "long": 0.3}), "bm25": run({"short": 0.3, "long": 0.9})}
    compared = rs.compare(labels, runs, measures=["Success", "BoR"], corpus_size=100, depths=[1], by={"kind": kind})
    assert {test.verdict for test in compared.interactions} == {"the winner changes"}
    assert compared["bm25", "Success@1"].verdict == "no difference shown"
    verdicts = {value: part["bm25", "Success@1"].verdict for value, part in compared.slices["kind"].items()}
    assert verdicts == {"short": "worse", "long": "better"}
    text = compared.details()
    assert "bm25 compared with dense by kind" in text
    assert "between slices, the winner changes: Success@1" in text


def test_unpaired_runs_have_differences_in_slices_and_no_test_of_interaction() -> None:
    arms = {
        name: {query: row for i, (query, row) in enumerate(run.items()) if i % 2 == k}
        for k, (name, run) in enumerate(RUNS.items())
    }
    compared = rs.compare(LABELS, arms, paired=False, by={"kind": HARD}, **{**OPTIONS, "depths": [3]})
    assert not compared.interactions
    assert compared.slices["kind"]["easy"]["other", "Success@3"].n > 0
    assert any("no test of interaction" in note for note in compared.notes)


# -- the test of interaction ------------------------------------------------------------------------------


def outcome(values: np.ndarray, *, bits: bool) -> Outcome:
    if not bits:
        return Outcome((values[:, None],), "undefined")
    chance = np.full((len(values), 1), 0.01)
    return Outcome((values[:, None], chance, 1 - chance), "undefined", BoR.aggregate)


def p_of(pairs: Pairs, *, bits: bool = False, draws: int = 199, units: np.ndarray | None = None) -> float:
    first, second = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
    places = np.repeat(np.arange(len(pairs)), [len(pair[0]) for pair in pairs])
    (test,) = heterogeneity(outcome(first, bits=bits), outcome(second, bits=bits), places, draws=draws, units=units)
    return test.p


def test_the_p_value_against_all_signs_one_by_one() -> None:
    rng = np.random.default_rng(3)
    first, second, places = rng.random(9), rng.random(9), np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    (test,) = heterogeneity(outcome(first, bits=False), outcome(second, bits=False), places)
    rest = (first - second) - (first - second).mean()
    sizes, squares = np.bincount(places), np.bincount(places, rest**2)

    def statistic(residuals: np.ndarray) -> float:
        """Cochran's Q: the least weighted sum of squares over all common differences."""
        sums = np.bincount(places, residuals)
        least = optimize.minimize_scalar(lambda shift: ((sums - shift * sizes) ** 2 / squares).sum())
        return float(least.fun)

    every = [statistic(rest * np.array(signs)) for signs in itertools.product([1, -1], repeat=9)]
    assert test.test == "exact"
    assert test.p == pytest.approx(np.mean(np.array(every) >= statistic(rest) - 1e-7))


@pytest.mark.parametrize("queries", [12, 30])
def test_each_depth_is_tested_as_it_is_alone(queries: int) -> None:
    rng = np.random.default_rng(2)
    first, second, places = rng.random((queries, 3)), rng.random((queries, 3)), np.arange(queries) % 4
    first[places == 0, 1] = np.nan
    together = heterogeneity(Outcome((first,), ""), Outcome((second,), ""), places, draws=300)
    for column, test in enumerate(together):
        of_one = [Outcome((values[:, [column]],), "") for values in (first, second)]
        (alone,) = heterogeneity(*of_one, places, draws=300)
        assert (test.p, test.slices, test.test) == (pytest.approx(alone.p), alone.slices, alone.test)


def test_a_cluster_in_several_slices_has_one_sign() -> None:
    rng = np.random.default_rng(6)
    pairs = [(rng.random(40), rng.random(40)) for _ in range(2)]
    # Every query four times, as a cluster: the copies say nothing new.
    copies = [(np.repeat(one, 4), np.repeat(other, 4)) for one, other in pairs]
    clusters = np.repeat(np.arange(80), 4)
    assert p_of(copies, units=clusters, draws=999) == pytest.approx(p_of(pairs, draws=999))
    assert p_of(copies, draws=999) < p_of(pairs, draws=999)


def test_what_cannot_be_tested_has_a_reason() -> None:
    zeros, ones = np.zeros(30), np.ones(30)
    (alone,) = heterogeneity(outcome(ones, bits=False), outcome(zeros, bits=False), np.zeros(30, np.int64))
    assert (math.isnan(alone.p), alone.reason) == (True, "fewer than two slices have a figure")
    (none,) = heterogeneity(outcome(zeros, bits=True), outcome(zeros, bits=True), np.arange(30) % 2)
    assert none.reason == "no run has a success"
    (same,) = heterogeneity(outcome(ones, bits=False), outcome(ones, bits=False), np.arange(30) % 2)
    assert same.p == 1.0
    other = outcome(ones, bits=True)
    chance = (other.parts[0], other.parts[1] * 2, 1 - other.parts[1] * 2)
    (differ,) = heterogeneity(other, Outcome(chance, "", other.aggregate), np.arange(30) % 2)
    assert differ.reason == "the runs have different random baselines"


def rates(rng: np.random.Generator, n: int, one: float, other: float) -> tuple[np.ndarray, np.ndarray]:
    """Successes of two runs that often succeed together."""
    luck = rng.random(n)
    own = np.where(rng.random(n) < 0.6, luck, rng.random(n))
    return (luck < one).astype(float), (own < other).astype(float)


#: Slices (size, rate, baseline's rate) in which the difference, or for bits the ratio, is the same.
SAME = {
    "equal": [(20, 0.5, 0.5)] * 3,
    "unequal sizes": [(20, 0.6, 0.5), (60, 0.6, 0.5), (200, 0.6, 0.5)],
    "near 1": [(40, 0.98, 0.98)] * 3,
    "near 0": [(30, 0.03, 0.03), (100, 0.03, 0.03)],
    "few and noisy beside many that agree": [(20, 0.5, 0.5), (200, 0.97, 0.97)],
    "few that agree beside many and noisy": [(20, 0.97, 0.97), (200, 0.5, 0.5)],
    "other levels": [(20, 0.1, 0.1), (40, 0.5, 0.5), (60, 0.9, 0.9), (100, 0.98, 0.98)],
}


def rejected(slices: list[tuple[int, float, float]], *, bits: bool, trials: int, seed: int = 1) -> float:
    rng = np.random.default_rng(seed)
    return float(np.mean([p_of([rates(rng, *each) for each in slices], bits=bits) <= 0.05 for _ in range(trials)]))


@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("name", SAME)
def test_it_keeps_its_level(name, bits) -> None:
    trials = 300
    # Three standard errors of a share of 5 % beside a true level of at most 6 %.
    assert rejected(SAME[name], bits=bits, trials=trials) <= 0.06 + 3 * math.sqrt(0.05 * 0.95 / trials)


@pytest.mark.parametrize("name", ["equal", "unequal sizes", "other levels"])
def test_it_is_not_needlessly_strict(name) -> None:
    assert rejected(SAME[name], bits=False, trials=300) >= 0.015


def test_a_ratio_that_is_the_same_is_no_interaction_of_bits() -> None:
    slices = [(100, 0.8, 0.6), (100, 0.2, 0.15)]
    assert rejected(slices, bits=True, trials=200) <= 0.11
    # In points these differences are not the same.
    assert rejected(slices, bits=False, trials=100) > 0.3


@pytest.mark.parametrize("bits", [False, True])
def test_it_finds_a_winner_that_changes(bits) -> None:
    assert rejected([(50, 0.7, 0.4), (50, 0.4, 0.7)], bits=bits, trials=100) > 0.9
    assert rejected([(30, 0.7, 0.5), (150, 0.5, 0.6)], bits=bits, trials=100) > 0.4
