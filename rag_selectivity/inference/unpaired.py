"""Two runs over different queries: Fisher's test and a score interval for rates, studentized permutations for means.

If the arms were interchangeable, each query could be in either arm. The statistic is divided by its standard error in
every permutation, so that the test keeps its level for arms of different size and spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference import bounded, score
from rag_selectivity.inference.bisection import end_of
from rag_selectivity.inference.paired import Difference, settled
from rag_selectivity.measures.base import FloatArray, Outcome

_SAME = 1e-11
_CELLS_PER_CHUNK = 1 << 21
_HALVINGS = 50


def unpaired_difference(
    first: Outcome, second: Outcome, *, level: float = 0.95, draws: int = 10_000, seed: int = 7
) -> Difference:
    """The difference between two outcomes (first minus second), each over its own queries.

    Parameters
    ----------
    first, second : Outcome
        Outcomes of the same measure at the same depths.
    level : float
    draws : int
        The number of random permutations of the queries over both arms.

    Returns
    -------
    Difference

    Raises
    ------
    InputError
        If queries have unequal weights.

    References
    ----------
    Fisher 1935; Miettinen and Nurminen 1985; Koopman 1984; Janssen 1997, Studentized permutation tests.
    """
    if first.counting() is not None or second.counting() is not None:
        raise InputError("an unpaired comparison cannot be weighted: leave the weights out, or compare in pairs")
    columns = [_of_column(first, second, column, level, draws, seed) for column in range(first.parts[0].shape[1])]
    value, low, high, p = np.array([column[:4] for column in columns], np.float64).reshape(-1, 4).T
    return Difference(value, low, high, p, tuple(column[4] for column in columns))


def _of_column(
    first: Outcome, second: Outcome, column: int, level: float, draws: int, seed: int
) -> tuple[float, float, float, float, str]:
    one, other = (_Arm.of(outcome, column) for outcome in (first, second))
    values = [outcome.value()[column] for outcome in (first, second)]
    with np.errstate(invalid="ignore"):
        value = float(np.subtract(*values))
    if math.isnan(value) or min(len(one.top), len(other.top)) < 2:
        return value, math.nan, math.nan, math.nan, "exact"
    form = first.aggregate.form
    bottoms, tops = np.concatenate([one.bottom, other.bottom]), np.concatenate([one.top, other.top])
    if ((tops == 0) | (tops == 1)).all() and bottoms.min() == bottoms.max():
        p, low, high = _of_rates(one, other, form, level)
        test = "exact"
    else:
        permuted = _Permuted.of(one, other, form, draws, seed)
        p, test = permuted.p(1.0 if form == "bits" else 0.0), "randomised"
        low, high = _bounded(first, [one, other], column, level, seed) or permuted.interval(level)
    return value, *settled(value, p, low, high, level), p, test


@dataclass(frozen=True, slots=True)
class _Arm:
    """Numerators and denominators of an arm's queries; for a mean the denominators are 1."""

    top: FloatArray
    bottom: FloatArray

    @classmethod
    def of(cls, outcome: Outcome, column: int) -> _Arm:
        known = outcome.defined[:, column]
        top = outcome.parts[0][known, column]
        return cls(top, np.ones(len(top)) if outcome.aggregate.form == "mean" else outcome.parts[1][known, column])

    @property
    def ratio(self) -> float:
        mean = float(self.bottom.mean())
        return float(self.top.mean()) / mean if mean > 0 else math.nan


def _of_rates(one: _Arm, other: _Arm, form: str, level: float) -> tuple[float, float, float]:
    from scipy.stats import fisher_exact

    counts = np.array([[arm.top.sum(), len(arm.top)] for arm in (one, other)])
    p = float(fisher_exact(np.stack([counts[:, 0], counts[:, 1] - counts[:, 0]], axis=1)).pvalue)
    of = score.unpaired_ratio if form == "bits" else score.unpaired_difference
    low, high = (float(end) for end in of(counts[0, 0], counts[0, 1], counts[1, 0], counts[1, 1], level))
    chance = float(one.bottom.mean()) if form == "ratio" else 1.0
    return p, low / chance, high / chance


def _bounded(outcome: Outcome, arms: list[_Arm], column: int, level: float, seed: int) -> tuple[float, float] | None:
    """If few queries of an arm differ: an interval from the intervals of both arms (MOVER); otherwise None.

    Zou and Donner 2008, Construction of confidence limits about effect measures.
    """
    if outcome.aggregate.form != "mean" or not any(bounded.few_differ(arm.top[:, None]) for arm in arms):
        return None
    known = outcome.ends_at(column)
    if known is None:
        return math.nan, math.nan
    lowest, highest = (np.array([end]) for end in known)
    ends = [bounded.ends(arm.top[:, None], lowest, highest, lambda sums: sums[:, 0], level, seed) for arm in arms]
    means = [arm.ratio for arm in arms]
    below = math.hypot(means[0] - ends[0][0], ends[1][1] - means[1])
    above = math.hypot(ends[0][1] - means[0], means[1] - ends[1][0])
    return means[0] - means[1] - below, means[0] - means[1] + above


