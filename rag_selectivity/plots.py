"""Plots, drawn on matplotlib axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rag_selectivity.errors import MissingExtraError
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.planning import plan
from rag_selectivity.report.report import Report

# Okabe and Ito's colours, told apart by colour-blind readers too.
_BLUE, _GREY, _ORANGE, _GREEN = "#0072B2", "#666666", "#D55E00", "#009E73"


def collapse(corpus_size: int, relevant: int, shown: Mapping[str, float] | None = None, ax: Any = None) -> Any:
    """The most bits that any selection of K can show, over K, with the zones of lambda behind it.

    `shown` marks the K's of systems by their names. Returns the axes.
    """
    axes = _axes(ax, "plots.collapse")
    marks = dict(shown or {})
    spread = np.unique(np.geomspace(1, corpus_size, 60).round().astype(int))
    depths = sorted({*spread.tolist(), *(max(1, round(k)) for k in marks.values())})
    rows = {row["K"]: row for row in plan(corpus_size, relevant, depths)["rows"]}
    axes.plot(depths, [rows[k]["BoR_max"] for k in depths], color=_GREY, label="ceiling")
    for start, end, shade, name in ((1, 3, 0.12, "degraded"), (3, np.inf, 0.3, "collapse")):
        left, right = start * corpus_size / relevant, min(end * corpus_size / relevant, corpus_size)
        if left < corpus_size:
            axes.axvspan(left, right, color=_ORANGE, alpha=shade, linewidth=0, label=f"{name}: lambda ≥ {start}")
    for (name, k), colour in zip(marks.items(), (_BLUE, _ORANGE, _GREEN, _GREY) * len(marks), strict=False):
        axes.plot(
            [k], [rows[max(1, round(k))]["BoR_max"]], "o", color=colour, label=f"{name}: K = {k:.3g}", clip_on=False
        )
    axes.set(xscale="log", xlabel=f"K of N = {corpus_size}", ylabel="bits over random, at most", ylim=(0, None))
    ticks = [k for k in (1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000) if k <= corpus_size]
    axes.set_xticks(ticks, [f"{k:,}" for k in ticks])
    axes.minorticks_off()
    axes.legend(loc="lower left", frameon=False)
    return axes


def _axes(ax: Any, what: str) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", "report", what) from None
    return plt.subplots(figsize=(5.2, 3.6))[1]


def selectivity(report: Report, run: str | None = None, ax: Any = None, *, measure: str = "BoR") -> Any:
    """BoR with its interval and ceiling over K, and success beside it.

    The report must hold `BoR`, `BoR_max` and `Success` at common depths. Returns the axes.
    """
    name = run if run is not None else next(iter(report.runs))
    axes = _axes(ax, "plots.selectivity")
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
