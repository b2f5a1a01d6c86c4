"""Upper bounds that are valid for any number of queries: of a rate, and of a mean of bounded values."""

from __future__ import annotations

import numpy as np

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

#: Stakes, as shares of the largest possible stake, and the share of the money on each. Half of the money is on a stake
#: near 1: if no value is above the lowest, it makes the bound nearly as low as that of a rate.
_STAKES = np.array([*np.geomspace(0.004, 0.9, 11), 0.999])
_MONEY = np.array([*np.full(11, 0.5 / 11), 0.5])


def highest_mean(
    values: FloatArray, lowest: float, highest: float, tail: float, units: IntArray | None = None
) -> FloatArray:
    """A bound that the true mean exceeds in at most a share `tail` of samples, for any distribution.

    The bound comes from betting that values are below a mean of μ: each value x multiplies the money by
    1 + c(μ − x)/(highest − μ). If the true mean is μ or more, the expected money does not grow; by Markov's inequality
    it then reaches 1/tail with a probability of at most `tail`. The money is divided over several stakes c, each
    constant, so the order of the values does not matter. The bound is the smallest μ at which the money reaches 1/tail.

    Parameters
    ----------
    values : float64[queries, columns]
        Values between `lowest` and `highest`; NaN is left out.
    lowest, highest : float
    tail : float
    units : int64[queries], optional
        The number of each query's cluster, if queries of the same cluster depend on each other: the bets are then on
        whole clusters, with stakes proportional to their sizes. The bound assumes that no cluster outside the sample is
        larger than the largest one in it.

    Returns
    -------
    float64[columns]

    References
    ----------
    Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting, JRSS B 86.

    >>> highest_mean(np.zeros((225, 1)), 0, 1, 0.025).round(4).tolist()
    [0.0189]
    """
    share = (values - lowest) / (highest - lowest)
    weights = np.ones_like(share)
    if units is not None:
        known = ~np.isnan(values)
        sizes = np.zeros((int(units.max(initial=-1)) + 1, values.shape[1]))
        sums = np.zeros_like(sizes)
        np.add.at(sizes, units, known.astype(np.float64))
        np.add.at(sums, units, np.where(known, share, 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            share, weights = sums / sizes, sizes / sizes.max(axis=0)
    return lowest + _highest_share(share, weights, tail) * (highest - lowest)


def _highest_share(share: FloatArray, weights: FloatArray, tail: float) -> FloatArray:
    """The bound for values between 0 and 1, by bisection from their mean upwards."""
    known = ~np.isnan(share)
    weight = np.where(known, weights, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, share * weight, 0.0).sum(axis=0) / weight.sum(axis=0)
    below = np.nan_to_num(mean, nan=1.0)
    above = np.ones_like(below)
    for _ in range(30):
        middle = (below + above) / 2
        ruled_out = _log_money(share, weight, middle) >= -np.log(tail)
        below, above = np.where(ruled_out, below, middle), np.where(ruled_out, middle, above)
    result: FloatArray = above
    return result


def _log_money(share: FloatArray, weight: FloatArray, mean: FloatArray) -> FloatArray:
    """The logarithm of the money after all bets: float64[columns]."""
    won = np.nan_to_num(weight * (mean - share) / np.maximum(1 - mean, 1e-300))
    grown = np.log(_MONEY)[:, None] + np.array([np.log1p(stake * won).sum(axis=0) for stake in _STAKES.tolist()])
    largest = grown.max(axis=0)
    result: FloatArray = largest + np.log(np.exp(grown - largest).sum(axis=0))
    return result
