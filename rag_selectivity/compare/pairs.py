"""Differences between the runs of a report, over all queries and within slices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_selectivity.compare.differences import Side, Testing, as_family, differences_of
from rag_selectivity.evaluation.caveats import of_strata
from rag_selectivity.figures.by import Slicing
from rag_selectivity.figures.figures import Figures
from rag_selectivity.results.comparison import COMPLETED, RunDifference, SliceDifferences
from rag_selectivity.results.estimate import CALIBRATED
from rag_selectivity.results.provenance import UNLABELLED_STRATA
from rag_selectivity.results.report import Report
from rag_selectivity.trust.completions import Completed, completed_figures

#: (run, baseline)
Pairs = Sequence[tuple[str, str]]


def differences(
    pairs: Pairs, figures: Mapping[str, Figures], report: Report, testing: Testing
) -> tuple[RunDifference, ...]:
    """Every measured difference of the given pairs (run, baseline), as one family of tests.

    `report` is made of these figures. If it holds labels by people, the differences rest on them.
    """
    sides = {name: Side(name, figures[name].only(report.measures), report.runs[name].estimates) for name in figures}
    return as_family(_rows(pairs, sides, report, testing), sides.values(), testing)


def sliced_differences(
    pairs: Pairs, figures: Mapping[str, Figures], report: Report, testing: Testing, slicings: Sequence[Slicing]
) -> dict[str, dict[str, SliceDifferences]]:
    """The differences in each slice, by column and value; those of all slices are one family of tests."""
    rows: list[RunDifference] = []
    sizes: dict[tuple[str, str], int] = {}
    for slicing in slicings:
        for place, value in enumerate(slicing.values):
            sides: dict[str, Side] = {}
            for name, table in figures.items():
                chosen = slicing.places(table.queries) == place
                if chosen.any():
                    estimates = report.runs[name].slices[slicing.column][value].estimates
                    sides[name] = Side(name, table.where(chosen).only(report.measures), estimates)
            compared = [pair for pair in pairs if set(pair) <= sides.keys()]
            if compared:
                by, counts = (slicing.column, value), [len(side.figures.queries) for side in sides.values()]
                sizes[by] = counts[0] if testing.paired else sum(counts)
                rows += [replace(row, by=by) for row in _rows(compared, sides, report, testing, figures)]
    found: dict[str, dict[str, SliceDifferences]] = {}
    family = as_family(rows, (), replace(testing, power=None))
    for (column, value), queries in sizes.items():
        inside = tuple(row for row in family if row.by == (column, value))
        found.setdefault(column, {})[value] = SliceDifferences(column, value, queries, inside)
    return found


def _rows(
    pairs: Pairs,
    sides: Mapping[str, Side],
    report: Report,
    testing: Testing,
    whole: Mapping[str, Figures] | None = None,
) -> list[RunDifference]:
    """The rows of some pairs; the sides are slices of the runs `whole`, if these are given."""
    rows = [row for name, base in pairs for row in differences_of(sides[name], sides[base], testing)]
    if report.ground is None or testing.bootstrap is None:
        return rows
    completed: dict[tuple[str, ...], dict[str, Completed]] = {}
    for base in dict.fromkeys(base for _, base in pairs):
        targets = [(name, base) for name, other in pairs if other == base]
        judged = {name: sides[name].figures.join for name in (base, *(name for name, _ in targets))}
        every = judged if whole is None else {name: whole[name].join for name in judged}
        plan, parts = sides[base].figures.plan, None if whole is None else judged
        completed |= completed_figures(report.ground, every, targets, plan, testing.bootstrap, parts)
    changes = [completed[row.run, row.baseline].get(str(row.measure)) for row in rows]
    return [row if change is None else _calibrated(row, change) for row, change in zip(rows, changes, strict=True)]


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
