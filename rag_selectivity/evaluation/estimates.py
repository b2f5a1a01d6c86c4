"""Estimates from outcomes: figures with intervals, reasons and caveats, for every report."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap, Ends
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.judged.token_budget import named_top
from rag_selectivity.measures.base import FloatArray, Measure, Outcome, parse_measure
from rag_selectivity.measures.utility import PROC, Judged
from rag_selectivity.results.estimate import CONCENTRATED, PARTLY_JUDGED, Caveat, Estimate
from rag_selectivity.results.run_report import PoolSource
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.pool_sources import source_outcomes
from rag_selectivity.wording import percent

_JUDGED = Judged()
#: Below these, an interval that divides by a random baseline covers the true value too rarely (simulations.md in docs).
LEAST_QUERIES, LEAST_SHARE, LEAST_SHARE_OF_FEW, LEAST_EFFECTIVE = 30, 2 / 3, 0.9, 100.0


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


def notes_of_refusals(figures: Figures, shown: Container[str]) -> list[str]:
    """A note for each reason why some of a report's figures have no value for a whole run."""
    names: dict[str, list[str]] = {}
    for (measure, depths), outcome in zip(figures.plan, figures.outcomes, strict=True):
        refused = outcome.refused
        for column in [] if refused is None else np.flatnonzero(refused.refused).tolist():
            key = str(measure @ depths[column])
            if key in shown:
                names.setdefault(refused.reason(column) if refused else "", []).append(key)
    return [f"no figure for {', '.join(keys)}, since {reason}" for reason, keys in names.items()]


def no_ends(outcomes: Iterable[Outcome]) -> list[Ends]:
    """Low and high of each outcome without intervals."""
    return [(np.full(outcome.parts[0].shape[1], np.nan),) * 2 for outcome in outcomes]


def estimates_of_table(figures: Figures, bootstrap: Bootstrap) -> dict[str, Estimate]:
    """The estimates of a table with their intervals: {measure: estimate}."""
    return as_judged(figures, bootstrap.intervals(figures.outcomes, figures.queries))


def as_judged(figures: Figures, ends: Iterable[Ends]) -> dict[str, Estimate]:
    """The estimates of a table with the labels as they are: {measure: estimate}."""
    estimates: dict[str, Estimate] = {}
    for (measure, at), outcome, (low, high) in zip(figures.plan, figures.outcomes, ends, strict=True):
        keys = [str(measure @ depth) for depth in at.tolist()]
        estimates.update(zip(keys, estimates_with(outcome, low, high), strict=True))
    return estimates


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
    ends = no_ends(outcomes) if bootstrap is None else bootstrap.intervals(outcomes, queries)
    return [estimates_with(outcome, low, high) for outcome, (low, high) in zip(outcomes, ends, strict=True)]


def values_of(outcome: Outcome) -> tuple[FloatArray, IntArray]:
    """The measure's figure at each depth, NaN if no query has one, and the number of queries that have one."""
    counts = outcome.defined.sum(axis=0)
    return np.where(counts > 0, outcome.value(), np.nan), counts


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
