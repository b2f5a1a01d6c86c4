"""An estimate with the ends of its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the ends of its interval; `reason` says why there is no interval, if there is none."""

    value: float
    low: float
    high: float
    reason: str = ""

    def within(self, distance: float) -> bool:
        """Whether the whole interval is within ±`distance`; False without an interval."""
        return -distance <= self.low and self.high <= distance

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; a number that is not finite is None."""
        ends = (("value", self.value), ("low", self.low), ("high", self.high))
        numbers = {name: (value if np.isfinite(value) else None) for name, value in ends}
        return {**numbers, "reason": self.reason} if self.reason else numbers
