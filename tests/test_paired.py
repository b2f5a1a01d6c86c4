"""Paired tests and intervals against brute force, scipy, and likelihoods maximised by a general optimiser."""

from collections import Counter
from itertools import product
from math import inf, isinf, isnan, log2

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from rag_selectivity.inference import bounded, score
from rag_selectivity.inference.detectable import mean_difference, sensitivity
from rag_selectivity.inference.paired import (
    Difference,
    Pair,
    _inverted,
    _skewed,
    _swapped,
    all_signs,
    drawn_signs,
    influence,
    paired_difference,
)
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.chance import EF, BoR

pytestmark = pytest.mark.inside

RNG = np.random.default_rng(4)


def means(values, others, **options) -> Difference:
    return paired_difference(
        Outcome((np.asarray(values, float).reshape(len(values), -1),), ""),
        Outcome((np.asarray(others, float).reshape(len(others), -1),), ""),
        **options,
    )


def bits(values, others, chance=None, other_chance=None, aggregate=BoR.aggregate, **options) -> Difference:
    """The difference of BoR; every query has the same chance if not given."""
    sides = []
    for top, bottom in ((values, chance), (others, other_chance if other_chance is not None else chance)):
        top = np.asarray(top, float).reshape(len(top), -1)
        bottom = np.full(top.shape, 0.01) if bottom is None else np.asarray(bottom, float).reshape(top.shape)
        sides.append(Outcome((top, bottom, 1 - bottom), "", aggregate))
    return paired_difference(*sides, **options)


# -- p-values -----------------------------------------------------------------------------------------


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=10))
@example([1, 1, 1, 1, 1, 1])
@settings(max_examples=60, deadline=None)
def test_swaps_are_counted_exactly_by_brute_force(gaps) -> None:
    observed = abs(sum(gaps))
    every = [abs(sum(s * g for s, g in zip(signs, gaps, strict=True))) for signs in product((1, -1), repeat=len(gaps))]
    # Of values without ends: within ends, one query more could decide a difference of few (test_one_query_decides).
    # Thirds of large numbers: sums that are equal but for rounding are as far from zero.
    sides = (Outcome((np.array(side)[:, None] * 1e7 / 3,), "", bounds=None) for side in (gaps, [0] * len(gaps)))
    found = paired_difference(*sides)
    assert found.p[0] == pytest.approx(sum(value >= observed for value in every) / len(every))
    assert found.test == ("exact",)


def test_successes_won_and_lost_are_mcnemars_exact_test_at_any_size() -> None:
    won, lost = np.array([1.0] * 40 + [0.0] * 20 + [1.0] * 300), np.array([0.0] * 40 + [1.0] * 20 + [1.0] * 300)
    for found in (means(won, lost), bits(won, lost)):
        assert found.p[0] == pytest.approx(stats.binomtest(40, 60).pvalue)
        assert found.test == ("exact",)


def test_drawn_swaps_come_close_to_scipys_permutation_test() -> None:
    gaps = RNG.normal(0.25, 1, (40, 3)) / 10
    found = means(gaps, np.zeros((40, 3)), draws=40_000)
    assert found.test == ("randomised",) * 3
    for column in range(3):
        peer = stats.permutation_test(
            (gaps[:, column],), np.mean, permutation_type="samples", n_resamples=40_000, rng=np.random.default_rng(1)
        )
        assert found.p[column] == pytest.approx(peer.pvalue, abs=0.012)


@pytest.mark.parametrize("form", ["bits", "ratio"])
@pytest.mark.parametrize("theta", [-0.5, 0.0, 1.7])
def test_swaps_of_ratios_are_those_of_a_run_without_the_difference(form, theta) -> None:
    rng = np.random.default_rng(5)
    top, other, down, other_down = rng.random((4, 7)) + 0.1
    columns = np.stack([top, down, other, other_down], axis=1)
    signs = np.where(rng.random((20, 7)) < 0.5, 1.0, -1.0)
    # Without the difference θ: the first run has θ less a denominator; in bits, the second has θ times as much.
    first, second = (top, theta * other) if form == "bits" else (top - theta * down, other)
    a, b = _swapped(form, columns, signs @ columns)
    for row, stays in enumerate(signs > 0):
        one = np.where(stays, first, second).sum() / np.where(stays, down, other_down).sum()
        two = np.where(stays, second, first).sum() / np.where(stays, other_down, down).sum()
        assert a[row] - theta * b[row] == pytest.approx(one - two, abs=1e-12)


