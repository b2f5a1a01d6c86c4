"""How often each resample draws each query: one stream for all measures, depths, slices and systems."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.measures.base import FloatArray

_CELLS_PER_CHUNK = 1 << 20
#: The last draws are kept if they take at most so many bytes, one for each count.
_MOST_KEPT = 64_000_000


def resample_counts(seed: int, resamples: int, rows: int) -> Iterator[FloatArray]:
    """How often each row is in each resample: float64[some resamples, rows]."""
    draw = _kept if resamples * rows <= _MOST_KEPT else _drawn
    for counts in draw(seed, resamples, rows):
        yield counts.astype(np.float64)


def _drawn(seed: int, resamples: int, rows: int) -> Iterator[NDArray[np.uint8]]:
    """The counts as bytes: that a row is in a resample more than 255 times has no probability worth a thought."""
    rng = np.random.default_rng(seed)
    at_once = max(1, _CELLS_PER_CHUNK // max(1, rows))
    for start in range(0, resamples, at_once):
        # The stream is that of 64-bit whole numbers.
        drawn = rng.integers(0, rows, size=(min(at_once, resamples - start), rows), dtype=np.int32)
        cells = drawn + (np.arange(len(drawn)) * rows)[:, None]
        yield np.bincount(cells.ravel(), minlength=cells.size).reshape(cells.shape).astype(np.uint8)


@lru_cache(maxsize=1)
def _kept(seed: int, resamples: int, rows: int) -> list[NDArray[np.uint8]]:
    return list(_drawn(seed, resamples, rows))


class Columns:
    """Distinct columns, each kept once: Success, EF and BoR share most of theirs."""

    def __init__(self) -> None:
        self._index: dict[bytes, int] = {}
        self._columns: list[FloatArray] = []

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, block: FloatArray) -> list[int]:
        """Where each column of the block is kept."""
        places = []
        for column in block.T:
            column = np.ascontiguousarray(column)
            key = blake2b(column.tobytes(), digest_size=16).digest()
            if key not in self._index:
                self._index[key] = len(self._columns)
                self._columns.append(column)
            places.append(self._index[key])
        return places

    def matrix(self) -> FloatArray:
        return np.stack(self._columns, axis=1)
