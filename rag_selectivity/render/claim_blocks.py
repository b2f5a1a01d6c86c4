"""Claim checks as tables: the figures of each run, missed claims, differences, and the judge against people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_selectivity.render.blocks import BLANK, WIDTH, Block, Heading, Id, Lines, Note, Table, with_interval
from rag_selectivity.render.difference_blocks import difference_blocks
from rag_selectivity.results.claim_measures import DEFINITIONS, GROUNDEDNESS, MEASURES, OF_SUPPORT, SMALLEST
from rag_selectivity.results.claims import SAMPLES, ClaimReport, ClaimRun
from rag_selectivity.trust.agreement import TOO_FEW, UNDETERMINED, Agreement
from rag_selectivity.wording import MARKS, counted, visible

#: How many missed claims the terminal shows; the page has all.
_SHOWN = 5


def claim_blocks(report: ClaimReport) -> Iterable[Block]:
    """The tables and notes of a report."""
    failed = f", {report.failed} calls failed" if report.failed else ""
    stopped = f", stopped: {report.stopped}" if report.stopped else ""
    samples = len(next(iter(report.runs.values())).samples)
    yield Heading(f"{samples} samples, {report.calls} requests to {report.judge}{failed}{stopped}")
    if report.resume is not None:
        yield Note(f"go on with: {report.resume}")
    for name, run in report.runs.items():
        if name != SAMPLES or len(report.runs) > 1:
            yield Heading(Id(name))
        yield from figure_tables(run, report.depths)
        yield from _missed(run, max(report.depths, default=1))
    yield from difference_blocks(report.differences, report.settings)
    yield from notes_of_claims(report)
    if report.agreement is not None:
        yield from agreement_blocks(report.agreement)


def figure_tables(run: ClaimRun, depths: Sequence[int]) -> Iterable[Block]:
    """The figures of a run, and those of the passages that support claims in a table of their own."""
    names = list(dict.fromkeys(measure.name for measure, _ in run.figures.plan))
    groups = ([name for name in names if name not in OF_SUPPORT], [name for name in names if name in OF_SUPPORT])
    for group in filter(None, groups):
        rows = []
        for depth in depths:
            cells = [run.estimates.get(f"{name}@{depth}") for name in group]
            rows.append([str(depth), *(BLANK if cell is None else with_interval(cell) for cell in cells)])
        yield Table(["K", *group], rows, breaks=False)


def _missed(run: ClaimRun, depth: int) -> Iterable[Block]:
    """The claims that no passage supports."""
    missed = [(check.sample.id, claim) for check in run.samples for claim in check.missed(depth)]
    if not missed:
        return
    every = sum(len(check.claims) for check in run.samples if check.is_known("recall", depth))
    lines = [f"In no passage of the top {depth}: {len(missed):,} of {counted(every, 'claim')}."]
    lines += [f"  {_cut(f'{visible(query)}: {visible(in_one_line(claim))}')}" for query, claim in missed[:_SHOWN]]
    if len(missed) > _SHOWN:
        lines.append(f"  {len(missed) - _SHOWN:,} more are on the page (--output FILE.html) and in JSON.")
    yield Lines(lines)


def in_one_line(text: str) -> str:
    """A text with single spaces between its words."""
    return " ".join(text.split())


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH - 2 else f"{line[: WIDTH - 3]}…"


def notes_of_claims(report: ClaimReport) -> Iterable[Note]:
    """What is to be said of the figures: caveats about the judge, and queries that are left out."""
    run = next(iter(report.runs.values()))
    for caveat in run.label_caveats:
        yield Note(f"{MARKS[caveat.level]} {caveat.text} [{caveat.code}]".strip())
    if GROUNDEDNESS in report.checks:
        yield Note(
            f"{MEASURES[GROUNDEDNESS]}: {DEFINITIONS[MEASURES[GROUNDEDNESS]]}. It says whether responses keep to their "
            f"passages, and nothing about what the passages lack."
        )
    depth = max(report.depths, default=1)
    greedy = sum(not check.smallest_is_exact(depth) for each in report.runs.values() for check in each.samples)
    if greedy and "recall" in report.checks:
        yield Note(
            f"{SMALLEST}: for {counted(greedy, 'list')} with more than 20 supporting passages it is the greedy cover, "
            f"which may be larger than the smallest set"
        )
    yield from map(Note, report.notes)


def agreement_blocks(agreement: Agreement) -> Iterable[Block]:
    """How far the judge's verdicts agree with people's."""
    verdict = (
        agreement.verdict if agreement.verdict in (TOO_FEW, UNDETERMINED) else f"the agreement is {agreement.verdict}"
    )
    of_queries = counted(agreement.queries, "query", "queries")
    yield Heading("The judge against people")
    yield Note(f"{counted(agreement.n, 'verdict')} of {of_queries}: {verdict}. {agreement.reason}")
    figures = {"kappa": agreement.kappa, "AC2": agreement.ac2, "same verdict": agreement.exact, "bias": agreement.bias}
    yield Table(["", "value [interval]"], [[name, with_interval(each)] for name, each in figures.items()], breaks=False)
    words = ("not supported", "supported")
    rows = [[words[i], *map(str, counts)] for i, counts in enumerate(agreement.confusion.tolist())]
    yield Table(["people \\ judge", *words], rows, breaks=False)
