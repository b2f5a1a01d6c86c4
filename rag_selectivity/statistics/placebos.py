"""Placebos of measures, for the universes in which grades can be shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.token_budget import TokenBudget, are_budgets
from rag_selectivity.measures.base import FloatArray, Measure, Outcome, Placebo, Real
from rag_selectivity.measures.by_cutoff import by_cutoff
from rag_selectivity.measures.universe import Universe
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.tables.ids import IntArray

#: A measure with its depths, as in a plan.
Planned = tuple[Measure, NDArray[Any]]
#: Whether grades are shuffled among the labelled passages, at each depth of a measure.
OfLabels = Mapping[Measure, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class PlaceboFigures:
    """The placebo of a measure at its depths, and the interval of what the figure has beyond it; NaN where unknown."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


#: A measure, its placebo, and at which depths the placebo's universe is known.
KnownPlacebo = tuple[Measure, Placebo, NDArray[np.bool_]]


def placebos_of(
    judged: JudgedRun, plan: Sequence[Planned], outcomes: Sequence[Outcome], of_labels: OfLabels
) -> list[KnownPlacebo]:
    """The placebos of a whole dataset, where the universe of each depth is known."""
    return list(_placebos(judged, plan, outcomes, of_labels))


def placebo_figures(
    placebos: Sequence[KnownPlacebo],
    bootstrap: Bootstrap | None,
    queries: Sequence[str],
    chosen: NDArray[np.bool_] | None = None,
) -> dict[Measure, PlaceboFigures]:
    """The figures of placebos over the queries, all or the chosen ones."""
    ends = [(np.full(len(known), np.nan),) * 2 for _, _, known in placebos]
    if bootstrap is not None and placebos:
        beyond = [_settled(_over(placebo.beyond, chosen), known) for _, placebo, known in placebos]
        named = queries if chosen is None else list(compress(queries, chosen))
        ends = bootstrap.intervals(beyond, named)
    return {
        measure: PlaceboFigures(_settled(_over(placebo.outcome, chosen), known).value(), *of_beyond)
        for (measure, placebo, known), of_beyond in zip(placebos, ends, strict=True)
    }


def _over(outcome: Outcome, chosen: NDArray[np.bool_] | None) -> Outcome:
    return outcome if chosen is None else outcome.over(chosen)


def _placebos(
    judged: JudgedRun, plan: Sequence[Planned], outcomes: Sequence[Outcome], of_labels: OfLabels
) -> Iterable[KnownPlacebo]:
    """The placebo of each measure that has one, and at which depths its universe is known."""
    for (measure, at), outcome in zip(plan, outcomes, strict=True):
        if isinstance(measure.cutoff, Real) or not len(at) or measure.of_groups:
            continue
        placebo = _placebo(measure, judged, at, of_labels[measure], outcome)
        if placebo is not None:
            weights = None if judged.weights is None else judged.weights.values
            yield measure, placebo.weighted(weights), of_labels[measure] | (judged.corpus_size is not None)


def _placebo(
    measure: Measure, judged: JudgedRun, depths: IntArray, of_labels: NDArray[np.bool_], outcome: Outcome
) -> Placebo | None:
    """The placebo at each depth; at a budget of tokens, of each query at its own K."""
    if not are_budgets(depths).any():
        return measure.placebo(judged, Universe(judged, depths, of_labels), outcome)
    columns = []
    for i, depth in enumerate(depths.tolist()):
        budget, of_depth = TokenBudget.of(depth), of_labels[[i]]
        groups = []
        everything = np.ones(len(judged), bool), judged, np.array([depth])
        for rows, some, at in [everything] if budget is None else by_cutoff(judged, budget):
            placebo = measure.placebo(some, Universe(some, at, of_depth), measure.at_ranks(some, at))
            if placebo is None:
                return None
            groups.append((rows, placebo))
        columns.append(Placebo.of_groups(groups))
    return Placebo.beside(columns)


def _settled(outcome: Outcome, known: NDArray[np.bool_]) -> Outcome:
    """The outcome at the depths whose universe is known: without a corpus size, there is no corpus to shuffle in."""
    settled = outcome.settled()
    parts = settled.parts if known.all() else tuple(np.where(known, part, np.nan) for part in settled.parts)
    return replace(settled, parts=parts, baseline=None)
