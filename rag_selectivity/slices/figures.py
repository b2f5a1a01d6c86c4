"""The parts of a run that are its slices, and what only a whole can have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.measures import Outcome
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.results.estimate import CALIBRATED, WITH_TAIL, Estimate
from rag_selectivity.results.slices import Slices
from rag_selectivity.slices.given import N5
from rag_selectivity.slices.slicing import Slicing
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.slice_intervals import slice_intervals
from rag_selectivity.wording import counted

_ONLY_OF_ALL = {
    CALIBRATED: "people's labels tell the judge's errors over all queries, not in each slice: no calibrated figure",
    WITH_TAIL: "the labels of tails are completed over all queries together: no figure with a tail in a slice",
}


@dataclass(frozen=True)
class Part:
    """A slice of a run: its outcomes in the plan's order, and the low and high of each, NaN without intervals.

    `chosen` marks its queries among those of the run.
    """

    column: str
    value: str
    run: JudgedRun
    chosen: NDArray[np.bool_]
    outcomes: list[Outcome]
    ends: list[tuple[FloatArray, FloatArray]]

    @property
    def queries(self) -> int:
        """The number of its queries."""
        return int(self.chosen.sum())

    @cached_property
    def judged(self) -> JudgedRun:
        """The join of its queries."""
        return self.run.over(self.chosen)


def parts_of(
    run: JudgedRun, outcomes: Sequence[Outcome], slicings: Sequence[Slicing], bootstrap: Bootstrap | None
) -> Iterator[Part]:
    """Each slice of a run that has queries in it; intervals come from the same resamples as those of all queries."""
    places = [slicing.places(run.queries) for slicing in slicings]
    intervals = None
    if bootstrap is not None and not bootstrap.drawn_by_id and slicings:
        intervals = slice_intervals(bootstrap, outcomes, run.queries, places)
    for i, slicing in enumerate(slicings):
        for place, value in enumerate(slicing.values):
            chosen = places[i] == place
            if not chosen.any():
                continue
            some = [outcome.over(chosen) for outcome in outcomes]
            none = [(np.full(outcome.parts[0].shape[1], np.nan),) * 2 for outcome in outcomes]
            ends = none if intervals is None else intervals[i][place]
            yield Part(slicing.column, value, run, chosen, some, ends)


def only_of_all(estimates: Mapping[str, Estimate], completed: Iterable[str], basis: str) -> dict[str, Estimate]:
    """The estimates of a slice, without a value where that of all queries rests on more than the labels as they are.

    `completed` are the names of these figures. The figure as judged stands beside the missing value.
    """
    result = dict(estimates)
    for key in completed:
        if key in result:
            judged = result[key]
            result[key] = replace(
                judged,
                value=math.nan,
                low=math.nan,
                high=math.nan,
                reason=_ONLY_OF_ALL[basis],
                basis=basis,
                as_judged=judged.value,
                as_judged_interval=(judged.low, judged.high),
            )
    return result


def remarks_on(slices: Slices) -> list[str]:
    """What a reader must know who compares slices of n5: RA-nWG has other weights without a decisive passage."""
    by_value = slices.get(N5, {})
    without, others = by_value.get("0"), [part for value, part in by_value.items() if value != "0"]
    if without is None or not others:
        return []
    key = next((key for key in without.estimates if parse_measure(key).name == "RA-nWG"), None)
    if key is None:
        return []
    queries = counted(without[key].n, "query", "queries")
    return [
        f"RA-nWG of the {queries} without a decisive passage (n5 = 0) has other weights (grade 4: 1, grade 3: 0.2) "
        f"than that of the {sum(part[key].n for part in others):,} others, so the same list can score higher there: a "
        f"difference between these slices is partly one of weights"
    ]
