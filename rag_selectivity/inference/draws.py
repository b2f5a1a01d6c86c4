"""How often each resample draws each query; kept, where several figures of the same queries are resampled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.tables.ids import IntArray

_CELLS_PER_CHUNK = 1 << 20
#: Of the counts of several resamples, which stay in the processor's cache.
_CELLS_COUNTED_AT_ONCE = 1 << 16
#: A thread that draws ahead takes longer to start than so few chunks to be drawn.
_CHUNKS_FOR_A_THREAD = 4
#: The bytes that are kept at most. A count takes one of them.
_MOST_KEPT = 64_000_000
_LARGEST_KEPT = 255

#: The chunks of a seed, a number of resamples and a number of queries.
_Kept = dict[tuple[int, int, int], list[NDArray[np.uint8]]]
_kept: ContextVar[_Kept | None] = ContextVar("kept draws", default=None)


@contextmanager
def kept_draws() -> Iterator[None]:
    """Draw the resamples of equally many queries once meanwhile: the same seed gives the same ones again."""
    if _kept.get() is not None:
        yield
        return
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def resample_counts(
    seed: int, resamples: int, rows: int, wanted: IntArray | None = None
) -> Iterator[NDArray[np.float64]]:
    """How often each row is in each resample: float64[some resamples, rows], overwritten by the next ones.

    With `wanted`, the columns are those of these rows in their order; a row can be wanted more than once.
    """
    kept, key = _kept.get(), (seed, resamples, rows)
    at_once = max(1, _CELLS_PER_CHUNK // max(1, rows))
    if kept is not None and key in kept:
        buffer = np.empty((min(at_once, resamples), rows if wanted is None else len(wanted)))
        for chunk in kept[key]:
            # Single bytes are put into order in less time than floats.
            buffer[: len(chunk)] = chunk if wanted is None else chunk.take(wanted, axis=1)
            yield buffer[: len(chunk)]
        return
    counts = np.empty((min(at_once, resamples), rows))
    chunks: list[NDArray[np.uint8]] | None = None
    if kept is not None and resamples * rows + sum(chunk.size for each in kept.values() for chunk in each) < _MOST_KEPT:
        chunks = []
    for drawn in _drawn(seed, resamples, rows, at_once):
        some = counts[: len(drawn)]
        _count(drawn, some)
        if chunks is not None:
            chunks = [*chunks, some.astype(np.uint8)] if some.max(initial=0) <= _LARGEST_KEPT else None
        yield some if wanted is None else some.take(wanted, axis=1)
    if kept is not None and chunks is not None:
        kept[key] = chunks


def _drawn(seed: int, resamples: int, rows: int, at_once: int) -> Iterator[NDArray[np.int32]]:
    """The rows of every resample, int32[some resamples, rows]; a thread draws the next ones meanwhile."""
    rng = np.random.default_rng(seed)
    sizes = [min(at_once, resamples - start) for start in range(0, resamples, at_once)]

    def draw(size: int) -> NDArray[Any]:
        # The stream is that of 64-bit whole numbers.
        return rng.integers(0, rows, size=(size, rows), dtype=np.int32)

    if len(sizes) < _CHUNKS_FOR_A_THREAD:
        yield from map(draw, sizes)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(draw, sizes[0])
        for size in sizes[1:]:
            drawn, following = following.result(), thread.submit(draw, size)
            yield drawn
        yield following.result()


def _count(drawn: NDArray[np.int32], counts: NDArray[np.float64]) -> None:
    """Write how often each sample holds each row into the first rows of `counts`: float64[samples, rows]."""
    rows = counts.shape[1]
    at_once = max(1, _CELLS_COUNTED_AT_ONCE // max(1, rows))
    first_cells = (np.arange(at_once) * rows)[:, None]
    for start in range(0, len(drawn), at_once):
        some = drawn[start : start + at_once]
        cells = (some + first_cells[: len(some)]).ravel()
        counts[start : start + len(some)] = np.bincount(cells, minlength=some.size).reshape(some.shape)
