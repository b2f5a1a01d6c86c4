"""Chance-corrected figures of a run whose judge graded random control passages too.

A judge that accepts too much raises the success of the lists. Its rate on passages drawn at random from the corpus
raises the random baseline by the same judge's standard, so that a lenient judge, or one that rolls dice, gains nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.measures.chance import BaselineMeasure, BoR, Lambda
from rag_selectivity.measures.hypergeometric import random_success
from rag_selectivity.measures.outcome import log2_of_ratio
from rag_selectivity.tables.cells import check_number, check_whole
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.people import BoolArray
from rag_selectivity.trust.placebo import tails
from rag_selectivity.trust.sampled_totals import sampled_total
from rag_selectivity.wording import counted

#: Draws for figures without an interval, whose median alone is wanted.
_DRAWS_OF_A_MEDIAN = 1000
#: Hits in effectively fewer queries say little about the other queries.
FEWEST_QUERIES_WITH_HITS = 3.0
#: The share of the draws of the likeness that must be above 0 for it to be taken as shown.
_SHOWN = 0.9
#: The likeness of passages of one query is at most this; below the other they are drawn as if each were on its own.
_MOST_ALIKE, _LEAST_ALIKE = 0.95, 1e-7
_CELLS_AT_ONCE = 1 << 21
_GRID = 33
#: The share of the queries with controls that must have as many as a draw takes, for an estimate without a model.
_NEARLY_ALL = 0.9
#: log of the error of each of the two one-sided limits of a plan.
_LOG_TAIL = math.log(0.025)
#: A corpus with so many bits over random has a million million passages.
_MOST_BITS = 40


@dataclass(frozen=True, slots=True)
class Controlled:
    """A figure with controls.

    Attributes
    ----------
    value, low, high : float
        NaN if undefined. If no control is relevant, the value is NaN, and the ends are what is shown without a model
        and the figure as judged.
    shown : float or None
        The bits that are shown without a model, for BoR.
    can_show : float or None
        The bits that these controls could show at most, for BoR.
    used : int
        The controls behind the figure, for BoR: those that are not in the top K of their query's list.
    reason : str or None
        Why there is no value.
    narrow : str
        Why the interval is probably too narrow; empty if it is not.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    shown: float | None = None
    can_show: float | None = None
    used: int = 0
    reason: str | None = None
    narrow: str = ""


@dataclass(frozen=True, slots=True)
class Draw:
    """The random draw of each query at one depth, as far as its labels and controls tell.

    Attributes
    ----------
    graded, relevant : int64[queries]
        The graded and the relevant controls; a failed grading is not counted.
    units : int64[queries]
        The cluster of each query; without clusters, its own number.
    found, missed : float64[queries]
        The probability that a draw from the corpus holds a passage that is known to be relevant, and that it holds
        none.
    outside : float64[queries]
        How many passages of a draw without a known relevant one are expected to come from outside the labels.
    tail : float64[queries]
        log of the probability that a draw misses the relevant passages that a sampled tail stands for (≤ 0).
    tail_hits : float
        How many relevant labels stand for these, if each stood for equally many: (Σw)²/Σw².
    controls : int
        How many controls were graded, those of several rows of one query once.
    """

    graded: IntArray
    relevant: IntArray
    units: IntArray
    found: FloatArray
    missed: FloatArray
    outside: FloatArray
    tail: FloatArray
    tail_hits: float = 0.0
    controls: int = 0


@dataclass(frozen=True, slots=True)
class _AtDepth:
    """What the figures of one depth are made of.

    Attributes
    ----------
    draw : Draw
    success, chance, miss, rate : float64[draws]
        Draws of the success rate, of the success and the miss of a random draw, and of the judge's rate on controls.
    alike : float
        How alike the controls of a query are at least, where a model extends them to the draw.
    success_rate : float
    success_low, chance_high : float
        The lowest success rate and the highest success of a random draw, without a model.
    expected, per_rate : float
        Lambda is the first, and the second times the judge's rate.
    """

    draw: Draw
    success: FloatArray
    chance: FloatArray
    miss: FloatArray
    rate: FloatArray
    alike: float
    success_rate: float
    success_low: float
    chance_high: float
    expected: float
    per_rate: float


