"""The tables of slices: the figures of each slice of a run, and the differences in each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import Measure, parse_measure
from rag_selectivity.render.blocks import BLANK, Block, Heading, Id, Note, Table
from rag_selectivity.results.comparison import Comparison, RunDifference
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.slices import FEWEST, Slice, Slices
from rag_selectivity.wording import MARKS, counted, ends_text, level_text, number, signed

#: The depth of the tables if figures have more than one; all others are in JSON, CSV and the DataFrame.
USUAL_DEPTH = 10
#: The mark of a slice with few queries.
FEW_MARK = "*"
FEW_NOTE = f"{FEW_MARK} under {FEWEST} queries: the figures say little"


def slice_blocks(run: str, slices: Slices) -> Iterable[Block]:
    """A heading and a table for each column by which the queries of a run are sliced."""
    for column, by_value in slices.items():
        header, rows, notes = slice_grid(by_value)
        yield Heading(Id(run), f" by {column}")
        yield Table(header, rows)
        yield from (Note(note, "note", of_table=True) for note in notes)


def slice_grid(by_value: Mapping[str, Slice], depth: int = USUAL_DEPTH) -> tuple[list[str], list[list[str]], list[str]]:
    """The header, the rows and the notes of one column: a row for each slice, at the depth nearest to the given one."""
    parts = list(by_value.values())
    measures = [parse_measure(key) for key in parts[0].estimates]
    shown = shown_measures(measures, depth)
    header = ["", "queries", *map(str, shown)]
    rows = [
        [f"{part.value}{FEW_MARK if part.few else ''}", str(part.queries)]
        + [_cell(measure, part.estimates.get(str(measure)), part.queries) for measure in shown]
        for part in parts
    ]
    notes = [FEW_NOTE] if any(part.few for part in parts) else []
    left_out = len(measures) - len(shown)
    if left_out:
        notes.append(
            f"{counted(left_out, 'further figure')} of each slice at other depths: in JSON, CSV and DataFrames"
        )
    codes: dict[tuple[str, str], list[str]] = {}
    missing: dict[str, list[str]] = {}
    for part in parts:
        for name in map(str, shown):
            estimate = part.estimates.get(name)
            if estimate is None:
                continue
            for caveat in estimate.caveats:
                codes.setdefault((MARKS[caveat.level], caveat.code), []).append(f"{name} of {part.value}")
            if estimate.reason is not None and math.isnan(estimate.value):
                missing.setdefault(estimate.reason, []).append(f"{name} of {part.value}")
    notes += [f"{mark} [{code}] {', '.join(figures)}".strip() for (mark, code), figures in codes.items()]
    notes += [f"no {', '.join(figures)}: {reason}" for reason, figures in missing.items()]
    return header, rows, notes


def shown_measures(measures: Sequence[Measure], wanted: int = USUAL_DEPTH) -> list[Measure]:
    """The measures at the one rank that a table shows, the nearest to the wanted one, and all that are at no rank."""
    ranks = {measure.at for measure in measures if _at_rank(measure) and measure.at is not None}
    shown = min(ranks, key=lambda at: (abs(at - wanted), at), default=None)
    return [measure for measure in measures if not _at_rank(measure) or measure.at == shown]


def _at_rank(measure: Measure) -> bool:
    """Whether it is at a rank K, rather than at a recall level, at a budget of tokens or of whole lists."""
    return isinstance(measure.at, int) and not is_budget(measure.at)


def _cell(measure: Measure, estimate: Estimate | None, queries: int) -> str:
    if estimate is None:
        return BLANK
    text = number(estimate.value)
    if measure.higher_is_better is not None:
        text += ends_text(estimate.low, estimate.high)
    if estimate.possible is not None:
        text += f" … {number(estimate.possible[1])}"
    if estimate.as_judged is not None:
        text += f" (as judged {number(estimate.as_judged)})"
    if estimate.n != queries:
        text += f" n={estimate.n}"
    return text + estimate.mark


# -- differences ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DifferenceTable:
    """The differences of a run from the baseline in the slices of a column."""

    column: str
    run: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str]


def slice_difference_blocks(comparison: Comparison, run: str) -> Iterable[Block]:
    """For each column a table of the differences of a run in each slice."""
    for found in slice_differences(comparison, run):
        yield Heading(Id(run), " compared with ", Id(comparison.baseline), f" by {found.column}")
        yield Table(found.header, found.rows, breaks=False)
        yield from (Note(note, of_table=True) for note in found.notes)


def slice_differences(comparison: Comparison, run: str) -> Iterator[DifferenceTable]:
    """A table for each column in whose slices the run is compared."""
    for column, by_value in comparison.slices.items():
        rows = [row for part in by_value.values() for row in part.rows if row.run == run]
        if not rows:
            continue
        tested = dict.fromkeys(row.measure for row in rows if row.test and isinstance(row.measure, Measure))
        measures = shown_measures(list(tested))
        shown = [row for measure in measures for row in rows if row.measure == measure]
        notes = [f"{FEW_MARK} under {FEWEST} queries: no verdict"] if any(row.few for row in shown) else []
        reasons: dict[str, list[str]] = {}
        for row in rows:
            if row.measure in measures and row.reason is not None and math.isnan(row.difference):
                reasons.setdefault(row.reason, []).append(f"{row.measure} of {_slice_of(row)}")
        notes += [f"no {', '.join(names)}: {reason}" for reason, names in reasons.items()]
        notes.append(f"p Holm: over {counted(comparison.settings['family_of_slices'], 'test')} in all slices")
        interval = f"difference [{level_text(comparison.settings['level'])}, unadjusted]"
        header = ["", "slice", "n", interval, "p Holm", "verdict"]
        yield DifferenceTable(column, run, header, list(map(_difference_cells, shown)), notes)


def _difference_cells(row: RunDifference) -> list[str]:
    judged = "" if row.as_judged is None else f" (as judged {signed(row.as_judged)})"
    return [
        str(row.measure),
        f"{_slice_of(row)}{FEW_MARK if row.few else ''}",
        str(row.n) if row.n == row.n_baseline else f"{row.n}, {row.n_baseline}",
        f"{signed(row.difference)} [{signed(row.low)}, {signed(row.high)}]{judged}",
        "–" if math.isnan(row.p_adjusted) else f"{row.p_adjusted:.4f}",
        "–" if row.few else row.verdict,
    ]


def _slice_of(row: RunDifference) -> str:
    return "" if row.by is None else row.by[1]
