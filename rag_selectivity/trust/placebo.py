"""Closed labels and placebos: how far labels reach beyond what was retrieved, and what they would say of any list.

A placebo is what a figure would be if the same grades were shuffled, or if each query got another query's list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun, count_at
from rag_selectivity.judged.origins import Chosen
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import WHOLE_LIST, Measure, Outcome, Real
from rag_selectivity.measures.chance import BoR
from rag_selectivity.measures.plan import Plan, nearest_depth
from rag_selectivity.measures.shuffled import Universe
from rag_selectivity.measures.utility import Evidence
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.people import BoolArray

#: A difference that is only rounding is none.
_SAME = 1e-12
#: Labels are closed if at most this share of them is outside of what was retrieved.
MOST_OUTSIDE = 0.05
#: With this share of the top K judged, labels may have been made from the run, even if none has the lowest grade. They
#: follow a list as far as this share of its slots is labelled at every rank, …
JUDGED_FROM = 0.9
#: … and end there if less than this share of the slots at the following ranks is labelled.
_ENDED, FOLLOWING = 0.5, 10
#: A query's corpus counts as judged from this share on, and the dataset if more than `QUERIES` of its queries are.
CORPUS_SHARE, QUERIES_SHARE = 0.9, 0.9

AT_K, IN_LISTS = "at K", "in the lists"


@dataclass(frozen=True, slots=True)
class LabelReach:
    """Where the labels of a run are, at some depths: those that a retriever's filter leaves.

    Labels of passages that were drawn from a tail do not count.

    Attributes
    ----------
    labels : int
    outside_lists : int
        Labels of passages that no list and no pool of the evaluation holds.
    outside_top : int64[depths]
        Labels of passages outside the run's top K.
    known : bool
        Whether the origin of any label is known.
    pooled : bool
        Whether all labels are known to be of passages that runs retrieved.
    open_tails : bool
        Whether passages were drawn from tails, and some of these tails' passages were not drawn.
    closed : sequence of str or None
        `at K` if the labels are those of the run's own top K, `in the lists` if of what was retrieved; else None.
        Labels count as made from what was retrieved if some have the lowest grade, or if the top K is judged (almost)
        completely. If the origin of all labels is known, it decides: labels of pools are closed, whatever is evaluated.
    shuffled_among_labels : bool[queries, depths]
        Whether a placebo shuffles the grades among the query's labelled passages; otherwise in the whole corpus, as
        where labels are not closed, and those of the query hold no junk and are of few passages in its list.
    """

    labels: int
    outside_lists: int
    outside_top: IntArray
    known: bool
    pooled: bool
    open_tails: bool
    closed: Sequence[str | None]
    shuffled_among_labels: BoolArray

    @classmethod
    def of(cls, judged: JudgedRun, depths: IntArray, found: IntArray) -> LabelReach:
        """The labels of one run; `found` of each query's are held by some list or pool of the evaluation."""
        tail, tail_size = tails(judged)
        kept, lowest = judged.left.labels - tail, judged.grades == judged.scale.lowest
        labels, of_lowest = kept.sum(axis=1), kept[:, lowest].sum(axis=1)
        number, size = int(labels.sum()), judged.corpus_size
        by_number = not is_budget(depths).any()
        tops = [_top(judged, depths)] if by_number else [_top(*judged.at_depth(each)) for each in depths.tolist()]
        inside, lowest_inside, returned, slots = (np.hstack(each) for each in zip(*tops, strict=True))
        outside_top = np.maximum(labels[:, None] - inside, 0).sum(axis=0)
        lowest_outside_top = np.maximum(of_lowest[:, None] - lowest_inside, 0).sum(axis=0)
        outside_lists = int(np.maximum(labels - found, 0).sum())
        qrels, chosen = judged.qrels, np.zeros(0, np.uint8)
        if qrels is not None and qrels.origins is not None:
            chosen = np.delete(np.where(qrels.controls, 0, qrels.origins.chosen), judged.outside.judgment)
        # A label of a person need not be of what runs retrieved.
        pooled = 0 < int(((chosen & (Chosen.POOL | Chosen.TAIL)) != 0).sum()) == number + int(tail.sum())
        exhaustive = size is not None and (labels >= CORPUS_SHARE * size).sum() > QUERIES_SHARE * len(judged)
        share = (slots / np.maximum(returned, 1)).sum(axis=0) / np.maximum((returned > 0).sum(axis=0), 1)
        made = (share >= JUDGED_FROM) | pooled | of_lowest.any()
        in_lists: Any = IN_LISTS if pooled or outside_lists <= MOST_OUTSIDE * number else None
        closed = np.where(outside_top <= MOST_OUTSIDE * number, AT_K, in_lists).astype(object)
        closed[~made | exhaustive | (number == 0)] = None
        # The whole lists, which come last: a hit at the first rank is not why the query was judged.
        is_judged = slots[:, -1:] >= JUDGED_FROM * returned[:, -1:]
        is_judged |= kept[:, Evidence().worth(judged) == 0].any(axis=1, keepdims=True)
        among = exhaustive | closed.astype(bool) | ((lowest_outside_top > 0) & is_judged)
        open_tails = bool((tail_size > tail.sum(axis=1)).any())
        return cls(number, outside_lists, outside_top, bool(chosen.any()), pooled, open_tails, closed.tolist(), among)


