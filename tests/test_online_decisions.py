"""Decisions on preferences and arms: against scipy, statsmodels, exact enumeration and simulation."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats
from statsmodels.stats import proportion

from rag_selectivity import InputError
from rag_selectivity.inference import always_valid, mcnemar, sign_share, two_arms
from rag_selectivity.online import Experiment, Metric, TwoArms, compare_arms, preference

pytestmark = pytest.mark.inside

# -- preferences --------------------------------------------------------------------------------------


def votes(wins: int, losses: int, ties: int = 0, **more) -> list[dict]:
    team = {"d1": "a", "d2": "b"}
    return [
        {"query": "q", "team": team, "credit": credit, **more}
        for credit, count in (({"d2": 1}, wins), ({"d1": 1}, losses), ({}, ties))
        for _ in range(count)
    ]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_is_scipys_and_agrees_with_its_interval(wins, losses) -> None:
    found = sign_share.exact(wins, losses, 0.95)
    if wins + losses:
        reference = stats.binomtest(wins, wins + losses)
        assert found.p == pytest.approx(reference.pvalue, rel=1e-9)
        interval = reference.proportion_ci(0.95, "exact")
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    for each in (found, sign_share.any_time(wins, losses, 0.95)):
        assert (each.p <= 0.05) == (not each.low <= 0.5 <= each.high)


def test_a_preference_counts_wins_of_the_candidate() -> None:
    found = preference(votes(30, 10, 5))
    assert (found.baseline, found.candidate, found.wins, found.losses, found.ties) == ("a", "b", 30, 10, 5)
    assert found.verdict == "better"
    turned = preference(votes(30, 10, 5), baseline="b")
    assert (turned.wins, turned.losses, turned.verdict, turned.p) == (10, 30, "worse", found.p)
    assert preference(votes(6, 5)).verdict == "not yet"
    assert preference(votes(5000, 5000), margin=0.05).verdict == "equal within the margin"
    assert preference([{**row, "systems": ["b", "a"]} for row in votes(3, 1)]).wins == 1
    assert (preference(votes(0, 0, 3) + votes(1, 0)[:1]).p, preference(votes(0, 0, 3)).verdict) == (1.0, "not yet")


def test_the_units_that_are_still_needed() -> None:
    found = preference(votes(30, 20, 50), detect=0.6)
    assert (found.needed, found.still_needed) == (408, 308)
    assert mcnemar.power(408, 0.3, 0.2, 0.05) >= 0.8 > mcnemar.power(400, 0.3, 0.2, 0.05)
    rng = np.random.default_rng(15)
    found = preference(votes(30, 20, 50), detect=0.6, sequential=True)
    shown = 0
    for _ in range(500):
        differ = rng.binomial(found.needed, 0.5)
        wins = rng.binomial(differ, 0.6)
        shown += sign_share.any_time(wins, differ - wins, 0.95).low > 0.5
    assert 0.74 < shown / 500 < 0.86
    with pytest.raises(InputError, match="detect must be a share of wins"):
        preference(votes(1, 1), detect=0.5)


def test_a_user_has_one_vote() -> None:
    rows = [{**r, "user": "u1"} for r in votes(500, 0)] + [{**r, "user": f"v{i}"} for i, r in enumerate(votes(0, 5))]
    found = preference(rows)
    assert (found.unit, found.wins, found.losses, found.impressions) == ("user", 1, 5, 505)
    assert preference(rows, unit="impression").verdict == "better"
    # Looked at any time, the first impression that is no tie casts it, since a vote that turns is a further chance.
    turned = [{**row, "user": "u1"} for row in votes(0, 0, 1) + votes(1, 2)]
    assert (preference(turned).losses, preference(turned, sequential=True).wins) == (1, 1)


# -- e-processes --------------------------------------------------------------------------------------


def test_the_mixture_is_the_integral() -> None:
    cases = ((3.0, 5.0, 2.0), (-2.0, 10.0, 5.0), (40.0, 200.0, 8.0), (-4.5, 3.0, 2.0), (-4.2, 3.0, 2.0))
    for surplus, spread, rho in cases:

        def money(x: float, surplus: float = surplus, spread: float = spread, rho: float = rho) -> float:
            density = stats.gamma.pdf(1 - x, rho, scale=1 / rho) / stats.gamma.cdf(1, rho, scale=1 / rho)
            return math.exp(x * surplus + (math.log1p(-x) + x) * spread) * density

        value, _ = integrate.quad(money, 0, 1, points=[0.01, 0.1, 0.3])
        assert always_valid.log_gamma_mixture(surplus, spread, rho) == pytest.approx(math.log(value), abs=1e-6)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=300), st.integers(1, 20))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_p_and_interval_agree_and_parts_give_the_whole(values, parts) -> None:
    array = np.array(values)
    whole, in_parts = always_valid.MeanEvidence(1.0), always_valid.MeanEvidence(1.0)
    whole.add(array)
    for part in np.array_split(array, parts):
        in_parts.add(part)
    low, high = whole.interval(0.95)
    assert (whole.p() <= 0.05) == (not low <= 0 <= high)
    assert low - 1e-9 <= whole.mean <= high + 1e-9
    assert in_parts.p() == pytest.approx(whole.p(), rel=1e-9)
    assert in_parts.interval(0.95) == pytest.approx((low, high), abs=1e-9)


def rejections(make, looks: int, n: int, trials: int, rng: np.random.Generator) -> float:
    """How often a p-value of at most 5 % was seen at any of the looks."""
    hits = 0
    for _ in range(trials):
        arms, rejected = make(), False
        for _ in range(looks):
            arms.add(*(rng.random((2, n // looks // 2)) < 0.2))
            if arms.p() <= 0.05:
                rejected = True
                break
        hits += rejected
    return hits / trials


def test_looking_often_makes_no_false_winners_and_the_fixed_test_does() -> None:
    rng = np.random.default_rng(1)
    limit = 0.05 + 2 * (0.05 * 0.95 / 100) ** 0.5
    assert rejections(lambda: TwoArms(Metric("x")), 20, 4000, 100, rng) <= limit
    assert rejections(lambda: TwoArms(Metric("x", "mean")), 20, 4000, 100, rng) <= limit
    assert rejections(lambda: TwoArms(Metric("x"), sequential=False), 20, 4000, 100, rng) > limit


@pytest.mark.slow
def test_as_many_values_as_are_said_to_be_needed_give_the_power() -> None:
    rng = np.random.default_rng(3)
    for kind, sequential in (("rate", True), ("mean", True), ("rate", False)):
        first = compare_arms(
            rng.random(4000) < 0.2, rng.random(4000) < 0.2, kind=kind, detect=0.05, sequential=sequential
        )
        n = first.needed // 2
        shown = 0
        for _ in range(300):
            a, b = rng.random(n) < 0.175, rng.random(n) < 0.225
            shown += compare_arms(a, b, kind=kind, sequential=sequential).verdict == "better"
        assert 0.72 < shown / 300 < 0.9, (kind, sequential)


# -- one look -----------------------------------------------------------------------------------------


def score_p(hits: int, n: int, other: int, other_n: int, delta: float) -> float:
    """The p-value of the score test of a difference, the likeliest rates under it found numerically."""
    lowest, highest = max(0.0, -delta), min(1.0, 1.0 - delta)
    rate = optimize.minimize_scalar(
        lambda p: -stats.binom.logpmf(hits, n, p) - stats.binom.logpmf(other, other_n, p + delta),
        bounds=(lowest + 1e-12, highest - 1e-12),
        method="bounded",
    ).x
    total = n + other_n
    variance = (rate * (1 - rate) / n + (rate + delta) * (1 - rate - delta) / other_n) * total / (total - 1)
    return float(2 * stats.norm.sf(abs(other / other_n - hits / n - delta) / math.sqrt(variance)))


@given(st.integers(10, 90), st.integers(10, 90), st.data())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_rates_are_the_score_test_and_its_inversion(n, other_n, data) -> None:
    hits, other = data.draw(st.integers(0, n)), data.draw(st.integers(0, other_n))
    found = two_arms.rates(hits, n, other, other_n, 0.95)
    assert (found.p <= 0.05) == (not found.low <= 0 <= found.high)
    if not two_arms.are_few(hits, n, other, other_n):
        reference = proportion.test_proportions_2indep(other, other_n, hits, n, method="score", correction=True)
        assert found.p == pytest.approx(reference.pvalue, rel=1e-6)
        for end in (found.low, found.high) if 2 <= hits <= n - 2 and 2 <= other <= other_n - 2 else ():
            assert score_p(hits, n, other, other_n, end) == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize(("n", "other_n"), [(1, 5), (1, 20), (2, 30), (5, 5), (18, 18), (25, 25)])
def test_small_arms_that_are_equal_are_rarely_told_apart(n, other_n) -> None:
    """The exact rate of false verdicts, over all outcomes, at the share of hits where it is largest."""
    rates, told = np.linspace(0.01, 0.99, 99), np.zeros(99)
    for x in range(n + 1):
        for y in range(other_n + 1):
            if compare_arms(np.arange(n) < x, np.arange(other_n) < y, sequential=False).verdict != "not yet":
                told += stats.binom.pmf(x, n, rates) * stats.binom.pmf(y, other_n, rates)
    assert told.max() <= 0.06


def test_means_are_scipys_welch_test() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(0, 1, 40), rng.normal(0.3, 2, 55)
    found = compare_arms(a, b, kind="mean", sequential=False)
    reference = stats.ttest_ind(b, a, equal_var=False)
    interval = reference.confidence_interval(0.95)
    assert (found.p, found.low, found.high) == pytest.approx((reference.pvalue, interval.low, interval.high))
    assert found.difference == pytest.approx(b.mean() - a.mean())


def test_means_of_skewed_values_in_unequal_arms_get_no_verdict() -> None:
    """Welch's test tells these equal arms apart in .30 and in .15 of the tests."""
    rng, options = np.random.default_rng(16), {"kind": "mean", "sequential": False, "planned": (9, 1)}
    for draw in (lambda n: (rng.random(n) < 0.03) * rng.random(n), lambda n: rng.lognormal(0, 1.5, n)):
        found = [compare_arms(draw(180), draw(20), **options) for _ in range(200)]
        assert sum(row.verdict != "not yet" for row in found) <= 0.06 * 200
        assert "No interval: arms of 180 and 20 are too unequal" in found[0].notes[1]
    assert compare_arms(rng.normal(0, 1, 180), rng.normal(2, 1, 20), **options).verdict == "better"


