"""Choose one of several columns of figures by its rank correlation with scores, and judge that choice out of fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_selectivity.inference.correlation import mid_ranks
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

#: Correlations that differ by less are equal but for rounding.
_SAME = 1e-12


def rank_correlations(values: FloatArray, scores: FloatArray) -> FloatArray:
    """Spearman's rho of each column with the scores: float64[columns]; NaN if either is constant.

    >>> rank_correlations(np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]]), np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, -1.0]
    """
    left, right = np.apply_along_axis(mid_ranks, 0, values), mid_ranks(scores)
    left, right = left - left.mean(axis=0), right - right.mean()
    scale = np.sqrt((left**2).sum(axis=0) * (right**2).sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scale > 0, right @ left / scale, np.nan)


def best_column(correlations: FloatArray) -> int | None:
    """The place of the highest correlation, the middle one of a tie; None if all are NaN."""
    if np.isnan(correlations).all():
        return None
    ties = np.flatnonzero(correlations >= np.nanmax(correlations) - _SAME)
    return int(ties[len(ties) // 2])


def mean_correlations(parts: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """The mean over parts (values, scores) of the correlations of each column, over the parts where it is defined."""
    found = np.stack([rank_correlations(values, scores) for values, scores in parts if len(scores)])
    known = ~np.isnan(found)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known.any(axis=0), np.nansum(found, axis=0) / known.sum(axis=0), np.nan)


def folds_of(units: IntArray, folds: int, seed: int) -> list[IntArray]:
    """The units in random folds, each as an array; fewer folds than given if a fold would hold fewer than two units."""
    known = np.unique(units)
    count = min(folds, len(known) // 2)
    if count < 2:
        return []
    return list(np.array_split(np.random.default_rng(seed).permutation(known), count))


def out_of_fold(
    parts: Sequence[tuple[FloatArray, FloatArray, IntArray]], folds: Sequence[IntArray]
) -> list[FloatArray] | None:
    """Figures whose column was chosen on the other folds: for each part the mid-ranks in the chosen column.

    Ranks, not values: the values of different columns are not on the same scale.

    Parameters
    ----------
    parts : sequence of (float64[rows, columns], float64[rows], int64[rows])
        Values, scores and the unit of each row, for each run.
    folds : sequence of int64[units of a fold]

    Returns
    -------
    list of float64[rows], or None
        None if there are fewer than two folds, or nothing can be chosen in one of them.
    """
    if len(folds) < 2:
        return None
    predicted = [np.full(len(scores), np.nan) for _, scores, _ in parts]
    for fold in folds:
        held = [np.isin(units, fold) for _, _, units in parts]
        rest = [(values[~mask], scores[~mask]) for (values, scores, _), mask in zip(parts, held, strict=True)]
        best = best_column(mean_correlations(rest)) if any(len(scores) for _, scores in rest) else None
        if best is None:
            return None
        for (values, _, _), mask, ranks in zip(parts, held, predicted, strict=True):
            ranks[mask] = mid_ranks(values[:, best])[mask]
    return predicted
