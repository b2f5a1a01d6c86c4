"""What measures would show if the same grades were shuffled: the universe, and the expectation of each measure.

Weights, best sets and ideal gains are the same after shuffling, so the expectations are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.hits import Hits
from rag_selectivity.judged.judged_run import WHOLE_LIST, JudgedRun, count_at
from rag_selectivity.measures.base import Measure
from rag_selectivity.measures.chance import EF, BoR
from rag_selectivity.measures.classic import AP, RR, R, discounts, nDCG
from rag_selectivity.measures.hypergeometric import distinct_columns, random_success
from rag_selectivity.measures.outcome import FloatArray, Outcome
from rag_selectivity.measures.utility import PROC, RANWG, NormalisedRecall, level_counts
from rag_selectivity.tables.ids import IntArray

#: (query, rank, number among the labelled passages of the list) → the terms of a sum.
Term = Callable[[IntArray, IntArray, IntArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Universe:
    """The passages among which grades are shuffled, for each query and depth.

    Attributes
    ----------
    judged : JudgedRun
    depths : int64[depths]
    of_labels : bool[depths]
        Whether grades are shuffled among the query's labelled passages only. Otherwise they are shuffled among all
        passages of the corpus, where unlabelled ones have no gain.
    """

    judged: JudgedRun
    depths: IntArray
    of_labels: NDArray[np.bool_]

    def at(self, columns: NDArray[Any]) -> Universe:
        """The universe at some of the depths."""
        return Universe(self.judged, self.depths[columns], self.of_labels[columns])

    @property
    def size(self) -> IntArray:
        """n, the number of passages: int64[queries, depths]."""
        labelled = self.judged.labelled[:, None]
        if self.of_labels.all():
            return np.broadcast_to(labelled, (len(self.judged), self.depths.shape[-1]))
        return np.where(self.of_labels, labelled, self._corpus_size)

    @property
    def _corpus_size(self) -> IntArray:
        """N of each query; 0 if it is not known, so that there is no placebo."""
        size = self.judged.corpus_size
        return np.zeros((len(self.judged), 1), np.int64) if size is None else size[:, None]

    @property
    def listed(self) -> IntArray:
        """How many of the top K are among these passages: int64[queries, depths]."""
        return self._found(self.judged.distinct_at(self.depths), self.judged.returned, self.depths)

    def found(self, hits: Hits, returned: IntArray, depths: IntArray) -> IntArray:
        """How many of the first K of some lists are among these passages: int64[queries, depths]."""
        return self._found(count_at(hits, len(self.judged), depths), returned, depths)

    def _found(self, labelled: IntArray, returned: IntArray, depths: IntArray) -> IntArray:
        if self.of_labels.all():
            return labelled
        slots = np.minimum(returned[:, None], depths)
        return np.where(self.of_labels, labelled, np.minimum(slots, self._corpus_size))

    def share(self) -> FloatArray:
        """The share of the passages that the top K holds: float64[queries, depths]; NaN without passages."""
        with np.errstate(invalid="ignore", divide="ignore"):
            result: FloatArray = self.listed / self.size
        return result

    def sum_over_ranks(self, term: Term, of_corpus: FloatArray) -> FloatArray:
        """The sum of a term over the ranks of the top K that hold one of these passages: float64[queries, depths].

        `term` is called with (query, rank, number among these passages from 1) of the labelled passages; `of_corpus`
        is the sum where every rank counts.
        """
        hits = self.judged.distinct
        before = np.searchsorted(hits.query, np.arange(len(self.judged)))
        number = np.arange(len(hits.query)) - before[hits.query] + 1
        by_labels = self.judged.count_distinct(self.depths, weights=term(hits.query, hits.rank, number))
        return np.where(self.of_labels, by_labels, of_corpus)

    def ranks_in_corpus(self) -> IntArray:
        """The number of ranks that count where all passages of the corpus do: int64[queries, depths]; else 0."""
        if self.of_labels.all():
            return np.zeros((len(self.judged), self.depths.shape[-1]), np.int64)
        return np.where(self.of_labels, 0, self.listed)


def first_relevant_at(size: IntArray, relevant: IntArray, number: IntArray) -> FloatArray:
    """P[the first relevant passage of a random order of n passages is the i-th], for R relevant ones.

    R/(n − i + 1) · Π_{j < i} (1 − R/(n − j + 1)), which is C(n − i, R − 1)/C(n, R).

    >>> first_relevant_at(np.array([4, 4, 4]), np.array([2, 2, 2]), np.array([1, 2, 4])).round(4).tolist()
    [0.5, 0.3333, 0.0]
    """
    from scipy.special import gammaln

    possible = (relevant > 0) & (size - number >= relevant - 1)
    n = np.where(possible, size, 1).astype(np.float64)
    r = np.where(possible, relevant, 1).astype(np.float64)
    i = np.where(possible, number, 1).astype(np.float64)
    after = gammaln(n - i + 1) - gammaln(r) - gammaln(n - i - r + 2)
    return np.where(possible, np.exp(after - _log_choose(gammaln, n, r)), 0.0)


def first_relevant_by_rank(size: int, relevant: int, ranks: int) -> FloatArray:
    """`first_relevant_at` for i = 1, 2, … `ranks`, as a running product, which stays accurate in a large corpus."""
    before = np.arange(ranks, dtype=np.float64)
    shares = np.minimum(relevant / np.maximum(size - before, 1.0), 1.0)
    with np.errstate(divide="ignore"):
        still_none = np.exp(np.append(0.0, np.cumsum(np.log1p(-shares))[:-1])) if ranks else np.empty(0)
    result: FloatArray = still_none * shares
    return result


def mean_of_best(size: IntArray, marked: IntArray, drawn: IntArray, slots: IntArray) -> FloatArray:
    """E[min(K, X)], X ~ Hypergeometric(n, marked, drawn), for arrays of one shape.

    >>> mean_of_best(np.array([4]), np.array([2]), np.array([2]), np.array([1])).round(4).tolist()
    [0.8333]
    """
    shape = np.broadcast_shapes(size.shape, marked.shape, drawn.shape, slots.shape)
    columns = [np.broadcast_to(x, shape).ravel() for x in (size, marked, drawn, slots)]
    first, back = distinct_columns(columns)
    rows = zip(*(column[first].tolist() for column in columns), strict=True)
    result: FloatArray = np.array([_mean_of_best(*row) for row in rows])[back].reshape(shape)
    return result


# A monitor asks for the same ones in every batch.
@lru_cache(maxsize=1 << 14)
def _mean_of_best(size: int, marked: int, drawn: int, slots: int) -> float:
    from scipy.special import gammaln

    if size <= 0:
        return 0.0
    mean = drawn * marked / size
    # min(K, X) = X − max(0, X − K), and the excess is a sum over the few possible X above K.
    highest = min(marked, drawn)
    if highest <= slots:
        return mean
    x = np.arange(max(slots + 1, drawn + marked - size), highest + 1, dtype=np.float64)
    logs = (
        _log_choose(gammaln, marked, x)
        + _log_choose(gammaln, size - marked, drawn - x)
        - _log_choose(gammaln, size, drawn)
    )
    return mean - float((np.exp(logs) * (x - slots)).sum())


def _log_choose(gammaln: Any, n: Any, k: Any) -> Any:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


# -- the measures --------------------------------------------------------------------------------------


class Placebo(NamedTuple):
    """What a measure would show if the same grades were shuffled, and what its figure has beyond that.

    Both are over the same queries, with the aggregate of the measure.
    """

    outcome: Outcome
    beyond: Outcome


def placebo_of(measure: Measure, judged: JudgedRun, universe: Universe, figures: Outcome) -> Placebo | None:
    """The expected figures of a measure if the grades were shuffled within the universe, at the universe's depths.

    `figures` are its outcome for the same join and depths. None for a measure that has no placebo, or if none is
    known for these labels.
    """
    if isinstance(measure, EF):
        return _of_ratio(measure, judged, universe, figures)
    for cls, expected in _EXPECTED.items():
        if isinstance(measure, cls):
            return _of_mean(figures, expected(measure, judged, universe))
    return None


def _of_mean(figures: Outcome, expected: FloatArray) -> Placebo:
    """The placebo of a mean over queries, from its expectation for each query."""
    values = figures.parts[0]
    placebo = np.where(np.isnan(values), np.nan, expected)
    gap = values - placebo
    # A difference that is only rounding is none.
    gap = np.where(np.abs(gap) <= 1e-12 * np.maximum(1.0, np.abs(values)), 0.0, gap)
    # A figure lies between 0 and 1, so this is how far from it the placebos can be.
    low = -np.nan_to_num(placebo, nan=0.0).max(axis=0, initial=0.0)
    high = 1.0 - np.nan_to_num(placebo, nan=1.0).min(axis=0, initial=1.0)
    # The figures stand beside: where few of them differ, their distances to placebos say no more.
    beyond = Outcome((gap, values), figures.undefined, figures.aggregate, bounds=(low, high))
    return Placebo(replace(figures, parts=(placebo,)), beyond)


def _of_ratio(measure: EF, judged: JudgedRun, universe: Universe, figures: Outcome) -> Placebo | None:
    """EF: its placebo is the shuffled Success in place of Success, and beyond it lies their difference.

    Beyond the placebo of BoR lies log2 of mean Success / mean shuffled Success: the random baseline cancels.
    """
    of_bits = isinstance(measure, BoR)
    if judged.documents is not None or (isinstance(measure, BoR) and measure.null != "random"):
        return None
    success, chance, miss = figures.parts
    shuffled = random_success(
        np.maximum(universe.size, 1), judged.relevant(measure.rel)[:, None], universe.listed, measure.m
    )
    expected, missed = (np.where(np.isnan(chance), np.nan, probability) for probability in shuffled)
    beyond = (success, expected, missed) if of_bits else (success - expected, chance, miss)
    return Placebo(replace(figures, parts=(expected, chance, miss)), replace(figures, parts=beyond))


def _of_recall(measure: R, judged: JudgedRun, universe: Universe) -> FloatArray:
    return np.where(judged.relevant(measure.rel)[:, None] > 0, universe.share(), 0.0)


def _of_average_precision(measure: AP, judged: JudgedRun, universe: Universe) -> FloatArray:
    relevant, size = judged.relevant(measure.rel), universe.size
    # How likely another passage of the universe is relevant, if one is.
    another = np.maximum(relevant[:, None] - 1, 0) / np.maximum(size - 1, 1)
    of_labels = np.maximum(relevant - 1, 0) / np.maximum(judged.labelled - 1, 1)
    listed = universe.ranks_in_corpus()
    harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, int(listed.max(initial=0)) + 1)))
    total = universe.sum_over_ranks(
        lambda query, rank, number: (1 + (number - 1) * of_labels[query]) / rank,
        harmonic[listed] * (1 - another) + listed * another,
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(relevant[:, None] > 0, total / size, 0.0)


def _of_reciprocal_rank(measure: RR, judged: JudgedRun, universe: Universe) -> FloatArray:
    relevant, labelled, sizes = judged.relevant(measure.rel), judged.labelled, judged.corpus_size
    listed = universe.ranks_in_corpus()
    of_corpus = np.zeros(listed.shape)
    if sizes is not None and listed.any():
        deepest = int(listed.max())
        by_rank = 1 / np.arange(1, deepest + 1)
        for size, count in np.unique(np.stack([sizes, relevant]), axis=1).T.tolist():
            rows = (sizes == size) & (relevant == count)
            terms = first_relevant_by_rank(size, count, deepest) * by_rank
            of_corpus[rows] = np.append(0.0, np.cumsum(terms))[listed[rows]]
    return universe.sum_over_ranks(
        lambda query, rank, number: first_relevant_at(labelled[query], relevant[query], number) / rank, of_corpus
    )


def _of_discounted_gain(measure: nDCG, judged: JudgedRun, universe: Universe) -> FloatArray:
    listed = universe.ranks_in_corpus()
    discounted = universe.sum_over_ranks(
        lambda query, rank, number: 1 / np.log2(rank + 1), discounts(int(listed.max(initial=0)))[listed]
    )
    gains = (judged.labels * measure.gains(judged.grades)).sum(axis=1)[:, None] / np.maximum(universe.size, 1)
    return measure.normalised(gains * discounted, judged, universe.depths)


def _of_weighted_gain(measure: RANWG, judged: JudgedRun, universe: Universe) -> FloatArray:
    weights = measure.weights(judged)
    in_universe = (weights * level_counts(judged)).sum(axis=1)[:, None]
    expected: FloatArray = universe.share() * in_universe / measure.oracle(judged, weights, universe.depths)
    return expected


def _of_ceiling(measure: PROC, judged: JudgedRun, universe: Universe) -> FloatArray:
    weights, counts, depths = measure.weights(judged), level_counts(judged), universe.depths
    slots, size = judged.slots_at(depths), universe.size
    # Passages of the list that the pool lacks are added to it.
    candidates = judged.candidates.chosen(~judged.candidates.repeated)
    everything = np.full(depths.shape[-1], WHOLE_LIST)
    outside = np.bincount(judged.hits_outside_pool().query, minlength=len(judged))
    in_pool = universe.found(candidates, judged.candidates_returned, everything) + outside[:, None]
    drawn = np.minimum(in_pool, size)
    ordered = np.append(-np.sort(-weights, axis=1), np.zeros((len(weights), 1)), axis=1)
    best = np.zeros(slots.shape)
    for weight, below in zip(ordered.T[:-1], ordered.T[1:], strict=True):
        marked = (counts * (weights >= weight[:, None])).sum(axis=1)
        if (weight != below).any():
            best += (weight - below)[:, None] * mean_of_best(size, marked[:, None], drawn, slots)
    return best / measure.oracle(judged, weights, depths)


def _of_normalised_recall(measure: NormalisedRecall, judged: JudgedRun, universe: Universe) -> FloatArray:
    available = judged.relevant(measure.lowest)[:, None]
    reachable = np.minimum(available, judged.slots_at(universe.depths))
    expected: FloatArray = universe.share() * available / np.maximum(reachable, 1)
    return expected


_EXPECTED: dict[type[Measure], Callable[[Any, JudgedRun, Universe], FloatArray]] = {
    R: _of_recall,
    AP: _of_average_precision,
    RR: _of_reciprocal_rank,
    nDCG: _of_discounted_gain,
    RANWG: _of_weighted_gain,
    PROC: _of_ceiling,
    NormalisedRecall: _of_normalised_recall,
}
