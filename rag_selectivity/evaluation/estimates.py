"""Estimates: the column of a measure at a depth as a figure with its interval, its counts, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.evaluation.caveats import of_concentration
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap, Ends
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures.base import Outcome
from rag_selectivity.results.estimate import Estimate


def estimates_of_table(figures: Figures, bootstrap: Bootstrap | None) -> dict[str, Estimate]:
    """The estimates of a table, with intervals unless there is no bootstrap: {measure: estimate}."""
    return as_judged(figures, ends_of(figures.outcomes, figures.queries, bootstrap))


def as_judged(figures: Figures, ends: Iterable[Ends]) -> dict[str, Estimate]:
    """The estimates of a table with the labels as they are, from the ends of its intervals: {measure: estimate}."""
    estimates: dict[str, Estimate] = {}
    for (measure, at), outcome, of_outcome in zip(figures.plan, figures.outcomes, ends, strict=True):
        keys = [str(measure @ depth) for depth in at.tolist()]
        estimates.update(zip(keys, estimates_of(outcome, of_outcome), strict=True))
    return estimates


def ends_of(outcomes: Sequence[Outcome], queries: Sequence[str], bootstrap: Bootstrap | None) -> list[Ends]:
    """Low and high of each outcome; NaN without a bootstrap."""
    if bootstrap is not None:
        return bootstrap.intervals(outcomes, queries)
    return [(np.full(outcome.parts[0].shape[1], np.nan),) * 2 for outcome in outcomes]


def estimates_of(outcome: Outcome, ends: Ends, total: int | None = None) -> list[Estimate]:
    """The estimate at each depth; if a figure or an interval does not exist, the reason says why.

    `total` is the number of queries; by default it is the number of rows of the outcome.
    """
    total = len(outcome.parts[0]) if total is None else total
    counts, spread = outcome.defined.sum(axis=0), outcome.effective_queries()
    values, constant = np.where(counts > 0, outcome.value(), np.nan), outcome.without_spread()
    estimates = []
    for i, (value, n) in enumerate(zip(values.tolist(), counts.tolist(), strict=True)):
        reason, low, high = None, float(ends[0][i]), float(ends[1][i])
        if n == 0:
            reason = outcome.reasons[i]
        elif value == -math.inf:
            reason = "no query succeeded: log2 of 0"
        elif not math.isfinite(value):
            value, reason = math.nan, "a random draw of this size can never succeed"
        elif n == 1:
            reason = "one query has no interval"
        elif constant[i]:
            reason = "all queries have the same figure: there is no interval"
        if math.isnan(value):
            low = high = math.nan
        caveats = () if spread is None or not math.isfinite(value) else of_concentration(float(spread[i]), n)
        effective = None if outcome.weights is None else effective_size(outcome.weights[outcome.defined[:, i]])
        estimates.append(Estimate(value, low, high, n, total, reason, caveats=caveats, effective=effective))
    return estimates


def resting_on(basis: str, judged: Estimate, **figures: Any) -> Estimate:
    """An estimate whose figures rest on more than the labels as they are; the one as judged stands beside it."""
    interval = judged.low, judged.high
    return replace(judged, basis=basis, as_judged=judged.value, as_judged_interval=interval, **figures)
