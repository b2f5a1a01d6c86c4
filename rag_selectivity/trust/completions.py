"""Figures on completed labels: every measure on each of many completions, for one run or the difference of two.

M completions of Q queries are measured as one table of M · Q rows, in chunks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.rows import Hits
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray, Measure, Outcome, Real
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.plan import Plan
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.ground import BoolArray, Ground
from rag_selectivity.trust.strata import Places, Strata, WithoutLabels

#: Completions of the labels, and for each of them the resamples of the queries beside all of these.
DRAWS, RESAMPLES = 150, 8
#: By how much the half-widths are stretched: so many completions of so few labels are narrower than their errors. The
#: same within a slice, which rests on a part of the labels and, of few, on what other queries say too.
STRETCH, _STRETCH_IN_A_SLICE = 1.2, 1.5
#: So many rows of a chunk stay in the processor's cache.
_ROWS_AT_ONCE = 100_000
#: Below so many relevant passages a query, figures of success, and those that compare with all labels, are rough.
_FEW_RELEVANT = 2.0
#: A figure that fewer completions have is none.
_MOST = 0.9
#: Below this, a difference is rounding.
_SAME = 1e-12

#: The grade of each judgment, and the labels of each query with each level: int64[judgments], int64[queries, levels].
Completion = tuple[IntArray, IntArray]
#: One run, or a run and its baseline.
Names = tuple[str, ...]


@dataclass(frozen=True)
class Sampling:
    """How completions are drawn: level, seed, number of completions, the clusters of queries; and the stretch."""

    level: float = 0.95
    seed: int = 7
    draws: int = DRAWS
    units: Callable[[Sequence[str]], IntArray | None] = field(default=lambda _: None)
    stretch: float = STRETCH

    @classmethod
    def of(cls, bootstrap: Bootstrap | None) -> Sampling:
        """With a bootstrap's level, seed and clusters."""
        return cls() if bootstrap is None else cls(bootstrap.level, bootstrap.seed, units=bootstrap.units)

    def ends(self, values: FloatArray, middle: float) -> tuple[float, float]:
        """The quantiles at the two ends of the level, with their distances from the middle stretched."""
        tail = (1 - self.level) / 2
        ends = quantile(values, tail), quantile(values, 1 - tail)
        if not math.isfinite(middle):
            return ends
        low, high = (end if math.isinf(end) else middle + self.stretch * (end - middle) for end in ends)
        return low, high


