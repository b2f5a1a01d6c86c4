"""Claim checks as the blocks of a page: the figures, the missed claims, and for each query its claims and passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.render.blocks import Block, Details, Heading, Lines, Note, table_of
from rag_selectivity.render.workflows import beside_claims, figure_tables
from rag_selectivity.results.claim_measures import DEFINITIONS, REPEATED, SUPPORTING
from rag_selectivity.results.claims import ClaimCheck, ClaimReport, ClaimRun
from rag_selectivity.wording import counted, percent

#: To how many characters the texts of passages are cut.
_LONGEST = 600


def claim_page_blocks(report: ClaimReport) -> Iterator[Block]:
    """The blocks of the page of a report."""
    depth = max(report.depths, default=1)
    samples = counted(len(next(iter(report.runs.values())).samples), "sample")
    failed = f" {counted(report.failed, 'call')} failed." if report.failed else ""
    stopped = f" The run stopped: {report.stopped}." if report.stopped else ""
    depths = ", ".join(map(str, report.depths))
    yield Note(f"{samples}, checked by {report.judge}, at K = {depths}.{failed}{stopped}")
    for name, run in report.runs.items():
        yield Heading(f"Figures of {name}")
        yield from figure_tables(run, report.depths)
        if "recall" in report.checks:
            yield Heading(f"Missed claims of {name}")
            yield from _missed(run, depth)
        yield Heading(f"Claims and passages of {name}")
        for check in run.samples:
            yield from _query(check, depth)
    yield from beside_claims(report)
    shown = dict.fromkeys(measure.name for run in report.runs.values() for measure, _ in run.figures.plan)
    yield Details("Definitions", [Lines([f"{name}: {DEFINITIONS[name]}" for name in shown])])


def _missed(run: ClaimRun, depth: int) -> Iterator[Block]:
    known = [check for check in run.samples if check.is_known("recall", depth)]
    claims = sum(len(check.claims) for check in known)
    missed = [
        f"{check.sample.id}: {_one_line(claim)}: in no passage" for check in known for claim in check.missed(depth)
    ]
    if missed:
        yield Note(f"{len(missed):,} of {counted(claims, 'claim')} are in no passage of the top {depth}.")
        yield Lines(missed)
    elif claims:
        yield Note(f"None: each claim that was checked is in a passage of the top {depth}.")
    elif len(known) == len(run.samples):
        yield Note("No claim was checked: the judge found no claim in the reference answers.")
    else:
        failed = len(run.samples) - len(known)
        yield Note(
            f"No claim was checked: calls of the judge about {failed} of {counted(len(run.samples), 'sample')} failed."
        )


def _query(check: ClaimCheck, depth: int) -> Iterator[Block]:
    """A query of one run, with its tables of claims (rows) and passages (columns)."""
    sample = check.sample
    ids = (sample.passages or tuple(f"passage {i}" for i in range(1, len(sample.retrieved_contexts) + 1)))[:depth]
    yield Heading(sample.id)
    yield Note(sample.user_input)
    known = min(check.known.get("recall", 0), len(ids))
    if known > 0 or (known == 0 and not ids):
        yield Note("Claims of the reference answer:")
        yield _matrix(check.claims, check.support[:, :known], ids[:known])
        if known < len(ids):
            yield Note(
                f"Claims of the reference answer: not known from rank {known + 1} on, since a call of the judge failed."
            )
    else:
        yield Note("No verdicts: a call of the judge failed, or claims were not checked.")
    if check.is_known("recall", depth) and (smallest := check.smallest_set_at(depth)):
        kind = "Smallest set" if check.smallest_is_exact(depth) else "Small set (a greedy cover)"
        named = ", ".join(ids[place - 1] for place in smallest)
        yield Note(f"{kind} that supports every supported claim: {counted(len(smallest), 'passage')} ({named}).")
        yield Note(
            f"A supported claim is in {check.value(f'{SUPPORTING}@{depth}'):.1f} passages on average; "
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

    def where(row: int) -> str:
        return f"in {counted(int(cells[row].sum()), 'passage')}" if cells[row].any() else "in no passage"

    passages = [
        (id_, lambda row, place=place: "yes" if cells[row, place] else "no", str) for place, id_ in enumerate(ids)
    ]
    return table_of(
        range(len(claims)), ("claim", lambda row: _one_line(claims[row]), str), *passages, ("supported", where, str)
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
