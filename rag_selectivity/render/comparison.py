"""Differences between runs, within slices, and since a stored report: their tables, and what is to be said of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rag_selectivity.measures.base import Measure
from rag_selectivity.render.blocks import (
    BLANK,
    Block,
    Column,
    Heading,
    Note,
    bare,
    caveat_lines,
    difference,
    entry,
    p_value,
    table_of,
)
from rag_selectivity.render.first_screen import cost_notes
from rag_selectivity.render.report_table import FEW, at_one_depth, reasons
from rag_selectivity.results.comparison import (
    BETTER,
    UNCHANGED,
    VERDICTS,
    WORSE,
    Changes,
    Comparison,
    FigureChange,
    RunChange,
    RunDifference,
)
from rag_selectivity.results.estimate import CALIBRATED
from rag_selectivity.results.run_report import FEWEST
from rag_selectivity.wording import between, counted, enumeration, level_text, number, signed


def comparison_blocks(comparison: Comparison) -> Iterable[Block]:
    """All differences of a comparison, those within slices, and what costs show."""
    for name in dict.fromkeys(row.run for row in comparison.rows):
        of_run = [row for row in comparison.rows if row.run == name]
        yield from difference_blocks(of_run, comparison.settings, comparison.notes)
        for column, by_value in comparison.slices.items():
            rows = [row for part in by_value.values() for row in part.rows if row.run == name]
            if rows:
                yield Heading(f"{name} compared with {comparison.baseline} by {column}")
                yield from _slice_differences(rows, comparison.settings)
    if comparison.report.decision is not None:
        yield from cost_notes(comparison.report.decision)


def difference_blocks(
    rows: Sequence[RunDifference], settings: Mapping[str, Any], notes: Sequence[str] = ()
) -> Iterator[Block]:
    """A table for each run that is compared with the baseline, and what is to be said of it."""
    for name in dict.fromkeys(row.run for row in rows):
        of_run = [row for row in rows if row.run == name]
        queries = f"{max(row.n for row in of_run)} and {max(row.n_baseline for row in of_run)} queries, unpaired"
        if settings["paired"]:
            queries = f"{of_run[0].n_total} queries{' (weighted)' if 'weights' in settings else ''}"
        yield Heading(f"{name} compared with {of_run[0].baseline}: {queries}")
        yield table_of(
            of_run,
            ("", "measure", str),
            ("base", "baseline_value", number),
            ("run", "value", number),
            _interval_column(settings),
            ("p Holm", "p_adjusted", p_value),
            ("W/T/L", _wins, str),
            ("shows ≥", "detectable", number),
        )
        yield from _findings(of_run, settings)
        yield from map(Note, notes)


def _interval_column(settings: Mapping[str, Any]) -> Column:
    title = f"difference [{level_text(settings['level'])}, unadjusted]"
    return title, lambda row: row if row.test else None, difference


def _wins(row: RunDifference) -> str | None:
    return f"{row.wins}/{row.ties}/{row.losses}" if row.wins + row.ties + row.losses else None


def _findings(rows: Sequence[RunDifference], settings: Mapping[str, Any]) -> Iterator[Note]:
    """The notes below a table: verdicts, ranges, caveats, and the queries with the largest differences."""
    tested = [row for row in rows if row.test]
    for verdict in VERDICTS:
        if names := [str(row.measure) for row in tested if row.verdict == verdict]:
            yield Note(f"{verdict}: {', '.join(names)}")
    for row in tested:
        if row.possible is not None:
            yield Note(f"{row.measure}: the difference is {between(row.possible)}, whatever the unjudged passages are")
    yield from map(Note, caveat_lines(("", str(row.measure), each) for row in rows for each in row.caveats))
    calibrated = [row for row in rows if row.basis == CALIBRATED]
    if calibrated:
        as_judged = ", ".join(
            f"{row.measure} {signed(math.nan if row.as_judged is None else row.as_judged)}" for row in calibrated
        )
        yield Note(f"differences as judged: {as_judged}; W/T/L and the queries below are as judged too")
    for row in calibrated:
        if row.reason is not None:
            yield Note(f"no calibrated difference for {row.measure}: {row.reason}")
    if any(not math.isnan(row.detectable) for row in tested):
        yield Note(
            f"shows ≥: the smallest true difference that is shown with a power of {level_text(settings['power'])}, at "
            f"the level of Holm's correction for a family of {counted(settings['family'], 'test')}"
        )
    first = next((row for row in rows if row.moved), None)
    if first is not None:
        moved = ", ".join(f"{m.query} ({number(m.baseline_value)} → {number(m.value)})" for m in first.moved)
        yield Note(f"largest differences in {first.measure}: {moved}")


def _slice_differences(rows: Sequence[RunDifference], settings: Mapping[str, Any]) -> Iterator[Block]:
    """The differences of a run in the slices of a column."""
    tested = dict.fromkeys(row.measure for row in rows if row.test and isinstance(row.measure, Measure))
    measures = at_one_depth(list(tested))
    shown = [row for measure in measures for row in rows if row.measure == measure]
    yield table_of(
        shown,
        ("", "measure", str),
        ("slice", lambda row: f"{_slice_of(row)}{FEW if row.few else ''}", str),
        ("n", lambda row: str(row.n) if row.n == row.n_baseline else f"{row.n}, {row.n_baseline}", str),
        _interval_column(settings),
        ("p Holm", "p_adjusted", p_value),
        ("verdict", lambda row: BLANK if row.few else row.verdict, str),
    )
    if any(row.few for row in shown):
        yield Note(f"{FEW} under {FEWEST} queries: no verdict")
    yield from reasons((f"{row.measure} of {_slice_of(row)}", row.difference, row.reason) for row in shown)
    yield Note(f"p Holm: over {counted(settings['family_of_slices'], 'test')} in all slices")


def _slice_of(row: RunDifference) -> str:
    return "" if row.by is None else row.by[1]


# -- since a stored report -------------------------------------------------------------------------------


def change_blocks(changes: Changes) -> Iterator[Block]:
    """The figures of a decision before and now, those with a shown change first, and what was not compared."""
    yield Heading(f"What changed against {changes.name}")
    changed = sorted((run for run in changes.runs if run.figures and not run.is_unchanged), key=_urgency)
    if changed:
        measures = {name: each.row.measure for run in changed for name, each in run.figures.items()}
        columns: list[Column] = [(str(m), entry("figures", name), _before_and_now) for name, m in measures.items()]
        yield table_of(changed, ("run", _renamed, str), *columns)
        yield Note(_about_tests(changes))
    same = [run.run for run in changes.runs if run.is_unchanged]
    if same:
        yield Note(f"Unchanged at every query: {enumeration(same)}.")
    for what, names in (
        (f"New, without a figure in {changes.name}", changes.new),
        (f"Gone, only in {changes.name}", changes.gone),
        (f"Not in {changes.name}", changes.not_stored),
    ):
        if names:
            yield Note(f"{what}: {enumeration(names)}.")
    for run, reason in changes.not_compared.items():
        yield Note(f"Not compared: {run}: {reason.rstrip('.')}.")
    for each in changes.runs:
        for measure, reason in each.not_compared.items():
            yield Note(f"Not compared: {measure} of {each.run}: {reason.rstrip('.')}.")
    yield from (Note(f"{note[0].upper()}{note[1:]}.") for note in changes.notes)


def _urgency(run: RunChange) -> int:
    """Changes that a reader must not miss come first."""
    verdicts = {each.verdict for each in run.figures.values()}
    return 0 if WORSE in verdicts else 1 if BETTER in verdicts else 2


def _renamed(run: RunChange) -> str:
    return run.run if run.stored_as == run.run else f"{run.run} (was {run.stored_as})"


def _before_and_now(each: FigureChange) -> str:
    if each.verdict == UNCHANGED:
        return f"{bare(each.now)} {UNCHANGED}"
    by = "" if each.before.possible or each.now.possible else f" {difference(each.row)}"
    return f"{bare(each.before)} → {bare(each.now)}{by} {each.verdict}"


def _about_tests(changes: Changes) -> str:
    as_judged = " Figures are compared as judged." if changes.as_judged else ""
    if changes.level is None:
        return f"Before → now, and the difference.{as_judged}"
    families = [f"{counted(n, 'test')} of {name or 'other measures'}" for name, n in changes.tests.items() if n]
    over = f", over {enumeration(families)}" if families else ""
    return (
        f"Before → now, and the difference with its paired interval of {level_text(changes.level)}, not corrected; "
        f"better and worse are shown after Holm's correction{over}.{as_judged}"
    )
