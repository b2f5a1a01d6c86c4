"""The passages among which a placebo shuffles the grades, and the expectations that placebos are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.hits import Hits
from rag_selectivity.judged.judged_run import JudgedRun, count_at
from rag_selectivity.measures.hypergeometric import distinct_columns
from rag_selectivity.tables.ids import IntArray

FloatArray = NDArray[np.float64]
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