def controlled_figures(figures: Figures, bootstrap: Bootstrap | None) -> dict[str, Controlled]:
    """The chance-corrected figures of a run with its random controls: {measure with its depth: figure}.

    All queries of the labels count, also those without a relevant label: over the queries with a relevant one alone, a
    run whose labels are its own finds succeeds always. Figures that do not use the controls are left out, and those of
    a depth at which none is left.
    """
    judged, known, result = figures.join, dict[tuple[int, int], _AtDepth | None](), dict[str, Controlled]()
    sampling = bootstrap or Bootstrap(_DRAWS_OF_A_MEDIAN)
    for (measure, depths), outcome in zip(figures.plan, figures.outcomes, strict=True):
        if not isinstance(measure, (BaselineMeasure, Lambda)) or not measure.needs_corpus_size:
            continue
        otherwise = ", or name measures without a random baseline, as in measures=['Success'] (--measure Success)"
        judged.refuse_weights("a random baseline from controls", otherwise)
        for column, depth in enumerate(depths.tolist()):
            name = str(measure @ depth)
            if is_budget(depth):
                reason = "random controls give a random baseline at depths K, and not at a budget of tokens"
                result[name] = Controlled(reason=reason)
                continue
            if outcome.refused is not None and outcome.refused.refused[column]:
                continue
            key = judged.threshold(measure.rel), depth
            if key not in known:
                known[key] = _at(judged, depth, measure.rel, sampling)
            if (at := known[key]) is not None:
                result[name] = _controlled(measure, depth, at, outcome, sampling)
                # Without a bootstrap there are no intervals, but for the ends of what is possible.
                if bootstrap is None and not math.isnan(result[name].value):
                    result[name] = replace(result[name], low=math.nan, high=math.nan)
    return result


def _controlled(
    measure: BaselineMeasure | Lambda, depth: int, at: _AtDepth, outcome: Outcome, sampling: Bootstrap
) -> Controlled:
    """The figure of a measure at a depth; `outcome` is that of the measure as judged, and gives the aggregate.

    It is the median of draws with their quantiles; without a relevant control, the two ends of what is possible.
    """
    tail, draw = (1 - sampling.level) / 2, at.draw
    if not isinstance(measure, Lambda) and measure.m != 1:
        return Controlled(reason=f"random controls give a random baseline for m=1 only, and here m={measure.m}")

    if isinstance(measure, Lambda):
        highest = float(clopper_pearson(0.0, float((draw.graded > 0).sum()), tail)[1])
        draws = upper = at.expected + at.per_rate * at.rate
        ends = at.expected, at.expected + at.per_rate * highest
    else:
        parts_of = measure.parts_of

        def figure(success: Any, chance: Any, miss: Any) -> FloatArray:
            return np.asarray(outcome.aggregate.value(*parts_of(*map(np.asarray, (success, chance, miss)))))

        draws = figure(at.success, at.chance, at.miss)
        # Beta(s + ½, Q − s + ½) excludes 1 also where all succeed: the upper end is then that of success 1.
        upper = figure(np.where(at.success_rate == 1, 1.0, at.success), at.chance, at.miss)
        least = float(figure(at.success_low, at.chance_high, 1 - at.chance_high))
        ends = least, float(figure(at.success_rate, draw.found.mean(), draw.missed.mean()))
    total, shown, can_show = draw.controls, None, None
    if isinstance(measure, BoR):
        shown = float(log2_of_ratio(np.asarray(at.success_low / at.chance_high)))
        # If every list held a relevant passage and no control were relevant.
        queries, none = effective_units(draw.units), replace(draw, relevant=0 * draw.relevant)
        lowest, most = clopper_pearson(queries, queries, tail)[0], most_found_outside(none, depth, tail)
        can_show = float(log2_of_ratio(np.asarray(lowest / most)))
    if draw.relevant.any():
        value, low = np.quantile(draws, [0.5, tail]).tolist()
        high = float(np.quantile(upper, 1 - tail))
        spread = effective_size(draw.relevant.astype(np.float64))
        narrow = ""
        if draw.relevant.sum() > 1 and spread < FEWEST_QUERIES_WITH_HITS:
            narrow = f"The relevant controls are in few queries (effectively {spread:.1f})."
        elif at.alike > 0 and not isinstance(measure, Lambda):
            narrow = "Queries have fewer controls than K, of which the judge accepts many in some and few in others."
        return Controlled(value + 0.0, low + 0.0, high + 0.0, shown, can_show, total, narrow=narrow)
    low, high = (math.nan, math.nan) if math.isnan(sum(ends)) else sorted(ends)
    no_hit = f"none of the {counted(total, 'control')} is relevant"
    use = f"; use low({measure @ depth}) or shown({measure @ depth})" if shown is not None else ""
    reason = f"{no_hit}, so only the ends of the figure are known{use}"
    if at.success_rate == 0:
        reason = f"{no_hit}, and no list has a relevant passage in its top {depth}"
    return Controlled(math.nan, low, high, shown, can_show, total, reason)


