"""How an interval is made of resampled figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.inference.exact import mid_p_rate, weighted_rate
from rag_selectivity.measures.outcome import Aggregate, FloatArray, Outcome
from rag_selectivity.tables.ids import IntArray

#: Resampled figures closer than this, relative to the largest, are one figure: whole counts over whole
#: counts fall on few values, and which side of a tie the last digit lands on differs with the platform.
_SAME = 1e-11
#: Chances of which the largest is at most so many times the smallest hardly bear on the interval of their ratio.
NEARLY = 1.1


def blocks_of(outcome: Outcome) -> list[FloatArray]:
    """What each query adds to the sums of each part, and how much it counts: float64[queries, depths] each.

    NaN counts as 0, since the last block carries it. With weights, all are weighted.
    """
    counts, defined = outcome.counting(), outcome.defined
    if counts is None and defined.all():
        return [*outcome.parts, np.ones_like(outcome.parts[0])]
    parts = [np.where(defined, part, 0.0) for part in outcome.parts]
    return [*parts, defined.astype(np.float64)] if counts is None else [*(part * counts for part in parts), counts]


@dataclass(frozen=True)
class Estimand:
    """What an interval is about: a statistic of the means of an outcome's parts, at each depth.

    Attributes
    ----------
    outcome : Outcome
    parts : tuple of float64[units, depths]
        The sums of the parts over each unit: a query, or a cluster of queries that are drawn together.
    mask : float64[units, depths]
        How many queries of the unit count; with weights, the sum of these.
    """

    outcome: Outcome
    parts: tuple[FloatArray, ...]
    mask: FloatArray

    @classmethod
    def of(cls, outcome: Outcome, units: IntArray | None = None, rows: Any = slice(None)) -> Estimand:
        """Of some rows of an outcome; `units` has the number of the cluster of each row of all."""
        some = outcome.over(rows)
        blocks = blocks_of(some)
        if units is not None:
            of, number = units[rows], int(units.max(initial=-1)) + 1
            blocks = [np.array([np.bincount(of, x, number) for x in y.T]).reshape(-1, number).T for y in blocks]
        *parts, mask = blocks
        return cls(some, tuple(parts), mask)

    @property
    def aggregate(self) -> Aggregate:
        """How means of the parts become the figure."""
        return self.outcome.aggregate

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Between which the first part lies, at each depth."""
        low, high = self.outcome.bounds or (np.nan, np.nan)
        depths = self.mask.shape[1:]
        return np.broadcast_to(low, depths), np.broadcast_to(high, depths)

    @cached_property
    def weighted(self) -> bool:
        """Whether queries count unequally."""
        return self.outcome.counting() is not None

    @cached_property
    def units(self) -> IntArray:
        """Units with a defined query, at each depth."""
        result: IntArray = (self.mask > 0).sum(axis=0)
        return result

    @cached_property
    def effective(self) -> FloatArray:
        """So many units of equal weight tell as much: (Σw)²/Σw² (Kish 1965); without weights the number of units."""
        if not self.weighted:
            return self.units.astype(np.float64)
        squares = (self.mask**2).sum(axis=0)
        return np.where(squares > 0, self.mask.sum(axis=0) ** 2 / np.where(squares > 0, squares, 1.0), 0.0)

    @cached_property
    def means(self) -> list[FloatArray]:
        """The mean of each part over the defined queries, at each depth."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return [part.sum(axis=0) / self.mask.sum(axis=0) for part in self.parts]

    @property
    def value(self) -> FloatArray:
        """The statistic of the queries as they are."""
        return self.aggregate.statistic(*self.means)

    def single(self) -> FloatArray:
        """The statistic of each unit alone: float64[units, depths]; NaN without a defined query."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.aggregate.statistic(*(part / self.mask for part in self.parts))

    def away(self) -> FloatArray:
        """By how much each unit moves the statistic: float64[units, depths]; 0 for a unit without a defined query."""
        left = self.mask.sum(axis=0) - self.mask
        with np.errstate(invalid="ignore", divide="ignore"):
            without = self.aggregate.statistic(*((part.sum(axis=0) - part) / left for part in self.parts))
            return np.where(self.mask > 0, self.value - without, 0.0)

    @property
    def acceleration(self) -> FloatArray:
        """A sixth of the skewness of the jackknife's values; 0 where they have no spread."""
        away = self.away()
        away = np.where(np.isfinite(away), away, 0.0)
        squares = away * away
        with np.errstate(invalid="ignore", divide="ignore"):
            skewness: FloatArray = (squares * away).sum(axis=0) / (6 * squares.sum(axis=0) ** 1.5)
        return np.where(np.isnan(skewness), 0.0, skewness)


