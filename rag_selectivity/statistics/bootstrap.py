"""Bootstrap over queries, for every measure, depth and system from the same resamples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from rag_selectivity.data.ids import IntArray
from rag_selectivity.errors import InputError, examples
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.statistics import bounded
from rag_selectivity.statistics.exact import ends_if_all_agree, mid_p_rate
from rag_selectivity.statistics.quantiles import quantiles

METHODS = ("bca", "percentile", "poisson")
_CELLS_PER_CHUNK = 1 << 19
_COLUMNS_AT_ONCE = 768
#: Resampled figures closer than this, relative to the largest, are one figure: whole counts over whole
#: counts fall on few values, and which side of a tie the last digit lands on differs with the platform.
_SAME = 1e-11


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Intervals from resampled queries.

    Every measure, depth and system is resampled with the same draws of queries, so that their
    differences are paired. The resample counts times the value matrix give all means at once.

    Attributes
    ----------
    resamples : int
    seed : int
        For `numpy.random.default_rng`; equal seeds give equal figures.
    level : float
        Share of the resamples inside the interval.
    method : {"bca", "percentile", "poisson"}
        `percentile` takes the quantiles as they are, as published for BoR; it is too narrow for few
        queries and next to 0 and 1. `bca` corrects them for bias and skewness (Efron 1987), with the
        quantile of Student's t for few queries (Hesterberg 2015), and with equal resampled figures counted
        as halves on either side. A plain success rate, and BoR where chance is the same for all
        queries, it takes from the binomial distribution itself (mid-P).
        Both widen an interval in which all queries agree to what so many queries can tell:
        for a success rate that is Clopper and Pearson's exact bound. `poisson` draws by a hash of the query
        id, so that data in parts, on many machines, gives the very same figures (`evaluate` only).
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
    method: str = "bca"
    clusters: Mapping[str, object] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.resamples, bool) or not isinstance(self.resamples, int) or self.resamples < 1:
            raise InputError(f"bootstrap `resamples` must be a whole number ≥ 1, got {self.resamples!r}")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"bootstrap `seed` must be a whole number ≥ 0, got {self.seed!r}")
        if not 0 < self.level < 1:
            raise InputError(f"bootstrap `level` must be in the open interval (0, 1), got {self.level!r}")
        if self.method not in METHODS:
            raise InputError(f"bootstrap `method` must be one of {', '.join(METHODS)}, got {self.method!r}")

    @property
    def settings(self) -> dict[str, Any]:
        """What a report says of how its intervals were made."""
        said = {"method": self.method, "resamples": self.resamples, "seed": self.seed, "level": self.level}
        return {**said, "clusters": len(set(self.clusters.values()))} if self.clusters is not None else said

    @classmethod
    def of(cls, value: Bootstrap | str | None) -> Bootstrap | None:
        """A Bootstrap as it is, or one of a method by its name; `"poisson"` has 1,000 resamples."""
        if isinstance(value, str):
            return cls(method=value, resamples=1000) if value == "poisson" else cls(method=value)
        return value

    def intervals(
        self, outcomes: Sequence[Outcome], queries: Sequence[str] = ()
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Low and high for each outcome: float64[depths], NaN where fewer than two queries are defined.

        All outcomes must be over the same queries, whose names matter only where there are clusters. A
        resample that holds none of the defined queries is left out.
        """
        if self.method == "poisson":
            raise InputError("the Poisson bootstrap is for `evaluate`; here bca or percentile")
        units = self.units(queries)
        result = []
        estimands = [_of_outcome(outcome, units) for outcome in outcomes]
        for outcome, estimand, bounds in zip(outcomes, estimands, self._reduced(estimands, self._bounds), strict=True):
            bounds = np.sort(outcome.aggregate.link(bounds), axis=0)
            if self.method == "bca" and units is None:
                binomial = _of_success_rate(outcome, self._tail)
                bounds = np.where(np.isnan(binomial), bounds, binomial)
            low, high = _widened(bounds, _if_all_agree(outcome, estimand.units, self._tail), estimand.units)
            low, high = self._for_few(outcome, estimand, low, high)
            same = outcome.without_spread()
            result.append((np.where(same, np.nan, low), np.where(same, np.nan, high)))
        return result

    def _for_few(
        self, outcome: Outcome, estimand: _Estimand, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The bounds of means; where few units differ, no narrower than the interval of bounded values."""
        if outcome.aggregate.form != "mean" or outcome.bounds is None:
            return low, high
        low, high = low.copy(), high.copy()
        for column in np.flatnonzero(estimand.units > 1).tolist():
            inside = estimand.mask[:, column] > 0
            rows = np.stack([estimand.parts[0][inside, column], estimand.mask[inside, column]], axis=1)
            alone = (rows[:, 1] == 1).all()
            if (alone and np.isin(rows[:, 0], (0.0, 1.0)).all()) or not bounded.few_differ(rows):
                continue
            ends = outcome.ends_at(column)
            if ends is None:
                continue
            size = rows[:, 1].mean()
            below, above = bounded.ends(
                rows,
                np.array([ends[0] * size, size]),
                np.array([ends[1] * size, size]),
                lambda sums: sums[:, 0] / sums[:, 1],
                self.level,
                self.seed,
            )
            low[column], high[column] = min(low[column], below), max(high[column], above)
        return low, high

    def units(self, queries: Sequence[str]) -> IntArray | None:
        """The number of each query's cluster; None where every query is its own."""
        if self.clusters is None:
            return None
        group_of = {str(query): group for query, group in self.clusters.items()}
        absent = [query for query in queries if query not in group_of]
        if absent:
            raise InputError(f"clusters: {len(absent)} of the {len(queries)} queries have none ({examples(absent)})")
        number: dict[object, int] = {}
        return np.array([number.setdefault(group_of[query], len(number)) for query in queries], np.int64)

    @property
    def _tail(self) -> float:
        return (1 - self.level) / 2

    # -- resampling ------------------------------------------------------------------------------

    def _reduced(
        self, estimands: Sequence[_Estimand], reduce: Callable[[_Estimand, FloatArray], FloatArray]
    ) -> list[FloatArray]:
        """`reduce` of each estimand and its resampled statistic: float64[figures, depths].

        The columns are resampled a few hundred at a time, so that memory does not grow with the depths.
        """
        results: list[list[FloatArray]] = [[] for _ in estimands]
        batch: list[tuple[int, _Estimand, list[list[int]]]] = []
        columns = _Columns()

        def finish() -> None:
            nonlocal columns
            sums = self._resampled_sums(columns.matrix())
            for number, piece, places in batch:
                *parts, mask = (sums[:, place].T for place in places)
                with np.errstate(invalid="ignore", divide="ignore"):
                    resampled = piece.statistic(*(part / mask for part in parts))
                results[number].append(reduce(piece, resampled))
            batch.clear()
            columns = _Columns()

        for number, estimand in enumerate(estimands):
            for piece in estimand.pieces():
                batch.append((number, piece, [columns.add(part) for part in (*piece.parts, piece.mask)]))
                if len(columns) >= _COLUMNS_AT_ONCE:
                    finish()
        if batch:
            finish()
        return [np.concatenate(pieces, axis=1) for pieces in results]

    def _resampled_sums(self, matrix: FloatArray) -> FloatArray:
        """Column sums under each resample: float64[resamples, columns]."""
        rows = len(matrix)
        sums = np.empty((self.resamples, matrix.shape[1]))
        rng = np.random.default_rng(self.seed)
        step = max(1, _CELLS_PER_CHUNK // max(1, rows))
        for start in range(0, self.resamples, step):
            stop = min(start + step, self.resamples)
            drawn = rng.integers(0, rows, size=(stop - start, rows))
            drawn += np.arange(stop - start)[:, None] * rows
            counts = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
            sums[start:stop] = counts.astype(np.float64) @ matrix
        return sums

    def _bounds(self, estimand: _Estimand, resampled: FloatArray) -> FloatArray:
        """Low and high of the statistic: float64[2, depths]."""
        if self.method == "percentile":
            return _quantiles(resampled, [self._tail, 1 - self._tail])
        return _bca(estimand, resampled, self._tail)


@dataclass(frozen=True, slots=True)
class _Estimand:
    """A statistic of column means: the columns' sums over each unit, and how many queries of the unit count."""

    parts: tuple[FloatArray, ...]
    mask: FloatArray
    statistic: Callable[..., FloatArray]

    @property
    def units(self) -> IntArray:
        """Units with a defined query, at each depth."""
        result: IntArray = (self.mask > 0).sum(axis=0)
        return result

    @property
    def value(self) -> FloatArray:
        """The statistic of the queries as they are."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.statistic(*(part.sum(axis=0) / self.mask.sum(axis=0) for part in self.parts))

    def without_each(self) -> FloatArray:
        """The statistic without each unit in turn: float64[units, depths]."""
        left = self.mask.sum(axis=0) - self.mask
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.statistic(*((part.sum(axis=0) - part) / left for part in self.parts))

    def pieces(self, depths: int = 64) -> Iterator[_Estimand]:
        """The same at a few depths at a time."""
        for start in range(0, max(1, self.mask.shape[1]), depths):
            some = slice(start, start + depths)
            yield _Estimand(tuple(part[:, some] for part in self.parts), self.mask[:, some], self.statistic)


def _of_outcome(outcome: Outcome, units: IntArray | None) -> _Estimand:
    parts = tuple(_by_unit(part, units) for part in outcome.parts)
    return _Estimand(parts, _by_unit(outcome.defined.astype(np.float64), units), outcome.aggregate.statistic)


def _by_unit(block: FloatArray, units: IntArray | None) -> FloatArray:
    """Sums over the queries of each unit; NaN counts as 0, since the masks carry it."""
    filled = np.nan_to_num(block, nan=0.0)
    if units is None:
        return filled
    sums = np.zeros((int(units.max(initial=-1)) + 1, filled.shape[1]))
    np.add.at(sums, units, filled)
    return sums


class _Columns:
    """Distinct columns, each kept once: Success, EF and BoR share most of theirs."""

    def __init__(self) -> None:
        self._index: dict[bytes, int] = {}
        self._columns: list[FloatArray] = []

    def __len__(self) -> int:
        return len(self._columns)

    def add(self, block: FloatArray) -> list[int]:
        """Where each column of the block is kept."""
        places = []
        for column in block.T:
            column = np.ascontiguousarray(column)
            key = blake2b(column.tobytes(), digest_size=16).digest()
            if key not in self._index:
                self._index[key] = len(self._columns)
                self._columns.append(column)
            places.append(self._index[key])
        return places

    def matrix(self) -> FloatArray:
        return np.stack(self._columns, axis=1)


# -- what the resamples say ---------------------------------------------------------------------------


def _quantiles(resampled: FloatArray, levels: list[float]) -> FloatArray:
    """Quantiles along each row, leaving out resamples where the statistic does not exist."""
    if not np.isnan(resampled).any():
        return quantiles(resampled, levels)
    result = np.full((len(levels), len(resampled)), np.nan)
    for row, values in enumerate(resampled):
        present = values[~np.isnan(values)]
        if len(present):
            result[:, row] = quantiles(present, levels)
    return result


def _bca(estimand: _Estimand, resampled: FloatArray, tail: float) -> FloatArray:
    """Bias-corrected and accelerated bounds: float64[2, depths]."""
    from scipy.special import ndtr, ndtri, stdtrit

    ordered = np.sort(resampled, axis=1)  # NaN last
    present = ordered.shape[1] - np.isnan(ordered).sum(axis=1)
    value = estimand.value
    below, upto = _tie(ordered, value, present)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (below + upto) / (2 * present)
        bias = ndtri(np.clip(share, 0.5 / present, 1 - 0.5 / present))

        away = np.where(estimand.mask > 0, value - estimand.without_each(), 0.0)
        away = np.where(np.isfinite(away), away, 0.0)
        skewness = (away**3).sum(axis=0) / (6 * (away**2).sum(axis=0) ** 1.5)
        acceleration = np.nan_to_num(skewness, nan=0.0)

        units = np.maximum(estimand.units, 2)
        reach = -stdtrit(units - 1.0, tail) * np.sqrt(units / (units - 1))
        bounds = []
        for z in (-reach, reach):
            shifted = bias + z
            divisor = 1 - acceleration * shifted
            level = ndtr(np.where(divisor > 0, bias + shifted / divisor, np.copysign(np.inf, z)))
            bounds.append(_mid_quantile(ordered, level, present))
    return np.stack(bounds)


def _tie(ordered: FloatArray, value: FloatArray, present: IntArray) -> tuple[IntArray, IntArray]:
    """How many figures of each row lie below the value, and how many below or beside it."""
    largest = np.abs(ordered[np.arange(len(ordered)), np.maximum(present - 1, 0)])
    with np.errstate(invalid="ignore"):
        room = _SAME * np.maximum(np.maximum(largest, np.abs(ordered[:, 0])), np.abs(value))
        room = np.where(np.isfinite(room), room, 0.0)
        below = (ordered < (value - room)[:, None]).sum(axis=1)
        upto = (ordered <= (value + room)[:, None]).sum(axis=1)
    return below, upto


def _mid_quantile(ordered: FloatArray, level: FloatArray, present: IntArray) -> FloatArray:
    """Quantiles along each row from the mid-distribution: equal figures stand at the middle of their share."""
    rows = np.arange(len(ordered))

    def at(place: IntArray) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        value = ordered[rows, np.clip(place, 0, np.maximum(present - 1, 0))]
        below, upto = _tie(ordered, value, present)
        return value, (below + upto) / 2, below, upto

    wanted = level * present
    value, middle, below, upto = at(np.floor(np.nan_to_num(wanted)).astype(np.int64))
    beside = np.where(wanted > middle, upto, below - 1)
    other, other_middle, _, _ = at(beside)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (wanted - middle) / (other_middle - middle)
        between = value + share * (other - value)
    inside = (beside >= 0) & (beside < present) & np.isfinite(value) & np.isfinite(other) & (other_middle != middle)
    return np.where(present > 0, np.where(inside, between, value), np.nan)


def _of_success_rate(outcome: Outcome, tail: float) -> FloatArray:
    """Bounds from the binomial distribution where every query is a success or none and all else is the same for all.

    float64[2, depths], NaN elsewhere. Mid-P: half of the probability of what was observed counts as
    more extreme (Lancaster 1961).
    """
    first, *others = outcome.parts
    defined = outcome.defined
    plain = np.where(defined, (first == 0) | (first == 1), True).all(axis=0)
    for part in others:
        plain &= np.where(defined, part, -np.inf).max(axis=0) == np.where(defined, part, np.inf).min(axis=0)
    result = np.full((2, first.shape[1]), np.nan)
    if outcome.bounds is None or not plain.any():
        return result
    trials = defined.sum(axis=0)[plain]
    successes = np.where(defined, first, 0.0).sum(axis=0)[plain]
    means = [mean[plain] for mean in _means(outcome)[1:]]
    with np.errstate(invalid="ignore", divide="ignore"):
        for row, share in enumerate((1 - tail, tail)):
            result[row, plain] = outcome.aggregate.value(mid_p_rate(successes, trials, share), *means)
    return result


# -- samples without any spread -----------------------------------------------------------------------


def _widened(bounds: FloatArray, exact: FloatArray, units: IntArray) -> tuple[FloatArray, FloatArray]:
    """The bounds, no narrower than the exact ones; NaN where there are fewer than two units."""
    low, high = np.fmin(bounds[0], exact[0]), np.fmax(bounds[1], exact[1])
    return np.where(units < 2, np.nan, low), np.where(units < 2, np.nan, high)


def _if_all_agree(outcome: Outcome, units: IntArray, tail: float) -> FloatArray:
    first = outcome.parts[0]
    lowest = np.where(outcome.defined, first, np.inf).min(axis=0)
    agree = lowest == np.where(outcome.defined, first, -np.inf).max(axis=0)
    return ends_if_all_agree(_means(outcome), agree, outcome.bounds, units, tail, outcome.aggregate)


def _means(outcome: Outcome) -> list[FloatArray]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return [np.nan_to_num(part, nan=0.0).sum(axis=0) / outcome.defined.sum(axis=0) for part in outcome.parts]