def _at(judged: JudgedRun, depth: int, rel: int | None, bootstrap: Bootstrap) -> _AtDepth | None:
    """What the figures of one depth are made of; None if no control is left there."""
    threshold, depths, tail = judged.threshold(rel), np.array([depth]), (1 - bootstrap.level) / 2
    if judged.controls is None:
        return None
    graded, relevant = judged.controls.counts(len(judged), threshold, depth)
    if not graded.any():
        return None
    units = bootstrap.units(judged.queries)
    units = np.arange(len(judged)) if units is None else units
    sizes, drawn = judged.require_corpus_size("an estimate with random controls"), judged.drawn_at(depths)[:, 0]
    labels, tail_size = tails(judged)
    labelled, in_tail = labels.sum(axis=1), labels[:, judged.grades >= threshold].sum(axis=1)
    known, rest = judged.left.relevant(rel), np.where(labelled > 0, np.maximum(tail_size - labelled, 0), 0)
    # The passages that controls stand for, and the relevant ones that the drawn passages of a tail stand for.
    beyond = np.maximum(sizes - judged.left.labelled - rest, 0).astype(np.float64)
    each = rest / np.maximum(labelled, 1)
    more = each * in_tail
    found, missed = random_success(sizes, known, drawn)
    with np.errstate(invalid="ignore", divide="ignore"):
        outside = np.where(sizes > known, drawn * beyond / (sizes - known), 0.0)
        in_tails = np.where(more > 0, more * np.log1p(-np.minimum(drawn / sizes, 1 - 1e-12)), 0.0)
    squares = float((each * more).sum())
    hits = float(more.sum()) ** 2 / squares if squares else 0.0
    draw = Draw(graded, relevant, units, found, missed, outside, in_tails, hits, int(graded[judged.is_first].sum()))
    # A draw finds a relevant passage of the tail at most as often as it holds such passages on average.
    share, some = drawn / np.maximum(sizes, 1), labelled > 0
    chance = share[some] / len(sizes)
    held = np.maximum(tail_size, labelled)[some], labelled[some], in_tail[some]
    most_in_tail = sampled_total(*held, tail, chance)[2] - float((chance * in_tail[some]).sum())

    rate, alike = rate_draws(draw, bootstrap.resamples, np.random.default_rng([bootstrap.seed, 0]))
    rng = np.random.default_rng([bootstrap.seed, 1])
    random, miss = chance_draws(draw, rate, alike, rng)
    succeeded = judged.hits_at(depths, rel)[:, 0] >= 1
    success = success_draws(succeeded, units, bootstrap.resamples, rng)
    trials, success_rate = effective_units(units), float(succeeded.mean())
    lowest = float(clopper_pearson(success_rate * trials, trials, tail)[0])
    highest = min(1.0, most_found_outside(draw, int(drawn.max(initial=1)), tail) + most_in_tail + float(found.mean()))
    likeness = 0.0 if _are_draws(draw) else float(np.quantile(alike, 1 - _SHOWN))
    expected, per_rate = (float((share * passages).mean()) for passages in (known + more, beyond))
    return _AtDepth(draw, success, random, miss, rate, likeness, success_rate, lowest, highest, expected, per_rate)


