"""The classic measures with trec_eval's conventions; with `policy="trec_eval"` they equal trec_eval's figures.

A query of the qrels without a relevant passage has the value 0, as in trec_eval. Where trec_eval and
the providers of ir_measures differ (RR with tied scores), these measures follow trec_eval: ties are
broken by descending passage id before anything is measured.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun, count_at, key_of
from rag_selectivity.judged.rows import Hits
from rag_selectivity.measures.base import (
    Choice,
    FloatArray,
    Measure,
    Outcome,
    Real,
    Whole,
    parameter,
    register_measure,
    rel_parameter,
)
from rag_selectivity.measures.recall_free import f_score
from rag_selectivity.measures.shuffled import Universe, first_relevant_at
from rag_selectivity.tables.ids import IntArray

_NEVER = "no query returned anything"


def relevant_hits(judged: JudgedRun, rel: int | None) -> tuple[Hits, IntArray]:
    """The distinct relevant hits in rank order, and the number of each hit among those of its query, from 1."""
    hits = judged.distinct.take(judged.distinct.grade >= judged.threshold(rel))
    before = np.searchsorted(hits.query, np.arange(len(judged)))
    return hits, np.arange(len(hits.query)) - before[hits.query] + 1


def _share(part: NDArray[Any], whole: NDArray[Any]) -> FloatArray:
    """part / whole, 0 where the whole is 0."""
    result: FloatArray = part / np.maximum(whole, 1)
    return result


def _left(judged: JudgedRun, rel: int | None) -> FloatArray:
    """The share of the relevant passages that a retriever's filter leaves, which is 1 without one; 0 if there is none.

    float64[queries, 1].
    """
    return _share(judged.left.relevant(rel)[:, None], judged.relevant(rel)[:, None])


class RankedMeasure(Measure):
    """The base of measures that take the whole list without @, and the top K with @K."""

    counts_ranks: ClassVar[bool] = True
    takes_whole_lists: ClassVar[bool] = True
    rel: int | None = rel_parameter()


class WholeListMeasure(RankedMeasure):
    """The base of measures that take no depth."""

    why: ClassVar[str] = "it is of the whole list"

    @classmethod
    def check_cutoff(cls, at: int | float) -> None:
        raise InputError(f"{cls.name} takes no depth, since {cls.why}: leave out @{at}")


@register_measure
class P(Measure):
    """Precision: relevant passages in the top K / K. P_K in trec_eval.

    Formula: relevant passages in the top K / K
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: An empty slot and an unjudged passage count as misses. `short_lists="returned"` divides by the number of
    returned passages, at most K.
    Source: trec_eval; Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), chapter 8.
    Example: relevance 1,0,1,1,0: P@5 = 3/5
    """

    read_with_judged: ClassVar[bool] = True
    unjudged_is_a_miss: ClassVar[bool] = True
    rel: int | None = rel_parameter()

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        return Outcome((judged.hits_at(depths, self.rel) / judged.slots_at(depths),), _NEVER)


@register_measure
class R(Measure):
    """Recall: relevant passages in the top K / all relevant ones. recall_K in trec_eval.

    It never decreases with K, so it rewards long contexts.

    Formula: relevant passages in the top K / all relevant passages (R)
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: 0 for a query without a relevant passage, as in trec_eval.
    Source: trec_eval; Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), chapter 8.
    Example: three relevant passages, two of them in the top 10: R@10 = 2/3
    """

    compares_with_all_labels: ClassVar[bool] = True
    rel: int | None = rel_parameter()

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        return Outcome((_share(judged.hits_at(depths, self.rel), judged.relevant(self.rel)[:, None]),), _NEVER)

    def shuffled(self, universe: Universe) -> tuple[FloatArray, ...]:
        return (universe.share * _left(universe.judged, self.rel),)


@register_measure
class F(Measure):
    """Weighted harmonic mean of precision and recall: 1/(α/P + (1−α)/R) = n_p/(αK + (1−α)R).

    `beta` weighs recall beta times as much as precision; `alpha` = 1/(1+β²) expresses the same weight, as in
    recall-free evaluation.

    Formula: n_p/(alpha·K + (1−alpha)·R), n_p relevant in the top K, R in all; alpha = 1/(1+beta²)
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: 0 without a hit, and for a query without a relevant passage.
    Source: van Rijsbergen, Information Retrieval (1979); arXiv 2512.20854.
    Example: K = 5 with 3 relevant of 6: P = .6, R = .5, F@5 = 6/11 = 0.5455
    """

    compares_with_all_labels: ClassVar[bool] = True
    rel: int | None = rel_parameter()
    beta: float = parameter(1.0, Real(0, 1e6), "how much more recall weighs than precision")
    alpha: float | None = parameter(None, Real(0, 1), "weight of precision, in place of beta")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha is not None and self.beta != 1.0:
            raise InputError("F takes alpha or beta, not both, since alpha = 1/(1 + beta²): give one")

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        alpha = 1 / (1 + self.beta**2) if self.alpha is None else self.alpha
        relevant = judged.relevant(self.rel)[:, None]
        return Outcome((f_score(judged.hits_at(depths, self.rel), judged.slots_at(depths), relevant, alpha),), _NEVER)


@register_measure
class Rprec(WholeListMeasure):
    """Precision at R: relevant passages in the top R / R, where R counts the query's relevant passages. Takes no @.

    Formula: relevant passages in the top R / R
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: 0 for a query without a relevant passage.
    Source: trec_eval; Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), chapter 8.
    Example: three relevant passages, two of them in the top 3: Rprec = 2/3
    """

    compares_with_all_labels: ClassVar[bool] = True
    why: ClassVar[str] = "its depth is R"

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        hits, _ = relevant_hits(judged, self.rel)
        relevant = judged.relevant(self.rel)
        within = np.bincount(hits.query[hits.rank <= relevant[hits.query]], minlength=len(judged))
        return Outcome((_share(within, relevant)[:, None],), _NEVER)


@register_measure
class AP(RankedMeasure):
    """Average precision: the mean over all relevant passages of the precision at their rank, 0 for those not retrieved.

    map and map_cut_K in trec_eval: AP@K, too, divides by the number of all relevant passages.

    Formula: sum of the precision at the rank of each relevant passage / all relevant passages (R)
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: 0 for a query without a relevant passage.
    Source: trec_eval; Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), chapter 8.
    Example: three relevant passages at ranks 1, 3, 6: AP = (1/1 + 2/3 + 3/6)/3 = 0.7222
    """

    compares_with_all_labels: ClassVar[bool] = True

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        hits, number = relevant_hits(judged, self.rel)
        precisions = count_at(hits, len(judged), depths, number / hits.rank)
        return Outcome((_share(precisions, judged.relevant(self.rel)[:, None]),), _NEVER)

    def shuffled(self, universe: Universe) -> tuple[FloatArray, ...]:
        """(1/n)·Σ (1 + (i − 1)(R − 1)/(n − 1))/rank: a passage is relevant with R/n, each one above with the rest."""
        relevant = universe.judged.left.relevant(self.rel)
        total = universe.sum_over_ranks(
            relevant, lambda r, n, rank, number: (1 + (number - 1) * (r - 1) / np.maximum(n - 1, 1)) / rank
        )
        return (total / np.maximum(universe.size, 1) * _left(universe.judged, self.rel),)


@register_measure
class ContextPrecision(Measure):
    """Average precision over the top K only: the mean precision at the ranks of the relevant passages in it.

    Ragas asks a model for relevance; here it is computed from grades. It divides by the relevant passages in the top K,
    not by all: one relevant passage at rank 1 gives 1, even if only junk follows, so read it together with Harm.

    Formula: mean precision at the ranks of the relevant passages in the top K
    Range: 0–1; higher is better.
    NaN: for an empty or missing list.
    Edge cases: 0 without a relevant passage in the top K.
    Source: the context precision of Ragas.
    Example: relevant at ranks 1 and 3 of the top 3: (1/1 + 2/3)/2 = 0.8333; the only one first: 1
    """

    rel: int | None = rel_parameter()

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        hits, number = relevant_hits(judged, self.rel)
        precisions = count_at(hits, len(judged), depths, number / hits.rank)
        values = _share(precisions, judged.hits_at(depths, self.rel))
        values[judged.returned == 0] = np.nan
        return Outcome((values,), _NEVER)


@register_measure
class RR(RankedMeasure):
    """Reciprocal rank of the first relevant passage, 0 if there is none in the list (the top K with @K).

    recip_rank in trec_eval; the mean is MRR.

    Formula: 1 / rank of the first relevant passage
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: With tied scores the rank is that of trec_eval (descending passage id).
    Source: trec_eval; Voorhees, The TREC-8 Question Answering Track Report (1999).
    Example: the first relevant passage at rank 3: RR = 1/3, RR@2 = 0
    """

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        hits, number = relevant_hits(judged, self.rel)
        first = hits.take(number == 1)
        return Outcome((count_at(first, len(judged), depths, 1 / first.rank),), _NEVER)

    def shuffled(self, universe: Universe) -> tuple[FloatArray, ...]:
        relevant = universe.judged.left.relevant(self.rel)
        expected = universe.sum_over_ranks(relevant, lambda r, n, rank, number: first_relevant_at(r, n, number) / rank)
        return (expected,)


class _Gain(Measure):
    """The base of measures that sum discounted gains."""

    counts_ranks: ClassVar[bool] = True
    gain: str = parameter("linear", Choice(("linear", "exp")), "grade, or 2^grade − 1")

    def gains(self, grades: IntArray) -> FloatArray:
        if self.gain == "linear":
            return grades.astype(np.float64)
        return np.exp2(grades.astype(np.float64)) - 1

    def _gained(self, judged: JudgedRun, depths: IntArray) -> FloatArray:
        hits = judged.distinct
        return count_at(hits, len(judged), depths, self.gains(hits.grade) / np.log2(hits.rank + 1))


@register_measure
class DCG(_Gain):
    """Discounted cumulative gain: Σ gain/log2(rank + 1) over the top K. nDCG divides it by that of the best order.

    It depends on how many passages are relevant: compare runs on the same queries only.

    Formula: Σ gain/log2(rank + 1) over the top K
    Range: from 0 on, without an upper end; higher is better.
    NaN: never.
    Edge cases: On the utility scale a grade of 1 has gain 1. A second copy has no gain.
    Source: Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques (2002).
    Example: grades 3,2,3 in this order: DCG@3 = 3/1 + 2/1.585 + 3/2 = 5.762
    """

    ends: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        return Outcome((self._gained(judged, depths),), _NEVER, bounds=(0.0, np.inf))


@register_measure
class nDCG(_Gain):
    """Normalised discounted cumulative gain: Σ gain/log2(rank + 1) over the top K / the same sum of the best order.

    The gain is the grade (`gain=linear`, as in trec_eval's ndcg_cut), or 2^grade − 1 (`gain=exp`).

    Formula: Σ gain/log2(rank + 1) over the top K / the same sum of the best order
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: 0 for a query without a positive grade. On the utility scale a grade of 1 has gain 1, as in trec_eval.
    To give it gain 0, use the trec scale with a grade map from 1 to 0.
    Source: Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques (2002).
    Example: grades 3,2,3 in this order, nothing else judged: nDCG(gain=exp)@3 = 12.393/12.917 = 0.959
    """

    usually_whole: ClassVar[bool] = True
    compares_with_all_labels: ClassVar[bool] = True

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        return Outcome((self.normalised(self._gained(judged, depths), judged, depths),), _NEVER)

    def shuffled(self, universe: Universe) -> tuple[FloatArray, ...]:
        judged = universe.judged
        places = universe.sum_over_ranks(judged.relevant(None), lambda r, n, rank, number: 1 / np.log2(rank + 1))
        mean_gain = (judged.left.labels * self.gains(judged.grades)).sum(axis=1)[:, None] / np.maximum(universe.size, 1)
        return (self.normalised(mean_gain * places, judged, universe.depths),)

    def normalised(self, gained: FloatArray, judged: JudgedRun, depths: IntArray) -> FloatArray:
        """A discounted gain divided by that of the best order; 0 where that is 0."""
        best = judged.once("ideal gain", (self.gain, key_of(depths)), lambda: self._best(judged, depths))
        return np.divide(gained, best, out=np.zeros(best.shape), where=best > 0)

    def _best(self, judged: JudgedRun, depths: IntArray) -> FloatArray:
        """The discounted gain of the best order: float64[queries, depths]."""
        reach = int(min(depths.max(initial=1), judged.labelled.max(initial=0)))
        # The sums of the discounts down to each rank, from 0 on.
        discounted = np.append(0.0, np.cumsum(1 / np.log2(np.arange(2, reach + 2))))
        best = np.zeros((len(judged), depths.shape[-1]))
        start = np.zeros(best.shape, np.int64)
        # From the highest grade down to the lowest that gains anything.
        gains = self.gains(judged.grades)
        for level in reversed(np.flatnonzero(gains).tolist()):
            stop = np.minimum(start + judged.labels[:, level : level + 1], np.minimum(depths, reach))
            best += gains[level] * (discounted[stop] - discounted[start])
            start = stop
        return best


_LEVELS = np.arange(11) / 10


@register_measure
class IPrec(Measure):
    """Interpolated precision: the highest precision at any point of the list with a recall of at least r.

    IPrec@r is for one recall level r; without @, for the 11 levels 0, .1, … 1. iprec_at_recall in trec_eval. Up to
    trec_eval 9, in pytrec_eval and in ir_measures, a recall of r needs ⌊r·R + .9⌋ relevant passages; trec_eval 10
    rounds r·R to the nearest whole number (`rounding=nearest`).

    Formula: highest precision from a recall of r on
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: 0 if the recall is never reached.
    Source: trec_eval; Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), chapter 8.
    Example: relevant at ranks 1 and 4, of two: IPrec@0.5 = 1, IPrec@1 = 2/4
    """

    compares_with_all_labels: ClassVar[bool] = True
    counts_ranks: ClassVar[bool] = True
    cutoff: ClassVar[Whole | Real] = Real(0, 1)
    rel: int | None = rel_parameter()
    rounding: str = parameter("up", Choice(("up", "nearest")), "of r·R: up as in trec_eval 9, nearest as in 10")

    @classmethod
    def default_depths(cls, grid: NDArray[Any]) -> NDArray[Any]:
        return _LEVELS

    def at_ranks(self, judged: JudgedRun, depths: NDArray[Any]) -> Outcome:
        return Outcome((_interpolated(judged, depths, self.rel, self.rounding),), _NEVER)


@register_measure
class IPrec11(WholeListMeasure):
    """The mean of the interpolated precision at the 11 recall levels 0, .1, … 1. Takes no @.

    11pt_avg in trec_eval. `IPrec` without @ gives the 11 points themselves.

    Formula: mean of IPrec at recall 0, 0.1, … 1
    Range: 0–1; higher is better.
    NaN: never.
    Edge cases: 0 for a query without a relevant passage. `rounding` as for IPrec.
    Source: trec_eval; Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), chapter 8.
    Example: relevant at ranks 1 and 4, of two: 6 times 1 and 5 times 2/4: IPrec11 = 8.5/11 = 0.7727
    """

    compares_with_all_labels: ClassVar[bool] = True
    rounding: str = parameter("up", Choice(("up", "nearest")), "of r·R: up as in trec_eval 9, nearest as in 10")

    def at_ranks(self, judged: JudgedRun, depths: NDArray[Any]) -> Outcome:
        points = _interpolated(judged, _LEVELS, self.rel, self.rounding)
        return Outcome((points.mean(axis=1, keepdims=True),), _NEVER)


def _interpolated(judged: JudgedRun, levels: FloatArray, rel: int | None, rounding: str) -> FloatArray:
    """The highest precision from each level of recall on: float64[queries, levels]."""
    hits, number = relevant_hits(judged, rel)
    relevant, listed_relevant = judged.relevant(rel), np.bincount(hits.query, minlength=len(judged))
    # The best precision from each hit to the end of its list: a running maximum from the end.
    best = _suffix_maximum(number / hits.rank, hits.query)
    needed = (levels * relevant[:, None] + (0.9 if rounding == "up" else 0.5)).astype(np.int64)
    first = np.searchsorted(hits.query, np.arange(len(judged)))
    place = first[:, None] + np.maximum(needed, 1) - 1
    reached = (np.maximum(needed, 1) <= listed_relevant[:, None]) & (relevant[:, None] > 0)
    values = np.zeros(needed.shape)
    values[reached] = best[place[reached]]
    return values


def _suffix_maximum(values: FloatArray, group: IntArray) -> FloatArray:
    """The largest value from each position to the end of its group; the groups must be in ascending order."""
    # As whole numbers with each group above all groups after it, so that one running maximum is enough for all.
    distinct, level = np.unique(values, return_inverse=True)
    stepped = level - group * len(distinct)
    highest = np.maximum.accumulate(stepped[::-1])[::-1]
    result: FloatArray = distinct[highest + group * len(distinct)]
    return result


# -- a reader who goes down the list and stops somewhere -----------------------------------------------------

#: The highest grade of the TREC web tracks, for which gdeval was written.
_OF_GDEVAL = 4


@register_measure
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