@pytest.mark.parametrize("form", ["mean", "bits", "ratio"])
@pytest.mark.parametrize(("every", "level"), [(True, 0.95), (True, 0.8), (False, 0.9), (True, 0.999)])
def test_the_ends_are_where_the_test_of_a_shifted_difference_begins_to_reject(form, every, level) -> None:
    rng = np.random.default_rng(8)
    more, less = (0.3, 0.9) if form == "bits" else (0.9, 0.3)
    top, other, down, other_down = rng.random((4, 9)) + np.array([[more], [less], [0.5], [0.5]])
    down, other_down = (np.ones(9), np.ones(9)) if form == "mean" else (down, other_down)
    pair = Pair(form, top, down, other, other_down, np.ones(9), None if form != "mean" else (-9.0, 9.0))
    columns = np.stack(pair.columns, axis=1)
    signs = all_signs(9) if every else np.concatenate(list(drawn_signs(9, 199, 3)))
    sums, ((a,), (b,)) = _swapped(form, columns, signs @ columns), _swapped(form, columns, columns.sum(0)[None])

    def accepted(theta: float) -> bool:
        reached = (np.abs(sums[0] - theta * sums[1]) >= abs(a - theta * b) - 1e-12).sum()
        return (reached / 512 if every else (reached + 1) / 200) > 1 - level + 1e-12

    for end, sign in zip(_inverted(pair, sums, (a, b), every, level), (1, -1), strict=True):
        theta = 2**end if form == "bits" else end
        if level < 0.999:
            assert (accepted(theta + sign * 1e-7), accepted(theta - sign * 1e-7)) == (True, False)
        else:  # Two of 512 swaps change nothing, and so no difference at all is rejected, within what can be.
            assert end == {"mean": -18.0, "bits": -inf, "ratio": -inf}[form] * sign


def test_where_skewness_doubts_what_swaps_reject_the_larger_p_counts() -> None:
    doubted = 0
    for seed in range(60):
        gaps = np.random.default_rng(seed).normal(0.65, 1, 12)
        gaps -= (gaps > 1.5) * 0.5 + (seed % 3) * (gaps < 0) * 0.4
        ones, zeros = np.ones(12), np.zeros(12)
        low, high, p_of_hall = _skewed(Pair("mean", gaps, ones, zeros, ones, ones, None, value=gaps.mean()), 0.95)
        swapped = (np.abs(all_signs(12) @ gaps) >= abs(gaps.sum()) - 1e-12).mean()
        doubts = swapped <= 0.05 and low <= 0 <= high
        found = paired_difference(*(Outcome((side[:, None],), "", bounds=None) for side in (gaps, zeros)))
        assert found.p[0] == pytest.approx(max(swapped, p_of_hall) if doubts else swapped, rel=1e-9)
        doubted += doubts
    assert 0 < doubted < 30


def test_a_difference_that_one_query_could_turn_has_the_p_value_of_the_bound() -> None:
    # With an unseen query at −1 of weight w ~ Beta(1, 6), the mean g·(1 − w) − w is below 0 with this probability.
    for gap, p in ((0.15, 2 * (1 / 1.15) ** 6), (0.02, 1.0)):
        found = means(np.full(6, gap), np.zeros(6))
        assert (found.p[0], found.test) == (pytest.approx(p, abs=0.03), ("bounded",))


def test_equal_denominators_make_the_swap_a_flip_of_signs() -> None:
    recall, others, chance = RNG.random(40), RNG.random(40), RNG.random(40) / 50
    assert bits(recall, others, chance).p[0] == means(recall, others).p[0]


def test_clusters_are_swapped_whole() -> None:
    values, units = np.repeat([1.0, 1, 1, 1, 1, 0], 10), np.repeat(np.arange(6), 10)
    found = means(values, np.zeros(60), units=units)
    assert found.p[0] == 2 / 2**5
    assert found.low[0] <= 0


# -- intervals ----------------------------------------------------------------------------------------


def log_likelihood(cells, shares) -> float:
    return sum(count * np.log(max(share, 1e-300)) for count, share in zip(cells, shares, strict=True) if count)


