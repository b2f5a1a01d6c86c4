"""Calibrated differences between two runs: both are measured on the same completions of the labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.plan import Plan
from rag_selectivity.trust.calibrated import Sampling, by_depth, counts_of, named_depth, quantile, rows_of
from rag_selectivity.trust.ground import Ground, Places, Strata, WithoutLabels, tops
from rag_selectivity.trust.measured import Chunks

#: Below this, a difference is rounding.
_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class CalibratedDifference:
    """A run's figure minus the baseline's, over all completions; p, interval and verdict are of one distribution.

    Attributes
    ----------
    value, baseline_value, difference : float
        Medians. The difference is the median of the differences.
    low, high : float
        The interval over completions and queries; it contains 0 if and only if p is more than 1 − level.
    fixed_low, fixed_high : float
        The interval over completions alone: for these very queries.
    p : float
        Two-sided.
    reason : str or None
        Why there is no difference.
    without : WithoutLabels or None
        About strata without a label by people.
    """

    value: float
    baseline_value: float
    difference: float
    low: float
    high: float
    fixed_low: float
    fixed_high: float
    p: float
    reason: str | None = None
    without: WithoutLabels | None = None

    @classmethod
    def none(cls, reason: str) -> CalibratedDifference:
        """No difference."""
        return cls(*(math.nan,) * 8, reason)


def calibrated_differences(
    ground: Ground,
    judged: Mapping[str, JudgedRun],
    baseline: str,
    plan: Plan,
    sampling: Sampling,
    parts: Mapping[str, JudgedRun] | None = None,
) -> dict[tuple[str, str], CalibratedDifference]:
    """Every difference from the baseline: {(run, measure with its depth): difference}.

    `parts` are as in `calibrated_figures`.

    Raises
    ------
    InputError
        If the runs are over different queries.
    """
    sampling = sampling if parts is None else sampling.in_a_slice()
    result = {}
    for depth, wanted in by_depth(plan).items():
        top = tops(judged, ground.labels, depth)
        measured = judged if parts is None else parts
        for name, run in measured.items():
            if name == baseline:
                continue
            if run.queries != measured[baseline].queries:
                raise InputError(
                    "labels by people (human) calibrate differences over the same queries only: leave out "
                    "paired=False (intervals.unpaired)"
                )
            queries = None if parts is None else rows_of(ground, run)
            strata = Strata.of(
                ground, Places.of_two(top, name, baseline, named_depth(depth)), queries, counts_of(ground, run)
            )
            pair = run, measured[baseline]
            for key, difference in _differences_at(strata, pair, wanted, depth, sampling).items():
                result[name, key] = difference
    return result


def _differences_at(
    strata: Strata, pair: tuple[JudgedRun, JudgedRun], wanted: Plan, depth: int, sampling: Sampling
) -> dict[str, CalibratedDifference]:
    if strata.missing is not None:
        return {str(measure @ at[0]): CalibratedDifference.none(strata.missing) for measure, at in wanted}
    key = min(depth, 1 << 30)
    chunks = Chunks(pair, rows_of(strata.ground, pair[0]), strata.levels, sampling.resampling(pair[0], 4, key))
    collected = {measure: _Collected() for measure, _ in wanted}
    for chunk, weights, _ in chunks.each(strata.draws(sampling.draws, (sampling.seed, 3, key))):
        for measure, at in wanted:
            one, other = (chunk.measured(place, measure, at) for place in range(2))
            both = one.counts * (other.counts > 0)
            values = np.stack([each.values(weights, both)[:, :, 0] for each in (one, other)], axis=1)
            collected[measure].add(values, one.outcome.reasons[0])
    return {
        str(measure @ at[0]): replace(collected[measure].difference(sampling), without=strata.without)
        for measure, at in wanted
    }


@dataclass
class _Collected:
    """Both runs' figures and their differences on every completion: only numbers are kept."""

    pairs: list[FloatArray] = field(default_factory=list)
    resampled: list[FloatArray] = field(default_factory=list)
    undefined: str = ""

    def add(self, values: FloatArray, undefined: str) -> None:
        """Take in some completions: float64[completions, 2, 1 + resamples], over the queries defined in both runs."""
        self.pairs.append(values[:, :, 0])
        with np.errstate(invalid="ignore"):
            self.resampled.append((values[:, 0, 1:] - values[:, 1, 1:]).ravel())
        self.undefined = undefined

    def difference(self, sampling: Sampling) -> CalibratedDifference:
        """The medians, the intervals and p."""
        level = sampling.level
        values = np.concatenate(self.pairs) if self.pairs else np.empty((0, 2))
        known = ~np.isnan(values).any(axis=1)
        with np.errstate(invalid="ignore"):
            differences = values[:, 0] - values[:, 1]
        finite = known & ~np.isnan(differences)
        if not len(values) or finite.sum() < 0.9 * len(values):
            return CalibratedDifference.none(self.undefined if known.mean() < 0.9 else "no query succeeded: log2 of 0")
        middle = quantile(differences[finite], 0.5)
        resampled = np.concatenate(self.resampled)
        resampled = _around(resampled[~np.isnan(resampled)], middle, sampling.stretch)
        fixed = _around(differences[finite], middle, sampling.stretch)
        tails = (1 - level) / 2, (1 + level) / 2
        low, high = (quantile(resampled, tail) for tail in tails)
        p = min(1.0, 2 * min(float((resampled <= _SAME).mean()), float((resampled >= -_SAME).mean())))
        p = max(p, 2 / (len(resampled) + 1))
        if p > 1 - level:
            low, high = min(low, 0.0), max(high, 0.0)
        return CalibratedDifference(
            quantile(values[finite, 0], 0.5),
            quantile(values[finite, 1], 0.5),
            middle,
            low,
            high,
            quantile(fixed, tails[0]),
            quantile(fixed, tails[1]),
            p,
        )


def _around(values: FloatArray, middle: float, stretch: float) -> FloatArray:
    """The values with their distances from the middle stretched; what is infinite stays so."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(values), values, middle + stretch * (values - middle))
