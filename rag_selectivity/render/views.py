"""Every result as text, Markdown and LaTeX, as a page and in a notebook: importing it fills the registry of views."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

from rag_selectivity.render.blocks import Block
from rag_selectivity.render.decision_blocks import decision_blocks
from rag_selectivity.render.first_lines import first_blocks
from rag_selectivity.render.judging import agreement_blocks, calibration_blocks, grading_lines
from rag_selectivity.render.paper import as_latex
from rag_selectivity.render.report_table import comparison_blocks, report_blocks
from rag_selectivity.render.workflows import (
    answer_blocks,
    arm_blocks,
    claim_blocks,
    experiment_blocks,
    preference_blocks,
    validation_blocks,
)
from rag_selectivity.render.writers import markdown_of, text_of
from rag_selectivity.results.agreement import JudgeReport
from rag_selectivity.results.answers import AnswerReport
from rag_selectivity.results.calibration import Calibration
from rag_selectivity.results.claims import ClaimReport
from rag_selectivity.results.comparison import Comparison
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.grading import Grading
from rag_selectivity.results.online import ArmComparison, ExperimentDecision, Preference
from rag_selectivity.results.report import Report
from rag_selectivity.results.result import VIEWS, Result
from rag_selectivity.results.validation import Validation


@singledispatch
def blocks_of(result: Result) -> Iterable[Block]:
    """The headings, tables and notes of a result; `blocks_of.register` adds a kind of result."""
    raise TypeError(f"a {type(result).__name__} has no tables: register a function with blocks_of.register")


blocks_of.register(Report)(report_blocks)
blocks_of.register(Decision)(decision_blocks)
blocks_of.register(Comparison)(comparison_blocks)
blocks_of.register(ClaimReport)(claim_blocks)
blocks_of.register(AnswerReport)(answer_blocks)
blocks_of.register(Validation)(validation_blocks)
blocks_of.register(Preference)(preference_blocks)
blocks_of.register(ArmComparison)(arm_blocks)
blocks_of.register(ExperimentDecision)(experiment_blocks)
blocks_of.register(Calibration)(calibration_blocks)
blocks_of.register(JudgeReport)(agreement_blocks)
blocks_of.register(Grading)(grading_lines)


def _shown(result: Result, details: bool) -> Iterable[Block]:
    """The first screen, with the details below it if they are wanted, or if there is no first screen."""
    first: list[Block] = []
    match result:
        case Report():
            first = list(first_blocks(result))
        case Comparison(report=report, baseline=baseline):
            first = list(first_blocks(report, baseline=baseline, paired=result.settings["paired"]))
    return [*first, *blocks_of(result)] if details or not first else first


def as_text(result: Result, *, ruled: bool = True, details: bool = False) -> str:
    """Text for a terminal; `ruled` draws a line below table heads."""
    return text_of(_shown(result, details), ruled=ruled)


def as_markdown(result: Result, *, details: bool = False) -> str:
    """Markdown, for example for a pull request."""
    return markdown_of(_shown(result, details))


def _page(result: Result, **options: Any) -> str:
    from rag_selectivity.render.html import page_of_blocks, to_html

    if isinstance(result, Report):
        return to_html(result, **options)
    return page_of_blocks(result, blocks_of(result))


def _in_a_notebook(report: Report) -> str:
    from rag_selectivity.render.html import notebook_html

    return notebook_html(report)


VIEWS.update(text=as_text, markdown=as_markdown, latex=as_latex, page=_page, notebook=_in_a_notebook)
