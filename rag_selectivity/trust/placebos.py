"""Placebos of measures, for the universes in which grades can be shuffled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap, Ends
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.query_weights import QueryWeights
from rag_selectivity.judged.token_budget import are_budgets
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray, Measure, Outcome, Real
from rag_selectivity.measures.chance import BoR
from rag_selectivity.measures.plan import Plan
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.shuffled import Placebo, Universe, placebo_of


@dataclass(frozen=True, slots=True)
class PlaceboFigures:
    """The placebo of a measure at its depths, and the interval of what the figure has beyond it; NaN where unknown."""

    value: FloatArray
    low: FloatArray
    high: FloatArray

    def at(self, column: int) -> dict[str, Any]:
        """What an estimate at one of the depths says of its placebo; nothing where that is unknown."""
        value, low, high = (float(each[column]) for each in (self.value, self.low, self.high))
        if math.isnan(value):
            return {}
        return {"placebo": value, "above_placebo": None if math.isnan(low + high) else (low, high)}


@dataclass(frozen=True, slots=True)
class KnownPlacebo:
    """The placebo of a measure and what its figure has beyond it, by query; NaN where no universe is known."""

    measure: Measure
    placebo: Outcome
    beyond: Outcome


def placebos_of(
    judged: JudgedRun, plan: Plan, outcomes: Sequence[Outcome], of_labels: Mapping[Measure, NDArray[np.bool_]]
) -> list[KnownPlacebo]:
    """The placebos of a whole dataset, where the universe of each depth is known.

    `of_labels` says whether grades are shuffled among the labelled passages, at each depth of a measure.
    """
    result = []
    for (measure, at), outcome in zip(plan, outcomes, strict=True):
        if isinstance(measure.cutoff, Real) or not len(at) or measure.of_groups:
            continue
        placebo = _placebo(measure, judged, at, of_labels[measure], outcome)
        if placebo is not None:
            known = of_labels[measure] | (judged.corpus_size is not None)
            result.append(KnownPlacebo(measure, *(_settled(each, known, judged.weights) for each in placebo)))
    return result


def placebo_figures(
    placebos: Iterable[KnownPlacebo], ends: Iterable[Ends], chosen: NDArray[np.bool_] | None = None
) -> dict[Measure, PlaceboFigures]:
    """The figures of placebos over all queries, or the chosen ones; `ends` are those of what lies beyond."""
    return {
        each.measure: PlaceboFigures((each.placebo if chosen is None else each.placebo.over(chosen)).value(), *of_each)
        for each, of_each in zip(placebos, ends, strict=True)
    }


def against_other_lists(figures: Figures, bootstrap: Bootstrap | None) -> dict[str, dict[str, Any]]:
    """BoR against the lists of the other queries, at the depth next to 10 of each BoR, by its name.

    Empty where these lists are not known.
    """
    result: dict[str, dict[str, Any]] = {}
    if figures.join.other_lists is None or bootstrap is None:
        return result
    for measure, at in figures.plan:
        ranks = at[~are_budgets(at) & (at < WHOLE_LIST)]
        if isinstance(measure, BoR) and measure.null == "random" and len(ranks):
            depth = ranks[[np.argmin(np.abs(np.log(ranks / 10)))]]
            over = replace(measure, null="lists")
            outcome = over.outcome(figures.join, depth)
            ((low, high),) = bootstrap.intervals([outcome], figures.queries)
            numbers = {"value": outcome.value(), "low": low, "high": high}
            known = {name: float(end[0]) if np.isfinite(end[0]) else None for name, end in numbers.items()}
            result[str(measure @ int(depth[0]))] = {"measure": str(over @ int(depth[0])), **known}
    return result


def _placebo(
    measure: Measure, judged: JudgedRun, depths: IntArray, of_labels: NDArray[np.bool_], outcome: Outcome
) -> Placebo | None:
    """The placebo at each depth; at a budget of tokens, of each query at its own K."""
    if not are_budgets(depths).any():
        return placebo_of(measure, judged, Universe(judged, depths, of_labels), outcome)
    columns = []
    for i, depth in enumerate(depths.tolist()):
        some, at = judged.at_depth(depth)
        placebo = placebo_of(measure, some, Universe(some, at, of_labels[[i]]), measure.at_ranks(some, at))
        if placebo is None:
            return None
        columns.append(placebo)
    return Placebo(*(Outcome.beside(each) for each in zip(*columns, strict=True)))


def _settled(outcome: Outcome, known: NDArray[np.bool_], weights: QueryWeights | None) -> Outcome:
    """The outcome at the depths whose universe is known: without a corpus size, there is no corpus to shuffle in."""
    settled = outcome.settled()
    parts = settled.parts if known.all() else tuple(np.where(known, part, np.nan) for part in settled.parts)
    return replace(settled, parts=parts, baseline=None, weights=None if weights is None else weights.values)
