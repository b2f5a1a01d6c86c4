"""A figure of parts over queries, and its interval, beside the textbook's formulas."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rag_selectivity.inference.exact import clopper_pearson, mid_p_rate, weighted_rate
from rag_selectivity.inference.interval_methods import Estimand, bca_ends
from rag_selectivity.measures import Outcome
from rag_selectivity.measures.chance import _BITS
from rag_selectivity.measures.outcome import MEAN

pytestmark = pytest.mark.inside

RNG = np.random.default_rng(5)
#: Figures of sixty queries at two depths; some are undefined.
FIGURES = RNG.beta(2, 3, (60, 2))
FIGURES[[3, 7, 20], 1] = np.nan
CHANCE = RNG.uniform(0.05, 0.4, 60)
#: Neither 0 nor 1, so that no binomial interval is meant.
GAINS = CHANCE + RNG.uniform(0.1, 0.5, 60)


@pytest.mark.parametrize("kind", ["binary", "thirds"])
@pytest.mark.parametrize("n", [5, 40])
def test_clopper_and_pearsons_rates_of_a_sum_hold_the_mean(kind: str, n: int) -> None:
    rng = np.random.default_rng(3)
    p, mean = ([0.2, 0.0, 0.8], 0.8) if kind == "binary" else ([0.1, 0.3, 0.6], 0.7)
    values = rng.choice([0, 1 / 3, 1], (400, n), p=p)
    low, high = clopper_pearson(values.sum(axis=1), n, 0.025)
    assert ((low <= mean) & (mean <= high)).mean() >= 0.95


@given(st.lists(st.integers(0, 4), min_size=60, max_size=60).filter(lambda times: sum(times[8:20]) > 0))
def test_a_weight_is_a_query_repeated(times: list[int]) -> None:
    for outcome in (
        Outcome((FIGURES,), "-", MEAN),
        Outcome((GAINS[:, None], CHANCE[:, None], 1 - CHANCE[:, None]), "-", _BITS),
    ):
        repeated = Outcome(tuple(np.repeat(part, times, axis=0) for part in outcome.parts), "-", outcome.aggregate)
        assert outcome.value(np.array(times)).tolist() == pytest.approx(repeated.value().tolist(), rel=1e-12)


@pytest.mark.parametrize("n", [5, 40])
def test_bca_is_efrons_with_students_quantile(n: int) -> None:
    values = np.random.default_rng(n).gamma(0.7, size=n)
    drawn = np.random.default_rng(1).integers(0, n, (501, n))
    figures = values[drawn].mean(axis=1)
    low, high = bca_ends([Estimand.of(Outcome((values[:, None],), "-"))], figures[None, :], 0.05)[:, 0]

    bias = stats.norm.ppf(((figures < values.mean()).mean() + (figures <= values.mean()).mean()) / 2)
    without = np.array([np.delete(values, i).mean() for i in range(n)])
    away = without.mean() - without
    acceleration = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    for found, share in ((low, 0.05), (high, 0.95)):
        shifted = bias + stats.t.ppf(share, n - 1) * math.sqrt(n / (n - 1))
        level = stats.norm.cdf(bias + shifted / (1 - acceleration * shifted))
        if n > 5:  # five queries have few different resamples: equal figures stand at the middle of their share
            assert found == pytest.approx(np.quantile(figures, level, method="hazen"), rel=1e-9)
        else:
            assert abs(stats.percentileofscore(figures, found, "mean") / 100 - level) < 0.02
    furthest = bca_ends([Estimand.of(Outcome((values[:, None],), "-"))], figures[None, :], 1e-12)[:, 0]
    assert n == 5 or furthest.tolist() == [figures.min(), figures.max()]


def test_the_effective_number_of_queries_is_kishs() -> None:
    outcome = Outcome((GAINS[:, None], CHANCE[:, None], 1 - CHANCE[:, None]), "-", _BITS, baseline=1)
    expected = pytest.approx([CHANCE.sum() ** 2 / (CHANCE**2).sum()], rel=1e-12)
    assert list(outcome.effective_queries()) == expected
    same = Outcome((GAINS[:, None], np.full((60, 1), 0.2), np.full((60, 1), 0.8)), "-", _BITS, baseline=1)
    assert list(same.effective_queries()) == [math.inf]


@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("tail", [0.25, 0.025, 1e-6])
def test_mid_p_rates_are_those_of_exact_fractions(n: int, tail: float) -> None:
    """At the rate itself, P[fewer] + P[as many]/2 is the share; a little below and above, it is on either side."""

    def mid_p(successes: int, rate: float) -> Fraction:
        p = Fraction(rate)
        chances = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(successes + 1)]
        return sum(chances[:-1], Fraction(0)) + chances[-1] / 2

    counts = np.arange(n + 1.0)
    found = mid_p_rate(counts, np.full(n + 1, n), np.array([[1 - tail], [tail]]))
    assert found[:, 0].tolist() == [0, 0]
    assert found[:, n].tolist() == [1, 1]
    for share, rates in zip((1 - tail, tail), found, strict=True):
        for successes, rate in enumerate(rates.tolist()[:-1]):
            if successes:
                near = max(1e-9 * min(rate, 1 - rate), 4 * math.ulp(rate))
                assert mid_p(successes, rate + near) < Fraction(share) < mid_p(successes, rate - near)


def test_bounds_of_a_weighted_rate_have_the_smaller_effective_number() -> None:
    """Where heavy queries are the rare failures, that of the variance of the rate; where they all succeed, Kish's."""
    weights = np.repeat([1.0, 4.0], [30, 10])
    for times, is_kishs in (([29, 1, 6, 4], False), ([15, 15, 10, 0], True), ([30, 0, 10, 0], True)):
        successes = np.repeat([1.0, 0.0, 1.0, 0.0], times)
        rate, kish = np.average(successes, weights=weights), weights.sum() ** 2 / (weights**2).sum()
        variance = (weights**2 * (successes - rate) ** 2).sum() / weights.sum() ** 2
        trials = min(kish, rate * (1 - rate) / variance) if variance else kish
        assert (trials == kish) == is_kishs
        low, high = weighted_rate(successes[:, None], weights[:, None], 0.05)[:, 0]
        assert low == pytest.approx(stats.beta.ppf(0.05, trials * rate, trials * (1 - rate) + 1))
        assert high == pytest.approx(stats.beta.ppf(0.95, trials * rate + 1, trials * (1 - rate)) if variance else 1)
