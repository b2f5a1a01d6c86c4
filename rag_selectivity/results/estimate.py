"""Estimate: a figure over queries with its interval, its counts and its caveats."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Caveat:
    """A reason not to take a figure at face value: a code for programs and a sentence for people."""

    code: str
    text: str

    def to_dict(self) -> dict[str, str]:
        """As plain data, ready for JSON."""
        return {"code": self.code, "text": self.text}


@dataclass(frozen=True, slots=True)
class Estimate:
    """The figure of one measure at one depth, over the queries of one run.

    Attributes
    ----------
    value, low, high : float
        The figure and the ends of its interval; NaN if undefined, −inf for BoR without a success.
    n, n_total : int
        The number of queries with a figure, and the number of all queries.
    reason : str or None
        Why the value is not a finite number, or has no interval.
    possible : (low, high) or None
        The possible range of the figure, if lists are judged in part.
    caveats : tuple of Caveat
        Reasons not to take the figure at face value.
    """

    value: float
    low: float
    high: float
    n: int
    n_total: int
    reason: str | None = None
    possible: tuple[float, float] | None = None
    caveats: tuple[Caveat, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; a number that is not finite is None, and the reason is given."""
        result: dict[str, Any] = {
            "value": finite(self.value),
            "low": finite(self.low),
            "high": finite(self.high),
            "n": self.n,
            "n_total": self.n_total,
        }
        if self.reason is not None:
            result["reason"] = self.reason
        elif math.isinf(self.low) or math.isinf(self.high):
            result["reason"] = "some resamples have no success, so an end of the interval is infinite"
        elif math.isnan(self.low):
            result["reason"] = "no interval was computed"
        if self.possible is not None:
            result["possible"] = list(self.possible)
        if self.caveats:
            result["caveats"] = [caveat.to_dict() for caveat in self.caveats]
        return result


def finite(value: float) -> float | None:
    """The value, or None if it is not finite (JSON has no such numbers)."""
    return float(value) if np.isfinite(value) else None
