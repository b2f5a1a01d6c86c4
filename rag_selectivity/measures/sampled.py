"""The random baseline with unjudged passages, estimated from a judged random sample of these."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IntArray
from rag_selectivity.measures.base import FloatArray


def estimated_relevant(
    corpus: IntArray, pooled: IntArray, known: IntArray, size: IntArray, sampled_relevant: IntArray
) -> FloatArray:
    """Horvitz–Thompson estimate of R: float64[queries].

    The relevant passages of the qrels, plus the sampled relevant passages, each multiplied by the number of passages
    outside the qrels for each sampled one.

    Parameters
    ----------
    corpus, pooled, known : int64[queries]
        N, judged passages of the qrels, and relevant passages among these.
    size, sampled_relevant : int64[queries]
        Passages drawn at random from those that are not in the qrels, and relevant passages among these.

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
    """The probability that a random draw of K holds no relevant passage: an unbiased estimate from the sample.

    A draw of K takes t passages from the qrels, where every grade is known, and K − t passages from outside. A random
    choice of K − t of the n sampled passages, x of them relevant, misses all of these with the probability
    C(n − x, K − t)/C(n, K − t). Its mean over samples is the true probability. The baseline with the estimate of R in
    it is biased, since the baseline is not linear in R. The estimate needs K ≤ n.

    Parameters
    ----------
    corpus, pooled, known, size, sampled_relevant : int64[queries]
        As in `estimated_relevant`.
    depths : int64[queries, depths]

    Returns
    -------
    float64[queries, depths]
        NaN if K is more than the size of the query's sample.
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
    # C(pooled, t) occurs in the draw and, inverted, in the miss within the qrels: the two cancel.
    logs = (
        log_choose(pooled - known, taken)
        + log_choose(corpus - pooled, depth - taken)
        - log_choose(corpus, depth)
        + log_choose(size - sampled_relevant, depth - taken)
        - log_choose(size, depth - taken)
    )
    return float(min(1.0, np.exp(logs).sum()))
