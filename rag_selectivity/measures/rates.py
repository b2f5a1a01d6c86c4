"""Bits over Random of a success rate that somebody else measured and published."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.measures.chance import BoR, BoR_max
from rag_selectivity.measures.hypergeometric import random_success
from rag_selectivity.tables.cells import iterated, whole_count
from rag_selectivity.wording import counted, number


@dataclass(frozen=True, slots=True)
class Bits:
    """A success rate in bits.

    Attributes
    ----------
    bor : float
        log2(rate / mean RandomSuccess), as `BoR`; −inf for a rate of 0.
    ceiling : float
        −log2(mean RandomSuccess), as `BoR_max`: the bits of a rate of 1.
    headroom : float
        −log2(rate), the bits that a perfect retriever would have beyond this one: ceiling − bor. inf for a rate of 0.
    left_out : int
        Queries of R with fewer than m relevant passages. No retriever can succeed in them, so the baseline is without
        them, and the rate is taken to be over the others.
    """

    bor: float
    ceiling: float
    headroom: float
    left_out: int = 0

    def __str__(self) -> str:
        text = f"{number(self.bor)} bits of at most {number(self.ceiling)}, headroom {number(self.headroom)}"
        if not self.left_out:
            return text
        return (
            f"{text}; {counted(self.left_out, 'query', 'queries')} left out, with too few relevant passages for a "
            f"success: the rate is taken to be over the others. If it is over all queries, divide it by the share of "
            f"the others first"
        )


def bits(rate: float, N: int, K: int, R: int | Iterable[int], *, m: int = 1) -> Bits:
    """Bits over Random of a success rate, from the counts that a publication names.

    The random baseline is exact, and so are its bits where it is near 0 or near 1.

    Parameters
    ----------
    rate : float
        The share of the queries that succeed, from 0 to 1: that have at least m relevant passages in the top K.
    N : int
        Passages in the corpus, at most 2**53.
    K : int
        Depth, from 1 to N.
    R : int, or one int for each query
        Relevant passages: one number for all queries, or the number of each query. The baseline is then the mean over
        the queries with m or more, and the rate is taken to be over these (`Bits.left_out` counts the others). The mean
        of R does not determine the baseline, so a fraction is refused.
    m : int
        Hits that make a success.

    Returns
    -------
    Bits

    Raises
    ------
    InputError
        If a number is out of its range, if R is more than N, or if no draw of K can succeed.

    Examples
    --------
    BM25 on MS MARCO has one relevant passage in its top 1,000 for .857 of the queries, as published for R = 1:

    >>> found = bits(0.857, N=8_841_823, K=1000, R=1)
    >>> round(found.bor, 2), round(found.ceiling, 2), round(found.headroom, 2)
    (12.89, 13.11, 0.22)
    >>> round(bits(0.9, N=1000, K=10, R=[1, 1, 40]).bor, 2)
    2.92
    >>> bits(0.9, N=1000, K=10, R=[1, 0]).left_out
    1
    """
    success = _rate(rate)
    size, depth, hits = whole_count(N, "N"), whole_count(K, "K"), whole_count(m, "m")
    if hits < 1:
        raise InputError("m is 0; give a whole number ≥ 1")
    if not 1 <= depth <= size:
        raise InputError(f"K is {depth}; give a depth from 1 to the corpus size N = {size}")
    counts = relevant_counts(R)
    if max(counts, default=0) > size:
        raise InputError(f"R is {max(counts)}, more than the corpus size N = {size}")
    able = np.array([count for count in counts if count >= hits], np.int64)
    if not len(able) or depth < hits:
        raise InputError(f"no draw of K = {depth} can succeed, since a success needs m = {hits}: correct K, R or m")
    chance, miss = (np.array([part.mean()]) for part in random_success(size, able, depth, hits))
    ceiling = float(BoR_max.aggregate.value(chance, miss)[0])
    with np.errstate(divide="ignore"):
        headroom = 0.0 - float(np.log2(success)) + 0.0
    # Rates and chances above one half are subtracted before the logarithm, since theirs are small and nearly equal.
    nearly_equal = success >= 0.5
    bor = float(BoR.aggregate.value(np.array([success]), chance, miss)[0]) if nearly_equal else ceiling - headroom
    return Bits(bor, ceiling, headroom, len(counts) - len(able))


def relevant_counts(relevant: Any) -> list[int]:
    """R as a list: one number, or one for each query.

    >>> relevant_counts(4), relevant_counts([1, 3])
    ([4], [1, 3])
    """
    what = "the number of relevant passages"
    if isinstance(relevant, (int, np.integer)):
        return [whole_count(relevant, what)]
    given = iterated(relevant, f"{what} must be a whole number, or a list with one for each query")
    return [whole_count(value, what) for value in given]


def _rate(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= cast(Any, value) <= 1:
        may_be_percent = isinstance(value, (int, float)) and 1 < value <= 100
        hint = f"; is it a percentage? give {float(value) / 100:g}" if may_be_percent else ""
        raise InputError(f"the success rate must be a number from 0 to 1, got {value!r}{hint}")
    return float(value)


def bits_ceiling(rate: float) -> float:
    """The bits that all right answers have over a rate of right answers; NaN for a rate of 0.

    >>> bits_ceiling(0.25)
    2.0
    """
    return -math.log2(rate) if rate > 0 else math.nan
