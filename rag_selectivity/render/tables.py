"""The tables of every result, as text, Markdown and LaTeX."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from typing import Any

from rag_selectivity.render.answer_blocks import answer_blocks
from rag_selectivity.render.blocks import (
    BLANK,
    Block,
    Heading,
    Lines,
    Note,
    Paragraph,
    Table,
    latex_of,
    markdown_of,
    text_of,
    with_interval,
)
from rag_selectivity.render.claim_blocks import claim_blocks
from rag_selectivity.render.control_words import control_power_lines, drawn_lines
from rag_selectivity.render.decision_blocks import decision_blocks
from rag_selectivity.render.difference_blocks import comparison_blocks
from rag_selectivity.render.first_lines import first_blocks
from rag_selectivity.render.online_blocks import (
    arm_blocks,
    experiment_blocks,
    preference_blocks,
)
from rag_selectivity.render.report_table import report_blocks
from rag_selectivity.render.validation_blocks import validation_blocks
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
from rag_selectivity.results.sweep import AnswersByK, RunSweep, Sweep
from rag_selectivity.results.validation import Validation
from rag_selectivity.trust.agreement import TOO_FEW, UNDETERMINED
from rag_selectivity.trust.ranking import AS_PEOPLE, INVERTS, OPEN, Ranking
from rag_selectivity.wording import counted, level_text, number, signed


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


def first_blocks_of(result: Result) -> Iterable[Block]:
    """The first screen of a result, above its details; nothing for a result that is short."""
    match result:
        case Report():
            return first_blocks(result)
        case Comparison(report=report, baseline=baseline):
            return first_blocks(report, baseline=baseline, paired=result.settings["paired"])
    return ()


def as_text(result: Result, *, ruled: bool = True, details: bool = False) -> str:
    """Text for a terminal; `ruled` draws a line below table heads."""
    return text_of(_shown(result, details), ruled=ruled)


def as_markdown(result: Result, *, details: bool = False) -> str:
    """Markdown, for example for a pull request."""
    return markdown_of(_shown(result, details))


def _shown(result: Result, details: bool) -> Iterable[Block]:
    """The first screen, with the details below it if they are wanted, or if there is no first screen."""
    first = list(first_blocks_of(result))
    return [*first, *blocks_of(result)] if details or not first else first


def as_latex(result: Result) -> str:
    """LaTeX; needs booktabs."""
    return latex_of(blocks_of(result))


def _page(report: Report, **options: Any) -> str:
    from rag_selectivity.render.html import to_html

    return to_html(report, **options)


def _in_a_notebook(report: Report) -> str:
    from rag_selectivity.render.html import notebook_html

    return notebook_html(report)


def _claim_page(report: ClaimReport) -> str:
    from rag_selectivity.render.claim_page import claim_page

    return claim_page(report)


VIEWS.update(text=as_text, markdown=as_markdown, latex=as_latex)
VIEWS.update(report=_page, notebook=_in_a_notebook, claims=_claim_page)


@blocks_of.register
def _calibration_blocks(found: Calibration) -> Iterable[Block]:
    chosen = "–" if found.alpha is None else f"{found.alpha:g}"
    header = ["alpha", "n", "out of fold", "on the same queries", "alphas of resamples", "correlations"]
    spreads = [
        BLANK if math.isnan(low) else f"{number(low)} to {number(high)}"
        for low, high in ((found.alpha_low, found.alpha_high), (found.resampled_low, found.resampled_high))
    ]
    figures = [number(found.out_of_fold), number(found.correlation)]
    yield Table(header, [[chosen, str(found.n), *figures, *spreads]])
    yield Paragraph(found.advice)
    yield Note(
        "the correlations are Spearman's; the one on the same queries is raised by the choice of alpha, and so is that "
        f"of each resample: where {level_text(found.level)} of the resamples lie is a spread, and no "
        "confidence interval",
        "note",
    )


# -- sweep ---------------------------------------------------------------------------------------------

_SWEPT = {
    "K": "K",
    "success": "success",
    "BoR": "BoR",
    "BoR_max": "ceiling",
    "headroom": "headroom",
    "lambda": "lambda",
    "slots_per_relevant": "K/N_p",
    "doubling": "×2",
    "doubling_predicted": "×2 sparse",
    "RA-nWG": "RA-nWG",
    "Harm": "Harm",
    "Harm_most": "at most",
    "Judged": "Judged",
    "tokens": "tokens",
    "bits_per_1000_tokens": "bits/1000",
}


@blocks_of.register
def _sweep_blocks(sweep: Sweep) -> Iterable[Block]:
    for name, run in sweep.runs.items():
        yield Heading(name)
        yield Table(*_swept(run))
        if run.answers is not None and run.answers.rows:
            yield _answers_table(run.answers, sweep.settings.get("level"))
        yield Paragraph(run.recommendation.reason)
        if run.answers is not None and run.answers.finding is not None:
            yield Paragraph(run.answers.finding)
        if run.answers is not None and run.answers.left_out:
            left_out = counted(run.answers.left_out, "query has", "queries have")
            yield Note(f"{left_out} a score at some K only, and are left out of the answers", "note")
        yield from (Note(warning, "warning") for warning in run.recommendation.warnings)
    yield from (Note(note, "note") for note in sweep.notes)


def _answers_table(answers: AnswersByK, level: float | None) -> Table:
    """The scores of answers at each K; losses as shares of the range of the scores."""
    tokens = any(row.tokens is not None for row in answers.rows)
    most = "loss at most" if level is None else f"loss at most [{level_text(level)}]"
    header = ["K", "answers", "loss", most, *(["tokens"] if tokens else [])]
    rows = []
    for row in answers.rows:
        mark = "*" if row.K == answers.recommendation.K else " "
        ends = ["", ""] if row.loss_high is None else [signed(row.loss), signed(row.loss_high)]
        cells = [f"{row.K}{mark}", number(row.score), *ends]
        rows.append([*cells, *(["" if row.tokens is None else f"{row.tokens:.0f}"] if tokens else [])])
    return Table(header, rows)


def _swept(run: RunSweep) -> tuple[list[str], list[list[str]]]:
    last = run.rows[-1]["K"]
    advice = run.recommendation
    shown = {1 << i for i in range(last.bit_length())} | {last, advice.max_k}
    shown |= {depth for depth in (advice.K, advice.within_tokens) if depth}
    names = [name for name in _SWEPT if name in run.rows[0]]
    if all(row["slots_per_relevant"] is None for row in run.rows):
        names.remove("slots_per_relevant")
    rows = []
    for row in run.rows:
        if row["K"] in shown:
            cells = ["" if row[name] is None else _swept_cell(name, row) for name in names]
            rows.append([cells[0] + ("*" if row["K"] == advice.K else " "), *cells[1:]])
    return [_SWEPT[name] for name in names], rows


def _swept_cell(name: str, row: dict[str, Any]) -> str:
    if name == "BoR_max" and row["regime"] != "healthy":
        return f"{row['regime']} {number(row[name])}"
    return str(row[name]) if name == "K" else f"{row[name]:.0f}" if name == "tokens" else number(row[name])


# -- agreement -----------------------------------------------------------------------------------------


@blocks_of.register
def _agreement_blocks(report: JudgeReport) -> Iterable[Block]:
    agreement = report.agreement
    data = agreement.to_dict()
    drawn = "" if agreement.clusters is None else f" in {agreement.clusters} clusters"
    verdict = (
        agreement.verdict if agreement.verdict in (TOO_FEW, UNDETERMINED) else f"the agreement is {agreement.verdict}"
    )
    of_queries = counted(agreement.queries, "query", "queries")
    yield Paragraph(report.trust.text)
    yield Paragraph(f"{agreement.n} pairs of {of_queries}{drawn}: {verdict}. {agreement.reason}")
    names = [name for name, value in data.items() if isinstance(value, dict) and "value" in value]
    header = ["", "value [interval]", *(["with itself"] if report.itself is not None else [])]
    rows = []
    for name in names:
        row = [name.replace("_", " "), with_interval(getattr(agreement, name))]
        rows.append([*row, number(getattr(report.itself, name).value)] if report.itself is not None else row)
    yield Table(header, rows, breaks=False)
    yield Table(
        ["human \\ judge", *map(str, agreement.levels), "bias"],
        [
            [str(level), *map(str, counts), with_interval(agreement.bias_by_grade.get(level))]
            for level, counts in zip(agreement.levels, agreement.confusion.tolist(), strict=True)
        ],
        breaks=False,
    )
    yield from _ranking_blocks(report)
    yield Paragraph("To calibrate figures by people's labels: rag-selectivity evaluate LABELS RUN --human HUMAN.")


def _ranking_blocks(report: JudgeReport) -> Iterable[Block]:
    """Whether the judge ranks runs as people do, and how far it is from people in each group."""
    if not report.ranks:
        yield Paragraph("Whether the judge ranks runs as people do is not tested: give --run a=FILE --run b=FILE.")
    else:
        yield Table(
            [report.ranks[0].measure, "by the judge", "by people [interval]", "the judge"],
            [
                [" minus ".join(each.runs), signed(each.as_judged), with_interval(each.difference), _verdict(each)]
                for each in report.ranks
            ],
            breaks=False,
        )
        yield from map(Note, _rankings_in_words(report.ranks))
    rows = [[kind, group, with_interval(bias)] for kind, by in report.biases.items() for group, bias in by.items()]
    if rows:
        yield Table(["", "", "judge minus people [interval]"], rows, breaks=False)


def _verdict(ranking: Ranking) -> str:
    return {AS_PEOPLE: "ranks them as people do", INVERTS: "inverts their order", OPEN: "open"}[ranking.verdict]


def _rankings_in_words(ranks: Sequence[Ranking]) -> Iterable[str]:
    """What the verdicts rest on, and what would settle those that are open."""
    pairs = "passages that only one of the two runs has"
    yield f"by people: the judge's grades of {pairs}, completed by people's labels; for these queries"
    for each in ranks:
        names = " and ".join(each.runs)
        if each.difference.reason:
            yield f"{names}: open, since {each.difference.reason}"
        elif each.labels_needed is not None and each.labels_needed >= each.pairs:
            yield f"{names}: open; labels of all {each.pairs:,} {pairs} may not settle it ({each.labels:,} have one)"
        elif each.labels_needed is not None:
            about = f"about {each.labels_needed:,} labels of {pairs}"
            yield f"{names}: open; {about} would settle it ({each.labels:,} have one)"


# -- grading -------------------------------------------------------------------------------------------


@blocks_of.register
def _grading_blocks(grading: Grading) -> Iterable[Block]:
    yield Lines([*_grading_lines(grading)])


def _grading_lines(grading: Grading) -> Iterable[str]:
    pairs = counted(grading.pairs, "pair")
    if grading.dry_run:
        yield f"{pairs}: {grading.cached:,} in the store, {grading.left:,} to grade by {grading.judge}"
        yield f"at least {counted(grading.requests, 'request')}, about {_tokens(grading)}{_cost(grading)}"
        asked_for = {"tail": grading.tail, "controls": grading.controls}
        for name, part in grading.part_costs.items():
            if asked_for.get(name, part) is None:
                continue
            tokens = f"{part.usage.prompt_tokens:,} prompt + {part.usage.completion_tokens:,} answer tokens"
            cost = "" if part.cost is None else f", cost {part.cost:.4g}"
            requests = counted(part.requests, "request")
            yield f"  {name}: {counted(part.left, 'grade')}, at least {requests}, about {tokens}{cost}"
        yield from drawn_lines(grading)
        if grading.control_power is not None:
            yield from control_power_lines(grading.control_power)
        yield "estimated at four characters a token and 60 tokens an answer; a model that reasons writes more"
        return
    yield (
        f"{pairs}: {grading.graded:,} graded by {grading.judge}, {grading.cached:,} in the store "
        f"before, {grading.failed:,} failed, {grading.left:,} left"
    )
    yield from drawn_lines(grading)
    yield f"{counted(grading.requests, 'request')}, {_tokens(grading)}{_cost(grading)}"
    if grading.way is not None:
        yield f"the endpoint was asked with {_way(grading.way)}"
    if grading.other_models:
        yield f"warning: the endpoint named {', '.join(grading.other_models)} as the model, not {grading.judge}"
    if grading.errors:
        by_kind = ", ".join(f"{count:,} {kind}" for kind, count in sorted(grading.errors.items()))
        yield f"failures: {by_kind}; the last one: {grading.last_error}"
        yield f"to list them: rag-selectivity labels info {shlex.quote(str(grading.store))}"
    if grading.earlier_failures:
        yield f"{grading.earlier_failures:,} failed in an earlier run; --retry-failed tries them again"
    if grading.stopped:
        goes_on = "; the same call goes on" if grading.resume is None else ""
        yield f"stopped: {grading.stopped.rstrip('.')}. All grades so far are in {grading.store}{goes_on}"
    if grading.resume is not None:
        yield f"go on with: {grading.resume}"


def _tokens(grading: Grading) -> str:
    tokens = f"{grading.usage.prompt_tokens:,} prompt + {grading.usage.completion_tokens:,} answer tokens"
    if grading.dry_run or grading.usage_from in (None, "server"):
        return tokens
    extent = "estimated" if grading.usage_from == "estimate" else "partly estimated"
    return f"{tokens} ({extent}: the endpoint did not count them)"


def _cost(grading: Grading) -> str:
    if grading.cost is None:
        return ""
    source = "by the prices given" if grading.cost_from == "prices" else "as the endpoint says"
    return f", cost {grading.cost:.4g} ({source})"


def _way(way: Mapping[str, Any]) -> str:
    """The fields with which an endpoint was asked, in words."""
    parts = [
        way["answer"] if way["answer"] != "text" else "the JSON schema in words",
        way["limit"] or "no limit of the answer",
    ]
    refused = [*(["temperature"] if way.get("temperature") is False else []), *way.get("refused", ())]
    return ", ".join(parts) + (f"; it refused {', '.join(refused)}" if refused else "")
