"""Parameters that can be chosen by the answers, and figures whose parameters were chosen on other queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from rag_selectivity.measures.base import FloatArray, Measure
from rag_selectivity.results.validation import Chosen
from rag_selectivity.statistics.choosing import best_column, folds_of, mean_correlations, out_of_fold
from rag_selectivity.statistics.correlation import SPEARMAN, Distribution, Series
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.validate.sets import Answered

#: The values that are tried of each parameter.
_ALPHAS = tuple(round(0.05 * i, 2) for i in range(21))
_WEIGHTS = (0.0, 0.1, 0.2, 0.333, 0.5, 0.75, 1.0, 1.5, 2.0)
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
    if measure.name == "UDCG_grades":
        return [{"weight": weight} for weight in _WEIGHTS]
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
    in_sample : float
    own, outside : list of Series
        The figures with the measure's own parameters, and with those that were chosen on other queries: one series a
        run, over the same rows.
    reason : str
        Why nothing was chosen; empty if something was.
    """

    parameters: dict[str, Any]
    in_sample: float
    own: list[Series]
    outside: list[Series]
    reason: str = ""


def choose(measure: Measure, parts: Sequence[Sequence[Answered]], *, folds: int, seed: int) -> Choice | None:
    """Choose the parameters of a measure by the answers, for sets of several runs.

    Parameters
    ----------
    measure : Measure
    parts : sequence of sequences of Answered
        The sets of each run.
    folds, seed : int

    Returns
    -------
    Choice or None
        None for a measure without parameters to choose.
    """
    grid = grid_of(measure)
    if not grid:
        return None
    blocks = [block for part in parts if (block := _Block.of(measure, grid, part)) is not None]
    nothing = Choice({}, float("nan"), [], [], "fewer than four queries have a figure and a score")
    if not blocks or len(np.unique(np.concatenate([block.units for block in blocks]))) < 4:
        return nothing
    correlations = mean_correlations([(block.values, block.scores) for block in blocks])
    best = best_column(correlations)
    if best is None:
        return replace(nothing, reason="the figures or the scores are all the same")
    if np.nanmax(correlations) - np.nanmin(correlations) <= 1e-12 and not np.isnan(correlations).any():
        return replace(nothing, reason="no value of its parameters changes the order of these sets")
    chosen = folds_of(np.concatenate([block.units for block in blocks]), folds, seed)
    outside = out_of_fold([(block.values, block.scores, block.units) for block in blocks], chosen)
    if outside is None:
        return replace(nothing, reason="in one of the folds nothing could be chosen")
    return Choice(
        {name: value for name, value in grid[best].items() if name != "beta"},
        float(correlations[best]),
        [Series(block.own, block.scores, block.units, kinds=(SPEARMAN,)) for block in blocks],
        [
            Series(ranks, block.scores, block.units, kinds=(SPEARMAN,))
            for ranks, block in zip(outside, blocks, strict=True)
        ],
    )


@dataclass(frozen=True)
class _Block:
    """The figures of the sets of a run under each choice: float64[rows, choices]."""

    values: FloatArray
    own: FloatArray
    scores: FloatArray
    units: IntArray

    @classmethod
    def of(cls, measure: Measure, grid: Sequence[dict[str, Any]], parts: Sequence[Answered]) -> _Block | None:
        columns = []
        for part in parts:
            own = part.figures(measure)
            each = [part.figures(replace(measure, **choice)) for choice in grid]
            columns.append((np.stack(each, axis=1), own, part.scores, part.units))
        if not columns:
            return None
        values, own, scores, units = (np.concatenate(some) for some in zip(*columns, strict=True))
        known = ~(np.isnan(values).any(axis=1) | np.isnan(own) | np.isnan(scores))
        return cls(values[known], own[known], scores[known], units[known]) if known.any() else None


def chosen_of(
    measure: str,
    k: int | None,
    choice: Choice,
    own: Sequence[int],
    outside: Sequence[int],
    found: Sequence[Mapping[str, Distribution]],
    level: float,
) -> Chosen:
    """What is known of chosen parameters, from the correlations of all series."""
    with_own = Distribution.mean([found[number][SPEARMAN] for number in own])
    without = Distribution.mean([found[number][SPEARMAN] for number in outside])
    reason = choice.reason
    if reason:
        with_own = without = Distribution.undefined(reason)
    return Chosen(
        measure,
        k,
        choice.parameters,
        choice.in_sample,
        without.interval(level),
        without.minus(with_own).interval(level),
        reason,
    )
