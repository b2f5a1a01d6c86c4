"""What changed in the figures of a decision since a report was stored, such as that of the main branch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rag_selectivity.compare.against import Against, Change, as_judged
from rag_selectivity.errors import InputError
from rag_selectivity.estimating.caveats import equals_placebo
from rag_selectivity.inference.paired import holm
from rag_selectivity.measures import Measure
from rag_selectivity.results.comparison import (
    BETTER,
    JUDGED_IN_PART,
    NOT_SHOWN,
    NOT_TESTED,
    PLACEBO,
    WORSE,
)
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.estimate import AS_JUDGED
from rag_selectivity.results.report import Report

#: The verdict on a figure that is the same for every query.
UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure of a run, before and now.

    Attributes
    ----------
    measure : Measure
        With its depth.
    change : Change
    p_adjusted : float
        The p-value after Holm's correction; NaN without a test.
    verdict : str
        `unchanged`, or as in `RunDifference.verdict`.
    """

    measure: Measure
    change: Change
    p_adjusted: float = math.nan
    verdict: str = NOT_TESTED


@dataclass(frozen=True, slots=True)
class RunChange:
    """A run that both reports have.

    Attributes
    ----------
    stored_as : str
        Its name in the stored report.
    figures : {name of the measure: FigureChange}
        Keyed without depth, in the order of the decision's table.
    not_compared : {key of the measure: reason}
        Of measures that both reports hold.
    """

    run: str
    stored_as: str
    figures: Mapping[str, FigureChange]
    not_compared: Mapping[str, str]

    @property
    def is_unchanged(self) -> bool:
        """Whether every figure is the same for every query."""
        return (
            bool(self.figures)
            and not self.not_compared
            and all(each.verdict == UNCHANGED for each in self.figures.values())
        )


@dataclass(frozen=True)
class Changes:
    """What changed in the figures of a decision.

    Attributes
    ----------
    name : str
        The file of the stored report.
    runs : tuple of RunChange
        In the order of the decision.
    new, gone : tuple of str
        Runs that only the report has, and that only the stored report has.
    not_compared : {run: reason}
    not_stored : tuple of str
        Keys of the decision's figures that the stored report does not hold.
    level : float or None
        The level of the intervals and tests; None without them.
    tests : {measure or "": count}
        How many tests were corrected together after Holm: those of the measure that ranks the runs, and (under "")
        those of all other measures.
    as_judged : bool
        Whether figures rest on more than labels as they are, and are compared without that.
    notes : tuple of str
        With `on="shared"`: how many queries are compared.
    """

    name: str
    runs: tuple[RunChange, ...]
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    not_compared: Mapping[str, str] = field(default_factory=dict)
    not_stored: tuple[str, ...] = ()
    level: float | None = None
    tests: Mapping[str, int] = field(default_factory=dict)
    as_judged: bool = False
    notes: tuple[str, ...] = ()


def changes_since(report: Report, decision: Decision, stored: Report, *, on: str = "all") -> Changes:
    """The figures of a decision against those of a stored report, paired query by query.

    Parameters
    ----------
    report : Report
        With the lists of the runs; the decision was made from it.
    decision : Decision
    stored : Report
    on : {"all", "shared"}
        As in `Against.of`.

    Raises
    ------
    InputError
        If `on` is not known, or if no lists are held. What differs between the two reports is not an error but a
        reason in the result.

    Notes
    -----
    Holm's correction is over two families: the changes of all runs under the measure that ranks the runs, and the
    changes under all other measures. BoR changes exactly where Success does and shares its test. A figure that is the
    same for every query has no test and is in no family.
    """
    bootstrap = report.bootstrap
    level = None if bootstrap is None else bootstrap.level
    known = _with_figures_of(report, decision)
    names = [line.run for line in decision.lines]
    # With a single run on both sides its name does not matter.
    alone = len(names) == len(stored.runs) == 1
    paired = [name for name in names if alone or name in stored.runs]
    runs: list[RunChange] = []
    not_compared: dict[str, str] = {}
    notes: list[str] = []
    for name in paired:
        try:
            against = Against.of(known, stored, on=on, bootstrap=bootstrap, runs=[name])
        except InputError as error:
            not_compared[name] = str(error).removeprefix(f"{stored.path} cannot be compared with run {name!r}: ")
            continue
        notes += against.notes
        stored_as = next(iter(stored.runs)) if alone else name
        runs.append(_changes_of(against, name, stored_as, decision))
    keys = [str(figure.measure) for line in decision.lines if line.run in paired for figure in line.figures.values()]
    held = {key for run in stored.runs.values() for key in run.estimates}
    tests: dict[str, int] = {}
    adjusted = _adjusted(runs, decision.measure, tests)
    return Changes(
        "" if stored.path is None else stored.path.name,
        tuple(_judged(run, adjusted, level) for run in runs),
        tuple(name for name in names if name not in paired),
        tuple(name for name in stored.runs if not alone and name not in names),
        not_compared,
        tuple(key for key in dict.fromkeys(keys) if key not in held),
        level,
        tests,
        any(figure.estimate.basis != AS_JUDGED for line in decision.lines for figure in line.figures.values()),
        tuple(notes),
    )


