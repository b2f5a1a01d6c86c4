"""How far the labels reach beyond what was retrieved: sums over queries, from which closed labels are recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rag_selectivity.judged.judged_run import JudgedRun, count_at
from rag_selectivity.judged.origins import Chosen
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.people import BoolArray

#: Labels are closed if at most this share of them is outside of what was retrieved.
MOST_OUTSIDE = 0.05
#: With this share of the top K judged, labels may have been made from the run, even if none has the lowest grade.
JUDGED_FROM = 0.9
#: A query's corpus counts as judged from this share on, and the dataset if more than `QUERIES` of its queries are.
CORPUS_SHARE, QUERIES_SHARE = 0.9, 0.9

AT_K, IN_LISTS = "at K", "in the lists"


@dataclass(frozen=True, slots=True)
class LabelReach:
    """Where the labels of a run are, at some depths. Labels of passages that were drawn from a tail do not count.

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
    closed : tuple of str or None
        `at K` if the labels are those of the run's own top K, `in the lists` if of what was retrieved; else None.
        Labels count as made from what was retrieved if some have the lowest grade, or if the top K is judged (almost)
        completely. If the origin of all labels is known, it decides: labels of pools are closed, whatever is evaluated.
    shuffled_among_labels : bool[depths]
        Whether a placebo shuffles the grades among the labelled passages; otherwise among the whole corpus.
    """

    labels: int
    outside_lists: int
    outside_top: IntArray
    known: bool
    pooled: bool
    open_tails: bool
    closed: tuple[str | None, ...]
    shuffled_among_labels: BoolArray

    @classmethod
    def of(cls, judged: JudgedRun, depths: IntArray, found: IntArray) -> LabelReach:
        """The labels of one run; `found` of each query's are held by some list or pool of the evaluation."""
        tail, tail_size = tails(judged)
        kept, lowest = judged.labels - tail, judged.grades == judged.scale.lowest
        labels, of_lowest = kept.sum(axis=1), kept[:, lowest].sum(axis=1)
        number, size = int(labels.sum()), judged.corpus_size
        by_number = not is_budget(depths).any()
        tops = [_top(judged, depths)] if by_number else [_top(*judged.at_depth(each)) for each in depths.tolist()]
        inside, lowest_inside, returned, slots = (np.hstack(each) for each in zip(*tops, strict=True))
        outside_top, lowest_outside_top = (
            np.maximum(of[:, None] - held, 0).sum(axis=0) for of, held in ((labels, inside), (of_lowest, lowest_inside))
        )
        outside_lists = int(np.maximum(labels - found, 0).sum())
        known, qrels = 0, judged.qrels
        if qrels is not None and qrels.origins is not None:
            known = int(((qrels.origins.chosen != 0) & ~qrels.controls).sum())
        pooled = 0 < known == number + int(tail.sum())
        exhaustive = size is not None and (labels >= CORPUS_SHARE * size).sum() > QUERIES_SHARE * len(judged)
        share = (slots / np.maximum(returned, 1)).sum(axis=0) / np.maximum((returned > 0).sum(axis=0), 1)
        made = (share >= JUDGED_FROM) | pooled | of_lowest.any()
        in_lists = IN_LISTS if pooled or outside_lists <= MOST_OUTSIDE * number else None
        closed = tuple(
            None if exhaustive or not number or not of_run else AT_K if outside <= MOST_OUTSIDE * number else in_lists
            for of_run, outside in zip(made.tolist(), outside_top.tolist(), strict=True)
        )
        among = exhaustive | np.array([each is not None for each in closed]) | (lowest_outside_top > 0)
        open_tails = bool((tail_size > tail.sum(axis=1)).any())
        return cls(number, outside_lists, outside_top, known > 0, pooled, open_tails, closed, among)


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


def tails(judged: JudgedRun) -> tuple[IntArray, IntArray]:
    """The labels of passages that were drawn from a tail alone, and how many passages the tail of each query has.

    int64[queries, levels], as `JudgedRun.labels`, and int64[queries]; 0 without a tail.
    """
    labels, size = np.zeros_like(judged.labels), np.zeros(len(judged), np.int64)
    qrels = judged.qrels
    if qrels is None or qrels.origins is None or not qrels.origins.are(Chosen.TAIL).any():
        return labels, size
    in_tail, sizes = qrels.origins.tails(qrels.query, len(qrels))
    row = judged.positions(qrels.queries)
    of_label, level = row[qrels.query[in_tail]], np.searchsorted(judged.grades, qrels.grade[in_tail])
    np.add.at(labels, (of_label[of_label >= 0], level[of_label >= 0]), 1)
    size[row[row >= 0]] = sizes[row >= 0]
    return labels, size
