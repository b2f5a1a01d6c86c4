"""The interval of a mean of values from 0 to 1, of which only sums are known."""

from __future__ import annotations

import math

import numpy as np

from rag_selectivity.inference.bounded import FEW
from rag_selectivity.inference.exact import ends_of_few, mid_p_rate


def interval_of_mean(total: float, squares: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """The interval of the mean of n independent values from 0 to 1.

    Of zeros and ones it is the exact mid-P interval. Of other values it comes from Student's t, widened to Clopper and
    Pearson's bounds (`ends_of_few`) if fewer than ten of them differ from an end of the range, and cut at 0 and 1. If
    all values agree, the bounds are those of `ends_if_all_agree`.

    Parameters
    ----------
    total, squares : float
        Sums of the values and of their squares.
    n : int
    level : float

    Returns
    -------
    low, high : float
        NaN with fewer than two values.

    Examples
    --------
    >>> low, high = interval_of_mean(30.0, 30.0, 50)
    >>> round(low, 3), round(high, 3)
    (0.46, 0.728)
    """
    from scipy.special import stdtrit

    if n < 2:
        return math.nan, math.nan
    tail, mean = (1 - level) / 2, total / n
    if math.isclose(total * total, squares * n, rel_tol=1e-12, abs_tol=1e-12):
        differ = 1 - tail ** (1 / n)
        return max(0.0, mean - differ * mean), min(1.0, mean + differ * (1 - mean))
    if math.isclose(total, squares, rel_tol=1e-12):
        successes, trials = np.array([float(round(total))]), np.array([n])
        low, high = mid_p_rate(successes, trials, np.array([[1 - tail], [tail]]))[:, 0].tolist()
        return min(low, high), max(low, high)
    deviation = math.sqrt(max(0.0, squares / n - mean * mean) / (n - 1))
    reach = -float(stdtrit(n - 1.0, tail)) * deviation
    sums = (np.array([total]), np.array([squares]))
    few = ends_of_few(*sums, np.array([n]), (0.0, 1.0), tail, FEW)[:, 0]
    low, high = np.fmin(mean - reach, few[0]), np.fmax(mean + reach, few[1])
    return max(0.0, float(low)), min(1.0, float(high))
