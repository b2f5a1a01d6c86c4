"""Groups of questions that ask the same: by character n-grams, or by vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from rag_selectivity.data.ids import IntArray

#: Characters of an n-gram.
N = 3
#: Rows compared with all others at a time.
_ROWS_AT_ONCE = 512
_PAIRS_AT_ONCE = 1 << 16
#: So many of their rarest n-grams two texts must share, if they have so many, before they are compared.
_SHARED = 8
_Pairs = tuple[IntArray, IntArray]


def groups_by_ngrams(keys: Sequence[str], order: IntArray, threshold: float) -> IntArray:
    """The leader of each text, where texts are alike by the Jaccard similarity of their character 3-grams.

    `order` says who may lead before whom; see `led`.
    """
    grams = _ngrams(keys)
    return led(len(keys), order, _alike_sets(grams, threshold))


def groups_by_vectors(vectors: NDArray[np.float64], order: IntArray, threshold: float) -> IntArray:
    """The leader of each row of unit length, where rows are alike by their cosine."""
    return led(len(vectors), order, _alike_vectors(vectors, threshold))


def led(size: int, order: IntArray, pairs: Iterator[_Pairs]) -> IntArray:
    """The leader of each item: in `order`, an item that follows nobody leads, and all alike that are free follow it.

    So every member is as near to its leader as the threshold says, and there are no chains.
    """
    found = list(pairs)
    one = np.concatenate([np.empty(0, np.int64), *(pair[0] for pair in found)])
    other = np.concatenate([np.empty(0, np.int64), *(pair[1] for pair in found)])
    near = csr_array((np.ones(2 * len(one), bool), (np.append(one, other), np.append(other, one))), (size, size))
    leader = np.full(size, -1, np.int64)
    for item in order.tolist():
        if leader[item] < 0:
            leader[item] = item
            alike = near.indices[near.indptr[item] : near.indptr[item + 1]]
            leader[alike[leader[alike] < 0]] = item
    return leader


def _ngrams(keys: Sequence[str]) -> csr_array:
    """Which n-grams each text has, the rarest first; a text is padded with a blank at both ends."""
    number: dict[str, int] = {}
    columns, counts = [], []
    for key in keys:
        padded = f" {key} "
        grams = {padded[i : i + N] for i in range(max(1, len(padded) - N + 1))}
        columns += [number.setdefault(gram, len(number)) for gram in grams]
        counts.append(len(grams))
    column = np.array(columns, np.int64)
    frequency = np.bincount(column, minlength=len(number))
    rarity = np.empty(len(number), np.int64)
    rarity[np.argsort(frequency, kind="stable")] = np.arange(len(number))
    rows = np.repeat(np.arange(len(keys)), counts)
    column = rarity[column]
    column = column[np.lexsort((column, rows))]
    starts = np.append(0, np.cumsum(counts))
    return csr_array((np.ones(len(column), np.int32), column, starts), (len(keys), len(number)))


def _alike_sets(grams: csr_array, threshold: float) -> Iterator[_Pairs]:
    """Pairs of rows whose Jaccard similarity reaches the threshold.

    Two such rows share at least t·|x| grams, so that among the |x| − ⌈t·|x|⌉ + ℓ rarest of each they share ℓ. Only rows
    that do, and whose sizes allow it, are compared (prefix filtering; Chaudhuri, Ganti and Kaushik 2006; Wang, Li and
    Feng 2012).
    """
    sizes = np.diff(grams.indptr)
    needed = np.ceil(threshold * sizes - 1e-9).astype(np.int64)
    at_least = np.minimum(needed, _SHARED)
    prefix = sizes - needed + at_least
    place = np.arange(len(grams.indices)) - np.repeat(grams.indptr[:-1], sizes)
    kept = place < np.repeat(prefix, sizes)
    starts = np.append(0, np.cumsum(np.minimum(prefix, sizes)))
    rare = csr_array((grams.data[kept], grams.indices[kept], starts), grams.shape)
    columns = rare.T.tocsr()
    for first in range(0, grams.shape[0], _ROWS_AT_ONCE):
        shared = coo_array(rare[first : first + _ROWS_AT_ONCE] @ columns)
        one, other = shared.coords[0].astype(np.int64) + first, shared.coords[1].astype(np.int64)
        likely = (one < other) & (shared.data >= np.minimum(at_least[one], at_least[other]))
        likely &= np.minimum(sizes[one], sizes[other]) >= np.maximum(needed[one], needed[other])
        one, other = one[likely], other[likely]
        for start in range(0, len(one), _PAIRS_AT_ONCE):
            some = slice(start, start + _PAIRS_AT_ONCE)
            common = np.asarray(grams[one[some]].multiply(grams[other[some]]).sum(axis=1)).ravel()
            either = sizes[one[some]] + sizes[other[some]] - common
            alike = common >= threshold * either - 1e-9
            yield one[some][alike], other[some][alike]


def _alike_vectors(vectors: NDArray[np.float64], threshold: float) -> Iterator[_Pairs]:
    for first in range(0, len(vectors), _ROWS_AT_ONCE):
        cosine = vectors[first : first + _ROWS_AT_ONCE] @ vectors.T
        one, other = np.nonzero(cosine >= threshold - 1e-9)
        ahead = one + first < other
        yield one[ahead].astype(np.int64) + first, other[ahead].astype(np.int64)
