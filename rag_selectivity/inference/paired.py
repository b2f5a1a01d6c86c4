"""Two runs over the same queries: a p-value and an interval from one distribution, and Holm's correction.

If two runs were interchangeable, the figures of each query could be swapped between them. The p-value is the share of
all swaps that give a difference at least as large as the observed one. The interval contains the differences that the
same test would not reject. For success rates it is Tango's score interval, adjusted so that it agrees with McNemar's
exact test. For means and ratios of means it comes from the figures of random subsets of the queries, which is
equivalent to inverting the test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.inference import bounded, mcnemar, score
from rag_selectivity.inference.draws import Columns
from rag_selectivity.inference.interval import settled
from rag_selectivity.inference.interval_methods import Estimand
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.tables.ids import IntArray

#: Up to this many differences that are not zero, all combinations of their signs are tried.
_ENUMERATED = 16
#: Up to this many units, all swaps are tried for the interval too.
ALL_SWAPS = 12
#: Two sums that differ by less than this share of the largest possible sum are equal.
_SAME = 1e-11
_CELLS_PER_CHUNK = 1 << 21
#: The test of a difference that one further query could turn: it allows for that query.
BOUNDED = "bounded"
#: Differences that so few further queries could turn are marked: their test errs too often where gains are rare.
TURNED_BY_FEW = 2 * (1 + _SAME)
#: A smaller skewness changes no digit.
_SYMMETRIC = 1e-6


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two runs at each depth: float64[depths] each, NaN if undefined.

    Attributes
    ----------
    value : the difference of the figures (for BoR in bits)
    low, high : the interval; it contains 0 if and only if p is more than 1 − level
    p : the two-sided p-value
    test : `exact` if all swaps were counted, `randomised` if drawn, `bounded` if one more query could turn the sign
    turned_by : how many further queries, as far the other way as can be, would turn the difference; or NaN
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    test: tuple[str, ...]
    turned_by: FloatArray

    @classmethod
    def of(cls, rows: Sequence[tuple[float, float, float, float, str]], turned_by: Sequence[float]) -> Difference:
        """From (value, low, high, p, test) of each depth."""
        value, low, high, p = np.array([row[:4] for row in rows], np.float64).reshape(-1, 4).T
        return cls(value, low, high, p, tuple(row[4] for row in rows), np.array(turned_by, np.float64))


def paired_difference(
    first: Outcome,
    second: Outcome,
    *,
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 7,
    units: IntArray | None = None,
) -> Difference:
    """The difference between two outcomes (first minus second) over the queries where both are defined.

    Parameters
    ----------
    first, second : Outcome
        Outcomes of the same measure at the same depths, over the same queries.
    level : float
    draws : int
        The number of random swaps, used if there are too many to count all of them.
    units : int64[queries], optional
        The number of each query's cluster; clusters are swapped whole.

    Returns
    -------
    Difference

    References
    ----------
    Fisher 1935; McNemar 1947; Hartigan 1969, Using subsample values as typical values (the inversion).
    """
    pairs = [Pair.of(first, second, column, units) for column in range(first.parts[0].shape[1])]
    _mcnemar([pair for pair in pairs if pair.is_success_rate], level, seed)
    _swap([pair for pair in pairs if not pair.is_success_rate and pair.n > 0], level, draws, seed)
    columns = [(pair.value, pair.low, pair.high, pair.p, pair.test) for pair in pairs]
    return Difference.of(columns, [pair.turned_by for pair in pairs])


@dataclass(slots=True)
class Pair:
    """Both runs at one depth: each unit's sums of numerators and denominators, and the results computed from them.

    `form` is the scale of the difference: `mean`, `ratio` or `bits`; for a mean, the denominator counts queries.
    `sizes` holds the number of queries of each unit, `ends` the range of a query's numerator. With weights, all sums
    are weighted, and `sizes` holds sums of weights.
    """

    form: str
    top: FloatArray
    bottom: FloatArray
    other_top: FloatArray
    other_bottom: FloatArray
    sizes: FloatArray
    ends: tuple[float, float] | None
    weighted: bool = False
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    test: str = "exact"

    @classmethod
    def of(cls, first: Outcome, second: Outcome, column: int, units: IntArray | None) -> Pair:
        at, both = slice(column, column + 1), (first.defined & second.defined)[:, column]
        sides = [Estimand.of(outcome.at(at), units, both) for outcome in (first, second)]
        present = sides[0].mask[:, 0] > 0
        form, sizes = first.aggregate.form, sides[0].mask[present, 0]
        top, other_top = (side.parts[0][present, 0] for side in sides)
        # The third part of a ratio, if there is one, is 1 minus the second, accurate near 1.
        bottom, other_bottom = (sizes if form == "mean" else side.parts[1][present, 0] for side in sides)
        # A difference that is only rounding is none.
        near = np.abs(top - other_top) <= _SAME * np.maximum(np.abs(top), np.abs(other_top))
        other_top = np.where(near, top, other_top)
        ends = first.ends_at(column) or (0.0, math.inf)
        known = ends if math.isfinite(ends[1] - ends[0]) else None
        pair = cls(form, top, bottom, other_top, other_bottom, sizes, known, sides[0].weighted)
        with np.errstate(invalid="ignore"):
            pair.value = float(np.subtract(*(side.outcome.value()[0] for side in sides)))
        return pair

    @property
    def n(self) -> int:
        """The number of units."""
        return len(self.top)

    @property
    def effective(self) -> float:
        """The number of units; with weights, the effective number (`effective_size`)."""
        return effective_size(self.sizes) if self.weighted else float(self.n)

    @property
    def unseen(self) -> float:
        """How many queries an unseen unit stands for; with weights, the average of what is weighed."""
        return float((self.sizes**2).sum() / self.sizes.sum()) if self.weighted else float(self.sizes.mean())

    @property
    def turned_by(self) -> float:
        """How many further queries, as far the other way as can be, would turn a difference; NaN of two denominators.

        Where large differences are rare and small ones go the other way, a sample without a large one looks as sure as
        can be: with 8 queries, and one large difference expected, swaps reject equal means in .34 of all samples.
        """
        if not self.same_bottom or self.ends is None or not self.n:
            return math.nan
        return abs(float(self.gaps.sum())) / ((self.ends[1] - self.ends[0]) * self.unseen)

    @property
    def gaps(self) -> FloatArray:
        """The differences of the numerators."""
        return self.top - self.other_top

    @property
    def same_bottom(self) -> bool:
        return bool(np.array_equal(self.bottom, self.other_bottom))

    @property
    def is_success_rate(self) -> bool:
        """Whether every query is a success or a failure in each run, and the denominators are the same."""
        values = np.concatenate([self.top, self.other_top])
        alone = not self.weighted and bool((self.sizes == 1).all())
        return alone and self.n > 0 and self.same_bottom and bool(((values == 0) | (values == 1)).all())

    @property
    def columns(self) -> list[FloatArray]:
        """Numerators and denominators of both runs."""
        return [self.top, self.bottom, self.other_top, self.other_bottom]

    @property
    def steps(self) -> FloatArray:
        """The first-order effect of each unit on the difference."""
        return influence(self.top, self.bottom, self.form) - influence(self.other_top, self.other_bottom, self.form)

    def settle(self, low: float, high: float, level: float) -> None:
        """Set the interval if there are two units or more, adjusted so that it agrees with the test."""
        if self.n > 1 and not math.isnan(self.value):
            self.low, self.high = settled(self.value, self.p, low, high, level)


# -- success rates -------------------------------------------------------------------------------------


def _mcnemar(pairs: Sequence[Pair], level: float, seed: int) -> None:
    """McNemar's exact test, with a score interval of the difference or of the ratio.

    If few queries differ, or if a run has few successes, the score interval of a ratio is too narrow (its coverage
    falls to .87). The interval is then at least as wide as the interval of bounded values.
    """
    counts = [(pair.n, (pair.gaps > 0).sum(), (pair.gaps < 0).sum(), pair.top @ pair.other_top) for pair in pairs]
    n, gained, lost, both = np.array(counts, np.float64).reshape(-1, 4).T
    of_rates = score.paired_difference(gained, lost, n, level)
    of_bits = score.paired_ratio(both, gained, lost, n, level)
    p = mcnemar.two_sided_p(gained, lost)
    for i, pair in enumerate(pairs):
        pair.p = float(p[i])
        low, high = (float(end[i]) for end in (of_bits if pair.form == "bits" else of_rates))
        rare = min(gained[i] + lost[i], both[i] + min(gained[i], lost[i])) < bounded.FEW
        if pair.form == "bits" and rare and pair.n > 1:
            ends = _bounded(pair, level, seed)
            low, high = float(np.fmin(low, ends[0])), float(np.fmax(high, ends[1]))
        chance = float(pair.bottom.mean()) or math.nan if pair.form == "ratio" else 1.0
        pair.settle(low / chance, high / chance, level)


# -- means, and ratios of means ------------------------------------------------------------------------


def _swap(pairs: Sequence[Pair], level: float, draws: int, seed: int) -> None:
    """Swaps of the runs' figures unit by unit: the p-value of no difference, and the interval by inversion."""
    for n in dict.fromkeys(pair.n for pair in pairs):
        group = [pair for pair in pairs if pair.n == n]
        every, columns = n <= ALL_SWAPS, Columns()
        places = [columns.add(np.stack(pair.columns, axis=1)) for pair in group]
        matrix = columns.matrix()
        chunks = [all_signs(n)] if every else drawn_signs(n, draws, seed)
        signed = np.concatenate([signs @ matrix for signs in chunks])
        for pair, of_pair in zip(group, places, strict=True):
            _conclude(pair, _swapped(pair.form, matrix[:, of_pair], signed[:, of_pair]), every, level, seed)


