"""The judged passages of each query in the lists of the other queries: what those lists would have been worth to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.tables.ids import IntArray, ranges


@dataclass(frozen=True, slots=True)
class OtherLists:
    """Each judged passage of a query in the list of another query: the rank there, and its grade for the query.

    `query` and `owner` are positions in `JudgedRun.queries`; `owner` is the query that the list was made for. A passage
    counts once in a list. `judgment` is the row of the labels.
    """

    query: IntArray
    owner: IntArray
    rank: IntArray
    grade: IntArray
    judgment: IntArray

    @classmethod
    def of(cls, labels: Qrels, queries: Sequence[str], lists: Run) -> OtherLists:
        """Look up the labels of each query in the lists of the others, by passage; random controls are no labels."""
        position = {query: i for i, query in enumerate(queries)}
        place = np.array([position.get(query, -1) for query in labels.queries], np.int64)
        rows = np.flatnonzero((place[labels.query] >= 0) & ~labels.controls)
        code: dict[str, int] = {}
        of_label = np.array([code.setdefault(labels.passages[row], len(code)) for row in rows.tolist()], np.int64)
        owner = np.array([position.get(query, -1) for query in lists.queries], np.int64)[lists.query]
        listed = np.array([code.get(passage, -1) for passage in lists.passages], np.int64)
        slots = np.flatnonzero((listed >= 0) & (owner >= 0))
        # The first of several copies in a list counts.
        _, first = np.unique(owner[slots] * max(1, len(code)) + listed[slots], return_index=True)
        slots = slots[np.sort(first)]
        order = np.argsort(of_label, kind="stable")
        begin, end = (np.searchsorted(of_label[order], listed[slots], side) for side in ("left", "right"))
        slot = np.repeat(slots, end - begin)
        judgment = rows[order[ranges(begin, end - begin)]]
        query = place[labels.query[judgment]]
        others = query != owner[slot]
        columns = (query, owner[slot], lists.ranks(slot), labels.grade[judgment], judgment)
        return cls(*(column[others] for column in columns))

    def ranks_of_success(self, threshold: int, m: int, known: NDArray[np.bool_]) -> tuple[IntArray, IntArray, IntArray]:
        """(query, owner, rank) of every pair of known queries whose list holds m relevant passages from that rank on.

        Parameters
        ----------
        threshold : int
            The lowest grade that is relevant.
        known : bool[queries]
        """
        rows = np.flatnonzero((self.grade >= threshold) & known[self.query] & known[self.owner])
        pair = self.query[rows] * len(known) + self.owner[rows]
        order = np.lexsort((self.rank[rows], pair))
        rows, pair = rows[order], pair[order]
        place = np.arange(len(pair)) - np.searchsorted(pair, pair)
        reached = rows[place == m - 1]
        return self.query[reached], self.owner[reached], self.rank[reached]
