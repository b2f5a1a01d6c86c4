"""The exact baseline against exact fractions and 60-digit arithmetic."""

from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_selectivity.measures.hypergeometric import log2_of, random_success

pytestmark = pytest.mark.inside

TOLERANCE = 1e-13


def exact_tails(N: int, R: int, K: int, m: int) -> tuple[Fraction, Fraction]:
    total = comb(N, K)
    miss = Fraction(sum(comb(R, k) * comb(N - R, K - k) for k in range(min(m, K + 1, R + 1)) if K - k <= N - R), total)
    return 1 - miss, miss


def relative_error(found: float, exact: Fraction | mpmath.mpf) -> float:
    if exact == 0:
        return abs(found)
    if isinstance(exact, Fraction):
        return float(abs(Fraction(found) - exact) / exact)
    return float(abs(mpmath.mpf(found) - exact) / exact)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_both_tails_equal_exact_fractions(data: st.DataObject) -> None:
    N = data.draw(st.integers(1, 300))
    R = data.draw(st.integers(0, N))
    K = data.draw(st.integers(0, N))
    m = data.draw(st.integers(1, 20))
    success, miss = random_success(N, R, K, m)
    exact_success, exact_miss = exact_tails(N, R, K, m)
    for found, exact in ((float(success), exact_success), (float(miss), exact_miss)):
        if exact > Fraction(1, 10**40):
            assert relative_error(found, exact) <= TOLERANCE, (N, R, K, m)


def mpmath_tails(N: int, R: int, K: int, m: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Tails from log-factorials at 60 digits beyond what they cancel."""
    with mpmath.workdps(90):

        def log_comb(n: int, k: int) -> mpmath.mpf:
            return mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)

        def term(k: int) -> mpmath.mpf:
            if k > R or k > K or K - k > N - R:
                return mpmath.mpf(0)
            return mpmath.exp(log_comb(R, k) + log_comb(N - R, K - k) - log_comb(N, K))

        miss = mpmath.fsum(term(k) for k in range(m))
        if miss > mpmath.mpf(10) ** -30 and 1 - miss > mpmath.mpf(10) ** -25:
            return 1 - miss, miss
        # Fewer hits than this cannot be: there are not so many other passages.
        success, k = mpmath.mpf(0), max(m, K - (N - R))
        t = term(k) if k <= min(R, K) else mpmath.mpf(0)
        while t > success * mpmath.mpf(10) ** -30:
            success += t
            t *= mpmath.mpf((R - k) * (K - k)) / ((k + 1) * (N - R - K + k + 1))
            k += 1
        return success, miss


def both_tails(N: int, R: int, K: int, m: int) -> tuple:
    """The two tails, which are those of mpmath wherever a float can tell."""
    success, miss = random_success(N, R, K, m)
    exact_success, exact_miss = mpmath_tails(N, R, K, m)
    if exact_success > mpmath.mpf(10) ** -40:
        assert relative_error(float(success), exact_success) <= TOLERANCE
    if exact_miss > mpmath.mpf(10) ** -18:
        assert relative_error(float(miss), exact_miss) <= TOLERANCE
    return success, miss


@pytest.mark.parametrize("m", [1, 2, 3, 7, 20])
@pytest.mark.parametrize(
    ("N", "R", "K"),
    [
        (10**12, 1, 1),
        (10**12, 10**6, 10**6),
        (10**12, 40, 10**6),
        (8_841_823, 1, 1000),
        (8_841_823, 500, 1000),
        (8_841_823, 30_000, 1000),
        (10**6, 999_000, 30),
        (10**6, 25, 999_990),
        (10**6, 10**6 - 30, 10**6 - 5),
        (11_314, 572, 100),
        (10**9, 10**6, 30_000),
        (5_000_000, 10**6, 190),
        (2 * 10**6, 10**6, 58),
        (10**7, 10**5, 4_000),
    ],
)
def test_both_tails_at_corpus_size(N: int, R: int, K: int, m: int) -> None:
    both_tails(N, R, K, m)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_both_tails_over_the_whole_range(data: st.DataObject) -> None:
    N = data.draw(st.integers(10, 10**12))
    R = data.draw(st.integers(1, min(N, 10**6)))
    K = data.draw(st.integers(1, min(N, 10**6)))
    assert np.isfinite(both_tails(N, R, K, data.draw(st.integers(1, 20)))).all()


@pytest.mark.parametrize(
    ("N", "R", "K"),
    [
        (58, 4, 5),
        (8_841_823, 1, 1000),
        (11_314, 572, 10),
        (11_314, 572, 100),
        (10**6, 10**5, 380),
        (10**12, 10**6, 10**6),
    ],
)
def test_the_ceiling_keeps_its_digits_next_to_certainty(N: int, R: int, K: int) -> None:
    success, miss = random_success(N, R, K)
    found = -float(log2_of(success, miss))
    exact_success, exact_miss = mpmath_tails(N, R, K, 1)
    with mpmath.workdps(60):
        exact = -(mpmath.log1p(-exact_miss) if exact_miss < 0.5 else mpmath.log(exact_success)) / mpmath.log(2)
    assert relative_error(found, exact) <= TOLERANCE


@pytest.mark.parametrize("m", [1, 2, 5])
def test_edges_are_exact(m: int) -> None:
    assert [float(tail) for tail in random_success(100, 0, 10, m)] == [0.0, 1.0]
    assert [float(tail) for tail in random_success(100, 10, 100, m)] == [1.0, 0.0]
    assert [float(tail) for tail in random_success(100, 10, 0, m)] == [0.0, 1.0]
    assert float(random_success(100, 60, 50, m)[0]) == pytest.approx(1.0)
    assert [float(tail) for tail in random_success(100, 60, 40 + m, m)] == [1.0, 0.0]
    assert [float(tail) for tail in random_success(100, m - 1, 50, m)] == [0.0, 1.0]


def test_shapes_broadcast_and_depths_agree_with_single_values() -> None:
    N, R, K = np.array([[5000], [9000]]), np.array([[572], [60]]), np.arange(1, 1001)
    success, miss = random_success(N, R, K)
    assert success.shape == miss.shape == (2, 1000)
    for i, j in ((0, 0), (0, 571), (0, 999), (1, 47), (1, 48), (1, 999)):
        alone = random_success(N[i, 0], R[i, 0], K[j])
        assert relative_error(success[i, j], Fraction(float(alone[0]))) <= TOLERANCE
        assert relative_error(miss[i, j], Fraction(float(alone[1]))) <= TOLERANCE
    assert (np.diff(success) >= 0).all()
    assert (np.diff(miss) <= 0).all()
