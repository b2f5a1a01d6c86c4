"""Means from a few human labels and many of a judge's: prediction-powered inference with a tuned weight (PPI++)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rag_selectivity.errors import InputError
from rag_selectivity.ids import IntArray
from rag_selectivity.measures.base import FloatArray


@dataclass(frozen=True, slots=True)
class PredictionPowered:
    """A mean as humans would have it, from few human values and many of a judge's.

    Attributes
    ----------
    value, low, high : float
        The corrected mean and its interval.
    weight : float
        How much the judge's values count, 0 to 1: 0 where they tell nothing.
    human_only, human_low, human_high : float
        What the human values alone say.
    judge_only : float
        The mean of the judge's values, with whatever bias it has.
    n_human, n_judge : int
        Values with a human's, and values with the judge's alone.
    clusters : int
        Queries among the human values.
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
    clusters: int

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            name: (value if isinstance(value, int) or np.isfinite(value) else None)
            for name, value in ((name, getattr(self, name)) for name in self.__slots__)
        }


def prediction_powered_mean(
    human: ArrayLike, judge: ArrayLike, clusters: Sequence[Any] | None = None, *, level: float = 0.95
) -> PredictionPowered:
    """The mean of what humans would say: mean(human − λ·judge) where both are known + λ·mean(judge) elsewhere.

    λ is tuned to the smallest variance, so that a judge that tells nothing costs nothing, where plain
    PPI (λ = 1) can be wider than the human values alone.

    Parameters
    ----------
    human : float64[values]
        NaN where no human said anything.
    judge : float64[values]
        NaN where the judge said nothing; such values count only for `human_only`.
    clusters : sequence, optional
        The query of each value: values of a query hang together. Every value is its own if not given.
    level : float

    Returns
    -------
    PredictionPowered

    Raises
    ------
    InputError
        If fewer than two clusters have both a human's and the judge's values.

    Notes
    -----
    The interval takes Student's t with a degree of freedom for each cluster with human values, less one
    for the mean and one for λ, and leaves each cluster out in turn for the variance, which is on the
    safe side for few clusters. Where it would be wider than the human values' own, λ is 0.

    References
    ----------
    Angelopoulos et al. 2023, Prediction-powered inference; Angelopoulos, Duchi, Zrnic 2023, PPI++ (arXiv 2311.01453).
    """
    from scipy.special import stdtrit

    said, predicted = np.asarray(human, np.float64), np.asarray(judge, np.float64)
    if said.shape != predicted.shape or said.ndim != 1:
        raise InputError(
            f"one human and one judge value is needed for each row, got {said.shape} and {predicted.shape}"
        )
    if clusters is not None and len(clusters) != len(said):
        raise InputError(f"there are {len(said)} values and {len(clusters)} clusters")
    if not 0 < level < 1:
        raise InputError(f"`level` must be in the open interval (0, 1), got {level!r}")
    group = _numbers(clusters, len(said))
    both = ~np.isnan(said) & ~np.isnan(predicted)
    alone = np.isnan(said) & ~np.isnan(predicted)
    labelled = len(np.unique(group[both]))
    if labelled < 2:
        raise InputError("at least two queries with both human and judge labels are needed for a correction")

    sums = _Sums.of(said, predicted, group, both, alone)
    mean, error = sums.estimate(np.zeros(1)), sums.error(tuned=False)
    human_reach = -float(stdtrit(labelled - 1, (1 - level) / 2)) * error
    weight, value, reach = 0.0, mean, human_reach
    if alone.any() and labelled > 2:
        tuned = sums.error(tuned=True) * -float(stdtrit(labelled - 2, (1 - level) / 2))
        # A judge that does not narrow the interval is not listened to.
        if tuned < human_reach:
            weight, reach = float(sums.weights()[0]), tuned
            value = sums.estimate(np.array([weight]))
    return PredictionPowered(
        value=value,
        low=value - reach,
        high=value + reach,
        weight=weight,
        human_only=mean,
        human_low=mean - human_reach,
        human_high=mean + human_reach,
        judge_only=float(predicted[~np.isnan(predicted)].mean()),
        n_human=int(both.sum()),
        n_judge=int(alone.sum()),
        clusters=labelled,
    )


