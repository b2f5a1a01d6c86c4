"""How often each resample draws each query: one stream for all measures, depths, slices and systems."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.measures.base import FloatArray

_CELLS_PER_CHUNK = 1 << 20
#: Of the counts of several resamples, which stay in the processor's cache.
_CELLS_COUNTED_AT_ONCE = 1 << 16
#: The last draws are kept if they take at most so many bytes, one for each count.
_MOST_KEPT = 64_000_000
_LARGEST_KEPT = 255

_last: tuple[tuple[int, int, int], list[NDArray[np.uint8]]] | None = None


def resample_counts(seed: int, resamples: int, rows: int) -> Iterator[FloatArray]:
    """How often each row is in each resample: float64[some resamples, rows], overwritten by the next ones."""
    global _last
    key = (seed, resamples, rows)
    if _last is not None and _last[0] == key:
        for chunk in _last[1]:
            yield chunk.astype(np.float64)
        return
    rng = np.random.default_rng(seed)
    at_once = max(1, _CELLS_PER_CHUNK // max(1, rows))
    counts = np.empty((min(at_once, resamples), rows))
    kept: list[NDArray[np.uint8]] | None = [] if resamples * rows <= _MOST_KEPT else None
    for start in range(0, resamples, at_once):
        some = counts[: min(at_once, resamples - start)]
        # The stream is that of 64-bit whole numbers.
        _count(rng.integers(0, rows, size=some.shape, dtype=np.int32), some)
        if kept is not None:
            kept = [*kept, some.astype(np.uint8)] if some.max(initial=0) <= _LARGEST_KEPT else None
        yield some
    if kept is not None:
        _last = (key, kept)


def _count(drawn: NDArray[np.int32], counts: FloatArray) -> None:
    """Write how often each sample holds each row into `counts`: float64[samples, rows]."""
    rows = counts.shape[1]
    at_once = max(1, _CELLS_COUNTED_AT_ONCE // max(1, rows))
    first_cells = (np.arange(at_once) * rows)[:, None]
    for start in range(0, len(drawn), at_once):
        some = drawn[start : start + at_once]
        cells = (some + first_cells[: len(some)]).ravel()
        counts[start : start + len(some)] = np.bincount(cells, minlength=some.size).reshape(some.shape)


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
