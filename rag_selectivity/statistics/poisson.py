"""Poisson bootstrap: a hash of its id decides how often (0, 1, 2, …) a query counts in each resample.

This depends only on the query's id and the seed, so any partition of the queries over any number of machines gives the
same resamples. After Chamandy, Muralidharan, Najmi and Naidu 2012, Estimating Uncertainty for Massive Data Streams.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import HashArray, id_hashes, mix

_PER_HASH = 4


def _table() -> NDArray[np.uint8]:
    """The Poisson(1) quantile of each 16-bit number."""
    cumulative = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)])
    return np.searchsorted(cumulative, (np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.uint8)


_COUNTS = _table()


def query_hashes(queries: Sequence[str]) -> HashArray:
    """A 64-bit hash of each query id, the same on every machine."""
    return id_hashes(queries)


class Draws:
    """How often each query is in each resample, uint8[resamples, queries], Poisson with mean 1; made when asked for."""

    def __init__(self, hashes: HashArray, resamples: int, seed: int) -> None:
        self._start = mix(hashes, np.full(len(hashes), seed + 1, np.uint64))
        self._resamples = resamples

    def __len__(self) -> int:
        return self._resamples

    def __getitem__(self, resamples: slice) -> NDArray[np.uint8]:
        first, stop, _ = resamples.indices(self._resamples)
        block = first // _PER_HASH
        keys = np.arange(block + 1, -(-stop // _PER_HASH) + 1, dtype=np.uint64)[:, None] * np.uint64(0x9E3779B97F4A7C15)
        drawn = mix(self._start[None, :] ^ keys, keys >> np.uint64(7))
        sixteens = np.stack([(drawn >> np.uint64(16 * part)).astype(np.uint16) for part in range(_PER_HASH)], axis=1)
        some = slice(first - block * _PER_HASH, stop - block * _PER_HASH)
        return _COUNTS[sixteens.reshape(len(keys) * _PER_HASH, len(self._start))[some]]
