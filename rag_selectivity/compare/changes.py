"""What changed in the figures of a decision since a report was stored, such as that of the main branch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_selectivity.compare.differences import Testing, as_family
from rag_selectivity.compare.stored import ON, as_judged, differences_since
from rag_selectivity.errors import InputError
from rag_selectivity.measures import Measure
from rag_selectivity.results.comparison import Changes, FigureChange, RunChange, RunDifference
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.estimate import AS_JUDGED
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import RunReport


def changes_since(report: Report, decision: Decision, stored: Report, *, on: str = "all") -> Changes:
    """The figures of a decision against those of a stored report, paired query by query.

    Parameters
    ----------
    report : Report
        With the lists of the runs; the decision was made from it.
    decision : Decision
    stored : Report
    on : {"all", "shared"}
        As in `differences_since`.

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
    if on not in ON:
        raise InputError(f"on (gates.on) must be one of {', '.join(ON)}, got {on!r}")
    bootstrap = report.bootstrap
    known = _with_figures_of(report, decision)
    names = [line.run for line in decision.lines]
    # With a single run on both sides its name does not matter.
    alone = len(names) == len(stored.runs) == 1
    paired = [name for name in names if alone or name in stored.runs]
    runs: list[RunChange] = []
    not_compared: dict[str, str] = {}
    notes: list[str] = []
    for line in decision.lines:
        if line.run not in paired:
            continue
        stored_as = next(iter(stored.runs)) if alone else line.run
        then = stored.runs[stored_as]
        held = {name: each.measure for name, each in line.figures.items() if str(each.measure) in then.estimates}
        try:
            since = differences_since(known, line.run, stored, list(held.values()), on=on)
        except InputError as error:
            problem = f"{stored.path} cannot be compared with run {line.run!r}: "
            not_compared[line.run] = str(error).removeprefix(problem)
            continue
        notes += filter(None, [since.note])
        rows = dict(zip(held, since.rows, strict=True))
        runs.append(_changes_of(line.run, stored_as, known.runs[line.run], then, rows))
    keys = [str(figure.measure) for line in decision.lines if line.run in paired for figure in line.figures.values()]
    known_keys = {key for run in stored.runs.values() for key in run.estimates}
    tests: dict[str, int] = {}
    return Changes(
        "" if stored.path is None else stored.path.name,
        _in_families(runs, decision.measure, Testing(bootstrap, power=None), tests),
        tuple(name for name in names if name not in paired),
        tuple(name for name in stored.runs if not alone and name not in names),
        not_compared,
        tuple(key for key in dict.fromkeys(keys) if key not in known_keys),
        None if bootstrap is None else bootstrap.level,
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


def _changes_of(
    run: str, stored_as: str, now: RunReport, then: RunReport, rows: Mapping[str, RunDifference]
) -> RunChange:
    figures: dict[str, FigureChange] = {}
    reasons: dict[str, str] = {}
    for name, row in rows.items():
        key, no_success = str(row.measure), row.value == row.baseline_value == -math.inf
        if math.isnan(row.difference) and not no_success:
            reasons[key] = row.reason or ""
        else:
            figures[name] = FigureChange(as_judged(then.estimates[key]), as_judged(now.estimates[key]), row)
    return RunChange(run, stored_as, figures, reasons)


def _in_families(
    runs: Sequence[RunChange], ranking: Measure, testing: Testing, tests: dict[str, int]
) -> tuple[RunChange, ...]:
    """The runs with verdicts after Holm's correction in two families; fills in the number of tests of each."""
    changed = [each.row for run in runs for each in run.figures.values() if each.row.moved]
    corrected: dict[tuple[str, str], RunDifference] = {}
    ranked, others = (
        [row for row in changed if (row.tested_as == str(ranking)) == of_ranking] for of_ranking in (True, False)
    )
    for name, family in ((str(ranking), ranked), ("", others)):
        tests[name] = len({(row.run, row.tested_as) for row in family if row.test})
        corrected |= {(row.run, str(row.measure)): row for row in as_family(family, (), testing)}
    return tuple(
        replace(
            run,
            figures={
                name: replace(each, row=corrected.get((run.run, str(each.row.measure)), each.row))
                for name, each in run.figures.items()
            },
        )
        for run in runs
    )
