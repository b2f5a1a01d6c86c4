"""Figures where few tests go: mutants of these lines lived on, and each of them was a wrong number."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest

import rag_selectivity as rs
from rag_selectivity.inference.exact import weighted_rate
from rag_selectivity.inference.interval_methods import _mid_quantile
from rag_selectivity.inference.unpaired import unpaired_difference
from rag_selectivity.measures import Outcome
from rag_selectivity.measures.chance import EF
from rag_selectivity.measures.hypergeometric import random_success

pytestmark = pytest.mark.inside


def test_corpora_that_differ_by_one_passage_have_chances_of_their_own() -> None:
    """Sums over many factors are shared by queries of one corpus size, and by no others."""
    sizes, relevant, drawn = np.array([5000, 5001, 5002, 5001]), np.array([700, 700, 700, 700]), 600
    _, missed = random_success(sizes, relevant, drawn)
    for size, value in zip(sizes.tolist(), missed.tolist(), strict=True):
        assert value == pytest.approx(float(Fraction(math.comb(size - 700, drawn), math.comb(size, drawn))), rel=1e-12)


@pytest.mark.parametrize("chance", [0.6, 0.9])
def test_the_ends_of_kappa_are_as_far_as_its_jackknife_says(chance) -> None:
    rng = np.random.default_rng(9)
    human = rng.integers(1, 6, 400)
    judge = np.where(rng.random(400) < chance, human, rng.integers(1, 6, 400))

    def kappa(one, other):
        observed = (one == other).mean()
        expected = sum((one == grade).mean() * (other == grade).mean() for grade in range(1, 6))
        return (observed - expected) / (1 - expected)

    sides = ({f"q{i}": {"d": int(grade)} for i, grade in enumerate(grades)} for grades in (human, judge))
    found = rs.agree(*sides).agreement.kappa
    without = np.array([kappa(np.delete(human, i), np.delete(judge, i)) for i in range(400)])
    spread = math.sqrt(((without - without.mean()) ** 2).sum() * 399 / 400)
    assert found.value == pytest.approx(kappa(human, judge), rel=1e-12)
    assert found.value - found.low == pytest.approx(1.96 * spread, rel=0.3)
    assert found.high - found.value == pytest.approx(1.96 * spread, rel=0.3)


@pytest.mark.parametrize(("n", "different"), [(40, 9), (40, 9999), (1, 9), (2, 9), (7, 9)])
def test_quantiles_interpolate_between_the_middles_of_equal_figures(n, different) -> None:
    """Of figures without ties they are Hazen's."""
    ordered = np.sort(np.random.default_rng(n).integers(0, different, n) / 8)
    distinct, first, times = np.unique(ordered, return_index=True, return_counts=True)
    levels = [0.0, 0.003, 0.025, 0.2, 0.5, 0.61, 0.975, 0.999, 1.0]
    found = [_mid_quantile(ordered[None, :], np.array([level]), np.array([n]))[0] for level in levels]
    expected = np.interp(np.array(levels) * n, first + times / 2, distinct)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_bits_of_few_weighted_successes_have_the_ends_of_their_rate() -> None:
    queries = [f"q{i}" for i in range(60)]
    labels = {q: {f"a{q}": 1, **({f"b{q}": 1} if i % 2 else {})} for i, q in enumerate(queries)}
    run = {q: [f"a{q}" if i % 20 == 3 else "x"] for i, q in enumerate(queries)}
    weights = {q: 1.0 + i % 3 for i, q in enumerate(queries)}
    found = rs.evaluate(labels, {"r": run}, corpus_size=100, measures=["BoR"], depths=[1], weights=weights)["BoR@1"]
    w = np.array(list(weights.values()))
    success = np.array([float(i % 20 == 3) for i in range(60)])
    chance = np.average([0.02 if i % 2 else 0.01 for i in range(60)], weights=w)
    low, high = np.log2(weighted_rate(success[:, None], w[:, None] / 3, 0.025)[:, 0] / chance)
    assert found.high == pytest.approx(high, rel=1e-9)
    assert low - 0.1 < found.low <= low + 1e-9  # an unseen query may lower it


@pytest.mark.parametrize(("lists", "size"), [({"q1": "acb"}, 5), ({"q1": "ax", "q2": ""}, 6)])
def test_the_average_precision_of_a_random_draw_is_that_of_all_orders(lists, size) -> None:
    """Of a corpus with two relevant passages; for a query without a list nothing is drawn."""
    runs, k = {"r": {query: list(passages) for query, passages in lists.items()}}, len(lists["q1"])
    labels = {query: {"a": 1, "b": 1} for query in lists}
    found = rs.evaluate(labels, runs, corpus_size=size, measures=[f"AP@{k}"], depths=None, scale="trec")
    every = []
    for order in itertools.permutations("abcdef"[:size], k):
        hits = [name in "ab" for name in order]
        every.append(Fraction(sum(Fraction(sum(hits[: i + 1]), i + 1) for i in range(k) if hits[i]), 2))
    assert found[f"AP@{k}"].placebo == pytest.approx(float(sum(every) / len(every)) / len(lists), abs=1e-12)


def test_enrichment_on_other_queries_has_ends_as_far_as_its_variance_says() -> None:
    rng = np.random.default_rng(14)
    arms, outcomes = [], []
    for rate, size in ((0.5, 60), (0.4, 80)):
        success, chance = (rng.random(size) < rate).astype(float), rng.uniform(0.005, 0.015, size)
        parts = tuple(part[:, None] for part in (success, chance, 1 - chance))
        outcomes.append(Outcome(parts, "", EF.aggregate, (0, math.inf)))
        ratio = success.mean() / chance.mean()
        arms.append((ratio, ((success - ratio * chance) / chance.mean()).var() / size))
    found = unpaired_difference(*outcomes)
    reach = 1.96 * math.sqrt(arms[0][1] + arms[1][1])
    assert found.value[0] == pytest.approx(arms[0][0] - arms[1][0])
    assert (found.high[0] - found.low[0]) / 2 == pytest.approx(reach, rel=0.1)


def test_lambda_that_rests_on_controls_has_the_ends_of_their_rate() -> None:
    """Ten random passages for each query, of which one in twenty is relevant; the labels hold no relevant one."""
    queries = [f"q{i}" for i in range(150)]
    drawn = {q: {f"{q}-{j}": int((10 * i + j) % 20 == 0) for j in range(10)} for i, q in enumerate(queries)}
    labels = {q: {f"{q}-x": 0} for q in queries}
    run = {q: [f"{q}-x"] for q in queries}
    found = rs.evaluate(
        labels, {"r": run}, corpus_size=10_000, controls=drawn, measures=["lambda"], depths=[10], scale="trec"
    )["lambda@10"]
    rate = binomtest(75, 1500).proportion_ci(0.95)
    assert (found.low, found.high) == pytest.approx((10 * rate.low, 10 * rate.high), rel=0.1)
