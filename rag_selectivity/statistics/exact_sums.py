"""Exact sums of floats, which are therefore the same in any order and on any number of machines."""

from __future__ import annotations

import math

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

#: A value is split into whole numbers of 24 bits, from 2^40 downwards: their products with counts, and the sums of a
#: million of those, are whole numbers below 2^53, which floats hold exactly, so that BLAS may do the work.
_BITS, _TOP, LIMBS = 24, 40, 8
_BOTTOM = _TOP - _BITS * LIMBS
#: A sum has as many limbs beside so many cells, which stay in the processor's cache.
_CELLS = 1 << 15


class ExactSums:
    """Sums in limbs of whole numbers: int64[limbs, ...].

    Digits of a value below 2^-152 are cut off before it is added, so the order does not matter. Values must be smaller
    than 2^40 = 1.1e12.
    """

    __slots__ = ("limbs",)

    def __init__(self, limbs: IntArray) -> None:
        self.limbs = limbs

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> ExactSums:
        """Sums of nothing: 0."""
        return cls(np.zeros((LIMBS, *shape), np.int64))

    @classmethod
    def of(cls, rows: FloatArray) -> ExactSums:
        """The sums of float64[rows, ...] over the first axis."""
        result = cls.zeros(rows.shape[1:])
        at_once = max(1, _CELLS // max(1, rows[:1].size))
        for start in range(0, len(rows), at_once):
            for limb, part in _split(rows[start : start + at_once]):
                result.limbs[limb] += part.sum(axis=0).astype(np.int64)
        return result

    def add(self, other: ExactSums) -> None:
        """Add other sums of the same shape."""
        if self.limbs.shape != other.limbs.shape:
            raise InputError(f"sums of different shapes: {self.limbs.shape[1:]} and {other.limbs.shape[1:]}")
        self.limbs = self.limbs + other.limbs

    def rounded(self) -> FloatArray:
        """Each sum as the nearest float."""
        flat = self.limbs.reshape(LIMBS, -1)
        values = np.empty(flat.shape[1])
        for i, cell in enumerate(flat.T.tolist()):
            total = 0
            for limb in cell:
                total = (total << _BITS) + limb
            values[i] = math.ldexp(float(total), _BOTTOM)
        return values.reshape(self.limbs.shape[1:])


def _split(rows: FloatArray) -> list[tuple[int, FloatArray]]:
    """The limbs from the first to the last that is not 0, with their numbers: whole numbers as floats."""
    largest = float(np.abs(rows).max(initial=0.0))
    if not largest < 2.0**_TOP:
        raise InputError("a figure is not a finite number below 1.1e12 and cannot be summed exactly")
    limbs: list[tuple[int, FloatArray]] = []
    if not largest:
        return limbs
    first = min(LIMBS - 1, max(0, (_TOP - math.frexp(largest)[1]) // _BITS))
    # Products with powers of 2 are exact.
    rest = rows * 2.0 ** -(_TOP - _BITS * (first + 1))
    for limb in range(first, LIMBS):
        whole = np.trunc(rest)
        limbs.append((limb, whole))
        rest -= whole
        if not rest.any():
            break
        rest *= 2.0**_BITS
    return limbs
