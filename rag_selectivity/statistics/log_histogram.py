"""Quantiles of a stream of positive numbers, in memory that does not grow."""

from __future__ import annotations

import math

#: Bins are so narrow that a bin's middle is within 1 % of every number in it.
_ERROR = 0.01
_RATIO = (1 + _ERROR) / (1 - _ERROR)
_BINS_PER_E = 1 / math.log(_RATIO)
_MIDDLE = 2 / (1 + _RATIO)
#: Numbers outside this range count as its ends, which bounds the bins to 2,300.
_LOWEST, _HIGHEST = 1e-8, 1e12


class LogHistogram:
    """Counts numbers in bins of equal ratio, which gives each quantile with a relative error of at most 1 %.

    The bins are those of DDSketch (Masson, Rim and Lee 2019, VLDB). Numbers up to 1e-8, 0 included, count as 0.

    Examples
    --------
    >>> histogram = LogHistogram()
    >>> for milliseconds in range(1, 1001):
    ...     histogram.add(milliseconds)
    >>> 495 <= histogram.quantile(0.5) <= 505, 940.5 <= histogram.quantile(0.95) <= 959.5
    (True, True)
    """

    __slots__ = ("_counts", "_total")

    def __init__(self) -> None:
        self._counts: dict[int | None, int] = {}
        self._total = 0

    def add(self, value: float) -> None:
        """Count a finite number ≥ 0."""
        place = math.ceil(math.log(min(value, _HIGHEST)) * _BINS_PER_E) if value > _LOWEST else None
        self._counts[place] = self._counts.get(place, 0) + 1
        self._total += 1

    def quantile(self, share: float) -> float:
        """The smallest number that at least this share of all numbers does not exceed; NaN without numbers."""
        if not self._total:
            return math.nan
        left = max(1, math.ceil(share * self._total)) - self._counts.get(None, 0)
        if left <= 0:
            return 0.0
        for place in sorted(place for place in self._counts if place is not None):
            left -= self._counts[place]
            if left <= 0:
                return math.exp(place / _BINS_PER_E) * _MIDDLE
        return math.nan