def _swapped(form: str, columns: FloatArray, signed: FloatArray) -> FloatArray:
    """(a, b) for each swap: the swap gives the difference a − θ·b if the true difference is θ.

    For bits, θ is the ratio itself. `signed` are sums of the columns in which the units that are swapped have a minus.
    """
    one, down, other, other_down = columns.sum(axis=0)
    plus_one, plus_down, plus_other, plus_other_down = signed.T
    with np.errstate(invalid="ignore", divide="ignore"):
        # Twice the sums over both runs, each where it stands after the swap.
        first_down = down + other_down + (plus_down - plus_other_down)
        second_down = down + other_down - (plus_down - plus_other_down)
        of_first = (one + plus_one) / first_down - (one - plus_one) / second_down
        of_second = (other + plus_other) / second_down - (other - plus_other) / first_down
        if form == "bits":
            return np.stack([of_first, of_second])
        return np.stack([of_first - of_second, (down + plus_down) / first_down - (down - plus_down) / second_down])


def _conclude(pair: Pair, sums: FloatArray, every: bool, level: float, seed: int) -> None:
    columns = np.stack(pair.columns, axis=1)
    a, b = _swapped(pair.form, columns, columns.sum(axis=0)[None, :])[:, 0].tolist()
    null = 1.0 if pair.form == "bits" else 0.0
    distances = np.abs(sums[0] - null * sums[1])
    room = _SAME * max(float(np.abs(sums).max()), abs(a), abs(b))
    reached = int((distances >= abs(a - null * b) - room).sum())
    total, few = len(distances), None if every else _few_gaps(pair)
    if every or few is not None:
        pair.p = reached / total if few is None else few
    else:
        pair.p, pair.test = (reached + 1) / (total + 1), "randomised"
    if pair.p <= 1 - level and pair.turned_by <= 1 + _SAME:
        low, high, pair.p = _bounded(pair, level, seed)
        pair.test = BOUNDED
    elif _is_coarse(pair) or math.isinf(pair.value):
        low, high, _ = _bounded(pair, level, seed)
    else:
        low, high = _inverted(pair, sums, (a, b), every, level)
        wide = _skewed(pair, level)
        low, high = float(np.fmin(low, wide[0])), float(np.fmax(high, wide[1]))
        if pair.p <= 1 - level and wide[0] <= 0 <= wide[1]:
            pair.p = max(pair.p, wide[2])
    pair.settle(low, high, level)


