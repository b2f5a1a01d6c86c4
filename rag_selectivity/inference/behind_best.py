"""How far each of several runs can be below the best of them, with one bound for all at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rag_selectivity.inference.betting import highest_mean
from rag_selectivity.inference.paired import paired_difference
from rag_selectivity.inference.unpaired import unpaired_difference
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.tables.ids import IntArray


def behind_best(
    outcomes: Sequence[Outcome],
    *,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 7,
    units: IntArray | None = None,
    paired: bool = True,
) -> FloatArray:
    """The most by which the true mean of each outcome is below the largest true mean of all: float64[outcomes].

    All bounds hold together with a probability of at least 1 − (1 − level)/2, also for one that is chosen afterwards,
    such as the cheapest whose bound is small enough.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Each with one column: values of queries between known ends, more is better. If paired, over the same queries.
    level, draws, seed, units
        As in `paired_difference`. A bound has one side and takes half of 1 − level.
    paired : bool

    Returns
    -------
    float64[outcomes]
        At least 0; NaN for one outcome alone, and where fewer than two queries are compared.

    Notes
    -----
    If it were known which of m outcomes is the best, m − 1 bounds at the tail (1 − level)/2/(m − 1) would bound how far
    the others are below it (Bonferroni). It is not known, so each outcome has the largest of its bounds against all
    others, of which that against the best is one. A bound is the end of the interval of `paired_difference` at this
    tail, or the bound by betting where that is larger: the latter holds for any distribution, and the interval does not
    where few queries lose much.

    References
    ----------
    Hsu 1984, Constrained simultaneous confidence intervals for multiple comparisons with the best, Annals of Statistics
    12; Waudby-Smith and Ramdas 2024, JRSS B 86 (betting).

    >>> ones = Outcome((np.ones((500, 1)),), "")
    >>> some = Outcome((np.tile([[1.0], [0.5]], (250, 1)),), "")
    >>> behind_best([ones, some]).round(3).tolist()
    [0.0, 0.29]
    """
    count = len(outcomes)
    if count < 2:
        return np.full(count, np.nan)
    tail = (1 - level) / 2 / (count - 1)
    most = np.zeros(count)
    for i, j in combinations(range(count), 2):
        behind, ahead = _bounds(outcomes[i], outcomes[j], tail, draws, seed, units, paired)
        # The larger one; NaN, where a bound is not known, stays.
        most[i], most[j] = np.maximum(most[i], behind), np.maximum(most[j], ahead)
    return most


def _bounds(
    first: Outcome, second: Outcome, tail: float, draws: int, seed: int, units: IntArray | None, paired: bool
) -> tuple[float, float]:
    """How far the first can be below the second, and the second below the first."""
    level = 1 - 2 * tail
    if not paired:
        gap = unpaired_difference(first, second, level=level, seed=seed)
        return -float(gap.low[0]), float(gap.high[0])
    gap = paired_difference(first, second, level=level, draws=draws, seed=seed, units=units)
    values: FloatArray = first.parts[0] - second.parts[0]
    ends = [outcome.ends_at(0) or (-math.inf, math.inf) for outcome in (first, second)]
    widest = max(high for _, high in ends) - min(low for low, _ in ends)
    behind, ahead = (highest_mean(losses, -widest, widest, tail, units)[0] for losses in (-values, values))
    return float(np.maximum(-gap.low[0], behind)), float(np.maximum(gap.high[0], ahead))
