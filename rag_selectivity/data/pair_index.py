"""Finding (query, passage) pairs among judgments: by hash, by a table of bits before it, and by the ids themselves."""

from __future__ import annotations

import numpy as np

from rag_selectivity.data.ids import HashArray, IdColumn, IntArray, mix


class PairIndex:
    """The judgments of some queries by their pairs; `query` and `passages` are those of each judgment."""

    def __init__(self, query: IntArray, passages: IdColumn) -> None:
        self._query, self._passages = query, passages
        keys = pair_keys(query, passages)
        self._by_key = np.argsort(keys, kind="stable")
        self._sorted_keys = keys[self._by_key]
        # A bit table before the search: most rows of a run are unjudged, and this table rules most of them out.
        # Where it is small enough for the processor's cache it has more places, so that fewer rows pass by chance.
        judgments = (len(keys) + 1).bit_length()
        bits = max(10, min(judgments + 6, 20), judgments + 4)
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, bool)
        self._table[self._sorted_keys >> self._shift] = True

    def sharing_a_key(self) -> list[int]:
        """The judgments whose key another one has too, in their order."""
        shared = np.flatnonzero(self._sorted_keys[1:] == self._sorted_keys[:-1])
        rows: list[int] = np.unique(self._by_key[np.concatenate([shared, shared + 1])]).tolist()
        return rows

    def lookup(self, keys: HashArray, query: IntArray, passages: IdColumn) -> tuple[IntArray, IntArray]:
        """As `Qrels.lookup`."""
        candidates = np.flatnonzero(self._table[(keys >> self._shift).view(np.int64)])
        candidates = candidates[query[candidates] >= 0]
        rows, judgments = [], []
        place = np.searchsorted(self._sorted_keys, keys[candidates])
        while len(candidates):
            # Two pairs may share a hash: go on to the next key until the keys differ.
            inside = place < len(self._sorted_keys)
            candidates, place = candidates[inside], place[inside]
            same_key = self._sorted_keys[place] == keys[candidates]
            candidates, place = candidates[same_key], place[same_key]
            judgment = self._by_key[place]
            match = (self._query[judgment] == query[candidates]) & passages.equal(candidates, self._passages, judgment)
            rows.append(candidates[match])
            judgments.append(judgment[match])
            candidates, place = candidates[~match], place[~match] + 1
        if not rows:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        all_rows = np.concatenate(rows)
        order = np.argsort(all_rows, kind="stable")
        return all_rows[order], np.concatenate(judgments)[order]


def pair_keys(query: IntArray, passages: IdColumn) -> HashArray:
    """A 64-bit key for each (query, passage) pair."""
    return mix(passages.hashes(), query.astype(np.uint64) + np.uint64(1))