def _numbers(clusters: Sequence[Any] | None, count: int) -> IntArray:
    if clusters is None:
        return np.arange(count)
    known: dict[Any, int] = {}
    return np.array([known.setdefault(cluster, len(known)) for cluster in clusters], np.int64)


@dataclass(frozen=True, slots=True)
class _Sums:
    """For each cluster: sums of human and judge values where both are known, their count, and the same elsewhere.

    `columns` is float64[clusters, 5]: human, judge, count; judge and count of the judge's own values.
    """

    columns: FloatArray

    @classmethod
    def of(cls, human: FloatArray, judge: FloatArray, group: IntArray, both: Any, alone: Any) -> _Sums:
        size = int(group.max()) + 1
        chosen = ((both, human), (both, judge), (both, None), (alone, judge), (alone, None))
        return cls(
            np.stack(
                [
                    np.bincount(group[rows], None if values is None else values[rows], minlength=size).astype(float)
                    for rows, values in chosen
                ],
                axis=1,
            )
        )

    def weights(self, without: FloatArray | None = None) -> FloatArray:
        """λ of the smallest variance, between 0 and 1: of all clusters, or without each of those given."""
        left_out = np.zeros((1, 5)) if without is None else without
        # Variances of cluster sums around their means, written out in moments, so that leaving each
        # cluster out in turn takes one pass.
        moments = self.columns.T @ self.columns - left_out[:, :, None] * left_out[:, None, :]
        human, judge, n, own, others = (self.columns.sum(axis=0) - left_out).T
        with np.errstate(invalid="ignore", divide="ignore"):
            mh, mj, me = human / n, judge / n, own / others

            def crossed(a: int, la: int, ma: FloatArray, b: int, lb: int, mb: FloatArray) -> FloatArray:
                m = moments
                result: FloatArray = m[:, a, b] - mb * m[:, a, lb] - ma * m[:, la, b] + ma * mb * m[:, la, lb]
                return result

            covariance = crossed(0, 2, mh, 1, 2, mj) / n**2 - crossed(0, 2, mh, 3, 4, me) / (n * others)
            spread = crossed(1, 2, mj, 1, 2, mj) / n**2 + crossed(3, 4, me, 3, 4, me) / others**2
            spread = spread - 2 * crossed(1, 2, mj, 3, 4, me) / (n * others)
            scale = (moments[:, 1, 1] / n**2 + moments[:, 3, 3] / others**2) * 1e-12
            return np.where(spread > scale, np.clip(covariance / spread, 0.0, 1.0), 0.0)

    def estimate(self, weight: FloatArray) -> float:
        """The mean at a weight."""
        return float(self._estimates(weight, np.zeros((1, 5)))[0])

    def _estimates(self, weights: FloatArray, left_out: FloatArray) -> FloatArray:
        human, judge, n, own, others = (self.columns.sum(axis=0) - left_out).T
        elsewhere = np.divide(own, others, out=np.zeros(len(own)), where=others > 0)
        result: FloatArray = (human - weights * judge) / n + weights * elsewhere
        return result

    def error(self, *, tuned: bool) -> float:
        """Jackknife standard error over clusters, with λ tuned anew without each one, or 0."""
        variance = 0.0
        labelled = self.columns[:, 2] > 0
        for kind in (labelled, ~labelled & (self.columns[:, 4] > 0) & tuned):
            left_out = self.columns[kind]
            if len(left_out) < 2:
                continue
            weights = self.weights(left_out) if tuned else np.zeros(len(left_out))
            estimates = self._estimates(weights, left_out)
            variance += (len(estimates) - 1) * float(estimates.var())
        return float(np.sqrt(variance))
