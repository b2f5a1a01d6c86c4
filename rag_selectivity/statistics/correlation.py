"""Correlations of figures with scores over queries: values, intervals, p-values and paired differences.

All of them come from the same random weights of the queries (the Bayesian bootstrap), so that differences between
measures are paired. An interval and its p-value are read from one distribution and cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.data.ids import IntArray
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.statistics.agreement import Interval

SPEARMAN, PEARSON, KENDALL = "spearman", "pearson", "kendall"
KINDS = (SPEARMAN, PEARSON, KENDALL)
#: With fewer queries there is no correlation.
FEWEST = 4
TOO_FEW = f"fewer than {FEWEST} queries"
SAME_FIGURES, SAME_SCORES = "all figures are the same", "all scores are the same"

_CELLS_AT_ONCE = 1 << 19
#: Kendall's tau looks at all pairs of different (figure, score), up to so many of them; beyond, at their influence.
_MOST_PAIRED = 1200
#: Weighted ranks that differ by less are equal but for rounding.
_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Series:
    """Figures and scores of sets of passages, side by side.

    Attributes
    ----------
    figures, scores : float64[rows]
    units : int64[rows]
        The number of the query (or cluster) of each row, which is drawn whole.
    others : float64[rows], optional
        A third column, of which a partial correlation takes out the linear influence of its ranks.
    """

    figures: FloatArray
    scores: FloatArray
    units: IntArray
    others: FloatArray | None = None

    @classmethod
    def of(cls, figures: FloatArray, scores: FloatArray, units: IntArray, others: FloatArray | None = None) -> Series:
        """The rows in which no column is NaN."""
        known = ~(np.isnan(figures) | np.isnan(scores))
        if others is not None:
            known &= ~np.isnan(others)
        return cls(figures[known], scores[known], units[known], None if others is None else others[known])

    @property
    def queries(self) -> int:
        """The number of different queries (or clusters)."""
        return len(np.unique(self.units))

    @property
    def reason(self) -> str:
        """Why there is no correlation; empty if there is one."""
        if self.queries < FEWEST:
            return TOO_FEW
        if _constant(self.figures):
            return SAME_FIGURES
        if _constant(self.scores):
            return SAME_SCORES
        if self.others is not None and _constant(self.others):
            return "all scores without passages are the same"
        return ""

    @property
    def effective(self) -> float:
        """The queries that tell something: twice those whose value is not the most common one, at most all."""
        n = self.queries
        columns = [self.figures, self.scores, *([] if self.others is None else [self.others])]
        rarest = min(1 - np.unique(column, return_counts=True)[1].max() / len(column) for column in columns)
        return float(min(n, 2 * n * rarest))


@dataclass(frozen=True, slots=True)
class Distribution:
    """A correlation, or a mean or difference of some, with its values under random weights of the queries.

    Attributes
    ----------
    value : float
        NaN if undefined.
    drawn : float64[draws]
        The values under random weights of the queries and of one query that was not seen, which has no influence yet.
    unseen : float64[draws]
        How far that query could move each of them.
    effective : float
        The number of queries that tell something (`Series.effective`).
    ends : (float, float)
        The lowest and the highest possible value.
    reason : str
        Why it is undefined; empty if it is defined.
    """

    value: float
    drawn: FloatArray
    unseen: FloatArray
    effective: float
    ends: tuple[float, float] = (-1.0, 1.0)
    reason: str = ""

    @classmethod
    def undefined(cls, reason: str) -> Distribution:
        """One without a value."""
        return cls(math.nan, np.empty(0), np.empty(0), 0.0, reason=reason)

    @classmethod
    def mean(cls, parts: Sequence[Distribution]) -> Distribution:
        """The mean of the defined ones; undefined if none is."""
        known = [part for part in parts if not part.reason]
        if not known:
            return cls.undefined(parts[0].reason if parts else TOO_FEW)
        if len(known) == 1:
            return known[0]
        return cls(
            float(np.mean([part.value for part in known])),
            np.mean([part.drawn for part in known], axis=0),
            np.mean([part.unseen for part in known], axis=0),
            min(part.effective for part in known),
            known[0].ends,
        )

    def minus(self, other: Distribution) -> Distribution:
        """The difference of two that come from the same weights."""
        if self.reason or other.reason:
            return Distribution.undefined(self.reason or other.reason)
        return Distribution(
            self.value - other.value,
            self.drawn - other.drawn,
            np.maximum(self.unseen, other.unseen),
            min(self.effective, other.effective),
            (-2.0, 2.0),
        )

    @property
    def same(self) -> bool:
        """Whether it is a difference of two that are equal under all weights."""
        return not self.reason and bool((np.abs(self.drawn) <= _SAME).all())

    def interval(self, level: float) -> Interval:
        """The value with its interval at a level."""
        if self.reason:
            return Interval(math.nan, math.nan, math.nan, self.reason)
        share = self._share_of((1 - level) / 2)
        low, high = self._order(self.drawn - self.unseen, share), -self._order(-(self.drawn + self.unseen), share)
        lowest, highest = self.ends
        return Interval(self.value, max(lowest, min(low, self.value)), min(highest, max(high, self.value)))

    @property
    def p(self) -> float:
        """The two-sided p-value of 0: it is at most 1 − level where the interval at that level excludes 0."""
        if self.reason:
            return math.nan
        draws = len(self.drawn)
        below = ((self.drawn - self.unseen <= 0).sum() + 1) / (draws + 1)
        above = ((self.drawn + self.unseen >= 0).sum() + 1) / (draws + 1)
        return min(1.0, 2 * self._tail_of(float(min(below, above))))

    def least_p(self) -> float:
        """The smallest p-value that so many draws and queries can give."""
        return math.nan if self.reason else min(1.0, 2 * self._tail_of(1 / (len(self.drawn) + 1)))

    def _share_of(self, tail: float) -> float:
        """The share of the draws outside of one end: with few queries smaller than the tail (Hesterberg 2015)."""
        from scipy.special import ndtr, stdtrit

        if self.effective <= 1:
            return 0.0
        reach = -float(stdtrit(self.effective - 1, tail)) * math.sqrt(self.effective / (self.effective - 1))
        return float(ndtr(-reach))

    def _tail_of(self, share: float) -> float:
        """The tail that belongs to a share of the draws: the inverse of `_share_of`."""
        from scipy.special import ndtri, stdtr

        if self.effective <= 1:
            return 1.0
        shrunk = float(ndtri(share)) / math.sqrt(self.effective / (self.effective - 1))
        return float(stdtr(self.effective - 1, shrunk))

    def _order(self, drawn: FloatArray, share: float) -> float:
        """The draw below which at most a share of them lie; −∞ if there are too few draws."""
        place = math.floor(share * (len(drawn) + 1) * (1 + 1e-12))
        return -math.inf if place < 1 else float(np.partition(drawn, place - 1)[place - 1])


# -- all correlations from the same weights ---------------------------------------------------------------


def correlated(series: Sequence[Series], *, draws: int, seed: int) -> list[dict[str, Distribution]]:
    """The correlations of each series, by kind, all from the same random weights of the queries.

    Parameters
    ----------
    series : sequence of Series
        Their `units` number the same queries.
    draws, seed : int
        The number of random weights, and the seed of `numpy.random.default_rng`.

    Returns
    -------
    list of {"spearman", "pearson", "kendall", "partial": Distribution}
        `partial` is Spearman's partial correlation, if the series has a third column.

    Notes
    -----
    The weights are those of the Bayesian bootstrap, Dirichlet(1, …, 1) over the n queries and one query that was not
    seen. Its weight u could move the correlation r of the others down to (1 − u)·r − u and up to (1 − u)·r + u, so that
    no interval has width zero. With few queries the quantiles lie further out (Student's t); the number of queries
    that counts there is twice the number of those whose score (or figure) is not the most common one.

    References
    ----------
    Rubin 1981 (the Bayesian bootstrap); Hesterberg 2015 (few queries).

    >>> x = np.arange(12.0)
    >>> found = correlated([Series(x, x**2, np.arange(12))], draws=1000, seed=7)[0]["spearman"]
    >>> found.value, round(found.interval(0.95).low, 1), found.p < 0.05
    (1.0, 0.5, True)
    """
    units = 1 + max((int(each.units.max(initial=-1)) for each in series), default=-1)
    found = [_Correlations(each, draws) for each in series]
    filled = 0
    for weights, unseen in _weights(units, draws, seed):
        shared: dict[tuple[bytes, bytes], FloatArray] = {}
        for each in found:
            each.fill(weights, unseen, filled, shared)
        filled += len(weights)
    return [each.distributions() for each in found]


def detectable(n: float, level: float, power: float) -> float:
    """The smallest Spearman correlation that n queries show with the given power, if the others are like chance.

    Under independence the variance of Spearman's rho is 1/(n − 1), whatever the ties. 1 if no correlation is enough.

    Parameters
    ----------
    level : float
        The level of the test: in Holm's correction, that of the smallest p-value of the family.

    >>> round(detectable(100, 0.05, 0.8), 2), detectable(3, 0.05, 0.8)
    (0.29, 1.0)
    """
    from scipy.special import ndtri, stdtrit

    if n <= FEWEST - 1:
        return 1.0
    reach = -float(stdtrit(n - 1, level / 2)) * math.sqrt(n / (n - 1)) + float(ndtri(power))
    # Fisher's z, in which the spread is nearly the same for all correlations; 1/n is the weight of an unseen query.
    return min(1.0, math.tanh(reach / math.sqrt(n - 1)) + 1 / (n + 1))


def _weights(units: int, draws: int, seed: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Exponential weights, float64[some draws, units], and of the query that was not seen, float64[some draws]."""
    rng = np.random.default_rng(seed)
    at_once = max(1, _CELLS_AT_ONCE // (units + 1))
    for start in range(0, draws, at_once):
        drawn = rng.standard_exponential((min(at_once, draws - start), units + 1))
        yield drawn[:, :-1], drawn[:, -1]


class _Correlations:
    """The correlations of one series, filled draw by draw."""

    def __init__(self, series: Series, draws: int) -> None:
        self.series = series
        self.kinds = (*KINDS, "partial") if series.others is not None else KINDS
        self.reason = series.reason
        if self.reason:
            return
        self.drawn = {kind: np.empty(draws) for kind in self.kinds}
        self.unseen = np.empty(draws)
        self.own = np.unique(series.units)
        self.tau = _Tau(series.figures, series.scores)
        columns = [series.figures, series.scores, *([] if series.others is None else [series.others])]
        self.orders = [_Order(column) for column in columns]

    def fill(
        self,
        weights: FloatArray,
        unseen: FloatArray,
        start: int,
        shared: dict[tuple[bytes, bytes], FloatArray],
    ) -> None:
        """The correlations under some weights of all queries; `shared` holds ranks that several series have."""
        if self.reason:
            return
        place = slice(start, start + len(weights))
        self.unseen[place] = unseen / (weights[:, self.own].sum(axis=1) + unseen)
        own = weights[:, self.series.units]
        own = own / own.sum(axis=1, keepdims=True)
        for kind, values in self._under(own, shared).items():
            self.drawn[kind][place] = values

    def _under(self, weights: FloatArray, shared: dict[tuple[bytes, bytes], FloatArray]) -> dict[str, FloatArray]:
        units = self.series.units.tobytes()
        ranks = []
        for order in self.orders:
            key = units, order.key
            if key not in shared:
                shared[key] = order.ranks(weights)
            ranks.append(shared[key])
        found = {
            SPEARMAN: _pearson(ranks[0], ranks[1], weights),
            PEARSON: _pearson(self.series.figures[None], self.series.scores[None], weights),
            KENDALL: self.tau.under(weights),
        }
        if self.series.others is not None:
            with_others = [_pearson(ranks[i], ranks[2], weights) for i in (0, 1)]
            found["partial"] = _partial(found[SPEARMAN], *with_others)
        return found

    def distributions(self) -> dict[str, Distribution]:
        """The correlations by kind."""
        if self.reason:
            return {kind: Distribution.undefined(self.reason) for kind in self.kinds}
        rows = len(self.series.figures)
        values = {kind: float(each[0]) for kind, each in self._under(np.full((1, rows), 1 / rows), {}).items()}
        effective = self.series.effective
        found = {}
        for kind in self.kinds:
            if not math.isfinite(values[kind]):
                found[kind] = Distribution.undefined("the scores without passages explain all of the others")
                continue
            drawn = (1 - self.unseen) * np.nan_to_num(self.drawn[kind], nan=values[kind])
            found[kind] = Distribution(values[kind], drawn, self.unseen, effective)
        return found


class _Order:
    """The order of a column, for its ranks under weights."""

    def __init__(self, column: FloatArray) -> None:
        self.key = column.tobytes()
        self.order = np.argsort(column, kind="stable")
        ordered = column[self.order]
        starts = np.append(True, ordered[1:] != ordered[:-1])
        self.group = np.cumsum(starts) - 1
        self.last = np.append(np.flatnonzero(starts)[1:] - 1, len(column) - 1)

    def ranks(self, weights: FloatArray) -> FloatArray:
        """The share of the weight below each value, and half of that beside it: float64[draws, rows]."""
        upto = np.cumsum(weights[:, self.order], axis=1)[:, self.last]
        middle = upto.copy()
        middle[:, 1:] += upto[:, :-1]
        ranks = np.empty_like(weights)
        ranks[:, self.order] = (middle / 2)[:, self.group]
        return ranks


def _pearson(left: FloatArray, right: FloatArray, weights: FloatArray) -> FloatArray:
    """The weighted correlation in each draw: float64[draws]."""
    left = left - (weights * left).sum(axis=1, keepdims=True)
    right = right - (weights * right).sum(axis=1, keepdims=True)
    weighted = weights * left
    scale = np.sqrt((weighted * left).sum(axis=1) * (weights * right * right).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = np.clip((weighted * right).sum(axis=1) / scale, -1.0, 1.0)
    return found


def _partial(both: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """The correlation of two columns whose correlations with a third are `left` and `right`, without that third."""
    rest = (1 - left**2) * (1 - right**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = np.where(rest > _SAME, np.clip((both - left * right) / np.sqrt(rest), -1.0, 1.0), np.nan)
    return found


class _Tau:
    """Kendall's tau-b under weights: of all pairs of rows, those in the same order minus those in the opposite one."""

    def __init__(self, figures: FloatArray, scores: FloatArray) -> None:
        cells, self.cell = np.unique(np.stack([figures, scores], axis=1), axis=0, return_inverse=True)
        self.cell = self.cell.ravel()
        self.cells = len(cells)
        self.paired = self.cells <= _MOST_PAIRED
        if self.paired:
            x, y = np.sign(cells[:, None, 0] - cells[None, :, 0]), np.sign(cells[:, None, 1] - cells[None, :, 1])
            self.blocks = [x * y, np.abs(x), np.abs(y)]
            return
        self.influence = np.zeros((3, self.cells))
        self.plain = np.bincount(self.cell) / len(self.cell)
        for row in range(self.cells):
            x, y = np.sign(cells[row, 0] - cells[:, 0]), np.sign(cells[row, 1] - cells[:, 1])
            self.influence[:, row] = [x * y @ self.plain, np.abs(x) @ self.plain, np.abs(y) @ self.plain]

    def under(self, weights: FloatArray) -> FloatArray:
        """tau-b in each draw: float64[draws]."""
        of_cells = np.zeros((len(weights), self.cells))
        np.add.at(of_cells.T, self.cell, weights.T)
        if self.paired:
            same, x, y = (((of_cells @ block) * of_cells).sum(axis=1) for block in self.blocks)
        else:
            # To first order: twice the mean of each row's pairs, minus the mean of all pairs.
            same, x, y = (2 * of_cells @ each - self.plain @ each for each in self.influence)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: FloatArray = np.clip(same / np.sqrt(x * y), -1.0, 1.0)
        return found


def _constant(column: FloatArray) -> bool:
    return len(column) == 0 or bool(column.max() == column.min())
