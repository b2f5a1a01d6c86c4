"""Bounds that need no resampling: of a plain success rate, and of samples without any spread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.ids import IntArray
from rag_selectivity.measures.base import Aggregate, FloatArray


def mid_p_rate(successes: FloatArray, trials: IntArray, share: float) -> FloatArray:
    """The rate at which P[fewer successes] + P[as many]/2 is the given share, by bisection (Lancaster 1961)."""
    from scipy.special import betainc

    low, high = np.zeros(len(trials)), np.ones(len(trials))
    inner = (successes > 0) & (successes < trials)
    a, b = np.where(inner, successes, 1), np.where(inner, trials - successes, 1)
    for _ in range(60):
        rate = (low + high) / 2
        more = (betainc(a, b + 1, rate) + betainc(a + 1, b, rate)) / 2
        low, high = np.where(more < 1 - share, rate, low), np.where(more < 1 - share, high, rate)
    return np.where(inner, (low + high) / 2, np.where(successes > 0, 1.0, 0.0))


def ends_if_all_agree(
    means: list[FloatArray],
    agree: NDArray[np.bool_],
    bounds: tuple[Any, Any] | None,
    units: IntArray,
    tail: float,
    aggregate: Aggregate,
) -> FloatArray:
    """Where all queries have the same figure: what their number can rule out, float64[2, depths]; NaN elsewhere.

    If more than ε = 1 − tail^(1/n) of all queries differed, n that agree would be rarer than `tail`. So the
    mean is at most ε of the way from the common figure to either end of its range. Next to an end this
    is Clopper and Pearson's bound. A figure without `bounds` is no matter of luck: NaN.
    """
    if bounds is None:
        return np.full((2, len(units)), np.nan)
    share = np.where(agree, 1 - tail ** (1 / np.maximum(units, 1)), np.nan)
    lowest, highest = bounds
    first, *others = means
    with np.errstate(invalid="ignore", divide="ignore"):
        below = aggregate.value(first - share * (first - lowest), *others)
        above = aggregate.value(first + share * (highest - first), *others)
    return np.stack([below, above])
