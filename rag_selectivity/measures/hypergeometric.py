"""The exact random baseline: a random draw of K from N passages, R of them relevant.

`scipy.stats.hypergeom` (relative error 1e-9, and it hangs for a large corpus), differences of `gammaln`
(relative error 5e-5 at 8.8 million passages) and binomial coefficients are not accurate enough. If a
success is nearly certain, the ceiling of BoR depends on the last digits of the *miss* probability, so
both probabilities are computed.
"""

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_FEW_FACTORS = 48
_CHUNK = 1 << 20


def random_success(N: ArrayLike, R: ArrayLike, K: ArrayLike, m: int = 1) -> tuple[FloatArray, FloatArray]:
    """P[X ≥ m] and P[X < m] for X ~ Hypergeometric(N, R, K), each to 1e-13 relative error.

    Parameters
    ----------
    N, R, K : array_like of whole numbers, broadcast together
        Corpus size, relevant passages in it, passages drawn; N up to 2**53. The caller must check
        0 ≤ R ≤ N and 0 ≤ K ≤ N.
    m : int
        Hits that make a success, at least 1.

    Returns
    -------
    success, miss : float64 arrays of the broadcast shape
        Both are needed: near 1, a float cannot hold all digits of a probability, but it can hold those of the other.

    Notes
    -----
    For m = 1 the miss probability is exp(Σ log1p(−K/(N−i))), i < R. For larger m the tails are sums
    of terms, each computed from the one before it by their ratio.

    >>> success, miss = random_success(58, 4, [5, 20, 58])
    >>> success.round(3).tolist(), miss.round(3).tolist()
    ([0.31, 0.826, 1.0], [0.69, 0.174, 0.0])
    """
    big, relevant, drawn = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in (N, R, K)))
    shape = big.shape
    triples = np.stack([big.ravel(), relevant.ravel(), drawn.ravel()])
    first, back = distinct_columns(list(triples))
    size, held, taken = triples[:, first]
    if m == 1:
        exponent = _log_none(size, held, taken)
        success, miss = -np.expm1(exponent) + 0.0, np.exp(exponent)
    else:
        success, miss = _at_least(size, held, taken, m)
    return success[back].reshape(shape), miss[back].reshape(shape)


