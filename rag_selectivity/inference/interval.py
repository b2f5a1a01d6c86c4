"""An estimate with the ends of its interval, and with the p-value of a test from the same distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_HALVINGS = 24


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the ends of its interval; `reason` says why there is no interval, if there is none."""

    value: float
    low: float
    high: float
    reason: str = ""

    @classmethod
    def undefined(cls, reason: str) -> Interval:
        """None, and why."""
        return cls(math.nan, math.nan, math.nan, reason)

    def within(self, distance: float) -> bool:
        """Whether the whole interval is within ±`distance`; False without an interval.

        >>> Interval(0.0, -0.1, 0.1).within(0.1), Interval(0.0, -0.2, 0.1).within(0.1), Interval.undefined("").within(1)
        (True, False, False)
        """
        return -distance <= self.low and self.high <= distance

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; a number that is not finite is None."""
        numbers = {name: x if np.isfinite(x := getattr(self, name)) else None for name in ("value", "low", "high")}
        return {**numbers, "reason": self.reason} if self.reason else numbers


@dataclass(frozen=True, slots=True)
class Tested:
    """An estimate with the p-value of no difference and its interval, from one distribution.

    Attributes
    ----------
    value, p, low, high : float
        `p` is at most 1 − level if and only if no difference is outside `low` and `high`.
    """

    value: float
    p: float
    low: float
    high: float


def settled(value: float, p: float, low: float, high: float, level: float, null: float = 0.0) -> tuple[float, float]:
    """The interval, extended or cut so that it contains no difference if and only if the test does not reject it."""
    if math.isnan(low) or math.isnan(high):
        return math.nan, math.nan
    if p > 1 - level:
        low, high = min(low, null), max(high, null)
    elif value > null:
        low = max(low, math.nextafter(null, math.inf))
    else:
        high = min(high, math.nextafter(null, -math.inf))
    return min(low, value), max(high, value)


def difference_ends(one: Interval, other: Interval) -> tuple[float, float]:
    """The ends of one minus the other, independent of it, from the intervals of both (MOVER).

    Zou and Donner 2008, Construction of confidence limits about effect measures.

    >>> [round(end, 4) for end in difference_ends(Interval(0.5, 0.2, 0.9), Interval(0.25, 0.0, 0.55))]
    [-0.1743, 0.7217]
    """
    value = one.value - other.value
    below = math.hypot(one.value - one.low, other.high - other.value)
    return value - below, value + math.hypot(one.high - one.value, other.value - other.low)


def p_of(interval: Callable[[float], tuple[float, float]]) -> float:
    """1 − the highest level at which the interval excludes 0."""

    def excludes(level: float) -> bool:
        low, high = interval(level)
        return not low <= 0 <= high

    lowest = 1e-3
    return 1 - end_of(excludes, lowest, 1.0, _HALVINGS)[0] if excludes(lowest) else 1.0


def end_of(holds: Callable[[float], bool], inside: float, outside: float, halvings: int = 60) -> tuple[float, float]:
    """Where a condition ends between a number for which it holds and one for which it does not.

    Returns
    -------
    inside, outside : float
        Two neighbouring numbers: it holds at the first and not at the second.

    >>> tuple(round(x, 9) for x in end_of(lambda x: x * x < 2, 0.0, 2.0))
    (1.414213562, 1.414213562)
    """
    for _ in range(halvings):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside, outside
