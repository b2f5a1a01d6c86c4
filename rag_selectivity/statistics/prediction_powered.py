"""Means from few human grades and many of a judge: prediction-powered inference with a tuned weight (PPI++)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.statistics.dirichlet import WeightedSums

#: From this many labelled units on, the intervals keep their level in simulation (benchmarks/agreement_simulation.py).
MIN_UNITS = 10


@dataclass(frozen=True, slots=True)
class PredictionPowered:
    """The mean over everything that the judge graded, corrected by human values.

    Attributes
    ----------
    value, low, high : float
        The corrected mean and its interval, inside the range of the values.
    weight : float
        The weight of the judge's values, from 0 to 1; 0 means that they are not used.
    human_only, human_low, human_high : float
        The mean of the human values alone, with its interval.
    judge_only : float
        The mean of all the judge's values, uncorrected.
    n_human, n_judge : int
        The number of values with a human value, and of values with the judge's value only.
    units : int
        The number of drawn units with human values.
    """

    value: float
    low: float
    high: float
    weight: float
    human_only: float
    human_low: float
    human_high: float
    judge_only: float
    n_human: int
    n_judge: int
    units: int

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def prediction_powered_mean(
    human: ArrayLike,
    judge: ArrayLike,
    units: Sequence[Any] | None = None,
    *,
    bounds: tuple[float, float],
    inclusion: ArrayLike | None = None,
    level: float = 0.95,
    draws: int = 5000,
    seed: int = 7,
) -> PredictionPowered:
    """The mean of human values over all pairs: λ·mean(judge) over all + mean(human − λ·judge) over the labelled.

    λ is chosen for the smallest variance, so that a judge unrelated to the human values does not widen the interval.
    This is PPI++ for a finite set that the judge has graded completely.

    Parameters
    ----------
    human : float64[values]
        NaN without a human value.
    judge : float64[values]
    units : sequence, optional
        The drawn unit of each value: its query, if whole queries were drawn. Default: every value is a unit.
    bounds : (float, float)
        The lowest and the highest possible value, for both sides.
    inclusion : float64[values], optional
        The probability with which a human was asked for each value; only those with a human value are used. Default:
        all equal.
    level : float
    draws, seed : int
        The number and the seed of the Dirichlet weights.

    Returns
    -------
    PredictionPowered

    Raises
    ------
    InputError
        If fewer than 10 units have human values, or a value is out of bounds or missing.

    Notes
    -----
    The mean is over the given values. The interval covers the error from drawing a part of them for humans; it does not
    cover other queries. It comes from Dirichlet weights over the units and one unseen unit at the end of the range of
    human − λ·judge (Gaffke's bound). If it would be wider than the interval of the human values alone, λ is 0.

    References
    ----------
    Angelopoulos et al. 2023, Prediction-powered inference; Angelopoulos, Duchi, Zrnic 2023, PPI++ (arXiv 2311.01453);
    Gaffke 2005.
    """
    graded, predicted = np.asarray(human, np.float64), np.asarray(judge, np.float64)
    _check(graded, predicted, units, bounds, level)
    both = ~np.isnan(graded)
    weights = np.ones(len(graded)) if inclusion is None else _inverted(np.asarray(inclusion, np.float64), both)
    group = np.arange(len(graded)) if units is None else _numbers(units)
    columns = _by_unit(group[both], [weights[both] * graded[both], weights[both] * predicted[both], weights[both]])
    if len(columns) < MIN_UNITS:
        raise InputError(f"a correction needs at least {MIN_UNITS} drawn units with human labels, got {len(columns)}")
    sums = WeightedSums.of(columns, draws=draws, seed=seed)
    everywhere, tail = float(predicted.mean()), (1 - level) / 2
    alone = _mean_at(0.0, columns, sums, everywhere, bounds, tail)
    tuned = _tuned(columns)
    chosen = _mean_at(tuned, columns, sums, everywhere, bounds, tail)
    if chosen[2] - chosen[1] >= alone[2] - alone[1]:
        # If the judge does not make the interval narrower, its values are not used.
        tuned, chosen = 0.0, alone
    return PredictionPowered(
        *chosen,
        tuned,
        *alone,
        judge_only=everywhere,
        n_human=int(both.sum()),
        n_judge=int((~both).sum()),
        units=len(columns),
    )


def _check(
    graded: FloatArray, predicted: FloatArray, units: Sequence[Any] | None, bounds: tuple[float, float], level: float
) -> None:
    if graded.shape != predicted.shape or graded.ndim != 1:
        raise InputError(
            f"give one human and one judge value for each row, got the shapes {graded.shape} and {predicted.shape}"
        )
    if units is not None and len(units) != len(graded):
        raise InputError(f"there are {len(units)} units for {len(graded)} values: give one for each value")
    if np.isnan(predicted).any():
        raise InputError(f"the judge's value is missing in row {int(np.isnan(predicted).argmax())}")
    if not 0 < level < 1:
        raise InputError(f"`level` must be in the open interval (0, 1), got {level!r}")
    lowest, highest = bounds
    for values in (graded, predicted):
        off = (values < lowest) | (values > highest)
        if off.any():
            raise InputError(f"row {int(off.argmax())}: {values[off.argmax()]} is not between {lowest} and {highest}")


def _inverted(inclusion: FloatArray, both: Any) -> FloatArray:
    off = both & ~((inclusion > 0) & (inclusion <= 1))
    if off.any():
        raise InputError(
            f"row {int(off.argmax())}: an inclusion probability must be in (0, 1], got {inclusion[off][0]}"
        )
    result: FloatArray = 1 / np.where(both, inclusion, 1.0)
    return result


def _numbers(units: Sequence[Any]) -> Any:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(unit, len(known)) for unit in units], np.int64)


def _by_unit(group: Any, columns: Sequence[FloatArray]) -> FloatArray:
    """Column sums of each unit that has human values: float64[units, columns]."""
    _, place = np.unique(group, return_inverse=True)
    return np.stack([np.bincount(place, column) for column in columns], axis=1)


def _tuned(columns: FloatArray) -> float:
    """λ of the smallest variance: the slope of the units' human sums on the judge's, cut to the range 0 to 1."""
    human, judge, count = columns.T
    human = human - count * human.sum() / count.sum()
    judge = judge - count * judge.sum() / count.sum()
    spread = float(judge @ judge)
    # Because of rounding, a constant judge has a variance of about 1e-32.
    return float(np.clip(human @ judge / spread, 0, 1)) if spread > 1e-12 * float(count @ count) else 0.0


def _mean_at(
    weight: float, columns: FloatArray, sums: WeightedSums, everywhere: float, bounds: tuple[float, float], tail: float
) -> tuple[float, float, float]:
    """(value, low, high) at a λ."""
    residual = np.array([[1.0, 0.0], [-weight, 0.0], [0.0, 1.0]])
    total, count = (columns @ residual).sum(axis=0)
    lowest, highest = bounds
    low, high = WeightedSums(sums.sums @ residual, sums.unseen).mean_bounds(
        0, 1, count / len(columns), lowest - weight * highest, highest - weight * lowest, tail
    )
    value, low, high = np.clip(np.array([total / count, low, high]) + weight * everywhere, lowest, highest).tolist()
    return value, low, high
