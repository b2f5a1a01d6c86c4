"""Claim checks: the figures of each run, the claims that no passage supports, and on a page each query's passages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.render.blocks import (
    Block,
    Column,
    Details,
    Heading,
    Lines,
    Note,
    Table,
    caveat_lines,
    cell,
    table_of,
)
from rag_selectivity.render.comparison import difference_blocks
from rag_selectivity.render.judging import confusion_table, verdict_on
from rag_selectivity.results.claims import (
    DEFINITIONS,
    GROUNDEDNESS,
    MEASURES,
    OF_SUPPORT,
    REPEATED,
    SAMPLES,
    SMALLEST,
    SUPPORTING,
    ClaimCheck,
    ClaimReport,
    ClaimRun,
)
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.trust.agreement import Agreement
from rag_selectivity.wording import counted, percent

#: How many missed claims the terminal shows; the page has all.
_SHOWN = 5
#: To how many characters the texts of passages are cut.
_LONGEST = 600


def claim_blocks(report: ClaimReport, *, whole: bool = False) -> Iterator[Block]:
    """The figures of each run, missed claims and differences.

    The `whole`, which a page has, also holds each query's claims and passages, and the definitions.
    """
    depth = max(report.depths, default=1)
    failed = f", {counted(report.failed, 'call')} failed" if report.failed else ""
    stopped = f", stopped: {report.stopped}" if report.stopped else ""
    samples = counted(len(next(iter(report.runs.values())).samples), "sample")
    yield Heading(f"{samples}, {counted(report.calls, 'request')} to {report.judge}{failed}{stopped}")
    if report.resume is not None:
        yield Note(f"go on with: {report.resume}")
    for name, run in report.runs.items():
        if name != SAMPLES or len(report.runs) > 1:
            yield Heading(name)
        yield from _figure_tables(run, report.depths)
        if "recall" in report.checks:
            yield from _missed_claims(run, depth, None if whole else _SHOWN)
        if whole:
            queries = [block for check in run.samples for block in _of_query(check, depth)]
            yield Details(f"Claims and passages of {name}", queries)
    yield from difference_blocks(report.differences, report.settings)
    yield from _notes(report, depth)
    if report.agreement is not None:
        yield from _agreement(report.agreement)
    if whole:
        shown = dict.fromkeys(measure.name for run in report.runs.values() for measure, _ in run.figures.plan)
        yield Details("Definitions", [Lines([f"{name}: {DEFINITIONS[name]}" for name in shown])])


def _figure_tables(run: ClaimRun, depths: Sequence[int]) -> Iterator[Table]:
    """The figures of a run, and those of the passages that support claims in a table of their own."""
    names = list(dict.fromkeys(measure.name for measure, _ in run.figures.plan))
    for of_support in (False, True):
        columns: list[Column] = [
            (name, partial(_at_depth, run, name), cell) for name in names if (name in OF_SUPPORT) == of_support
        ]
        if columns:
            yield table_of(depths, ("K", str, str), *columns)


def _at_depth(run: ClaimRun, name: str, depth: int) -> Estimate | None:
    return run.estimates.get(f"{name}@{depth}")


def _missed_claims(run: ClaimRun, depth: int, most: int | None) -> Iterator[Block]:
    """The claims that no passage supports."""
    missed = [(check.sample.id, claim) for check in run.samples for claim in check.missed(depth)]
    known = [check for check in run.samples if check.is_known("recall", depth)]
    every = sum(len(check.claims) for check in known)
    if not every:
        failed = len(run.samples) - len(known)
        why = "the judge found no claim in the reference answers"
        if failed:
            why = f"calls of the judge about {failed} of {counted(len(run.samples), 'sample')} failed"
        yield Note(f"No claim was checked: {why}.")
    if not missed:
        return
    lines = [f"In no passage of the top {depth}: {len(missed):,} of {counted(every, 'claim')}."]
    lines += [f"  {query}: {_one_line(claim)}" for query, claim in missed[:most]]
    if most is not None and len(missed) > most:
        lines.append(f"  {len(missed) - most:,} more are on the page (--output FILE.html) and in JSON.")
    yield Lines(lines)


def _notes(report: ClaimReport, depth: int) -> Iterator[Note]:
    run = next(iter(report.runs.values()))
    yield from map(Note, caveat_lines(("", "all figures", caveat) for caveat in run.label_caveats))
    if GROUNDEDNESS in report.checks:
        yield Note(
            f"{MEASURES[GROUNDEDNESS]}: {DEFINITIONS[MEASURES[GROUNDEDNESS]]}. It says whether responses keep to their "
            f"passages, and nothing about what the passages lack."
        )
    greedy = sum(not check.smallest_is_exact(depth) for each in report.runs.values() for check in each.samples)
    if greedy and "recall" in report.checks:
        yield Note(
            f"{SMALLEST}: for {counted(greedy, 'list')} with more than 20 supporting passages it is the greedy cover, "
            f"which may be larger than the smallest set"
        )
    yield from map(Note, report.notes)


def _agreement(agreement: Agreement) -> Iterator[Block]:
    yield Heading("The judge against people")
    yield Note(verdict_on(agreement, "verdict"))
    figures = {"kappa": agreement.kappa, "AC2": agreement.ac2, "same verdict": agreement.exact, "bias": agreement.bias}
    yield table_of(figures, ("", str, str), ("value [interval]", figures.get, cell))
    yield confusion_table(agreement, ["not supported", "supported"])


def _of_query(check: ClaimCheck, depth: int) -> Iterator[Block]:
    """A query of one run, with its tables of claims (rows) and passages (columns)."""
    sample = check.sample
    ids = (sample.passages or tuple(f"passage {i}" for i in range(1, len(sample.retrieved_contexts) + 1)))[:depth]
    yield Heading(sample.id)
    yield Note(sample.user_input)
    for name, caption, claims, cells in (
        ("recall", "Claims of the reference answer", check.claims, check.support),
        (GROUNDEDNESS, "Claims of the response", check.response_claims, check.grounds),
    ):
        known = min(check.known.get(name, -1), len(ids))
        if known > 0 or (known == 0 and not ids):
            yield Note(f"{caption}:")
            yield _matrix(claims, cells[:, :known], ids[:known])
        if 0 <= known < len(ids):
            yield Note(f"{caption}: not known from rank {known + 1} on, since a call of the judge failed.")
    if check.is_known("recall", depth) and (smallest := check.smallest_set_at(depth)):
        kind = "Smallest set" if check.smallest_is_exact(depth) else "Small set (a greedy cover)"
        named = ", ".join(ids[place - 1] for place in smallest)
        yield Note(
            f"{kind} that supports every supported claim: {counted(len(smallest), 'passage')} ({named}). A supported "
            f"claim is in {check.value(f'{SUPPORTING}@{depth}'):.1f} passages on average; "
            f"{percent(check.value(f'{REPEATED}@{depth}'))} of the supported claims are in more than one."
        )
    texts = [
        f"{id_}: {_one_line(text) if len(text) <= _LONGEST else f'{_one_line(text[:_LONGEST])}…'}"
        for id_, text in zip(ids, sample.retrieved_contexts, strict=False)
    ]
    if texts:
        yield Details("Texts of the passages", [Lines(texts)])


def _matrix(claims: Sequence[str], cells: NDArray[np.bool_], ids: Sequence[str]) -> Block:
    """A row for each claim: a cell for each passage, and by how many passages the claim is supported."""

    def supports(place: int) -> Callable[[int], str]:
        return lambda row: "yes" if cells[row, place] else "no"

    passages: list[Column] = [(id_, supports(place), str) for place, id_ in enumerate(ids)]
    return table_of(
        range(len(claims)),
        ("claim", lambda row: _one_line(claims[row]), str),
        *passages,
        ("passages", lambda row: int(cells[row].sum()), str),
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