def bca_ends(estimands: Sequence[Estimand], resampled: FloatArray, tail: float) -> FloatArray:
    """Low and high of some statistics: float64[2, columns], bias-corrected and accelerated (Efron 1987).

    With the quantile of Student's t for few queries. With weights, the effective number of queries takes the place of
    their number.

    Parameters
    ----------
    estimands : sequence of Estimand
        The queries as they are; `value` is the statistic of all of them. Their depths, one after the other, are the
        columns.
    resampled : float64[columns, resamples]
        The statistic of each resample, NaN where it does not exist.
    tail : float
        The share of the resamples below the interval, and above it: .025 at the level .95.
    """
    from scipy.special import ndtr, ndtri, stdtrit

    ordered = np.sort(resampled, axis=1)  # NaN last
    present = ordered.shape[1] - np.isnan(ordered).sum(axis=1)
    names = "value", "acceleration", "effective"
    value, acceleration, effective = (np.concatenate([getattr(each, name) for each in estimands]) for name in names)
    below, upto = _tie(ordered, value, present)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (below + upto) / (2 * present)
        bias = ndtri(np.clip(share, 0.5 / present, 1 - 0.5 / present))
        units = np.maximum(effective, 2)
        reach = -stdtrit(units - 1.0, tail) * np.sqrt(units / (units - 1))
        bounds = []
        for z in (-reach, reach):
            shifted = bias + z
            divisor = 1 - acceleration * shifted
            level = ndtr(np.where(divisor > 0, bias + shifted / divisor, np.copysign(np.inf, z)))
            bounds.append(_mid_quantile(ordered, level, present))
    return np.stack(bounds)


def _tie(ordered: FloatArray, value: FloatArray, present: IntArray) -> tuple[IntArray, IntArray]:
    """How many figures of each row lie below the value, and how many below or beside it; 0 for NaN."""
    largest = np.abs(ordered[np.arange(len(ordered)), np.maximum(present - 1, 0)])
    with np.errstate(invalid="ignore"):
        room = _SAME * np.maximum(np.maximum(largest, np.abs(ordered[:, 0])), np.abs(value))
        room = np.where(np.isfinite(room), room, 0.0)
        ends = np.stack([value - room, value + room], axis=1)
    places = [
        (row.searchsorted(low), row.searchsorted(high, "right")) for row, (low, high) in zip(ordered, ends, strict=True)
    ]
    below, upto = np.where(np.isnan(value), 0, np.array(places, np.int64).reshape(-1, 2).T)
    return below, upto


def _mid_quantile(ordered: FloatArray, level: FloatArray, present: IntArray) -> FloatArray:
    """Quantiles along each row from the mid-distribution: equal figures stand at the middle of their share."""
    rows = np.arange(len(ordered))

    def at(place: IntArray) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        value = ordered[rows, np.clip(place, 0, np.maximum(present - 1, 0))]
        below, upto = _tie(ordered, value, present)
        return value, (below + upto) / 2, below, upto

    target = level * present
    value, middle, below, upto = at(np.floor(np.nan_to_num(target)).astype(np.int64))
    beside = np.where(target > middle, upto, below - 1)
    other, other_middle, _, _ = at(beside)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (target - middle) / (other_middle - middle)
        between = value + share * (other - value)
    inside = (beside >= 0) & (beside < present) & np.isfinite(value) & np.isfinite(other) & (other_middle != middle)
    return np.where(present > 0, np.where(inside, between, value), np.nan)


