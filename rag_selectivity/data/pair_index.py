"""Finding (query, passage) pairs among judgments: by hash, by a table of bits before it, and by the ids themselves."""

from __future__ import annotations

import numpy as np

from rag_selectivity.data.ids import HashArray, IdColumn, IntArray, mix, rows_that_may_repeat

# The judgments of a few queries have a table of their own if they are not more than this part of all.
_FEW = 1 / 4
_MIXED_IN = np.uint64(0x2545F4914F6CDD1D)


class PairIndex:
    """Judgments by their pairs; `query`, which must rise, and `passages` are those of each judgment."""

    def __init__(self, query: IntArray, passages: IdColumn) -> None:
        self._query, self._passages = query, passages
        self._keys = pair_keys(query, passages)
        self._of_all: _Table | None = None

    def sharing_a_key(self) -> list[int]:
        """The judgments whose key another one has too, in their order."""
        rows: list[int] = rows_that_may_repeat(self._keys).tolist()
        return rows

    def lookup(
        self, keys: HashArray, query: IntArray, passages: IdColumn, among: IntArray | None = None
    ) -> tuple[IntArray, IntArray]:
        """As `Qrels.lookup`."""
        table = self._table(among)
        candidates = table.may_hold(keys)
        candidates = candidates[query[candidates] >= 0]
        rows, judgments = [], []
        place = np.searchsorted(table.keys, keys[candidates])
        while len(candidates):
            # Two pairs may share a hash: go on to the next key until the keys differ.
            inside = place < len(table.keys)
            candidates, place = candidates[inside], place[inside]
            same_key = table.keys[place] == keys[candidates]
            candidates, place = candidates[same_key], place[same_key]
            judgment = table.judgments[place]
            match = (self._query[judgment] == query[candidates]) & passages.equal(candidates, self._passages, judgment)
            rows.append(candidates[match])
            judgments.append(judgment[match])
            candidates, place = candidates[~match], place[~match] + 1
        if not rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        all_rows = np.concatenate(rows)
        order = np.argsort(all_rows, kind="stable")
        return all_rows[order], np.concatenate(judgments)[order]

    def _table(self, among: IntArray | None) -> _Table:
        """The judgments of some queries, or all if these are many."""
        if among is not None:
            first = np.searchsorted(self._query, among)
            counts = np.searchsorted(self._query, among, "right") - first
            total = int(counts.sum())
            if total <= _FEW * len(self._keys):
                judgments = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(total)
                return _Table(self._keys[judgments], judgments)
        if self._of_all is None:
            self._of_all = _Table(self._keys, np.arange(len(self._keys)))
        return self._of_all


class _Table:
    """Judgments in the order of their keys."""

    def __init__(self, keys: HashArray, judgments: IntArray) -> None:
        order = np.argsort(keys, kind="stable")
        self.keys, self.judgments = keys[order], judgments[order]
        # A bit table before the search: most rows of a run are unjudged, and this table rules most of them out.
        # Where it is small enough for the processor's cache it has more places, so that fewer rows pass by chance.
        needed = (len(keys) + 1).bit_length()
        bits = max(14, min(needed + 6, 20), needed + 4)
        self._shift = np.uint64(64 - bits)
        self._bits = np.zeros(1 << bits, bool)
        self._bits[self.keys >> self._shift] = True

    def may_hold(self, keys: HashArray) -> IntArray:
        """The rows that are not ruled out."""
        return np.flatnonzero(self._bits.take((keys >> self._shift).view(np.int64), mode="clip"))


def pair_keys(query: IntArray, passages: IdColumn, lengths: IntArray | None = None) -> HashArray:
    """A 64-bit key for each (query, passage) pair.

    `query` is that of each passage, or, with `lengths`, that of each list of so many passages.
    """
    of_query = mix(query.view(np.uint64), _MIXED_IN)
    keys: HashArray = of_query if lengths is None else np.repeat(of_query, lengths)
    keys += passages.hashes()
    return keys
