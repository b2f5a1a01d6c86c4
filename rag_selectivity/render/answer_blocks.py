"""Answers as tables: means of what was shown, lifts, bits, order, depth, runs and junk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rag_selectivity.render.blocks import BLANK, Block, Heading, Note, Paragraph, Table, with_interval
from rag_selectivity.results.answers import (
    BITS,
    DEPTH,
    JUNK,
    LIFT,
    ORDER,
    RUN,
    SLOPE,
    AnswerReport,
    Contrast,
)
from rag_selectivity.wording import counted, ends_text, level_text, number, signed

_TITLES = {
    LIFT: "Lift over no passages",
    BITS: "Bits over random of right answers",
    DEPTH: "More passages against fewer",
    RUN: "Runs",
    ORDER: "Order against best first",
    SLOPE: "Junk beside the same relevant passages: change with each junk passage",
}
#: What a contrast is, where it is no difference.
_OF_KIND = {BITS: "bits", SLOPE: "change"}


def answer_blocks(report: AnswerReport) -> Iterable[Block]:
    """The tables and notes of a report."""
    yield Heading(_head(report))
    if report.resume is not None:
        yield Note(f"go on with: {report.resume}")
    shown = list(dict.fromkeys(each for each, _ in report.figures))
    if shown:
        names = list(report.kinds)
        rows = []
        for each in shown:
            cells = [report.figures.get((each, name)) for name in names]
            n = max((cell.n for cell in cells if cell is not None), default=0)
            rows.append([str(each), str(n), *(BLANK if cell is None else with_interval(cell) for cell in cells)])
        yield Table(["shown", "n", *names], rows)
    for kind, title in _TITLES.items():
        of_kind = [each for each in report.contrasts if each.kind == kind]
        if of_kind:
            yield from _contrast_blocks(title, of_kind, report)
    yield from (Note(note, "note") for note in report.notes)
    served = report.settings.get("served") or ()
    if served and list(served) != [report.settings["model"]]:
        yield Note(f"the server calls the model {served[0]}")


def _head(report: AnswerReport) -> str:
    spent = report.spent
    queries = counted(len(report.queries), "query", "queries")
    if not spent.prompts:
        return queries
    model = report.settings["model"]
    if spent.dry_run:
        cost = "" if spent.cost is None else f", cost about {spent.cost:.4g}"
        return (
            f"{queries}: {spent.prompts:,} prompts, {spent.cached:,} answered already; "
            f"{counted(spent.requests, 'request')} to {model} to make, about {spent.usage.total:,} tokens{cost}; "
            f"nothing was sent"
        )
    failed = f", {counted(spent.failed, 'call')} failed" if spent.failed else ""
    cost = "" if spent.cost is None else f", cost {spent.cost:.4g}"
    stopped = f", stopped: {spent.stopped}" if spent.stopped else ""
    return (
        f"{queries}, {spent.prompts:,} prompts, {counted(spent.requests, 'request')} to {model}{cost}{failed}{stopped}"
    )


def _contrast_blocks(title: str, contrasts: Sequence[Contrast], report: AnswerReport) -> Iterable[Block]:
    kind = contrasts[0].kind
    level = level_text(report.settings["level"])
    yield Heading(title)
    tested = any(not math.isnan(each.p) for each in contrasts)
    header = ["score", "shown", "against", "n", f"{_OF_KIND.get(kind, 'difference')} [{level}]"]
    header += [*(["ceiling"] if kind == BITS else []), *(["p Holm"] if tested else [])]
    rows = []
    for each in contrasts:
        against = "no junk" if kind == SLOPE and each.against.k == 0 else str(each.against)
        row = [each.score, str(each.shown), against, str(each.n), _value(each)]
        row += [number(each.ceiling)] if kind == BITS else []
        rows.append([*row, *([_p(each)] if tested else [])])
    yield Table(header, rows, breaks=False)
    for reason in dict.fromkeys(each.reason for each in contrasts if each.reason is not None):
        about = [f"{each.score} of {each.shown}" for each in contrasts if each.reason == reason]
        yield Paragraph(f"{', '.join(about)}: {reason}.")
    if kind == SLOPE:
        yield from map(Paragraph, _junk_in_words(report, contrasts, level))


def _value(each: Contrast) -> str:
    def cell(value: float) -> str:
        return signed(value, 4 if each.kind == SLOPE else 3)

    if math.isnan(each.low) and math.isnan(each.value):
        return BLANK
    return f"{cell(each.value)}{ends_text(each.low, each.high, cell)}"


def _p(each: Contrast) -> str:
    return BLANK if math.isnan(each.p_adjusted) else f"{each.p_adjusted:.4f}"


def _junk_in_words(report: AnswerReport, contrasts: Sequence[Contrast], level: str) -> Iterable[str]:
    """What junk costs the model, in a sentence for each score that says if an answer is right."""
    counts = [shown.k for shown, _ in report.figures if shown.run == JUNK]
    for each in contrasts:
        if report.kinds[each.score].is_correct and not math.isnan(each.low):
            points, low, high = (100 * value for value in (each.value, each.low, each.high))
            shown = "falls" if each.high < 0 else "rises" if each.low > 0 else None
            if shown is None:
                yield (
                    f"{each.score}: no change with junk is shown ({signed(points, 2)} percentage points a passage, "
                    f"{level} interval {signed(low, 2)} to {signed(high, 2)}), from 0 to {max(c or 0 for c in counts)} "
                    f"junk passages."
                )
            else:
                less, more = sorted((abs(low), abs(high)))
                yield (
                    f"{each.score} {shown} by {abs(points):.2f} percentage points with each junk passage ({level} "
                    f"interval {less:.2f} to {more:.2f}), on average from {min(c or 0 for c in counts)} to "
                    f"{max(c or 0 for c in counts)} junk passages."
                )