def _few_gaps(pair: Pair) -> float | None:
    """The exact p-value if few differences are not zero, or if all of these have the same size; otherwise None."""
    if not pair.same_bottom:
        return None
    values = pair.gaps[pair.gaps != 0]
    sizes = np.abs(values)
    if len(values) and sizes.max() - sizes.min() <= _SAME * sizes.max():
        return float(mcnemar.two_sided_p((values > 0).sum(), (values < 0).sum()))
    if len(values) <= _ENUMERATED:
        sums = all_signs(len(values)) @ values
        return float((np.abs(sums) >= abs(values.sum()) - _SAME * sizes.sum()).mean())
    return None


def _inverted(pair: Pair, sums: FloatArray, at: tuple[float, float], every: bool, level: float) -> tuple[float, float]:
    """The interval of the differences that the test does not reject, from quantiles over single swaps."""
    a, b = at
    with np.errstate(invalid="ignore", divide="ignore"):
        roots = np.sort(np.stack([(a - sums[0]) / (b - sums[1]), (a + sums[0]) / (b + sums[1])]), axis=0)
    # A swap of no unit or of all units accepts every difference. So does, to be safe, a swap with |b| above the total.
    open_ended = np.isnan(roots).any(axis=0) | (np.abs(sums[1]) > abs(b) * (1 + _SAME))
    lows = np.sort(np.where(open_ended, -np.inf, roots[0]))
    highs = np.sort(np.where(open_ended, np.inf, roots[1]))
    place = math.floor((1 - level) * (len(lows) + (0 if every else 1)) + 1e-9) - (0 if every else 1)
    low, high = (-np.inf, np.inf) if place < 0 else (lows[place], highs[len(highs) - 1 - place])
    if pair.form != "bits":
        span = math.inf if pair.form != "mean" or pair.ends is None else pair.ends[1] - pair.ends[0]
        return max(float(low), -span), min(float(high), span)
    with np.errstate(divide="ignore"):
        return float(np.log2(max(low, 0.0))), float(np.log2(max(high, 0.0)))