@dataclass(frozen=True, slots=True)
class _Permuted:
    """Sums of both groups under every permutation, from which the statistic for any difference θ is computed.

    `groups[g][arm]` holds Σtop, Σbottom, Σtop², Σbottom², Σtop·bottom of the arm's queries in the group: float64[5,
    draws + 1], where the first column has the arms unchanged; `counts` holds the sizes of the groups.
    """

    groups: tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
    counts: tuple[int, int]
    form: str
    centre: float
    ends: tuple[float, float]

    @classmethod
    def of(cls, one: _Arm, other: _Arm, form: str, draws: int, seed: int) -> _Permuted:
        # Scale the denominators to a mean of 1, so that an arm with larger denominators does not weigh more.
        columns = []
        for arm in (one, other):
            top, bottom = arm.top / arm.bottom.mean(), arm.bottom / arm.bottom.mean()
            columns.append(np.stack([top, bottom, top**2, bottom**2, top * bottom], axis=1))
        n, m = len(one.top), len(other.top)
        table = np.zeros((n + m, 10))
        table[:n, :5], table[n:, 5:] = columns
        sums = np.concatenate([inside @ table for inside in (_first(n, m), *_drawn(n, m, draws, seed))]).T
        total = table.sum(axis=0)[:, None]
        if form == "bits":
            centre = one.ratio / other.ratio if other.ratio > 0 else math.inf
        else:
            centre = one.ratio - other.ratio
        reach = 1 + 2 * max(float(np.abs(arm.top).max() / max(arm.bottom.mean(), 1e-300)) for arm in (one, other))
        ends = (0.0, math.inf) if form == "bits" else (centre - reach, centre + reach)
        return cls(((sums[:5], sums[5:]), (total[:5] - sums[:5], total[5:] - sums[5:])), (n, m), form, centre, ends)

    def statistic(self, theta: float) -> FloatArray:
        """The studentized distance of the groups if the first arm had θ less (bits: the second had θ times as much)."""
        figures = []
        for (mine, others), count in zip(self.groups, self.counts, strict=True):
            if self.form == "bits":
                shifted = _scaled(others, theta)
                sums = mine + shifted
            else:
                sums = _lowered(mine, theta) + others
            top, bottom, top2, bottom2, product = sums
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = top / bottom
                spread = (top2 - 2 * ratio * product + ratio**2 * bottom2) / bottom**2 * count / max(count - 1, 1)
            figures.append((ratio, np.maximum(spread, 0.0)))
        (one, spread), (other, other_spread) = figures
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = one - other
            return np.where(np.abs(gap) <= _SAME, 0.0, np.abs(gap) / np.sqrt(spread + other_spread))

    def p(self, theta: float) -> float:
        """The share of permutations with a distance at least as large as that of the arms, if their difference is θ."""
        distances = self.statistic(theta)
        return float((distances >= distances[0] * (1 - 1e-9)).mean())

    def interval(self, level: float) -> tuple[float, float]:
        """The differences that are not rejected, by bisection from the estimate outwards."""
        if not math.isfinite(self.centre) or (self.form == "bits" and self.centre <= 0):
            return -math.inf, math.inf
        if self.form != "bits":
            return self._end(self.ends[0], level, lambda x: x), self._end(self.ends[1], level, lambda x: x)
        low, high = (self._end(math.log2(self.centre) + step, level, lambda x: 2.0**x) for step in (-30.0, 30.0))
        return low, high

    def _end(self, outside: float, level: float, theta: Callable[[float], float]) -> float:
        inside = math.log2(self.centre) if self.form == "bits" else self.centre
        if self.p(theta(outside)) > 1 - level:
            return math.copysign(math.inf, outside - inside) if self.form == "bits" else outside
        return end_of(lambda x: self.p(theta(x)) > 1 - level, inside, outside, _HALVINGS)[0]


def _lowered(sums: FloatArray, theta: float) -> FloatArray:
    """The sums if θ times its denominator were subtracted from every numerator."""
    top, bottom, top2, bottom2, product = sums
    return np.stack(
        [
            top - theta * bottom,
            bottom,
            top2 - 2 * theta * product + theta**2 * bottom2,
            bottom2,
            product - theta * bottom2,
        ]
    )


def _scaled(sums: FloatArray, factor: float) -> FloatArray:
    """The sums if every numerator were multiplied by the factor."""
    top, bottom, top2, bottom2, product = sums
    return np.stack([factor * top, bottom, factor**2 * top2, bottom2, factor * product])


def _first(n: int, m: int) -> FloatArray:
    return np.concatenate([np.ones(n), np.zeros(m)])[None, :]


def _drawn(n: int, m: int, draws: int, seed: int) -> Iterator[FloatArray]:
    """Random choices of n of the n + m queries, float64[some draws, n + m]."""
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS_PER_CHUNK // (n + m))
    for start in range(0, draws, step):
        order = rng.random((min(step, draws - start), n + m)).argsort(axis=1)
        yield (order < n).astype(np.float64)
