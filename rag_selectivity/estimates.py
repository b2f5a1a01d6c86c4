"""From outcomes to estimates: figures with their intervals, reasons and caveats, the same on every path to a report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IntArray
from rag_selectivity.measures.base import FloatArray, Measure, Outcome
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.measures.utility import Judged
from rag_selectivity.results.estimate import Caveat, Estimate
from rag_selectivity.statistics.moments import Moments
from rag_selectivity.wording import percent

CONCENTRATED, PARTLY_JUDGED = "concentrated-chance", "partly-judged"
#: Below these, an interval that rests on a mean of chances holds the truth too rarely (docs/numbers.md).
LEAST_QUERIES, LEAST_SHARE, LEAST_EFFECTIVE = 30, 2 / 3, 100.0


def concentration(effective: float, n: int) -> tuple[Caveat, ...]:
    """Whether few queries carry the random baseline, so that its interval is rough; `effective` of `n` queries.

    >>> [caveat.code for caveat in concentration(3.2, 200)], concentration(150.0, 200), concentration(math.inf, 10)
    (['concentrated-chance'], (), ())
    """
    if math.isinf(effective) or n < 2:
        return ()
    if n >= LEAST_QUERIES and effective >= min(LEAST_EFFECTIVE, LEAST_SHARE * n):
        return ()
    return (
        Caveat(
            CONCENTRATED,
            f"Rough: few queries carry the random baseline (their effective number is {effective:.1f} of {n}), so that "
            f"the interval is likely too narrow.",
        ),
    )


def with_caveats(
    estimates: Mapping[str, Estimate], measures: Iterable[Measure], *, exhaustive: bool = False
) -> dict[str, Estimate]:
    """The estimates of one run, with what unjudged passages could change about them.

    `measures` are those that the report shows. Other estimates only say how far those could rise; they go into
    `Estimate.possible`. `exhaustive` says that whatever has no label was declared to be of the lowest grade.
    """
    shown = {replace(measure, at=None) for measure in measures}
    qualified = {}
    for key, estimate in estimates.items():
        measure = parse_measure(key)
        if replace(measure, at=None) not in shown:
            continue
        if measure.upper_end is not None or (measure.unjudged_is_a_miss and not exhaustive):
            estimate = _judged_in_part(measure, estimate, estimates)
        qualified[key] = estimate
    return qualified


def _judged_in_part(measure: Measure, estimate: Estimate, estimates: Mapping[str, Estimate]) -> Estimate:
    """The estimate with what its unjudged passages leave open, if there are any."""
    judged = estimates.get(str(Judged(at=measure.at)))
    most = estimates.get(str(measure.upper_end)) if measure.upper_end is not None else None
    if judged is None or not judged.value < 1 or (most is not None and not most.value > estimate.value):
        return estimate
    rest = (
        "The figure counts the rest as not relevant."
        if most is None
        else "The figure counts the rest as harmless; the upper end of its range counts them as harmful."
    )
    listed = "retrieved passages" if measure.at is None else f"top {measure.at}"
    caveat = Caveat(PARTLY_JUDGED, f"Only {percent(judged.value)} of the {listed} have a label. {rest}")
    possible = None if most is None else (estimate.value, most.value)
    return replace(estimate, possible=possible, caveats=(*estimate.caveats, caveat))


def estimates_with(outcome: Outcome, low: FloatArray, high: FloatArray, total: int | None = None) -> list[Estimate]:
    """The measure's figure at each depth with its interval; `total` is how many queries there are, if not the rows."""
    defined = outcome.defined
    counts = defined.sum(axis=0)
    with np.errstate(invalid="ignore"):
        # Queries along the last axis, where sums are pairwise and so exact to the last digits.
        means = [np.where(defined, part, 0.0).T.copy().sum(axis=1) / counts for part in outcome.parts]
        values = outcome.aggregate.value(*means)
    return estimates_of(
        values,
        low,
        high,
        counts,
        len(defined) if total is None else total,
        outcome.undefined,
        outcome.effective_queries(),
        outcome.without_spread(),
    )


def estimates_of_moments(moments: Moments, low: FloatArray, high: FloatArray) -> list[Estimate]:
    """As `estimates_with`, of queries that were summed."""
    return estimates_of(
        moments.value,
        low,
        high,
        moments.defined,
        moments.total,
        moments.undefined,
        moments.effective_queries(),
        moments.without_spread(),
    )


def estimates_of(
    values: FloatArray,
    low: FloatArray,
    high: FloatArray,
    counts: IntArray,
    total: int,
    undefined: str,
    effective: FloatArray | None = None,
    constant: NDArray[np.bool_] | None = None,
) -> list[Estimate]:
    """Figures with their intervals and counts; a figure or an interval that does not exist has its reason.

    `effective` is the number of queries that the random baseline is spread over, where there is one; `constant` says
    where a property of corpus and labels is the same for all queries, so that its spread is not known.
    """
    estimates = []
    spread = np.full(len(values), np.inf) if effective is None else effective
    same = np.zeros(len(values), bool) if constant is None else constant
    for i, (value, n) in enumerate(zip(values.tolist(), counts.tolist(), strict=True)):
        reason = None
        if n == 0:
            value, reason = math.nan, undefined
        elif value == -math.inf:
            reason = "no query succeeded: log2 of 0"
        elif not math.isfinite(value):
            reason = "a random draw of this depth can never succeed"
        elif n == 1:
            reason = "one query has no interval"
        elif same[i]:
            reason = "all queries have the same figure: there is no interval"
        caveats = concentration(float(spread[i]), n) if math.isfinite(value) else ()
        estimates.append(Estimate(value, float(low[i]), float(high[i]), n, total, reason, caveats=caveats))
    return estimates