@dataclass(frozen=True, slots=True)
class Completed:
    """A figure over all completions, or a run's figure minus the baseline's.

    Attributes
    ----------
    value : float
        The median.
    low, high : float
        The interval over completions and queries; that of a difference contains 0 if and only if p is more than
        1 − level.
    fixed_low, fixed_high : float
        The interval over completions alone: for these very queries.
    n : int
        The median number of queries with a figure.
    p : float
        Two-sided, of no difference; NaN for a figure.
    sides : (float, float) or ()
        The medians of the two figures of a difference.
    reason : str or None
        Why there is no figure.
    rough : bool
        Whether the interval is known to be too narrow.
    without : WithoutLabels or None
        About strata without a label by people.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    fixed_low: float = math.nan
    fixed_high: float = math.nan
    n: int = 0
    p: float = math.nan
    sides: tuple[float, ...] = ()
    reason: str | None = None
    rough: bool = False
    without: WithoutLabels | None = None


def completed_figures(
    ground: Ground,
    judged: Mapping[str, JudgedRun],
    targets: Sequence[Names],
    plan: Plan,
    sampling: Sampling,
    parts: Mapping[str, JudgedRun] | None = None,
    known: dict[Any, Completed] | None = None,
) -> dict[Names, dict[str, Completed]]:
    """Every figure, or difference, that completions bear on: {target: {measure with its depth: figure}}.

    With people's labels the strata of a figure are those of its own K, so each K has completions of its own. Without,
    the judge's own grades complete what it did not grade of tails, and all depths share their completions. A
    difference has strata of its own, and both runs have the same completions.

    Parameters
    ----------
    targets : sequence of (run,) or (run, baseline)
    parts : {run: JudgedRun}, optional
        The runs over the queries of a slice: their figures rest on what people labelled there.
    known : dict, optional
        What was computed before of the same runs and labels; what is new is added.

    Raises
    ------
    InputError
        If a run and its baseline are over different queries.
    """
    known = {} if known is None or parts is not None else known
    sampling = sampling if parts is None else replace(sampling, stretch=_STRETCH_IN_A_SLICE)
    measured = judged if parts is None else parts
    result: dict[Names, dict[str, Completed]] = {names: {} for names in targets}
    for depth, seed, wanted in _of_people(plan) if ground.has_people else _of_tails(ground, judged, plan):
        tops = ground.tops(judged, depth)
        for names in targets:
            runs = [measured[name] for name in names]
            if any(run.queries != runs[0].queries for run in runs):
                raise InputError(
                    "labels by people (human) calibrate differences over the same queries only: leave out "
                    "paired=False (intervals.unpaired)"
                )
            keys = {key: (names, sampling.level, sampling.seed, key) for key in wanted}
            new = {key: each for key, each in wanted.items() if keys[key] not in known}
            if new:
                top = "whole list" if depth == WHOLE_LIST else f"top {TokenBudget.of(depth) or depth}"
                others = [each for name, each in tops.items() if name not in names]
                places = Places.of(_lists(names, tops), others, top, ground.in_tail)
                queries = None if parts is None else ground.rows_of(runs[0])
                strata = Strata.of(ground, places, queries, ground.counts_of(runs[0]))
                salt = seed if len(names) == 1 else (seed[0] + 2, *seed[1:])
                for key, figure in _measured(strata, runs, new, sampling, salt, tops[names[0]]).items():
                    known[keys[key]] = replace(figure, without=strata.without)
            result[names] |= {key: known[keys[key]] for key in wanted}
    return result


def _lists(names: Names, tops: Mapping[str, BoolArray]) -> dict[str, BoolArray]:
    """The parts of the lists that are strata of a figure, or of a difference."""
    if len(names) == 1:
        return {names[0]: tops[names[0]]}
    one, other = (tops[name] for name in names)
    return {
        f"{names[0]} only": one & ~other,
        f"{names[1]} only": other & ~one,
        f"both {names[0]} and {names[1]}": one & other,
    }


#: Measures that rest on the same strata, by their names: the depth of these, the seed of the completions, the measures.
_Wanted = dict[str, tuple[Measure, Any]]
_Group = tuple[int, tuple[int, ...], _Wanted]


def _of_people(plan: Plan) -> Iterator[_Group]:
    """The measures of each K, whose strata are those of this K; a recall level takes the whole list."""
    groups: dict[int, _Wanted] = {}
    for measure, depths in plan:
        for at in depths.tolist() if measure.name != "Judged" else ():
            of_depth = groups.setdefault(WHOLE_LIST if isinstance(measure.cutoff, Real) else at, {})
            of_depth[str(measure @ at)] = measure, at
    for depth, wanted in groups.items():
        yield depth, (1, min(depth, 1 << 30)), wanted


def _of_tails(ground: Ground, judged: Mapping[str, JudgedRun], plan: Plan) -> Iterator[_Group]:
    """The measures that other labels bear on, which the judge's own grades complete down to the last rank of the tails.

    These compare a list with all labels, or leave out the queries without a relevant one (Success). Figures against a
    random draw rest on the controls instead, where there are any. At which ranks of a list the relevant passages of a
    tail stand is not known, so that figures of these ranks stay as judged.
    """
    origins = ground.labels.origins
    if origins is None or origins.tail_ranks is None:
        return
    controlled, pooled = any(run.controls is not None for run in judged.values()), origins.tail_ranks[0] - 1
    below = max(int(run.returned.max(initial=0)) for run in judged.values()) > pooled
    wanted: _Wanted = {}
    for measure, depths in plan:
        compares = measure.compares_with_all_labels or isinstance(measure, Success)
        if not compares or measure.higher_is_better is None or (controlled and measure.needs_corpus_size):
            continue
        for at in depths.tolist():
            if not (measure.counts_ranks and below and (at > pooled or isinstance(measure.cutoff, Real))):
                wanted[str(measure @ at)] = measure, at
    yield pooled, (7,), wanted


def _measured(
    strata: Strata,
    runs: Sequence[JudgedRun],
    wanted: _Wanted,
    sampling: Sampling,
    salt: tuple[int, ...],
    listed: BoolArray,
) -> dict[str, Completed]:
    """The figures of a run, or the differences of two, on completions of the labels; `salt` seeds what is drawn.

    `listed` says which judgments are in the first run's list: bool[judgments].
    """
    if strata.missing is not None:
        return dict.fromkeys(wanted, Completed(reason=strata.missing))
    # Completions may have queries without a relevant passage.
    runs = [replace(run, policy=replace(run.policy, no_relevant="skip")) for run in runs]
    rows, units = strata.ground.rows_of(runs[0]), sampling.units(runs[0].queries)
    random = np.random.default_rng([sampling.seed, salt[0] + 1, *salt[1:]])
    size = max(1, _ROWS_AT_ONCE // max(1, *(len(run) + len(run.hits.query) for run in runs)))
    depths: dict[Measure, list[Any]] = {}
    for measure, at in wanted.values():
        depths.setdefault(measure, []).append(at)
    plan = [(measure, np.array(at)) for measure, at in depths.items()]
    draws = strata.draws(sampling.draws, (sampling.seed, *salt))
    settled, successes = strata.ground.settled(listed, rows)
    alone = settled > 0 and len(runs) == 1 and runs[0].weights is None
    served = {measure for measure in depths if alone and _is_of_one_success(measure)}
    of_success = random.spawn(1)[0]
    relevant: list[float] = []
    outcomes: dict[Measure, Outcome] = {}
    columns: dict[Measure, list[tuple[FloatArray, ...]]] = {measure: [] for measure in depths}
    while some := list(islice(draws, size)):
        weights = np.stack([_resampled(units, len(runs[0]), random) for _ in some])
        # The share of all queries that succeed: those that people settled, and what these tell of the others.
        chance = of_success.beta(successes + 0.5, settled - successes + 0.5, weights.shape[:2])
        share = (successes + of_success.binomial(len(rows) - settled, chance)) / max(1, len(rows))
        together = [_on(run, rows, strata.levels, some) for run in runs]
        relevant += np.median(together[0].relevant(None).reshape(len(some), -1), axis=1).tolist()
        for measure, at in plan:
            of_runs = [
                _outcome(measure, at, run, joined, (rows, strata.levels, some))
                for run, joined in zip(runs, together, strict=True)
            ]
            outcomes[measure] = of_runs[0]
            of_each = [_counts(outcome).reshape(len(some), -1, len(at)) for outcome in of_runs]
            counts = of_each[0] * np.logical_and.reduce([each > 0 for each in of_each])
            known = share if measure in served else None
            values = np.stack([_values(outcome, weights, counts, known) for outcome in of_runs], axis=1)
            total, squares = counts.sum(axis=1), (counts**2).sum(axis=1)
            effective = total**2 / np.where(squares > 0, squares, 1.0)
            columns[measure].append((values, (counts > 0).sum(axis=1), effective))
    few = strata.ground.has_people and float(np.median(relevant)) < _FEW_RELEVANT
    result = {}
    for measure, at in plan:
        values, defined, effective = (np.concatenate(each) for each in zip(*columns[measure], strict=True))
        rough = few and (measure.compares_with_all_labels or isinstance(measure, Success))
        for i, depth in enumerate(at.tolist()):
            if len(runs) == 2:
                found = _difference(values[..., i], outcomes[measure].reasons[i], sampling)
            else:
                found = _figure(values[:, 0, :, i], np.median(effective[:, i]), outcomes[measure], i, sampling)
            n = int(np.median(defined[:, i]))
            if n < 2 and len(runs) == 1:
                found = replace(found, low=math.nan, high=math.nan)
            result[str(measure @ depth)] = replace(found, n=0 if found.reason else n, rough=rough or measure in served)
    return result


def _is_of_one_success(measure: Measure) -> bool:
    """Whether settled queries tell a measure: success by one relevant passage, also against a random draw."""
    first = getattr(measure, "rel", None) is None and getattr(measure, "m", 1) == 1
    return measure.name in ("Success", "BoR", "EF") and first and getattr(measure, "null", "random") == "random"


def _figure(values: FloatArray, effective: float, outcome: Outcome, column: int, sampling: Sampling) -> Completed:
    """The median and the intervals of a figure.

    Parameters
    ----------
    values : float64[completions, 1 + resamples]
        Over all queries, and over each resample of them.
    effective : float
        As how many queries of equal weight they count.
    outcome : Outcome
        The figures of the last completions, which say how these aggregate.
    """
    known, resampled = (each[~np.isnan(each)] for each in (values[:, 0], values[:, 1:].ravel()))
    if len(known) < _MOST * len(values):
        return Completed(reason=outcome.reasons[column])
    value, form = quantile(known, 0.5), outcome.aggregate.form
    bounds = own = outcome.ends_at(column) if form == "mean" else None
    if own is None and form != "bits" and len(resampled) and resampled.min() >= 0:
        bounds = (0.0, math.inf)

    def around(of: FloatArray) -> tuple[float, float]:
        if not len(of):
            return math.nan, math.nan
        low, high = sampling.ends(of, value)
        low, high = min(low, value), max(high, value)
        return (low, high) if bounds is None else (max(low, bounds[0]), min(high, bounds[1]))

    low, high = around(resampled)
    if own is not None and low == high and value in own:
        # What so many queries without any spread can tell of an end of the range (Clopper and Pearson).
        reach = (1 - ((1 - sampling.level) / 2) ** (1 / effective)) * (own[1] - own[0])
        low, high = (value, value + reach) if value == own[0] else (value - reach, value)
    return Completed(value, low, high, *around(known))


def _difference(values: FloatArray, undefined: str, sampling: Sampling) -> Completed:
    """The medians, the intervals and p of a difference, all of one distribution: float64[completions, 2, 1 + …]."""
    one, other = values[:, 0], values[:, 1]
    with np.errstate(invalid="ignore"):
        differences = one - other
    finite = ~np.isnan(differences[:, 0])
    if finite.sum() < _MOST * len(one):
        known = ~np.isnan(one[:, 0]) & ~np.isnan(other[:, 0])
        return Completed(reason=undefined if known.mean() < _MOST else "no query succeeded: log2 of 0")
    middle = quantile(differences[finite, 0], 0.5)
    resampled = differences[:, 1:].ravel()
    resampled = resampled[~np.isnan(resampled)]
    with np.errstate(invalid="ignore"):
        spread = np.where(np.isinf(resampled), resampled, middle + sampling.stretch * (resampled - middle))
    p = min(1.0, 2 * min(float((spread <= _SAME).mean()), float((spread >= -_SAME).mean())))
    p = max(p, 2 / (len(spread) + 1))
    low, high = sampling.ends(resampled, middle)
    if p > 1 - sampling.level:
        low, high = min(low, 0.0), max(high, 0.0)
    sides = tuple(quantile(of[finite, 0], 0.5) for of in (one, other))
    return Completed(middle, low, high, *sampling.ends(differences[finite, 0], middle), p=p, sides=sides)


def quantile(values: FloatArray, at: float) -> float:
    """A quantile that does not average an infinite value with a finite one."""
    return float(np.quantile(values, at, method="inverted_cdf" if np.isinf(values).any() else "linear"))


def _resampled(units: IntArray | None, queries: int, random: np.random.Generator) -> FloatArray:
    """1 for each query, and then how often each, or its cluster, is drawn: float64[1 + resamples, queries]."""
    number = queries if units is None else int(units.max(initial=-1)) + 1
    result = np.ones((1 + RESAMPLES, queries))
    if number:
        drawn = random.integers(0, number, (RESAMPLES, number)) + np.arange(RESAMPLES)[:, None] * number
        counts = np.bincount(drawn.ravel(), minlength=RESAMPLES * number).reshape(RESAMPLES, number)
        result[1:] = counts if units is None else counts[:, units]
    return result


def _outcome(
    measure: Measure,
    at: NDArray[Any],
    run: JudgedRun,
    together: JudgedRun,
    completed: tuple[IntArray, IntArray, Sequence[Completion]],
) -> Outcome:
    """A measure on some completions, one after another."""
    if not measure.of_groups and (run.other_lists is None or getattr(measure, "null", "random") != "lists"):
        return measure.outcome(together, at).settled()
    # Completions of groups, and of the lists of other queries, do not stand one after another.
    rows, levels, completions = completed
    outcomes = [measure.outcome(_on(run, rows, levels, [each]), at).settled() for each in completions]
    joint = tuple(np.concatenate(columns) for columns in zip(*(each.parts for each in outcomes), strict=True))
    first = outcomes[0]
    weights = None if first.weights is None else np.tile(first.weights, len(completions))
    return replace(first, parts=joint, weights=weights)


def _counts(outcome: Outcome) -> FloatArray:
    """How much each query counts: 0 where it has no figure, else 1, or its share of the largest weight."""
    counts = outcome.counting()
    return outcome.defined.astype(np.float64) if counts is None else counts


def _values(outcome: Outcome, weights: FloatArray, counts: FloatArray, share: FloatArray | None) -> FloatArray:
    """The figure under each row of weights: float64[completions, rows, depths]; NaN without a defined query.

    Parameters
    ----------
    weights : float64[completions, rows, queries]
    counts : float64[completions, queries, depths]
    share : float64[completions, rows], optional
        The share of all queries that succeed, in place of the first part's mean.
    """
    total = weights @ counts
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [
            weights @ (np.where(counts > 0, part.reshape(counts.shape), 0.0) * counts) / total for part in outcome.parts
        ]
        if share is not None:
            # A query without a relevant passage in this completion is none of the queries that the figure is over.
            means[0] = (share * weights.sum(axis=2))[:, :, None] / total
            if len(means) == 1:
                means[0] = np.minimum(means[0], 1.0)
        return np.asarray(outcome.aggregate.value(*means), np.float64)


def _on(run: JudgedRun, rows: IntArray, levels: IntArray, completions: Sequence[Completion]) -> JudgedRun:
    """The join with completed labels, once for each completion."""
    times, queries = len(completions), len(run)
    grades = np.stack([grade for grade, _ in completions])

    def hits(of: Hits | None) -> Any:
        if of is None:
            return None
        query = (of.query + queries * np.arange(times)[:, None]).ravel()
        grade = grades[:, of.judgment].ravel()
        return Hits(query, np.tile(of.rank, times), grade, np.tile(of.repeated, times), np.tile(of.judgment, times))

    def tiled(column: NDArray[Any] | None) -> Any:
        return None if column is None else np.tile(column, times)

    others = run.other_lists
    columns = ("returned", "corpus_size", "pool_returned", "own_pool", "missing", "first_repeat")
    return replace(
        run,
        **{name: tiled(getattr(run, name)) for name in columns},
        **{name: hits(getattr(run, name)) for name in ("hits", "pool", "copies")},
        queries=run.queries * times,
        grades=levels,
        labels=np.concatenate([table[rows] for _, table in completions]),
        fitting={budget: tiled(fitting) for budget, fitting in run.fitting.items()},
        weights=None if run.weights is None else replace(run.weights, values=tiled(run.weights.values)),
        other_lists=None if others is None or times > 1 else replace(others, grade=grades[0][others.judgment]),
    )