def test_cuped_is_the_regression_and_narrows_the_interval() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(5)
    x = rng.random(4000)
    arm = np.arange(4000) % 2
    y = np.clip(0.7 * x + 0.3 * rng.random(4000) + 0.01 * arm, 0, 1)
    sides = [(y[arm == side], x[arm == side]) for side in (0, 1)]
    found = compare_arms(sides[0][0], sides[1][0], kind="mean", sequential=False, covariate=(sides[0][1], sides[1][1]))
    fitted = sm.OLS(y, np.column_stack([np.ones(4000), arm, x])).fit(cov_type="HC1")
    assert found.difference == pytest.approx(fitted.params[1], abs=1e-9)
    assert found.slope == pytest.approx(fitted.params[2], abs=1e-9)
    assert found.high - found.low == pytest.approx(np.diff(fitted.conf_int()[1])[0], rel=0.02)
    sequential = [
        compare_arms(sides[0][0], sides[1][0], kind="mean", covariate=covariate)
        for covariate in (None, (sides[0][1], sides[1][1]))
    ]
    assert sequential[1].high - sequential[1].low < 0.6 * (sequential[0].high - sequential[0].low)
    assert sequential[1].low < 0.01 < sequential[1].high


# -- faults and verdicts ------------------------------------------------------------------------------