def distinct_columns(columns: Sequence[NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """Where each distinct combination of whole numbers is first, and for every combination its place among these.

    >>> first, back = distinct_columns([np.array([7, 3, 7]), np.array([1, 2, 1])])
    >>> first.tolist(), back.tolist()
    ([1, 0], [1, 0, 1])
    """
    order = np.lexsort(columns[::-1])
    differs = np.ones(len(order), bool)
    differs[1:] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    back = np.empty(len(order), np.int64)
    back[order] = np.cumsum(differs) - 1
    return order[differs], back


def _log_none(N: FloatArray, R: FloatArray, K: FloatArray) -> FloatArray:
    """log P[X = 0], element by element; −inf where R + K > N."""
    # A draw of K that misses R is as likely as a draw of R that misses K: use the form with fewer factors.
    factors, other = np.minimum(R, K), np.maximum(R, K)
    result = np.where(R + K > N, -inf, 0.0)
    few = np.flatnonzero((R + K <= N) & (factors <= _FEW_FACTORS))
    for i in range(int(factors[few].max(initial=0))):
        # All terms have one sign, so that the sum of a few is exact but for its last digits.
        few = few[factors[few] > i]
        result[few] += _log_factor(N[few] - i, other[few])
    many = np.flatnonzero((R + K <= N) & (factors > _FEW_FACTORS))
    if len(many):
        result[many] = _log_none_long(N[many], factors[many], other[many])
    return result


def _log_none_long(N: FloatArray, factors: FloatArray, other: FloatArray) -> FloatArray:
    """Sums over many factors; sums with the same (N, other) and different lengths come from one running sum."""
    result = np.empty(len(N))
    order = np.lexsort((factors, other, N))
    changed = np.flatnonzero((np.diff(N[order]) != 0) | (np.diff(other[order]) != 0)) + 1
    for group in np.split(order, changed):
        size, taken = N[group[0]], other[group[0]]
        total = lost = 0.0
        start = 0
        for position in group:
            stop = int(factors[position])
            while start < stop:
                end = min(stop, start + _CHUNK)
                part = float(np.sum(_log_factor(size - np.arange(start, end, dtype=np.float64), taken)))
                # Neumaier's compensation keeps the rounding error of the running sum in the last digit.
                raised = total + part
                lost += (total - raised) + part if abs(total) >= abs(part) else (part - raised) + total
                total, start = raised, end
            result[position] = total + lost
    return result


def _log_factor(remaining: FloatArray, taken: FloatArray | float) -> FloatArray:
    """log(1 − taken/remaining), accurate for shares near 0 and near 1."""
    share = taken / remaining
    # Above one half, the subtraction inside log1p would lose digits; the difference of the integers is exact.
    return np.where(share < 0.5, np.log1p(-np.minimum(share, 0.5)), np.log((remaining - taken) / remaining))


def _at_least(N: FloatArray, R: FloatArray, K: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    success, miss = np.zeros(len(N)), np.ones(len(N))
    lowest = np.maximum(0, R + K - N)
    certain = lowest >= m
    success[certain], miss[certain] = 1.0, 0.0
    for index in np.flatnonzero(~certain & (m <= R) & (m <= K)):
        success[index], miss[index] = _tails(float(N[index]), float(R[index]), float(K[index]), m)
    return success, miss


def _tails(N: float, R: float, K: float, m: int) -> tuple[float, float]:
    """P[X ≥ m] and P[X < m] if both are possible, summed outwards from the terms at m and m − 1."""
    lowest = max(0.0, R + K - N)
    ups = np.arange(lowest, m)
    ratios = _ratio(N, R, K, ups)
    start = _log_lowest(N, R, K)
    at_cut = np.exp(start) * np.prod(ratios)
    if not 1e-290 < at_cut < inf or start < -690:
        # The terms leave the range of floats: logarithms are used, with an absolute error of about 1e-14.
        at_cut = np.exp(start + np.sum(np.log(ratios)))

    below = at_cut / ratios[-1]
    miss = below * float(1 + np.sum(np.cumprod(1 / ratios[:-1][::-1])))
    if miss < 0.5:
        return 1 - miss, miss
    success = at_cut * _sum_of_products_until_small(N, R, K, np.arange(m, min(R, K)))
    return success, 1 - success


def _log_lowest(N: float, R: float, K: float) -> float:
    """log of the probability of the smallest possible number of hits."""
    if R + K > N:
        # Then all N − R other passages are drawn: none of them is among the N − K that are not drawn.
        R, K = N - R, N - K
    return float(_log_none(np.array([N]), np.array([R]), np.array([K]))[0])


def _ratio(N: float, R: float, K: float, k: FloatArray) -> FloatArray:
    """P[X = k + 1] / P[X = k]."""
    result: FloatArray = ((R - k) * (K - k)) / ((k + 1) * (N - R - K + k + 1))
    return result


def _sum_of_products_until_small(N: float, R: float, K: float, upper: FloatArray) -> float:
    total, term, block = 1.0, 1.0, 256
    for start in range(0, len(upper), block):
        products = term * np.cumprod(_ratio(N, R, K, upper[start : start + block]))
        total += float(np.sum(products))
        term = float(products[-1])
        if term < 1e-18 * total and _ratio(N, R, K, upper[start : start + 1])[0] < 1:
            break
    return total


def log2_of(mean_success: Any, mean_miss: Any) -> Any:
    """log2 of a mean probability, from the tail that holds more digits; never −0.0."""
    with np.errstate(divide="ignore"):
        small = np.log2(mean_success)
        large = np.log1p(-np.minimum(mean_miss, 0.5)) / np.log(2)
    return np.where(mean_miss < 0.5, large, small) + 0.0
