"""Intervals from Dirichlet weights over the drawn units and one unit that was not seen, at the end of the range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_selectivity.measures.base import FloatArray

_CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class WeightedSums:
    """Column sums under random weights of the units.

    The weights of a draw, divided by their sum, are Dirichlet(1, …, 1) over all units and the unseen one. They
    stay undivided, since what is made of the sums are ratios.

    Attributes
    ----------
    sums : float64[draws, columns]
        Of the seen units.
    unseen : float64[draws]
        Weight of the unseen unit.
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
        """Interval of the ratio of two columns' means, whose terms lie between `lowest` and `highest`.

        Parameters
        ----------
        total, count : int
            The columns: a unit's sum of values, and how many they are.
        size : float
            Values of the unseen unit. All of them lie at an end of the range.
        lowest, highest : float
        tail : float
            Probability outside on either side.

        Notes
        -----
        With as many values in every unit this is Gaffke's bound, which for values of 0 and 1 is Clopper and
        Pearson's (Gaffke 2005; Learned-Miller and Thomas 2019, arXiv 1905.06208).
        """
        unseen = self.unseen * size
        counts = self.sums[:, count] + unseen
        low = np.quantile((self.sums[:, total] + unseen * lowest) / counts, tail)
        high = np.quantile((self.sums[:, total] + unseen * highest) / counts, 1 - tail)
        return float(max(low, lowest)), float(min(high, highest))
