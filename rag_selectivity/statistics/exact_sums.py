"""Exact sums of floats, which are therefore the same in any order and on any number of machines."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IntArray
from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import FloatArray

#: A value is split into whole numbers of 24 bits, from 2^40 downwards: their products with counts, and the sums of a
#: million of those, are whole numbers below 2^53, which floats hold exactly, so that BLAS may do the work.
_BITS, _TOP, LIMBS = 24, 40, 8
_BOTTOM = _TOP - _BITS * LIMBS
#: The weighted sums of so many cells are made at a time.
_CELLS = 1 << 20
#: A plain sum has as many limbs beside so many cells, which stay in the processor's cache.
_CELLS_OF_A_PLAIN_SUM = 1 << 15
_COLUMNS = 256
#: A column of more different values is summed limb by limb.
_FEW_VALUES = 16


class Samples(Protocol):
    """How often each row is in each sample: an array [samples, rows], or what makes some samples of one on demand."""

    def __len__(self) -> int: ...

    def __getitem__(self, samples: slice, /) -> NDArray[Any]: ...


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
        at_once = max(1, _CELLS_OF_A_PLAIN_SUM // max(1, rows[:1].size))
        for start in range(0, len(rows), at_once):
            for limb, part in _split(rows[start : start + at_once]):
                result.limbs[limb] += part.sum(axis=0).astype(np.int64)
        return result

    @classmethod
    def weighted(cls, counts: Samples, rows: FloatArray) -> ExactSums:
        """Sums with whole-number weights: counts[samples, rows] times float64[rows, columns].

        The counts are taken a few samples at a time, so that an object that makes them on demand need not hold them.
        """
        result = cls.zeros((len(counts), rows.shape[1]))
        at_once = max(1, _CELLS // max(1, len(rows)))
        width = min(_COLUMNS, at_once)
        for first in range(0, rows.shape[1], width):
            of_columns = slice(first, first + width)
            columns, shares = _whole_columns(rows[:, of_columns])
            for start in range(0, len(counts), at_once):
                drawn = counts[start : start + at_once].astype(np.float64)
                sums = drawn @ columns
                for limb, share in shares.items():
                    result.limbs[limb, start : start + len(drawn), of_columns] = sums @ share
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

    def nearly(self) -> FloatArray:
        """Each sum with a relative error of about 1e-15, quickly; equal sums give equal digits."""
        result = np.zeros(self.limbs.shape[1:])
        for limb in range(LIMBS - 1, -1, -1):
            result += np.ldexp(self.limbs[limb].astype(np.float64), _TOP - _BITS * (limb + 1))
        return result


def _whole_columns(rows: FloatArray) -> tuple[FloatArray, dict[int, FloatArray]]:
    """Columns of whole numbers, float64[rows, n], and for each limb its shares in them: float64[n, columns].

    A column of few different values is made of columns of zeros and ones, one for each value. Columns that tell the
    same queries apart share them, such as the random baseline at every depth.
    """
    places: dict[bytes, int] = {}
    columns: list[FloatArray] = []
    entries: dict[int, list[tuple[int, int, float]]] = {}

    def place_of(column: FloatArray) -> int:
        key = column.tobytes()
        if key not in places:
            places[key] = len(columns)
            columns.append(column)
        return places[key]

    for number, column in enumerate(rows.T):
        values, group = np.unique(column, return_inverse=True)
        if len(values) > _FEW_VALUES:
            for limb, whole in _split(np.ascontiguousarray(column)):
                if whole.any():
                    entries.setdefault(limb, []).append((place_of(whole), number, 1.0))
            continue
        for limb, whole in _split(values):
            for i in np.flatnonzero(whole).tolist():
                place = place_of((group == i).astype(np.float64))
                entries.setdefault(limb, []).append((place, number, float(whole[i])))
    shares = {}
    for limb, found in entries.items():
        shares[limb] = np.zeros((len(columns), rows.shape[1]))
        for place, number, share in found:
            shares[limb][place, number] = share
    return np.stack(columns, axis=1) if columns else np.empty((len(rows), 0)), shares


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