def score_by_optimiser(both, gained, lost, neither, *, difference=None, ratio=None) -> float:
    """The score statistic, with the constrained likelihood maximised numerically over a grid that is refined."""
    n = both + gained + lost + neither
    counts = (both, gained, lost, neither)

    def shares(lost_share: float, both_share: float) -> tuple[float, ...]:
        if difference is not None:
            gained_share = lost_share + difference
        else:
            gained_share = (ratio - 1) * both_share + ratio * lost_share
        return both_share, gained_share, lost_share, 1 - both_share - gained_share - lost_share

    def negative(x) -> float:
        found = shares(*x)
        return 1e6 + sum(min(0, s) for s in found) * -1e6 if min(found) < 0 else -log_likelihood(counts, found)

    starts = [(a, b) for a in (0.01, 0.1, 0.3) for b in (0.05, 0.3, 0.6)]
    best = min(
        (
            optimize.minimize(
                negative, start, method="Nelder-Mead", options={"xatol": 1e-11, "fatol": 1e-13, "maxiter": 8000}
            )
            for start in starts
        ),
        key=lambda found: found.fun,
    )
    _, gained_share, lost_share, _ = shares(*best.x)
    if difference is not None:
        variance = n * (gained_share + lost_share - difference**2)
        return (gained - lost - n * difference) / np.sqrt(variance)
    first, second = both + gained, both + lost
    return (first - ratio * second) / np.sqrt(n * ratio * (gained_share + lost_share))


@pytest.mark.parametrize("cells", [(20, 9, 4, 17), (50, 12, 3, 10), (5, 6, 6, 60), (1, 2, 1, 2)])
def test_score_intervals_end_where_the_constrained_likelihood_says(cells) -> None:
    both, gained, lost, _ = cells
    n = np.array([float(sum(cells))])
    arguments = np.array([float(gained)]), np.array([float(lost)]), n
    for end, sign in zip(score.paired_difference(*arguments, 0.95), (1, -1), strict=True):
        assert score_by_optimiser(*cells, difference=end[0]) == pytest.approx(sign * 1.959964, abs=2e-4)
    for end, sign in zip(score.paired_ratio(np.array([float(both)]), *arguments, 0.95), (1, -1), strict=True):
        assert score_by_optimiser(*cells, ratio=2 ** end[0]) == pytest.approx(sign * 1.959964, abs=2e-4)


def test_independent_rates_agree_with_newcombes_published_table() -> None:
    # Newcombe 1998 (II), table II: 56/70 and 48/80, Miettinen–Nurminen's method 5: .0528 to .3382.
    low, high = score.unpaired_difference(56.0, 70.0, 48.0, 80.0, 0.95)
    assert (round(float(low), 4), round(float(high), 4)) == (0.0528, 0.3382)
    # Koopman 1984: 36/40 and 16/80 give 2.939 to 7.152.
    low, high = score.unpaired_ratio(36.0, 40.0, 16.0, 80.0, 0.95)
    assert (round(float(2**low), 2), round(float(2**high), 2)) == (2.94, 7.15)


def of_other_queries(x1, n1, x2, n2, *, difference=None, ratio=None) -> float:
    """The score statistic of rates of different queries, with the likelihood maximised numerically."""

    def shares(p2: float) -> tuple[float, float]:
        return (p2 + difference if ratio is None else p2 * ratio), p2

    def negative(p2: float) -> float:
        p1, p2 = (min(max(p, 1e-15), 1 - 1e-15) for p in shares(p2))
        return -(x1 * np.log(p1) + (n1 - x1) * np.log(1 - p1) + x2 * np.log(p2) + (n2 - x2) * np.log(1 - p2))

    ends = (max(0, -difference), min(1, 1 - difference)) if ratio is None else (0, min(1, 1 / ratio))
    p1, p2 = shares(optimize.minimize_scalar(negative, bounds=ends, method="bounded", options={"xatol": 1e-12}).x)
    if ratio is None:
        variance = (p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2) * (n1 + n2) / (n1 + n2 - 1)
        return (x1 / n1 - x2 / n2 - difference) / variance**0.5
    return (x1 / n1 - ratio * x2 / n2) / (p1 * (1 - p1) / n1 + ratio**2 * p2 * (1 - p2) / n2) ** 0.5


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize(
    "counts",
    [
        *((56, 70, 48, 80), (3, 12, 11, 15), (7, 7, 4, 9), (1, 30, 2, 8), (5, 20, 0, 20), (0, 20, 5, 20)),
        *((1, 1, 0, 1), (1, 1, 1, 1)),
    ],
)
def test_rates_of_other_queries_end_where_the_constrained_likelihood_says(counts, level) -> None:
    reached = stats.norm.ppf((1 + level) / 2)
    for end, sign in zip(score.unpaired_difference(*map(float, counts), level), (1, -1), strict=True):
        if abs(end) < 1:
            assert of_other_queries(*counts, difference=float(end)) == pytest.approx(sign * reached, abs=2e-4)
    for end, sign in zip(score.unpaired_ratio(*map(float, counts), level), (1, -1), strict=True):
        if counts[0 if sign > 0 else 2]:
            assert of_other_queries(*counts, ratio=float(2**end)) == pytest.approx(sign * reached, abs=2e-4)
        else:
            assert end == -sign * inf


