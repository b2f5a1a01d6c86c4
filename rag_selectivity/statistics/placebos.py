"""Sums of placebos over queries, for the universes in which grades can be shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from rag_selectivity.statistics.moments import Moments
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


@dataclass(slots=True)
class PlaceboSums:
    """Moments of the placebo of each measure, and of what its figure has beyond it.

    Which universe counts at a depth depends on all labels together (`LabelReach.shuffled_among_labels`). If they are
    known, `of_labels` chooses; for parts of a dataset, `add` sums both universes, and the choice is made at the
    end: among the labelled passages (True), and in the whole corpus (False) if its size is known.

    Attributes
    ----------
    sums : {(measure, of labels): (placebo, beyond it)}
    """

    sums: dict[tuple[Measure, bool], tuple[Moments, Moments]] = field(default_factory=dict)

    def add(
        self, judged: JudgedRun, plan: Sequence[Planned], outcomes: Iterable[Outcome], *, in_corpus: bool = True
    ) -> None:
        """Add the queries of a join; `outcomes` are the measures' figures, in the plan's order.

        Without `in_corpus`, they are added among the labelled passages only, for a dataset in which nothing else counts
        (`LabelReach.stays_among_labels`).
        """
        figures = list(outcomes)
        for of_labels in (True, False) if in_corpus and judged.corpus_size is not None else (True,):
            chosen = {measure: np.full(len(at), of_labels) for measure, at in plan}
            for measure, placebo, known in _placebos(judged, plan, figures, chosen):
                self._merge((measure, of_labels), (_moments(placebo.outcome, known), _moments(placebo.beyond, known)))

    def _merge(self, key: tuple[Measure, bool], pair: tuple[Moments, Moments]) -> None:
        if key not in self.sums:
            self.sums[key] = pair
            return
        for known, more in zip(self.sums[key], pair, strict=True):
            known.merge(more)

    def figures(self, of_labels: OfLabels, level: float | None) -> dict[Measure, PlaceboFigures]:
        """The placebos with the universe that counts at each depth."""
        chosen = {}
        for measure, here in of_labels.items():
            by_universe = [_figures(self.sums.get((measure, which)), len(here), level) for which in (True, False)]
            if by_universe[0] is not None or by_universe[1] is not None:
                unknown = PlaceboFigures(*[np.full(len(here), np.nan)] * 3)
                one, other = (each or unknown for each in by_universe)
                ends = ("value", "low", "high")
                chosen[measure] = PlaceboFigures(
                    *(np.where(here, getattr(one, name), getattr(other, name)) for name in ends)
                )
        return chosen


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


def _moments(outcome: Outcome, known: NDArray[np.bool_]) -> Moments:
    return Moments.of(_settled(outcome, known))


def _settled(outcome: Outcome, known: NDArray[np.bool_]) -> Outcome:
    """The outcome at the depths whose universe is known: without a corpus size, there is no corpus to shuffle in."""
    settled = outcome.settled()
    parts = settled.parts if known.all() else tuple(np.where(known, part, np.nan) for part in settled.parts)
    return replace(settled, parts=parts, baseline=None)


def _figures(pair: tuple[Moments, Moments] | None, depths: int, level: float | None) -> PlaceboFigures | None:
    if pair is None:
        return None
    return PlaceboFigures(pair[0].value, *pair[1].interval(level))
