"""Columns of counts that a user gave."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rag_selectivity.errors import InputError
from rag_selectivity.tables.ids import IntArray


def count_column(values: ArrayLike, name: str) -> IntArray:
    """Whole numbers ≥ 0, as int64; otherwise an InputError that names the first that is none."""
    array = np.atleast_1d(np.asarray(values))
    try:
        whole = array.astype(np.int64)
        bad = np.flatnonzero((array.astype(np.float64) != whole) | (whole < 0))
    except (TypeError, ValueError):
        raise InputError(f"counts: {name} contains a value that is not a number") from None
    if len(bad):
        raise InputError(f"counts: {name} of query number {bad[0] + 1} is {array[bad[0]]}; give a whole number ≥ 0")
    return whole
