"""A sample of queries, stratified, in which each query has the chance that its traffic gives it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.grading.designs import allocated
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray


def sampled(
    keys: Sequence[str], frequency: IntArray, strata: Sequence[str], size: int, seed: int
) -> tuple[IntArray, FloatArray]:
    """The positions of the sampled queries, and how many questions of the traffic each stands for.

    Each stratum gets queries in proportion to its traffic, at least one. Within it a query is drawn with a probability
    proportional to its frequency; one that is asked so often that it would be drawn for sure stands for itself. So the
    weights of a stratum sum to its traffic. The draw depends on texts, frequencies and the seed, and on no order.

    Raises
    ------
    InputError
        If there are fewer queries than `size`, or more strata.
    """
    names = sorted(set(strata))
    if size > len(keys):
        raise InputError(f"size (--size) {size} is more than the {len(keys)} different questions: ask for fewer")
    if size < len(names):
        raise InputError(
            f"size (--size) {size} is less than the {len(names)} strata, and each needs a query: ask for more, or "
            f"stratify by something else"
        )
    number = {name: place for place, name in enumerate(names)}
    stratum = np.array([number[name] for name in strata], np.int64)
    traffic = np.bincount(stratum, frequency, minlength=len(names)).astype(np.float64)
    counts = allocated(size, traffic, np.bincount(stratum, minlength=len(names)), 1)
    chosen, weights = [], []
    for place, (name, count) in enumerate(zip(names, counts.tolist(), strict=True)):
        members = np.flatnonzero(stratum == place)
        members = members[np.argsort([_digest(seed, keys[i]) for i in members.tolist()], kind="stable")]
        drawn, weight = _systematic(frequency[members], count, _digest(seed, name, start=True) / 2**64)
        chosen.append(members[drawn])
        weights.append(weight)
    return np.concatenate(chosen), np.concatenate(weights)


def _systematic(frequency: IntArray, count: int, start: float) -> tuple[IntArray, FloatArray]:
    """Systematic sampling with probabilities proportional to frequency (Madow 1949), from items in random order."""
    certain = np.zeros(len(frequency), bool)
    while True:
        left = count - int(certain.sum())
        step = frequency[~certain].sum() / left if left else np.inf
        more = ~certain & (frequency >= step)
        if not more.any():
            break
        certain |= more
    others = np.flatnonzero(~certain)
    ends = np.cumsum(frequency[others])
    drawn = np.searchsorted(ends, (start + np.arange(left)) * step, "right") if left else np.empty(0, np.int64)
    weight = np.append(frequency[certain].astype(np.float64), np.full(left, step if left else 0.0))
    return np.append(np.flatnonzero(certain), others[np.minimum(drawn, len(others) - 1)]).astype(np.int64), weight


def _digest(seed: int, text: str, *, start: bool = False) -> int:
    return int.from_bytes(blake2b(f"{seed}{' start' if start else ''}\n{text}".encode(), digest_size=8).digest())
