"""The passages among which grades are shuffled, for the figure that a measure would then show.

Weights, best sets and ideal gains are the same after shuffling, so the expectations are exact.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.judged_run import JudgedRun, count_at
from rag_selectivity.measures.hypergeometric import distinct_columns, random_success
from rag_selectivity.measures.outcome import FloatArray
from rag_selectivity.tables.ids import IntArray


@dataclass(frozen=True, slots=True)
class Universe:
    """The passages among which grades are shuffled, for each query and depth.

    Attributes
    ----------
    judged : JudgedRun
    depths : int64[depths]
    of_labels : bool[queries, depths]
        Whether grades are shuffled among the query's labelled passages only. Otherwise they are shuffled among all
        passages of the corpus, where unlabelled ones have no gain. Of both, those that a retriever's filter leaves.
    """

    judged: JudgedRun
    depths: IntArray
    of_labels: NDArray[np.bool_]

    @property
    def size(self) -> IntArray:
        """n, the number of passages: int64[queries, depths]."""
        return np.where(self.of_labels, self.judged.left.labelled[:, None], self._corpus_size[:, None])

    @property
    def _corpus_size(self) -> IntArray:
        """N of each query; 0 if it is not known, so that there is no placebo."""
        size = self.judged.corpus_size
        return np.zeros(len(self.judged), np.int64) if size is None else size

    @property
    def listed(self) -> IntArray:
        """How many of the top K are among these passages: int64[queries, depths]."""
        return self.held(self.judged.distinct_at(self.depths), self.judged.returned_at(self.depths))

    def held(self, labelled: IntArray, slots: IntArray) -> IntArray:
        """How many of some slots, of which so many are labelled, hold these passages: int64[queries, depths]."""
        return np.minimum(np.where(self.of_labels, labelled, slots), self.size)

    @property
    def share(self) -> FloatArray:
        """The share of the passages that the top K holds: float64[queries, depths]; 0 without passages."""
        result: FloatArray = self.listed / np.maximum(self.size, 1)
        return result

    def sum_over_ranks(
        self, relevant: IntArray, term: Callable[[IntArray, IntArray, IntArray, IntArray], FloatArray]
    ) -> FloatArray:
        """The sum of a term over the ranks of the top K that hold one of these passages: float64[queries, depths].

        `term` is called with (R, n, rank, number among these passages from 1), in arrays of one shape or less.
        """
        hits, labelled = self.judged.distinct, self.judged.left.labelled
        number = np.arange(len(hits.query)) - np.searchsorted(hits.query, np.arange(len(self.judged)))[hits.query] + 1
        weights = term(relevant[hits.query], labelled[hits.query], hits.rank, number)
        of_labels: FloatArray = count_at(hits, len(self.judged), self.depths, weights)
        if self.of_labels.all():
            return of_labels
        # In the corpus each rank counts, so that queries with the same numbers have the same sums.
        listed = np.where(self.of_labels, 0, self.listed)
        first, back = distinct_columns([self._corpus_size, relevant, *listed.T])
        ranks = np.arange(1, int(listed.max(initial=0)) + 1)[None, :]
        terms = term(relevant[first, None], self._corpus_size[first, None], ranks, ranks)
        sums = np.cumsum(np.broadcast_to(terms, (len(first), ranks.shape[1])), axis=1)
        of_corpus = np.take_along_axis(np.insert(sums, 0, 0.0, axis=1), listed[first], axis=1)[back]
        return np.where(self.of_labels, of_labels, of_corpus)


def first_relevant_at(relevant: IntArray, size: IntArray, number: IntArray) -> FloatArray:
    """P[the first relevant passage of a random order of n passages is the i-th], for R relevant ones.

    The first i − 1 miss all of them, and R of the other n − i + 1 are relevant.

    >>> first_relevant_at(np.array([2, 2, 2]), np.array([4, 4, 4]), np.array([1, 2, 4])).round(4).tolist()
    [0.5, 0.3333, 0.0]
    """
    left = np.maximum(size - number + 1, 1)
    before = np.clip(number - 1, 0, size)
    _, missed = random_success(size, np.minimum(relevant, size), before)
    result: FloatArray = missed * np.minimum(relevant / left, 1.0)
    return result


def mean_of_best(size: IntArray, marked: IntArray, drawn: IntArray, slots: IntArray) -> FloatArray:
    """E[min(K, X)], X ~ Hypergeometric(n, marked, drawn), which is Σ P[X ≥ i] over i ≤ K; for arrays of one shape.

    >>> mean_of_best(np.array([4]), np.array([2]), np.array([2]), np.array([1])).round(4).tolist()
    [0.8333]
    """
    marked, drawn = np.minimum(marked, size), np.minimum(drawn, size)
    most = np.minimum(np.minimum(marked, drawn), slots)
    result = np.zeros(most.shape)
    for hits in range(1, int(most.max(initial=0)) + 1):
        result += np.where(hits <= most, random_success(size, marked, drawn, hits)[0], 0.0)
    return result
