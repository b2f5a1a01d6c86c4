"""Bootstrap over queries, for every measure, depth and system from the same resamples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, examples
from rag_selectivity.inference import bounded
from rag_selectivity.inference.draws import Columns, Parts, resample_counts
from rag_selectivity.inference.exact import clopper_pearson, luck_reaches, weighted_rate
from rag_selectivity.inference.interval_methods import Estimand, bca_ends, blocks_of, of_success_rates
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.tables.cells import is_missing
from rag_selectivity.tables.forms import AS_THEY_ARE
from rag_selectivity.tables.ids import IntArray

#: Low and high of an outcome, float64[depths] each.
Ends = tuple[FloatArray, FloatArray]
#: Sums that are held at once for each resample, over all columns.
_SUMS_AT_ONCE = 2304
_DEPTHS_AT_ONCE = 64
#: All resamples together draw at most so many queries, but there are always some hundreds.
_MOST_DRAWN, _FEWEST_RESAMPLES = 500_000_000, 200
#: What many queries of a ratio to chance may have by luck, their resamples tell.
_MOST_BY_LUCK = 300


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Intervals from resampled queries.

    Every measure, depth and system is resampled with the same draws of queries, so that their
    differences are paired. The resample counts times the value matrix give all means at once.

    Quantiles are corrected for bias and skewness (BCa, Efron 1987), with the quantile of Student's t for few queries
    (Hesterberg 2015), and with equal resampled figures counted as halves on either side. A plain success rate, and BoR
    where chance is the same for all queries, has its interval from the binomial distribution itself (mid-P). An
    interval in which all queries agree is widened to what so many queries can tell: for a success rate that is Clopper
    and Pearson's exact bound. A ratio to chance holds it where luck has as many successes (`_beside_luck`).

    Attributes
    ----------
    resamples : int
    seed : int
        For `numpy.random.default_rng`; equal seeds give equal figures.
    level : float
        Share of the resamples inside the interval.
    clusters : {query: group}, optional
        Queries that belong together (of one user, one document, paraphrases of one question) are
        drawn together. Without this their likeness makes intervals too narrow.

    References
    ----------
    Efron 1987, Better Bootstrap Confidence Intervals; Hesterberg 2015, What Teachers Should Know About
    the Bootstrap; Clopper and Pearson 1934; Lancaster 1961 (mid-P).
    """

    resamples: int = 5000
    seed: int = 7
    level: float = 0.95
    clusters: Mapping[str, object] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.resamples, bool) or not isinstance(self.resamples, int) or self.resamples < 1:
            raise InputError(f"resamples must be a whole number ≥ 1, got {self.resamples!r}")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed must be a whole number ≥ 0, got {self.seed!r}")
        if not isinstance(self.level, Real) or not 0 < self.level < 1:
            raise InputError(f"level must be between 0 and 1, got {self.level!r}")

    @property
    def settings(self) -> dict[str, Any]:
        """What a report says of how its intervals were made."""
        settings = {"method": "bca", "resamples": self.resamples, "seed": self.seed, "level": self.level}
        return {**settings, "clusters": len(set(self.clusters.values()))} if self.clusters is not None else settings

    @classmethod
    def required(cls, value: Bootstrap) -> Bootstrap:
        """A Bootstrap as it is, where None will not do."""
        if not isinstance(value, Bootstrap):
            raise InputError(f"bootstrap must be a Bootstrap, as in Bootstrap(resamples=1000), got {value!r}")
        return value

    def for_queries(self, number: int) -> Bootstrap:
        """The same, with fewer resamples where there are more than 100,000 queries: 500 for a million."""
        most = max(_FEWEST_RESAMPLES, _MOST_DRAWN // max(1, number))
        return self if self.resamples <= most else replace(self, resamples=most)

    def intervals(self, outcomes: Sequence[Outcome], queries: Sequence[str] = ()) -> list[Ends]:
        """Low and high for each outcome: float64[depths], NaN where fewer than two queries are defined.

        All outcomes must be over the same queries, whose names matter only where there are clusters. A
        resample that holds none of the defined queries is left out.
        """
        return self.of_slices(outcomes, queries, [])[0]

    def of_slices(
        self, outcomes: Sequence[Outcome], queries: Sequence[str], slicings: Sequence[IntArray]
    ) -> list[list[Ends]]:
        """Low and high of each outcome over all queries and in each slice, `result[slice][outcome]`.

        All come from resamples of all queries: of each slice a resample holds those of its queries that were drawn.

        Parameters
        ----------
        slicings : sequence of int64[queries]
            The number of each query's slice. The result has all queries first, then the slices of the first slicing in
            the order of their numbers, then those of the second, …
        """
        units, rows = self.units(queries), len(outcomes[0].parts[0]) if outcomes else 0
        every = Parts.of([np.zeros(rows, np.int64), *slicings])
        return [ends for parts in every for ends in self._of_parts(outcomes, units, parts)]

    def _of_parts(self, outcomes: Sequence[Outcome], units: IntArray | None, parts: Parts) -> list[list[Ends]]:
        """The ends in each part. Some columns are resampled at a time, so that memory does not grow with the depths."""
        depths = max(1, min(_DEPTHS_AT_ONCE, _SUMS_AT_ONCE // (4 * len(parts.rows))))
        waiting = [
            (number, outcome.at(slice(start, start + depths)))
            for number, outcome in enumerate(outcomes)
            for start in range(0, max(1, outcome.parts[0].shape[1]), depths)
        ]
        found: list[list[FloatArray]] = [[] for _ in outcomes]
        while waiting:
            columns, pieces = Columns(), list[tuple[int, Outcome, list[list[int]]]]()
            while waiting and len(columns) * len(parts.rows) < _SUMS_AT_ONCE:
                number, piece = waiting.pop(0)
                pieces.append((number, piece, [columns.add(block) for block in blocks_of(piece)]))
            matrix = columns.matrix()
            number = len(matrix) if units is None else int(units.max(initial=-1)) + 1
            sums = parts.sums(matrix, resample_counts(self.seed, self.resamples, number), self.resamples, units)
            for place, piece, places in pieces:
                estimands = [Estimand.of(piece, units, rows) for rows in parts.rows]
                # A measure may have no depth here.
                of_piece = sums[:, np.array(places, np.int64)]
                found[place].append(self._ends_of(estimands, of_piece, exact=units is None))
        ends = [np.concatenate(of_outcome, axis=2) for of_outcome in found]
        return [[(low, high) for low, high in (each[part] for each in ends)] for part in range(len(parts.rows))]

    def _ends_of(self, estimands: Sequence[Estimand], sums: FloatArray, *, exact: bool) -> FloatArray:
        """Low and high of an outcome in each part, from the resampled sums of its columns: float64[parts, 2, depths].

        `sums` are float64[parts, blocks, depths, resamples]; `exact` allows for bounds that know of no clusters.
        """
        tail, (*tops, mask) = (1 - self.level) / 2, np.moveaxis(sums, 1, 0)
        unknown = [np.full((2, sums.shape[2]), np.nan)] * len(estimands)
        bounds = rates = of_success_rates(estimands, tail) if exact else unknown
        if not np.isfinite(rates).all():
            with np.errstate(invalid="ignore", divide="ignore"):
                resampled = estimands[0].aggregate.statistic(*(top / mask for top in tops))
            ends = bca_ends(estimands, resampled.reshape(-1, sums.shape[-1]), tail)
            bounds = np.split(np.sort(estimands[0].aggregate.link(ends), axis=0), len(estimands), axis=1)
        return np.stack([self._allowing_for_few(*part, tail) for part in zip(estimands, bounds, rates, strict=True)])

    def _allowing_for_few(self, estimand: Estimand, bounds: FloatArray, rates: FloatArray, tail: float) -> FloatArray:
        """The bounds of rates where there are some, and bounds that are no narrower than few queries can tell."""
        decided = np.asarray(np.isfinite(rates).all(axis=0))
        bounds = np.where(np.isnan(rates), bounds, rates)
        bounds = _widened(bounds, _if_all_agree(estimand, tail))
        bounds = self._for_few(estimand, bounds, decided)
        if estimand.weighted:
            bounds = _allowing_for_heavy(estimand, bounds, decided)
            bounds = _widened(bounds, _of_few_successes(estimand, tail))
        elif self.clusters is None:
            bounds = _beside_luck(estimand, bounds, tail)
        return np.where(estimand.outcome.without_spread() | (estimand.units < 2), np.nan, bounds)

    def _for_few(self, estimand: Estimand, bounds: FloatArray, decided: NDArray[np.bool_]) -> FloatArray:
        """The bounds of means; where few units differ, no narrower than the interval of bounded values."""
        if estimand.aggregate.form != "mean" or estimand.outcome.bounds is None:
            return bounds
        low, high = bounds.copy()
        for column in np.flatnonzero(estimand.units > 1).tolist():
            inside = estimand.mask[:, column] > 0
            sums, sizes = estimand.parts[0][inside, column], estimand.mask[inside, column]
            alone = bool((sizes == 1).all())
            unequal = estimand.weighted and not alone
            if decided[column] if unequal else alone and ((sums == 0) | (sums == 1)).all():
                continue
            # Of what lies beyond a placebo, the figures themselves, which are the last part, say whether few differ.
            figures = estimand.parts[-1][inside, column]
            seen = (figures / sizes)[:, None] if unequal else np.stack([figures, sizes], axis=1)
            if not bounded.few_differ(seen, sizes if unequal else None):
                continue
            # An unseen query stands for as much as an average one; where queries weigh unequally, for as much as the
            # average of what is weighed, so that the bound of rows that agree is that of their effective number.
            size = (sizes**2).sum() / sizes.sum() if unequal else sizes.mean()
            worst, best = (np.array([end[column] * size, size]) for end in estimand.ends)
            rows = np.stack([sums, sizes], axis=1)
            below, above = bounded.ends(rows, worst, best, lambda sums: sums[:, 0] / sums[:, 1], self.level, self.seed)
            low[column], high[column] = min(low[column], below), max(high[column], above)
        return np.stack([low, high])

    def units(self, queries: Sequence[str]) -> IntArray | None:
        """The number of each query's cluster; None where every query is its own."""
        if self.clusters is None:
            return None
        group_of = {AS_THEY_ARE.of_cell(query, "clusters", "query"): group for query, group in self.clusters.items()}
        without = [query for query, group in group_of.items() if is_missing(group)]
        if without:
            raise InputError(f"clusters: {examples(without)}: the cluster is missing; give each query one")
        absent = [query for query in queries if query not in group_of]
        if absent:
            raise InputError(f"clusters: {len(absent)} of the {len(queries)} queries have none ({examples(absent)})")
        number: dict[object, int] = {}
        return np.array([number.setdefault(group_of[query], len(number)) for query in queries], np.int64)


# -- samples without any spread -----------------------------------------------------------------------


def _widened(bounds: FloatArray, others: FloatArray) -> FloatArray:
    """The bounds, no narrower than others: float64[2, depths] each."""
    return np.stack([np.fmin(bounds[0], others[0]), np.fmax(bounds[1], others[1])])


def _allowing_for_heavy(estimand: Estimand, bounds: FloatArray, decided: NDArray[np.bool_]) -> FloatArray:
    """Bounds that are widened where the heavy queries happen to lie near the mean.

    A resample tells the spread of a heavy query from its own figure alone. If all queries have the spread of the whole,
    the variance is s²/n with the effective number n (Kish 1965). Where that is larger than the variance Σw²z²/(Σw)²,
    both ends are moved away from the figure by the root of the ratio. Equal weights have the ratio 1.
    """
    mask, total, away = estimand.mask, estimand.mask.sum(axis=0), estimand.away()
    value = estimand.aggregate.value(*estimand.means)
    with np.errstate(invalid="ignore", divide="ignore"):
        effects = away * (total - mask) / np.where(mask > 0, mask, 1.0)
        of_all = (mask * effects**2).sum(axis=0) / total / estimand.effective
        own = ((mask * effects) ** 2).sum(axis=0) / total**2
        wider = np.sqrt(of_all / own)
        moving = (wider > 1) & np.isfinite(wider) & np.isfinite(value) & ~decided
        reach = np.stack([np.minimum(bounds[0] - value, 0.0), np.maximum(bounds[1] - value, 0.0)])
        low, high = np.where(moving, value + reach * wider, bounds)
    lowest, highest = estimand.ends
    if estimand.aggregate.form != "mean" or estimand.outcome.bounds is None:
        # No weights of these queries lead beyond the figures of the single ones.
        single = estimand.aggregate.link(estimand.single())
        lowest, highest = np.fmin.reduce(single, initial=np.inf), np.fmax.reduce(single, initial=-np.inf)
    low, high = np.maximum(low, np.minimum(lowest, bounds[0])), np.minimum(high, np.maximum(highest, bounds[1]))
    return np.stack([low, high])


def _of_few_successes(estimand: Estimand, tail: float) -> FloatArray:
    """Bounds of a weighted ratio to a random baseline whose successes or failures are effectively fewer than ten.

    float64[2, depths], NaN elsewhere. The rate has the bounds of `weighted_rate`, and the baseline is taken as it is:
    with so few of them nearly all uncertainty is about the rate, and resamples do not hold the heavy query that might
    succeed and did not.
    """
    first, counts = estimand.outcome.parts[0], estimand.outcome.counting()
    result = np.full((2, first.shape[1]), np.nan)
    if counts is None or estimand.aggregate.form not in ("ratio", "bits") or estimand.outcome.bounds is None:
        return result
    _, *others = estimand.means
    bounds = np.stack([estimand.aggregate.value(rate, *others) for rate in weighted_rate(first, counts, tail)])
    for column in range(first.shape[1]):
        success, weights = first[:, column], counts[:, column]
        rates = (np.isnan(success) | (success == 0) | (success == 1)).all()
        if rates and any(effective_size(weights[success == side]) < bounded.FEW for side in (0, 1)):
            result[:, column] = bounds[:, column]
    return result


def _beside_luck(estimand: Estimand, bounds: FloatArray, tail: float) -> FloatArray:
    """Bounds of a ratio to chance that hold chance wherever so many successes, or so few, are no rarer by luck.

    Few queries of unequal chances, of which some succeed anyway, hardly differ in their resamples. Of what lies beyond
    a placebo, the end of resamples without a success moves, too, if such successes are rarer by luck. Ends move to
    Clopper and Pearson's: whatever the chances of the queries, equal ones have the largest tail (Hoeffding 1956).
    """
    outcome, bounds, outwards = estimand.outcome, bounds.copy(), np.array([-1, 1])
    of_chance = estimand.aggregate.form != "mean" and outcome.bounds is not None and len(outcome.parts) == 3
    few = of_chance and len(outcome.defined) <= _MOST_BY_LUCK
    for column in np.flatnonzero(~np.isnan(bounds).any(axis=0) & few).tolist():
        success, chances = (part[outcome.defined[:, column], column] for part in outcome.parts[:2])
        chance, miss = (mean[column] for mean in estimand.means[1:])
        rates = np.array([0.0, chance, *clopper_pearson(success.sum(), len(success), tail)])
        lowest, at_chance, *ends = estimand.aggregate.value(rates, chance, miss)
        holds_chance, would_hold = (outwards * each >= outwards * at_chance for each in (bounds[:, column], ends))
        movable = ~holds_chance | (outcome.baseline is None) & (bounds[:, column] == lowest)
        # Farther away than this luck is rarer, whatever its distribution (Cantelli's inequality).
        away = (success - chances).sum()
        is_luck, far = np.array([away <= 0, away >= 0]), tail * away**2 >= (1 - tail) * (chances @ (1 - chances))
        if (~movable | far & (is_luck == holds_chance)).all() or not ((success == 0) | (success == 1)).all():
            continue
        is_luck = luck_reaches(chances, int(success.sum())) > tail
        moved = movable & (is_luck != holds_chance) & (is_luck == would_hold)
        bounds[:, column] = np.where(moved, ends, bounds[:, column])
    return bounds


def _if_all_agree(estimand: Estimand, tail: float) -> FloatArray:
    """Bounds of the figure if all queries have the same one: float64[2, depths]; NaN otherwise.

    If more than ε = 1 − tail^(1/n) of all queries differed, n queries that agree would be rarer than `tail`. So the
    mean is at most ε of the way from the common figure to either end of its range. If the common figure is at an end,
    this is Clopper and Pearson's bound. NaN for a figure without `bounds`.
    """
    part, known, aggregate = estimand.outcome.parts[0], estimand.outcome.defined, estimand.aggregate
    agree = np.where(known, part, np.inf).min(axis=0) == np.where(known, part, -np.inf).max(axis=0)
    if aggregate.form == "ratio":
        # The queries may share a ratio, and neither of its parts.
        single = estimand.single()
        agree |= np.fmax.reduce(single, initial=-np.inf) - np.fmin.reduce(single, initial=np.inf) <= 1e-12
    share = np.where(agree, 1 - tail ** (1 / np.maximum(estimand.effective, 1)), np.nan)
    first, *others = estimand.means
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([aggregate.value(first + share * (end - first), *others) for end in estimand.ends])
