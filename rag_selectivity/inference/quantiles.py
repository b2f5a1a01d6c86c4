"""Quantiles of figures that may be infinite, such as BoR_max if no draw can succeed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_selectivity.measures.base import FloatArray


def quantiles(values: FloatArray, shares: Sequence[float]) -> FloatArray:
    """`numpy.quantile` along the last axis; a quantile between a finite and an infinite figure is infinite.

    >>> quantiles(np.array([1.0, 2.0, np.inf, np.inf]), [0.0, 0.5, 1.0]).tolist()
    [1.0, inf, inf]
    """
    if np.isfinite(values).all():
        return np.quantile(values, shares, axis=-1)
    with np.errstate(invalid="ignore"):
        result = np.quantile(values, shares, axis=-1)
    below = np.quantile(values, shares, axis=-1, method="lower")
    above = np.quantile(values, shares, axis=-1, method="higher")
    infinite = np.where(np.isinf(above), above, below)
    return np.where(np.isnan(result), np.where(below == above, below, infinite), result)
