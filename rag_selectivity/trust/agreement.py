"""The agreement of a judge's grades with human grades, with intervals from queries drawn whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.interval import Interval
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

#: The limits of the verdicts; see `Agreement`.
GOOD_KAPPA, GOOD_BIAS, LEAST_KAPPA = 0.6, 0.25, 0.4
#: From these numbers on, the intervals keep their level in simulation (benchmarks/simulated/labels.py).
MIN_PAIRS, MIN_QUERIES = 30, 10
#: The factor that widens the jackknife's interval, so that it keeps its level with few queries (same simulation).
_WIDER = 1.1
_CELLS_AT_ONCE, _MOST_LEVELS = 1 << 20, 50

GOOD, MODERATE, POOR, TOO_FEW, UNDETERMINED = "good", "moderate", "poor", "too few to tell", "undetermined"


#: People's grades, the judge's, and the queries of some pairs, and how many pairs each stands for; NaN: not known.
Sample = tuple[Sequence[int] | IntArray, Sequence[int] | IntArray, Sequence[str], FloatArray | float]


@dataclass(frozen=True)
class Agreement:
    """How far a judge's grades agree with a human's, over the pairs that both graded.

    Attributes
    ----------
    n, queries : int
        The pairs that both graded, and their queries.
    of : int or None
        The pairs that the figures are for, of which these are a sample; `n` where they are all. None: not known how
        these were drawn, so that the figures are for them alone.
    clusters : int or None
        The number of clusters; None without clusters.
    exact, within_one : Interval
        The shares of pairs with equal grades, and with grades that differ by at most one.
    kappa, kappa_linear, kappa_quadratic : Interval
        Cohen's kappa, where disagreements weigh all the same, by their size, and by its square. 1 is full agreement, 0
        is the agreement expected by chance from the frequencies of the grades; NaN if there is only one grade.
    ac2 : Interval
        Gwet's AC2 with quadratic weights: like kappa, but stable if one grade is very common.
    alpha : Interval
        Krippendorff's alpha for ordinal grades.
    spearman : Interval
        Spearman's rank correlation; NaN if either side has only one grade.
    bias : Interval
        The mean of the judge's grade minus the human's grade.
    bias_by_grade : {human grade: Interval}
        The bias over the pairs of each human grade.
    levels : tuple of int
        All possible grades.
    confusion : int64[levels, levels]
        The pairs that the figures are for by the human's grade (rows) and the judge's (columns).
    verdict : str
        `good`, `moderate`, `poor`, `undetermined` or `too few to tell`.
    reason : str
        The reason for the verdict, in one or two sentences.

    Notes
    -----
    The drawn units are the queries, or their clusters. All intervals come from Dirichlet(1, …, 1) weights over the
    units and one unseen unit of average size, so that none has width zero. If pairs stand for unequal numbers, it is
    the average of what is weighed, since few labels of a heavy grade may miss all of its errors. For shares and biases
    the unseen unit is at the end of the range (Gaffke's bound). For coefficients all grades are equally common in an
    unseen unit of average size. For the lower end it agrees only by chance (for alpha and Spearman's rho half of it is
    graded in reverse); for the upper end it agrees fully. What it has beyond has the judge's grades, with people's as
    far off as can be, or equal. The interval of a coefficient also includes that of Student's t for
    √(1 − coefficient) with the jackknife's error, widened by a tenth. A coefficient has no interval with fewer than 30
    pairs or 10 units, or if either side gave only one grade: such intervals would not keep their level.

    The verdict is

    - too few to tell: fewer than 30 pairs, or fewer than 10 queries (with clusters: 10 clusters).
    - good: the interval of the quadratic kappa is at or above .6, and that of the bias within a quarter of a grade.
    - moderate: the interval of the quadratic kappa is at or above .4.
    - poor: the interval of the quadratic kappa is below .4.
    - undetermined: the interval of the quadratic kappa contains .4, or either side gave only one grade.

    The limits are conventions; `reason` says which of them decided. No verdict on the grades says whether the judge
    ranks runs as people do: its errors may differ between the runs.

    References
    ----------
    Cohen 1960, 1968; Gwet 2008; Krippendorff 2011; Gaffke 2005.
    """

    n: int
    queries: int
    of: int | None
    clusters: int | None
    exact: Interval
    within_one: Interval
    kappa: Interval
    kappa_linear: Interval
    kappa_quadratic: Interval
    ac2: Interval
    alpha: Interval
    spearman: Interval
    bias: Interval
    bias_by_grade: Mapping[int, Interval]
    levels: tuple[int, ...]
    confusion: IntArray
    verdict: str
    reason: str


def agreement(
    sample: Sample, *, grades: tuple[int, int] | None = None, bootstrap: Bootstrap = Bootstrap()
) -> Agreement:
    """The agreement of two sequences of grades of the same pairs.

    Parameters
    ----------
    sample : (human, judge, queries, stand_for)
        For the intervals, queries are drawn whole. Each pair stands for so many; 1 if all stand for themselves alone,
        NaN if that is not known.
    grades : (int, int), optional
        The lowest and the highest possible grade; by default those that occur. AC2's agreement by chance and the range
        of the bias depend on them.
    bootstrap : Bootstrap
        Gives resamples, seed, level and clusters.

    Raises
    ------
    InputError
        If a query has no cluster.

    >>> agreement(([1, 2, 3, 3], [1, 2, 3, 2], ["p", "p", "q", "q"], 1)).exact.value
    0.75
    """
    drawn, (human, _, queries, _) = DrawnTables(sample, grades or (), bootstrap), sample
    coefficients, bias, gaps = drawn.coefficients(), drawn.bias(), np.abs(drawn.gaps)
    verdict, reason = drawn.lacking if drawn.lacking[0] else _verdict(coefficients["kappa_quadratic"], bias)
    return Agreement(
        n=len(human),
        queries=len(set(queries)),
        of=None if np.isnan(sample[-1]).any() else round(drawn.total.sum()),
        clusters=None if bootstrap.clusters is None else len(drawn.tables),
        exact=drawn.mean(gaps == 0, (0, 1)),
        within_one=drawn.mean(gaps <= 1, (0, 1)),
        **coefficients,
        bias=bias,
        bias_by_grade={level: drawn.bias(level) for level in np.unique(human).tolist()},
        levels=tuple(drawn.levels.tolist()),
        confusion=np.rint(drawn.total).astype(np.int64),
        verdict=verdict,
        reason=reason,
    )


def _verdict(kappa: Interval, bias: Interval) -> tuple[str, str]:
    """The verdict and its reason."""
    shown = f"The interval of the quadratic kappa, {kappa.low:.3f} to {kappa.high:.3f},"
    if kappa.high < LEAST_KAPPA:
        return POOR, f"{shown} is below {LEAST_KAPPA}."
    if kappa.low < LEAST_KAPPA:
        return UNDETERMINED, f"{shown} contains {LEAST_KAPPA}. More queries make it narrower."
    if kappa.low >= GOOD_KAPPA and bias.within(GOOD_BIAS):
        return GOOD, f"{shown} is at or above {GOOD_KAPPA}, and that of the bias is within ±{GOOD_BIAS} grades."
    ends = f"{bias.low:+.3f} to {bias.high:+.3f}".replace("-", "−")
    ends += "; more queries narrow it" if bias.low <= GOOD_BIAS and bias.high >= -GOOD_BIAS else ""
    wide = f"and the interval of the bias must be within ±{GOOD_BIAS} grades (it is {ends})"
    return MODERATE, f'{shown} is at or above {LEAST_KAPPA}. For "good" it must be at or above {GOOD_KAPPA}, {wide}.'


class DrawnTables:
    """The confusion table of each drawn unit, and the sums of all under random weights of the units.

    The weights of a draw, divided by their sum, are Dirichlet(1, …, 1) over all units and an unseen one. The division
    is left out, since only ratios of the sums are used.

    Attributes
    ----------
    levels : int64[levels]
        The grades, without a gap.
    gaps : int64[human, judge]
        The judge's grade minus the human's.
    tables : float64[units, human, judge]
        The pairs of a unit by human grade and judge's grade, each with its weight.
    total : float64[human, judge]
        All pairs, each with its weight.
    labels : int
        The number of pairs.
    weighted : bool
        Whether they have unequal weights.
    sums : float64[draws, human, judge]
    unseen : float64[draws]
        The weight of the unseen unit.
    tail : float
        The probability outside an interval on either side.
    """

    def __init__(self, sample: Sample, grades: Iterable[int], bootstrap: Bootstrap) -> None:
        """From pairs and their weights; `grades` are possible beside those that occur."""
        *grades_of_both, queries, stand_for = sample
        human, judge = (np.asarray(side, np.int64) for side in grades_of_both)
        given = np.concatenate([human, judge, [*grades]]).astype(np.int64)
        lowest, highest = int(given.min()), int(given.max())
        self.levels, self.tail = np.arange(lowest, highest + 1), (1 - bootstrap.level) / 2
        self.gaps = self.levels - self.levels[:, None]
        if len(self.levels) > _MOST_LEVELS:
            raise InputError(f"grades from {lowest} to {highest}: give a scale with at most {_MOST_LEVELS} levels")
        names, unit = np.unique(np.asarray(queries, object).astype(str), return_inverse=True)
        groups = bootstrap.units(names.tolist())
        unit = unit if groups is None else groups[unit]
        tables, weight = np.zeros((int(unit.max()) + 1, *self.gaps.shape)), np.nan_to_num(stand_for, nan=1.0)
        np.add.at(tables, (unit, human - lowest, judge - lowest), weight)
        self.labels, self.weighted = len(human), bool(np.ptp(weight) > 0)
        # A cluster may have no pair that both sides graded.
        self.tables = tables[tables.any(axis=(1, 2))]
        self.total = self.tables.sum(axis=0)
        random, draws = np.random.default_rng(bootstrap.seed), bootstrap.resamples
        self.unseen, self.sums = random.exponential(size=draws), np.empty((draws, *self.gaps.shape))
        for part in np.array_split(self.sums, 1 + draws * len(self.tables) // _CELLS_AT_ONCE):
            part[:] = np.tensordot(random.exponential(size=(len(part), len(self.tables))), self.tables, axes=1)

    def bias(self, of_human: int | None = None) -> Interval:
        """The mean of the judge's grade minus the human's, over all pairs or those of one human grade.

        >>> sample = np.array([1, 2]), np.array([3, 2]), ["p", "q"], np.array([3.0, 1.0])
        >>> DrawnTables(sample, (1, 5), Bootstrap()).bias().value
        1.5
        """
        rows = np.isin(self.levels, self.levels if of_human is None else of_human)
        possible = self.gaps[rows]
        return self.mean(self.gaps, (int(possible.min()), int(possible.max())), rows[:, None])

    def mean(self, values: Any, bounds: tuple[int, int], counted: Any = True) -> Interval:
        """The mean of a value of each cell over the pairs in the cells that are counted: bool[human, judge].

        If every unit has the same number of values the interval is Gaffke's bound, which for values 0 and 1 is Clopper
        and Pearson's (Gaffke 2005; Learned-Miller and Thomas 2019, arXiv 1905.06208).
        """
        total, number = (_over_cells(self.total * each) for each in (values * counted, counted))
        drawn, of_drawn = (_over_cells(self.sums * each) for each in (values * counted, counted))
        # All values of the unseen unit are at an end of the range.
        unseen = self.unseen * self._size(counted)
        low, high = ((drawn + unseen * end) / (of_drawn + unseen) for end in bounds)
        ends = max(np.quantile(low, self.tail), bounds[0]), min(np.quantile(high, 1 - self.tail), bounds[1])
        return Interval(float(total / number), float(ends[0]), float(ends[1]))

    def _size(self, counted: Any = True) -> float:
        """How many pairs an unseen unit has; where they weigh unequally, the average of what is weighed."""
        sizes = _over_cells(self.tables * counted)
        return float((sizes**2).sum() / sizes.sum() if self.weighted else sizes.sum() / np.count_nonzero(sizes))

    def coefficients(self) -> dict[str, Interval]:
        """Kappas, AC2, alpha and Spearman's rho."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return {name: self._estimated(coefficient) for name, coefficient in _COEFFICIENTS.items()}

    @property
    def lacking(self) -> tuple[str, str]:
        """The verdict where coefficients have no interval, and why; empty where they have one."""
        if self.labels < MIN_PAIRS or len(self.tables) < MIN_QUERIES:
            need = f"at least {MIN_PAIRS} pairs of {MIN_QUERIES} queries or clusters"
            return TOO_FEW, f"A verdict, and an interval over all pairs, need {need}."
        for who, axis in (("People", 1), ("The judge", 0)):
            first, *others = self.levels[self.total.sum(axis=axis) > 0].tolist()
            if not others:
                need = "kappa and the other coefficients need two grades or more on each side"
                return UNDETERMINED, f"{who} gave grade {first} to every pair: {need}."
        return "", ""

    def _estimated(self, coefficient: _Coefficient) -> Interval:
        from scipy.special import stdtrit

        # Rounding may make full agreement a little more than 1.
        value, (_, reason) = float(np.minimum(1.0, coefficient(self.total))), self.lacking
        if reason:
            return Interval(value, np.nan, np.nan, reason)
        size, count = float(self.total.sum()) / len(self.tables), len(self.levels)
        by_luck, agreeing = np.full((count, count), 1 / count**2), np.eye(count) / count
        # Agreement by chance hardly changes a rank coefficient if one grade is very common: reverse half of the unit.
        worst = (by_luck + agreeing[::-1]) / 2 if coefficient in (_alpha, _spearman) else by_luck
        # Beyond an average size, the unseen unit has the grades that the judge gave, at their worst or best.
        more, far = (self._size() - size) * self.total.sum(axis=0) / self.total.sum(), _gaps(count)
        far = far == far.max(axis=0)
        tables = size * worst + more * far / far.sum(axis=0), size * agreeing + np.diag(more)
        low, high = (coefficient(self.sums + self.unseen[:, None, None] * table) for table in tables)
        # Student's t for √(1 − value), which is stabler near 1, from the values without each unit; NaN if one is.
        n, without_each = len(self.tables), coefficient(self.total - self.tables)
        middle, others = np.sqrt(max(0.0, 1 - value)), np.sqrt(np.maximum(0.0, 1 - without_each))
        reach = -stdtrit(n - 1, self.tail) * _WIDER * (n * middle - (n - 1) * others).std(ddof=1) / np.sqrt(n)
        below, above = 1 - (middle + reach) ** 2, 1 - max(0.0, middle - reach) ** 2
        lowest = np.fmin(np.quantile(low, self.tail), np.fmin(below, value))
        highest = np.fmax(np.quantile(high, 1 - self.tail), np.fmax(above, value))
        return Interval(value, float(lowest), float(min(1.0, highest)))


# -- figures of tables of counts, float64[…, human, judge] ------------------------------------------------


def _over_cells(table: FloatArray) -> FloatArray:
    return np.asarray(table.sum(axis=(-2, -1)), np.float64)


def _gaps(count: int) -> IntArray:
    return np.abs(np.subtract.outer(np.arange(count), np.arange(count)))


def _kappa(table: FloatArray, power: int) -> FloatArray:
    gaps = _gaps(table.shape[-1])
    weights = (gaps > 0) * gaps**power
    by_luck = np.einsum("...i,...j,ij->...", table.sum(axis=-1), table.sum(axis=-2), weights)
    return np.asarray(1 - _over_cells(table * weights) * _over_cells(table) / by_luck)


def _ac2(table: FloatArray) -> FloatArray:
    count = table.shape[-1]
    weights = 1 - (_gaps(count) / (count - 1 or np.nan)) ** 2
    share = table / _over_cells(table)[..., None, None]
    prevalence = (share.sum(axis=-1) + share.sum(axis=-2)) / 2
    by_luck = weights.sum() / (count * (count - 1)) * (prevalence * (1 - prevalence)).sum(axis=-1)
    return np.asarray((_over_cells(share * weights) - by_luck) / (1 - by_luck))


def _alpha(table: FloatArray) -> FloatArray:
    coincidences = table + np.swapaxes(table, -1, -2)
    counts = coincidences.sum(axis=-1)
    # The ordinal distance of two grades: the number of values from one to the other, counting both ends by half.
    middle = np.cumsum(counts, axis=-1) - counts / 2
    distance = (middle[..., :, None] - middle[..., None, :]) ** 2
    expected = np.einsum("...i,...j,...ij->...", counts, counts, distance)
    return np.asarray(1 - (counts.sum(axis=-1) - 1) * _over_cells(coincidences * distance) / expected)


def _spearman(table: FloatArray) -> FloatArray:
    half = (_over_cells(table) / 2)[..., None]
    first, second = table.sum(axis=-1), table.sum(axis=-2)
    left, right = (np.cumsum(counts, axis=-1) - counts / 2 - half for counts in (first, second))
    spread = (first * left**2).sum(axis=-1) * (second * right**2).sum(axis=-1)
    return np.asarray(np.einsum("...ij,...i,...j->...", table, left, right) / np.sqrt(spread))


_Coefficient = Callable[[FloatArray], FloatArray]
_COEFFICIENTS: dict[str, _Coefficient] = {
    "kappa": partial(_kappa, power=0),
    "kappa_linear": partial(_kappa, power=1),
    "kappa_quadratic": partial(_kappa, power=2),
    "ac2": _ac2,
    "alpha": _alpha,
    "spearman": _spearman,
}