def of_success_rates(estimands: Sequence[Estimand], tail: float) -> list[FloatArray]:
    """Bounds from the binomial distribution where every query is a success or none and all else is nearly the same.

    float64[2, depths] for each estimand, NaN elsewhere. Mid-P: half of the probability of what was observed counts as
    more extreme (Lancaster 1961). Weighted rates have the bounds of `weighted_rate`. Where the chances of the queries
    differ, the error of their mean is added to both ends (`_with_error_of`).
    """
    plain = [_are_rates(estimand.outcome) for estimand in estimands]
    if not any(columns.any() for columns in plain):
        return [np.full((2, len(columns)), np.nan) for columns in plain]
    trials = np.concatenate([estimand.outcome.defined.sum(axis=0) for estimand in estimands])
    hits = np.concatenate([np.nansum(estimand.outcome.parts[0], axis=0) for estimand in estimands])
    of_all, known = np.full((2, len(hits)), np.nan), np.concatenate(plain)
    of_all[:, known] = mid_p_rate(hits[known], trials[known], np.array([[1 - tail], [tail]]))
    results = []
    for estimand, columns, rates in zip(estimands, plain, np.split(of_all, len(estimands), axis=1), strict=True):
        outcome, counts, (_, *others) = estimand.outcome, estimand.outcome.counting(), estimand.means
        if counts is not None:
            unequal = np.where(outcome.defined, counts, 1.0).min(axis=0, initial=1.0) < 1
            rates = np.where(unequal, weighted_rate(outcome.parts[0], counts, tail), rates)
        with np.errstate(invalid="ignore", divide="ignore"):
            ends = np.stack([outcome.aggregate.value(rate, *others) for rate in rates])
        ends = _with_error_of(estimand, ends, tail) if others else ends
        results.append(np.where(columns, ends, np.nan))
    return results


def _are_rates(outcome: Outcome) -> NDArray[np.bool_]:
    """At which depths every query is a success or none, and the random chances are nearly the same: bool[depths]."""
    first, *others = outcome.parts
    if outcome.bounds is None:
        return np.zeros(first.shape[1], bool)
    known = outcome.defined
    plain = np.asarray(((first == 0) | (first == 1) | ~known).all(axis=0))
    # The third part of a ratio, if there is one, is 1 minus the second.
    if others:
        least, most = (np.where(known, others[0], end).T for end in (np.inf, -np.inf))
        plain &= most.max(axis=1, initial=-np.inf) <= NEARLY * least.min(axis=1, initial=np.inf)
    return plain


def _with_error_of(estimand: Estimand, ends: FloatArray, tail: float) -> FloatArray:
    """Ends of a ratio of means, or of its log2, that allow for the error of the mean chance too: float64[2, depths].

    Each end is as far from the figure as both errors together: that of the success rate as its interval says, and that
    of the mean chance as Student's t says.

    References
    ----------
    Zou and Donner 2008, Construction of confidence limits about effect measures.
    """
    from scipy.special import stdtrit

    outcome, aggregate, weights = estimand.outcome, estimand.aggregate, estimand.mask
    unit, means = math.log(2) if aggregate.form == "bits" else 0.0, estimand.means
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        total = weights.sum(axis=0)
        free = total**2 / (weights**2).sum(axis=0) - 1
        away = np.where(outcome.defined, outcome.parts[1] - means[1], 0.0)
        error = -stdtrit(free, tail) * np.sqrt((weights * away**2).sum(axis=0) / total / free) / means[1]
        value, *logs = (each * unit if unit else np.log(each) for each in (aggregate.value(*means), *ends))
        moved = []
        for sign, end in zip((-1, 1), logs, strict=True):
            # Without a success the figure is infinitely small, and its upper end alone moves.
            to = np.where(np.isfinite(value), value + sign * np.hypot(end - value, error), end + sign * error)
            moved.append(to / unit if unit else np.exp(to))
    return np.stack(moved)
