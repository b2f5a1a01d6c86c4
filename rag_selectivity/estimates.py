"""Make estimates and differences from outcomes: figures with intervals, reasons and caveats, for every report."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.judged.token_budget import named_top
from rag_selectivity.measures.base import FloatArray, Measure, Outcome
from rag_selectivity.measures.claims import ClaimMeasure
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.measures.refusal import Refusal
from rag_selectivity.measures.utility import PROC, Judged
from rag_selectivity.results.comparison import Moved, RunDifference
from rag_selectivity.results.estimate import WITH_CONTROLS, Caveat, Estimate, finite
from rag_selectivity.results.pool_source import PoolSource
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.controlled import Controlled, ControlledFigures
from rag_selectivity.statistics.moments import Moments
from rag_selectivity.statistics.paired import Difference, holm, mean_of, weights_of
from rag_selectivity.statistics.pool_sources import source_outcomes
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.wording import percent

_JUDGED = Judged()
CONCENTRATED, PARTLY_JUDGED = "concentrated-chance", "partly-judged"
CONCENTRATED_CONTROLS = "concentrated-controls"
#: Below these, an interval that divides by a random baseline covers the true value too rarely (simulations.md in docs).
LEAST_QUERIES, LEAST_SHARE, LEAST_SHARE_OF_FEW, LEAST_EFFECTIVE = 30, 2 / 3, 0.9, 100.0
#: Of how many queries a comparison says that they differ most.
_SHOWN_QUERIES = 5


def concentration(effective: float, n: int) -> tuple[Caveat, ...]:
    """A caveat if the random baseline depends mostly on few queries; empty otherwise.

    The interval is then too narrow. `effective` is the effective number of the `n` queries.

    >>> [caveat.code for caveat in concentration(3.2, 200)], concentration(150.0, 200), concentration(28.6, 29)
    (['concentrated-chance'], (), ())
    """
    if math.isinf(effective) or n < 2:
        return ()
    share = LEAST_SHARE if n >= LEAST_QUERIES else LEAST_SHARE_OF_FEW
    if effective >= min(LEAST_EFFECTIVE, share * n):
        return ()
    return (
        Caveat(
            CONCENTRATED,
            f"The random baseline depends mostly on few queries (effectively {effective:.1f} of {n}). "
            f"The interval is probably too narrow.",
        ),
    )


def with_caveats(
    estimates: Mapping[str, Estimate], measures: Iterable[Measure], *, exhaustive: bool = False
) -> dict[str, Estimate]:
    """The estimates of one run, with their possible ranges and with caveats about unjudged passages.

    `measures` are the measures that the report shows. Estimates of other measures only give the upper ends of possible
    ranges (`Estimate.possible`). `exhaustive` is True if the user declared that every unjudged passage has the lowest
    grade.
    """
    shown = {measure.without_depth for measure in measures}
    qualified = {}
    for key, estimate in estimates.items():
        measure = parse_measure(key)
        if measure.without_depth not in shown:
            continue
        if measure.upper_end is not None or (measure.unjudged_is_a_miss and not exhaustive):
            estimate = _judged_in_part(measure, estimate, estimates)
        qualified[key] = estimate
    return qualified


def _judged_in_part(measure: Measure, estimate: Estimate, estimates: Mapping[str, Estimate]) -> Estimate:
    """The estimate with a caveat and its possible range, if some of its passages are unjudged."""
    judged = estimates.get(str(_JUDGED if measure.at is None else _JUDGED @ measure.at))
    most = estimates.get(str(measure.upper_end)) if measure.upper_end is not None else None
    if judged is None or not judged.value < 1 or (most is not None and not most.value > estimate.value):
        return estimate
    rest = (
        "The figure counts the rest as not relevant."
        if most is None
        else "The figure counts the rest as harmless; the upper end of its possible range counts them as harmful."
    )
    listed = "the retrieved passages" if measure.at is None else named_top(measure.at)
    caveat = Caveat(PARTLY_JUDGED, f"Only {percent(judged.value)} of {listed} are judged. {rest}")
    possible = None if most is None else (estimate.value, most.value)
    return replace(estimate, possible=possible, caveats=(*estimate.caveats, caveat))


def with_controls(
    estimates: Mapping[str, Estimate],
    plan: Iterable[tuple[Measure, NDArray[Any]]],
    outcomes: Iterable[Outcome],
    judged: JudgedRun,
    bootstrap: Bootstrap | None,
) -> tuple[dict[str, Estimate], dict[str, Any]]:
    """The estimates of a run, its chance-corrected figures with the random controls; and what to say of the controls.

    The second is plain data: in how many `queries` controls were graded, how many were `graded` and `relevant`, and for
    each BoR how many of them are `used` (those that the top K does not hold) and how many bits these `can_show` at
    most. Without controls both are as they were, and empty.
    """
    if judged.controls is None or judged.corpus_size is None:
        return dict(estimates), {}
    figures = ControlledFigures(judged, judged.controls, bootstrap)
    result = dict(estimates)
    can_show: dict[str, float | None] = {}
    used: dict[str, int] = {}
    for (measure, at), outcome in zip(plan, outcomes, strict=True):
        for depth in at.tolist():
            key = str(measure @ depth)
            figure = figures.of(measure, depth, outcome) if key in estimates else None
            if figure is None:
                continue
            result[key] = _with_controls(estimates[key], figure, len(judged))
            if figure.can_show is not None:
                can_show[key] = finite(figure.can_show)
                used[key] = figure.used
    graded, relevant = judged.controls.counts(len(judged), judged.threshold(), depth=0)
    facts = {
        "queries": int((graded > 0).sum()),
        "graded": int(graded.sum()),
        "relevant": int(relevant.sum()),
        "used": used,
        "can_show": can_show,
    }
    return result, facts


def _with_controls(estimate: Estimate, figure: Controlled, queries: int) -> Estimate:
    """The estimate with controls; the one as judged stands beside it."""
    caveats = tuple(caveat for caveat in estimate.caveats if caveat.code != CONCENTRATED)
    if figure.few_with_hits is not None:
        spread = (
            f"The relevant controls are in few queries (effectively {figure.few_with_hits:.1f}). "
            f"The interval is probably too narrow."
        )
        caveats = (*caveats, Caveat(CONCENTRATED_CONTROLS, spread))
    return replace(
        estimate,
        value=figure.value,
        low=figure.low,
        high=figure.high,
        n=queries,
        n_total=max(queries, estimate.n_total),
        reason=figure.reason,
        caveats=caveats,
        basis=WITH_CONTROLS,
        as_judged=estimate.value,
        as_judged_interval=(estimate.low, estimate.high),
        shown=figure.shown,
    )


def notes_of_refusals(
    measured: Iterable[tuple[Measure, IntArray, Refusal | None]], figures: Container[str]
) -> list[str]:
    """A note for each reason why some of a report's figures have no value for a whole run."""
    names: dict[str, list[str]] = {}
    for measure, depths, refused in measured:
        for column in [] if refused is None else np.flatnonzero(refused.refused).tolist():
            key = str(measure @ depths[column])
            if key in figures:
                names.setdefault(refused.reason(column) if refused else "", []).append(key)
    return [f"no figure for {', '.join(keys)}, since {reason}" for reason, keys in names.items()]


