"""The table of a report: one row for each depth, one column for each measure, and the notes below."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import Measure, Real, parse_measure
from rag_selectivity.measures.chance import BoR, Lambda, regime
from rag_selectivity.measures.plan import at_depth, without_depth
from rag_selectivity.measures.utility import PROC, PercentPROC
from rag_selectivity.render.blocks import (
    BLANK,
    Block,
    Figures,
    Heading,
    Id,
    Lines,
    Note,
    Paragraph,
    Table,
    with_interval,
)
from rag_selectivity.render.cost_blocks import cost_blocks
from rag_selectivity.render.slice_tables import slice_blocks
from rag_selectivity.results.estimate import CALIBRATED, NOTE, WITH_CONTROLS, WITH_TAIL, Caveat, Estimate
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.wording import MARKS, counted, ends_text, enumeration, level_text, number

#: How a note begins that says what a mark at a figure means.
_SIGNS = tuple(mark for mark in MARKS.values() if mark)


def report_blocks(report: Report) -> Iterable[Block]:
    """What the labels are worth; then the blocks of each run: its table, the measures of whole lists, and the notes."""
    yield Paragraph(report.trust.text)
    if weights := weights_text(report):
        yield Paragraph(weights)
    for name, run in report.runs.items():
        size = f", N = {report.corpus_size:,}" if report.corpus_size is not None else ""
        weighted = "" if report.weights is None else " (weighted)"
        yield Heading(Id(name), f": {run.evaluated} queries{weighted}{size}, {report.scale} scale")
        header, rows = grid(report, name, run)
        if len(header) > 1:
            yield Table(header, rows)
        header, rows = grid_of_pools(report, run)
        if rows:
            yield Table(header, rows)
        if rows := figures_without_depth(report, run):
            yield Figures(rows)
        if lines := lines_of_controls(report, run):
            yield Lines(lines)
        yield from _remedies(report, name, run)
        for note in notes_of(report, run):
            yield Note(note, "note", of_table=note.startswith(_SIGNS))
        yield from slice_blocks(name, run.slices)
    if report.decision is not None:
        yield from cost_blocks(report.decision)


def _remedies(report: Report, name: str, run: RunReport) -> Iterable[Block]:
    """What to look at, at the K of the decision if it is diagnosed there, else at the first K."""
    depths = [k for k in report.depths if all(at_depth(run.estimates, each, k) for each in (PROC(), PercentPROC()))]
    decided = None if report.decision is None else report.decision.K
    for depth in [decided] if decided in depths else depths[:1]:
        text = report.diagnosis(name, depth).remedy
        if text:
            yield Note(text)


def weights_text(report: Report) -> str:
    """That figures are weighted, and by what; empty without weights."""
    known = report.weights
    if known is None:
        return ""
    return (
        f"All figures over queries are weighted by {known['source']}: {counted(known['queries'], 'query', 'queries')}, "
        f"effectively {known['effective']:.1f} of equal weight."
    )


def grid(report: Report, name: str, run: RunReport) -> tuple[list[str], list[list[str]]]:
    """The header and the rows: one row for each depth, one column for each measure, ΔBoR, and K/N_p beside lambda."""
    bases = [
        base
        for base in without_depth(report.measures)
        # IPrec@1 is at recall 1, not at K = 1.
        if not isinstance(base.cutoff, Real) and any(at_depth(run.estimates, base, k) for k in report.cutoffs)
    ]
    columns = [("K", [str(depth) for depth in report.cutoffs])]
    for base in bases:
        cells = [at_depth(run.estimates, base, depth) for depth in report.cutoffs]
        shows_interval = base.higher_is_better is not None and any(
            cell is not None and not math.isnan(cell.low) for cell in cells
        )
        title = f"{base} [{level_text(report.settings['level'])}]" if shows_interval else str(base)
        columns.append((title, [_cell(base, cell, interval=shows_interval) for cell in cells]))
        if base == PercentPROC() and at_depth(run.estimates, PROC(), report.cutoffs[0]) is not None:
            columns.append(("who lost it", [_verdict(report, name, depth) for depth in report.cutoffs]))
        if isinstance(base, Lambda) and (ratios := report.slots_per_relevant(name, rel=base.rel)):
            columns.append(("K/N_p", [number(ratios[k]) if k in ratios else BLANK for k in report.cutoffs]))
        if isinstance(base, BoR):
            columns.extend(zip(("Δ", "Δ sparse"), _changes(report, name, base, cells), strict=False))
    return [title for title, _ in columns], [list(row) for row in zip(*(cells for _, cells in columns), strict=True)]


def grid_of_pools(report: Report, run: RunReport) -> tuple[list[str], list[list[str]]]:
    """What each of several pools of a run is worth: one row for each pool and depth; no rows without several pools."""
    rows, has_intervals = [], False
    for name, by_key in run.pool_sources.items():
        for key, source in by_key.items():
            cells = (source.alone, source.without, source.adds)
            has_intervals |= any(not math.isnan(cell.low) for cell in cells)
            rows.append([name, key, *map(with_interval, cells)])
    level = f" [{level_text(report.settings['level'])}]" if has_intervals else ""
    return ["pool", "ceiling", f"alone{level}", f"without it{level}", f"it adds{level}"], rows


def figures_without_depth(report: Report, run: RunReport) -> list[list[str]]:
    """The name and the figure of each measure of whole lists, and of each point of a precision–recall curve."""
    rows = []
    measured = {parse_measure(key): cell for key, cell in run.estimates.items()}
    for base in without_depth(report.measures):
        for measure, cell in measured.items():
            is_level = isinstance(base.cutoff, Real) and replace(measure, at=None) == base
            if measure == base or is_level:
                rows.append([str(measure), _cell(base, cell, interval=not math.isnan(cell.low))])
    return rows


def lines_of_controls(report: Report, run: RunReport) -> list[str]:
    """A line for each BoR that rests on random controls, below a first one; none without controls."""
    facts = run.input.get("controls")
    if not facts:
        return []
    lines = [
        f"{key} {with_controls_text(cell, facts, key)}"
        for key, cell in run.estimates.items()
        if cell.basis == WITH_CONTROLS and cell.shown is not None
    ]
    notion = (report.provenance or Provenance(0)).notion
    return [f"With random controls, under {notion}:", *lines] if lines else []


def with_controls_text(cell: Estimate, facts: Mapping[str, Any], key: str) -> str:
    """A BoR with random controls: the figure, what was shown and what could be, and the figure as judged."""
    most = facts["can_show"].get(key)
    shown = "none" if cell.shown is None or not cell.shown > 0 else f"{cell.shown:.1f} bits"
    can = "" if most is None else f"; these controls can show at most {max(most, 0.0):.1f} bits"
    judged = math.nan if cell.as_judged is None else cell.as_judged
    controls = counted(facts["used"].get(key, facts["graded"]), "control")
    if math.isnan(cell.value) and not math.isnan(cell.low):
        return (
            f"between {decimals(cell.low)} ({'nothing is shown' if shown == 'none' else 'shown'}) and "
            f"{decimals(cell.high)} (as judged): none of {controls} is relevant{can}"
        )
    interval = ends_text(cell.low, cell.high, decimals)
    return f"{decimals(cell.value)}{interval}, {controls} (shown: {shown}{can}); as judged {decimals(judged)}"


def decimals(value: float) -> str:
    """Bits with two decimals; never −0.00."""
    return number(value) if not math.isfinite(value) else f"{round(value, 2) + 0.0:.2f}"


def _verdict(report: Report, name: str, depth: int) -> str:
    try:
        return report.diagnosis(name, depth).overall or "–"
    except InputError:
        return BLANK


def _cell(base: Measure, cell: Estimate | None, *, interval: bool) -> str:
    if cell is None:
        return BLANK
    if math.isnan(cell.value) and cell.basis == WITH_CONTROLS and not math.isnan(cell.low):
        return f"{number(cell.low)} to {number(cell.high)}"
    text = number(cell.value)
    # The ceiling is −log2 of the mean RandomSuccess, which gives the regime of a K.
    if base.name == "BoR_max" and not math.isnan(cell.value) and regime(2**-cell.value) != "healthy":
        text = f"{regime(2**-cell.value)} {text}"
    if interval:
        text += ends_text(cell.low, cell.high)
    if cell.possible is not None:
        text += f" … {number(cell.possible[1])}"
    if cell.basis in (CALIBRATED, WITH_TAIL) and cell.as_judged is not None:
        text += f"{' rough' if cell.rough else ''} (as judged {number(cell.as_judged)})"
    return text + cell.mark


def _changes(report: Report, name: str, base: Measure, cells: list[Estimate | None]) -> list[list[str]]:
    """ΔBoR from the depth before, observed and predicted; empty without Success, and if BoR is undefined."""
    if all(cell is None or math.isnan(cell.value) for cell in cells):
        return []
    observed, predicted = [], []
    before: int | None = None
    for depth, cell in zip(report.cutoffs, cells, strict=True):
        # Between a depth and a budget of tokens, or two budgets, K differs from query to query.
        if cell is None or is_budget(depth):
            observed.append(BLANK)
            predicted.append(BLANK)
            continue
        try:
            change = report.delta(name, base, before, depth) if before is not None else None
        except InputError:
            return []
        observed.append(number(change.observed) if change else "")
        predicted.append(number(change.predicted) if change else "")
        before = depth
    return [observed, predicted] if sum(cell is not None for cell in cells[: len(report.depths)]) > 1 else []


def notes_of(report: Report, run: RunReport) -> list[str]:
    """The notes of a run: measures that are missing, what was left out, the notes of the join, and the caveats."""
    missing: dict[str, list[str]] = {}
    for measure, reason in report.absent.items():
        missing.setdefault(reason, []).append(measure)
    absent = [f"{enumeration(measures)} could not be measured: {reason}" for reason, measures in missing.items()]
    counted = (
        (run.coverage.missing_from_run, "queries of the qrels are missing from the run"),
        (run.coverage.not_in_qrels, "queries of the run are not in the qrels and were left out"),
    )
    of_all = {each.code for each in run.label_caveats}
    caveats = caveat_lines(
        (parse_measure(key), [caveat for caveat in estimate.caveats if caveat.code not in of_all])
        for key, estimate in run.estimates.items()
        if estimate.caveats
    )
    # They are the same for all runs, so they stand once, below the last.
    last = run is list(report.runs.values())[-1]
    of_labels = (
        f"{MARKS[each.level]} all figures: {each.text} [{each.code}]"
        for each in run.label_caveats
        if each.level != NOTE and last
    )
    return [*absent, *(f"{count} {what}" for count, what in counted if count), *run.notes, *caveats, *of_labels]


def caveat_lines(of_figures: Iterable[tuple[Measure, Sequence[Caveat]]]) -> Iterable[str]:
    """Each caveat of a measure at its first depth, with the number of other depths; equal caveats share a line."""
    texts_of_measure: dict[tuple[Measure, str, str], dict[str, list[str]]] = {}
    for measure, caveats in of_figures:
        for caveat in caveats:
            of_measure = texts_of_measure.setdefault((replace(measure, at=None), caveat.code, caveat.level), {})
            of_measure.setdefault(str(measure), []).append(caveat.text)
    alike: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (_, code, level), texts_by_key in texts_of_measure.items():
        texts = tuple(" ".join(texts) for texts in texts_by_key.values())
        alike.setdefault((level, code, texts), []).append(next(iter(texts_by_key)))
    for (level, code, (text, *others)), keys in alike.items():
        more = f" (Likewise at {counted(len(others), 'other depth')}.)" if others else ""
        yield f"{MARKS[level]} {', '.join(keys)}: {text}{more} [{code}]".strip()
