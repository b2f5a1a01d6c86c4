"""Bootstrap over queries, for every measure, depth and system from the same resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import FloatArray, Outcome

_CELLS_PER_CHUNK = 1 << 19


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Percentile intervals from resampled queries.

    Every measure, depth and system is resampled with the same draws of queries, so that their
    differences are paired. The resample counts times the value matrix give all means at once.

    Attributes
    ----------
    resamples : int
    seed : int
        For `numpy.random.default_rng`; equal seeds give equal figures.
    level : float
        Share of the resamples inside the interval.
    """

    resamples: int = 5000
    seed: int = 7
    level: float = 0.95

    def __post_init__(self) -> None:
        if isinstance(self.resamples, bool) or not isinstance(self.resamples, int) or self.resamples < 1:
            raise InputError(f"bootstrap `resamples` must be a whole number ≥ 1, got {self.resamples!r}")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"bootstrap `seed` must be a whole number ≥ 0, got {self.seed!r}")
        if not 0 < self.level < 1:
            raise InputError(f"bootstrap `level` must be in the open interval (0, 1), got {self.level!r}")

    def intervals(self, outcomes: Sequence[Outcome]) -> list[tuple[FloatArray, FloatArray]]:
        """Low and high for each outcome: float64[depths], NaN where fewer than two queries are defined.

        All outcomes must be over the same queries. A resample that holds none of the defined
        queries is left out.
        """
        if not outcomes:
            return []
        columns = _Columns()
        places = [[columns.add(part) for part in outcome.parts] for outcome in outcomes]
        masks = [columns.add(outcome.defined.astype(np.float64)) for outcome in outcomes]
        sums = self._resampled_sums(columns.matrix())

        tail = (1 - self.level) / 2
        result = []
        for outcome, parts, mask in zip(outcomes, places, masks, strict=True):
            with np.errstate(invalid="ignore", divide="ignore"):
                means = [sums[:, part] / sums[:, mask] for part in parts]
                statistic = outcome.aggregate.statistic(*means)
            bounds = _quantiles(statistic, [tail, 1 - tail])
            low, high = np.sort(outcome.aggregate.link(bounds), axis=0)
            few = outcome.defined.sum(axis=0) < 2
            result.append((np.where(few, np.nan, low), np.where(few, np.nan, high)))
        return result

    def _resampled_sums(self, matrix: FloatArray) -> FloatArray:
        """Column sums under each resample: float64[resamples, columns]."""
        queries = len(matrix)
        sums = np.empty((self.resamples, matrix.shape[1]))
        rng = np.random.default_rng(self.seed)
        step = max(1, _CELLS_PER_CHUNK // max(1, queries))
        for start in range(0, self.resamples, step):
            stop = min(start + step, self.resamples)
            drawn = rng.integers(0, queries, size=(stop - start, queries))
            drawn += np.arange(stop - start)[:, None] * queries
            counts = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
            sums[start:stop] = counts.astype(np.float64) @ matrix
        return sums


class _Columns:
    """Distinct columns, each kept once: Success, EF and BoR share most of theirs."""

    def __init__(self) -> None:
        self._index: dict[bytes, int] = {}
        self._columns: list[FloatArray] = []

    def add(self, block: FloatArray) -> list[int]:
        """Where each column of the block is kept; NaN counts as 0, since the masks carry it."""
        places = []
        for column in np.nan_to_num(block, nan=0.0).T:
            column = np.ascontiguousarray(column)
            key = column.tobytes()
            if key not in self._index:
                self._index[key] = len(self._columns)
                self._columns.append(column)
            places.append(self._index[key])
        return places

    def matrix(self) -> FloatArray:
        return np.stack(self._columns, axis=1)


def _quantiles(statistic: FloatArray, levels: list[float]) -> FloatArray:
    """Quantiles down each column, leaving out resamples where the statistic does not exist."""
    if not np.isnan(statistic).any():
        return np.quantile(statistic, levels, axis=0)
    result = np.full((len(levels), statistic.shape[1]), np.nan)
    for column in range(statistic.shape[1]):
        present = statistic[~np.isnan(statistic[:, column]), column]
        if len(present):
            result[:, column] = np.quantile(present, levels)
    return result
