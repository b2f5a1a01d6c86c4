"""Groups of questions that ask the same, by character n-grams."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array

from rag_selectivity.tables.ids import IntArray

#: Characters of an n-gram.
N = 3
#: Pairs of texts that are compared at a time.
_PAIRS_AT_ONCE = 1 << 22


def groups_by_ngrams(keys: Sequence[str], threshold: float) -> IntArray:
    """The leader of each text, where texts are alike by the Jaccard similarity of their character 3-grams.

    In the order of the texts, one that follows nobody leads, and all alike that are free follow it. So every member is
    as near to its leader as the threshold says, and there are no chains. Only texts that may lead are compared with all
    others, so that questions that are nearly all the same take no longer than questions that are not.
    """
    grams = _ngrams(keys)
    sizes, of_gram = np.diff(grams.indptr), grams.T.tocsr()
    leader = np.full(len(keys), -1, np.int64)
    free = np.arange(len(keys))
    while len(free):
        block = free[: max(1, _PAIRS_AT_ONCE // len(keys))]
        shared = coo_array(grams[block] @ of_gram)
        place, other = shared.coords
        alike = shared.data >= threshold * (sizes[block[place]] + sizes[other] - shared.data) - 1e-9
        near = csr_array((shared.data[alike], (place[alike], other[alike])), shared.shape)
        for item, start, end in zip(block.tolist(), near.indptr, near.indptr[1:], strict=False):
            if leader[item] < 0:
                followers = near.indices[start:end]
                leader[followers[leader[followers] < 0]] = item
        free = free[leader[free] < 0]
    return leader


def _ngrams(keys: Sequence[str]) -> csr_array:
    """Which n-grams each text has; a text is padded with a blank at both ends."""
    number: dict[str, int] = {}
    columns, starts = list[int](), [0]
    for key in keys:
        padded = f" {key} "
        grams = {padded[i : i + N] for i in range(max(1, len(padded) - N + 1))}
        columns += [number.setdefault(gram, len(number)) for gram in grams]
        starts.append(len(columns))
    return csr_array((np.ones(len(columns), np.int32), columns, starts), (len(keys), len(number)))
