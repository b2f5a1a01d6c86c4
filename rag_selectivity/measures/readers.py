"""Measures of a reader who goes down the list and stops somewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun, count_at
from rag_selectivity.measures.base import (
    FloatArray,
    Measure,
    Outcome,
    Real,
    Whole,
    parameter,
    register_measure,
)
from rag_selectivity.measures.classic import RankedMeasure, relevant_hits
from rag_selectivity.tables.ids import IntArray

_NEVER = "no query returned anything"
#: The highest grade of the TREC web tracks, for which gdeval was written.
_OF_GDEVAL = 4


@register_measure
@dataclass(frozen=True, repr=False)
class RBP(RankedMeasure):
    """Rank-biased precision: what a reader finds who goes on to the next passage with probability p.

    A passage is relevant or not (`rel`). Of lists that are judged in part it is the least that it can be.

    Formula: (1 − p)·Σ p^(i−1) over the ranks i of relevant passages
    Range: 0–1, below 1 for every finite list; higher is better.
    NaN: never.
    Edge cases: A second copy has no weight, and an unjudged passage neither. With @K, the top K only. p = 0 is P@1.
    Source: Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness (2008).
    Example: relevant at ranks 1 and 3, p = .5: RBP(p=0.5) = .5·(1 + .25) = 0.625
    """

    unjudged_is_a_miss: ClassVar[bool] = True
    p: float = parameter(0.8, Real(0, 1), "probability that the reader goes on to the next passage, below 1")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p == 1:
            raise InputError("RBP: parameter p must be below 1, since a reader who never stops has no mean: got 1")

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        hits, _ = relevant_hits(judged, self.rel)
        weights: FloatArray = (1 - self.p) * np.power(float(self.p), hits.rank - 1)
        return Outcome((count_at(hits, len(judged), depths, weights),), _NEVER)


@register_measure
@dataclass(frozen=True, repr=False)
class ERR(Measure):
    """Expected reciprocal rank, where a reader stops at a passage with a probability that rises with its grade.

    As gdeval computes it: the probability is (2^grade − 1)/2^max_grade, and grades are not divided by the best order's.

    Formula: Σ (1/i)·g_i·Π_{j<i} (1 − g_j) over the top K, g = (2^grade − 1)/2^max_grade
    Range: 0 to (2^max_grade − 1)/2^max_grade and a little more for many such passages, below 1; higher is better.
    NaN: never.
    Edge cases: A label above max_grade is an error. An unjudged passage and a second copy stop nobody. On the utility
    scale a grade of 1 has gain 1, as for nDCG.
    Source: Chapelle, Metzler, Zhang and Grinspan, Expected reciprocal rank for graded relevance (2009); gdeval.pl of
    the TREC web tracks.
    Example: grades 4,0,2: ERR@3 = 15/16 + (1/3)·(3/16)·(1/16) = 0.9414
    """

    max_grade: int | None = parameter(
        None, Whole(1), "highest grade of the scale (default 4 on trec, as in gdeval; 5 on utility)"
    )

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        highest = self.max_grade if self.max_grade is not None else judged.scale.highest or _OF_GDEVAL
        self._check_grades(judged, highest)
        hits = judged.distinct
        stops = np.exp2(hits.grade.astype(np.float64) - highest) - np.exp2(-float(highest))
        first = np.searchsorted(hits.query, np.arange(len(judged)))
        weights = stops * _product_before(1 - stops, hits.query, first) / hits.rank
        return Outcome((count_at(hits, len(judged), depths, weights),), _NEVER)

    def _check_grades(self, judged: JudgedRun, highest: int) -> None:
        above = judged.grades > highest
        queries = np.flatnonzero(judged.labels[:, above].any(axis=1)).tolist()
        if queries:
            row = min(queries, key=judged.queries.__getitem__)
            grade = int(judged.grades[above & (judged.labels[row] > 0)].max())
            raise InputError(
                f"{self}: query {judged.queries[row]!r} has a label of grade {grade}, above max_grade = {highest}: "
                f"give ERR(max_grade={grade}), or the highest grade of your scale"
            )


def _product_before(values: FloatArray, group: IntArray, first: IntArray) -> FloatArray:
    """The product of the values before each position within its group; `first` is where each group starts."""
    result = np.ones(len(values))
    place = np.arange(len(values)) - first[group]
    # Position by position over all groups at once: a running product over everything would underflow, and dividing by
    # what came before a group would lose digits.
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(1, int(place.max(initial=0)) + 2))
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = order[begin:end]
        result[rows] = result[rows - 1] * values[rows - 1]
    return result
