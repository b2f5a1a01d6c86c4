"""How often each resample draws each query: one stream for all measures, depths, slices and systems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

#: Drawing so many at a time stays in a processor's nearest memory; sums are faster over more of them.
_CELLS_DRAWN, _CELLS_SUMMED = 1 << 17, 1 << 21
#: The last draws of all queries, and of those that decide on K, are kept if each take at most so many bytes.
_MOST_KEPT = 64_000_000
#: Cells of fewer rows cost more than another pass over the draws.
_ROWS_A_CELL = 24


def resample_counts(seed: int, resamples: int, rows: int) -> Iterator[NDArray[Any]]:
    """How often each row is in each resample: whole numbers, [rows, some resamples]."""
    if resamples * rows > _MOST_KEPT:
        return _drawn(seed, resamples, rows, _CELLS_SUMMED)
    kept, at_once = _kept(seed, resamples, rows), max(1, _CELLS_SUMMED // max(1, rows))
    return (kept[:, start : start + at_once] for start in range(0, resamples, at_once))


def _drawn(seed: int, resamples: int, rows: int, cells: int) -> Iterator[IntArray]:
    rng = np.random.default_rng(seed)
    at_once = max(1, cells // max(1, rows))
    for start in range(0, resamples, at_once):
        # The stream is that of 64-bit whole numbers.
        drawn = rng.integers(0, rows, size=(min(at_once, resamples - start), rows), dtype=np.int32)
        places = drawn + (np.arange(len(drawn)) * rows)[:, None]
        yield np.ascontiguousarray(np.bincount(places.ravel(), minlength=places.size).reshape(places.shape).T)


@lru_cache(maxsize=2)
def _kept(seed: int, resamples: int, rows: int) -> NDArray[np.uint8]:
    """The counts as bytes: that a row is in a resample more than 255 times has no probability worth a thought."""
    counts, done = np.empty((rows, resamples), np.uint8), 0
    for some in _drawn(seed, resamples, rows, _CELLS_DRAWN):
        counts[:, done : done + some.shape[1]] = some
        done += some.shape[1]
    return counts


class Columns:
    """Distinct columns, each kept once: Success, EF and BoR share most of theirs."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[int, FloatArray]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, block: FloatArray) -> list[int]:
        """Where each column of the block is kept."""
        places = []
        for column in map(np.ascontiguousarray, block.T):
            key = blake2b(column.tobytes(), digest_size=16).digest()
            places.append(self._kept.setdefault(key, (len(self._kept), column))[0])
        return places

    def matrix(self) -> FloatArray:
        return np.stack([column for _, column in self._kept.values()], axis=1)


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of the rows, of which sums are taken together: cells of rows that are in the same parts are summed once.

    Attributes
    ----------
    rows : list of int64[…] or slice
        The rows of each part.
    order : int64[rows] or None
        The rows of the first cell, then those of the second, …; None: as they are, all in one cell.
    cells : list of (start, end)
        Where each cell is in `order`.
    inside : float64[parts, cells]
        1 where a cell is in a part.
    """

    rows: list[Any]
    order: IntArray | None
    cells: list[tuple[int, int]]
    inside: FloatArray

    @classmethod
    def of(cls, slicings: Sequence[IntArray]) -> Iterator[Parts]:
        """The parts of some slicings; of several slicings together while their cells do not become too small."""
        together: list[IntArray] = []
        for number, slicing in enumerate(slicings):
            together.append(slicing)
            following = slicings[number + 1 : number + 2]
            if not following or _ROWS_A_CELL * len(_cells([*together, *following])[0]) > len(slicing):
                yield cls._of(together)
                together = []

    @classmethod
    def _of(cls, slicings: Sequence[IntArray]) -> Parts:
        first, cell = _cells(slicings)
        order = np.argsort(cell, kind="stable") if len(first) > 1 else None
        ends = np.cumsum(np.bincount(cell, minlength=1)).tolist()
        rows, inside = list[Any](), []
        for slicing in slicings:
            values = np.unique(slicing).tolist()
            rows += [np.flatnonzero(slicing == value) for value in values] if len(values) > 1 else [slice(None)]
            inside += [slicing[first] == value for value in values] or [np.ones(1)]
        return cls(rows, order, list(zip([0, *ends], ends, strict=False)), np.array(inside, np.float64))

    def sums(self, matrix: FloatArray, counts: Iterable[IntArray], number: int, units: IntArray | None) -> FloatArray:
        """Column sums of each part, by how often each row, or its cluster, counts: float64[parts, columns, resamples].

        `number` is that of the resamples; `units` has the cluster of each row.
        """
        order = self.order if units is None else units if self.order is None else units[self.order]
        columns = np.ascontiguousarray((matrix if self.order is None else matrix[self.order]).T)
        found, done = np.empty((len(self.inside), len(columns), number)), 0
        for some in counts:
            of_cells = np.empty((len(self.cells), len(columns), some.shape[1]))
            for sums, (start, end) in zip(of_cells, self.cells, strict=True):
                # Cell by cell, the counts stay in a processor's nearest memory.
                of_cell = (some if order is None else some[order[start:end]]).astype(np.float64)
                np.matmul(columns[:, start:end], of_cell, out=sums)
            of_parts = of_cells if len(self.cells) == 1 else np.tensordot(self.inside, of_cells, axes=1)
            found[:, :, done : done + some.shape[1]] = of_parts
            done += some.shape[1]
        return found


def _cells(slicings: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """The first row of each cell of rows that are in the same slice of every slicing, and the cell of each row."""
    cell = first = np.zeros(len(slicings[0]), np.int64)
    if not len(cell):
        return cell, cell
    for slicing in slicings:
        _, first, cell = np.unique(cell * (slicing.max() + 1) + slicing, return_index=True, return_inverse=True)
    return first, cell