def test_verdicts() -> None:
    rng = np.random.default_rng(6)
    low, high = rng.random(40_000) < 0.2, rng.random(40_000) < 0.25
    same = rng.random(40_000) < 0.2
    assert compare_arms(low, high).verdict == "better"
    assert compare_arms(high, low).verdict == "worse"
    assert compare_arms(low, high, higher_is_better=False).verdict == "worse"
    assert compare_arms(low, same, margin=0.03).verdict == "equal within the margin"
    assert compare_arms(low[:100], same[:100], margin=0.03).verdict == "not yet"
    found = compare_arms([1], [0])
    assert (found.verdict, found.p, found.low, found.high) == ("not yet", 1.0, -1.0, 1.0)
    same_values = compare_arms([0.5] * 10, [0.5] * 10, kind="mean", sequential=False)
    assert (same_values.verdict, math.isnan(same_values.p)) == ("not yet", True)
    assert same_values.to_dict()["p"] is None


def test_unequal_traffic_is_refused_or_planned() -> None:
    rng = np.random.default_rng(7)
    a, b = rng.random(6000) < 0.2, rng.random(4000) < 0.25
    for sequential in (True, False):
        with pytest.raises(InputError, match=r"60.0% and 40.0%, but 50.0% and 50.0% were planned"):
            compare_arms(a, b, sequential=sequential)
    planned = compare_arms(a, b, planned=(60, 40))
    assert planned.verdict == "better"
    assert planned.sample_ratio_p == 1.0
    # 98 of 99 values of an arm must not wait for a partner, nor be left out of what is still needed.
    rare = compare_arms(np.arange(9900) % 2, np.arange(100) % 2, planned=(99, 1), detect=0.1)
    assert (rare.notes, rare.needed % 100, rare.needed > 20_000) == ((), 0, True)
    assert compare_arms(a[:100], b[:110]).sample_ratio_p > 0.1
    assert "wait for a partner" in compare_arms(a[:30], b[:20]).notes[0]


