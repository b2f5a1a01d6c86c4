"""The figures of claim checks over all queries, and the paired differences of two runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.estimating.estimates import estimates_with
from rag_selectivity.estimating.rows import corrected, difference_row
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.claims import WHOLE, ClaimMeasure
from rag_selectivity.results.claims import ClaimCheck
from rag_selectivity.results.comparison import RunDifference
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.statistics import detectable
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.paired import paired_difference

#: As `rag_selectivity.compare` has them.
DRAWS, POWER = 10_000, 0.8


def measures_of(checks: Sequence[str], depths: Sequence[int], whole: Sequence[int]) -> list[ClaimMeasure]:
    """What some checks give at some depths, and at those at which all passages were read together."""
    named = [measure for check in checks for depth in depths for measure in ClaimMeasure.all_of(check, depth)]
    return [*named, *(ClaimMeasure(WHOLE, depth) for depth in whole)]


def outcome_of(results: Sequence[ClaimCheck], measures: Sequence[ClaimMeasure]) -> Outcome:
    """The figures of every query: a column for each measure, NaN where it is undefined."""
    values = np.array([[result.value(measure) for measure in measures] for result in results], np.float64)
    low, high = (np.array([measure.bounds[end] for measure in measures]) for end in (0, 1))
    return Outcome((values,), "no sample has what the check needs", bounds=(low, high))


def estimates_of_checks(
    results: Sequence[ClaimCheck], measures: Sequence[ClaimMeasure], bootstrap: Bootstrap
) -> dict[ClaimMeasure, Estimate]:
    """The mean of each measure over the samples, with its interval."""
    outcome = outcome_of(results, measures)
    ((low, high),) = bootstrap.intervals([outcome], [result.sample.id for result in results])
    return dict(zip(measures, estimates_with(outcome, low, high), strict=True))


def differences_of(
    runs: Mapping[str, Sequence[ClaimCheck]],
    baseline: str,
    measures: Sequence[ClaimMeasure],
    bootstrap: Bootstrap,
) -> tuple[RunDifference, ...]:
    """The paired differences of each run from the baseline, as one family of tests.

    Measures of which neither more nor less is better are left out.
    """
    measures = [each for each in measures if each.higher_is_better is not None]
    if len(runs) < 2 or not measures:
        return ()
    queries = [result.sample.id for result in runs[baseline]]
    units = bootstrap.units(queries)
    outcomes = {name: outcome_of(results, measures) for name, results in runs.items()}
    rows, shows = [], []
    for name in runs:
        if name == baseline:
            continue
        pair = outcomes[name], outcomes[baseline]
        change = paired_difference(*pair, level=bootstrap.level, draws=DRAWS, seed=bootstrap.seed, units=units)
        for column, measure in enumerate(measures):
            row = difference_row((name, baseline), measure, pair, column, change, queries, bootstrap.level)
            if math.isnan(row.difference):
                row = replace(row, p=math.nan, low=math.nan, high=math.nan, test="")
            rows.append(row)
            shows.append(detectable.sensitivity(*pair, column, units=units, draws=DRAWS) if row.test else None)
    return corrected(rows, shows, bootstrap.level, POWER)


def settings_of(rows: Sequence[RunDifference]) -> dict[str, Any]:
    """How differences were tested; empty without any."""
    if not rows:
        return {}
    family = len({(row.run, row.tested_as) for row in rows if row.test})
    return {"paired": True, "draws": DRAWS, "power": POWER, "correction": "holm", "family": family}
