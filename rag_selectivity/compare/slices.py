"""The differences of runs within slices of the queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rag_selectivity.compare.differences import differences
from rag_selectivity.evaluation.slices import parts_of
from rag_selectivity.figures.figures import Figures
from rag_selectivity.figures.slicing import Slicing
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.paired import holm
from rag_selectivity.results.comparison import RunDifference, SliceDifferences
from rag_selectivity.results.report import Report

#: Differences by column and by value.
SlicedDifferences = dict[str, dict[str, SliceDifferences]]


def sliced_differences(
    pairs: Sequence[tuple[str, str]],
    figures: Mapping[str, Figures],
    report: Report,
    bootstrap: Bootstrap,
    slicings: Sequence[Slicing],
    *,
    paired: bool = True,
    draws: int = 10_000,
) -> SlicedDifferences:
    """The differences in each slice; those of all slices of 20 queries or more are one family of tests (Holm).

    `report` is made of these figures and has the slices.
    """
    found: SlicedDifferences = {}
    parts = {name: list(parts_of(table, slicings, None)) for name, table in figures.items()}
    whole = {name: table.join for name, table in figures.items()}
    for slicing in slicings:
        for value in slicing.values:
            some = {
                name: part
                for name, of_run in parts.items()
                for part in of_run
                if (part.column, part.value) == (slicing.column, value)
            }
            compared = [pair for pair in pairs if set(pair) <= set(some)]
            if not compared:
                continue
            in_slice = {name: part.figures for name, part in some.items()}
            runs = {
                name: replace(report.runs[name], estimates=report.runs[name].slices[slicing.column][value].estimates)
                for name in some
            }
            rows = differences(
                compared,
                in_slice,
                replace(report, runs=runs),
                bootstrap,
                paired=paired,
                draws=draws,
                power=None,
                whole=whole,
            )
            queries = (
                len(next(iter(in_slice.values())).queries)
                if paired
                else sum(len(each.queries) for each in in_slice.values())
            )
            of_column = found.setdefault(slicing.column, {})
            rows = tuple(replace(row, by=(slicing.column, value)) for row in rows)
            of_column[value] = SliceDifferences(slicing.column, value, queries, rows)
    return _adjusted(found)


def _adjusted(found: SlicedDifferences) -> SlicedDifferences:
    """The differences after Holm's correction over all slices; those over few queries have no adjusted p-value."""

    def key(row: RunDifference) -> tuple[object, ...]:
        return row.by, row.run, row.baseline, row.tested_as

    rows = [row for by_value in found.values() for part in by_value.values() for row in part.rows]
    tests = {key(row): row.p for row in rows if row.test and not row.few}
    adjusted = dict(zip(tests, holm(np.array(list(tests.values()))).tolist(), strict=True))
    return {
        column: {
            value: replace(
                part, rows=tuple(replace(row, p_adjusted=adjusted.get(key(row), math.nan)) for row in part.rows)
            )
            for value, part in by_value.items()
        }
        for column, by_value in found.items()
    }