counts = st.integers(0, 12)


@pytest.mark.slow
@given(counts, counts, counts, counts, st.sampled_from([0.8, 0.95, 0.999, 0.9999]))
@settings(max_examples=150, deadline=None)
def test_intervals_of_rates_hold_zero_exactly_where_the_test_does_not_reject(
    both, gained, lost, neither, level
) -> None:
    first = np.repeat([1.0, 1, 0, 0], [both, gained, lost, neither])
    second = np.repeat([1.0, 0, 1, 0], [both, gained, lost, neither])
    if len(first) < 2:
        return
    for found in (means(first, second, level=level), bits(first, second, level=level)):
        if isnan(found.value[0]):
            assert isnan(found.low[0])
            continue
        assert (found.low[0] <= 0 <= found.high[0]) == (found.p[0] > 1 - level)
        assert found.low[0] <= found.value[0] <= found.high[0]


@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=30),
    st.sampled_from(["mean", "bits", "other chance", "ratio"]),
    st.sampled_from([0.9, 0.99]),
)
@settings(max_examples=120, deadline=None)
def test_intervals_of_means_hold_zero_exactly_where_the_test_does_not_reject(pairs, form, level) -> None:
    first, second = (np.array(side) / 10 for side in zip(*pairs, strict=True))
    chance = np.linspace(0.01, 0.2, len(first))
    with np.errstate(all="ignore"):
        if form == "mean":
            found = means(first, second, level=level, draws=500)
        elif form == "ratio":
            sides = [
                Outcome((v[:, None], np.ones((len(v), 1)), v[:, None] * 0), "", EF.aggregate) for v in (first, second)
            ]
            found = paired_difference(*sides, level=level, draws=500)
        else:
            other = chance[::-1] if form == "other chance" else chance
            found = bits(first, second, chance, other, level=level, draws=500)
    if isnan(found.value[0]) or isnan(found.low[0]):
        return
    assert (found.low[0] <= 0 <= found.high[0]) == (found.p[0] > 1 - level)
    assert found.low[0] <= found.value[0] <= found.high[0]


def test_samples_without_any_spread_have_an_interval_that_knows_their_size() -> None:
    alike = means(np.full(60, 0.2), np.full(60, 0.8))
    # 1 − .025^(1/60) of the way to either end of the range, from −.6.
    missed = 1 - 0.025 ** (1 / 60)
    assert alike.low[0] == pytest.approx(-0.6 - missed * 0.4, abs=0.004)
    assert alike.high[0] == pytest.approx(-0.6 + missed * 1.6, abs=0.006)
    five = means(np.ones(5), np.zeros(5))
    assert (five.p[0], five.low[0] <= 0, five.high[0]) == (0.0625, True, 1.0)
    nothing = means(np.full(30, 0.5), np.full(30, 0.5))
    assert nothing.low[0] < 0 < nothing.high[0]


def test_values_without_known_ends_and_without_spread_have_no_interval() -> None:
    sides = [Outcome((np.full((30, 1), value),), "", bounds=None) for value in (3.0, 2.0)]
    found = paired_difference(*sides)
    assert isnan(found.low[0])
    assert found.p[0] < 0.001


