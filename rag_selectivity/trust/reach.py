"""How far the labels reach beyond what was retrieved: sums over queries, from which closed labels are recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.judged.judged_run import JudgedRun, count_at
from rag_selectivity.judged.origins import Chosen
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.tables.ids import IntArray

#: Labels are closed if at most this share of them is outside of what was retrieved.
MOST_OUTSIDE = 0.05
#: With this share of the top K judged, labels may have been made from the run, even if none has the lowest grade.
JUDGED_FROM = 0.9
#: A query's corpus counts as judged from this share on, and the dataset if more than `QUERIES` of its queries are.
CORPUS_SHARE, QUERIES_SHARE = 0.9, 0.9

AT_K, IN_LISTS = "at K", "in the lists"


@dataclass(frozen=True, slots=True)
class LabelReach:
    """Sums over the queries of a run, at some depths.

    Labels of passages that were drawn from a tail do not count.

    Attributes
    ----------
    queries, labels, lowest : int
        Queries, their labels, and those with the lowest grade of the scale.
    outside_lists : int
        Labels of passages that no list and no pool of the evaluation holds.
    exhaustive : int
        Queries with labels for at least 90 % of their corpus.
    known : int
        Labels whose origin is known.
    tails : int
        Labels of passages that were drawn from a tail.
    outside_top, lowest_outside_top : int64[depths]
        Labels of passages outside the run's top K, and those of them with the lowest grade.
    listed : int64[depths]
        Queries with a list that is not empty.
    judged_shares : float64[depths]
        The sum over these of the judged share of the top K.
    """

    queries: int
    labels: int
    lowest: int
    outside_lists: int
    exhaustive: int
    known: int
    tails: int
    outside_top: IntArray
    lowest_outside_top: IntArray
    listed: IntArray
    judged_shares: Any

    @classmethod
    def of(cls, judged: JudgedRun, depths: IntArray, found: IntArray | None = None) -> LabelReach:
        """The sums of one run.

        `found` is the number of labels of each query that some list or pool of the evaluation holds; by default, that
        the run or its pool holds.
        """
        tail, _ = tails(judged)
        counted = judged.labels - tail
        lowest = judged.grades == judged.scale.lowest
        by_number = not is_budget(depths).any()
        tops = [_top(judged, depths)] if by_number else [_top(*judged.at_depth(each)) for each in depths.tolist()]
        inside, lowest_inside, returned, slots = (np.hstack(each) for each in zip(*tops, strict=True))
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.where(returned > 0, slots / np.maximum(returned, 1), 0.0)
        labels = counted.sum(axis=1)
        of_lowest = counted[:, lowest].sum(axis=1)
        reached = labels_found_by_any({"": judged})[""] if found is None else found
        size = judged.corpus_size
        return cls(
            queries=len(judged),
            labels=int(labels.sum()),
            lowest=int(of_lowest.sum()),
            outside_lists=int(np.maximum(labels - reached, 0).sum()),
            exhaustive=0 if size is None else int((labels >= CORPUS_SHARE * size).sum()),
            known=0 if judged.qrels is None else _known(judged.qrels),
            tails=int(tail.sum()),
            outside_top=np.maximum(labels[:, None] - inside, 0).sum(axis=0),
            lowest_outside_top=np.maximum(of_lowest[:, None] - lowest_inside, 0).sum(axis=0),
            listed=(returned > 0).sum(axis=0),
            judged_shares=shares.sum(axis=0),
        )

    def closed(self, column: int) -> str | None:
        """`at K` if the labels are those of the run's own top K, `in the lists` if of what was retrieved; else None.

        Labels count as made from what was retrieved if some have the lowest grade, or if the top K is judged (almost)
        completely. If the origin of all labels is known, it decides: labels of pools are closed, whatever is evaluated.
        """
        if not self.labels or self.exhaustive > QUERIES_SHARE * self.queries:
            return None
        if not self.pooled and not (self.lowest or self.judged_share(column) >= JUDGED_FROM):
            return None
        if self.outside_top[column] <= MOST_OUTSIDE * self.labels:
            return AT_K
        if self.pooled or self.outside_lists <= MOST_OUTSIDE * self.labels:
            return IN_LISTS
        return None

    @property
    def pooled(self) -> bool:
        """Whether all labels are known to be of passages that runs retrieved."""
        return 0 < self.known == self.labels + self.tails

    def judged_share(self, column: int) -> float:
        """The mean judged share of the top K; 0 without a list."""
        return float(self.judged_shares[column] / max(1, self.listed[column]))

    def shuffled_among_labels(self, column: int) -> bool:
        """Whether a placebo shuffles the grades among the labelled passages; otherwise among the whole corpus."""
        exhaustive = self.exhaustive > QUERIES_SHARE * self.queries
        return exhaustive or self.closed(column) is not None or bool(self.lowest_outside_top[column])


def _top(judged: JudgedRun, depths: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Distinct judged passages in the top K, those with the lowest grade, slots that are filled, and judged ones."""
    lowest = count_at(judged.distinct.take(judged.distinct.grade == judged.scale.lowest), len(judged), depths)
    return judged.distinct_at(depths), lowest, judged.returned_at(depths), judged.judged_at(depths)


def has_open_tails(judged: JudgedRun) -> bool:
    """Whether passages were drawn from tails, and some of these tails' passages were not drawn."""
    labels, size = tails(judged)
    return bool((size > labels.sum(axis=1)).any())


def _known(qrels: Qrels) -> int:
    """How many labels, without the random controls, have a known origin."""
    if qrels.origins is None:
        return 0
    return int(((qrels.origins.chosen != 0) & ~qrels.controls).sum())


def labels_found_by_any(judged: Mapping[str, JudgedRun]) -> dict[str, IntArray]:
    """For each run, how many labels of each of its queries are of passages that any run or pool holds."""
    runs = list(judged.values())
    position: dict[str, int] = {}
    numbers = [np.array([position.setdefault(query, len(position)) for query in run.queries], np.int64) for run in runs]
    last = max((int(hits.judgment.max(initial=-1)) for run in runs for hits in (run.hits, run.candidates)), default=-1)
    query_of = np.full(last + 1, -1)
    for run, number in zip(runs, numbers, strict=True):
        for hits in (run.hits, run.candidates):
            query_of[hits.judgment] = number[hits.query]
    counts = np.bincount(query_of[query_of >= 0], minlength=len(position))
    return {name: counts[number] for name, number in zip(judged, numbers, strict=True)}


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
