"""Placebos: what figures would be if the same grades were shuffled, or if each query got another query's list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import WHOLE_LIST, Measure, Outcome, Real
from rag_selectivity.measures.chance import BoR
from rag_selectivity.measures.plan import Plan
from rag_selectivity.measures.shuffled import Universe
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.people import BoolArray

#: A difference that is only rounding is none.
_SAME = 1e-12


def placebos_of(
    judged: JudgedRun, plan: Plan, outcomes: Sequence[Outcome], of_labels: Mapping[Measure, BoolArray]
) -> dict[Measure, list[Outcome]]:
    """The placebo of each measure that has one, and what its figure has beyond it; NaN where no universe is known.

    `of_labels` says whether grades are shuffled among the labelled passages, at each depth of a measure.
    """
    result = {}
    weights = None if judged.weights is None else judged.weights.values
    for (measure, at), outcome in zip(plan, outcomes, strict=True):
        if isinstance(measure.cutoff, Real) or not len(at) or measure.of_groups:
            continue
        among = of_labels[measure]
        pairs = [_placebo_of(measure, judged, at, among, outcome)]
        if is_budget(at).any():
            # Each query is measured at its own K.
            by_depth = map(judged.at_depth, at.tolist())
            pairs = [
                _placebo_of(measure, some, ranks, among[[i]], measure.at_ranks(some, ranks))
                for i, (some, ranks) in enumerate(by_depth)
            ]
        found = [pair for pair in pairs if pair is not None]
        if found:
            # Without a corpus size there is no corpus to shuffle in.
            known = among | (judged.corpus_size is not None)
            settled = [Outcome.beside(each).settled() for each in zip(*found, strict=True)]
            result[measure] = [
                replace(
                    each,
                    parts=tuple(np.where(known, part, np.nan) for part in each.parts),
                    baseline=None,
                    weights=weights,
                )
                for each in settled
            ]
    return result


def _placebo_of(
    measure: Measure, judged: JudgedRun, depths: IntArray, of_labels: BoolArray, figures: Outcome
) -> tuple[Outcome, Outcome] | None:
    """The placebo of a measure, and what the figures have beyond it; None for a measure without."""
    expected = measure.shuffled(Universe(judged, depths, of_labels))
    if expected is None:
        return None
    first, *others = figures.parts
    missing = np.isnan(others[0] if others else first)
    placebo, *more = (np.where(missing, np.nan, each) for each in expected)
    if others:
        # Beyond the placebo of BoR lies log2 of mean Success / mean shuffled Success: the random baseline cancels.
        beyond = (first, placebo, *more) if figures.aggregate.form == "bits" else (first - placebo, *others)
        return replace(figures, parts=(placebo, *others)), replace(figures, parts=beyond)
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
    for measure, at in figures.plan if figures.join.other_lists is not None and bootstrap is not None else ():
        ranks = at[~is_budget(at) & (at < WHOLE_LIST)]
        if isinstance(measure, BoR) and measure.null == "random" and len(ranks):
            depth = ranks[[np.argmin(np.abs(np.log(ranks / 10)))]]
            over = replace(measure, null="lists")
            outcome = over.outcome(figures.join, depth)
            ((low, high),) = (bootstrap or Bootstrap()).intervals([outcome], figures.queries)
            numbers = {"value": outcome.value()[0], "low": low[0], "high": high[0]}
            known = {name: float(end) if np.isfinite(end) else None for name, end in numbers.items()}
            result[str(measure @ int(depth[0]))] = {"measure": str(over @ int(depth[0])), **known}
    return result
