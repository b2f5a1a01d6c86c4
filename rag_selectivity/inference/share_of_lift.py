"""The share of a possible lift that was reached: a ratio of two differences over the same queries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rag_selectivity.inference import bounded
from rag_selectivity.inference.bisection import end_of
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

NO_LIFT = "the ideal sets are not shown to be better than no passages, so that there is no lift to have a share of"


@dataclass(frozen=True, slots=True)
class Share:
    """The share with its interval; NaN with a reason where it is undefined. `n` counts queries."""

    value: float
    low: float
    high: float
    n: int
    reason: str | None = None


def share_of_lift(
    reached: FloatArray,
    without: FloatArray,
    ideal: FloatArray,
    ends: tuple[float, float],
    *,
    level: float = 0.95,
    seed: int = 7,
    units: IntArray | None = None,
) -> Share:
    """(mean reached − mean without) / (mean ideal − mean without), over the queries that have all three.

    The interval holds every share θ for which the mean of reached − without − θ·(ideal − without) is not shown to
    differ from 0, as in Fieller's theorem. The test is Gaffke's bound of bounded values, which keeps its level for few
    queries and for rates near 0 and 1.

    Parameters
    ----------
    reached, without, ideal : float64[queries]
        Scores of the same queries; NaN where a query has none.
    ends : (low, high)
        The scale of the scores.
    level : float
    units : int64[queries], optional
        The number of each query's cluster; the clusters are then drawn.

    Returns
    -------
    Share
        From −∞ to ∞: below 0 if passages made answers worse, above 1 if they did better than the ideal ones. NaN where
        ideal − without is not shown to be above 0.

    References
    ----------
    Fieller 1954, Some problems in interval estimation; Gaffke 2005.

    >>> found = share_of_lift(np.tile([1.0, 1, 0, 0], 25), np.zeros(100), np.ones(100), (0.0, 1.0))
    >>> found.value, found.low < 0.42, found.high > 0.58
    (0.5, True, True)
    """
    both = ~(np.isnan(reached) | np.isnan(without) | np.isnan(ideal))
    n = int(both.sum())
    rows = np.stack([reached[both] - without[both], ideal[both] - without[both]], axis=1)
    span = ends[1] - ends[0]
    if units is not None and n:
        group = np.unique(units[both], return_inverse=True)[1]
        sizes = np.bincount(group)
        rows = np.stack([np.bincount(group, column) for column in rows.T], axis=1)
        span *= float(sizes.max())
    if len(rows) < 2:
        return Share(math.nan, math.nan, math.nan, n, "fewer than two queries have all three answers")
    sums, extra = bounded.weighted_sums(rows, seed)
    tail = (1 - level) / 2

    def lowest(share: float) -> float:
        """The lower bound of the mean of reached − without − share·(ideal − without)."""
        return _quantile(sums[:, 0] - share * sums[:, 1] - extra * _reach(share, span), tail)

    def highest(share: float) -> float:
        return _quantile(sums[:, 0] - share * sums[:, 1] + extra * _reach(share, span), 1 - tail)

    if _quantile(sums[:, 1] - extra * span, tail) <= 0:
        return Share(math.nan, math.nan, math.nan, n, NO_LIFT)
    top, bottom = rows.mean(axis=0)
    value = float(top / bottom)
    low = _end(lambda share: lowest(share) > 0, value, -1.0)
    high = _end(lambda share: highest(share) < 0, value, 1.0)
    return Share(value, low, high, n)


def _reach(share: float, span: float) -> float:
    """How far reached − without − share·(ideal − without) can be from 0, with scores in a range of this span."""
    return span * max(1.0, share, 1.0 - share)


def _end(rejects: Callable[[float], bool], value: float, step: float) -> float:
    """Where the test begins to reject, on one side of the value."""
    outside = value + step
    while not rejects(outside):
        step *= 2
        outside = value + step
        if not math.isfinite(outside) or abs(step) > 1e12:
            return math.copysign(math.inf, step)
    return end_of(lambda share: not rejects(share), value, outside)[0]


def _quantile(values: FloatArray, share: float) -> float:
    return float(np.quantile(values, share))
