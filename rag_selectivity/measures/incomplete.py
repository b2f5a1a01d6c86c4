"""Measures for labels that name only some of what is relevant and some of what is not."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rag_selectivity.data.ids import IntArray
from rag_selectivity.join.judged_run import Hits, JudgedRun
from rag_selectivity.measures.base import FloatArray, Outcome, register_measure
from rag_selectivity.measures.classic import WholeListMeasure

_NEVER = "no query returned anything"
#: Smooths the precision above a passage, as in trec_eval.
_EPSILON = 0.00001


def _above(hits: Hits, relevant: IntArray, queries: int) -> tuple[IntArray, IntArray]:
    """How many relevant and how many other judged passages stand above each of the hits."""
    first = np.searchsorted(hits.query, np.arange(queries))
    counted = np.append(0, np.cumsum(relevant))
    found = counted[:-1] - counted[first[hits.query]]
    return found, np.arange(len(hits.query)) - first[hits.query] - found


@dataclass(frozen=True, repr=False)
class _Incomplete(WholeListMeasure):
    """The base of measures that take the mean over relevant passages of a figure of what is judged above each."""

    compares_with_all_labels: ClassVar[bool] = True

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        hits = judged.distinct
        found = hits.grade >= judged.threshold(self.rel)
        relevant_above, others_above = _above(hits, found.astype(np.int64), len(judged))
        at = hits.chosen(found)
        figures = self._of_hits(judged, at, relevant_above[found], others_above[found])
        total = np.bincount(at.query, figures, minlength=len(judged))
        values = total / np.maximum(judged.relevant(self.rel), 1)
        return Outcome((values[:, None],), _NEVER)

    @abstractmethod
    def _of_hits(self, judged: JudgedRun, hits: Hits, relevant: IntArray, others: IntArray) -> FloatArray:
        """The figure of each relevant hit, from how many relevant and other judged passages stand above it."""


@register_measure
@dataclass(frozen=True, repr=False)
class Bpref(_Incomplete):
    """How seldom a passage judged not relevant stands above a relevant one. Takes no @.

    Unjudged passages are passed over, so that it does not fall because few passages were judged. bpref in trec_eval.

    Formula: (1/R)·Σ (1 − min(n, R)/min(N⁻, R)) over the relevant passages that are retrieved, n = judged passages that
    are not relevant above it, N⁻ = all of them
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: 0 for a query without a relevant passage. A relevant passage with nothing above it counts 1, if no
    passage is judged not relevant, too.
    Source: trec_eval; Buckley and Voorhees, Retrieval evaluation with incomplete information (2004).
    """

    name: ClassVar[str] = "Bpref"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    formula: ClassVar[str] = "mean over the R relevant of 1 − (judged not relevant above it)/min(R, all of those)"
    example: ClassVar[str] = "relevant, not, unjudged, relevant; 2 relevant, 2 not: Bpref = (1 + (1 − 1/2))/2 = 0.75"

    def _of_hits(self, judged: JudgedRun, hits: Hits, relevant: IntArray, others: IntArray) -> FloatArray:
        count = judged.relevant(self.rel)
        bound = np.minimum(judged.labelled - count, count)[hits.query]
        figures: FloatArray = 1 - np.minimum(others, count[hits.query]) / np.maximum(bound, 1)
        return figures


@register_measure
@dataclass(frozen=True, repr=False)
class InfAP(_Incomplete):
    """Average precision inferred from labels of a part of the pool. Takes no @.

    The precision above a relevant passage is estimated by that of the judged passages above it. infAP in trec_eval.

    Labels below 0 mark passages of the pool that were not judged: they are in the share of the pool above, and not in
    its precision. Any other passage without a label is outside the pool, and counts as not relevant.

    Formula: (1/R)·Σ (1/i + ((i − 1)/i)·((n + u)/(i − 1))·((p + ε)/(n + 2ε))) over the ranks i of relevant passages, p
    relevant of n judged ones above, u with a label below 0 above, ε = .00001
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: 0 for a query without a relevant passage.
    Source: trec_eval; Yilmaz and Aslam, Estimating average precision with incomplete and imperfect judgments (2006).
    """

    name: ClassVar[str] = "infAP"
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    formula: ClassVar[str] = (
        "mean over the R relevant of 1/i + ((n + u)/i)·(p + ε)/(n + 2ε), p of n judged above i relevant, u below 0"
    )
    example: ClassVar[str] = "relevant, not, relevant; two relevant: infAP = (1 + (1/3 + (2/3)·(1/2)))/2 = 0.8333"

    reads_below_zero: ClassVar[bool] = True

    def _of_hits(self, judged: JudgedRun, hits: Hits, relevant: IntArray, others: IntArray) -> FloatArray:
        above = relevant + others
        share = (relevant + _EPSILON) / (above + 2 * _EPSILON)
        of_pool = above if judged.unjudged is None else above + _unjudged_above(judged.unjudged, hits)
        figures: FloatArray = 1 / hits.rank + of_pool / hits.rank * share
        return figures


def _unjudged_above(unjudged: Hits, hits: Hits) -> IntArray:
    """How many of the unjudged passages of the pool stand above each of the hits."""
    width = 1 + int(max(unjudged.rank.max(initial=0), hits.rank.max(initial=0)))
    places = unjudged.query * width + unjudged.rank
    start, stop = hits.query * width, hits.query * width + hits.rank
    above: IntArray = np.searchsorted(places, stop) - np.searchsorted(places, start)
    return above
