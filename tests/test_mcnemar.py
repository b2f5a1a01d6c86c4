"""McNemar's exact test: against sums over all samples, and its power against simulation."""

from math import comb, log2

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.inference.mcnemar import power, two_sided_p

pytestmark = pytest.mark.inside


def p_by_counting(gains: int, losses: int) -> float:
    """The share of all signs of the differing pairs that are at least as uneven."""
    pairs, uneven = gains + losses, abs(gains - losses)
    return sum(comb(pairs, k) for k in range(pairs + 1) if abs(2 * k - pairs) >= uneven) / 2**pairs


def test_the_p_value_by_counting_all_signs() -> None:
    for gains in range(9):
        for losses in range(9):
            assert float(two_sided_p(gains, losses)) == pytest.approx(p_by_counting(gains, losses), rel=1e-12)


@pytest.mark.parametrize(
    ("n", "gain", "loss", "level"),
    [(30, 0.3, 0.1, 0.05), (30, 0.3, 0.1, 0.05 / 3), (12, 0.6, 0.4, 0.05), (20, 0.5, 0, 0.05), (8, 0.6, 0.1, 2 / 64)],
)
def test_the_power_by_summing_over_all_samples(n, gain, loss, level) -> None:
    expected = 0.0
    for won in range(n + 1):
        for lost in range(n - won + 1):
            if p_by_counting(won, lost) <= level:
                ways = comb(n, won) * comb(n - won, lost)
                expected += ways * gain**won * loss**lost * (1 - gain - loss) ** (n - won - lost)
    assert power(n, gain, loss, level) == pytest.approx(expected, rel=1e-11)


def test_without_a_difference_it_rejects_no_more_than_its_level() -> None:
    for n in (10, 100, 10_000, 1_000_000):
        assert power(n, 0.1, 0.1, 0.05) <= 0.05
    assert power(1_000_000, 0.1, 0.1, 0.05) > 0.049
    assert power(50, 0.0, 0.0, 0.05) == 0.0


def rejected(n: int, gain: float, loss: float, level: float, times: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    won, lost, _ = rng.multinomial(n, [gain, loss, 1 - gain - loss], size=times).T
    return float((two_sided_p(won, lost) <= level).mean())


@pytest.mark.parametrize(
    ("bits", "success", "correlation", "rows"),
    [(0.2, 0.8, 0.0, 3), (0.2, 0.8, 0.6, 3), (0.5, 0.5, 0.5, 9), (1, 0.1, 0.3, 1)],
)
def test_planned_queries_have_their_power(bits, success, correlation, rows) -> None:
    n = rs.queries_needed(bits, success, correlation=correlation, rows=rows)
    other = success * 2**-bits
    both = success * other + correlation * np.sqrt(success * (1 - success) * other * (1 - other))
    shares, level = (success - both, other - both), 0.05 / rows
    assert 0.78 <= rejected(n, *shares, level, 20_000, 1) <= 0.84
    assert power(n - 1, *shares, level) < 0.8
    assert all(power(n + more, *shares, level) >= 0.8 for more in range(60))


def test_a_saw_tooth_does_not_fool_the_plan() -> None:
    # All queries differ, so that the number of them is the test's own and every tooth is whole.
    n = rs.queries_needed(log2(0.7 / 0.3), 0.7, correlation=-1, rows=1)
    enough = [power(k, 0.7, 0.3, 0.05) >= 0.8 for k in range(1, 300)]
    assert n == 300 - enough[::-1].index(False)
    assert any(enough[: n - 1])


def test_a_million_queries_are_planned_exactly() -> None:
    n = rs.queries_needed(0.01, 0.5, rows=1)
    other = 0.5 * 2**-0.01
    assert n > 300_000
    assert 0.78 <= rejected(n, 0.5 * (1 - other), other * 0.5, 0.05, 4000, 2) <= 0.82