def _skewed(pair: Pair, level: float) -> tuple[float, float, float]:
    """Hall's interval and p, which allow for skewness of the units' differences; random signs do not."""
    steps, spread = pair.steps, float(pair.steps.std())
    if not (spread > 0 and math.isfinite(pair.value)):
        return math.nan, math.nan, math.nan
    skewness = float(((steps / spread) ** 3).mean()) / math.sqrt(pair.n)
    moments = pair.value, spread / math.sqrt(pair.n - 1), skewness, max(pair.effective - 1, 1.0)
    return *skewed_ends(*moments, level), skewed_p(*moments)


def welch(variances: Sequence[float], counts: Sequence[int]) -> tuple[float, float]:
    """Standard error and degrees of freedom of the difference of two means; 0 or NaN without a spread.

    Welch 1947, The generalization of Student's problem when several different population variances are involved.
    """
    parts = [variance / count if count else math.nan for variance, count in zip(variances, counts, strict=True)]
    if not sum(parts) > 0:
        return sum(parts), 1.0
    squares = [part**2 / (count - 1) for part, count in zip(parts, counts, strict=True)]
    return math.sqrt(sum(parts)), sum(parts) ** 2 / sum(squares)


def skewed_ends(value: float, error: float, skewness: float, freedom: float, level: float) -> tuple[float, float]:
    """The ends of Student's t interval of a figure with this standard error and skewness.

    Hall 1992, On the removal of skewness by transformation.
    """
    from scipy.special import stdtrit

    reach = -float(stdtrit(freedom, (1 - level) / 2))

    def untransformed(x: float) -> float:
        root = float(np.cbrt(1 + skewness * (x - skewness / 6)))
        return x if abs(skewness) < _SYMMETRIC else 3 / skewness * (root - 1)

    return value - error * untransformed(reach), value - error * untransformed(-reach)


