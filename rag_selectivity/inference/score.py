"""Score intervals of the difference and the ratio of two rates, on the same queries and on different queries.

A score interval contains every difference (or ratio) that a score test would not reject; the test computes its variance
under that difference. Its coverage is better than that of Wald's interval and of the bootstrap with few queries, and
for rates near 0 and 1.
"""

from collections.abc import Callable

import numpy as np

from rag_selectivity.measures.base import FloatArray

Numbers = FloatArray | float

_HALVINGS = 80
#: Ratios beyond 2**±_WIDEST are not searched: the end of the interval is then 0 or infinity.
_WIDEST = 60.0


def paired_difference(gained: Numbers, lost: Numbers, n: Numbers, level: float) -> tuple[FloatArray, FloatArray]:
    """Tango's interval of p1 − p2, two success rates over the same n queries.

    Parameters
    ----------
    gained, lost : float64[…]
        Queries in which only the first succeeded, and in which only the second did.
    n : float64[…]
        The number of queries.
    level : float

    Returns
    -------
    low, high : float64[…], from −1 to 1

    References
    ----------
    Tango 1998, Equivalence test and confidence interval for the difference in proportions for the paired-sample design.

    >>> [end.round(4).tolist() for end in paired_difference(np.array([9.0]), np.array([1.0]), np.array([75.0]), 0.95)]
    [[0.03], [0.202]]
    """
    gained, lost, n = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (gained, lost, n)))
    difference = (gained - lost) / n

    def score(delta: FloatArray) -> FloatArray:
        b = -gained - lost + (2 * n - gained + lost) * delta
        c = -lost * delta * (1 - delta)
        rate = (np.sqrt(np.maximum(b * b - 8 * n * c, 0)) - b) / (4 * n)
        variance = n * np.maximum(2 * rate + delta * (1 - delta), 0)
        return _studentized(gained - lost - n * delta, variance)

    return _ends(score, difference, level, -1.0, 1.0)


def paired_ratio(
    both: Numbers, gained: Numbers, lost: Numbers, n: Numbers, level: float
) -> tuple[FloatArray, FloatArray]:
    """The score interval of log2(p1 / p2), two success rates over the same n queries.

    An end is −∞ or ∞ if the counts give no bound on that side; both are if neither run has a success.

    Parameters
    ----------
    both, gained, lost : float64[…]
        Queries in which both succeeded, in which only the first did, and in which only the second did.
    n : float64[…]
        The number of queries.
    level : float

    References
    ----------
    Nam and Blackwelder 2002; Tang, Tang and Chan 2003 (the constrained estimate in closed form).
    """
    both, gained, lost, n = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (both, gained, lost, n)))
    first, second, some = both + gained, both + lost, both + gained + lost

    def score(bits: FloatArray) -> FloatArray:
        ratio = np.exp2(bits)
        b = second * ratio**2 - (first + 2 * lost)
        c = lost * (1 - ratio) * some / n
        rate = (np.sqrt(np.maximum(b * b - 4 * n * (1 + ratio) * c, 0)) - b) / (2 * n * (1 + ratio))
        variance = n * np.maximum((1 + ratio) * rate + (ratio - 1) * some / n, 0)
        return _studentized(first - ratio * second, variance)

    return _ends_of_bits(score, first, second, level)


