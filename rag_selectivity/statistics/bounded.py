"""Intervals of figures whose values are bounded, for samples in which few queries differ.

Where nearly all queries agree, resampling knows nothing of those that were not drawn: it gives no width at all. What
the sample could have missed lies between its values and the ends of their range, and that is what these intervals add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.measures.base import FloatArray

#: With fewer queries than this beside the commonest value, the ends of the range count.
FEW = 10
_DRAWS = 5_000
_CELLS_AT_ONCE = 1 << 22


def few_differ(rows: FloatArray) -> bool:
    """Whether fewer than 10 of the rows, float64[units, columns], differ from the commonest one."""
    if len(rows) < FEW:
        return True
    _, counts = np.unique(_to_digits(rows), axis=0, return_counts=True)
    return len(rows) - int(counts.max()) < FEW


def ends(
    rows: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    level: float,
    seed: int = 7,
) -> tuple[float, float]:
    """The interval of a statistic of column means that Gaffke's bound gives on either side.

    The n rows and one more, at the end of the range, get random weights, Dirichlet(1, …, 1); the bound is a quantile
    of the statistic under these weights. For 0 and 1 it is Clopper and Pearson's bound; where all rows agree it is
    value ± (1 − tail^(1/n)) of the way to the end. No sample is known in which it misses the level.

    Parameters
    ----------
    rows : float64[units, columns]
        What each drawn unit (query, or cluster of queries) adds to each column's sum.
    lowest, highest : float64[columns]
        The row that pulls the statistic down, and up, the most.
    statistic : callable
        float64[draws, columns] → float64[draws], rising from `lowest` to `highest`; it sees weighted sums.
    level : float

    References
    ----------
    Gaffke 2005, Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable;
    Learned-Miller and Thomas 2020, A new confidence interval for the mean of a bounded random variable.

    >>> ones = np.ones((50, 1))
    >>> low, high = ends(ones, np.zeros(1), np.ones(1), lambda sums: sums[:, 0], 0.95)
    >>> abs(low - 0.025 ** (1 / 50)) < 0.002, high
    (True, 1.0)
    """
    distinct, counts = np.unique(_to_digits(rows), axis=0, return_counts=True)
    tail = (1 - level) / 2
    figures: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for weights in _weights(counts, np.random.default_rng(seed)):
        sums = weights[:, :-1] @ distinct
        for of_end, extreme in zip(figures, (lowest, highest), strict=True):
            of_end.append(statistic(sums + weights[:, -1:] * extreme))
    return _quantile(np.concatenate(figures[0]), tail), _quantile(np.concatenate(figures[1]), 1 - tail)


def _weights(counts: NDArray[np.int64], rng: np.random.Generator) -> Iterator[FloatArray]:
    """Dirichlet weights of the distinct rows and of one row more, float64[some draws, rows + 1], block by block."""
    shape = np.append(counts, 1).astype(np.float64)
    step = max(1, _CELLS_AT_ONCE // len(shape))
    for start in range(0, _DRAWS, step):
        weights = rng.standard_gamma(shape, size=(min(step, _DRAWS - start), len(shape)))
        yield weights / weights.sum(axis=1, keepdims=True)


def _to_digits(rows: FloatArray) -> FloatArray:
    """Twelve digits: what differs in the last ones alone is one value."""
    return np.round(rows, 12) + 0.0


def _quantile(values: FloatArray, share: float) -> float:
    """A quantile that may be infinite: no interpolation between ±∞ and a number."""
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return float("nan")
    return float(ordered[min(len(ordered) - 1, max(0, round(share * (len(ordered) - 1))))])