def estimates_with(outcome: Outcome, low: FloatArray, high: FloatArray, total: int | None = None) -> list[Estimate]:
    """The measure's estimate at each depth.

    `total` is the number of queries; by default it is the number of rows of the outcome.
    """
    values, counts = values_of(outcome)
    estimates = estimates_of(
        values,
        low,
        high,
        counts,
        len(outcome.parts[0]) if total is None else total,
        outcome.reasons,
        outcome.effective_queries(),
        outcome.without_spread(),
    )
    weights = outcome.weights
    if weights is None:
        return estimates
    return [
        replace(estimate, effective=effective_size(weights[known]))
        for estimate, known in zip(estimates, outcome.defined.T, strict=True)
    ]


def pool_sources_of(
    judged: JudgedRun,
    plan: Iterable[tuple[Measure, IntArray]],
    outcomes: Iterable[Outcome],
    bootstrap: Bootstrap | None,
) -> dict[str, dict[str, PoolSource]]:
    """What each of several pools of a run is worth, by its name and the key of PROC; empty without several pools."""
    found: dict[str, dict[str, PoolSource]] = {}
    for (measure, at), figures in zip(plan, outcomes, strict=True):
        # The pools hold passages, so what groups of them are worth is not known of each pool.
        if not isinstance(measure, PROC) or measure.of_groups or not judged.pool_sources:
            continue
        for name, source in source_outcomes(judged, measure, at, figures):
            parts = [source.alone, source.without, source.adds]
            columns = zip(*_with_intervals(parts, judged.queries, bootstrap), strict=True)
            keys = [str(measure @ depth) for depth in at.tolist()]
            found.setdefault(name, {}).update(zip(keys, (PoolSource(*three) for three in columns), strict=True))
    return found


