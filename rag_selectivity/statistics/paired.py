"""Paired tests: sign-flip randomisation of differences, and Holm's correction over a family."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.measures.base import FloatArray

#: Up to so many differences that are not zero, all their signs are tried.
_ENUMERATED = 16
#: Sums closer than this, relative to the largest possible, are equal.
_SAME = 1e-11
_CELLS_PER_CHUNK = 1 << 21


@dataclass(frozen=True, slots=True)
class SignFlip:
    """Two-sided p-values of "the signs of the differences are coin tosses", and how each was found.

    `test` is `exact` where every assignment of signs was counted, `randomised` where signs were drawn.
    """

    p: FloatArray
    test: tuple[str, ...]


def sign_flip(differences: FloatArray, *, draws: int = 10_000, seed: int = 7) -> SignFlip:
    """Sign-flip randomisation test of a mean difference of zero, for each column.

    If two systems were interchangeable, every query's difference could as well have had the other
    sign. p is the share of all assignments of signs whose mean is at least as far from zero. With
    16 differences or fewer that are not zero, or when all of those have one size (successes won and
    lost: McNemar's exact test), it is counted exactly; else from random assignments, the observed one
    among them, so that p is never 0.

    Parameters
    ----------
    differences : float64[queries, columns]
        NaN where a query is undefined.
    draws : int
    seed : int

    >>> sign_flip(np.array([[1.0], [1.0], [1.0], [1.0], [1.0], [0.0]])).p.tolist()
    [0.0625]
    """
    matrix = np.nan_to_num(differences, nan=0.0)
    p, test = np.ones(matrix.shape[1]), ["exact"] * matrix.shape[1]
    drawn = []
    for column in range(matrix.shape[1]):
        values = matrix[matrix[:, column] != 0, column]
        sizes = np.abs(values)
        if not len(values):
            continue
        if sizes.max() - sizes.min() <= _SAME * sizes.max():
            p[column] = _of_coin_tosses(int((values > 0).sum()), len(values))
        elif len(values) <= _ENUMERATED:
            sums = _all_signs(len(values)) @ values
            p[column] = float((np.abs(sums) >= abs(values.sum()) - _SAME * sizes.sum()).mean())
        else:
            drawn.append(column)
            test[column] = "randomised"
    if drawn:
        p[drawn] = _randomised(matrix[:, drawn], draws, seed)
    return SignFlip(p, tuple(test))


def _of_coin_tosses(heads: int, tosses: int) -> float:
    from scipy.special import bdtr

    return float(min(1.0, 2 * bdtr(min(heads, tosses - heads), tosses, 0.5)))


@cache
def _all_signs(count: int) -> FloatArray:
    bits = (np.arange(1 << count)[:, None] >> np.arange(count)) & 1
    return np.where(bits == 1, 1.0, -1.0)


def _randomised(matrix: FloatArray, draws: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    observed = np.abs(matrix.sum(axis=0))
    limit = observed - _SAME * np.abs(matrix).sum(axis=0)
    queries = len(matrix)
    # Whole 32-bit words for every draw, so that its signs do not depend on how many are drawn at a time.
    row_bytes = -(-queries // 32) * 4
    extreme = np.zeros(matrix.shape[1])
    step = max(1, _CELLS_PER_CHUNK // max(1, queries))
    for start in range(0, draws, step):
        count = min(step, draws - start)
        words = np.frombuffer(rng.bytes(count * row_bytes), np.uint8).reshape(count, row_bytes)
        signs = np.unpackbits(words, axis=1, count=queries).astype(np.float64) * 2 - 1
        extreme += (np.abs(signs @ matrix) >= limit).sum(axis=0)
    result: FloatArray = (extreme + 1) / (draws + 1)
    return result


def holm(p: NDArray[np.float64]) -> FloatArray:
    """Holm's step-down correction: p-values that hold for the whole family; NaN stays out of it.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    result = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * (len(order) - np.arange(len(order)))
    result[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return result
