"""Quantiles of a stream of positive numbers, in memory that does not grow."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

#: Bins are so narrow that a bin's middle is within 1 % of every number in it.
_ERROR = 0.01
_RATIO = (1 + _ERROR) / (1 - _ERROR)
_BINS_PER_E = 1 / math.log(_RATIO)
_MIDDLE = 2 / (1 + _RATIO)
#: Numbers outside this range count as its ends, which bounds the bins to 2,300.
_LOWEST, _HIGHEST = 1e-8, 1e12
#: The bin of what counts as 0.
_ZERO = -(1 << 30)
#: Numbers are counted together, which takes a tenth of the time.
_AT_ONCE = 512


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

    __slots__ = ("_counts", "_sum", "_total", "_waiting")

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._total, self._sum = 0, 0.0
        self._waiting: list[float] = []

    def add(self, value: float | None) -> None:
        """Count a number; one that is not known, not finite or below 0 is left out."""
        if value is not None and 0 <= value < math.inf:
            self._sum += value
            self._waiting.append(value)
            if len(self._waiting) >= _AT_ONCE:
                self._count()

    @property
    def mean(self) -> float:
        """The exact mean; NaN without numbers."""
        self._count()
        return self._sum / self._total if self._total else math.nan

    def _count(self) -> None:
        values = np.minimum(np.array(self._waiting, np.float64), _HIGHEST)
        self._waiting = []
        above = values[values > _LOWEST]
        places, counts = np.unique(np.ceil(np.log(above) * _BINS_PER_E).astype(np.int64), return_counts=True)
        self._counts.update(dict(zip(places.tolist(), counts.tolist(), strict=True)))
        self._counts[_ZERO] += len(values) - len(above)
        self._total += len(values)

    def quantile(self, share: float) -> float:
        """The smallest number that at least this share of all numbers does not exceed; NaN without numbers."""
        self._count()
        left = max(1, math.ceil(share * self._total))
        for place in sorted(self._counts):
            left -= self._counts[place]
            if left <= 0:
                return 0.0 if place == _ZERO else math.exp(place / _BINS_PER_E) * _MIDDLE
        return math.nan
