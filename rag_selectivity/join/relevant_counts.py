"""RelevantCounts: how many relevant passages the queries have, as sums over queries, for any lowest relevant grade."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rag_selectivity.join.judged_run import JudgedRun

#: (grade, count), by ascending grade.
Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RelevantCounts:
    """Labels and queries by grade. Those of parts of a dataset can be added.

    Attributes
    ----------
    labels : tuple of (int, int)
        For each grade, the number of labels with that grade, from the lowest grade on.
    best : tuple of (int, int)
        For each grade, the number of queries whose highest grade it is, from the lowest grade on.
    """

    labels: Pairs = ()
    best: Pairs = ()

    @classmethod
    def of(cls, judged: JudgedRun) -> RelevantCounts | None:
        """The sums of a run without weights; None if labels name documents and runs their chunks."""
        if judged.documents is not None or judged.weights is not None:
            return None
        has = judged.labels > 0
        labelled = has.any(axis=1)
        last = has.shape[1] - 1 - has[labelled, ::-1].argmax(axis=1) if labelled.any() else np.empty(0, np.int64)
        labels = dict(zip(judged.grades.tolist(), judged.labels.sum(axis=0).tolist(), strict=True))
        return cls(_pairs(labels), _pairs(Counter(judged.grades[last].tolist())))

    def __add__(self, other: RelevantCounts) -> RelevantCounts:
        return RelevantCounts(_together(self.labels, other.labels), _together(self.best, other.best))

    def mean(self, rel: int) -> float | None:
        """The mean number of relevant passages of a query that has one; None if no query has one."""
        queries = sum(count for grade, count in self.best if grade >= rel)
        passages = sum(count for grade, count in self.labels if grade >= rel)
        return passages / queries if queries else None


def mean_relevant(judged: JudgedRun, rel: int | None = None) -> float | None:
    """N_p: the mean number of relevant passages of a query that has one, by the weights of the queries.

    None if no query has a relevant passage, or if labels name documents and runs their chunks: K then counts chunks,
    and the labels documents.
    """
    if judged.documents is not None:
        return None
    relevant = judged.relevant(rel)
    has_one = relevant > 0
    if not has_one.any():
        return None
    weights = None if judged.weights is None else judged.weights.values[has_one]
    return float(np.average(relevant[has_one], weights=weights))


def _pairs(counts: Mapping[int, int]) -> Pairs:
    return tuple(sorted((grade, count) for grade, count in counts.items() if count))


def _together(one: Pairs, other: Pairs) -> Pairs:
    return _pairs(Counter(dict(one)) + Counter(dict(other)))
