"""The first screen as text: five answers, one line each; one table of at most five columns; notes once for all runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rag_selectivity.advice.decide import decide
from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import Measure, Real
from rag_selectivity.measures.plan import without_depth
from rag_selectivity.render.blocks import Block, Heading, Lines, Note, Table, caveat_lines
from rag_selectivity.render.decision_blocks import (
    answer_lines,
    figure_cell,
    marked_caveats,
    of_its_ceiling,
    signs_text,
)
from rag_selectivity.render.report_table import weights_text
from rag_selectivity.results.decision import DEPTH, LOSS, NEXT, SHORT, SYSTEM, TRUST, Decision, RunFigure
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.wording import counted, enumeration

#: The columns beside the run, in their order, where the report measured them; else what it was asked for.
COLUMNS = ("RA-nWG", "BoR", "Harm", "Success")
_OF_THE_LOSS = ("PROC", "%PROC")
#: The depth of the table where there is no decision: this one, or the one that is nearest to it.
USUAL_DEPTH = 10
_MOST_NOTES = 6
_MORE = "All figures, intervals and notes: --details, or details() in Python."


def decided_on(report: Report, *, baseline: str | None = None, paired: bool = True) -> Decision | str:
    """The decision that a report holds, or the one that its lists give, made once; or why there is none."""
    if report.decision is not None:
        return report.decision
    # A report is frozen, and this is no part of its value: it follows from the rest.
    made: dict[Any, Decision | str] = vars(report).setdefault("_decided", {})
    key = baseline, paired
    if key not in made:
        made[key] = _decided(report, baseline, paired)
    return made[key]


def _decided(report: Report, baseline: str | None, paired: bool) -> Decision | str:
    if report.weights is not None:
        return "a decision cannot be weighted"
    if not report.runs or any(run.judged is None for run in report.runs.values()):
        return "a decision needs the lists of the runs, and this report holds figures alone"
    try:
        only = report.depths[0] if len(report.depths) == 1 else None
        return decide(report, k=only, baseline=baseline, paired=paired)
    except InputError as error:
        return str(error)


def first_blocks(report: Report, *, baseline: str | None = None, paired: bool = True) -> Iterable[Block]:
    """The answers, the table and the notes of a report."""
    known = decided_on(report, baseline=baseline, paired=paired)
    decision = None if isinstance(known, str) else known
    yield Lines(_lines_without(report, known) if isinstance(known, str) else answer_lines(known))
    depth = decision.K if decision is not None else depth_without_decision(report)
    table, figures = _table(report, decision, depth)
    if len(table.header) > 1:
        order = "" if decision is None or len(report.runs) == 1 else f", best first by {decision.measure}"
        if decision is None:
            most = max((run.evaluated for run in report.runs.values()), default=0)
            order = f", {counted(most, 'query', 'queries')}"
        yield Heading(f"Whole lists{order}" if depth is None else f"At K = {depth}{order}")
        yield table
    yield from _notes(report, decision, figures)
    yield Lines([_MORE])


def _lines_without(report: Report, reason: str) -> list[str]:
    """What stands in the place of the answers where there is no decision."""
    depth, trust = depth_without_decision(report), report.trust
    step = trust.next_step.split(";")[0].rstrip(".")
    alone = f"{next(iter(report.runs), 'none')} is the only run; a second one would compare."
    texts = {
        SYSTEM: alone if len(report.runs) == 1 and report.weights is None else f"Open: {reason.rstrip('.')}.",
        DEPTH: "All that was shown counts; lists of runs would show which K is enough."
        if depth is None
        else f"The table is about K = {depth}; lists of runs would show which K is enough.",
        LOSS: "Open: lists of runs, and what was there before selection, would show it.",
        NEXT: f"{step[0].upper()}{step[1:]}."
        if step
        else "Measure with evaluate(labels, runs), which reads whole lists.",
        TRUST: trust.verdict,
    }
    return [f"{SHORT[code]}: {text}" for code, text in texts.items()]


def depth_without_decision(report: Report) -> int | None:
    """The depth of a report that is nearest to 10; None if its figures are about whole lists."""
    return min(report.depths, key=lambda depth: (abs(depth - USUAL_DEPTH), depth), default=None)


# -- the table -----------------------------------------------------------------------------------------


def columns_of(report: Report) -> list[Measure]:
    """At most four measures without depth: the usual ones, then what else the report was asked for."""
    asked = [base for base in without_depth(report.measures) if base.higher_is_better is not None]
    asked = [base for base in asked if base.name != "Judged"] or list(without_depth(report.measures))
    usual = [base for name in COLUMNS for base in asked if base.name == name]
    others = [base for base in asked if base.name not in COLUMNS]
    others = [base for base in others if base.name not in _OF_THE_LOSS] or (others if not usual else [])
    return [*usual, *others][: len(COLUMNS)]


def names_of_columns(report: Report, decision: Decision) -> list[str]:
    """The names of the same measures, as far as the decision has them; else of its first four."""
    has = list(dict.fromkeys(name for line in decision.lines for name in line.figures))
    return [base.name for base in columns_of(report) if base.name in has] or has[: len(COLUMNS)]


def _table(report: Report, decision: Decision | None, depth: int | None) -> tuple[Table, list[tuple[str, RunFigure]]]:
    """The table, and the figures that it shows with their runs."""
    order = list(report.runs) if decision is None else [line.run for line in decision.lines]
    cells: dict[str, dict[str, RunFigure]] = {}
    for base in columns_of(report):
        for name in order:
            figure = _figure(report, decision, name, base, depth)
            if figure is not None:
                # The heading says the K; a figure at another one says its own.
                same = figure.measure.at == depth and not isinstance(base.cutoff, Real)
                cells.setdefault(str(base) if same else str(figure.measure), {})[name] = figure
    header = [f"{key}{of_its_ceiling(of_run.values())}" for key, of_run in cells.items()]
    rows = [[name, *(figure_cell(of_run.get(name)) for of_run in cells.values())] for name in order]
    shown = [(name, figure) for of_run in cells.values() for name, figure in of_run.items()]
    return Table(["run", *header], rows, breaks=False), shown


def _figure(report: Report, decision: Decision | None, run: str, base: Measure, depth: int | None) -> RunFigure | None:
    """A figure of the decision, else that of the report at the same K, or at the nearest one that it has."""
    estimates = report.runs[run].estimates
    if decision is not None:
        line = next(line for line in decision.lines if line.run == run)
        found = line.figures.get(base.name)
        if found is not None and replace(found.measure, at=None) == base:
            return found
    named = [measure for measure in report.measures if measure.at is not None and replace(measure, at=None) == base]
    # IPrec@1 is at recall 1, not at K = 1.
    depths = () if isinstance(base.cutoff, Real) else report.depths
    possible: Sequence[Measure] = named or [base @ each for each in depths] or [base]
    known = [measure for measure in [*possible, base] if str(measure) in estimates]
    if not known:
        return None
    wanted = USUAL_DEPTH if depth is None else depth
    best = min(known, key=lambda each: abs(each.at - wanted) if isinstance(each.at, (int, float)) else 0)
    return RunFigure(best, estimates[str(best)], None, _ceiling(estimates, best))


def _ceiling(estimates: Any, measure: Measure) -> float | None:
    if measure.name != "BoR":
        return None
    most: Estimate | None = estimates.get(str(measure).replace("BoR", "BoR_max", 1))
    return None if most is None else most.value


# -- notes ---------------------------------------------------------------------------------------------


def _notes(report: Report, decision: Decision | None, figures: Sequence[tuple[str, RunFigure]]) -> Iterable[Block]:
    """What signs and marks mean, what was left out, and the notes of the runs: each once."""
    notes = [
        *filter(None, [weights_text(report)]),
        *_signs(decision, figures),
        *caveat_lines(marked_caveats(figures), len(report.runs)),
        *_left_out(report),
        *dict.fromkeys(note for run in report.runs.values() for note in run.notes),
    ]
    yield from (Note(note) for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        yield Note(f"… and {len(notes) - _MOST_NOTES} more.")


def _signs(decision: Decision | None, figures: Sequence[tuple[str, RunFigure]]) -> Iterable[str]:
    signs = signs_text(figure for _, figure in figures)
    if signs and decision is not None:
        yield f"{signs} than {decision.baseline}: shown by a test, after Holm's correction."


def _left_out(report: Report) -> Iterable[str]:
    """The queries that a run lacks, and those without labels, each with the runs."""
    for name, what in (
        ("missing_from_run", "queries of the qrels are missing from"),
        ("not_in_qrels", "queries are not in the qrels and were left out of"),
    ):
        counts = {run: getattr(part.coverage, name) for run, part in report.runs.items()}
        if any(counts.values()):
            yield f"{enumeration([f'{count} {what} {run}' for run, count in counts.items() if count])}."
