"""An upper bound of the mean of bounded values that is valid for any number of queries."""

import numpy as np

from rag_selectivity.inference.interval import end_of
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

#: Stakes, as shares of the largest possible stake, and the share of the money on each. Half of the money is on a stake
#: near 1: if no value is above the lowest, it makes the bound nearly as low as that of a rate.
_STAKES = np.array([*np.geomspace(0.004, 0.9, 11), 0.999])
_MONEY = np.array([*np.full(11, 0.5 / 11), 0.5])


def highest_mean(
    values: FloatArray, lowest: float, highest: float, tail: float, units: IntArray | None = None
) -> float:
    """A bound that the true mean exceeds in at most a share `tail` of samples, for any distribution.

    The bound comes from betting that values are below a mean of μ: each value x multiplies the money by
    1 + c(μ − x)/(highest − μ). If the true mean is μ or more, the expected money does not grow; by Markov's inequality
    it then reaches 1/tail with a probability of at most `tail`. The money is divided over several stakes c, each
    constant, so the order of the values does not matter. The bound is the smallest μ at which the money reaches 1/tail.

    Parameters
    ----------
    values : float64[queries]
        Values between `lowest` and `highest`; NaN is left out.
    lowest, highest : float
    tail : float
    units : int64[queries], optional
        The number of each query's cluster, if queries of the same cluster depend on each other: the bets are then on
        whole clusters, with stakes proportional to their sizes. The bound assumes that no cluster outside the sample is
        larger than the largest one in it.

    References
    ----------
    Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting, JRSS B 86.

    >>> round(highest_mean(np.zeros(225), 0, 1, 0.025), 4)
    0.0189
    """
    known = ~np.isnan(values)
    if not known.any():
        return highest
    cluster = np.unique((np.arange(len(values)) if units is None else units)[known], return_inverse=True)[1]
    sizes = np.bincount(cluster)
    share = np.bincount(cluster, (values[known] - lowest) / (highest - lowest)) / sizes
    weight = sizes / sizes.max()

    def is_possible(mean: float) -> bool:
        won = weight * (mean - share) / max(1 - mean, 1e-300)
        logs = np.log(_MONEY) + np.log1p(_STAKES[:, None] * won).sum(axis=1)
        return bool(np.logaddexp.reduce(logs) < -np.log(tail))

    bound = end_of(is_possible, float(np.average(share, weights=weight)), 1.0, 30)[1]
    return lowest + bound * (highest - lowest)
