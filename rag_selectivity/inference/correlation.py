"""Correlations of figures with scores over queries: values, intervals, p-values and paired differences.

All of them come from the same random weights of the queries (the Bayesian bootstrap), so that differences between
measures are paired. An interval and its p-value are read from one distribution and cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.inference.interval import Interval, end_of
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

SPEARMAN, PEARSON, KENDALL = "spearman", "pearson", "kendall"
KINDS = (SPEARMAN, PEARSON, KENDALL)
#: Spearman's partial correlation, given a third column.
PARTIAL = "partial"
#: With fewer queries there is no correlation.
FEWEST = 4
TOO_FEW = f"fewer than {FEWEST} queries"
#: Why there is none if a column is constant: of the figures, the scores, the scores without passages.
_SAME_IN = ("all figures are the same", "all scores are the same", "all scores without passages are the same")

#: The spread of z of Spearman's rho, beside that of Pearson's (Fieller, Hartley and Pearson 1957).
_SPREAD_OF_RANKS = math.sqrt(1.06)
_CELLS_AT_ONCE = 1 << 19
#: Kendall's tau looks at all pairs of different (figure, score), up to so many of them; beyond, at their influence.
_MOST_PAIRED = 1200
#: The largest correlation whose z is told from that of 1.
_NEARLY_ONE = 1 - 1e-9
#: Smaller p-values are not told apart.
_LEAST_P = 1e-6
#: The largest correction for bias, in standard deviations.
_MOST_BIAS = 0.5
#: Correlations that differ by less are equal but for rounding.
_SAME = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
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
        """The rows in which no column is NaN; with a third column, for the partial correlation."""
        columns = [figures, scores, *([] if others is None else [others])]
        known = ~np.isnan(columns).any(axis=0)
        return cls(figures[known], scores[known], units[known], None if others is None else others[known])

    @property
    def columns(self) -> list[FloatArray]:
        """The figures, the scores, and the third column if there is one."""
        return [self.figures, self.scores, *([] if self.others is None else [self.others])]

    @property
    def queries(self) -> int:
        """The number of different queries (or clusters)."""
        return len(np.unique(self.units))

    @property
    def reason(self) -> str:
        """Why there is no correlation; empty if there is one."""
        if self.queries < FEWEST:
            return TOO_FEW
        named = zip(self.columns, _SAME_IN, strict=False)
        return next((reason for column, reason in named if column.max() == column.min()), "")

    @property
    def effective(self) -> float:
        """How many queries tell something, at most all: n · 2r · 2s.

        r and s are the shares of the queries whose value is not the most common one in a column, for the two columns in
        which most have the same value; at most ½. Of 60 queries with 80 % right answers and 80 % successes, 10 count.

        >>> right, found = np.repeat([1.0, 0.0], [48, 12]), np.tile([1.0, 1.0, 0.0, 1.0, 1.0], 12)
        >>> round(Series(right, found, np.arange(60)).effective, 9)
        9.6
        """
        rarest = sorted(1 - np.unique(column, return_counts=True)[1].max() / len(column) for column in self.columns)
        return float(self.queries * min(1.0, 2 * rarest[0]) * min(1.0, 2 * rarest[1]))


@dataclass(frozen=True, slots=True)
class Distribution:
    """A correlation, or a mean or difference of some, with its values under random weights of the queries.

    Attributes
    ----------
    value : float
        NaN if undefined.
    drawn : float64[draws]
        The values under random weights of the queries.
    unseen : float64[draws]
        The weight of one query that was not seen, in each draw.
    effective : float
        The number of queries that tell something (`Series.effective`).
    furthest : float
        The highest possible value; the lowest one is −furthest.
    reason : str
        Why it is undefined; empty if it is defined.
    """

    value: float
    drawn: FloatArray
    unseen: FloatArray
    effective: float
    furthest: float = 1.0
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
        return cls(
            float(np.mean([part.value for part in known])),
            np.mean([part.drawn for part in known], axis=0),
            np.mean([part.unseen for part in known], axis=0),
            min(part.effective for part in known),
            known[0].furthest,
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
            furthest=2.0,
        )

    @property
    def same(self) -> bool:
        """Whether it is a difference of two that are equal under all weights."""
        return not self.reason and bool((np.abs(self.drawn) <= _SAME).all())

    def interval(self, level: float) -> Interval:
        """The value with its interval at a level."""
        if self.reason:
            return Interval.undefined(self.reason)
        tail, bias = (1 - level) / 2, self._bias
        low = _quantile(self._turned(1), self._share_of(tail, min(0.0, bias)), self.furthest)
        high = -_quantile(self._turned(-1), self._share_of(tail, min(0.0, -bias)), self.furthest)
        return Interval(self.value, min(low, self.value), max(high, self.value))

    @property
    def p(self) -> float:
        """The two-sided p-value of 0: it is at most 1 − level where the interval at that level excludes 0.

        At least 1e-6, since the draws do not tell smaller ones apart.
        """
        if self.reason:
            return math.nan
        if self.value == 0:
            return 1.0
        # The interval contains the value, so only the end on the other side of 0 can exclude 0.
        sign = 1 if self.value > 0 else -1
        draws, bias = self._turned(sign), min(0.0, sign * self._bias)

        def excludes(tail: float) -> bool:
            return _quantile(draws, self._share_of(tail, bias), self.furthest) > 0

        return min(1.0, 2 * end_of(excludes, 0.5, _LEAST_P / 2)[0]) if excludes(0.5) else 1.0

    def _turned(self, sign: int) -> FloatArray:
        """The draws in order, with the unseen query at its worst (sign 1), or at its best and turned over (−1)."""
        return np.sort((1 - self.unseen) * sign * self.drawn - self.unseen)

    @property
    def _bias(self) -> float:
        """How far the draws lie on one side of the value, in standard deviations (Efron 1987), within ±½.

        It moves ends outwards only: moved inwards, an end would exclude too much where few queries tell anything.
        """
        from scipy.special import ndtri

        near = _SAME * max(1.0, abs(self.value))
        share = ((self.drawn < self.value - near).mean() + (self.drawn <= self.value + near).mean()) / 2
        least = 0.5 / len(self.drawn)
        return float(np.clip(ndtri(np.clip(share, least, 1 - least)), -_MOST_BIAS, _MOST_BIAS))

    def _share_of(self, tail: float, bias: float) -> float:
        """The share of the draws outside of one end: with few queries smaller than the tail (Hesterberg 2015)."""
        from scipy.special import ndtr, stdtrit

        if self.effective <= 1:
            return 0.0
        reach = -float(stdtrit(self.effective - 1, tail)) * math.sqrt(self.effective / (self.effective - 1))
        return float(ndtr(2 * bias - reach))


def _quantile(drawn: FloatArray, share: float, furthest: float) -> float:
    """The value below which a share of the draws lie, also beyond the lowest of them.

    Below the lowest hundredth of the draws, Fisher's z of the draws is continued as a normal distribution, with the
    spread between the median and that hundredth. The draws are in increasing order.
    """
    from scipy.special import ndtri

    place = max(1, len(drawn) // 100)
    share_of_anchor = place / (len(drawn) + 1)
    if share >= share_of_anchor:
        return float(drawn[math.floor(share * (len(drawn) + 1) * (1 + _SAME)) - 1])
    anchor, reach = _z(drawn[place - 1], furthest), -float(ndtri(share_of_anchor))
    spread = max((_z(float(np.median(drawn)), furthest) - anchor) / reach, 1e-12)
    return furthest * math.tanh(anchor + (float(ndtri(share)) + reach) * spread)


def _z(value: float, furthest: float) -> float:
    """Fisher's z, finite at the ends too."""
    return math.atanh(min(max(value / furthest, -_NEARLY_ONE), _NEARLY_ONE))


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
    list of {"spearman", "pearson", "kendall" or "partial": Distribution}
        Those that are wanted of each series.

    Notes
    -----
    The weights are those of the Bayesian bootstrap, Dirichlet(1, …, 1) over the n queries and one query that was not
    seen. Its weight u could move the correlation r of the others down to (1 − u)·r − u and up to (1 − u)·r + u, so no
    interval has width zero. A bias of the draws moves an end outwards (Efron 1987), and with few queries both ends lie
    further out (Student's t, Hesterberg 2015), by the number of queries that tell something (`Series.effective`).
    Beyond the lowest hundredth of the draws, Fisher's z of the draws is continued as a normal distribution.

    References
    ----------
    Rubin 1981, The Bayesian Bootstrap; Efron 1987, Better Bootstrap Confidence Intervals; Hesterberg 2015, What
    Teachers Should Know About the Bootstrap.

    >>> x = np.arange(12.0)
    >>> found = correlated([Series(x, x**2, np.arange(12))], draws=1000, seed=7)[0]["spearman"]
    >>> found.value, round(found.interval(0.95).low, 1), found.p < 0.05
    (1.0, 0.3, True)
    """
    units = 1 + max((int(each.units.max(initial=-1)) for each in series), default=-1)
    return [_distributions(each, units, draws, seed) for each in series]


def correlated_means(series: Sequence[Series], *, draws: int, seed: int) -> dict[str, Distribution]:
    """The correlations, over runs, of the mean figure of each run with its mean score, by kind.

    Their intervals are over queries, for these runs: they do not say what other runs would give.

    Parameters
    ----------
    series : sequence of Series
        One for each run; their `units` number the same queries.
    """
    some = [part for part in series if len(part.units)]
    if len(some) < FEWEST:
        return dict.fromkeys(KINDS, Distribution.undefined(f"fewer than {FEWEST} runs"))
    means = [np.array([[part.columns[i].mean() for part in some]]) for i in (0, 1)]
    if reason := Series(means[0][0], means[1][0], np.arange(len(some))).reason:
        return dict.fromkeys(KINDS, Distribution.undefined(reason))
    drawn, left = [], []
    for weights, unseen in _weights(1 + max(int(part.units.max()) for part in some), draws, seed):
        left.append(unseen / (weights.sum(axis=1) + unseen))
        figures, scores = (
            np.stack([(own := weights[:, part.units]) @ part.columns[i] / own.sum(axis=1) for part in some], axis=1)
            for i in (0, 1)
        )
        drawn.append(_over_rows(figures, scores))
    effective = float(min(part.queries for part in some))
    return {
        kind: Distribution(
            float(value[0]),
            np.nan_to_num(np.concatenate([each[kind] for each in drawn])),
            np.concatenate(left),
            effective,
        )
        for kind, value in _over_rows(*means).items()
    }


def _over_rows(left: FloatArray, right: FloatArray) -> dict[str, FloatArray]:
    """The correlations along the rows of two float64[draws, columns], by kind: float64[draws] each."""
    equal = np.full(left.shape, 1 / left.shape[1])
    ranks = [np.apply_along_axis(mid_ranks, 1, each) for each in (left, right)]
    signs = [np.sign(each[:, :, None] - each[:, None, :]) for each in (left, right)]
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = np.sqrt((signs[0] ** 2).sum(axis=(1, 2)) * (signs[1] ** 2).sum(axis=(1, 2)))
        tau = (signs[0] * signs[1]).sum(axis=(1, 2)) / pairs
    return {SPEARMAN: _pearson(ranks[0], ranks[1], equal), PEARSON: _pearson(left, right, equal), KENDALL: tau}


def mid_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1 on, equal values at the mean of theirs.

    >>> mid_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    result: FloatArray = (np.cumsum(counts) - (counts - 1) / 2)[group]
    return result


def detectable(n: float, level: float, power: float) -> float:
    """The smallest Spearman correlation that n queries show with the given power, if the others are like chance.

    An approximation by Fisher's z, checked by simulation. 1 if no correlation is enough.

    Parameters
    ----------
    level : float
        The level of the test: in Holm's correction, that of the smallest p-value of the family.

    >>> round(detectable(100, 0.05, 0.8), 4), detectable(3, 0.05, 0.8), detectable(4, 0.05, 0.8)
    (0.3079, 1.0, 1.0)
    """
    from scipy.special import ndtri, stdtrit

    if n <= FEWEST - 1:
        return 1.0
    reach = -float(stdtrit(n - 1, level / 2)) * math.sqrt(n / (n - 1)) + float(ndtri(power))
    # Fisher's z, whose spread is nearly the same for all correlations; 1/(n + 1) is the weight of an unseen query.
    return min(1.0, math.tanh(_SPREAD_OF_RANKS * reach / math.sqrt(n - 3)) + 2 / (n + 1))


def _weights(units: int, draws: int, seed: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Exponential weights, float64[some draws, units], and of the query that was not seen, float64[some draws]."""
    rng = np.random.default_rng(seed)
    at_once = max(1, _CELLS_AT_ONCE // (units + 1))
    for start in range(0, draws, at_once):
        drawn = rng.standard_exponential((min(at_once, draws - start), units + 1))
        yield drawn[:, :-1], drawn[:, -1]


def _distributions(series: Series, units: int, draws: int, seed: int) -> dict[str, Distribution]:
    """The correlations of one series by kind, under the random weights of so many queries."""
    if series.reason:
        kinds = KINDS if series.others is None else (SPEARMAN, PARTIAL)
        return dict.fromkeys(kinds, Distribution.undefined(series.reason))
    under, own, rows = weighted_correlations(series), np.unique(series.units), len(series.figures)
    drawn, left = [], []
    for weights, unseen in _weights(units, draws, seed):
        left.append(unseen / (weights[:, own].sum(axis=1) + unseen))
        of_rows = weights[:, series.units]
        drawn.append(under(of_rows / of_rows.sum(axis=1, keepdims=True)))
    found = {}
    for kind, (value,) in under(np.full((1, rows), 1 / rows)).items():
        if not math.isfinite(value):
            found[kind] = Distribution.undefined("the scores without passages explain all of the others")
            continue
        values = np.nan_to_num(np.concatenate([each[kind] for each in drawn]), nan=float(value))
        found[kind] = Distribution(float(value), values, np.concatenate(left), series.effective)
    return found


def weighted_correlations(series: Series) -> Callable[[FloatArray], dict[str, FloatArray]]:
    """Weights of the rows that add up to 1, float64[draws, rows] → the correlations by kind, float64[draws] each."""
    tau = _Tau(series.figures, series.scores) if series.others is None else None
    groups = [_Groups(column) for column in series.columns]

    def under(weights: FloatArray) -> dict[str, FloatArray]:
        ranks = [each.ranks(weights) for each in groups]
        rho = _pearson(ranks[0], ranks[1], weights)
        if tau is None:
            return {SPEARMAN: rho, PARTIAL: _partial(rho, *(_pearson(ranks[i], ranks[2], weights) for i in (0, 1)))}
        pearson = _pearson(series.figures[None], series.scores[None], weights)
        return {SPEARMAN: rho, PEARSON: pearson, KENDALL: tau.under(weights)}

    return under


class _Groups:
    """Rows in groups of the same value, by increasing value, whose weights are added."""

    def __init__(self, values: FloatArray | IntArray) -> None:
        self.group = np.unique(values, return_inverse=True)[1]
        self.order = np.argsort(self.group, kind="stable")
        self.starts = np.searchsorted(self.group[self.order], np.arange(self.group.max(initial=-1) + 1))

    def sums(self, weights: FloatArray) -> FloatArray:
        """The weight of each group: float64[draws, groups]."""
        return np.asarray(np.add.reduceat(weights[:, self.order], self.starts, axis=1))

    def ranks(self, weights: FloatArray) -> FloatArray:
        """The share of the weight below each value, and half of that beside it: float64[draws, rows]."""
        sums = self.sums(weights)
        return np.asarray((np.cumsum(sums, axis=1) - sums / 2)[:, self.group])


def _pearson(left: FloatArray, right: FloatArray, weights: FloatArray) -> FloatArray:
    """The weighted correlation in each draw: float64[draws]."""
    left = left - (weights * left).sum(axis=1, keepdims=True)
    right = right - (weights * right).sum(axis=1, keepdims=True)
    weighted = weights * left
    scale = np.sqrt((weighted * left).sum(axis=1) * (weights * right * right).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip((weighted * right).sum(axis=1) / scale, -1.0, 1.0))


def _partial(both: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """The correlation of two columns whose correlations with a third are `left` and `right`, without that third."""
    rest = (1 - left**2) * (1 - right**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(rest > _SAME, np.clip((both - left * right) / np.sqrt(rest), -1.0, 1.0), np.nan))


class _Tau:
    """Kendall's tau-b under weights: of all pairs of rows, those in the same order minus those in the opposite one."""

    def __init__(self, figures: FloatArray, scores: FloatArray) -> None:
        cells, cell = np.unique(np.stack([figures, scores], axis=1), axis=0, return_inverse=True)
        self.cells = _Groups(cell.ravel())
        self.tied = [_Groups(column) for column in (figures, scores)]
        self.paired = len(cells) <= _MOST_PAIRED
        if self.paired:
            self.order = np.sign(cells[:, None, 0] - cells[None, :, 0]) * np.sign(cells[:, None, 1] - cells[None, :, 1])
            return
        plain = np.bincount(cell.ravel()) / cell.size
        self.influence = np.array([(np.sign(x - cells[:, 0]) * np.sign(y - cells[:, 1])) @ plain for x, y in cells])
        self.mean = float(self.influence @ plain)

    def under(self, weights: FloatArray) -> FloatArray:
        """tau-b in each draw: float64[draws]."""
        of_cells = self.cells.sums(weights)
        if self.paired:
            same = ((of_cells @ self.order) * of_cells).sum(axis=1)
        else:
            # To first order: twice the mean of each row's pairs, minus the mean of all pairs.
            same = 2 * of_cells @ self.influence - self.mean
        x, y = (1 - (tied.sums(weights) ** 2).sum(axis=1) for tied in self.tied)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.clip(same / np.sqrt(x * y), -1.0, 1.0))
