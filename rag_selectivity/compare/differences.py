"""Differences of two tables of figures: of runs, of runs in a slice, of a run and its stored form, of claim checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.evaluation.caveats import AS_JUDGED_BASELINE, equals_placebo
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference import detectable
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.paired import BOUNDED, Difference, holm, paired_difference
from rag_selectivity.inference.unpaired import unpaired_difference
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.chance import BoR
from rag_selectivity.results.comparison import COMPLETED, Moved, RunDifference
from rag_selectivity.results.estimate import NOTE, WITH_CONTROLS, WITH_TAIL, Caveat, Estimate

#: Of how many queries a comparison says that they differ most.
_SHOWN_QUERIES = 5
_ONE_DECIDES = Caveat(
    "one-query-decides",
    "One query decides this difference: one more that went far the other way could turn it. Ask more questions.",
)
_UNCOMPLETED = Caveat(
    "difference-as-judged",
    "The figures are completed from a sample of the tail. Their difference and its test are of the labels as they are.",
    NOTE,
)
_WITHOUT_CONTROLS = Caveat(
    AS_JUDGED_BASELINE, "These figures are as judged; `evaluate` has the figures with random controls."
)


@dataclass(frozen=True, slots=True)
class Side:
    """One of two tables that are compared.

    Attributes
    ----------
    name : str
    figures : Figures
    estimates : {measure: Estimate}
        What a report says of the table, for possible ranges, placebos and caveats.
    """

    name: str
    figures: Figures
    estimates: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Testing:
    """How differences are tested.

    Attributes
    ----------
    bootstrap : Bootstrap or None
        Its level, seed and clusters. Without one nothing is tested.
    paired : bool
        Whether the two tables are over the same queries.
    draws : int
        The number of random swaps, if there are too many to count all of them.
    power : float or None
        Of the detectable difference; without a power that is not computed.
    """

    bootstrap: Bootstrap | None
    paired: bool = True
    draws: int = 10_000
    power: float | None = 0.8

    @property
    def level(self) -> float:
        return math.nan if self.bootstrap is None else self.bootstrap.level


def differences_of(one: Side, other: Side, testing: Testing) -> list[RunDifference]:
    """The difference of every column that both tables have, each alone: `as_family` corrects the p-values.

    Both have the same plan; paired, also the same queries.
    """
    queries, rows = other.figures.queries, []
    columns = zip(one.figures.plan, one.figures.outcomes, other.figures.outcomes, strict=True)
    for (measure, depths), *pair in columns:
        difference = _tested((pair[0], pair[1]), queries, testing)
        for column, depth in enumerate(depths.tolist()):
            at = slice(column, column + 1)
            of_depth = pair[0].at(at), pair[1].at(at)
            row = _row((one.name, other.name), measure @ depth, of_depth, queries, testing)
            row = replace(row, difference=float(difference.value[column]))
            # Judged is shown for information; its difference is not tested.
            if testing.bootstrap is not None and measure.name != "Judged" and not math.isnan(row.difference):
                low, high, p = (float(each[column]) for each in (difference.low, difference.high, difference.p))
                row = replace(row, low=low, high=high, p=p, test=difference.test[column])
            row = _with_estimates(row, one, other, testing)
            rows.append(replace(row, caveats=(_ONE_DECIDES, *row.caveats)) if row.test == BOUNDED else row)
    return rows


def as_family(rows: Sequence[RunDifference], sides: Iterable[Side], testing: Testing) -> tuple[RunDifference, ...]:
    """The rows as one family of tests: with Holm's correction, and with their detectable differences.

    A test that several rows share counts once; rows of slices with few queries are no part of the family.
    """
    tests = {_test_of(row): row.p for row in rows if row.test and not row.few}
    adjusted = dict(zip(tests, holm(np.array(list(tests.values()))).tolist(), strict=True))
    level, named = (1 - testing.level) / max(1, len(tests)), {side.name: side for side in sides}
    return tuple(
        replace(
            row,
            p_adjusted=adjusted.get(_test_of(row), math.nan) if row.test else math.nan,
            detectable=_detectable(row, named, level, testing),
        )
        for row in rows
    )


def settings_of(rows: Iterable[RunDifference], testing: Testing) -> dict[str, Any]:
    """How a family of differences was tested."""
    family = len({_test_of(row) for row in rows if row.test and not row.few})
    how = {"paired": testing.paired, "draws": testing.draws, "power": testing.power}
    return {**how, "correction": "holm", "family": family}


def _test_of(row: RunDifference) -> tuple[object, ...]:
    return row.by, row.run, row.baseline, row.tested_as


def _detectable(row: RunDifference, sides: Mapping[str, Side], level: float, testing: Testing) -> float:
    """The smallest difference that would have been shown; NaN if the row was not tested query by query."""
    if testing.power is None or testing.bootstrap is None or not testing.paired or row.test in ("", COMPLETED):
        return math.nan
    one, other = (sides[name].figures.outcome(row.measure) for name in (row.run, row.baseline))
    if one is None or other is None:
        return math.nan
    units = testing.bootstrap.units(sides[row.baseline].figures.queries)
    return detectable.sensitivity(one, other, level, testing.power, units=units, draws=testing.draws)


# -- a row ------------------------------------------------------------------------------------------------


def _tested(pair: tuple[Outcome, Outcome], queries: Sequence[str], testing: Testing) -> Difference:
    """The difference of two outcomes with interval and p, at all depths."""
    bootstrap = testing.bootstrap or Bootstrap()
    if not testing.paired:
        return unpaired_difference(*pair, level=bootstrap.level, seed=bootstrap.seed)
    units = bootstrap.units(queries)
    return paired_difference(*pair, level=bootstrap.level, draws=testing.draws, seed=bootstrap.seed, units=units)


def _row(
    names: tuple[str, str], measure: Measure, pair: tuple[Outcome, Outcome], queries: Sequence[str], testing: Testing
) -> RunDifference:
    """What two outcomes at one depth say without a test."""
    known = [outcome.defined[:, 0] for outcome in pair]
    if testing.paired:
        known = [known[0] & known[1]] * 2
    values = [float(outcome.over(some).value()[0]) for outcome, some in zip(pair, known, strict=True)]
    gaps = _gaps(*(outcome.parts[0][:, 0] for outcome in pair)) if testing.paired else np.full(0, np.nan)
    better = gaps[~np.isnan(gaps)] * (1 if measure.higher_is_better else -1)
    return RunDifference(
        run=names[0],
        baseline=names[1],
        measure=measure,
        value=values[0],
        baseline_value=values[1],
        tested_as=str(_tested_as(measure, pair, testing)),
        wins=int((better > 0).sum()),
        ties=int((better == 0).sum()),
        losses=int((better < 0).sum()),
        n=int(known[0].sum()),
        n_baseline=int(known[1].sum()),
        n_total=len(known[0]) if testing.paired else len(known[0]) + len(known[1]),
        level=testing.level,
        moved=_moved(queries, pair, gaps),
        reason=_reason(pair, known, values),
        effective=None if pair[0].weights is None else effective_size(pair[0].weights[known[0]]),
    )


def _reason(pair: tuple[Outcome, Outcome], known: Sequence[NDArray[np.bool_]], values: Sequence[float]) -> str | None:
    """Why the difference is not a finite number; None if it is."""
    if not all(some.any() for some in known):
        reasons = [outcome.reasons[0] for outcome in pair]
        refused = [reason for reason, outcome in zip(reasons, pair, strict=True) if reason != outcome.undefined]
        return [*refused, *reasons][0]
    if all(map(math.isfinite, values)):
        return None
    return "no query succeeded: log2 of 0" if -math.inf in values else "undefined for one of the runs"


def _tested_as(measure: Measure, pair: tuple[Outcome, Outcome], testing: Testing) -> Measure:
    """The measure that is tested: Success in place of BoR and EF, if both runs have the same random baseline."""
    baselines = zip(pair[0].parts[1:], pair[1].parts[1:], strict=True)
    alike = testing.paired and all(np.array_equal(one, other, equal_nan=True) for one, other in baselines)
    return measure.differs_with if alike else measure


def _gaps(values: FloatArray, others: FloatArray) -> FloatArray:
    """The differences query by query; a difference that is only rounding is a tie."""
    gaps = values - others
    same = np.abs(gaps) <= 1e-11 * np.maximum(np.abs(values), np.abs(others))
    return np.where(same, 0.0, gaps)


def _moved(queries: Sequence[str], pair: tuple[Outcome, Outcome], gaps: FloatArray) -> tuple[Moved, ...]:
    known = np.flatnonzero(~np.isnan(gaps) & (gaps != 0))
    order = known[np.argsort(-np.abs(gaps[known]), kind="stable")][:_SHOWN_QUERIES]
    return tuple(Moved(queries[i], *(float(outcome.parts[0][i, 0]) for outcome in pair)) for i in order.tolist())


# -- what the report of both says -------------------------------------------------------------------------


def _with_estimates(row: RunDifference, one: Side, other: Side, testing: Testing) -> RunDifference:
    """The row with the possible range, the caveats, the figures and the random baseline that the estimates have."""
    estimates = {side.name: side.estimates.get(str(row.measure)) for side in (one, other)}
    known = [each for each in estimates.values() if each is not None]
    placebos = len(known) == 2 and all(map(equals_placebo, known))
    row = replace(row, possible=_possible(*estimates.values()), equal_to_placebos=placebos)
    caveats, bases = _caveats_of_both(estimates), {each.basis for each in known}
    values = [each.value for each in known]
    completed = any(each.basis == WITH_TAIL and each.value != each.as_judged for each in known)
    if completed and len(values) == 2 and all(map(math.isfinite, values)):
        caveats.insert(0, _UNCOMPLETED)
        row = replace(row, value=values[0], baseline_value=values[1])
    elif WITH_CONTROLS in bases:
        # The random baseline cancels in a difference of logarithms: only the level of both figures changes.
        same = testing.paired and isinstance(row.measure, BoR) and bases == {WITH_CONTROLS}
        if same and math.isfinite(values[1] + row.difference):
            row = replace(row, value=values[1] + row.difference, baseline_value=values[1])
        else:
            caveats.insert(0, _WITHOUT_CONTROLS)
    return replace(row, caveats=tuple(caveats))


def _caveats_of_both(estimates: Mapping[str, Estimate | None]) -> list[Caveat]:
    """The caveats of two runs' figures, each with the name of its run; one that both have stands once, without."""
    runs_of: dict[tuple[str, str, str], dict[str, Caveat]] = {}
    for run, estimate in estimates.items():
        for caveat in () if estimate is None else estimate.caveats:
            runs_of.setdefault((caveat.code, caveat.level, caveat.text), {})[run] = caveat
    return [
        caveat if len(by_run) > 1 else replace(caveat, text=f"{run}: {caveat.text}")
        for by_run in runs_of.values()
        for run, caveat in list(by_run.items())[:1]
    ]


def _possible(one: Estimate | None, other: Estimate | None) -> tuple[float, float] | None:
    """The possible range of the difference, whatever the grades of the unjudged passages are."""
    if one is None or other is None or (one.possible is None and other.possible is None):
        return None
    ends = [each.possible or (each.value, each.value) for each in (one, other)]
    return ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]
