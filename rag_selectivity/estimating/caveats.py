"""Caveats: why a figure must not be taken at face value. Each has a code, a level and a rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_selectivity.judged.reach import AT_K, IN_LISTS, LabelReach
from rag_selectivity.judged.token_budget import named_top
from rag_selectivity.measures.base import WHOLE_LIST, Measure, Real, parse_measure
from rag_selectivity.results.estimate import (
    AS_JUDGED,
    CONCENTRATED,
    CONCENTRATED_CONTROLS,
    NOTE,
    PARTLY_JUDGED,
    SOFT,
    STRONG,
    WITH_CONTROLS,
    WITH_TAIL,
    Caveat,
    Estimate,
)
from rag_selectivity.results.provenance import (
    LOW_AGREEMENT,
    NO_AGREEMENT,
    NOT_DRAWN,
    ONE_JUDGE,
    OUTDATED,
    UNKNOWN_ORIGIN,
    UNLABELLED_STRATA,
    Provenance,
)
from rag_selectivity.results.trust import CLOSED, EQUALS_PLACEBO, UNLESS_PERFECT
from rag_selectivity.trust.ground import WithoutLabels
from rag_selectivity.trust.placebos import OfLabels, PlaceboFigures
from rag_selectivity.wording import counted, percent

BY_CONSTRUCTION, DOWN_TO, AS_JUDGED_BASELINE = "by-construction", "down-to-rank", "as-judged-baseline"

#: Every code with its levels; `rag_selectivity.explain.codes` has their pages.
CAVEATS: dict[str, tuple[str, ...]] = {
    CLOSED: (STRONG, SOFT),
    EQUALS_PLACEBO: (STRONG,),
    BY_CONSTRUCTION: (STRONG, SOFT),
    DOWN_TO: (SOFT, NOTE),
    PARTLY_JUDGED: (SOFT,),
    CONCENTRATED: (SOFT,),
    CONCENTRATED_CONTROLS: (SOFT,),
    AS_JUDGED_BASELINE: (SOFT,),
    ONE_JUDGE: (NOTE,),
    NO_AGREEMENT: (SOFT,),
    LOW_AGREEMENT: (STRONG,),
    OUTDATED: (SOFT,),
    UNKNOWN_ORIGIN: (NOTE,),
    NOT_DRAWN: (SOFT,),
    UNLABELLED_STRATA: (SOFT, NOTE),
}


_CONTROLS_UNUSED = "The random controls have grades by the judge alone, so calibrated figures do not use them."


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """What is known of the labels of a run: how far they reach, and their placebos, at the depths of `depths`.

    Attributes
    ----------
    depths : int64[depths]
        WHOLE_LIST stands for whole lists.
    tail_ranks : (first, last) or None
        The ranks below the pools that passages were drawn from.
    open_tails : bool
        Whether some passages of these ranks were not drawn.
    controls_unused : bool
        Whether there are random controls on which no figure rests.
    exhaustive : bool
        Whether the user said that every unjudged passage has the lowest grade.
    """

    depths: Any
    reach: LabelReach
    placebos: Mapping[Measure, PlaceboFigures]
    tail_ranks: tuple[int, int] | None = None
    open_tails: bool = False
    controls_unused: bool = False
    exhaustive: bool = False

    def columns(self) -> dict[int, tuple[int, str | None]]:
        """The place of each depth, and how the labels are closed there (`LabelReach.closed`)."""
        known = not self.exhaustive or self.reach.known
        return {depth: (i, self.reach.closed(i) if known else None) for i, depth in enumerate(self.depths.tolist())}


def universes(plan: Iterable[tuple[Measure, Any]], depths: Any, reach: LabelReach, *, exhaustive: bool) -> OfLabels:
    """Whether the placebos of each measure shuffle grades among the labels, at each of its depths.

    `depths` are those of `reach`. `exhaustive` is True if the user said that every unjudged passage has the lowest
    grade.
    """
    among = {depth: reach.shuffled_among_labels(i) and not exhaustive for i, depth in enumerate(depths.tolist())}
    return {measure: np.array([among.get(depth, False) for depth in at.tolist()], bool) for measure, at in plan}


def with_label_caveats(
    estimates: Mapping[str, Estimate], facts: LabelFacts, plan: Mapping[Measure, Any]
) -> dict[str, Estimate]:
    """The estimates of one run with their placebos, and with caveats about the labels.

    `plan` holds the depths of each measure.
    """
    qualified = {}
    columns = facts.columns()
    places = {measure: {depth: i for i, depth in enumerate(plan[measure].tolist())} for measure in facts.placebos}
    for key, estimate in estimates.items():
        measure = parse_measure(key)
        # Measures at recall levels, and without a depth, rest on whole lists.
        column, closed = columns[
            WHOLE_LIST if measure.at is None or isinstance(measure.cutoff, Real) else int(measure.at)
        ]
        if closed == AT_K and _ranks_whole_lists(measure):
            # Measures of ranks in whole lists compare orders of what was found, not what was found.
            closed = IN_LISTS
        estimate = _with_placebo(measure, estimate, facts, places)
        found = [
            _of_construction(measure, estimate, facts, closed),
            _of_reach(measure, estimate, facts, column, closed),
            _of_placebo(estimate, perfect=closed == AT_K and not facts.reach.pooled),
        ]
        added = [caveat for caveat in found if caveat is not None]
        qualified[key] = replace(estimate, caveats=(*estimate.caveats, *added)) if added else estimate
    return qualified


def with_unchecked_judge(estimates: Mapping[str, Estimate], provenance: Provenance | None) -> dict[str, Estimate]:
    """The estimates, with the caveat about a judge that nobody checked at those that look at the grades of lists alone.

    These have no caveat about what labels miss, and so they look safe.
    """
    caveat = None if provenance is None else provenance.unchecked
    if caveat is None:
        return dict(estimates)
    result = {}
    for key, estimate in estimates.items():
        measure = parse_measure(key)
        safe = measure.higher_is_better is not None and not measure.compares_with_all_labels
        if safe and measure.name != "Judged" and not math.isnan(estimate.value):
            estimate = replace(estimate, caveats=(*estimate.caveats, caveat))
        result[key] = estimate
    return result


def of_strata(without: WithoutLabels | None) -> tuple[Caveat, ...]:
    """The caveat of a figure that is completed in strata of which people labelled no pair; empty for others."""
    if without is None:
        return ()
    level, numbers = SOFT if without.bounded else NOTE, {"pairs": without.pairs, "of": without.of}
    return (Caveat(UNLABELLED_STRATA, without.text, level, numbers),)


def _ranks_whole_lists(measure: Measure) -> bool:
    return isinstance(measure.cutoff, Real) or (measure.at is None and measure.takes_whole_lists)


def _with_placebo(
    measure: Measure,
    estimate: Estimate,
    facts: LabelFacts,
    places: Mapping[Measure, Mapping[int, int]],
) -> Estimate:
    base = measure.without_depth
    if base not in facts.placebos or not math.isfinite(estimate.value) or estimate.basis not in (AS_JUDGED, WITH_TAIL):
        return estimate
    placebo, place = facts.placebos[base], places[base].get(WHOLE_LIST if measure.at is None else int(measure.at))
    if place is None:
        return estimate
    value, low, high = (float(each[place]) for each in (placebo.value, placebo.low, placebo.high))
    if math.isnan(value):
        return estimate
    return replace(estimate, placebo=value, above_placebo=None if math.isnan(low) or math.isnan(high) else (low, high))


def _of_construction(measure: Measure, estimate: Estimate, facts: LabelFacts, closed: str | None) -> Caveat | None:
    """Success over the queries in which something relevant was found, if hardly more than what runs hold was judged."""
    if measure.name != "Success" or closed is None or estimate.basis not in (AS_JUDGED, WITH_TAIL):
        return None
    if not 0 < estimate.n < estimate.n_total:
        return None
    if closed != AT_K or estimate.basis != AS_JUDGED:
        return _of_found_alone(estimate)
    top = "what was shown" if measure.at is None else named_top(measure.at)
    labels = "Nearly all labels" if facts.tail_ranks is None else "Nearly all labels but those of the tail"
    left_out = counted(estimate.n_total - estimate.n, "query", "queries")
    of_all = estimate.value * estimate.n / estimate.n_total
    return Caveat(
        BY_CONSTRUCTION,
        f"{labels} are of {top}, and {left_out} without a relevant label are left out: nearly all others succeed by "
        f"construction. Of all queries, {percent(of_all)} succeed.",
        STRONG,
        {"of_all_queries": of_all},
    )


def _of_found_alone(estimate: Estimate) -> Caveat:
    """Success over the queries for which some run found something relevant."""
    value = estimate.value if estimate.as_judged is None else estimate.as_judged
    of_all = value * estimate.n / estimate.n_total
    left_out = counted(estimate.n_total - estimate.n, "query", "queries")
    return Caveat(
        BY_CONSTRUCTION,
        f"The labels are of what runs retrieved, and {left_out} without a relevant label are left out: their relevant "
        f"passages may not have been found. Of all {estimate.n_total} queries, {percent(of_all)} are known to succeed.",
        SOFT,
        {"of_all_queries": of_all},
    )


def _of_reach(
    measure: Measure, estimate: Estimate, facts: LabelFacts, column: int, closed: str | None
) -> Caveat | None:
    if not measure.compares_with_all_labels or closed is None or math.isnan(estimate.value):
        return None
    if estimate.basis == WITH_CONTROLS:
        return None
    if measure.needs_corpus_size and facts.tail_ranks is not None:
        last = facts.tail_ranks[1]
        controls = "Random controls show whether it does."
        if facts.controls_unused:
            controls = _CONTROLS_UNUSED
        return Caveat(
            CLOSED,
            f"All labels are of passages of the pools down to rank {last}. The random baseline counts only the "
            f"relevant ones among these: it is too low if the rest of the corpus holds others. {controls}",
            SOFT,
            {"last_rank": last},
        )
    if facts.tail_ranks is not None and facts.open_tails and estimate.basis == AS_JUDGED:
        return Caveat(
            DOWN_TO,
            f"The figure is about the candidates down to rank {facts.tail_ranks[1]}, and those below rank "
            f"{facts.tail_ranks[0] - 1} that were not drawn count as not relevant.",
            SOFT,
            {"last_rank": facts.tail_ranks[1]},
        )
    if facts.tail_ranks is not None:
        return Caveat(
            DOWN_TO,
            f"The figure is about the candidates down to rank {facts.tail_ranks[1]}, of which a random part was "
            f"graded below rank {facts.tail_ranks[0] - 1}. Relevant passages that no list holds are missing from it.",
            NOTE,
            {"last_rank": facts.tail_ranks[1]},
        )
    reach = facts.reach
    outside, lists = int(reach.outside_top[column]), reach.outside_lists
    numbers = {"labels": reach.labels, "outside_top": outside, "outside_lists": lists}
    missing = "Best sets, recall and random baselines count only what was found"
    if closed == AT_K:
        top = "the list" if facts.depths[column] == WHOLE_LIST else named_top(facts.depths[column])
        own = f"{_labels_outside(outside, reach)} outside {top}{_doubt(reach)}"
        return Caveat(CLOSED, f"{own}. {missing}, so the figure compares {top} with itself.", STRONG, numbers)
    own = "All labels are of passages that the pooled runs retrieved"
    if facts.controls_unused:
        own = f"{_CONTROLS_UNUSED.removesuffix('.')}, and all other labels are of passages that the runs retrieved"
    elif not reach.pooled:
        own = f"{_labels_outside(lists, reach)} outside the evaluated lists and pools{_doubt(reach)}"
    return Caveat(CLOSED, f"{own}. {missing}, so the figure ranks the runs' own finds.", SOFT, numbers)


def _labels_outside(count: int, reach: LabelReach) -> str:
    """`Only 1.2% of the labels are`, for a sentence on what they are outside of."""
    return f"Only {percent(count / reach.labels)} of the labels are" if count else "No label is"


def _doubt(reach: LabelReach) -> str:
    return "" if reach.pooled else ": they were probably made from what was retrieved, or this is a perfect run"


def equals_placebo(estimate: Estimate) -> bool:
    """Whether it has the caveat that it is not shown to differ from its placebo."""
    return any(caveat.code == EQUALS_PLACEBO for caveat in estimate.caveats)


def _of_placebo(estimate: Estimate, perfect: bool) -> Caveat | None:
    """`perfect`: whether a perfect run would give the same figures."""
    if estimate.placebo is None or estimate.above_placebo is None:
        return None
    low, high = estimate.above_placebo
    if not low <= 0 <= high:
        return None
    unless = UNLESS_PERFECT if perfect else ""
    return Caveat(
        EQUALS_PLACEBO,
        f"It is not shown that the figure differs from its placebo, the figure of the same grades shuffled (the "
        f"interval of the difference contains 0): it shows nothing about the retriever{unless}.",
        STRONG,
        {"placebo": estimate.placebo, "low": low, "high": high},
    )