def skewed_p(value: float, error: float, skewness: float, freedom: float) -> float:
    """The two-sided p-value of 0 that belongs to `skewed_ends`."""
    from scipy.special import stdtr

    t = value / error
    if abs(skewness) >= _SYMMETRIC:
        t = ((1 + skewness * t / 3) ** 3 - 1) / skewness + skewness / 6
    return float(2 * stdtr(freedom, -abs(t)))


def influence(top: FloatArray, bottom: FloatArray, form: str) -> FloatArray:
    """The first-order effect of each unit on a mean, a ratio of means or its log2: float64[units], with mean 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = top.mean() / bottom.mean()
        steps: FloatArray = (top - ratio * bottom) / bottom.mean()
        return steps / (ratio * math.log(2)) if form == "bits" else steps


def _is_coarse(pair: Pair) -> bool:
    """Whether too few units differ from the most common one for an interval from subsets."""
    rows = np.stack([pair.gaps] if pair.same_bottom else [pair.top, pair.other_top], axis=1)
    return bounded.few_differ(rows / pair.sizes[:, None], pair.sizes) if pair.weighted else bounded.few_differ(rows)


def _bounded(pair: Pair, level: float, seed: int) -> tuple[float, float, float]:
    """The interval and p of bounded values; without known bounds there are none."""
    if pair.ends is None:
        return math.nan, math.nan, math.nan
    lowest, highest = (end * pair.unseen for end in pair.ends)
    share = pair.unseen / float(pair.sizes.mean()) if pair.weighted else 1.0
    down, other_down = share * float(pair.bottom.mean()), share * float(pair.other_bottom.mean())
    rows, low, high = pair.columns, [lowest, down, highest, other_down], [highest, down, lowest, other_down]
    if pair.same_bottom and pair.form == "bits":
        # They cancel: with one for all, there are few different rows.
        rows[1] = rows[3] = np.full(pair.n, pair.bottom.mean())
    elif pair.same_bottom:
        rows, low, high = [pair.gaps, pair.bottom], [lowest - highest, down], [highest - lowest, down]

    def statistic(sums: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = sums[:, ::2] / sums[:, 1::2]
            if ratios.shape[1] == 1:
                return ratios[:, 0]
            return np.log2(ratios[:, 0]) - np.log2(ratios[:, 1]) if pair.form == "bits" else ratios[:, 0] - ratios[:, 1]

    below, above = bounded.draws_of(np.stack(rows, axis=1), np.array(low), np.array(high), statistic, seed)
    p = 2 * min(float((below <= 0).mean()), float((above >= 0).mean()))
    return bounded.quantile(below, (1 - level) / 2), bounded.quantile(above, (1 + level) / 2), min(1.0, p)


@cache
def all_signs(count: int) -> FloatArray:
    """All combinations of signs: float64[2^count, count]."""
    return np.where((np.arange(1 << count)[:, None] >> np.arange(count)) & 1, 1.0, -1.0)


def drawn_signs(count: int, draws: int, seed: int) -> Iterator[FloatArray]:
    """Random signs, float64[some draws, count], block by block."""
    rng = np.random.default_rng(seed)
    # Each draw uses whole 32-bit words, so that its signs do not depend on the size of the block.
    row_bytes = -(-count // 32) * 4
    step = max(1, _CELLS_PER_CHUNK // max(1, count))
    for start in range(0, draws, step):
        some = min(step, draws - start)
        words = np.frombuffer(rng.bytes(some * row_bytes), np.uint8).reshape(some, row_bytes)
        yield np.where(np.unpackbits(words, axis=1, count=count), 1.0, -1.0)


def holm(p: NDArray[np.float64]) -> FloatArray:
    """Holm's step-down correction: p-values adjusted for the whole family; NaN is left out and stays NaN.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    result = np.full(len(p), np.nan)
    # NaN is sorted last.
    order = np.argsort(p, kind="stable")[: int((~np.isnan(p)).sum())]
    steps = p[order] * (len(order) - np.arange(len(order)))
    result[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return result
