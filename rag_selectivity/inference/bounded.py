"""Intervals of figures with bounded values, for samples in which few queries differ.

If nearly all queries agree, resampling gives an interval that is too narrow, or of width 0, since it knows only the
queries in the sample. These intervals allow for unseen queries with values up to the ends of the range.
"""

from collections.abc import Callable

import numpy as np

from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures.base import FloatArray

#: If fewer queries than this differ from the most common value, these intervals are used.
FEW = 10
_FIRST = 200
_DRAWS = 5_000
_CELLS_AT_ONCE = 1 << 22


def few_differ(rows: FloatArray, weights: FloatArray | None = None) -> bool:
    """Whether fewer than 10 of the rows, float64[units, columns], differ from the most common row.

    With weights, the rows are those of unequal queries, and the most common row is that of the largest weight: whether
    all rows, or those that differ from it, are effectively fewer than 10 (`effective_size`).
    """
    counted = np.ones(len(rows)) if weights is None else weights
    if effective_size(counted) < FEW:
        return True
    if weights is None and len(rows) > 2 * FEW:
        # If fewer than FEW rows differ from the most common one, it is the median of any 2 · FEW − 1 of them.
        common = np.median(_to_digits(rows[: 2 * FEW - 1]), axis=0)
        # Most often the first rows tell.
        return all(int((_to_digits(some) != common).any(axis=1).sum()) < FEW for some in (rows[:_FIRST], rows))
    rows = _to_digits(rows)
    group = np.zeros(len(rows), np.int64)
    for column in rows.T:
        group = np.unique(group * len(rows) + np.unique(column, return_inverse=True)[1], return_inverse=True)[1]
    return effective_size(counted[group != np.bincount(group, counted).argmax()]) < FEW


def ends(
    rows: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    level: float,
    seed: int = 7,
) -> tuple[float, float]:
    """The interval of a statistic of column means with Gaffke's bound on either side, from `draws_of`.

    >>> ones = np.ones((50, 1))
    >>> low, high = ends(ones, np.zeros(1), np.ones(1), lambda sums: sums[:, 0], 0.95)
    >>> abs(low - 0.025 ** (1 / 50)) < 0.002, high
    (True, 1.0)
    """
    below, above = draws_of(rows, lowest, highest, statistic, seed)
    return quantile(below, (1 - level) / 2), quantile(above, (1 + level) / 2)


def draws_of(
    rows: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    seed: int = 7,
) -> tuple[FloatArray, FloatArray]:
    """The statistic under random weights, if the unseen row is the lowest and if it is the highest.

    The n rows and one more row at the end of the range get random weights, Dirichlet(1, …, 1); the bound is a quantile
    of the statistic under these weights. For values 0 and 1 it is Clopper and Pearson's bound. If all rows agree, it is
    1 − tail^(1/n) of the way from the value to the end. No case is known in which it does not keep its level.

    Parameters
    ----------
    rows : float64[units, columns]
        What each drawn unit (query or cluster) adds to the sum of each column.
    lowest, highest : float64[columns]
        The rows that decrease and increase the statistic the most.
    statistic : callable
        float64[draws, columns] → float64[draws], from weighted sums; it must increase from `lowest` to `highest`.
    level : float

    References
    ----------
    Gaffke 2005, Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable;
    Learned-Miller and Thomas 2020, A new confidence interval for the mean of a bounded random variable.
    """
    distinct, counts = np.unique(_to_digits(rows), axis=0, return_counts=True)
    shape, rng = np.append(counts, 1).astype(np.float64), np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // len(shape))
    below, above = np.empty(_DRAWS), np.empty(_DRAWS)
    for start in range(0, _DRAWS, step):
        some = slice(start, min(start + step, _DRAWS))
        weights = rng.standard_gamma(shape, size=(some.stop - start, len(shape)))
        weights /= weights.sum(axis=1, keepdims=True)
        sums = weights[:, :-1] @ distinct
        below[some], above[some] = (statistic(sums + weights[:, -1:] * extreme) for extreme in (lowest, highest))
    return below, above


def _to_digits(rows: FloatArray) -> FloatArray:
    """The rows rounded to twelve digits, so that values that differ only by rounding are equal."""
    return np.round(rows, 12) + 0.0


def quantile(values: FloatArray, share: float) -> float:
    """A quantile that may be infinite, without interpolation between ±∞ and a number."""
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return float("nan")
    return float(ordered[min(len(ordered) - 1, max(0, round(share * (len(ordered) - 1))))])
