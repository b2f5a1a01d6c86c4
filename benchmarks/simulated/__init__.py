"""Worlds whose truth is known, by what is asked of them; `benchmarks/simulations.py` runs them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """A row of a table: a cell, and figures of its samples, most of them shares."""

    cell: str
    figures: dict[str, float]

    def __str__(self) -> str:
        return f"| {self.cell} | " + " | ".join(f"{value:.3f}" for value in self.figures.values()) + " |"


def inside(low: ArrayLike, truth: ArrayLike, high: ArrayLike) -> float:
    """The share of the intervals, among those that there are, that hold the truth."""
    ends, room = (np.asarray(low, float), np.asarray(high, float)), 1e-12
    held = (ends[0] - room <= truth) & (truth <= ends[1] + room)
    return float(held[~np.isnan(ends[0])].mean())
