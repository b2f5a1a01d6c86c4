"""Differences between the runs of a report, over all queries and within slices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_selectivity.compare.differences import Side, Testing, as_family, differences_of
from rag_selectivity.evaluation.caveats import of_strata
from rag_selectivity.figures.figures import Figures
from rag_selectivity.figures.slicing import Slicing
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.results.comparison import COMPLETED, RunDifference, SliceDifferences
from rag_selectivity.results.estimate import CALIBRATED
from rag_selectivity.results.provenance import UNLABELLED_STRATA
from rag_selectivity.results.report import Report
from rag_selectivity.trust.calibrated import CalibratedDifference, calibrated_differences
from rag_selectivity.trust.completed import Sampling


def differences(
    pairs: Sequence[tuple[str, str]],
    figures: Mapping[str, Figures],
    report: Report,
    bootstrap: Bootstrap,
    *,
    paired: bool = True,
    draws: int = 10_000,
    power: float | None = 0.8,
) -> tuple[RunDifference, ...]:
    """Every measured difference of the given pairs (run, baseline), as one family of tests.

    `report` is made of these figures. If it holds labels by people, the differences rest on them. Without `power`, no
    detectable difference is computed.
    """
    testing = Testing(bootstrap, paired, draws, power)
    sides = [Side(name, each.only(report.measures), report.runs[name].estimates) for name, each in figures.items()]
    return as_family(_rows(pairs, sides, report, testing, {}), sides, testing)


def sliced_differences(
    pairs: Sequence[tuple[str, str]],
    figures: Mapping[str, Figures],
    report: Report,
    bootstrap: Bootstrap,
    slicings: Sequence[Slicing],
    *,
    paired: bool = True,
    draws: int = 10_000,
) -> dict[str, dict[str, SliceDifferences]]:
    """The differences in each slice, by column and value; those of all slices are one family of tests."""
    testing = Testing(bootstrap, paired, draws, None)
    rows: list[RunDifference] = []
    sizes: dict[tuple[str, str], int] = {}
    for slicing in slicings:
        for place, value in enumerate(slicing.values):
            by, sides = (slicing.column, value), []
            for name, table in figures.items():
                chosen = slicing.places(table.queries) == place
                if chosen.any():
                    of_slice = report.runs[name].slices[slicing.column][value].estimates
                    sides.append(Side(name, table.where(chosen).only(report.measures), of_slice))
            names = {side.name for side in sides}
            compared = [pair for pair in pairs if set(pair) <= names]
            if compared:
                counts = [len(side.figures.queries) for side in sides]
                sizes[by] = counts[0] if paired else sum(counts)
                rows += [replace(row, by=by) for row in _rows(compared, sides, report, testing, figures)]
    found: dict[str, dict[str, SliceDifferences]] = {}
    family = as_family(rows, (), testing)
    for (column, value), queries in sizes.items():
        inside = tuple(row for row in family if row.by == (column, value))
        found.setdefault(column, {})[value] = SliceDifferences(column, value, queries, inside)
    return found


def _rows(
    pairs: Sequence[tuple[str, str]],
    sides: Sequence[Side],
    report: Report,
    testing: Testing,
    whole: Mapping[str, Figures],
) -> list[RunDifference]:
    """The rows of some pairs; the sides are slices of the runs `whole`, if these are given."""
    named = {side.name: side for side in sides}
    rows = [row for name, base in pairs for row in differences_of(named[name], named[base], testing)]
    if report.ground is None or testing.bootstrap is None:
        return rows
    completed: dict[tuple[str, str, str], CalibratedDifference] = {}
    for base in dict.fromkeys(base for _, base in pairs):
        names = (base, *(name for name, other in pairs if other == base))
        judged = {name: named[name].figures.join for name in names}
        every = {name: whole[name].join for name in names} if whole else judged
        sampling, parts = Sampling.of(testing.bootstrap), judged if whole else None
        found = calibrated_differences(report.ground, every, base, named[base].figures.plan, sampling, parts)
        completed |= {(name, base, key): change for (name, key), change in found.items()}
    keys = [(row.run, row.baseline, str(row.measure)) for row in rows]
    return [_calibrated(row, completed[key]) if key in completed else row for key, row in zip(keys, rows, strict=True)]


def _calibrated(row: RunDifference, change: CalibratedDifference) -> RunDifference:
    """The row with the difference over completions of the labels, and the one as judged beside it."""
    # The difference has strata of its own.
    caveats = [caveat for caveat in row.caveats if caveat.code != UNLABELLED_STRATA]
    return replace(
        row,
        value=change.value,
        baseline_value=change.baseline_value,
        difference=change.difference,
        low=change.low,
        high=change.high,
        p=change.p,
        test="" if math.isnan(change.difference) else COMPLETED,
        tested_as=str(row.measure),
        reason=change.reason,
        basis=CALIBRATED,
        as_judged=row.difference,
        as_judged_interval=(row.low, row.high),
        caveats=(*caveats, *of_strata(change.without)),
    )
