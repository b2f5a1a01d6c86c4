"""An estimate: a figure with its interval, its counts and what speaks against it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Caveat:
    """What speaks against taking a figure at face value: a code for programs, a sentence for people."""

    code: str
    text: str

    def to_dict(self) -> dict[str, str]:
        """As JSON has it."""
        return {"code": self.code, "text": self.text}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measure at one depth, over the queries of one run.

    Attributes
    ----------
    value, low, high : float
        The figure and the ends of its interval; NaN where undefined, −inf for BoR without a success.
    n, n_total : int
        Queries that the figure rests on, and queries in all.
    reason : str or None
        Why the value is not a finite number, or has no interval.
    possible : (low, high) or None
        Where lists are judged in part: between which the figure lies, whatever the unjudged passages are.
    caveats : tuple of Caveat
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
        """As JSON has it: what is not finite is null, with the reason."""
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
            result["reason"] = "some resamples hold no success: −inf bits"
        elif math.isnan(self.low):
            result["reason"] = "no interval was computed"
        if self.possible is not None:
            result["possible"] = list(self.possible)
        if self.caveats:
            result["caveats"] = [caveat.to_dict() for caveat in self.caveats]
        return result


def finite(value: float) -> float | None:
    """The value, or None where JSON has no word for it."""
    return float(value) if np.isfinite(value) else None
