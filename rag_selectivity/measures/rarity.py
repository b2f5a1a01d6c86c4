"""The weight of a grade by its rarity, and the best set of passages.

After "Redefining RAG Evaluation: A Set-Based Approach" and its preprint (arXiv 2511.09545).
"""

from __future__ import annotations

import numpy as np

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

LEVELS = np.array([1, 2, 3, 4, 5])


def rarity_weights(
    counts: IntArray,
    *,
    alpha: float = 1.0,
    cap4: float = 1.0,
    cap3: float = 0.25,
    base4: float = 0.5,
    base3: float = 0.1,
    fallback4: float = 1.0,
    fallback3: float = 0.2,
) -> FloatArray:
    """The weight of each grade for each query, from the rarity of the grade among the judged passages U.

    p_g = n_g/|U|, r_g = b_g/p_g^alpha with b = 1, base4, base3 for grades 5, 4, 3 (0 where n_g = 0);
    w5 = 1, w4 = min(r4/r5, cap4), w3 = min(r3/r5, cap3), w2 = w1 = 0. Without a grade 5 in U:
    1, fallback4, fallback3. If grade 3 is rare and grade 4 is common, w3 can be more than w4.

    Parameters
    ----------
    counts : int64[queries, 5]
        Judged passages of grades 1 to 5.

    Returns
    -------
    float64[queries, 5]
        The weights of grades 1 to 5, each from 0 to 1.

    >>> rarity_weights(np.array([[1, 1, 3, 2, 1]])).round(4).tolist()
    [[0.0, 0.0, 0.0333, 0.25, 1.0]]
    """
    total = counts.sum(axis=1)
    base = np.array([0.0, 0.0, base3, base4, 1.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        rarity = np.where(counts > 0, base / (counts / total[:, None]) ** alpha, 0.0)
        relative = rarity / rarity[:, 4:]
    weights = np.minimum(relative, [0.0, 0.0, cap3, cap4, 1.0])
    without_five = counts[:, 4] == 0
    weights[without_five] = [0.0, 0.0, fallback3, fallback4, 1.0]
    return weights


def best_of(counts: IntArray, weights: FloatArray, slots: IntArray) -> FloatArray:
    """The largest total weight that the given passages can have in so many slots: float64[queries, depths].

    `counts` is int64[queries, 5], or int64[queries, depths, 5] if the passages differ by depth;
    `slots` is int64[queries, depths].
    """
    by_weight, rows = np.argsort(-weights, axis=1, kind="stable"), np.arange(len(weights))
    if counts.ndim == 2:
        counts = counts[:, None, :]
    result = np.zeros(slots.shape)
    left = slots
    for place in range(int((weights > 0).any(axis=0).sum())):
        level = by_weight[:, place]
        taken = np.minimum(left, counts[rows, :, level])
        result += weights[rows, level][:, None] * taken
        left = left - taken
    return result