def test_infinite_bits_have_an_end_on_the_other_side() -> None:
    none, some = np.zeros(200), np.repeat([1.0, 0], [1, 199])
    lost = bits(none, some)
    assert (lost.value[0], lost.low[0], lost.p[0]) == (-inf, -inf, 1.0)
    assert 0 < lost.high[0] < inf
    won = bits(np.repeat([1.0, 0], [20, 180]), none)
    assert won.value[0] == won.high[0] == inf
    assert won.low[0] > 0
    assert isnan(bits(none, none).low[0])


def test_one_query_and_no_query_have_a_p_value_of_one_and_no_interval() -> None:
    one = means([1.0], [0.0])
    assert (one.p[0], isnan(one.low[0])) == (1.0, True)
    undefined = means([np.nan, np.nan], [1.0, 0.0])
    assert np.isnan([undefined.value[0], undefined.p[0], undefined.low[0]]).all()


def test_many_columns_are_as_each_column_alone() -> None:
    first, second = RNG.random((2, 40, 5))
    first[3, 2] = np.nan
    together = means(first, second)
    for column in range(5):
        alone = means(first[:, [column]], second[:, [column]])
        for name in ("value", "low", "high", "p"):
            assert getattr(together, name)[column] == pytest.approx(getattr(alone, name)[0], rel=1e-12), name


# -- the bound of bounded values ------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (1, 20), (3, 50), (20, 20)])
def test_gaffkes_bound_of_zeros_and_ones_is_clopper_and_pearsons(hits, n) -> None:
    rows = np.repeat([1.0, 0.0], [hits, n - hits])[:, None]
    low, high = bounded.ends(rows, np.zeros(1), np.ones(1), lambda sums: sums[:, 0], 0.95)
    exact = stats.binomtest(hits, n).proportion_ci(0.95, method="exact")
    assert low == pytest.approx(exact.low, abs=0.006)
    assert high == pytest.approx(exact.high, abs=0.008)


def test_gaffkes_bound_holds_the_mean_in_worlds_that_hide_most_of_it() -> None:
    rng = np.random.default_rng(2)
    for rate in (0.02, 0.1, 0.3):
        samples = rng.binomial(1, rate, (400, 30)) * rng.choice([0.2, 1.0], (400, 30))
        held = 0
        for sample in samples:
            low, high = bounded.ends(sample[:, None], np.zeros(1), np.ones(1), lambda sums: sums[:, 0], 0.95)
            held += low <= rate * 0.6 <= high
        assert held / len(samples) >= 0.94


def test_bounds_have_the_same_digits_however_many_draws_are_made_at_a_time(monkeypatch) -> None:
    rows = np.random.default_rng(1).random((30, 1))
    whole = bounded.ends(rows, np.zeros(1), np.ones(1), lambda sums: sums[:, 0], 0.9)
    monkeypatch.setattr(bounded, "_CELLS_AT_ONCE", 777)
    assert bounded.ends(rows, np.zeros(1), np.ones(1), lambda sums: sums[:, 0], 0.9) == pytest.approx(whole, rel=1e-12)


def test_few_differ_counts_queries_beside_the_commonest_value() -> None:
    assert bounded.few_differ(np.array([0.1 + 0.2] * 40 + [0.3] * 40 + [1.0] * 9)[:, None])  # .1 + .2 is .3
    assert not bounded.few_differ(np.array([0.3] * 80 + [1.0] * 10)[:, None])
    rng = np.random.default_rng(3)
    answers = set()
    for _ in range(300):
        times = [rng.integers(1, 40), *rng.integers(0, 9, 2)]
        rows = rng.permutation(np.repeat([[0.0, 1.0], [1.0, 1.0], [0.5, 1.0]], times, axis=0))
        commonest = Counter(map(tuple, rows.tolist())).most_common(1)[0][1]
        expected = len(rows) < 10 or len(rows) - commonest < 10
        assert bounded.few_differ(rows) == expected
        answers.add((expected, len(rows) > 20))
    assert answers == {(True, True), (True, False), (False, True), (False, False)}
    assert isinf(bits(np.zeros(5), np.ones(5)).value[0])


def shown_gap(gaps: np.ndarray, draws: int) -> float:
    return mean_difference(gaps, 0.05, 0.8, draws, len(gaps) - 1)


