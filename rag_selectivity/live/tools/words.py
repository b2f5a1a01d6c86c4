"""The lines and tables of a ToolReport."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rag_selectivity.live.tools.chance import advice
from rag_selectivity.live.tools.choice import Confusion, ToolChoice
from rag_selectivity.live.tools.report import ToolReport
from rag_selectivity.render.blocks import Block, Heading, Lines, Table
from rag_selectivity.render.views import blocks_of
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.wording import counted, number, percent

#: Rows of a table, and names in a line.
_LISTED, _NAMED = 20, 5


def tool_blocks(report: ToolReport) -> Iterable[Block]:
    """The lines about a report, then its tables."""
    yield Lines([*_lines(report)])
    rows = report.to_rows()
    always, sometimes = ("name", "shown", "called"), ("wrong", "misfits", "ran", "failed")
    used = [*always, *(name for name in sometimes if any(row[name] for row in rows)), "tokens"]
    yield _listed(["tool", *used[1:]], [[str(row[name]) for name in used] for row in rows])
    if report.choice is not None and report.choice.confusion:
        yield Heading("Called against expected: calls with labels, * if wrong")
        yield _listed(["expected", "called", "calls"], [_cells(cell) for cell in report.choice.confusion])
    if report.similar:
        yield Heading("Tools with near-identical names or descriptions")
        pairs = ((each.first, each.second, number(each.names), number(each.descriptions)) for each in report.similar)
        cells = [[*pair, str(each.confused)] for pair, each in zip(pairs, report.similar, strict=True)]
        yield _listed(["tool", "and", "names", "descriptions", "confused"], cells, report.similar_pairs)
    if report.misfits:
        yield Heading("Arguments that do not fit the schema")
        misfits = [[each.tool, each.reason, str(each.calls)] for each in report.misfits]
        yield _listed(["tool", "reason", "calls"], misfits)
    if report.selection is not None:
        yield Heading("Selection: was a tool that applies shown?")
        yield from blocks_of(report.selection)


def _listed(header: list[str], rows: list[list[str]], total: int | None = None) -> Table:
    more = (total or len(rows)) - _LISTED
    cut = rows[:_LISTED]
    if more > 0:
        cut.append([f"… {more:,} more", *("" for _ in header[1:])])
    return Table(header, cut, breaks=False)


def _cells(cell: Confusion) -> list[str]:
    shown = " or ".join(cell.expected[:_NAMED]) or "(none)"
    if len(cell.expected) > _NAMED:
        shown += f" or {len(cell.expected) - _NAMED} more"
    return [shown, cell.called or "(none)", f"{cell.calls}{' ' if cell.right else '*'}"]


def _lines(report: ToolReport) -> Iterable[str]:
    """What the tools cost and what they were worth, a line each."""
    yield (
        f"{report.calls:,} model calls, {report.shown:.3g} of {report.catalogue} tools shown on average: "
        f"{report.tokens:,.0f} tokens of definitions a call"
    )
    if report.regime is None and report.shown >= report.catalogue:
        yield f"All {report.catalogue} tools are always shown, so there is no selection to measure"
    elif report.regime is None:
        yield "How many tools apply to a query is not known: give labels, or relevant=… as an assumption"
    else:
        how = ", ".join("from labels" if name == "labels" else name for name, n in report.basis.items() if n)
        yield (
            f"With R = {report.relevant:.3g} ({how}) lambda is {report.lam:.2g}, and as many tools at random would "
            f"serve in {percent(2**-report.BoR_max)} of the calls ({report.regime}): a perfect selector could show "
            f"{report.BoR_max:.2g} bits"
        )
        if report.healthy_K is not None and report.regime != "healthy":
            yield advice(report.healthy_K)
    if report.choice is not None:
        yield from _of_choice(report, report.choice)
    if report.failed.n_total:
        yield f"Failed: {_share(report.failed)} of {counted(report.failed.n_total, 'run')} of tools ended in an error"
    if report.misfit.n_total and report.misfits:
        calls = counted(report.misfit.n_total, "call")
        yield f"Arguments: {_share(report.misfit)} of {calls} have arguments that do not fit the tool's schema"
    yield from _of_names(report)
    never = report.never_called
    if never:
        wasted = sum(tool.shown * tool.tokens for tool in report.tools if not tool.called)
        total = sum(tool.shown * tool.tokens for tool in report.tools) or 1
        yield f"{len(never)} tools were never called; they took {percent(wasted / total)} of the tokens"


def _of_choice(report: ToolReport, choice: ToolChoice) -> Iterable[str]:
    if report.selection is not None and any(str(measure) == "Success" for measure in report.selection.measures):
        success = report.selection["Success"]
        calls = counted(success.n, "model call")
        yield f"Selection: a right tool was shown in {_share(success)} of {calls} with labels"
    if choice.calls:
        calls = counted(choice.calls, "model call")
        yield (
            f"Choice: of {calls} with labels {percent(choice.right.value)} called a right tool, "
            f"{_share(choice.wrong)} a wrong tool, {percent(choice.none.value)} no tool"
        )
    if choice.right_if_shown.n_total and choice.right_if_shown.n_total < choice.calls:
        shown = counted(choice.right_if_shown.n_total, "call")
        yield f"Where a right tool was shown ({shown}) it was called in {_share(choice.right_if_shown)}"


def _of_names(report: ToolReport) -> Iterable[str]:
    unknown = "Labels name tools that are neither in the catalogue nor were shown"
    for what, names, units in (
        ("Called without being offered", report.not_offered, ("call", "calls")),
        ("Several tools have the same name", report.duplicates, ("definition", "definitions")),
        (unknown, report.unknown_labels, ("query", "queries")),
    ):
        if names:
            yield f"{what}: {_names(names, *units)}"


def _names(names: Mapping[str, int], one: str, many: str) -> str:
    listed = [f"{name} ({counted(count, one, many)})" for name, count in list(names.items())[:_NAMED]]
    if len(names) > _NAMED:
        listed.append(f"and {len(names) - _NAMED:,} more")
    return ", ".join(listed)


def _share(estimate: Estimate) -> str:
    return f"{percent(estimate.value)} [{percent(estimate.low)}, {percent(estimate.high)}]"
