"""The decision with which commands end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_selectivity.cli.output import note
from rag_selectivity.errors import InputError

if TYPE_CHECKING:
    from rag_selectivity.results.report import Report


def decided(
    report: Report,
    k: int | None,
    depths: Sequence[int] | None,
    *,
    baseline: str | None = None,
    paired: bool = True,
) -> Report:
    """The report with its decision: at K, or at the only depth that was asked for, or at the advised one.

    Where nobody asked for its K, what stands against a decision (such as a passage without a label under
    `--unjudged error`) does not stand against the figures: a note says so.
    """
    from rag_selectivity.decision import decide

    asked = production_depth(k, depths)
    try:
        return report.with_decision(decide(report, k=asked, baseline=baseline, paired=paired))
    except InputError as error:
        if k is not None:
            raise
        note(f"note: no decision: {error}")
        return report


def production_depth(k: int | None, depths: Sequence[int] | None) -> int | None:
    """The K of the decision: the one that was given, or the only depth that was asked for; else None."""
    return k if k is not None else depths[0] if depths is not None and len(depths) == 1 else None