def _top(judged: JudgedRun, depths: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Distinct judged passages in the top K, those with the lowest grade, slots that are filled, and judged ones."""
    lowest = count_at(judged.distinct.take(judged.distinct.grade == judged.scale.lowest), len(judged), depths)
    return judged.distinct_at(depths), lowest, judged.returned_at(depths), judged.judged_at(depths)


def labels_found_by_any(judged: Mapping[str, JudgedRun]) -> dict[str, IntArray]:
    """For each run, how many labels of each of its queries are of passages that any run or pool holds."""
    position: dict[str, int] = {}
    numbers = {
        name: np.array([position.setdefault(query, len(position)) for query in run.queries], np.int64)
        for name, run in judged.items()
    }
    hits = [(numbers[name], of) for name, run in judged.items() for of in (run.hits, run.candidates)]
    query_of = np.full(1 + max((int(of.judgment.max(initial=-1)) for _, of in hits), default=-1), -1)
    for number, of in hits:
        query_of[of.judgment] = number[of.query]
    counts = np.bincount(query_of[query_of >= 0], minlength=len(position))
    return {name: counts[number] for name, number in numbers.items()}


def hold_junk(judged: JudgedRun, measure: Evidence = Evidence()) -> bool:
    """Whether labels call some passages no evidence; else, or if all others are none, Judged follows relevance."""
    return judged.policy.unjudged != "worst" and bool(judged.labels[:, measure.worth(judged) == 0].any())


def labelled_down_to(judged: JudgedRun, measure: Evidence = Evidence()) -> int:
    """The rank at which the labels end: nearly all slots are labelled down to it, and few beyond.

    0 where labels do not follow the lists: they fade below the pools of many runs, or are of evidence only.
    """
    if not hold_junk(judged, measure):
        return 0
    # At each rank, the lists that reach it, and those with a labelled passage there.
    slots = np.bincount(judged.returned)[:0:-1].cumsum()[::-1]
    labelled = np.bincount(judged.hits.rank, minlength=len(slots) + 1)[1:]
    gaps = np.flatnonzero(labelled < JUDGED_FROM * slots)
    end = int(gaps[0]) if len(gaps) else len(slots)
    following = slice(end, end + FOLLOWING)
    # Where labels fade below the pools of many runs, they end nowhere.
    return 0 if slots[following].sum() and labelled[following].sum() >= _ENDED * slots[following].sum() else end


def tails(judged: JudgedRun) -> tuple[IntArray, IntArray]:
    """The labels of passages that were drawn from a tail alone, and how many passages the tail of each query has.

    int64[queries, levels], as `JudgedRun.labels`, and int64[queries]; 0 without a tail.
    """
    labels, size = np.zeros_like(judged.labels), np.zeros(len(judged), np.int64)
    qrels = judged.qrels
    if qrels is None or qrels.origins is None or not qrels.origins.are(Chosen.TAIL).any():
        return labels, size
    in_tail, sizes = qrels.origins.tails(qrels.query, len(qrels), judged.outside.judgment)
    row = judged.positions(qrels.queries)
    of_label, level = row[qrels.query[in_tail]], np.searchsorted(judged.grades, qrels.grade[in_tail])
    np.add.at(labels, (of_label[of_label >= 0], level[of_label >= 0]), 1)
    size[row[row >= 0]] = sizes[row >= 0]
    return labels, size


# -- placebos ------------------------------------------------------------------------------------------


def placebos_of(
    judged: JudgedRun, plan: Plan, outcomes: Sequence[Outcome], of_labels: Mapping[Any, BoolArray]
) -> dict[Measure, list[Outcome]]:
    """The placebo of each measure that has one, and what its figure has beyond it; NaN where no universe is known.

    `of_labels` says whether grades are shuffled among the labelled passages, for each depth and query.
    """
    result = {}
    beside: Any = {"baseline": None, "weights": None if judged.weights is None else judged.weights.values}
    for (measure, at), outcome in zip(plan, outcomes, strict=True):
        if isinstance(measure.cutoff, Real) or not len(at) or measure.of_groups:
            continue
        among = np.stack([of_labels[depth] for depth in at.tolist()], axis=1)
        pairs = [_placebo_of(measure, judged, at, among, outcome)]
        if is_budget(at).any():
            # Each query is measured at its own K.
            by_depth = map(judged.at_depth, at.tolist())
            pairs = [
                _placebo_of(measure, some, ranks, among[:, [i]], measure.at_ranks(some, ranks))
                for i, (some, ranks) in enumerate(by_depth)
            ]
        if found := [pair for pair in pairs if pair is not None]:
            # Without a corpus size there is no corpus to shuffle in, and a placebo of few queries says nothing of all.
            known = (among & (among.mean(axis=0) > 0.5)) | (judged.corpus_size is not None)
            settled = [Outcome.beside(each).settled() for each in zip(*found, strict=True)]
            result[measure] = [
                replace(each, parts=tuple(np.where(known, part, np.nan) for part in each.parts), **beside)
                for each in settled
            ]
    return result


def _placebo_of(
    measure: Measure, judged: JudgedRun, depths: IntArray, of_labels: BoolArray, figures: Outcome
) -> tuple[Outcome, Outcome] | None:
    """The placebo of a measure, and what the figures have beyond it; None for a measure without."""
    if (expected := measure.shuffled(Universe(judged, depths, of_labels))) is None:
        return None
    first, *others = figures.parts
    placebo, *more = (np.where(np.isnan(others[0] if others else first), np.nan, each) for each in expected)
    if others:
        # Beyond the placebo lies mean Success / mean shuffled Success, or its log2: the random baseline cancels.
        return replace(figures, parts=(placebo, *others)), replace(figures, parts=(first, placebo, *more))
    gap = first - placebo
    gap = np.where(np.abs(gap) <= _SAME * np.maximum(1.0, np.abs(first)), 0.0, gap)
    # A figure lies between 0 and 1, so this is how far from it the placebos can be.
    low = -np.nan_to_num(placebo, nan=0.0).max(axis=0, initial=0.0)
    high = 1.0 - np.nan_to_num(placebo, nan=1.0).min(axis=0, initial=1.0)
    # The figures stand beside: where few of them differ, their distances to placebos say no more.
    beyond_it = Outcome((gap, first), figures.undefined, figures.aggregate, bounds=(low, high))
    return replace(figures, parts=(placebo,)), beyond_it


def against_other_lists(figures: Figures, bootstrap: Bootstrap | None) -> dict[str, dict[str, Any]]:
    """BoR against the lists of the other queries, at the depth nearest to 10 of each BoR, by its name.

    Empty where these lists are not known.
    """
    result: dict[str, dict[str, Any]] = {}
    if bootstrap is None or figures.join.other_lists is None:
        return result
    for measure, at in figures.plan:
        ranks = at[~is_budget(at) & (at < WHOLE_LIST)]
        if isinstance(measure, BoR) and measure.null == "random" and len(ranks):
            depth = np.array([nearest_depth(ranks.tolist())])
            over = replace(measure, null="lists")
            outcome = over.outcome(figures.join, depth)
            ((low, high),) = bootstrap.intervals([outcome], figures.queries)
            numbers = {"value": outcome.value()[0], "low": low[0], "high": high[0]}
            known = {name: float(end) if np.isfinite(end) else None for name, end in numbers.items()}
            result[str(measure @ int(depth[0]))] = {"measure": str(over @ int(depth[0])), **known}
    return result
