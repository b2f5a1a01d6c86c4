"""Kendall's tau of few pairs with an interval that is honest at tau = 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.statistics.bisection import end_of

_DRAWS = 4000
#: From so many pairs on, the normal approximation; a simulation of all pairs would take long.
_MANY = 60
_HALVINGS = 14
_FEWEST = 4
_SAME = 1e-9


def kendall(first: FloatArray, second: FloatArray, level: float) -> tuple[float, float, float]:
    """Kendall's tau-b with its interval; NaN with fewer than four pairs or without spread.

    The interval holds every tau of pairs from a normal copula under which neither a larger nor a smaller figure than
    the one seen is rarer than (1 − level)/2, by simulation with a fixed seed. With 60 pairs or more it is Fisher's
    transformation with the variance .437/(n − 4).

    References
    ----------
    Fieller, Hartley and Pearson 1957, Tests for rank correlation coefficients I.

    Examples
    --------
    >>> tau, low, high = kendall(np.arange(6.0), np.arange(6.0), 0.95)
    >>> tau, 0.3 < low < 0.6, high
    (1.0, True, 1.0)
    """
    n = len(first)
    if n < _FEWEST or len(set(first.tolist())) < 2 or len(set(second.tolist())) < 2:
        return math.nan, math.nan, math.nan
    tau = float(_tau_b(first, second))
    if n >= _MANY:
        return tau, *_fisher(tau, n, level)
    tail = (1 - level) / 2
    low = _end(lambda ts: float((ts >= tau - _SAME).mean()), n, tail, tau, -1.0)
    high = _end(lambda ts: float((ts <= tau + _SAME).mean()), n, tail, tau, 1.0)
    return tau, min(low, tau), max(high, tau)


def _tau_b(first: FloatArray, second: FloatArray) -> float:
    one = np.sign(first[:, None] - first[None, :])
    other = np.sign(second[:, None] - second[None, :])
    return float((one * other).sum() / math.sqrt((one != 0).sum() * (other != 0).sum()))


def _fisher(tau: float, n: int, level: float) -> tuple[float, float]:
    from scipy.special import ndtri

    reach = float(ndtri((1 + level) / 2)) * math.sqrt(0.437 / (n - 4))
    middle = math.atanh(min(max(tau, -1 + 1e-12), 1 - 1e-12))
    return math.tanh(middle - reach), math.tanh(middle + reach)


@lru_cache(maxsize=4)
def _drawn(n: int) -> tuple[FloatArray, FloatArray]:
    """Standard normal numbers, float64[draws, n] each, the same for every correlation."""
    rng = np.random.default_rng(7)
    return rng.standard_normal((_DRAWS, n)), rng.standard_normal((_DRAWS, n))


def _simulated(tau: float, n: int) -> FloatArray:
    """Taus of n pairs of a normal copula with this tau."""
    first, noise = _drawn(n)
    rho = math.sin(math.pi * tau / 2)
    second = rho * first + math.sqrt(max(0.0, 1 - rho * rho)) * noise
    total = np.zeros(_DRAWS)
    for place in range(1, n):
        one = np.sign(first[:, place:] - first[:, place - 1 : place])
        total += (one * np.sign(second[:, place:] - second[:, place - 1 : place])).sum(axis=1)
    result: FloatArray = total / (n * (n - 1) / 2)
    return result


def _end(rarity: Callable[[FloatArray], float], n: int, tail: float, inside: float, outside: float) -> float:
    """The tau at which what was seen becomes as rare as the tail, between the one seen and an end of the range."""
    if rarity(_simulated(outside, n)) > tail:
        return outside
    return end_of(lambda tau: rarity(_simulated(tau, n)) > tail, inside, outside, _HALVINGS)[1]