# -- experiments --------------------------------------------------------------------------------------


def rows_of(rng: np.random.Generator, n: int, lift: float) -> list[dict]:
    return [
        {
            "arm": "ab"[i % 2],
            "user": f"u{i}",
            "cited": int(rng.random() < 0.3 + lift * (i % 2)),
            "thumb": int(rng.random() < 0.1),
            "ms": float(rng.random()),
        }
        for i in range(n)
    ]


def test_an_experiment_is_the_comparisons_with_holm() -> None:
    rows = rows_of(np.random.default_rng(9), 8000, 0.06)
    guardrail = Metric("ms", "mean", higher_is_better=False, margin=0.1, guardrail=True)
    metrics = [Metric("cited"), Metric("thumb"), guardrail]
    test = Experiment(metrics)
    for row in rows:
        test.add(row)
    decided = test.decide(detect={"thumb": 0.02})
    alone = {
        name: compare_arms(*([row[name] for row in rows if row["arm"] == arm] for arm in "ab")).p
        for name in ("cited", "thumb")
    }
    assert [row.p for row in decided.metrics] == pytest.approx(list(alone.values()))
    assert decided.p_adjusted[0] == pytest.approx(min(1, 2 * min(alone.values())))
    assert [row.level for row in decided.metrics] == pytest.approx([0.975, 0.95])
    assert (decided.verdict, decided.guardrails[0].verdict) == ("better", "kept")
    assert decided.metrics[1].still_needed > 0
    for row in decided.metrics:
        assert (row.p <= 1 - row.level) == (not row.low <= 0 <= row.high)
    assert "better:" in decided.to_text()
    assert len(decided.to_rows()) == 3


@pytest.mark.parametrize("sequential", [True, False])
def test_rows_of_one_user_are_one_value(sequential) -> None:
    """Arms are equal; row by row they are told apart in 37 of these 60 worlds at one look, in 22 at any."""
    shown = 0
    for seed in range(60):
        rng, test = np.random.default_rng(seed), Experiment([Metric("cited")], sequential=sequential)
        outcomes = rng.random((40, 25)) < rng.beta(0.5, 0.5, (40, 1))
        for (user, _), cited in np.ndenumerate(outcomes):
            test.add({"arm": "ab"[user % 2], "user": f"u{user}", "cited": cited})
        decided = test.decide()
        shown += decided.verdict != "not yet"
    assert shown <= 6
    values = outcomes[:, 0] if sequential else outcomes.mean(axis=1)
    found = decided.metrics[0]
    assert (found.n_a, found.mean_a, found.mean_b) == pytest.approx((20, values[::2].mean(), values[1::2].mean()))
    assert "40 users, 1,000 rows: each user counts once, with" in decided.to_text()
    for row, fault in (({"arm": "b", "user": "u0"}, "is in arm 'b', and was in 'a'"), ({"arm": "b"}, "names its user")):
        with pytest.raises(InputError, match=fault):
            test.add({**row, "cited": 1})


def test_a_broken_guardrail_and_one_that_is_open() -> None:
    for shift, expected in ((0.2, "worse"), (0.05, "not yet")):
        test = Experiment([Metric("cited"), Metric("ms", "mean", higher_is_better=False, margin=0.05, guardrail=True)])
        for row in rows_of(np.random.default_rng(10), 6000, 0.1):
            test.add({**row, "ms": 0.5 * row["ms"] + shift * (row["arm"] == "b")})
        assert test.decide().verdict == expected


def test_missing_values_are_counted_and_lopsided_ones_refused() -> None:
    rows = rows_of(np.random.default_rng(12), 4000, 0.0)
    test = Experiment([Metric("cited")])
    for i, row in enumerate(rows):
        test.add({**row, "cited": None if i % 40 < 2 else row["cited"]})
    decided = test.decide()
    assert decided.missing == {"cited": (100, 100)}
    assert decided.notes[0].startswith("200 values missing")
    lopsided = Experiment([Metric("cited")])
    for i, row in enumerate(rows):
        lopsided.add({**row, "cited": None if i % 4 == 1 else row["cited"]})
    with pytest.raises(InputError, match="values are lost in one arm"):
        lopsided.decide()
    with pytest.raises(InputError, match="arm 'c' is neither 'a' nor 'b'"):
        lopsided.add({"arm": "c", "cited": 1})
