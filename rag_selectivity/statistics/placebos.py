"""Sums of placebos over queries, for both universes in which grades can be shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.measures.base import Measure, Outcome, Placebo, Real
from rag_selectivity.measures.universe import Universe
from rag_selectivity.statistics.moments import Moments

#: A measure with its depths, as in a plan.
Planned = tuple[Measure, NDArray[Any]]


@dataclass(slots=True)
class PlaceboSums:
    """Moments of the placebo of each measure, and of what its figure has beyond it.

    Which universe counts at a depth depends on all labels together (`LabelReach.shuffled_among_labels`), so both are
    summed: among the labelled passages (True), and in the whole corpus (False) if its size is known.

    Attributes
    ----------
    sums : {(measure, of labels): (placebo, beyond it)}
    """

    sums: dict[tuple[Measure, bool], tuple[Moments, Moments]] = field(default_factory=dict)

    def add(self, judged: JudgedRun, plan: list[Planned]) -> None:
        """Add the queries of a join."""
        for measure, of_labels, placebo in _placebos(judged, plan):
            pair = _moments(placebo.outcome), _moments(placebo.beyond)
            if (measure, of_labels) in self.sums:
                for known, more in zip(self.sums[measure, of_labels], pair, strict=True):
                    known.merge(more)
            else:
                self.sums[measure, of_labels] = pair

    def merge(self, other: PlaceboSums) -> None:
        """Add the sums of other queries."""
        for key, pair in other.sums.items():
            if key not in self.sums:
                self.sums[key] = pair[0], pair[1]
                continue
            for known, more in zip(self.sums[key], pair, strict=True):
                known.merge(more)

    def at(
        self, measure: Measure, column: int, *, of_labels: bool, level: float | None
    ) -> tuple[float, tuple[float, float] | None] | None:
        """The placebo at a depth, and the interval of what the figure has beyond it; None if it is not known.

        There is no interval (None) with fewer than two queries, or for a level of None.
        """
        pair = self.sums.get((measure, of_labels))
        if pair is None:
            return None
        value = float(pair[0].value[column])
        if np.isnan(value):
            return None
        low, high = (float(end[column]) for end in pair[1].interval(level))
        return value, None if np.isnan(low) or np.isnan(high) else (low, high)


def _moments(outcome: Outcome) -> Moments:
    return Moments.of(replace(outcome.settled(), baseline=None))


def _placebos(judged: JudgedRun, plan: list[Planned]) -> Iterator[tuple[Measure, bool, Placebo]]:
    for measure, at in plan:
        if isinstance(measure.cutoff, Real) or not len(at) or type(measure).placebo is Measure.placebo:
            continue
        for of_labels in (True, False) if judged.corpus_size is not None else (True,):
            placebo = measure.placebo(judged, Universe(judged, at, np.full(len(at), of_labels)))
            if placebo is not None:
                yield measure, of_labels, placebo
