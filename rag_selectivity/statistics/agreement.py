"""How far two sets of labels agree, with intervals that keep the pairs of a query together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.ids import IntArray
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.statistics.bootstrap import Bootstrap

#: From these on a judge's labels are taken for what they say; see `Agreement.verdict`.
FIT_KAPPA, FIT_BIAS, RANKING_KAPPA = 0.6, 0.25, 0.4


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the ends of its interval."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float | None]:
        """As JSON has it: null for what is not finite."""
        return {
            name: (value if np.isfinite(value) else None)
            for name, value in (("value", self.value), ("low", self.low), ("high", self.high))
        }


@dataclass(frozen=True)
class Agreement:
    """How far a judge's grades agree with a human's, over the pairs that both graded.

    Attributes
    ----------
    n, queries : int
    exact, within_one : Interval
        Shares of pairs with the same grade, and with one that is at most one off.
    kappa, kappa_linear, kappa_quadratic : Interval
        Cohen's, with disagreements weighing all alike, by their size, and by its square. 1 is full agreement, 0
        what two judges with these habits would reach by luck; NaN where one grade is all there is.
    ac2 : Interval
        Gwet's, with quadratic weights: as kappa, but steady where one grade is very common.
    alpha : Interval
        Krippendorff's, ordinal.
    spearman : Interval
        Rank correlation; NaN where either side has one grade only.
    bias : Interval
        Mean of the judge's grade less the human's.
    bias_by_grade : {human grade: Interval}
    levels : tuple of int
    confusion : int64[levels, levels]
        Pairs by the human's grade (rows) and the judge's (columns).
    per_query : {query: (pairs, exact, bias)}

    References
    ----------
    Cohen 1960, 1968; Gwet 2008; Krippendorff 2011.
    """

    n: int
    queries: int
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
    per_query: Mapping[str, tuple[int, float, float]]

    @property
    def verdict(self) -> str:
        """`fit`, `fit to rank systems` or `unfit`.

        Fit: the lower end of the quadratic kappa reaches .6, and the bias is at most a quarter of a grade.
        Fit to rank systems: the quadratic kappa itself reaches .4; figures need correction by some human
        labels. Conventions, not laws; the intervals are the better judges of a judge.
        """
        if self.kappa_quadratic.low >= FIT_KAPPA and abs(self.bias.value) <= FIT_BIAS:
            return "fit"
        return "fit to rank systems" if self.kappa_quadratic.value >= RANKING_KAPPA else "unfit"

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        names = ("exact", "within_one", "kappa", "kappa_linear", "kappa_quadratic", "ac2", "alpha", "spearman")
        shares = np.array([exact for _, exact, _ in self.per_query.values()])
        biases = np.array([bias for _, _, bias in self.per_query.values()])
        return {
            "n": self.n,
            "queries": self.queries,
            **{name: getattr(self, name).to_dict() for name in names},
            "bias": {
                **self.bias.to_dict(),
                "by_grade": {str(grade): interval.to_dict() for grade, interval in self.bias_by_grade.items()},
            },
            "confusion": {"levels": list(self.levels), "counts": self.confusion.tolist()},
            "per_query": {"exact": _quartiles(shares), "bias": _quartiles(biases)},
            "verdict": self.verdict,
        }


def agreement(
    human: Sequence[int] | IntArray,
    judge: Sequence[int] | IntArray,
    queries: Sequence[str],
    *,
    bootstrap: Bootstrap = Bootstrap(),
) -> Agreement:
    """Agreement of two sequences of grades of the same pairs.

    Parameters
    ----------
    human, judge : int64[pairs]
    queries : sequence of str
        The query of each pair; queries are drawn whole for the intervals.

    >>> agreement([1, 2, 3, 3], [1, 2, 3, 2], ["p", "p", "q", "q"]).exact.value
    0.75
    """
    first, second = np.asarray(human, np.int64), np.asarray(judge, np.int64)
    if first.shape != second.shape or first.ndim != 1 or len(first) != len(queries):
        raise InputError(f"agreement needs a grade of each side for each pair, got {first.shape} and {second.shape}")
    if not len(first):
        raise InputError("there are no pairs that both sides graded")
    levels = np.arange(min(first.min(), second.min()), max(first.max(), second.max()) + 1)
    if len(levels) > 50:
        raise InputError(f"grades reach from {levels[0]} to {levels[-1]}: these are no grades")
    names, of_pair = np.unique(np.asarray(queries, object).astype(str), return_inverse=True)
    size = len(levels)
    cells = np.zeros((len(names), size * size))
    np.add.at(cells, (of_pair, (first - levels[0]) * size + second - levels[0]), 1)

    def of_table(figure: Callable[[FloatArray, FloatArray], FloatArray]) -> Callable[[FloatArray], FloatArray]:
        def statistic(sums: FloatArray) -> FloatArray:
            with np.errstate(invalid="ignore", divide="ignore"):
                return figure(sums.reshape(*sums.shape[:-1], size, size), levels.astype(np.float64))

        return statistic

    figures = [of_table(figure) for figure in _FIGURES.values()]
    figures += [of_table(_bias_at(i)) for i in range(size)]
    intervals = [Interval(*found) for found in bootstrap.of_statistics(cells, figures)]
    named = dict(zip(_FIGURES, intervals, strict=False))
    gap = second - first
    per_query = {
        str(name): (int(rows.sum()), float((gap[rows] == 0).mean()), float(gap[rows].mean()))
        for name, rows in ((name, of_pair == i) for i, name in enumerate(names))
    }
    return Agreement(
        n=len(first),
        queries=len(names),
        **named,
        bias_by_grade={
            int(level): interval
            for level, interval in zip(levels, intervals[len(_FIGURES) :], strict=True)
            if not np.isnan(interval.value)
        },
        levels=tuple(levels.tolist()),
        confusion=cells.sum(axis=0).reshape(size, size).astype(np.int64),
        per_query=per_query,
    )


# -- figures of a table of counts, float64[…, human, judge] ---------------------------------------------


def _total(table: FloatArray) -> FloatArray:
    result: FloatArray = table.sum(axis=(-2, -1))
    return result


def _within(distance: float) -> Callable[[FloatArray, FloatArray], FloatArray]:
    def figure(table: FloatArray, levels: FloatArray) -> FloatArray:
        near = np.abs(levels[:, None] - levels) <= distance
        result: FloatArray = (table * near).sum(axis=(-2, -1)) / _total(table)
        return result

    return figure


def _kappa(power: float) -> Callable[[FloatArray, FloatArray], FloatArray]:
    def figure(table: FloatArray, levels: FloatArray) -> FloatArray:
        gaps = np.abs(levels[:, None] - levels)
        weights = (gaps > 0).astype(np.float64) if power == 0 else gaps**power
        expected = table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :] / _total(table)[..., None, None]
        missed: FloatArray = (table * weights).sum(axis=(-2, -1)) / (expected * weights).sum(axis=(-2, -1))
        return 1 - missed

    return figure


def _ac2(table: FloatArray, levels: FloatArray) -> FloatArray:
    if len(levels) < 2:
        return np.full(table.shape[:-2], np.nan)
    weights = 1 - ((levels[:, None] - levels) / (levels[-1] - levels[0])) ** 2
    share = table / _total(table)[..., None, None]
    observed = (share * weights).sum(axis=(-2, -1))
    prevalence = (share.sum(axis=-1) + share.sum(axis=-2)) / 2
    by_luck = weights.sum() / (len(levels) * (len(levels) - 1)) * (prevalence * (1 - prevalence)).sum(axis=-1)
    result: FloatArray = (observed - by_luck) / (1 - by_luck)
    return result


def _alpha(table: FloatArray, levels: FloatArray) -> FloatArray:
    coincidences = table + np.swapaxes(table, -1, -2)
    counts = coincidences.sum(axis=-1)
    total = counts.sum(axis=-1)
    reached = np.cumsum(counts, axis=-1)
    # The ordinal distance of two grades: all the values from one to the other, the ends by half.
    middle = reached - counts / 2
    distance = (middle[..., :, None] - middle[..., None, :]) ** 2
    observed = (coincidences * distance).sum(axis=(-2, -1))
    expected = (counts[..., :, None] * counts[..., None, :] * distance).sum(axis=(-2, -1))
    result: FloatArray = 1 - (total - 1) * observed / expected
    return result


def _spearman(table: FloatArray, levels: FloatArray) -> FloatArray:
    total = _total(table)
    centred = []
    for counts in (table.sum(axis=-1), table.sum(axis=-2)):
        ranks = np.cumsum(counts, axis=-1) - counts / 2
        centred.append((ranks - (total / 2)[..., None], counts))
    (left, of_left), (right, of_right) = centred
    product = (table * left[..., :, None] * right[..., None, :]).sum(axis=(-2, -1))
    spread = (of_left * left**2).sum(axis=-1) * (of_right * right**2).sum(axis=-1)
    result: FloatArray = product / np.sqrt(spread)
    return result


def _bias(table: FloatArray, levels: FloatArray) -> FloatArray:
    result: FloatArray = (table * (levels - levels[:, None])).sum(axis=(-2, -1)) / _total(table)
    return result


def _bias_at(row: int) -> Callable[[FloatArray, FloatArray], FloatArray]:
    def figure(table: FloatArray, levels: FloatArray) -> FloatArray:
        counts = table[..., row, :]
        result: FloatArray = (counts * (levels - levels[row])).sum(axis=-1) / counts.sum(axis=-1)
        return result

    return figure


_FIGURES: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "exact": _within(0),
    "within_one": _within(1),
    "kappa": _kappa(0),
    "kappa_linear": _kappa(1),
    "kappa_quadratic": _kappa(2),
    "ac2": _ac2,
    "alpha": _alpha,
    "spearman": _spearman,
    "bias": _bias,
}


def _quartiles(values: FloatArray) -> dict[str, float]:
    names = ("lowest", "quarter", "median", "three_quarters", "highest")
    return {name: float(value) for name, value in zip(names, np.quantile(values, [0, 0.25, 0.5, 0.75, 1]), strict=True)}
