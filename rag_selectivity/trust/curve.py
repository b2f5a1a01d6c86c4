"""Calibrated figures at every K of a run from common completions, for the choice of K."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray, Measure
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.calibrated import STRETCH, Sampling, quantile, rows_of
from rag_selectivity.trust.ground import Ground, Places, Strata, tops
from rag_selectivity.trust.measured import Chunks


@dataclass(frozen=True)
class Curve:
    """Figures of one measure at every K, and what each K loses against the last.

    Attributes
    ----------
    figures : float64[depths]
        Medians over completions; NaN where undefined.
    loss, loss_high : float64[depths]
        The figure at the last depth minus the one at each depth: median, and upper end over completions and queries.
    """

    figures: FloatArray
    loss: FloatArray
    loss_high: FloatArray


@dataclass(frozen=True)
class Curves:
    """What the curves of a run are computed from."""

    ground: Ground
    judged: Mapping[str, JudgedRun]
    name: str
    sampling: Sampling

    def of(self, measures: Sequence[Measure], depths: IntArray) -> list[Curve]:
        """The curves of measures, from the same completions.

        The strata are the judge's grades in the upper third of the ranks, in the rest of them, and outside.

        Raises
        ------
        InputError
            If people labelled no pair of a stratum.
        """
        run, last = self.judged[self.name], int(depths.max())
        strata = Strata.of(self.ground, self._places(last))
        if strata.missing is not None:
            raise InputError(
                f"{self.name}: labels by people cannot calibrate the figures up to K = {last}, since {strata.missing}"
            )
        chunks = Chunks([run], rows_of(self.ground, run), strata.levels, self.sampling.resampling(run, 6, last))
        values: list[list[FloatArray]] = [[] for _ in measures]
        losses: list[list[FloatArray]] = [[] for _ in measures]
        spread: list[list[FloatArray]] = [[] for _ in measures]
        for chunk, weights, _ in chunks.each(strata.draws(self.sampling.draws, (self.sampling.seed, 5, last))):
            for place, measure in enumerate(measures):
                measured = chunk.measured(0, measure, depths)
                first = measured.outcome.parts[0].reshape(measured.counts.shape)
                known = np.asarray((measured.counts > 0).all(axis=2), np.float64)
                gaps = np.where(known[:, :, None] > 0, first[:, :, -1:] - first, 0.0)
                with np.errstate(invalid="ignore", divide="ignore"):
                    lost = weights @ gaps / (weights @ known[:, :, None])
                values[place].append(measured.values(weights[:, :1], measured.counts)[:, 0])
                losses[place].append(lost[:, 0])
                spread[place].append(lost[:, 1:].reshape(-1, len(depths)))
        tail = (1 + self.sampling.level) / 2
        return [
            _curve(np.concatenate(value), np.concatenate(loss), np.concatenate(wide), tail)
            for value, loss, wide in zip(values, losses, spread, strict=True)
        ]

    def _places(self, last: int) -> Places:
        labels = self.ground.labels
        upper = max(1, math.ceil(last / 3))
        whole = Places.of_run(tops(self.judged, labels, last), self.name, f"top {last}")
        first = tops(self.judged, labels, upper)[self.name]
        # With a single K there is no lower part.
        place = np.where(whole.place == 0, np.where(first, 0, 1), whole.place + 1)
        names = (
            f"in the top {upper} of {self.name}",
            f"at ranks {upper + 1} to {last} of {self.name}",
            *whole.names[1:],
        )
        return Places(place, names, np.array([True, True, False, False]))


def _curve(values: FloatArray, losses: FloatArray, spread: FloatArray, tail: float) -> Curve:
    middle = np.array([_median(column) for column in losses.T])
    ends = np.array([_median(column, tail) for column in spread.T])
    return Curve(np.array([_median(column) for column in values.T]), middle, middle + STRETCH * (ends - middle))


def _median(column: FloatArray, at: float = 0.5) -> float:
    """A quantile of what is defined; NaN where fewer than nine tenths are."""
    known = column[~np.isnan(column)]
    return quantile(known, at) if len(known) >= 0.9 * len(column) and len(known) else math.nan
