"""The lines and tables of a ToolReport."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import Any

from rag_selectivity.live.tools.report import Confusion, ToolChoice, ToolReport, advice, no_selection
from rag_selectivity.render.blocks import Block, Column, Heading, Lines, Note, Table, table_of
from rag_selectivity.render.first_screen import first_screen
from rag_selectivity.render.report_tables import report_blocks
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.wording import counted, percent, several

_ALWAYS = ("shown", "called", "tokens")
#: Rows of a table, and names in a line.
_LISTED, _NAMED = 20, 5

_TOOLS = ("shown", "called", "wrong", "misfits", "ran", "failed", "tokens")
_CONFUSION: Sequence[Column] = (
    ("expected", lambda cell: _expected(cell)),
    ("called", lambda cell: cell.called or "(none)"),
    ("calls", lambda cell: f"{cell.calls}{' ' if cell.right else '*'}"),
)
_SIMILAR: Sequence[Column] = (("tool", "first"), ("and", "second"), "names", "descriptions", "confused")
_MISFITS: Sequence[Column] = ("tool", "reason", "calls")


def tool_blocks(report: ToolReport) -> Iterable[Block]:
    """The lines about a report, then its tables."""
    yield Lines([*_lines(report)])
    used = [name for name in _TOOLS if name in _ALWAYS or any(getattr(tool, name) for tool in report.tools)]
    yield _listed(report.tools, [("tool", "name"), *used], len(report.tools))
    confusion = () if report.choice is None else report.choice.confusion
    for title, rows, columns, total in (
        ("Called against expected: calls with labels, * if wrong", confusion, _CONFUSION, len(confusion)),
        ("Tools with near-identical names or descriptions", report.similar, _SIMILAR, report.similar_pairs),
        ("Arguments that do not fit the schema", report.misfits, _MISFITS, len(report.misfits)),
    ):
        if rows:
            yield Heading(title)
            yield _listed(rows, columns, total)
    if report.selection is not None:
        yield Heading("Selection: was a tool that applies shown?")
        # No first screen stands above it, which would say what the labels are worth, and all notes.
        notes = [report.selection.trust.text, *first_screen(report.selection).notes]
        details = dropwhile(lambda block: isinstance(block, Note), report_blocks(report.selection))
        for block in (*map(Note, notes), *details):
            yield replace(block, text=_of_tools(block.text)) if isinstance(block, (Heading, Note)) else block


def _of_tools(text: str) -> str:
    """A sentence about retrievals as one about model calls."""
    text = re.sub(r"(?<!are of )\b([\d,]+) queries", r"\1 model calls", text).replace("passage", "tool")
    return text.replace("retriever", "selector").replace("retrieval", "model call")


def _listed(rows: Sequence[Any], columns: Sequence[Column], total: int) -> Table:
    table, more = table_of(rows[:_LISTED], *columns), total - _LISTED
    if more > 0:
        table.rows.append([f"… {more:,} more", *("" for _ in table.header[1:])])
    return table


def _expected(cell: Confusion) -> str:
    more = len(cell.expected) - _NAMED
    return (" or ".join(cell.expected[:_NAMED]) or "(none)") + (f" or {more} more" if more > 0 else "")


def _lines(report: ToolReport) -> Iterable[str]:
    """What the tools cost and what they were worth, a line each."""
    seen = f"{counted(report.calls, 'model call')}, {report.shown:.3g} of {report.catalogue} tools shown on average"
    yield f"{seen}: {report.tokens:,.0f} tokens of definitions a call"
    if report.shown >= report.catalogue:
        yield no_selection(report.catalogue, "always shown")
    elif report.regime is None:
        yield "How many tools apply to a query is not known: give labels, or relevant=… as an assumption"
    else:
        how = ", ".join("from labels" if name == "labels" else name for name, n in report.basis.items() if n)
        known = f"With R = {report.relevant:.3g} ({how}) lambda is {report.lam:.2g}"
        random = f"as many tools at random would serve in {percent(2**-report.BoR_max)} of the calls ({report.regime})"
        yield f"{known}, and {random}: a perfect selector could show {report.BoR_max:.2g} bits"
        if report.healthy_K is not None and report.regime != "healthy":
            yield advice(report.healthy_K)
    if report.choice is not None:
        yield from _of_choice(report, report.choice)
    if report.failed.n_total:
        yield f"Failed: {_share(report.failed)} of {counted(report.failed.n_total, 'run')} of tools ended in an error"
    if report.misfits:
        yield f"Arguments of {_share(report.misfit)} of {counted(report.misfit.n_total, 'call')} do not fit the schema"
    unknown = "Labels name tools that are neither in the catalogue nor were shown"
    for what, names, units in (
        ("Called without being offered", report.not_offered, ("call", "calls")),
        ("Several tools have the same name", report.duplicates, ("definition", "definitions")),
        (unknown, report.unknown_labels, ("query", "queries")),
    ):
        if names:
            yield f"{what}: {several([f'{name} ({counted(count, *units)})' for name, count in names.items()])}"
    if report.never_called:
        wasted = sum(tool.shown * tool.tokens for tool in report.tools if not tool.called)
        total = sum(tool.shown * tool.tokens for tool in report.tools) or 1
        yield f"{counted(len(report.never_called), 'tool')} never called took {percent(wasted / total)} of the tokens"


def _of_choice(report: ToolReport, choice: ToolChoice) -> Iterable[str]:
    if report.selection is not None and any(str(measure) == "Success" for measure in report.selection.measures):
        success = report.selection["Success"]
        yield f"Selection: {_share(success)} of {counted(success.n, 'model call')} with labels were shown a right tool"
    if choice.calls:
        calls, no_answer = counted(choice.calls, "model call"), " that gave no answer" if choice.answers else ""
        right = f"of {calls} with labels{no_answer} {percent(choice.right.value)} called a right tool"
        yield f"Choice: {right}, {_share(choice.wrong)} a wrong tool, {percent(choice.none.value)} no tool"
    if 0 < choice.right_if_shown.n_total < choice.calls:
        shown = counted(choice.right_if_shown.n_total, "call")
        yield f"Where a right tool was shown ({shown}) it was called in {_share(choice.right_if_shown)}"


def _share(estimate: Estimate) -> str:
    return f"{percent(estimate.value)} [{percent(estimate.low)}, {percent(estimate.high)}]"
