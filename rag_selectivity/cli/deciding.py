"""The decision with which commands end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_selectivity.cli.output import note
from rag_selectivity.errors import InputError

if TYPE_CHECKING:
    from rag_selectivity.advice.costs import Costs
    from rag_selectivity.results.report import Report


def decided(
    report: Report,
    k: int | None,
    depths: Sequence[int] | None,
    *,
    baseline: str | None = None,
    paired: bool = True,
    **options: Any,
) -> Report:
    """The report with its decision: at K, or at the only depth that was asked for, or at the advised one.

    `options` are further ones of `decide`, such as costs. Where nobody asked for its K or for costs, what stands
    against a decision (such as a passage without a label under `--unjudged error`) does not stand against the figures:
    a note says so.
    """
    from rag_selectivity.advice import decide

    asked = production_depth(k, depths)
    try:
        return report.with_decision(decide(report, k=asked, baseline=baseline, paired=paired, **options))
    except InputError as error:
        if k is not None or options.get("costs"):
            raise
        note(f"note: no decision: {error}")
        return report


def production_depth(k: int | None, depths: Sequence[int] | None) -> int | None:
    """The K of the decision: the one that was given, or the only depth that was asked for; else None."""
    return k if k is not None else depths[0] if depths is not None and len(depths) == 1 else None


def known_costs(report: Report, runs: Mapping[str, Any], costs: Any, tokens: Any, ids: str | None) -> Costs:
    """The costs of the runs of a report, by measured costs and by lengths of passages."""
    from rag_selectivity.advice.costs import read_costs

    judged = {name: run.judged for name, run in report.runs.items() if run.judged is not None}
    return read_costs(judged, runs, costs=costs, tokens=tokens, ids=ids, bootstrap=report.bootstrap)
