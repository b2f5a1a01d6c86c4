"""Claim checks as one HTML page: the figures, the missed claims, and for each query its claims and passages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rag_selectivity.render.blocks import Heading, Table
from rag_selectivity.render.claim_blocks import agreement_blocks, figure_tables, in_one_line, notes_of_claims
from rag_selectivity.render.difference_blocks import difference_blocks
from rag_selectivity.render.templates import page_of
from rag_selectivity.results.claim_measures import DEFINITIONS, GROUNDEDNESS, REPEATED, SUPPORTING
from rag_selectivity.results.claims import SAMPLES, ClaimCheck, ClaimReport
from rag_selectivity.wording import counted, percent, visible, visible_lines

#: To how many characters the texts of passages are cut.
_LONGEST = 600


def claim_page(report: ClaimReport) -> str:
    """The page of a report. It loads nothing, and its policy allows its own style and nothing else.

    Raises
    ------
    MissingExtraError
        If Jinja2 is not installed (the extra `report`).
    """
    depth = max(report.depths, default=1)
    runs = [
        {
            "name": name,
            "titled": name != SAMPLES or len(report.runs) > 1,
            "tables": [block for block in figure_tables(run, report.depths) if isinstance(block, Table)],
            "missed": [
                (f"run-{place}-{i}", check.sample.id, in_one_line(claim).rstrip("."))
                for i, check in enumerate(run.samples)
                for claim in check.missed(depth)
            ],
            "claims": sum(len(check.claims) for check in run.samples if check.is_known("recall", depth)),
            "no_claims": _without_claims(run.samples, depth),
            "queries": [_query(check, f"run-{place}-{i}", depth) for i, check in enumerate(run.samples)],
        }
        for place, (name, run) in enumerate(report.runs.items())
    ]
    shown = dict.fromkeys(measure.name for run in report.runs.values() for measure, _ in run.figures.plan)
    further = list(difference_blocks(report.differences, report.settings))
    further += [] if report.agreement is None else list(agreement_blocks(report.agreement))
    return page_of(
        "claims",
        "ClaimReport.to_html",
        title="What passages support",
        report=report,
        samples=len(next(iter(report.runs.values())).samples),
        runs=runs,
        depth=depth,
        has_recall="recall" in report.checks,
        definitions=[(name, DEFINITIONS[name]) for name in shown],
        further=[(_kind(block), block) for block in further],
        notes=[note.text for note in notes_of_claims(report)],
        visible=visible,
        visible_lines=visible_lines,
    )


def _kind(block: object) -> str:
    return "heading" if isinstance(block, Heading) else "table" if isinstance(block, Table) else "note"


def _without_claims(checks: Sequence[ClaimCheck], depth: int) -> str:
    """Why no claim was checked."""
    known = sum(check.is_known("recall", depth) for check in checks)
    if known == len(checks):
        return "the judge found no claim in the reference answers"
    return f"calls of the judge about {len(checks) - known} of {counted(len(checks), 'sample')} failed"


def _query(check: ClaimCheck, anchor: str, depth: int) -> dict[str, Any]:
    """A query of one run on the page, with its matrices of claims (rows) and passages (columns)."""
    sample = check.sample
    ids = (sample.passages or tuple(f"passage {i}" for i in range(1, len(sample.retrieved_contexts) + 1)))[:depth]
    matrices, facts = [], []
    for name, caption, claims, cells in (
        ("recall", "Claims of the reference answer", check.claims, check.support),
        (GROUNDEDNESS, "Claims of the response", check.response_claims, check.grounds),
    ):
        known = min(check.known.get(name, 0), len(ids))
        if known < 0 or (not known and ids):
            continue
        matrices.append(_matrix(caption, claims, cells[:, :known].tolist(), ids[:known]))
        if known < len(ids):
            facts.append(f"{caption}: not known from rank {known + 1} on, since a call of the judge failed.")
    if check.is_known("recall", depth):
        smallest = check.smallest_set_at(depth)
        if smallest:
            named = ", ".join(ids[place - 1] for place in smallest)
            size = counted(len(smallest), "passage")
            kind = "Smallest set" if check.smallest_is_exact(depth) else "Small set (a greedy cover)"
            facts.append(f"{kind} that supports every supported claim: {size} ({named}).")
            facts.append(
                f"A supported claim is in {check.value(f'{SUPPORTING}@{depth}'):.1f} passages on average; "
                f"{percent(check.value(f'{REPEATED}@{depth}'))} of the supported claims are in more than one."
            )
    if not matrices:
        facts.append("No verdicts: a call of the judge failed, or claims were not checked.")
    texts = [
        (id_, text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
        for id_, text in zip(ids, sample.retrieved_contexts, strict=False)
    ]
    head = {"anchor": anchor, "id": sample.id, "question": sample.user_input}
    return {**head, "matrices": matrices, "facts": facts, "texts": texts}


def _matrix(caption: str, claims: Sequence[str], table: Iterable[list[bool]], ids: tuple[str, ...]) -> dict[str, Any]:
    """A row for each claim: a cell for each passage, and by how many passages the claim is supported."""
    rows = []
    for claim, cells in zip(claims, table, strict=True):
        where = f"in {counted(sum(cells), 'passage')}" if any(cells) else "in no passage"
        rows.append({"claim": in_one_line(claim), "cells": cells, "where": where, "missed": not any(cells)})
    return {"caption": caption, "passages": ids, "rows": rows}
