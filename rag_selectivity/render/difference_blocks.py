"""The differences of runs as tables, with their verdicts and notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_selectivity.measures.base import Measure
from rag_selectivity.render.blocks import Block, Heading, Id, Note, Table
from rag_selectivity.render.decision_blocks import cost_notes
from rag_selectivity.render.report_table import caveat_lines
from rag_selectivity.render.slice_tables import slice_difference_blocks
from rag_selectivity.results.comparison import VERDICTS, Comparison, RunDifference
from rag_selectivity.results.estimate import CALIBRATED
from rag_selectivity.wording import between, counted, level_text, number, signed

_COMPARED = ("", "base", "run", "difference [{}, unadjusted]", "p Holm", "W/T/L", "shows ≥")


def comparison_blocks(comparison: Comparison) -> Iterable[Block]:
    """All differences of a comparison, those within slices, and the decision."""
    for name in dict.fromkeys(row.run for row in comparison.rows):
        of_run = [row for row in comparison.rows if row.run == name]
        yield from difference_blocks(of_run, comparison.settings, comparison.notes)
        yield from slice_difference_blocks(comparison, name)
    if comparison.report.decision is not None:
        yield from cost_notes(comparison.report.decision)


def difference_blocks(
    rows: Sequence[RunDifference], settings: Mapping[str, Any], notes: Sequence[str] = ()
) -> Iterable[Block]:
    """A table for each run that is compared with the baseline, and what is to be said of it."""
    header = [name.format(level_text(settings["level"])) for name in _COMPARED]
    for name in dict.fromkeys(row.run for row in rows):
        of_run = [row for row in rows if row.run == name]
        yield Heading(Id(name), " compared with ", Id(of_run[0].baseline), f": {_counted(of_run, settings)}")
        yield Table(header, [_compared_cells(row) for row in of_run], breaks=False)
        yield from _findings(of_run, settings, notes)


def _counted(rows: Sequence[RunDifference], settings: Mapping[str, Any]) -> str:
    if settings["paired"]:
        return f"{rows[0].n_total} queries{' (weighted)' if 'weights' in settings else ''}"
    return f"{max(row.n for row in rows)} and {max(row.n_baseline for row in rows)} queries, unpaired"


def _compared_cells(row: RunDifference) -> list[str]:
    figures = [str(row.measure), number(row.baseline_value), number(row.value)]
    if not row.test:
        return [*figures, "", "", "", ""]
    return [
        *figures,
        f"{signed(row.difference)} [{signed(row.low)}, {signed(row.high)}]",
        f"{row.p_adjusted:.4f}" if not math.isnan(row.p_adjusted) else "–",
        f"{row.wins}/{row.ties}/{row.losses}" if row.wins + row.ties + row.losses else "–",
        number(row.detectable),
    ]


def _difference_as_judged(row: RunDifference) -> str:
    low, high = row.as_judged_interval or (math.nan, math.nan)
    value = math.nan if row.as_judged is None else row.as_judged
    return f"{signed(value)} [{signed(low)}, {signed(high)}]"


def _findings(rows: Sequence[RunDifference], settings: Mapping[str, Any], notes: Sequence[str]) -> Iterable[Note]:
    """The notes below a table: verdicts, ranges, caveats, and the queries with the largest differences."""
    tested = [row for row in rows if row.test]
    for verdict in dict.fromkeys(sorted((row.verdict for row in tested), key=VERDICTS.index)):
        yield Note(f"{verdict}: {', '.join(str(row.measure) for row in tested if row.verdict == verdict)}")
    for row in tested:
        if row.possible is not None:
            yield Note(f"{row.measure}: the difference is {between(row.possible)}, whatever the unjudged passages are")
    yield from map(Note, caveat_lines([(row.measure, row.caveats) for row in rows if isinstance(row.measure, Measure)]))
    as_judged = [f"{row.measure} {_difference_as_judged(row)}" for row in rows if row.basis == CALIBRATED]
    if as_judged:
        yield Note(f"differences as judged: {', '.join(as_judged)}; W/T/L and the queries below are as judged too")
    for row in rows:
        if row.basis == CALIBRATED and row.reason is not None:
            yield Note(f"no calibrated difference for {row.measure}: {row.reason}")
    if any(not math.isnan(row.detectable) for row in tested):
        power, family = level_text(settings["power"]), counted(settings["family"], "test")
        yield Note(
            f"shows ≥: the smallest true difference that is shown with a power of {power}, at the level of Holm's "
            f"correction for a family of {family}",
            of_table=True,
        )
    yield from map(Note, notes)
    first = next((row for row in rows if row.moved), None)
    if first is not None:
        moved = ", ".join(f"{m.query} ({number(m.baseline_value)} → {number(m.value)})" for m in first.moved)
        yield Note(f"largest differences in {first.measure}: {moved}")
