"""Worlds whose truth is known, by what is asked of them; `benchmarks/simulations.py` runs them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
#: Shares of samples with a promise: intervals that hold the truth, and errors where nothing is to be shown.
HOLDS, ERRS = "holds", "errs"
LEAST_HELD, MOST_ERRORS = 0.93, 0.06
BROKEN = "†"


@dataclass(frozen=True)
class Line:
    """A row of a table: a cell, and figures of its samples, most of them shares."""

    cell: str
    figures: dict[str, float]

    def broken(self, samples: int) -> list[str]:
        """The figures that break their promise by more than two standard errors of so many samples."""
        return [
            name
            for name, value in self.figures.items()
            if (name.startswith(HOLDS) and LEAST_HELD - value > 2 * _error(LEAST_HELD, samples))
            or (name.startswith(ERRS) and value - MOST_ERRORS > 2 * _error(MOST_ERRORS, samples))
        ]

    def text(self, samples: int) -> str:
        """As a row of Markdown: its figures, with a mark where a promise is broken, and whether all are kept."""
        broken = self.broken(samples)
        promised = any(name.startswith((HOLDS, ERRS)) for name in self.figures)
        cells = [
            "–" if math.isnan(value) else f"{value:.3f}{BROKEN if name in broken else ''}"
            for name, value in self.figures.items()
        ]
        return f"| {' | '.join([self.cell, *cells, 'no' if broken else 'yes' if promised else '–'])} |"


def tested(rejected: float, *, equal: bool) -> dict[str, float]:
    """The share of samples with p ≤ .05: errors where nothing differs."""
    return {f"{ERRS}: p ≤ .05": rejected if equal else math.nan, "finds": math.nan if equal else rejected}


def inside(low: ArrayLike, truth: ArrayLike, high: ArrayLike) -> float:
    """The share of the intervals, among those that there are, that hold the truth."""
    ends, room = (np.asarray(low, float), np.asarray(high, float)), 1e-12
    held = (ends[0] - room <= truth) & (truth <= ends[1] + room)
    return float(held[~np.isnan(ends[0])].mean())


def _error(share: float, samples: int) -> float:
    return math.sqrt(share * (1 - share) / samples)
