"""Plots of a report, drawn on matplotlib axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from rag_selectivity.errors import MissingExtraError
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.report.report import Report

# Okabe and Ito's colours, told apart by colour-blind readers too.
_BLUE, _GREY, _ORANGE = "#0072B2", "#666666", "#D55E00"


def selectivity(report: Report, run: str | None = None, ax: Any = None, *, measure: str = "BoR") -> Any:
    """BoR with its interval and ceiling over K, and success beside it.

    The report must hold `BoR`, `BoR_max` and `Success` at common depths. Returns the axes.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "plots.selectivity") from None
    name = run if run is not None else next(iter(report.runs))
    axes = ax if ax is not None else plt.subplots(figsize=(5.2, 3.6))[1]
    base = parse_measure(measure)
    depths = np.array(report.depths)
    bor = [report[name, base @ depth] for depth in report.depths]
    axes.plot(
        depths,
        [report[name, f"BoR_max@{k}"].value for k in report.depths],
        "--",
        color=_GREY,
        label="ceiling",
    )
    axes.plot(depths, [cell.value for cell in bor], "o-", color=_BLUE, label="BoR")
    axes.fill_between(depths, [c.low for c in bor], [c.high for c in bor], color=_BLUE, alpha=0.2, linewidth=0)
    axes.set(xscale="log", xlabel="K (passages given to the LLM)", ylabel="bits over random")
    axes.set_xticks(depths, [str(depth) for depth in depths], minor=False)
    axes.minorticks_off()
    worst = min([0.0, *(cell.low for cell in bor if np.isfinite(cell.low))])
    axes.set_ylim(bottom=worst)
    axes.set_title(name, pad=26)
    beside = axes.twinx()
    success = [report[name, f"Success@{k}"].value for k in report.depths]
    beside.plot(depths, success, "s:", color=_ORANGE, label="success")
    beside.set(ylim=(0, 1.05), ylabel="success rate")
    lines = axes.get_lines() + beside.get_lines()
    axes.legend(
        lines,
        [line.get_label() for line in lines],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        frameon=False,
    )
    return axes
