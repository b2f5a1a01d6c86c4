"""The share of a possible lift: its value, its edges, and how often its interval holds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rag_selectivity.inference.share_of_lift import NO_LIFT, share_of_lift

pytestmark = pytest.mark.inside


def answers(rng: np.random.Generator, n: int, rates: tuple[float, float, float]) -> np.ndarray:
    """Right (1) or wrong (0) without passages, with the run's, with the ideal ones; half decided by one coin."""
    own, shared = rng.random((n, 3)), rng.random((n, 1))
    return (np.where(rng.random((n, 3)) < 0.5, shared, own) < np.array(rates)).astype(np.float64).T


def test_the_value_is_the_ratio_of_the_lifts() -> None:
    without, given, ideal = answers(np.random.default_rng(1), 80, (0.2, 0.5, 0.9))
    found = share_of_lift(given, without, ideal, (0.0, 1.0))
    assert found.value == pytest.approx((given - without).mean() / (ideal - without).mean())
    assert found.low < found.value < found.high
    assert found.n == 80


def test_the_scale_of_the_scores_does_not_matter() -> None:
    without, given, ideal = answers(np.random.default_rng(2), 60, (0.2, 0.5, 0.9))
    one = share_of_lift(given, without, ideal, (0.0, 1.0))
    other = share_of_lift(1 + 4 * given, 1 + 4 * without, 1 + 4 * ideal, (1.0, 5.0))
    assert (other.value, other.low, other.high) == pytest.approx((one.value, one.low, one.high))


def test_a_run_that_is_the_ideal_or_nothing_has_a_share_of_one_or_zero() -> None:
    without, _, ideal = answers(np.random.default_rng(3), 100, (0.2, 0.5, 0.9))
    whole, nothing = (share_of_lift(each, without, ideal, (0.0, 1.0)) for each in (ideal, without))
    assert (whole.value, nothing.value) == (1.0, 0.0)
    assert whole.low < 1 < whole.high
    assert nothing.low < 0 < nothing.high


def test_a_query_without_one_of_the_three_is_left_out() -> None:
    without, given, ideal = answers(np.random.default_rng(4), 50, (0.2, 0.5, 0.9))
    whole = share_of_lift(given[5:], without[5:], ideal[5:], (0.0, 1.0))
    given[0] = without[1] = ideal[2:5] = np.nan
    found = share_of_lift(given, without, ideal, (0.0, 1.0))
    assert (found.n, found.value, found.low) == (45, whole.value, whole.low)


def test_clusters_of_copies_tell_no_more_than_one_of_each() -> None:
    without, given, ideal = answers(np.random.default_rng(5), 40, (0.2, 0.5, 0.9))
    alone = share_of_lift(given, without, ideal, (0.0, 1.0))
    copied = [np.repeat(each, 3) for each in (given, without, ideal)]
    units = np.repeat(np.arange(40), 3)
    grouped = share_of_lift(*copied, (0.0, 1.0), units=units)
    assert (grouped.value, grouped.low, grouped.high) == pytest.approx((alone.value, alone.low, alone.high))
    without_groups = share_of_lift(*copied, (0.0, 1.0))
    assert without_groups.high - without_groups.low < grouped.high - grouped.low


@pytest.mark.parametrize(("n", "reason"), [(0, "fewer than two"), (1, "fewer than two"), (3, NO_LIFT)])
def test_few_queries_have_no_share(n: int, reason: str) -> None:
    found = share_of_lift(np.ones(n), np.zeros(n), np.ones(n), (0.0, 1.0))
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert str(found.reason).startswith(reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rates", "n"), [((0.25, 0.6, 0.9), 40), ((0.02, 0.5, 0.98), 20), ((0.3, 0.3, 0.9), 40), ((0.6, 0.65, 0.75), 60)]
)
def test_the_interval_holds_the_truth(rates: tuple[float, float, float], n: int) -> None:
    rng, (closed, run, ideal_rate) = np.random.default_rng(7), rates
    truth = (run - closed) / (ideal_rate - closed)
    found = []
    for _ in range(120):
        without, given, ideal = answers(rng, n, rates)
        found.append(share_of_lift(given, without, ideal, (0.0, 1.0)))
    known = [each for each in found if not math.isnan(each.low)]
    # .95 less three standard errors of 120 samples.
    assert sum(each.low <= truth <= each.high for each in known) >= (0.95 - 0.06) * len(known)
