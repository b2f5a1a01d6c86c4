"""How often a random draw succeeds, from random control passages that the judge of the lists graded too.

A judge that accepts too much raises the success of the lists. Its rate on passages drawn at random from the corpus
raises the random baseline by the same judge's standard, so that a lenient judge, or one that rolls dice, gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray

#: The likeness of passages of one query is at most this.
_MOST_ALIKE = 0.95
#: Below this the passages of a query are drawn as if each were on its own.
_LEAST_ALIKE = 1e-7
_CELLS_AT_ONCE = 1 << 21
_GRID = 33
#: The share of the queries with controls that must have as many as a draw takes, for an estimate without a model.
_NEARLY_ALL = 0.9


@dataclass(frozen=True, slots=True)
class Counts:
    """The graded and the relevant controls of every query: int64[queries] each; a failed grading is not counted.

    `units` numbers the cluster of each query; None if every query is its own.
    """

    graded: IntArray
    relevant: IntArray
    units: IntArray | None = None

    @property
    def queries(self) -> int:
        """The number of queries with a graded control."""
        return int((self.graded > 0).sum())

    @property
    def total(self) -> int:
        """The number of graded controls."""
        return int(self.graded.sum())

    @property
    def hits(self) -> int:
        """The number of relevant controls."""
        return int(self.relevant.sum())

    @property
    def queries_with_hits(self) -> float:
        """Over how many queries the hits are spread: (Σx)²/Σx²; 0 without a hit."""
        squares = float((self.relevant.astype(np.float64) ** 2).sum())
        return self.hits**2 / squares if squares else 0.0


@dataclass(frozen=True, slots=True)
class RateDraws:
    """Draws of the share of passages outside the labels that the judge calls relevant: float64[draws] each.

    `rate` is its mean over queries; `alike` the correlation of two passages of the same query.
    """

    rate: FloatArray
    alike: FloatArray


def rate_draws(counts: Counts, draws: int, rng: np.random.Generator) -> RateDraws:
    """Draws of the judge's rate of relevant controls, and of how alike the controls of a query are.

    With n controls of each of Q queries, X = Σx of them relevant: r ~ Beta(X/d + ½, (nQ − X)/d + ½), where d is the
    overdispersion of x over queries (Pearson's statistic over its degrees of freedom, at least 1). The likeness is
    (d* − 1)/(n − 1), at most .95, where d* is d of queries drawn with replacement; 0 with fewer than two hits, and
    with one control for each query, which cannot show it. It stays below 0 where d* is below 1: cut off there, it
    would be too high on average for a judge with nearly the same rate in all queries, and BoR with it. Queries may have
    different numbers of controls: n is then their mean, and Pearson's statistic has the n of each query.

    Parameters
    ----------
    counts : Counts
        With at least one graded control.
    draws : int
    rng : numpy.random.Generator
    """
    known = counts.graded > 0
    n, x = counts.graded[known].astype(np.float64), counts.relevant[known].astype(np.float64)
    units = None if counts.units is None else counts.units[known]
    dispersion = 1.0 if x.sum() < 2 else max(1.0, _dispersion(*_by_unit(units, n, x)))
    rate = rng.beta(x.sum() / dispersion + 0.5, (n.sum() - x.sum()) / dispersion + 0.5, draws)
    alike = np.zeros(draws)
    size = n.mean()
    if x.sum() >= 2 and size > 1:
        alike = np.clip((_resampled_dispersion(n, x, units, draws, rng) - 1) / (size - 1), -1 / (size - 1), _MOST_ALIKE)
    return RateDraws(rate, alike)


def _by_unit(units: IntArray | None, *columns: FloatArray) -> tuple[FloatArray, ...]:
    if units is None:
        return columns
    _, place = np.unique(units, return_inverse=True)
    return tuple(np.bincount(place, column).astype(np.float64) for column in columns)


def _dispersion(n: FloatArray, x: FloatArray) -> float:
    """Pearson's statistic of counts x of n with one rate, over its degrees of freedom; 1 if there is no spread."""
    rate = x.sum() / n.sum()
    if len(n) < 2 or not 0 < rate < 1:
        return 1.0
    return float(((x - n * rate) ** 2 / n).sum() / (rate * (1 - rate)) / (len(n) - 1))


def _resampled_dispersion(
    n: FloatArray, x: FloatArray, units: IntArray | None, draws: int, rng: np.random.Generator
) -> FloatArray:
    """The dispersion over queries, with whole units drawn with replacement: float64[draws]; 1 without a spread."""
    rows = np.stack(_by_unit(units, np.ones(len(n)), n, x, x**2 / n), axis=1)
    kinds, number = np.unique(rows, axis=0, return_counts=True)
    result = np.ones(draws)
    step = max(1, _CELLS_AT_ONCE // len(kinds))
    for start in range(0, draws, step):
        part = slice(start, min(start + step, draws))
        times = rng.multinomial(len(rows), number / len(rows), size=part.stop - part.start)
        queries, total, hits, squares = (times.astype(np.float64) @ kinds).T
        rate = hits / total
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = (squares - hits * rate) / (rate * (1 - rate)) / (queries - 1)
        result[part] = np.where((rate > 0) & (rate < 1) & (queries > 1), spread, 1.0)
    return result


def success_draws(
    succeeded: NDArray[np.bool_], units: IntArray | None, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Draws of the success rate: Beta(s + ½, Q − s + ½); with clusters, both counts over their overdispersion."""
    total, hits = float(len(succeeded)), float(succeeded.sum())
    design = _design_effect(succeeded, units)
    return rng.beta(hits / design + 0.5, (total - hits) / design + 0.5, draws)


def _design_effect(succeeded: NDArray[np.bool_], units: IntArray | None) -> float:
    if units is None:
        return 1.0
    sizes, hits = _by_unit(units, np.ones(len(units)), succeeded.astype(np.float64))
    if not 0 < hits.sum() < sizes.sum():
        return float((sizes**2).sum() / sizes.sum())
    return max(1.0, _dispersion(sizes, hits))


def missed_outside(rates: RateDraws, slots: float) -> FloatArray:
    """log of the probability that none of some passages from outside the labels is relevant: float64[draws].

    A query's rate is Beta with mean r and likeness icc: a = r(1 − icc)/icc, b = (1 − r)(1 − icc)/icc, and the
    probability is B(a, b + k)/B(a, b); (1 − r)^k at icc 0. Its logarithm goes on below 0 with the slope that it has at
    0, k(k − 1)/2 · r/(1 − r).
    """
    from scipy.special import betaln

    alone = rates.alike < _LEAST_ALIKE
    alike = np.where(alone, 0.5, rates.alike)
    scale = (1 - alike) / alike
    a, b = rates.rate * scale, (1 - rates.rate) * scale
    below = np.minimum(rates.alike, 0.0) * max(0.0, slots * (slots - 1) / 2) * rates.rate / (1 - rates.rate)
    return np.where(alone, slots * np.log1p(-rates.rate) + below, np.minimum(0.0, betaln(a, b + slots) - betaln(a, b)))


@dataclass(frozen=True, slots=True)
class Draw:
    """The random draw of each query at one depth, as far as its labels are known.

    Attributes
    ----------
    found, missed : float64[queries]
        The probability that a draw from the corpus holds a passage that is known to be relevant, and that it holds
        none.
    outside : float64[queries]
        How many passages of a draw without a known relevant one are expected to come from outside the labels.
    tail : float64[queries]
        log of the probability that a draw misses the relevant passages that a sampled tail stands for (≤ 0).
    tail_hits : float
        How many relevant labels stand for these, if each stood for equally many: (Σw)²/Σw².
    """

    found: FloatArray
    missed: FloatArray
    outside: FloatArray
    tail: FloatArray
    tail_hits: float = 0.0


def chance_draws(
    draw: Draw, counts: Counts, rates: RateDraws, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draws of the mean over queries of a random draw's success, and of its miss: float64[draws] each.

    If nearly all queries have as many controls as the draw takes from outside the labels, the controls are such draws,
    and no model of their likeness is needed (`_shares_found`). Otherwise `missed_outside` extends them to the draw.
    """
    inside = _missed_with_tail(draw, len(rates.rate), rng)
    enough = counts.graded >= draw.outside
    if enough.sum() >= _NEARLY_ALL * (counts.graded > 0).sum():
        known, unknown = inside(np.ones(len(draw.found), bool))
        shares = _shares_found(draw, counts, enough, len(rates.rate), rng)
        return known + unknown * shares, unknown * (1 - shares)
    found, missed = np.zeros(len(rates.rate)), np.zeros(len(rates.rate))
    # Lists of different lengths give draws of different sizes; their means over few steps are exact enough.
    slots, group = np.unique(np.round(draw.outside, 3), return_inverse=True)
    if len(slots) > _GRID:
        edges = np.quantile(draw.outside, np.linspace(0, 1, _GRID + 1)[1:-1])
        _, group = np.unique(np.searchsorted(edges, draw.outside), return_inverse=True)
        slots = np.bincount(group, draw.outside) / np.bincount(group)
    for number, size in enumerate(slots.tolist()):
        rows = group == number
        share = rows.mean()
        known, unknown = inside(rows)
        outside = missed_outside(rates, size)
        found += share * (known - unknown * np.expm1(outside))
        missed += share * unknown * np.exp(outside)
    return found, missed


def _shares_found(
    draw: Draw, counts: Counts, enough: NDArray[np.bool_], draws: int, rng: np.random.Generator
) -> FloatArray:
    """Draws of how often passages from outside the labels help where the labels do not: float64[draws].

    h = 1 − C(n − x, k)/C(n, k) is how often k of a query's n controls hold one of the x relevant ones. It is unbiased
    for the query's random draw, whatever the rates of the queries are. Its mean over queries, weighted by the
    probability that the known labels are missed, is z ~ Beta(z·m + ½, (1 − z)·m + 1), with m = z(1 − z)/Var(z), the
    number of yes-or-no answers with this variance, at most the number of separate draws that the controls hold.
    """
    hits = _hit_share(counts.graded[enough], counts.relevant[enough], draw.outside[enough])
    weight = draw.missed[enough] / max(float(draw.missed[enough].mean()), 1e-300)
    units = None if counts.units is None else counts.units[enough]
    size = float(len(hits))
    mean = min(1.0, float((weight * hits).mean()))
    (gaps,) = _by_unit(units, weight * (hits - mean))
    variance = float((gaps**2).sum()) / size**2 * len(gaps) / max(1, len(gaps) - 1)
    # The controls hold so many separate draws: queries that agree by luck must not count as more.
    most = (
        effective_units(units, len(hits))
        / len(hits)
        * float((counts.graded[enough] / np.maximum(draw.outside[enough], 1)).sum())
    )
    answers = most if variance <= 0 else min(most, mean * (1 - mean) / variance)
    return rng.beta(mean * answers + 0.5, (1 - mean) * answers + 1.0, draws)


def _missed_with_tail(draw: Draw, draws: int, rng: np.random.Generator) -> Any:
    """rows → mean found and missed known relevant passages, with the sampled tail's error if there is one."""
    if not draw.tail.any():
        return lambda rows: (draw.found[rows].mean(), draw.missed[rows].mean())
    times = rng.gamma(draw.tail_hits + 0.5, 1 / (draw.tail_hits + 0.5), draws)
    grid = np.linspace(0.0, times.max(), _GRID)

    def means(rows: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        missed = np.array([(draw.missed[rows] * np.exp(draw.tail[rows] * each)).mean() for each in grid])
        more = np.array([(-draw.missed[rows] * np.expm1(draw.tail[rows] * each)).mean() for each in grid])
        return draw.found[rows].mean() + np.interp(times, grid, more), np.interp(times, grid, missed)

    return means


# -- without a model ---------------------------------------------------------------------------------


def effective_units(units: IntArray | None, queries: int) -> float:
    """How many independent queries there are at least: (Σm)²/Σm² with m queries in a cluster."""
    if units is None or not queries:
        return float(queries)
    sizes = np.unique(units, return_counts=True)[1].astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def most_found_outside(counts: Counts, depth: int, tail: float, *, no_hit: bool = False) -> float:
    """An upper bound of how often K random passages from outside the labels hold a relevant one. No model is used.

    The controls of a query are a random draw themselves. From n ≤ K of them: P ≤ (K/n)·U(H, Q), with H the queries with
    a hit and U the upper end of Clopper and Pearson's interval, since a draw that is K/n times as large succeeds at
    most K/n times as often. From n > K: P ≤ U(H′, Q), with H′ = Σ[1 − C(n − x, K)/C(n, K)], the hits of K of the n.

    If queries have different numbers of controls, all are reduced to the same number t ≤ K in the second way, and a
    query with fewer counts as a hit. t is chosen by the numbers alone, not by the grades.

    Parameters
    ----------
    counts : Counts
    depth : int
    tail : float
        The error on this side: .025 for an interval of 95 %.
    no_hit : bool
        The bound that these controls would give if none of them were relevant.
    """
    known = counts.graded > 0
    n = counts.graded[known]
    x = np.zeros_like(n) if no_hit else counts.relevant[known]
    if not len(n):
        return 1.0
    trials = effective_units(None if counts.units is None else counts.units[known], len(n))
    scale = trials / len(n)

    def bound(size: int, hits: float) -> float:
        return depth / size * float(clopper_pearson(hits * scale, trials, tail)[1])

    each = np.unique(np.minimum(n, depth)).tolist()
    size = int(min(each, key=lambda size: bound(size, float((n < size).sum()))))
    enough = n >= size
    hits = float((~enough).sum()) + float(_hit_share(n[enough], x[enough], size).sum())
    return min(1.0, bound(size, hits))


def _hit_share(n: IntArray, x: IntArray, size: Any) -> FloatArray:
    """1 − C(n − x, t)/C(n, t): how often t ≤ n of the controls hold a relevant one of x; t need not be whole."""
    from scipy.special import gammaln

    rest = n - x
    possible = rest - size > -1
    with np.errstate(invalid="ignore", divide="ignore"):
        log_missed = gammaln(rest + 1.0) - gammaln(rest - size + 1.0) - gammaln(n + 1.0) + gammaln(n - size + 1.0)
    missed = np.where(possible, np.exp(np.minimum(0.0, np.where(possible, log_missed, 0.0))), 0.0)
    return np.where(x > 0, 1.0 - missed, 0.0)


def bits_between(success: float, chance: float) -> float:
    """log2(success/chance); −∞ without a success."""
    return float(np.log2(success / chance)) if success > 0 else -np.inf


def most_bits_shown(counts: Counts, depth: int, tail: float = 0.025) -> float:
    """The bits that these controls would show if every list held a relevant passage and no control were relevant.

    >>> round(most_bits_shown(Counts(np.full(225, 3), np.zeros(225, int)), 10), 1)
    4.2
    """
    queries = effective_units(counts.units, len(counts.graded))
    least = float(clopper_pearson(queries, queries, tail)[0])
    return bits_between(least, most_found_outside(counts, depth, tail, no_hit=True))
