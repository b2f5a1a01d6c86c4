"""The ranks of a few rows of long lists, without putting the lists in order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IntArray
from rag_selectivity.data.policy import TIES, Policy
from rag_selectivity.data.run import Run

#: Where more rows than this for each row of the run would be looked at, its lists are put in order instead.
_MOST_LOOKED_AT = 4


class ListOrder:
    """The lists of a run with scores as they were given, and which of them these put in another order.

    Attributes
    ----------
    run : Run
    out_of_order : bool[lists]
        The lists with a score above that of the row before it.
    """

    def __init__(self, run: Run, policy: Policy) -> None:
        self.run = run
        self._ties = policy.ties
        self.out_of_order = np.zeros(len(run), bool)
        scores = run.compared_scores(policy)
        self._decided_by_scores = scores is not None
        if scores is not None:
            self._scores = scores
            rising, self._tied = run.neighbours(scores)
            self.out_of_order[self._lists(np.flatnonzero(rising))] = True

    def _lists(self, rows: IntArray) -> IntArray:
        return np.searchsorted(self.run.offsets, rows, "right") - 1

    def ranks(self, rows: IntArray) -> IntArray | None:
        """The rank of each of some rows, from 1; None where putting the lists in order takes less work."""
        offsets = self.run.offsets
        of_list = self._lists(rows)
        ranks = rows - offsets[of_list] + 1
        if not self._decided_by_scores or not len(rows):
            return ranks
        # A row is looked at in its group: in its whole list, or, where this is in order, among those with its score.
        firsts, ends = offsets[of_list], offsets[of_list + 1]
        in_order = ~self.out_of_order[of_list]
        if self._have_tied_neighbours(rows[in_order]):
            cuts = np.append(np.flatnonzero(np.append(True, ~self._tied)), len(self._scores))
            group = np.searchsorted(cuts, rows[in_order], "right") - 1
            firsts[in_order], ends[in_order] = cuts[group], cuts[group + 1]
        else:
            firsts[in_order], ends[in_order] = rows[in_order], rows[in_order] + 1
        looked_at = np.flatnonzero((ends - firsts > 1) & ((self._ties != "as_given") | ~in_order))
        sizes = (ends - firsts)[looked_at]
        if len(looked_at) and self._ties in TIES:
            return None
        if sizes.sum() > _MOST_LOOKED_AT * len(self._scores):
            return None
        if len(looked_at):
            above = self._above(rows[looked_at], firsts[looked_at], sizes)
            ranks[looked_at] = (firsts - offsets[of_list])[looked_at] + above + 1
        return ranks

    def _have_tied_neighbours(self, rows: IntArray) -> bool:
        after, before = rows[rows < len(self._tied)], rows[rows > 0] - 1
        return bool(self._tied[after].any() or self._tied[before].any())

    def _above(self, rows: IntArray, firsts: IntArray, sizes: IntArray) -> IntArray:
        """How many of the rows of its group come before each row."""
        begins = np.cumsum(sizes) - sizes
        others = np.repeat(firsts - begins, sizes) + np.arange(sizes.sum())
        own = np.repeat(self._scores[rows], sizes)
        before = self._scores[others] > own
        ties = np.flatnonzero(self._scores[others] == own)
        place = np.searchsorted(begins, ties, "right") - 1
        ties, place = ties[others[ties] != rows[place]], place[others[ties] != rows[place]]
        if self._ties == "docid_descending":
            cells = self.run.passages.fixed_width(np.concatenate([others[ties], rows[place]]))
            before[ties] = cells[: len(ties)] > cells[len(ties) :]
        else:
            before[ties] = others[ties] < rows[place]
        counts: IntArray = np.add.reduceat(before, begins, dtype=np.int64)
        return counts

    def tied_neighbours(self, lists: NDArray[np.bool_], *, exactly: bool) -> int:
        """How many pairs of neighbours of some lists, bool[lists], have equal scores.

        In rank order where it has to be exact; else in the order given, by which all or not all have equal scores too.
        """
        scores = self.run.scores
        if not self._decided_by_scores or scores is None:
            return 0
        # As they were given: scores that differ are not equal, even where a policy compares them as float32.
        tied = self._tied if scores is self._scores else self.run.neighbours(scores)[1]
        unsorted = lists & self.out_of_order if exactly else np.zeros(len(lists), bool)
        counted = lists & ~unsorted
        if not counted.all() and tied.any():
            tied = tied & np.repeat(counted, self.run.lengths)[1:]
        count = int(np.count_nonzero(tied))
        for i in np.flatnonzero(unsorted).tolist():
            ordered = np.sort(scores[self.run.offsets[i] : self.run.offsets[i + 1]])
            count += int((ordered[1:] == ordered[:-1]).sum())
        return count
