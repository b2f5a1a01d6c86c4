"""Bounds that need no resampling: of success rates, and of samples with little or no spread."""

import numpy as np

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

#: Halvings to the last digit.
_STEPS = 60
#: In place of 0 where a function needs more; its result is not used.
_LEAST = 1e-300
Numbers = FloatArray | IntArray | float


def mid_p_rate(successes: FloatArray, trials: IntArray, share: FloatArray) -> FloatArray:
    """The rate at which P[fewer successes] + P[as many]/2 is the given share (Lancaster 1961).

    float64[shares, columns] for successes and trials of several columns and shares of the shape [shares, 1]. By
    bisection between Clopper and Pearson's rates, which are on both sides of it.
    """
    from scipy.special import betainc, betaincinv

    inner = (successes > 0) & (successes < trials)
    a, b = np.where(inner, successes, 1), np.where(inner, trials - successes, 1)
    low, high = betaincinv(a, b + 1, 1 - share), betaincinv(a + 1, b, 1 - share)
    for _ in range(_STEPS):
        rate = (low + high) / 2
        above = (betainc(a, b + 1, rate) + betainc(a + 1, b, rate)) / 2 < 1 - share
        low, high = np.where(above, rate, low), np.where(above, high, rate)
    return np.where(inner, low, np.where(successes > 0, 1.0, 0.0))


def clopper_pearson(successes: Numbers, trials: Numbers, tail: float = 0.025) -> tuple[FloatArray, FloatArray]:
    """The rates at which as many successes or more, and as many or fewer, have the probability `tail`.

    The successes may be a sum of any values from 0 to 1, and the trials an effective number: of all values with the
    same mean, zeros and ones have the largest spread. By default they are the ends of a 95% interval.

    References
    ----------
    Clopper and Pearson 1934, Biometrika 26.

    >>> [round(float(end), 4) for end in clopper_pearson(4, 225, 0.025)]
    [0.0049, 0.0449]
    """
    from scipy.special import betaincinv

    hits = np.asarray(successes, np.float64)
    misses = trials - hits
    low = np.where(hits > 0, betaincinv(np.maximum(hits, _LEAST), misses + 1, tail), 0.0)
    high = np.where(misses > 0, betaincinv(hits + 1, np.maximum(misses, _LEAST), 1 - tail), 1.0)
    return low, high


def weighted_rate(successes: FloatArray, weights: FloatArray, tail: float) -> FloatArray:
    """Clopper and Pearson's bounds of weighted success rates, at an effective number of trials: float64[2, columns].

    The number is the smaller of Kish's (Σw)²/Σw² and p(1 − p)/v, of which v is the variance of the rate,
    Σw²(x − p)²/(Σw)²: Kish's is too large if weight and success are related. Where all agree it is Kish's; for equal
    weights both are n.

    Parameters
    ----------
    successes : float64[queries, columns]
        0 or 1; NaN where a query is undefined.
    weights : float64[queries, columns]
        0 where a query is undefined.
    tail : float

    References
    ----------
    Korn and Graubard 1998, Confidence intervals for proportions with small expected number of positive counts estimated
    from survey data; Kish 1965; Clopper and Pearson 1934.
    """
    x = np.where(weights > 0, successes, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weights.sum(axis=0)
        rate = (weights * x).sum(axis=0) / total
        kish = total**2 / (weights**2).sum(axis=0)
        variance = (weights**2 * (x - rate) ** 2).sum(axis=0) / total**2
        trials = np.where(variance > 0, np.fmin(kish, rate * (1 - rate) / variance), kish)
        return np.stack(clopper_pearson(trials * rate, trials, tail))


def luck_reaches(chances: FloatArray, reached: int) -> FloatArray:
    """The probability of as many successes or more, and as many or fewer, if each row has a chance of its own.

    >>> luck_reaches(np.array([0.5, 0.5, 0.2]), 2).round(3).tolist()
    [0.35, 0.95]
    """
    sums = np.append(1.0, np.zeros(len(chances)))
    for chance in chances.tolist():
        sums[1:], sums[0] = (1 - chance) * sums[1:] + chance * sums[:-1], (1 - chance) * sums[0]
    return np.array([sums[reached:].sum(), sums[: reached + 1].sum()])
