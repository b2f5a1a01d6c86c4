"""Intervals from Dirichlet weights over the drawn units and one unseen unit at the end of the range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_selectivity.measures.base import FloatArray

_CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class WeightedSums:
    """Column sums under random weights of the units.

    The weights of a draw, divided by their sum, are Dirichlet(1, …, 1) over all units and the unseen one. The division
    is left out, since only ratios of the sums are used.

    Attributes
    ----------
    sums : float64[draws, columns]
        The weighted sums over the drawn units.
    unseen : float64[draws]
        The weight of the unseen unit.
    """

    sums: FloatArray
    unseen: FloatArray

    @classmethod
    def of(cls, columns: FloatArray, *, draws: int, seed: int) -> WeightedSums:
        """Draw the weights; `columns` is float64[units, columns]."""
        units, width = columns.shape
        rng = np.random.default_rng(seed)
        unseen = rng.exponential(size=draws)
        sums = np.empty((draws, width))
        step = max(1, _CELLS_AT_ONCE // max(1, units))
        for start in range(0, draws, step):
            stop = min(start + step, draws)
            sums[start:stop] = rng.exponential(size=(stop - start, units)) @ columns
        return cls(sums, unseen)

    def mean_bounds(
        self, total: int, count: int, size: float, lowest: float, highest: float, tail: float
    ) -> tuple[float, float]:
        """Interval of the ratio of two columns' means, where every value is between `lowest` and `highest`.

        Parameters
        ----------
        total, count : int
            The numbers of two columns: the sum of a unit's values, and the number of its values.
        size : float
            The number of values of the unseen unit. All of them are at an end of the range.
        lowest, highest : float
        tail : float
            The probability outside the interval on either side.

        Notes
        -----
        If every unit has the same number of values this is Gaffke's bound, which for values 0 and 1 is Clopper and
        Pearson's (Gaffke 2005; Learned-Miller and Thomas 2019, arXiv 1905.06208).
        """
        unseen = self.unseen * size
        counts = self.sums[:, count] + unseen
        low = np.quantile((self.sums[:, total] + unseen * lowest) / counts, tail)
        high = np.quantile((self.sums[:, total] + unseen * highest) / counts, 1 - tail)
        return float(max(low, lowest)), float(min(high, highest))