def _with_intervals(
    outcomes: Sequence[Outcome], queries: Sequence[str], bootstrap: Bootstrap | None
) -> list[list[Estimate]]:
    if bootstrap is None:
        unknown = np.full(outcomes[0].parts[0].shape[1], np.nan)
        return [estimates_with(outcome, unknown, unknown) for outcome in outcomes]
    ends = bootstrap.intervals(outcomes, queries)
    return [estimates_with(outcome, low, high) for outcome, (low, high) in zip(outcomes, ends, strict=True)]


def values_of(outcome: Outcome) -> tuple[FloatArray, IntArray]:
    """The measure's figure at each depth, NaN if no query has one, and the number of queries that have one."""
    counts = outcome.defined.sum(axis=0)
    return np.where(counts > 0, outcome.value(), np.nan), counts


def estimates_of_moments(moments: Moments, low: FloatArray, high: FloatArray) -> list[Estimate]:
    """As `estimates_with`, from sums over queries."""
    return estimates_of(
        moments.value,
        low,
        high,
        moments.defined,
        moments.total,
        moments.reasons,
        moments.effective_queries(),
        moments.without_spread(),
    )


def estimates_of(
    values: FloatArray,
    low: FloatArray,
    high: FloatArray,
    counts: IntArray,
    total: int,
    undefined: Sequence[str],
    effective: FloatArray | None = None,
    constant: NDArray[np.bool_] | None = None,
) -> list[Estimate]:
    """Figures with their intervals and counts; if a figure or an interval does not exist, the reason says why.

    `effective` is the effective number of queries of the random baseline, None for measures without one. `constant`
    marks the depths at which a property of corpus and judgments is the same for all queries, so that its spread is
    unknown.
    """
    estimates = []
    spread = np.full(len(values), np.inf) if effective is None else effective
    same = np.zeros(len(values), bool) if constant is None else constant
    for i, (value, n) in enumerate(zip(values.tolist(), counts.tolist(), strict=True)):
        reason = None
        if n == 0:
            value, reason = math.nan, undefined[i]
        elif value == -math.inf:
            reason = "no query succeeded: log2 of 0"
        elif not math.isfinite(value):
            value, reason = math.nan, "a random draw of this size can never succeed"
        elif n == 1:
            reason = "one query has no interval"
        elif same[i]:
            reason = "all queries have the same figure: there is no interval"
        caveats = concentration(float(spread[i]), n) if math.isfinite(value) else ()
        ends = (math.nan, math.nan) if math.isnan(value) else (float(low[i]), float(high[i]))
        estimates.append(Estimate(value, *ends, n, total, reason, caveats=caveats))
    return estimates


# -- differences ---------------------------------------------------------------------------------------


