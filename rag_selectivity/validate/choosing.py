"""Parameters that can be chosen by the answers, and figures whose parameters were chosen on other queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from rag_selectivity.inference.choosing import best_column, folds_of, mean_correlations, out_of_fold
from rag_selectivity.inference.correlation import SPEARMAN, Distribution, Series
from rag_selectivity.measures.base import FloatArray, Measure
from rag_selectivity.results.validation import Chosen
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.validate.following import Found, mean_of
from rag_selectivity.validate.sets import Sets

#: The values that are tried of each parameter.
_ALPHAS = tuple(round(0.05 * i, 2) for i in range(21))
_BASES_AND_CAPS = {
    "base4": (0.25, 0.5, 0.75, 1.0),
    "base3": (0.0, 0.1, 0.25, 0.5),
    "cap4": (0.5, 1.0),
    "cap3": (0.1, 0.25, 0.5),
}


def grid_of(measure: Measure) -> list[dict[str, Any]]:
    """The parameters to try of a measure; empty if it has none to choose.

    >>> from rag_selectivity.measures import parse_measure
    >>> len(grid_of(parse_measure("F@5"))), grid_of(parse_measure("P@5"))
    (21, [])
    """
    if measure.name in ("F", "Fe", "T"):
        # F takes either alpha or beta: alpha replaces a beta that was given.
        rest = {"beta": 1.0} if measure.name == "F" else {}
        return [{**rest, "alpha": alpha} for alpha in _ALPHAS]
    if measure.name == "RA-nWG":
        return [dict(zip(_BASES_AND_CAPS, values, strict=True)) for values in product(*_BASES_AND_CAPS.values())]
    return []


@dataclass(frozen=True)
class Choice:
    """The parameters with the highest mean correlation, and the figures of each run out of fold.

    Attributes
    ----------
    parameters : {name: value}
        Empty if nothing could be chosen.
    own, outside : sequence of Series
        The figures with the measure's own parameters, and with those that were chosen on other queries: one series a
        run, over the same rows.
    reason : str
        Why nothing was chosen; empty if something was.
    """

    measure: Measure
    k: int | None
    reason: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    in_sample: float = math.nan
    own: Sequence[Series] = ()
    outside: Sequence[Series] = ()

    @property
    def all_series(self) -> tuple[Series, ...]:
        """Whatever is to be correlated."""
        return (*self.own, *self.outside)

    def chosen(self, found: Found, level: float) -> Chosen:
        """What is known of the chosen parameters, from the correlations of all series."""
        own, outside = (mean_of(found, series) for series in (self.own, self.outside))
        if self.reason:
            own = outside = Distribution.undefined(self.reason)
        ends = outside.interval(level), outside.minus(own).interval(level)
        return Chosen(str(self.measure), self.k, self.parameters, self.in_sample, *ends, self.reason)


def choose(
    measure: Measure, k: int | None, by_run: Sequence[Sequence[Sets]], *, folds: int, seed: int
) -> Choice | None:
    """Choose the parameters of a measure by the answers of the sets of each run; None if it has none to choose."""
    grid = grid_of(measure)
    if not grid:
        return None
    nothing = Choice(measure, k, "fewer than four queries have a figure and a score")
    tried = [measure, *(replace(measure, **choice) for choice in grid)]
    blocks = [block for sets in by_run if len((block := _block(tried, sets))[1])]
    units = np.concatenate([np.empty(0, np.int64), *(units for _, _, units in blocks)])
    if len(np.unique(units)) < 4:
        return nothing
    own = [Series(values[:, 0], scores, units, kinds=(SPEARMAN,)) for values, scores, units in blocks]
    blocks = [(values[:, 1:], scores, units) for values, scores, units in blocks]
    correlations = mean_correlations([(values, scores) for values, scores, _ in blocks])
    best = best_column(correlations)
    if best is None:
        return replace(nothing, reason="the figures or the scores are all the same")
    if np.ptp(correlations) <= 1e-12:
        return replace(nothing, reason="no value of its parameters changes the order of these sets")
    ranks = out_of_fold(blocks, folds_of(units, folds, seed))
    if ranks is None:
        return replace(nothing, reason="in one of the folds nothing could be chosen")
    outside = [replace(series, figures=each) for series, each in zip(own, ranks, strict=True)]
    parameters = {name: value for name, value in grid[best].items() if name != "beta"}
    return Choice(measure, k, "", parameters, float(correlations[best]), own, outside)


def _block(tried: Sequence[Measure], sets: Sequence[Sets]) -> tuple[FloatArray, FloatArray, IntArray]:
    """The figures of the sets of a run under each choice, float64[rows, choices], with their scores and units."""
    values = np.concatenate([np.stack([part.figures(each) for each in tried], axis=1) for part in sets])
    scores = np.concatenate([part.scores for part in sets])
    known = ~(np.isnan(values).any(axis=1) | np.isnan(scores))
    return values[known], scores[known], np.concatenate([part.units for part in sets])[known]
