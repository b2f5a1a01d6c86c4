"""Groups of questions that ask the same, by character n-grams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from rag_selectivity.tables.ids import IntArray

#: Characters of an n-gram.
N = 3
#: Rows compared with all others at a time.
_ROWS_AT_ONCE = 512
_PAIRS_AT_ONCE = 1 << 16
#: So many of their rarest n-grams two texts must share, if they have so many, before they are compared.
_SHARED = 8
#: Places in the rows that are asked about, and in those that they are compared with.
_Pairs = tuple[IntArray, IntArray]
#: Compares some rows with those that it was made of.
_Alike = Callable[[IntArray], Iterator[_Pairs]]


def groups_by_ngrams(keys: Sequence[str], threshold: float) -> IntArray:
    """The leader of each text, where texts are alike by the Jaccard similarity of their character 3-grams.

    In the order of the texts, one that follows nobody leads, and all alike that are free follow it. So every member is
    as near to its leader as the threshold says, and there are no chains. Only leaders are compared with all others, so
    that questions that are nearly all the same take no longer than questions that are not.
    """
    sets = _Sets(_ngrams(keys), threshold)
    leader = np.full(len(keys), -1, np.int64)
    free = compared = np.arange(len(keys))
    alike = sets.among(compared)
    while len(free):
        block, free = free[:_ROWS_AT_ONCE], free[_ROWS_AT_ONCE:]
        one, other = _joined(sets.among(block)(block))
        near = csr_array((np.ones(len(one), bool), (one, other)), (len(block), len(block)))
        for place, item in enumerate(block.tolist()):
            if leader[item] < 0:
                leader[item] = item
                followers = block[near.indices[near.indptr[place] : near.indptr[place + 1]]]
                leader[followers[leader[followers] < 0]] = item
        leaders = block[leader[block] == block]
        if 2 * len(free) < len(compared):
            compared = free
            alike = sets.among(compared)
        for one, other in alike(leaders):
            followers = compared[other]
            unled = leader[followers] < 0
            # The first leader in order has the lowest place, and is written last.
            first = np.argsort(-one[unled], kind="stable")
            leader[followers[unled][first]] = leaders[one[unled][first]]
        free = free[leader[free] < 0]
    return leader


def _joined(pairs: Iterator[_Pairs]) -> _Pairs:
    found = list(pairs)
    empty = np.empty(0, np.int64)
    return np.concatenate([empty, *(one for one, _ in found)]), np.concatenate([empty, *(two for _, two in found)])


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


class _Sets:
    """Finds rows whose Jaccard similarity reaches the threshold.

    Two such rows share at least t·|x| grams, so that among the |x| − ⌈t·|x|⌉ + ℓ rarest of each they share ℓ. Only rows
    that do, and whose sizes allow it, are compared (prefix filtering; Chaudhuri, Ganti and Kaushik 2006; Wang, Li and
    Feng 2012).
    """

    def __init__(self, grams: csr_array, threshold: float) -> None:
        self._grams, self._threshold = grams, threshold
        self._sizes = sizes = np.diff(grams.indptr)
        self._needed = np.ceil(threshold * sizes - 1e-9).astype(np.int64)
        self._at_least = np.minimum(self._needed, _SHARED)
        prefix = sizes - self._needed + self._at_least
        place = np.arange(len(grams.indices)) - np.repeat(grams.indptr[:-1], sizes)
        kept = place < np.repeat(prefix, sizes)
        starts = np.append(0, np.cumsum(np.minimum(prefix, sizes)))
        self._rare = csr_array((grams.data[kept], grams.indices[kept], starts), grams.shape)

    def among(self, others: IntArray) -> _Alike:
        """What finds those of `others` that are like some rows, pair by pair in the order of these rows."""
        columns = self._rare[others].T.tocsr()

        def alike(rows: IntArray) -> Iterator[_Pairs]:
            shared = coo_array(self._rare[rows] @ columns)
            places = shared.coords[0].astype(np.int64), shared.coords[1].astype(np.int64)
            one, other = rows[places[0]], others[places[1]]
            likely = shared.data >= np.minimum(self._at_least[one], self._at_least[other])
            likely &= np.minimum(self._sizes[one], self._sizes[other]) >= np.maximum(
                self._needed[one], self._needed[other]
            )
            chosen = np.flatnonzero(likely)
            for start in range(0, len(chosen), _PAIRS_AT_ONCE):
                some = chosen[start : start + _PAIRS_AT_ONCE]
                found = some[self._is_alike(one[some], other[some])]
                yield places[0][found], places[1][found]

        return alike

    def _is_alike(self, one: IntArray, other: IntArray) -> NDArray[np.bool_]:
        common = np.asarray(self._grams[one].multiply(self._grams[other]).sum(axis=1)).ravel()
        either = self._sizes[one] + self._sizes[other] - common
        result: NDArray[np.bool_] = common >= self._threshold * either - 1e-9
        return result
