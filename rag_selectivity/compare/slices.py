"""The differences of runs within slices of the queries, and whether they change between slices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rag_selectivity.compare.differences import differences
from rag_selectivity.evaluate import Measured
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.results.comparison import BETTER, WORSE, Interaction, RunDifference, SliceDifferences
from rag_selectivity.results.report import Report
from rag_selectivity.results.slices import FEWEST
from rag_selectivity.slices.figures import parts_of
from rag_selectivity.slices.slicing import Slicing
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.interaction import Heterogeneity, heterogeneity
from rag_selectivity.statistics.paired import holm

#: Differences by column and by value.
SlicedDifferences = dict[str, dict[str, SliceDifferences]]


def sliced_differences(
    pairs: Sequence[tuple[str, str]],
    judged: Mapping[str, JudgedRun],
    measured: Measured,
    report: Report,
    bootstrap: Bootstrap,
    slicings: Sequence[Slicing],
    *,
    paired: bool = True,
    draws: int = 10_000,
) -> tuple[SlicedDifferences, tuple[Interaction, ...]]:
    """The differences in each slice, and a test of interaction for each pair, slicing, measure and depth.

    The differences of all slices of 20 queries or more are one family of tests for Holm's correction, and so are the
    tests of interaction. `report` is made of `measured` and has the slices. There is no test of interaction of unpaired
    runs, nor of differences that people's labels calibrate.
    """
    found: SlicedDifferences = {}
    parts = {name: list(parts_of(run, measured.outcomes[name], slicings, None)) for name, run in judged.items()}
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
            in_slice = {name: part.judged for name, part in some.items()}
            runs = {
                name: replace(report.runs[name], estimates=report.runs[name].slices[slicing.column][value].estimates)
                for name in some
            }
            rows = differences(
                compared,
                in_slice,
                replace(measured, outcomes={name: part.outcomes for name, part in some.items()}),
                replace(report, runs=runs),
                bootstrap,
                paired=paired,
                draws=draws,
                power=None,
                whole=judged,
            )
            queries = len(next(iter(in_slice.values()))) if paired else sum(map(len, in_slice.values()))
            of_column = found.setdefault(slicing.column, {})
            rows = tuple(replace(row, by=(slicing.column, value)) for row in rows)
            of_column[value] = SliceDifferences(slicing.column, value, queries, rows)
    found = _adjusted(found)
    if not paired or report.ground is not None:
        return found, ()
    tests = [
        test
        for slicing in slicings
        for pair in pairs
        for test in _interactions(pair, judged, measured, bootstrap, slicing, found[slicing.column], draws)
    ]
    adjusted = holm(np.array([test.p for test in tests])).tolist()
    return found, tuple(replace(test, p_adjusted=p) for test, p in zip(tests, adjusted, strict=True))


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


def _interactions(
    pair: tuple[str, str],
    judged: Mapping[str, JudgedRun],
    measured: Measured,
    bootstrap: Bootstrap,
    slicing: Slicing,
    by_value: Mapping[str, SliceDifferences],
    draws: int,
) -> list[Interaction]:
    queries = judged[pair[1]].queries
    places, units = slicing.places(queries), bootstrap.units(queries)
    shown = {measure.without_depth for measure in measured.measures}
    rows = [row for part in by_value.values() for row in part.rows if (row.run, row.baseline) == pair]
    found = []
    for i, (measure, depths) in enumerate(measured.plan):
        if measure not in shown or measure.name == "Judged":
            continue
        one, other = (measured.outcomes[name][i] for name in pair)
        for column, depth in enumerate(depths.tolist()):
            at = slice(column, column + 1)
            known = (one.defined & other.defined)[:, column]
            counts = np.bincount(places[known], minlength=len(slicing.values))
            enough = (counts >= FEWEST)[places]
            first, second = (each.at(at).over(enough) for each in (one, other))
            if int((counts >= FEWEST).sum()) < 2:
                few = f"fewer than two slices have {FEWEST} queries with a figure"
                test = Heterogeneity(math.nan, int((counts >= FEWEST).sum()), reason=few)
            else:
                (test,) = heterogeneity(
                    first,
                    second,
                    places[enough],
                    draws=draws,
                    seed=bootstrap.seed,
                    units=None if units is None else units[enough],
                )
            name = measure @ depth
            verdicts = {row.verdict for row in rows if row.measure == name}
            found.append(
                Interaction(
                    pair[0],
                    pair[1],
                    slicing.column,
                    name,
                    test.p,
                    math.nan,
                    test.slices,
                    test.test,
                    winner_changes={BETTER, WORSE} <= verdicts,
                    level=bootstrap.level,
                    reason=test.reason,
                )
            )
    return found
