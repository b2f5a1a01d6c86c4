"""Runs over different queries: rates against scipy, means against scipy's permutation test, and what they are not."""

from math import inf, isnan, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rag_selectivity.inference import bounded
from rag_selectivity.inference.unpaired import unpaired_difference
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.chance import EF, BoR

pytestmark = pytest.mark.inside


def of_means(values, others, **options):
    sides = [Outcome((np.asarray(side, float)[:, None],), "") for side in (values, others)]
    return unpaired_difference(*sides, **options)


def of_bits(values, others, chance, other_chance, **options):
    sides = []
    for top, bottom in ((values, chance), (others, other_chance)):
        top = np.asarray(top, float)[:, None]
        bottom = np.broadcast_to(np.asarray(bottom, float).reshape(-1, 1), top.shape)
        sides.append(Outcome((top, bottom, 1 - bottom), "", BoR.aggregate))
    return unpaired_difference(*sides, **options)


def ones(hits: int, n: int) -> np.ndarray:
    return np.repeat([1.0, 0.0], [hits, n - hits])


@given(st.integers(0, 12), st.integers(0, 12), st.sampled_from([0.8, 0.95, 0.999]))
@settings(max_examples=80, deadline=None)
def test_rates_have_fishers_p_value_and_an_interval_that_agrees_with_it(hits, other, level) -> None:
    for found in (
        of_means(ones(hits, 12), ones(other, 15), level=level),
        of_bits(ones(hits, 12), ones(other, 15), 0.01, 0.01, level=level),
    ):
        if isnan(found.value[0]):
            continue
        assert found.p[0] == pytest.approx(stats.fisher_exact([[hits, 12 - hits], [other, 15 - other]]).pvalue)
        assert (found.low[0] <= 0 <= found.high[0]) == (found.p[0] > 1 - level)
        assert found.low[0] <= found.value[0] <= found.high[0]


def test_means_come_close_to_scipys_permutation_of_welchs_t() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.beta(2, 3, 40), rng.beta(2.6, 3, 25)
    found = of_means(one, other)
    peer = stats.ttest_ind(
        one, other, equal_var=False, method=stats.PermutationMethod(n_resamples=20_000, rng=np.random.default_rng(2))
    )
    assert found.p[0] == pytest.approx(peer.pvalue, abs=0.012)
    welch = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    assert found.low[0] == pytest.approx(welch.low, abs=0.02)
    assert found.high[0] == pytest.approx(welch.high, abs=0.02)


def test_where_few_figures_differ_the_interval_is_that_of_both_arms_by_mover() -> None:
    one, other = np.r_[0.9, 0.5, np.zeros(28)], np.r_[0.25, 0.4, 0.5, np.zeros(22)]
    means, lows, highs = [], [], []
    for arm in (one, other):
        low, high = bounded.ends(arm[:, None], np.zeros(1), np.ones(1), lambda sums: sums[:, 0], 0.95)
        means.append(arm.mean())
        lows.append(low)
        highs.append(high)
    found = of_means(one, other)
    apart = means[0] - means[1]
    assert found.low[0] == pytest.approx(apart - ((means[0] - lows[0]) ** 2 + (highs[1] - means[1]) ** 2) ** 0.5)
    assert found.high[0] == pytest.approx(apart + ((highs[0] - means[0]) ** 2 + (means[1] - lows[1]) ** 2) ** 0.5)


def test_bits_with_other_queries_compare_what_chance_leaves() -> None:
    rng = np.random.default_rng(5)
    # Success is the same in both arms, but the second arm's queries are ten times as easy to hit by chance.
    one, other = ones(30, 40), ones(30, 40)
    chance, other_chance = rng.uniform(0.001, 0.002, 40), rng.uniform(0.01, 0.02, 40)
    found = of_bits(one, other, chance, other_chance)
    assert found.value[0] == pytest.approx(log2(other_chance.mean() / chance.mean()))
    assert found.p[0] <= 0.01
    assert 0 < found.low[0] < found.value[0] < found.high[0]


def test_an_arm_without_a_success_has_infinite_bits_and_no_false_end() -> None:
    rng = np.random.default_rng(6)
    found = of_bits(ones(0, 20), ones(5, 20), rng.random(20) / 50, rng.random(20) / 50)
    assert found.value[0] == found.low[0] == -inf
    none = of_bits(ones(0, 20), ones(0, 20), rng.random(20) / 50, rng.random(20) / 50)
    assert isnan(none.value[0])
    assert isnan(none.p[0])


def test_ratios_without_any_spread_show_no_difference() -> None:
    bottom = np.random.default_rng(7).uniform(0.1, 0.2, (20, 1))
    sides = [Outcome((times * bottom, bottom, 1 - bottom), "", EF.aggregate) for times in (3, 2)]
    found = unpaired_difference(*sides)
    assert found.value[0] == pytest.approx(1.0)
    assert isnan(found.p[0])
    assert isnan(found.low[0])


def test_an_arm_of_one_query_has_no_interval() -> None:
    found = of_means([0.5], [0.2, 0.4, 0.6])
    assert isnan(found.low[0])
    assert isnan(found.p[0])
