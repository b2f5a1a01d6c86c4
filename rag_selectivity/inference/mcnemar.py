"""McNemar's exact test of two paired success rates: its p-value and its power."""

import math

import numpy as np
from numpy.typing import ArrayLike

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

#: How far from its mean, in standard deviations, the number of pairs that differ is summed: the rest is below 1e-14.
_REACH = 8
#: Two probabilities with a smaller relative difference are equal: rounding must not decide a test.
_SAME = 1e-12


def two_sided_p(gains: ArrayLike, losses: ArrayLike) -> FloatArray:
    """Exact two-sided p-values of the hypothesis that a pair that differs is as often a gain as a loss.

    Twice the smaller tail of Binomial(gains + losses, 1/2), at most 1; 1 if no pair differs. Pairs that agree
    do not matter.

    Parameters
    ----------
    gains, losses : array_like of whole numbers, broadcast together
        Pairs in which only the first is a success, and pairs in which only the second is.

    Returns
    -------
    float64 of the broadcast shape, in (0, 1]

    References
    ----------
    McNemar 1947, Psychometrika 12.

    >>> two_sided_p([5, 6, 0], [0, 0, 0]).tolist()
    [0.0625, 0.03125, 1.0]
    """
    from scipy.special import bdtr

    won, lost = np.broadcast_arrays(np.asarray(gains, np.int64), np.asarray(losses, np.int64))
    return np.asarray(np.minimum(1.0, 2 * bdtr(np.minimum(won, lost), won + lost, 0.5)))


def power(n: int, gain_share: float, loss_share: float, level: float) -> float:
    """The probability that the test rejects among n pairs, computed exactly.

    The number of pairs that differ is Binomial(n, gain_share + loss_share), and the number of gains among them is
    binomial too. The power is the sum over both of the probability that the p-value is at most `level`.

    Parameters
    ----------
    n : int
        Pairs.
    gain_share, loss_share : float
        The shares of all pairs in which only the first system succeeds, and in which only the second does.
    level : float
        The test rejects if its two-sided p-value is at most this, for example .05.

    Returns
    -------
    float
        From 0 to 1. A rejection in the wrong direction counts too; it is very rare if the power is large.

    >>> round(power(200, 0.2, 0.1, 0.05), 4)
    0.7034
    """
    from scipy.special import bdtr, bdtrc

    differing = min(1.0, gain_share + loss_share)
    if differing == 0:
        return 0.0
    middle, spread = n * differing, math.sqrt(n * differing * (1 - differing))
    lowest = max(0, math.floor(middle - _REACH * spread - _REACH))
    highest = min(n, math.ceil(middle + _REACH * spread + _REACH))
    discordant = np.arange(lowest, highest + 1)
    below = np.concatenate([[bdtr(lowest - 1, n, differing) if lowest else 0.0], bdtr(discordant, n, differing)])
    most = _most_in_the_smaller_cell(discordant, level)
    gain = min(1.0, gain_share / differing)
    with np.errstate(invalid="ignore"):
        low = np.where(most >= 0, bdtr(np.maximum(most, 0), discordant, gain), 0.0)
        high = np.where(most >= 0, bdtrc(np.maximum(discordant - most - 1, 0), discordant, gain), 0.0)
    return float(min(1.0, np.diff(below) @ (low + high)))


def _most_in_the_smaller_cell(discordant: IntArray, level: float) -> IntArray:
    """For each number of pairs that differ, the most in the smaller cell for p ≤ level; −1 if p is never ≤ level."""
    from scipy.special import bdtrik

    # The inverse is exact to about 1e-8; a tail that is the level itself is reached.
    most = np.floor(np.nan_to_num(bdtrik(level / 2, discordant, 0.5)) + 1e-6)
    below_half = np.minimum(most, (discordant - 1) // 2)
    return np.where(2 * 0.5**discordant <= level * (1 + _SAME), below_half, -1).astype(np.int64)
