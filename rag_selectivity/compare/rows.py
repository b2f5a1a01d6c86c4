"""The rows of a comparison: the difference of two outcomes at one depth, and all rows as one family of tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.inference.paired import Difference, holm, mean_of, weights_of
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures.base import FloatArray, Measure, Outcome
from rag_selectivity.measures.claims import ClaimMeasure
from rag_selectivity.results.comparison import Moved, RunDifference

#: Of how many queries a comparison says that they differ most.
_SHOWN_QUERIES = 5


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