@pytest.mark.parametrize("n", [6, 17, 60])
def test_the_smallest_difference_has_the_power_asked_for(n: int) -> None:
    gaps = np.random.default_rng(n).gamma(2, size=n)
    found = shown_gap(gaps, 10_000)
    limit = stats.t.ppf(0.975, n - 1)
    assert stats.nct.sf(limit, n - 1, found * np.sqrt(n) / gaps.std(ddof=1)) == pytest.approx(0.8, abs=1e-6)


def test_queries_written_twice_as_clusters_detect_what_they_detect_alone() -> None:
    rng = np.random.default_rng(8)
    alone = [Outcome((rng.beta(2, 3, (25, 1)),), "") for _ in range(2)]
    twice = [Outcome((np.repeat(each.parts[0], 2, axis=0),), "") for each in alone]
    wanted = pytest.approx(sensitivity(*alone, 0.05, 0.8))
    assert sensitivity(*twice, 0.05, 0.8, units=np.repeat(np.arange(25), 2)) == wanted


@pytest.mark.parametrize("form", ["bits", "ratio"])
def test_few_figures_that_differ_have_ends_that_mirror_those_of_the_exchanged_runs(form) -> None:
    rng = np.random.default_rng(2)
    one, other = np.r_[np.full(4, 0.7), np.zeros(30)], np.r_[np.zeros(2), np.full(3, 0.4), np.zeros(29)]
    chance, other_chance = rng.uniform(0.01, 0.02, (2, 34))
    aggregate = BoR.aggregate if form == "bits" else EF.aggregate
    found = bits(one, other, chance, other_chance, aggregate=aggregate)
    back = bits(other, one, other_chance, chance, aggregate=aggregate)
    width = found.high[0] - found.low[0]
    assert found.low[0] < found.value[0] < found.high[0]
    assert (found.low[0], found.high[0]) == pytest.approx((-back.high[0], -back.low[0]), abs=0.05 * width)


def test_no_difference_is_shown_by_too_few_units_or_draws() -> None:
    gaps = np.random.default_rng(0).normal(size=40)
    # Signs of n units give p-values down to 2/2^n; more than sixteen are drawn, with p-values down to 1/(draws + 1).
    assert isinf(shown_gap(gaps[:5], 10_000))
    assert shown_gap(gaps[:6], 10_000) < inf
    assert isinf(shown_gap(gaps[:17], 18))
    assert shown_gap(gaps[:17], 19) < inf
    assert shown_gap(gaps[:16], 18) < inf
    assert isnan(shown_gap(gaps[:1], 10_000))
    assert isnan(shown_gap(np.ones(9), 10_000))


@pytest.mark.parametrize("form", ["mean", "ratio", "bits"])
def test_the_influence_of_a_unit_is_the_derivative_by_its_weight(form) -> None:
    rng = np.random.default_rng(11)
    top, bottom = rng.random(9), np.ones(9) if form == "mean" else rng.random(9) + 0.2

    def figure(weights):
        ratio = (weights @ top) / (weights @ bottom)
        return log2(ratio) if form == "bits" else ratio

    step = 1e-6
    slopes = [
        (figure(1 + step * (np.arange(9) == i)) - figure(1 - step * (np.arange(9) == i))) / (2 * step) for i in range(9)
    ]
    np.testing.assert_allclose(influence(top, bottom, form), 9 * np.array(slopes), atol=1e-8)


@pytest.mark.parametrize("power", [1, 3])
def test_the_interval_for_skewed_differences_solves_halls_transformation(power) -> None:
    gaps = np.linspace(-1, 1, 12) if power == 1 else np.random.default_rng(2).random(12) ** power
    ones, zeros = np.ones(12), np.zeros(12)
    pair = Pair("mean", gaps, ones, zeros, ones, ones, None, value=float(gaps.mean()))
    ends, reach = _skewed(pair, 0.9)[:2], float(stats.t.ppf(0.95, 11))
    error, skewness = gaps.std() / 11**0.5, stats.skew(gaps) / 12**0.5
    for end, expected in zip(ends, (reach, -reach), strict=True):
        t = (gaps.mean() - end) / error
        solved = t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6
        assert solved == pytest.approx(expected, rel=1e-9)
    if power == 1:
        assert ends == pytest.approx(stats.ttest_1samp(gaps, 0).confidence_interval(0.9), rel=1e-9)