def difference_row(
    runs: tuple[str, str],
    measure: Measure | ClaimMeasure,
    pair: tuple[Outcome, Outcome],
    column: int,
    difference: Difference,
    queries: Sequence[str],
    level: float,
    paired: bool = True,
) -> RunDifference:
    """The difference of two runs (run, baseline) at one depth, without Holm's correction and a detectable difference.

    `pair` are their outcomes over `queries`, and `difference` is that of these.
    """
    known = [outcome.defined[:, column] for outcome in pair]
    if paired:
        known = [known[0] & known[1]] * 2
    weights = weights_of(pair[0], known[0]) if paired else None
    values = [_value(outcome, some, column, weights) for outcome, some in zip(pair, known, strict=True)]
    reason = None
    if not all(some.any() for some in known):
        reasons = [outcome.reasons[column] for outcome in pair]
        refused = [reason for reason, outcome in zip(reasons, pair, strict=True) if reason != outcome.undefined]
        reason = [*refused, *reasons][0]
    elif not all(map(math.isfinite, values)):
        reason = "no query succeeded: log2 of 0" if -math.inf in values else "undefined for one of the runs"
    gaps = _gaps(*(outcome.parts[0][:, column] for outcome in pair)) if paired else np.full(0, np.nan)
    better = gaps[~np.isnan(gaps)] * (1 if measure.higher_is_better else -1)
    return RunDifference(
        run=runs[0],
        baseline=runs[1],
        measure=measure,
        value=values[0],
        baseline_value=values[1],
        difference=float(difference.value[column]),
        low=float(difference.low[column]),
        high=float(difference.high[column]),
        p=float(difference.p[column]),
        p_adjusted=math.nan,
        test=difference.test[column],
        tested_as=str(measure),
        effect=_effect(gaps, weights),
        wins=int((better > 0).sum()),
        ties=int((better == 0).sum()),
        losses=int((better < 0).sum()),
        n=int(known[0].sum()),
        n_baseline=int(known[1].sum()),
        n_total=len(known[0]) if paired else len(known[0]) + len(known[1]),
        detectable=math.nan,
        level=level,
        moved=_moved(queries, pair, column, gaps),
        reason=reason,
        effective=None if pair[0].weights is None else effective_size(pair[0].weights[known[0]]),
    )


def corrected(
    rows: Sequence[RunDifference],
    shows: Sequence[Callable[[float, float], float] | None],
    level: float,
    power: float | None,
) -> tuple[RunDifference, ...]:
    """The rows as one family of tests: with Holm's correction, and with their detectable differences.

    `shows` has for each row (level, power) → the detectable difference, or None if it is not known. Without a power,
    that is left out.
    """
    # A test that several rows share counts once in Holm's correction.
    tests = {(row.run, row.baseline, row.tested_as): row.p for row in rows if row.test}
    adjusted = dict(zip(tests, holm(np.array(list(tests.values()))).tolist(), strict=True))
    at_level = (1 - level) / max(1, len(tests))
    return tuple(
        replace(
            row,
            p_adjusted=adjusted.get((row.run, row.baseline, row.tested_as), math.nan) if row.test else math.nan,
            detectable=math.nan if sensitivity is None or power is None else sensitivity(at_level, power),
        )
        for row, sensitivity in zip(rows, shows, strict=True)
    )


def _value(outcome: Outcome, some: NDArray[np.bool_], column: int, weights: FloatArray | None) -> float:
    if not some.any():
        return math.nan
    means = [np.asarray(mean_of(part[some, column], weights)) for part in outcome.parts]
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(outcome.aggregate.value(*means))


def _gaps(values: FloatArray, others: FloatArray) -> FloatArray:
    """The differences query by query; a difference that is only rounding is a tie."""
    gaps = values - others
    same = np.abs(gaps) <= 1e-11 * np.maximum(np.abs(values), np.abs(others))
    return np.where(same, 0.0, gaps)


def _effect(gaps: FloatArray, weights: FloatArray | None) -> float:
    """The mean difference divided by its standard deviation; `weights` are those of the known differences."""
    known = gaps[~np.isnan(gaps)]
    if not len(known):
        return math.nan
    if not known.any():
        return 0.0
    if weights is not None:
        mean, free = mean_of(known, weights), 1 - 1 / effective_size(weights)
        deviation = math.sqrt(mean_of((known - mean) ** 2, weights) / free) if free > 0 else 0.0
        return mean / deviation if deviation > 0 else math.nan
    spread = float(known.std(ddof=1)) if len(known) > 1 else 0.0
    return float(known.mean()) / spread if spread > 0 else math.nan


def _moved(queries: Sequence[str], pair: tuple[Outcome, Outcome], column: int, gaps: FloatArray) -> tuple[Moved, ...]:
    known = np.flatnonzero(~np.isnan(gaps) & (gaps != 0))
    order = known[np.argsort(-np.abs(gaps[known]), kind="stable")][:_SHOWN_QUERIES]
    return tuple(Moved(queries[i], *(float(outcome.parts[0][i, column]) for outcome in pair)) for i in order.tolist())
