"""Numbers for ids that come in blocks."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import HashArray, IdColumn, IntArray

# Few of the slots are taken, so that few ids have the same.
_LEAST_SLOTS, _SLOTS_FOR_EACH, _TABLES = 1 << 10, 16, 2


class IdNumbers:
    """Numbers ids in order of first appearance.

    >>> numbers = IdNumbers()
    >>> numbers.of(IdColumn.from_strings(["b", "a", "b"])).tolist()
    [0, 1, 0]
    >>> numbers.of(IdColumn.from_strings(["c", "a"])).tolist()
    [2, 1]
    >>> list(numbers.ids)
    ['b', 'a', 'c']

    Attributes
    ----------
    ids : IdColumn
        The different ids.
    """

    def __init__(self) -> None:
        self.ids = IdColumn.from_strings([])
        self._by_text: dict[str, int] = {}
        self._tables: list[NDArray[np.int32]] = []

    def of(self, ids: IdColumn) -> IntArray:
        """The number of each id; one that is new gets the next number."""
        numbers, unknown = self._known(ids)
        if len(unknown):
            names, codes = ids.take(unknown).factorized()
            fresh = [name for name in names if name not in self._by_text]
            if fresh:
                self._by_text.update(zip(fresh, itertools.count(len(self._by_text))))
                self.ids = IdColumn.concatenate([self.ids, IdColumn.from_strings(fresh)])
                self._fill()
            numbers[unknown] = np.array([self._by_text[name] for name in names], np.int64)[codes]
        return numbers

    def _known(self, ids: IdColumn) -> tuple[IntArray, IntArray]:
        """The number of each id, and the rows of those that are in no slot."""
        ids.hashes()
        numbers = np.full(len(ids), -1)
        unknown = np.arange(len(ids))
        for i, table in enumerate(self._tables):
            if not len(unknown):
                break
            rest = ids.take(unknown) if i else ids
            found = table.take(_slots(rest.hashes(), table, i).view(np.int64), mode="clip")
            same = self.ids.take(found).equal_rows(rest)
            numbers[unknown[same]] = found[same]
            unknown = unknown[~same]
        return numbers, unknown

    def _fill(self) -> None:
        self.ids.hashes()
        size = max(_LEAST_SLOTS, 1 << (_SLOTS_FOR_EACH * len(self.ids) - 1).bit_length())
        self._tables = []
        rest = np.arange(len(self.ids), dtype=np.int32)
        while len(rest) and len(self._tables) < _TABLES:
            # Of several ids with one slot the last keeps it; the others are in the next table.
            table = np.zeros(size, np.int32)
            slots = _slots(self.ids.hashes()[rest], table, len(self._tables))
            table[slots] = rest
            rest = rest[table[slots] != rest]
            self._tables.append(table)


def _slots(hashes: HashArray, table: NDArray[np.int32], number: int) -> HashArray:
    bits = len(table).bit_length() - 1
    return (hashes << np.uint64(number * bits)) >> np.uint64(64 - bits)
