"""The random baseline when only a pool was judged: from a random sample of the passages outside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IntArray
from rag_selectivity.measures.base import FloatArray


def estimated_relevant(
    corpus: IntArray, pooled: IntArray, known: IntArray, size: IntArray, sampled_relevant: IntArray
) -> FloatArray:
    """Horvitz–Thompson estimate of R: the pool's relevant passages, and each sampled one for as many as it stands for.

    Parameters
    ----------
    corpus, pooled, known : int64[queries]
        N, judged passages of the pool, relevant ones among them.
    size, sampled_relevant : int64[queries]
        Passages drawn at random from outside the pool, relevant ones among them.

    >>> estimated_relevant(np.array([1000]), np.array([100]), np.array([8]), np.array([90]), np.array([2])).tolist()
    [28.0]
    """
    stands_for = (corpus - pooled) / np.maximum(size, 1)
    return known.astype(np.float64) + np.where(size > 0, sampled_relevant * stands_for, 0.0)


def estimated_miss(
    corpus: IntArray,
    pooled: IntArray,
    known: IntArray,
    size: IntArray,
    sampled_relevant: IntArray,
    depths: NDArray[Any],
) -> FloatArray:
    """The probability that a random draw of K holds no relevant passage, estimated without bias from the sample.

    A draw of K takes t passages from the pool, where all is known, and K − t from outside, of which the
    sample is a picture: a random K − t of the sample's passages miss with C(n − x, K − t)/C(n, K − t), which
    is right on average over samples, while the plain estimate of R put into the baseline is not, since the
    baseline bends. That needs K ≤ n: a sample cannot tell what a larger draw would meet.

    Parameters
    ----------
    corpus, pooled, known, size, sampled_relevant : int64[queries]
        As in `estimated_relevant`.
    depths : int64[queries, depths]

    Returns
    -------
    float64[queries, depths]
        NaN where K exceeds the query's sample.
    """
    result = np.full(depths.shape, np.nan)
    for i, place in np.argwhere(depths <= size[:, None]).tolist():
        result[i, place] = _from_sample(corpus[i], pooled[i], known[i], size[i], sampled_relevant[i], depths[i, place])
    return result


def _from_sample(corpus: int, pooled: int, known: int, size: int, sampled_relevant: int, depth: int) -> float:
    from scipy.special import gammaln

    def log_choose(n: Any, k: Any) -> Any:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    taken = np.arange(
        max(0, depth - (corpus - pooled), depth - (size - sampled_relevant)), min(depth, pooled - known) + 1
    )
    if not len(taken):
        return 0.0
    # C(pooled, t) of the draw and of the miss within the pool cancel.
    logs = (
        log_choose(pooled - known, taken)
        + log_choose(corpus - pooled, depth - taken)
        - log_choose(corpus, depth)
        + log_choose(size - sampled_relevant, depth - taken)
        - log_choose(size, depth - taken)
    )
    return float(min(1.0, np.exp(logs).sum()))