def _with_figures_of(report: Report, decision: Decision) -> Report:
    """The report with the figures of the decision, which it need not have measured at this K."""
    runs = dict(report.runs)
    for line in decision.lines:
        figures = {str(each.measure): each.estimate for each in line.figures.values()}
        runs[line.run] = replace(runs[line.run], estimates={**runs[line.run].estimates, **figures})
    return replace(report, runs=runs)


def _changes_of(against: Against, run: str, stored_as: str, decision: Decision) -> RunChange:
    figures: dict[str, FigureChange] = {}
    reasons: dict[str, str] = {}
    (line,) = (line for line in decision.lines if line.run == run)
    for name, figure in line.figures.items():
        if str(figure.measure) not in against.pairs[run].stored.estimates:
            continue
        try:
            change = against.change(run, figure.measure)
        except InputError as error:
            reasons[str(figure.measure)] = str(error)
            continue
        if change.reason is not None:
            reasons[str(figure.measure)] = change.reason
            continue
        change = replace(change, before=as_judged(change.before), now=as_judged(change.now))
        same = _is_the_same(against, run, figure.measure)
        figures[name] = FigureChange(figure.measure, change, verdict=UNCHANGED if same else NOT_TESTED)
    return RunChange(run, stored_as, figures, reasons)


def _is_the_same(against: Against, run: str, measure: Measure) -> bool:
    """Whether the figure is the same for every query."""
    now, then = against.pairs[run].outcomes(measure)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(now.parts, then.parts, strict=True))


def _adjusted(runs: Iterable[RunChange], ranking: Measure, tests: dict[str, int]) -> dict[tuple[str, str], float]:
    """p-values by run and key of the measure, after Holm's correction; fills in the number of tests."""
    families: dict[str, dict[tuple[str, str], float]] = {str(ranking): {}, "": {}}
    for run in runs:
        for each in run.figures.values():
            if each.verdict != UNCHANGED and not math.isnan(each.change.p):
                # BoR changes exactly where Success does: one test.
                key = str(each.measure.differs_with)
                families[key if key in families else ""][run.run, key] = each.change.p
    adjusted: dict[tuple[str, str], float] = {}
    for name, family in families.items():
        tests[name] = len(family)
        adjusted |= dict(zip(family, holm(np.array(list(family.values()))).tolist(), strict=True))
    return adjusted


def _judged(run: RunChange, adjusted: Mapping[tuple[str, str], float], level: float | None) -> RunChange:
    """The run with its adjusted p-values and verdicts."""
    figures = {}
    for name, each in run.figures.items():
        p = adjusted.get((run.run, str(each.measure.differs_with)), math.nan)
        verdict = each.verdict if each.verdict == UNCHANGED else _verdict(each, p, level)
        figures[name] = replace(each, p_adjusted=p, verdict=verdict)
    return replace(run, figures=figures)


def _verdict(each: FigureChange, p: float, level: float | None) -> str:
    before, now = each.change.before, each.change.now
    if level is None or math.isnan(p):
        return NOT_TESTED
    if p > 1 - level:
        return NOT_SHOWN
    if equals_placebo(before) and equals_placebo(now):
        return PLACEBO
    ends = [cell.possible or (cell.value, cell.value) for cell in (before, now)]
    lowest, highest = ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]
    if (before.possible or now.possible) and lowest <= 0 <= highest:
        return JUDGED_IN_PART
    return BETTER if (each.change.low > 0) == bool(each.measure.higher_is_better) else WORSE
