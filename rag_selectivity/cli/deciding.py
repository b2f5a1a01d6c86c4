"""The decision with which commands end."""

from __future__ import annotations

from collections.abc import Sequence

from rag_selectivity.results.report import Report


def decided(
    report: Report,
    k: int | None,
    depths: Sequence[int] | None,
    *,
    baseline: str | None = None,
    paired: bool = True,
) -> Report:
    """The report with its decision: at K, or at the only depth that was asked for, or at the advised one."""
    from rag_selectivity.decision import decide

    return report.with_decision(decide(report, k=production_depth(k, depths), baseline=baseline, paired=paired))


def production_depth(k: int | None, depths: Sequence[int] | None) -> int | None:
    """The K that was given, or the only depth that was asked for."""
    return k if k is not None else depths[0] if depths is not None and len(depths) == 1 else None
