"""Placebos: what figures would be if the same grades were shuffled, or if each query got another query's list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import WHOLE_LIST, Measure, Outcome, Real
from rag_selectivity.measures.chance import BoR
from rag_selectivity.measures.plan import Plan
from rag_selectivity.measures.shuffled import Universe
from rag_selectivity.tables.ids import IntArray

#: A difference that is only rounding is none.
_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Placebo:
    """The placebo of a measure and what its figure has beyond it, by query; NaN where no universe is known."""

    measure: Measure
    placebo: Outcome
    beyond: Outcome


def placebos_of(
    judged: JudgedRun, plan: Plan, outcomes: Sequence[Outcome], of_labels: Mapping[Measure, NDArray[np.bool_]]
) -> list[Placebo]:
    """The placebos of a whole dataset, of the measures that have one.

    `of_labels` says whether grades are shuffled among the labelled passages, at each depth of a measure.
    """
    result = []
    for (measure, at), outcome in zip(plan, outcomes, strict=True):
        if isinstance(measure.cutoff, Real) or not len(at) or measure.of_groups:
            continue
        among = of_labels[measure]
        pair = _placebo_of(measure, judged, at, among, outcome)
        if is_budget(at).any() and pair is not None:
            # Each query is measured at its own K.
            columns = []
            for i, depth in enumerate(at.tolist()):
                some, ranks = judged.at_depth(depth)
                columns.append(_placebo_of(measure, some, ranks, among[[i]], measure.at_ranks(some, ranks)))
            pair = tuple(map(Outcome.beside, zip(*filter(None, columns), strict=True)))
        if pair is None:
            continue
        # Without a corpus size there is no corpus to shuffle in.
        known = among | (judged.corpus_size is not None)
        weights = None if judged.weights is None else judged.weights.values
        settled = [each.settled() for each in pair]
        placebo, beyond = (
            replace(
                each,
                parts=tuple(np.where(known, part, np.nan) for part in each.parts),
                baseline=None,
                weights=weights,
            )
            for each in settled
        )
        result.append(Placebo(measure, placebo, beyond))
    return result


def _placebo_of(
    measure: Measure, judged: JudgedRun, depths: IntArray, of_labels: NDArray[np.bool_], figures: Outcome
) -> tuple[Outcome, ...] | None:
    """The placebo of a measure, and what the figures have beyond it; None for a measure without."""
    expected = measure.shuffled(Universe(judged, depths, of_labels))
    if expected is None:
        return None
    first, *others = figures.parts
    missing = np.isnan(others[0] if others else first)
    expected = tuple(np.where(missing, np.nan, each) for each in expected)
    if others:
        # Beyond the placebo of BoR lies log2 of mean Success / mean shuffled Success: the random baseline cancels.
        beyond = (first, *expected) if figures.aggregate.form == "bits" else (first - expected[0], *others)
        return replace(figures, parts=(expected[0], *others)), replace(figures, parts=beyond)
    (placebo,) = expected
    gap = first - placebo
    gap = np.where(np.abs(gap) <= _SAME * np.maximum(1.0, np.abs(first)), 0.0, gap)
    # A figure lies between 0 and 1, so this is how far from it the placebos can be.
    low = -np.nan_to_num(placebo, nan=0.0).max(axis=0, initial=0.0)
    high = 1.0 - np.nan_to_num(placebo, nan=1.0).min(axis=0, initial=1.0)
    # The figures stand beside: where few of them differ, their distances to placebos say no more.
    beyond_it = Outcome((gap, first), figures.undefined, figures.aggregate, bounds=(low, high))
    return replace(figures, parts=(placebo,)), beyond_it


def against_other_lists(figures: Figures, bootstrap: Bootstrap | None) -> dict[str, dict[str, Any]]:
    """BoR against the lists of the other queries, at the depth next to 10 of each BoR, by its name.

    Empty where these lists are not known.
    """
    result: dict[str, dict[str, Any]] = {}
    if figures.join.other_lists is None or bootstrap is None:
        return result
    for measure, at in figures.plan:
        ranks = at[~is_budget(at) & (at < WHOLE_LIST)]
        if isinstance(measure, BoR) and measure.null == "random" and len(ranks):
            depth = ranks[[np.argmin(np.abs(np.log(ranks / 10)))]]
            over = replace(measure, null="lists")
            outcome = over.outcome(figures.join, depth)
            ((low, high),) = bootstrap.intervals([outcome], figures.queries)
            numbers = {"value": outcome.value(), "low": low, "high": high}
            known = {name: float(end[0]) if np.isfinite(end[0]) else None for name, end in numbers.items()}
            result[str(measure @ int(depth[0]))] = {"measure": str(over @ int(depth[0])), **known}
    return result
