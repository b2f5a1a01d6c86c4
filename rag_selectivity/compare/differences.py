"""Differences of two tables of figures: of runs, of runs in a slice, of a run and its stored form, of claim checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.evaluation.caveats import AS_JUDGED_BASELINE, equals_placebo, of_strata
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference import detectable
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.paired import BOUNDED, holm, paired_difference
from rag_selectivity.inference.unpaired import unpaired_difference
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.chance import BoR
from rag_selectivity.results.claims import ClaimRun
from rag_selectivity.results.comparison import COMPLETED, Moved, RunDifference
from rag_selectivity.results.estimate import CALIBRATED, NOTE, WITH_CONTROLS, WITH_TAIL, Caveat, Estimate
from rag_selectivity.results.provenance import UNLABELLED_STRATA
from rag_selectivity.results.run_report import RunReport, Slice
from rag_selectivity.trust.completions import Completed, completed_figures
from rag_selectivity.trust.people import Ground

#: (run, baseline)
Pairs = Sequence[tuple[str, str]]

#: Of how many queries a comparison says that they differ most.
_SHOWN_QUERIES = 5
#: Two figures with a smaller relative difference are equal but for rounding.
ROUNDING = 1e-11
_ONE_DECIDES = Caveat(
    "one-query-decides",
    "One query decides this difference: one more that went far the other way could turn it. Ask more questions.",
)
_UNCOMPLETED = Caveat(
    "difference-as-judged",
    "These figures and their difference are as judged; the report has the figures completed from a sample of the tail.",
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

    @classmethod
    def of(cls, name: str, run: RunReport | ClaimRun | Slice, measures: Sequence[Measure]) -> Side:
        """The columns of some measures of a run of a report, or of a slice of it."""
        return cls(name, run.figures.only(measures), run.estimates)


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
    rows = []
    for (measure, depths), *pair in zip(one.figures.plan, one.figures.outcomes, other.figures.outcomes, strict=True):
        bootstrap, (first, second) = testing.bootstrap or Bootstrap(), pair
        how: dict[str, Any] = {"level": bootstrap.level, "seed": bootstrap.seed}
        if testing.paired:
            how |= {"draws": testing.draws, "units": bootstrap.units(other.figures.queries)}
        tested = (paired_difference if testing.paired else unpaired_difference)(first, second, **how)
        for column, depth in enumerate(depths.tolist()):
            of_depth = [outcome.at(slice(column, column + 1)) for outcome in pair]
            row = _row(one, other, measure @ depth, of_depth, float(tested.value[column]), testing)
            # Judged is shown for information; its difference is not tested.
            if testing.bootstrap is not None and measure.name != "Judged" and not math.isnan(row.difference):
                low, high, p = (float(each[column]) for each in (tested.low, tested.high, tested.p))
                row = replace(row, low=low, high=high, p=p, test=tested.test[column])
            row = _qualified(row, one.estimates.get(str(row.measure)), other.estimates.get(str(row.measure)), testing)
            rows.append(replace(row, caveats=(_ONE_DECIDES, *row.caveats)) if row.test == BOUNDED else row)
    return rows


def rows_of(
    pairs: Pairs,
    sides: Mapping[str, Side],
    testing: Testing,
    ground: Ground | None = None,
    whole: Mapping[str, Figures] | None = None,
) -> list[RunDifference]:
    """The differences of pairs of runs; with `ground` they rest on labels by people.

    The sides are slices of the runs `whole`, if these are given.
    """
    rows = [row for name, base in pairs for row in differences_of(sides[name], sides[base], testing)]
    if ground is None or testing.bootstrap is None:
        return rows
    completed: dict[tuple[str, ...], dict[str, Completed]] = {}
    for base in dict.fromkeys(base for _, base in pairs):
        targets = [(name, base) for name, other in pairs if other == base]
        judged = {name: sides[name].figures.join for name in (base, *(name for name, _ in targets))}
        every, parts = (judged, None) if whole is None else ({name: whole[name].join for name in judged}, judged)
        completed |= completed_figures(ground, every, targets, sides[base].figures.plan, testing.bootstrap, parts)
    changes = [completed[row.run, row.baseline].get(str(row.measure)) for row in rows]
    return [row if change is None else _calibrated(row, change) for row, change in zip(rows, changes, strict=True)]


def known_baseline(baseline: str | None, runs: Mapping[str, Any]) -> str:
    """The run that the others are compared with: the first one, or the one that is named."""
    if baseline is None:
        return next(iter(runs), "")
    if not (isinstance(baseline, str) and baseline in runs):
        meant = did_you_mean(baseline, runs)
        raise InputError(f"the baseline {baseline!r} is none of the runs {', '.join(runs)}{meant}")
    return baseline


def as_family(
    rows: Sequence[RunDifference], testing: Testing, sides: Mapping[str, Side] | None = None
) -> tuple[RunDifference, ...]:
    """The rows as one family of tests: with Holm's correction, and with detectable differences if sides are given.

    A test that several rows share counts once; rows of slices with few queries are no part of the family.
    """
    tests = {_test_of(row): row.p for row in rows if row.test and not row.few}
    adjusted = dict(zip(tests, holm(np.array(list(tests.values()))).tolist(), strict=True))
    level = (1 - testing.level) / max(1, len(tests))
    found = []
    for row in rows:
        least = math.nan
        if sides is not None and row.test not in ("", COMPLETED):
            least = _detectable(row, sides[row.run], sides[row.baseline], level, testing)
        corrected = adjusted.get(_test_of(row), math.nan) if row.test else math.nan
        found.append(replace(row, p_adjusted=corrected, detectable=least))
    return tuple(found)


def settings_of(rows: Iterable[RunDifference], testing: Testing) -> dict[str, Any]:
    """How a family of differences was tested."""
    family = len({_test_of(row) for row in rows if row.test and not row.few})
    how = {"paired": testing.paired, "draws": testing.draws, "power": testing.power}
    return {**how, "correction": "holm", "family": family}


def _test_of(row: RunDifference) -> tuple[object, ...]:
    return row.by, row.run, row.baseline, row.tested_as


def _detectable(row: RunDifference, one: Side, other: Side, level: float, testing: Testing) -> float:
    """The smallest difference that would have been shown; NaN if the row was not tested query by query."""
    pair = [side.figures.outcome(row.measure) for side in (one, other)]
    if testing.power is None or testing.bootstrap is None or not testing.paired or pair[0] is None or pair[1] is None:
        return math.nan
    units = testing.bootstrap.units(other.figures.queries)
    return detectable.sensitivity(pair[0], pair[1], level, testing.power, units=units, draws=testing.draws)


# -- a row ------------------------------------------------------------------------------------------------


def _row(
    one: Side, other: Side, measure: Measure, pair: Sequence[Outcome], difference: float, testing: Testing
) -> RunDifference:
    """What two outcomes at one depth say without a test."""
    known, queries = [outcome.defined[:, 0] for outcome in pair], other.figures.queries
    gaps = np.zeros(0)
    if testing.paired:
        known = [known[0] & known[1]] * 2
        first, second = (outcome.parts[0][:, 0] for outcome in pair)
        # A difference that is only rounding is a tie.
        same = np.abs(first - second) <= ROUNDING * np.maximum(np.abs(first), np.abs(second))
        gaps = np.where(same | ~known[0], 0.0, first - second)
    values = [float(outcome.over(some).value()[0]) for outcome, some in zip(pair, known, strict=True)]
    better = gaps * (1 if measure.higher_is_better else -1)
    furthest = np.argsort(-np.abs(gaps), kind="stable")[:_SHOWN_QUERIES]
    baselines = zip(pair[0].parts[1:], pair[1].parts[1:], strict=True)
    # With the same random baseline, BoR and EF differ exactly where Success does.
    alike = testing.paired and all(np.array_equal(part, base, equal_nan=True) for part, base in baselines)
    return RunDifference(
        run=one.name,
        baseline=other.name,
        measure=measure,
        value=values[0],
        baseline_value=values[1],
        difference=difference,
        tested_as=str(measure.differs_with if alike else measure),
        wins=int((better > 0).sum()),
        ties=int(known[0].sum() - (better != 0).sum()) if testing.paired else 0,
        losses=int((better < 0).sum()),
        n=int(known[0].sum()),
        n_baseline=int(known[1].sum()),
        n_total=len(known[0]) if testing.paired else len(known[0]) + len(known[1]),
        level=testing.level,
        moved=tuple(
            Moved(queries[i], *(float(outcome.parts[0][i, 0]) for outcome in pair)) for i in furthest if gaps[i]
        ),
        reason=_reason(pair, known, values),
        effective=None if pair[0].weights is None else effective_size(pair[0].weights[known[0]]),
    )


def _reason(pair: Sequence[Outcome], known: Sequence[NDArray[np.bool_]], values: Sequence[float]) -> str | None:
    """Why the difference is not a finite number; None if it is."""
    if not all(some.any() for some in known):
        reasons = [outcome.reasons[0] for outcome in pair]
        refused = [reason for reason, outcome in zip(reasons, pair, strict=True) if reason != outcome.undefined]
        return [*refused, *reasons][0]
    if all(map(math.isfinite, values)):
        return None
    return "no query succeeded: log2 of 0" if -math.inf in values else "undefined for one of the runs"


# -- what the report of both says -------------------------------------------------------------------------


def _qualified(row: RunDifference, one: Estimate | None, other: Estimate | None, testing: Testing) -> RunDifference:
    """The row with the possible range, the caveats, the figures and the random baseline that the estimates have."""
    if one is None or other is None:
        return row
    caveats, possible = _caveats_of_both({row.run: one, row.baseline: other}), None
    if one.possible is not None or other.possible is not None:
        (low, high), (base_low, base_high) = (each.possible or (each.value, each.value) for each in (one, other))
        possible = low - base_high, high - base_low
    bases = {one.basis, other.basis}
    if any(each.basis == WITH_TAIL and each.value != each.as_judged for each in (one, other)):
        caveats.insert(0, _UNCOMPLETED)
    elif WITH_CONTROLS in bases:
        # The random baseline cancels in a difference of logarithms: only the level of both figures changes.
        same = testing.paired and isinstance(row.measure, BoR) and bases == {WITH_CONTROLS}
        if same and math.isfinite(other.value + row.difference):
            row = replace(row, value=other.value + row.difference, baseline_value=other.value)
        else:
            caveats.insert(0, _WITHOUT_CONTROLS)
    placebos = equals_placebo(one) and equals_placebo(other)
    return replace(row, possible=possible, caveats=tuple(caveats), equal_to_placebos=placebos)


def _caveats_of_both(estimates: Mapping[str, Estimate]) -> list[Caveat]:
    """The caveats of two runs' figures, each with the name of its run; one that both have stands once, without."""
    runs_of: dict[tuple[str, str, str], dict[str, Caveat]] = {}
    for run, estimate in estimates.items():
        for caveat in estimate.caveats:
            runs_of.setdefault((caveat.code, caveat.level, caveat.text), {})[run] = caveat
    return [
        caveat if len(by_run) > 1 else replace(caveat, text=f"{run}: {caveat.text}")
        for by_run in runs_of.values()
        for run, caveat in list(by_run.items())[:1]
    ]


def _calibrated(row: RunDifference, change: Completed) -> RunDifference:
    """The row with the difference over completions of the labels, and the one as judged beside it."""
    # The difference has strata of its own.
    caveats = [caveat for caveat in row.caveats if caveat.code != UNLABELLED_STRATA]
    value, baseline_value = change.sides or (math.nan, math.nan)
    return replace(
        row,
        value=value,
        baseline_value=baseline_value,
        difference=change.value,
        low=change.low,
        high=change.high,
        p=change.p,
        reason=change.reason,
        test="" if math.isnan(change.value) else COMPLETED,
        tested_as=str(row.measure),
        basis=CALIBRATED,
        as_judged=row.difference,
        as_judged_interval=(row.low, row.high),
        caveats=(*caveats, *of_strata(change.without)),
    )