# -- the judge's rate ----------------------------------------------------------------------------------


def rate_draws(draw: Draw, draws: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draws of the judge's mean rate of relevant controls, and of how alike the controls of a query are.

    With n controls of each of Q queries, X = Σx of them relevant: r ~ Beta(X/d + ½, (nQ − X)/d + ½), where d is the
    overdispersion of x over queries (Pearson's statistic over its degrees of freedom, at least 1). The likeness is
    (d* − 1)/(n − 1), at most .95, where d* is d of queries drawn with replacement; 0 with fewer than two hits, and
    with one control for each query, which cannot show it. It stays below 0 where d* is below 1: cut off in each draw,
    it would be too high on average for a judge with nearly the same rate in all queries, and BoR with it. Instead
    `missed_outside` bounds the quantiles. Queries may have different numbers of controls: n is then their mean, and
    Pearson's statistic has the n of each query.
    """
    known = draw.graded > 0
    n, x, units = draw.graded[known].astype(np.float64), draw.relevant[known].astype(np.float64), draw.units[known]
    dispersion = 1.0 if x.sum() < 2 else max(1.0, _dispersion(*_by_unit(units, n, x)))
    rate = rng.beta(x.sum() / dispersion + 0.5, (n.sum() - x.sum()) / dispersion + 0.5, draws)
    size = n.mean()
    if x.sum() < 2 or size <= 1:
        return rate, np.zeros(draws)
    alike = (_resampled_dispersion(n, x, units, draws, rng) - 1) / (size - 1)
    return rate, np.clip(alike, -1 / (size - 1), _MOST_ALIKE)


def _by_unit(units: IntArray, *columns: FloatArray) -> tuple[FloatArray, ...]:
    _, place = np.unique(units, return_inverse=True)
    return tuple(np.bincount(place, column).astype(np.float64) for column in columns)


def _dispersion(n: FloatArray, x: FloatArray) -> float:
    """Pearson's statistic of counts x of n with one rate, over its degrees of freedom; 1 if there is no spread."""
    rate = x.sum() / n.sum()
    if len(n) < 2 or not 0 < rate < 1:
        return 1.0
    return float(((x - n * rate) ** 2 / n).sum() / (rate * (1 - rate)) / (len(n) - 1))


def _resampled_dispersion(
    n: FloatArray, x: FloatArray, units: IntArray, draws: int, rng: np.random.Generator
) -> FloatArray:
    """The dispersion over queries, with whole units drawn with replacement: float64[draws]; 1 without a spread."""
    rows = np.stack(_by_unit(units, np.ones(len(n)), n, x, x**2 / n), axis=1)
    kinds, times = np.unique(rows, axis=0, return_counts=True)
    sums = []
    for start in range(0, draws, step := max(1, _CELLS_AT_ONCE // len(kinds))):
        sums.append(rng.multinomial(len(rows), times / len(rows), min(step, draws - start)).astype(np.float64) @ kinds)
    queries, total, hits, squares = np.concatenate(sums).T
    rate = hits / total
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (squares - hits * rate) / (rate * (1 - rate)) / (queries - 1)
    return np.where((rate > 0) & (rate < 1) & (queries > 1), spread, 1.0)


def success_draws(succeeded: BoolArray, units: IntArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draws of the success rate: Beta(s + ½, Q − s + ½); with clusters, both counts over their overdispersion."""
    sizes, hits = _by_unit(units, np.ones(len(units)), succeeded.astype(np.float64))
    total, design = float(sizes.sum()), 1.0
    if len(sizes) < total:
        agree = not 0 < hits.sum() < total
        design = float((sizes**2).sum() / total) if agree else max(1.0, _dispersion(sizes, hits))
    return rng.beta(hits.sum() / design + 0.5, (total - hits.sum()) / design + 0.5, draws)


# -- the success of a random draw ----------------------------------------------------------------------


def chance_draws(
    draw: Draw, rate: FloatArray, alike: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draws of the mean over queries of a random draw's success, and of its miss: float64[draws] each.

    If nearly all queries have as many controls as the draw takes from outside the labels, the controls are such draws,
    and no model of their likeness is needed (`_shares_found`). Otherwise `missed_outside` extends them to the draw.
    """
    inside = _missed_with_tail(draw, len(rate), rng)
    found, missed = np.zeros(len(rate)), np.zeros(len(rate))
    for rows, helped, failed in _outside(draw, rate, alike, rng):
        known, unknown = inside(rows)
        found += rows.mean() * (known + unknown * helped)
        missed += rows.mean() * unknown * failed
    return found, missed


def _outside(
    draw: Draw, rate: FloatArray, alike: FloatArray, rng: np.random.Generator
) -> Iterator[tuple[BoolArray, FloatArray, FloatArray]]:
    """Groups of the queries, and how often passages from outside the labels help there and how often they do not."""
    if _are_draws(draw):
        shares = _shares_found(draw, draw.graded >= draw.outside, len(rate), rng)
        yield np.ones(len(draw.graded), bool), shares, 1 - shares
        return
    # Lists of different lengths give draws of different sizes; their means over few steps are exact enough.
    slots, group = np.unique(np.round(draw.outside, 3), return_inverse=True)
    if len(slots) > _GRID:
        edges = np.quantile(draw.outside, np.linspace(0, 1, _GRID + 1)[1:-1])
        _, group = np.unique(np.searchsorted(edges, draw.outside), return_inverse=True)
        slots = np.bincount(group, draw.outside) / np.bincount(group)
    for place, size in enumerate(slots.tolist()):
        outside = missed_outside(rate, alike, size)
        yield group == place, -np.expm1(outside), np.exp(outside)


def _are_draws(draw: Draw) -> bool:
    """Whether nearly all queries have as many controls as a draw takes: then they need no model of their likeness."""
    return bool((draw.graded >= draw.outside).sum() >= _NEARLY_ALL * (draw.graded > 0).sum())


def missed_outside(rate: FloatArray, alike: FloatArray, slots: float) -> FloatArray:
    """log of the probability that none of some passages from outside the labels is relevant: float64[draws].

    A query's rate is Beta with mean r and likeness icc: a = r(1 − icc)/icc, b = (1 − r)(1 − icc)/icc, and the
    probability is B(a, b + k)/B(a, b); (1 − r)^k at icc 0. Its logarithm goes on below 0 with the slope that it has at
    0, k(k − 1)/2 · r/(1 − r). Queries with any rates miss at least as often as those with equal ones (Jensen): each
    quantile of the draws, which are in order, is at least that of (1 − r)^k for a rate that is one standard error
    higher. At r itself, judges with equal rates would have a miss, and so a BoR, that is too high on average.
    """
    from scipy.special import betaln

    alone, even, high = alike < _LEAST_ALIKE, slots * np.log1p(-rate), np.minimum(rate + rate.std(), 1 - 1e-12)
    scale = (1 - alike) / np.where(alone, 0.5, alike)
    a, b = rate * scale, (1 - rate) * scale
    below = even + np.minimum(alike, 0.0) * max(0.0, slots * (slots - 1) / 2) * rate / (1 - rate)
    missed = np.where(alone, below, np.minimum(0.0, betaln(a, b + slots) - betaln(a, b)))
    return np.asarray(np.maximum(np.sort(missed), slots * np.log1p(-np.sort(high)[::-1])))


def _shares_found(draw: Draw, enough: BoolArray, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draws of how often passages from outside the labels help where the labels do not: float64[draws].

    h = 1 − C(n − x, k)/C(n, k) is how often k of a query's n controls hold one of the x relevant ones. It is unbiased
    for the query's random draw, whatever the rates of the queries are. Its mean over queries, weighted by the
    probability that the known labels are missed, is z ~ Beta(z·m + ½, (1 − z)·m + 1), with m = z(1 − z)/Var(z), the
    number of yes-or-no answers with this variance, at most the number of separate draws that the controls hold.
    """
    graded, outside, units = draw.graded[enough], draw.outside[enough], draw.units[enough]
    hits = _hit_share(graded, draw.relevant[enough], outside)
    weight = draw.missed[enough] / max(float(draw.missed[enough].mean()), 1e-300)
    size = float(len(hits))
    mean = min(1.0, float((weight * hits).mean()))
    (gaps,) = _by_unit(units, weight * (hits - mean))
    variance = float((gaps**2).sum()) / size**2 * len(gaps) / max(1, len(gaps) - 1)
    # The controls hold so many separate draws: queries that agree by luck must not count as more.
    most = effective_units(units) / size * float((graded / np.maximum(outside, 1)).sum())
    answers = most if variance <= 0 else min(most, mean * (1 - mean) / variance)
    return rng.beta(mean * answers + 0.5, (1 - mean) * answers + 1.0, draws)


def _missed_with_tail(draw: Draw, draws: int, rng: np.random.Generator) -> Callable[[BoolArray], tuple[Any, Any]]:
    """rows → mean found and missed known relevant passages, with the sampled tail's error if there is one."""
    if not draw.tail.any():
        return lambda rows: (draw.found[rows].mean(), draw.missed[rows].mean())
    times = rng.gamma(draw.tail_hits + 0.5, 1 / (draw.tail_hits + 0.5), draws)
    grid = np.linspace(0.0, times.max(), _GRID)

    def means(rows: BoolArray) -> tuple[FloatArray, FloatArray]:
        gone = np.outer(grid, draw.tail[rows])
        missed, less = ((draw.missed[rows] * share(gone)).mean(axis=1) for share in (np.exp, np.expm1))
        return draw.found[rows].mean() - np.interp(times, grid, less), np.interp(times, grid, missed)

    return means


# -- without a model ---------------------------------------------------------------------------------


def effective_units(units: IntArray) -> float:
    """How many independent queries there are at least: (Σm)²/Σm² with m queries in a cluster."""
    return effective_size(np.unique(units, return_counts=True)[1].astype(np.float64))


def most_found_outside(draw: Draw, depth: int, tail: float) -> float:
    """An upper bound of how often K random passages from outside the labels hold a relevant one. No model is used.

    The controls of a query are a random draw themselves. From n ≤ K of them: P ≤ (K/n)·U(H, Q), with H the queries with
    a hit and U the upper end of Clopper and Pearson's interval, since a draw that is K/n times as large succeeds at
    most K/n times as often. From n > K: P ≤ U(H′, Q), with H′ = Σ[1 − C(n − x, K)/C(n, K)], the hits of K of the n.

    If queries have different numbers of controls, all are reduced to the same number t ≤ K in the second way, and a
    query with fewer counts as a hit. t is chosen by the numbers alone, not by the grades.

    Parameters
    ----------
    draw : Draw
    depth : int
    tail : float
        The error on this side: .025 for an interval of 95 %.
    """
    known = draw.graded > 0
    n, x = draw.graded[known], draw.relevant[known]
    trials = effective_units(draw.units[known])

    def bound(size: int, hits: float) -> float:
        return depth / size * float(clopper_pearson(hits * trials / len(n), trials, tail)[1])

    size = min(np.unique(np.minimum(n, depth)).tolist(), key=lambda size: bound(size, float((n < size).sum())))
    enough = n >= size
    return min(1.0, bound(size, float((~enough).sum() + _hit_share(n[enough], x[enough], size).sum())))


def _hit_share(n: IntArray, x: IntArray, size: Any) -> FloatArray:
    """1 − C(n − x, t)/C(n, t): how often t ≤ n of the controls hold a relevant one of x; t need not be whole."""
    from scipy.special import gammaln

    rest = n - x
    possible = rest - size > -1
    with np.errstate(invalid="ignore", divide="ignore"):
        log_missed = gammaln(rest + 1.0) - gammaln(rest - size + 1.0) - gammaln(n + 1.0) + gammaln(n - size + 1.0)
    missed = np.where(possible, np.exp(np.minimum(0.0, np.where(possible, log_missed, 0.0))), 0.0)
    return np.where(x > 0, 1.0 - missed, 0.0)


# -- before any control is graded ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ControlPower:
    """What a plan of controls can show.

    If the judge finds no control relevant, and every query succeeds, the controls still leave room for a random success
    rate up to a limit. The bits between the two are the most that they can show.

    Attributes
    ----------
    queries, controls, depth : int
        Queries, controls of each query, and K.
    most_bits : float
        The most that they can show: the bits over random if no control is relevant and every query succeeds.
    show_bits : float or None
        The bits that are wanted, if any.
    controls_needed : int or None
        The fewest controls of each query that can show `show_bits`; None if no number can, or none are wanted.
    queries_needed : int or None
        Where no number of controls can show `show_bits`: the fewest queries that can, with `depth` controls each.
    """

    queries: int
    controls: int
    depth: int
    most_bits: float
    show_bits: float | None = None
    controls_needed: int | None = None
    queries_needed: int | None = None

    @classmethod
    def of(cls, queries: int, controls: int, depth: int, show_bits: float | None = None) -> ControlPower:
        """The power of a plan: log2(S_low / p_up).

        S_low is the lower Clopper-Pearson limit of a success rate with all queries successful, .025^(1/Q). p_up is the
        upper limit of the rate of queries with a relevant control, of which there are none, 1 − .025^(1/Q), times
        `depth / controls` where there are fewer controls than slots (union bound). More controls than slots show no
        more: then only more queries help.

        Raises
        ------
        InputError
            If a value is out of range.

        Examples
        --------
        >>> [round(ControlPower.of(225, n, 10).most_bits, 1) for n in (3, 10, 40)]
        [4.2, 5.9, 5.9]
        >>> ControlPower.of(225, 3, 10, 4).controls_needed, ControlPower.of(225, 3, 10, 6).queries_needed
        (3, 238)
        """
        for name, value in (("queries", queries), ("controls", controls), ("depth", depth)):
            check_whole(name, value)
        check_number("show_bits (--show-bits)", show_bits, above=0, most=_MOST_BITS)
        log_low = _LOG_TAIL / queries
        # −expm1 keeps its digits where a million queries leave a tiny rate.
        rate = -math.expm1(log_low)
        highest_chance = min(1.0, max(1.0, depth / controls) * rate)
        power = cls(queries, controls, depth, max(0.0, (log_low - math.log(highest_chance)) / math.log(2)), show_bits)
        if show_bits is None:
            return power
        # The largest p_up that leaves so many bits, as a multiple of the rate of a draw of K controls.
        if (times := math.exp(log_low) / (2**show_bits * rate)) >= 1:
            return replace(power, controls_needed=math.ceil(depth / times))
        return replace(power, queries_needed=math.ceil(-_LOG_TAIL / math.log1p(2**-show_bits)))
