"""A report and a comparison as tables: the figures of each run over K, those of slices, differences, and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from rag_selectivity.errors import InputError
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import Measure, Real, parse_measure
from rag_selectivity.measures.chance import BoR, BoR_max, Delta, Lambda, regime
from rag_selectivity.measures.plan import at_depth, without_depth
from rag_selectivity.measures.utility import PROC, PercentPROC
from rag_selectivity.render.blocks import (
    Block,
    Column,
    Heading,
    Note,
    Table,
    bare,
    caveat_lines,
    cell,
    count,
    entry,
    table_of,
)
from rag_selectivity.render.first_screen import cost_notes, weights_text
from rag_selectivity.results.estimate import NOTE, WITH_CONTROLS, Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import FEWEST, RunReport, Slice
from rag_selectivity.wording import counted, enumeration, level_text, number

#: The depth of the tables of slices, and the mark of a slice with few queries.
_USUAL_DEPTH, FEW = 10, "*"


def report_blocks(report: Report) -> Iterable[Block]:
    """What the labels are worth; then the blocks of each run."""
    yield Note(report.trust.text)
    if weights := weights_text(report):
        yield Note(weights)
    for name, run in report.runs.items():
        size = f", N = {report.corpus_size:,}" if report.corpus_size is not None else ""
        weighted = "" if report.weights is None else " (weighted)"
        yield Heading(f"{name}: {counted(run.evaluated, 'query', 'queries')}{weighted}{size}, {report.scale} scale")
        yield from run_blocks(report, name)
    if report.decision is not None:
        yield from cost_notes(report.decision)


def run_blocks(report: Report, name: str) -> Iterator[Block]:
    """All figures of a run, its slices, and the notes."""
    run = report.runs[name]
    tables = [_over_k(report, name, run), _of_whole_lists(report, run), _with_controls(run)]
    yield from (table for table in tables if len(table.header) > 1 and table.rows)
    yield from (Note(note, "note") for note in _notes(report, run))
    for column, by_value in run.slices.items():
        yield Heading(f"{name} by {column}")
        yield from _slice_blocks(by_value)


# -- the figures of a run ------------------------------------------------------------------------------------


def _over_k(report: Report, name: str, run: RunReport) -> Table:
    """One row for each depth, one column for each measure; ΔBoR beside BoR, and K/N_p beside lambda."""
    columns: list[Column] = [("K", str, str)]
    for base in without_depth(report.measures):
        cells = {k: at_depth(run.estimates, base, k) for k in report.cutoffs}
        # IPrec@1 is at recall 1, not at K = 1.
        if isinstance(base.cutoff, Real) or not any(cells.values()):
            continue
        columns.append((_titled(report, base, cells.values()), cells.get, _style_of(base)))
        if base == PercentPROC() and at_depth(run.estimates, PROC(), report.cutoffs[0]) is not None:
            columns.append(("who lost it", lambda k: _loss(report, name, k), str))
        if isinstance(base, Lambda):
            columns.append(("K/N_p", report.slots_per_relevant(name, rel=base.rel).get, number))
        if isinstance(base, BoR) and any(each is not None and not math.isnan(each.value) for each in cells.values()):
            changes = list(_changes(report, name, base))
            columns.append(("Δ", {k: found.observed for k, found in changes}.get, number))
            columns.append(("Δ sparse", {k: found.predicted for k, found in changes}.get, number))
    return table_of(report.cutoffs, *columns, breaks=True)


def _titled(report: Report, base: Measure, cells: Iterable[Estimate | None]) -> str:
    has_interval = base.higher_is_better is not None and any(
        each is not None and not math.isnan(each.low) for each in cells
    )
    return f"{base} [{level_text(report.settings['level'])}]" if has_interval else str(base)


def _style_of(base: Measure) -> Callable[[Estimate], str]:
    if isinstance(base, BoR_max):
        return _ceiling
    return bare if base.higher_is_better is None else cell


def _ceiling(estimate: Estimate) -> str:
    """A ceiling with the regime of its K, unless that is healthy: it is −log2 of the mean RandomSuccess."""
    of_k = "healthy" if math.isnan(estimate.value) else regime(2**-estimate.value)
    return bare(estimate) if of_k == "healthy" else f"{of_k} {bare(estimate)}"


def _loss(report: Report, name: str, depth: int) -> str | None:
    with suppress(InputError):
        return report.diagnosis(name, depth).overall
    return None


def _changes(report: Report, name: str, base: BoR) -> Iterator[tuple[int, Delta]]:
    """ΔBoR from the depth before, observed and predicted, for each depth; none without Success."""
    # Between budgets of tokens K differs from query to query.
    depths = [k for k in report.depths if at_depth(report.runs[name].estimates, base, k) and not is_budget(k)]
    with suppress(InputError):
        for before, depth in pairwise(depths):
            yield depth, report.delta(name, base, before, depth)


def _of_whole_lists(report: Report, run: RunReport) -> Table:
    """Each measure of whole lists, and each point of a precision–recall curve."""
    measured = {parse_measure(key): each for key, each in run.estimates.items()}
    rows = [
        (measure, each)
        for base in without_depth(report.measures)
        for measure, each in measured.items()
        if measure == base or (isinstance(base.cutoff, Real) and replace(measure, at=None) == base)
    ]
    return table_of(rows, ("measure", lambda row: row[0], str), ("figure", lambda row: row[1], cell))


def _with_controls(run: RunReport) -> Table:
    """What random controls show of each BoR, in bits."""
    facts = run.input.get("controls") or {"can_show": {}, "used": {}, "graded": 0}
    rows = [(k, each) for k, each in run.estimates.items() if each.basis == WITH_CONTROLS and each.shown is not None]
    return table_of(
        rows,
        ("with random controls", lambda row: row[0], str),
        ("bits", lambda row: row[1], cell),
        ("shown without a model", lambda row: max(row[1].shown, 0.0), number),
        ("can be shown", lambda row: facts["can_show"].get(row[0]), number),
        ("as judged", lambda row: row[1].as_judged, number),
        ("controls", lambda row: facts["used"].get(row[0], facts["graded"]), count),
        breaks=True,
    )


def _notes(report: Report, run: RunReport) -> Iterator[str]:
    """Measures that are missing, what was left out, the notes of the join, and the caveats."""
    missing: dict[str, list[str]] = {}
    for measure, reason in report.absent.items():
        missing.setdefault(reason, []).append(measure)
    yield from (f"{enumeration(measures)} could not be measured: {reason}" for reason, measures in missing.items())
    if run.coverage.missing_from_run:
        yield f"{run.coverage.missing_from_run} queries of the qrels are missing from the run"
    if run.coverage.not_in_qrels:
        yield f"{run.coverage.not_in_qrels} queries of the run are not in the qrels and were left out"
    yield from run.notes
    of_all = {each.code for each in run.label_caveats}
    own = (
        ("", str(replace(parse_measure(key), at=None)), caveat)
        for key, estimate in run.estimates.items()
        for caveat in estimate.caveats
        if caveat.code not in of_all
    )
    yield from caveat_lines(own)
    # They are the same for all runs, so they stand once, below the last.
    if run is list(report.runs.values())[-1]:
        yield from caveat_lines(("", "all figures", each) for each in run.label_caveats if each.level != NOTE)


# -- slices --------------------------------------------------------------------------------------------------


def _slice_blocks(by_value: Mapping[str, Slice]) -> Iterator[Block]:
    """A row for each slice, at the depth nearest to the usual one, and notes."""
    parts = list(by_value.values())
    measures = [parse_measure(key) for key in parts[0].estimates]
    shown = at_one_depth(measures)
    columns = [(str(measure), entry("estimates", str(measure)), _style_of(measure)) for measure in shown]
    yield table_of(
        parts,
        ("", lambda part: f"{part.value}{FEW if part.few else ''}", str),
        ("queries", "queries", count),
        *columns,
        breaks=True,
    )
    if any(part.few for part in parts):
        yield Note(f"{FEW} under {FEWEST} queries: the figures say little", "note")
    if left_out := len(measures) - len(shown):
        yield Note(
            f"{counted(left_out, 'further figure')} of each slice at other depths: in JSON, CSV and DataFrames", "note"
        )
    figures = [(part.value, name, each) for part in parts for name, each in part.estimates.items()]
    figures = [each for each in figures if parse_measure(each[1]) in shown]
    of_slices = ((value, name, caveat) for value, name, each in figures for caveat in each.caveats)
    yield from (Note(line, "note") for line in caveat_lines(of_slices, len(parts)))
    yield from reasons((f"{name} of {value}", each.value, each.reason) for value, name, each in figures)


def reasons(figures: Iterable[tuple[str, float, str | None]]) -> Iterator[Note]:
    """Why figures do not exist; those with the same reason together."""
    missing: dict[str, list[str]] = {}
    for name, value, reason in figures:
        if reason is not None and math.isnan(value):
            missing.setdefault(reason, []).append(name)
    yield from (Note(f"no {', '.join(names)}: {reason}", "note") for reason, names in missing.items())


def at_one_depth(measures: Sequence[Measure]) -> list[Measure]:
    """The measures at the one rank that a table shows, the nearest to the usual one, and all that are at no rank."""
    at_rank = {measure: isinstance(measure.at, int) and not is_budget(measure.at) for measure in measures}
    ranks = [measure.at for measure, is_at in at_rank.items() if is_at and measure.at is not None]
    shown = min(ranks, key=lambda at: (abs(at - _USUAL_DEPTH), at), default=None)
    return [measure for measure, is_at in at_rank.items() if not is_at or measure.at == shown]
