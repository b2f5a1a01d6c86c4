"""Every result as text, Markdown and LaTeX, as a page and in a notebook: importing it fills the registry of views."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

from rag_selectivity.render.blocks import Block, Details, Lines
from rag_selectivity.render.claims import claim_blocks
from rag_selectivity.render.comparison import change_blocks, comparison_blocks
from rag_selectivity.render.first_screen import decision_blocks, first_screen
from rag_selectivity.render.judging import agreement_blocks, calibration_blocks, grading_lines
from rag_selectivity.render.paper import as_latex
from rag_selectivity.render.report_table import report_blocks
from rag_selectivity.render.workflows import (
    answer_blocks,
    arm_blocks,
    experiment_blocks,
    preference_blocks,
    validation_blocks,
)
from rag_selectivity.render.writers import markdown_of, text_of
from rag_selectivity.results.answers import AnswerReport
from rag_selectivity.results.claims import ClaimReport
from rag_selectivity.results.comparison import Changes, Comparison
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.grading import Grading
from rag_selectivity.results.report import Report
from rag_selectivity.results.result import VIEWS, Result
from rag_selectivity.results.workflows import (
    ArmComparison,
    Calibration,
    ExperimentDecision,
    JudgeReport,
    Preference,
    Validation,
)


@singledispatch
def blocks_of(result: Result) -> Iterable[Block]:
    """The headings, tables and notes of a result; `blocks_of.register` adds a kind of result."""
    raise TypeError(f"a {type(result).__name__} has no tables: register a function with blocks_of.register")


_MORE = Lines(["All figures, intervals and notes: --details, or details() in Python."])
#: The titles of pages.
_TITLES: dict[type[Result], str] = {
    Comparison: "Runs compared",
    ClaimReport: "What passages support",
    AnswerReport: "What a model makes of passages",
    Validation: "Which measures follow the answers",
    Preference: "Which system is preferred",
    ExperimentDecision: "Which arm is better",
    JudgeReport: "How far a judge agrees with people",
}

blocks_of.register(Report)(report_blocks)
blocks_of.register(Decision)(decision_blocks)
blocks_of.register(Comparison)(comparison_blocks)
blocks_of.register(Changes)(change_blocks)
blocks_of.register(ClaimReport)(claim_blocks)
blocks_of.register(AnswerReport)(answer_blocks)
blocks_of.register(Validation)(validation_blocks)
blocks_of.register(Preference)(preference_blocks)
blocks_of.register(ArmComparison)(arm_blocks)
blocks_of.register(ExperimentDecision)(experiment_blocks)
blocks_of.register(Calibration)(calibration_blocks)
blocks_of.register(JudgeReport)(agreement_blocks)
blocks_of.register(Grading)(grading_lines)


def _first(result: Result) -> list[Block]:
    """The first screen of a report and of a comparison."""
    match result:
        case Report():
            return list(first_screen(result).blocks())
        case Comparison(report=report, baseline=baseline):
            return list(first_screen(report, baseline=baseline, paired=result.settings["paired"]).blocks())
    return []


def as_text(result: Result, *, ruled: bool = True, details: bool = False) -> str:
    """Text for a terminal; `ruled` draws a line below table heads."""
    first = _first(result)
    return text_of([*first, *(blocks_of(result) if details or not first else [_MORE])], ruled=ruled)


def as_markdown(result: Result, *, details: bool = False) -> str:
    """Markdown, for example for a pull request; the details below a first screen are folded."""
    first = _first(result)
    if not first:
        return markdown_of(blocks_of(result))
    folded = Details("All figures, intervals and notes", list(blocks_of(result))) if details else _MORE
    return markdown_of([*first, folded])


def _page(result: Result, **options: Any) -> str:
    from rag_selectivity.render.html import page_of_blocks, to_html

    if isinstance(result, Report):
        return to_html(result, **options)
    blocks = claim_blocks(result, whole=True) if isinstance(result, ClaimReport) else blocks_of(result)
    return page_of_blocks(_TITLES.get(type(result), type(result).__name__), [*_first(result), *blocks])


def _in_a_notebook(report: Report) -> str:
    from rag_selectivity.render.html import notebook_html

    return notebook_html(report)


VIEWS.update(text=as_text, markdown=as_markdown, latex=as_latex, page=_page, notebook=_in_a_notebook)