def unpaired_difference(
    hits: Numbers, n: Numbers, other_hits: Numbers, other_n: Numbers, level: float
) -> tuple[FloatArray, FloatArray]:
    """Miettinen and Nurminen's interval of p1 − p2, two success rates over different queries.

    References
    ----------
    Miettinen and Nurminen 1985, Comparative analysis of two rates (their factor n/(n−1) has no effect at n = 1).
    """
    x1, n1, x2, n2 = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (hits, n, other_hits, other_n)))
    total = n1 + n2

    def score(delta: FloatArray) -> FloatArray:
        # The constrained rate under p1 − p2 = delta is a root of a cubic, here in its trigonometric form.
        a = total
        b = (n1 + 2 * n2) * delta - total - (x1 + x2)
        c = (n2 * delta - total - 2 * x2) * delta + x1 + x2
        d = x2 * delta * (1 - delta)
        v = (b / (3 * a)) ** 3 - b * c / (6 * a * a) + d / (2 * a)
        u = np.copysign(np.sqrt(np.maximum((b / (3 * a)) ** 2 - c / (3 * a), 0)), v)
        with np.errstate(invalid="ignore", divide="ignore"):
            angle = (np.pi + np.arccos(np.clip(np.where(u != 0, v / u**3, 0), -1, 1))) / 3
        p2 = np.clip(2 * u * np.cos(angle) - b / (3 * a), 0, 1)
        p1 = np.clip(p2 + delta, 0, 1)
        variance = (p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2) * total / np.maximum(total - 1, 1)
        return _studentized(x1 / n1 - x2 / n2 - delta, variance)

    return _ends(score, x1 / n1 - x2 / n2, level, -1.0, 1.0)


def unpaired_ratio(
    hits: Numbers, n: Numbers, other_hits: Numbers, other_n: Numbers, level: float
) -> tuple[FloatArray, FloatArray]:
    """Koopman's interval of log2(p1 / p2), two success rates over different queries; ±∞ as in `paired_ratio`.

    References
    ----------
    Koopman 1984, Confidence intervals for the ratio of two binomial proportions.
    """
    x1, n1, x2, n2 = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (hits, n, other_hits, other_n)))

    def score(bits: FloatArray) -> FloatArray:
        ratio = np.exp2(bits)
        a = (n1 + n2) * ratio
        b = n1 * ratio + x1 + n2 + x2 * ratio
        p2 = (b - np.sqrt(np.maximum(b * b - 4 * a * (x1 + x2), 0))) / (2 * a)
        p1 = np.clip(ratio * p2, 0, 1)
        variance = p1 * (1 - p1) / n1 + ratio**2 * p2 * (1 - p2) / n2
        return _studentized(x1 / n1 - ratio * x2 / n2, variance)

    return _ends_of_bits(score, x1 / n1, x2 / n2, level)


def _studentized(distance: FloatArray, variance: FloatArray) -> FloatArray:
    """distance / √variance; if the variance is 0: ±∞ for a distance, 0 without one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(distance == 0, 0.0, distance / np.sqrt(variance))


def _ends(
    score: Callable[[FloatArray], FloatArray], inside: FloatArray, level: float, lowest: float, highest: float
) -> tuple[FloatArray, FloatArray]:
    """Where the decreasing score crosses the two critical values, both by bisection between a point inside and an end.

    If the test does not reject an end of the range, this is the end of the interval.
    """
    from scipy.special import ndtri

    reach = float(ndtri((1 + level) / 2))
    sign = np.reshape((1.0, -1.0), (2, *(1,) * inside.ndim))
    inside = np.stack([inside, inside])
    outside = np.where(sign > 0, lowest, highest) + np.zeros_like(inside)
    with np.errstate(invalid="ignore", divide="ignore"):
        open_end = np.abs(score(outside)) <= reach
        for _ in range(_HALVINGS):
            middle = (outside + inside) / 2
            rejected = sign * score(middle) > reach
            outside, inside = np.where(rejected, middle, outside), np.where(rejected, inside, middle)
    low, high = np.where(open_end, outside, inside)
    return low, high


def _ends_of_bits(
    score: Callable[[FloatArray], FloatArray], first: FloatArray, second: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """As `_ends`, for a logarithm that may be infinite."""
    known = (first > 0) & (second > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = np.where(known, np.log2(first / second), np.where(first > 0, _WIDEST, -_WIDEST))
    low, high = _ends(score, middle, level, -_WIDEST, _WIDEST)
    low = np.where(first == 0, -np.inf, low)
    high = np.where(second == 0, np.inf, high)
    return np.where(low <= -_WIDEST + 1, -np.inf, low), np.where(high >= _WIDEST - 1, np.inf, high)
