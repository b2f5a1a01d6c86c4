"""What a join asks of labels: counts, and the labels of some rows, however the labels are held."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.held import Held
from rag_selectivity.data.ids import HashArray, IdColumn, IntArray, mix
from rag_selectivity.data.pair_index import PairIndex

#: Grades below are counted, to find which there are.
_FEW = 1 << 10


class LabelSource(Held):
    """Labels numbered by query, with a grade each; here they stand in columns, one row for each."""

    queries: tuple[str, ...]
    query: IntArray
    grade: IntArray

    @property
    @abstractmethod
    def passages(self) -> IdColumn:
        """The passage of each label."""

    @abstractmethod
    def _indexed(self) -> PairIndex: ...

    @property
    def size(self) -> int:
        """How many labels there are."""
        return len(self.query)

    def counts(self) -> IntArray:
        """How many labels each query has: int64[queries]."""
        return np.bincount(self.query, minlength=len(self.queries))

    def counts_by_grade(self, grades: IntArray) -> IntArray:
        """How many labels of each grade each query has: int64[queries, grades]; the grades are all that occur."""
        cells = self.query * len(grades) + np.searchsorted(grades, self.grade)
        counts = np.bincount(cells, minlength=len(self.queries) * len(grades))
        return counts.reshape(len(self.queries), len(grades))

    def grades_present(self) -> list[int]:
        """The grades that occur, in order."""
        return distinct_grades(self.grade)

    def grades_of(self, judgments: IntArray) -> IntArray:
        """The grades of some labels."""
        return self.grade[judgments]

    def passages_at(self, judgments: IntArray) -> IdColumn:
        """The passages of some labels."""
        return self.passages.take(judgments)

    def distinct_passages(self) -> set[str]:
        """The passages that have a label."""
        return set(self.passages)

    def label_hashes(self) -> HashArray:
        """A hash of each query's judgments in any order: uint64[queries]; 0 for a query without judgments.

        >>> from rag_selectivity.data.qrels import Qrels
        >>> one = Qrels.from_dict({"q": {"d1": 5, "d2": 1}}).label_hashes()
        >>> other = Qrels.from_dict({"q": {"d2": 1, "d1": 5}}).label_hashes()
        >>> one.tolist() == other.tolist()
        True
        """
        rows = mix(self.passages.hashes(), self.grade.astype(np.uint64) + np.uint64(1))
        # The sums may overflow: unsigned sums wrap around, so their differences are still right.
        totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(rows, dtype=np.uint64)])
        cuts = np.searchsorted(self.query, np.arange(len(self.queries) + 1))
        sums: HashArray = totals[cuts[1:]] - totals[cuts[:-1]]
        return sums

    def lookup(
        self, keys: HashArray, query: IntArray, passages: IdColumn, among: IntArray | None = None
    ) -> tuple[IntArray, IntArray]:
        """The rows that are judged, and their judgments.

        Parameters
        ----------
        keys : uint64[rows]
            `pair_keys(query, passages)`.
        query : int64[rows]
            Position in `queries`; −1 for a query that is not in the qrels.
        passages : IdColumn[rows]
        among : int64[queries], optional
            The different positions that `query` has, where they are few.

        Returns
        -------
        rows, judgments : int64[hits]
            Positions among the given rows, and the positions of their judgments.
        """
        return self._indexed().lookup(keys, query, passages, among)


def distinct_grades(grades: NDArray[np.int64]) -> list[int]:
    """Which grades there are, in order; none of them is negative.

    >>> distinct_grades(np.array([5, 1, 5])), distinct_grades(np.array([1 << 20, 0]))
    ([1, 5], [0, 1048576])
    """
    few = grades.max(initial=0) < _FEW
    found: list[int] = (np.flatnonzero(np.bincount(grades)) if few else np.unique(grades)).tolist()
    return found
