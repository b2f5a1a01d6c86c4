"""Plots on matplotlib axes: `ax=None` makes new axes, and every function returns its axes.

The sizes fit a column of a paper; the colours can be told apart by colour-blind readers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.measures import (
    PROC,
    BoR,
    BoR_max,
    IPrec,
    Measure,
    Outcome,
    PercentPROC,
    Success,
    parse_measure,
)
from rag_selectivity.measures.base import MEAN
from rag_selectivity.measures.chance import COLLAPSE_FROM, DEGRADED_FROM
from rag_selectivity.measures.plan import at_depth
from rag_selectivity.planning import plan
from rag_selectivity.results.comparison import Comparison
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.statistics.bootstrap import Bootstrap

# The palette of Okabe and Ito.
BLUE, GREY, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#666666", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
_OF_RUNS = (BLUE, ORANGE, GREEN, PURPLE, SKY, GREY)
_MARKERS = "osD^vP"
#: From grade 5 to grade 1; unjudged passages are grey, empty slots white.
_OF_GRADES = {5: "#004B76", 4: BLUE, 3: "#9CCBE8", 2: "#F0B27A", 1: ORANGE, 0: ORANGE}
_UNJUDGED, _EMPTY = "#BBBBBB", "#F4F4F4"


def selectivity(report: Report, run: str | None = None, ax: Any = None, *, measure: str | Measure = "BoR") -> Any:
    """BoR with its interval and ceiling over K, and the success rate on a second axis.

    The report must hold `BoR`, `BoR_max` and `Success` at common depths, with the `rel` and `m` of the measure.
    """
    axes = _axes(ax, "plots.selectivity")
    name = run if run is not None else next(iter(report.runs))
    base = parse_measure(measure)
    most, hits = _beside(base)
    depths = np.array(report.depths)
    bor = [report[name, base @ depth] for depth in report.depths]
    ceiling = [report[name, most @ k].value for k in report.depths]
    axes.plot(depths, ceiling, "--", color=GREY, label="ceiling")
    axes.plot(depths, [cell.value for cell in bor], "o-", color=BLUE, label="BoR")
    axes.fill_between(depths, [c.low for c in bor], [c.high for c in bor], color=BLUE, alpha=0.2, linewidth=0)
    axes.set(xscale="log", xlabel="K (passages given to the LLM)", ylabel="bits over random")
    _ticks(axes, report.depths)
    worst = min([0.0, *(cell.low for cell in bor if np.isfinite(cell.low))])
    axes.set_ylim(bottom=worst)
    axes.set_title(name, pad=26)
    beside = axes.twinx()
    success = [report[name, hits @ k].value for k in report.depths]
    beside.plot(depths, success, "s:", color=ORANGE, label="success")
    beside.set(ylim=(0, 1.05), ylabel="success rate")
    lines = axes.get_lines() + beside.get_lines()
    _legend_above(axes, lines, [line.get_label() for line in lines])
    return axes


def collapse(report: Report, run: str | None = None, ax: Any = None, *, measure: str | Measure = "BoR") -> Any:
    """BoR and its ceiling over the success of a random draw, with the degraded and the collapse zone.

    The report must hold `BoR` and `BoR_max` at common depths, with the `rel` and `m` of the measure.
    """
    axes = _axes(ax, "plots.collapse")
    name = run if run is not None else next(iter(report.runs))
    base = parse_measure(measure)
    most, _ = _beside(base)
    ceiling = np.array([report[name, most @ k].value for k in report.depths])
    if not np.isfinite(ceiling).any():
        raise InputError(f"plots.collapse: {most} of {name} is undefined or infinite at every depth")
    chance = 2.0**-ceiling
    axes.plot(chance, ceiling, "--", color=GREY, label="ceiling")
    bor = [report[name, base @ k].value for k in report.depths]
    axes.plot(chance, bor, "o-", color=BLUE, label="BoR")
    for k, x, y in zip(report.depths, chance.tolist(), bor, strict=True):
        if np.isfinite(y):
            axes.annotate(str(k), (x, y), textcoords="offset points", xytext=(4, 5), fontsize="small")
    drawable = chance[chance > 0]
    _zones(axes, DEGRADED_FROM, COLLAPSE_FROM, 1.0)
    axes.set(
        xscale="log", xlim=(min([0.5, *drawable.tolist()]) / 1.5, 1.0), xlabel="success of a random draw", ylabel="bits"
    )
    axes.set_ylim(bottom=min([0.0, *(y for y in bor if np.isfinite(y))]))
    axes.legend(frameon=False, fontsize="small")
    return axes


def ceiling(corpus_size: int, relevant: int, shown: Mapping[str, float] | None = None, ax: Any = None) -> Any:
    """The ceiling of BoR over K, with the degraded and the collapse zone.

    `shown` maps names of systems to the K that each uses; these are marked.
    """
    axes = _axes(ax, "plots.ceiling")
    marks = dict(shown or {})
    spread = np.unique(np.geomspace(1, corpus_size, 60).round().astype(int))
    depths = sorted({*spread.tolist(), *(max(1, round(k)) for k in marks.values())})
    rows = {row["K"]: row for row in plan(corpus_size, relevant, depths)["rows"]}
    axes.plot(depths, [rows[k]["BoR_max"] for k in depths], color=GREY, label="ceiling")
    degraded, lost = (
        plan(corpus_size, relevant, [1], max_random_success=most)["max_K_for_random_success"] + 1
        for most in (DEGRADED_FROM, COLLAPSE_FROM)
    )
    _zones(axes, degraded, lost, float(corpus_size))
    for i, (name, k) in enumerate(marks.items()):
        most = rows[max(1, round(k))]["BoR_max"]
        axes.plot([k], [most], "o", color=_OF_RUNS[i % len(_OF_RUNS)], label=f"{name}: K = {k:.3g}", clip_on=False)
    axes.set(xscale="log", xlabel=f"K of N = {corpus_size:,}", ylabel="bits over random, at most", ylim=(0, None))
    _ticks(axes, [k for k in (1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000) if k <= corpus_size])
    axes.legend(loc="lower left", frameon=False, fontsize="small")
    return axes


def evidence(report: Report, run: str | None = None, depth: int | None = None, ax: Any = None) -> Any:
    """Which step lost evidence: a dot for each query at its PROC (retriever) and %PROC (reranker or selection).

    A dot is darker if several queries share it. The cross marks the means. Default depth: the largest K at which
    something was selected.
    """
    axes = _axes(ax, "plots.evidence")
    name = run if run is not None else next(iter(report.runs))
    part = report.runs[name]
    brought, picked = PROC(), PercentPROC()
    known = [
        k for k in report.depths if all(at_depth(part.per_query, base, k) is not None for base in (brought, picked))
    ]
    if depth is None:
        # The largest K at which something was selected: %PROC is undefined where the list is the whole pool.
        usable = [k for k in known if report[name, picked @ k].n]
        if not usable:
            raise InputError("plots.evidence needs PROC and %PROC at a K at which something was selected from a pool")
        depth = usable[-1]
    if depth not in known:
        raise InputError(f"plots.evidence needs PROC and %PROC of every query at K = {depth}")
    proc, share = (part.per_query[str(base @ depth)] for base in (brought, picked))
    both = np.isfinite(proc) & np.isfinite(share)
    axes.scatter(proc[both], share[both], s=22, color=BLUE, alpha=0.35, linewidths=0, label=f"{both.sum()} queries")
    means = report[name, brought @ depth].value, report[name, picked @ depth].value
    axes.plot(*means, "P", color=ORANGE, markersize=10, label=f"mean: {means[0]:.2f} × {means[1]:.2f}")
    axes.axhline(0.8, color=GREY, linewidth=0.8, linestyle=":")
    axes.axvline(0.8, color=GREY, linewidth=0.8, linestyle=":")
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    axes.set(xlabel=f"{brought @ depth}: in the pool", ylabel=f"{picked @ depth}: selected from it")
    _legend_above(axes, *axes.get_legend_handles_labels())
    return axes


def precision_recall(report: Report, ax: Any = None) -> Any:
    """Interpolated precision over recall, a curve for each run; `IPrec` must have been measured."""
    axes = _axes(ax, "plots.precision_recall")
    for i, (name, part) in enumerate(report.runs.items()):
        curve = curve_of(part)
        if not curve:
            raise InputError("plots.precision_recall needs the measure IPrec: evaluate with it")
        levels = sorted(curve)
        axes.plot(levels, [curve[level].value for level in levels], **_style(i), label=name)
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="recall", ylabel="precision (interpolated)")
    axes.legend(frameon=False, fontsize="small")
    return axes


def curve_of(part: RunReport) -> dict[float, Estimate]:
    """The precision–recall curve of a run: IPrec by its recall levels, whatever its `rel`."""
    measured = [(parse_measure(key), estimate) for key, estimate in part.estimates.items()]
    return {float(m.at): estimate for m, estimate in measured if isinstance(m, IPrec) and m.at is not None}


def answer_quality(
    report: Report,
    quality: Mapping[int, Mapping[str, float] | Sequence[float]],
    run: str | None = None,
    ax: Any = None,
    *,
    bootstrap: Bootstrap = Bootstrap(),
    measure: str | Measure = "BoR",
) -> Any:
    """Mean answer quality over K with its interval, and BoR on a second axis.

    `quality` is {K: {query: score}} or {K: [score, …]}: scores of the answers, from people or from a judge.
    """
    axes = _axes(ax, "plots.answer_quality")
    name = run if run is not None else next(iter(report.runs))
    depths = sorted(quality)
    if not depths:
        raise InputError("plots.answer_quality: there are no scores; give quality={K: {query: score}}")
    means, low, high = [], [], []
    for depth in depths:
        at_depth = quality[depth]
        scores = np.array(list(at_depth.values() if isinstance(at_depth, Mapping) else at_depth), np.float64)[:, None]
        outcome = Outcome((scores,), "no scores", MEAN, bounds=None)
        below, above = bootstrap.intervals([outcome])[0]
        means.append(float(outcome.value()[0]))
        low.append(float(below[0]))
        high.append(float(above[0]))
    axes.plot(depths, means, "D-", color=GREEN, label="answer quality")
    axes.fill_between(depths, low, high, color=GREEN, alpha=0.2, linewidth=0)
    axes.set(xscale="log", xlabel="K (passages given to the LLM)", ylabel="mean answer quality")
    shared = [k for k in report.depths if depths[0] <= k <= depths[-1]]
    beside = axes.twinx()
    base = parse_measure(measure)
    beside.plot(shared, [report[name, base @ k].value for k in shared], "o:", color=BLUE, label="BoR")
    beside.set_ylabel("bits over random")
    _ticks(axes, sorted({*depths, *shared}))
    lines = axes.get_lines() + beside.get_lines()
    _legend_above(axes, lines, [line.get_label() for line in lines])
    return axes


def grades(report: Report, run: str | None = None, depth: int | None = None, ax: Any = None) -> Any:
    """The shares of each grade, of unjudged passages and of empty slots at each rank, over the queries."""
    axes = _axes(ax, "plots.grades")
    name = run if run is not None else next(iter(report.runs))
    judged = report.runs[name].judged
    if judged is None:
        raise InputError("plots.grades needs the lists of the run, but the report holds only sums: evaluate in memory")
    reach = min(depth or 20, max(1, int(judged.returned.max(initial=1))))
    shares = judged.grades_by_rank(reach)
    bottom = np.zeros(reach)
    order = [*np.argsort(-judged.grades).tolist(), len(judged.grades), len(judged.grades) + 1]
    for column in order:
        if column < len(judged.grades):
            grade = int(judged.grades[column])
            label, colour = f"grade {grade}", _grade_colour(grade, judged.scale.name)
        else:
            taken = " (as junk)" if judged.policy.unjudged == "worst" else ""
            label, colour = (f"unjudged{taken}", _UNJUDGED) if column == len(judged.grades) else ("empty", _EMPTY)
        if shares[:, column].any():
            axes.bar(np.arange(1, reach + 1), shares[:, column], bottom=bottom, width=0.9, color=colour, label=label)
        bottom += shares[:, column]
    axes.set(xlim=(0.4, reach + 0.6), ylim=(0, 1), xlabel="rank", ylabel="share of the queries")
    axes.set_xticks([rank for rank in (1, 2, 3, 4, 5, 10, 15, 20, 30, 50, 100) if rank <= reach])
    handles, labels = axes.get_legend_handles_labels()
    _legend_above(axes, handles, labels, columns=4)
    return axes


def harm(report: Report, ax: Any = None, *, measure: str = "Harm") -> Any:
    """The share of junk over K, a curve with its interval for each run.

    If lists are judged in part, a dotted curve above it counts every unjudged passage as junk.
    """
    axes = _axes(ax, "plots.harm")
    base = parse_measure(measure)
    for i, name in enumerate(report.runs):
        cells = [report[name, base @ k] for k in report.depths]
        style = _style(i)
        axes.plot(report.depths, [cell.value for cell in cells], **style, label=name)
        axes.fill_between(
            report.depths, [c.low for c in cells], [c.high for c in cells], color=style["color"], alpha=0.2, linewidth=0
        )
        if any(cell.possible for cell in cells):
            most = [cell.possible[1] if cell.possible else cell.value for cell in cells]
            axes.plot(report.depths, most, ":", color=style["color"], label=f"{name}, if all unjudged are junk")
    axes.set(xscale="log", ylim=(0, 1), xlabel="K (passages given to the LLM)", ylabel=f"{base}: share of junk")
    _ticks(axes, report.depths)
    axes.legend(frameon=False, fontsize="small")
    return axes


def forest(comparison: Comparison, ax: Any = None) -> Any:
    """Every difference from the baseline run with its interval; filled if it is shown after Holm's correction."""
    rows = [row for row in comparison.rows if math.isfinite(row.difference)]
    axes = _axes(ax, "plots.forest", height=1.2 + 0.28 * max(1, len(rows)))
    for y, row in enumerate(reversed(rows)):
        shown = row.verdict != "no difference shown"
        colour = {"better": GREEN, "worse": ORANGE}.get(row.verdict, GREY)
        axes.plot([row.low, row.high], [y, y], "-", color=colour, linewidth=1.6)
        axes.plot([row.difference], [y], "o", color=colour, markerfacecolor=colour if shown else "none")
    several = len({row.run for row in rows}) > 1
    labels = [f"{row.measure}{f' ({row.run})' if several else ''}" for row in reversed(rows)]
    axes.set_yticks(range(len(rows)), labels)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set(xlabel=f"difference from {comparison.baseline}", ylim=(-0.7, len(rows) - 0.3))
    return axes


# -- shared --------------------------------------------------------------------------------------------


def _axes(ax: Any, what: str, height: float = 3.6) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", "report", what) from None
    return plt.subplots(figsize=(5.2, height), layout="constrained")[1]


def _style(i: int) -> dict[str, Any]:
    return {
        "color": _OF_RUNS[i % len(_OF_RUNS)],
        "marker": _MARKERS[i % len(_MARKERS)],
        "linestyle": "-" if i < len(_OF_RUNS) else "--",
    }


def _grade_colour(grade: int, scale: str) -> str:
    if scale == "utility":
        return _OF_GRADES[grade]
    return ORANGE if grade == 0 else {1: "#9CCBE8", 2: BLUE}.get(grade, "#004B76")


def _ticks(axes: Any, depths: Sequence[int]) -> None:
    axes.set_xticks(depths, [f"{depth:,}" for depth in depths])
    axes.minorticks_off()


def _beside(measure: Measure) -> tuple[Measure, Measure]:
    """BoR_max and Success with the `rel` and `m` of a BoR."""
    if not isinstance(measure, BoR):
        raise InputError(f"this plot needs a BoR as its measure, got {measure.name}")
    return BoR_max(rel=measure.rel, m=measure.m), Success(rel=measure.rel, m=measure.m)


def _zones(axes: Any, degraded: float, lost: float, end: float) -> None:
    if degraded < end:
        axes.axvspan(degraded, min(lost, end), color=ORANGE, alpha=0.12, linewidth=0, label="degraded: chance ≥ 63%")
    if lost < end:
        axes.axvspan(lost, end, color=ORANGE, alpha=0.3, linewidth=0, label="collapse: chance ≥ 95%")


def _legend_above(axes: Any, handles: Sequence[Any], labels: Sequence[str], columns: int = 3) -> None:
    axes.legend(
        handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, frameon=False, fontsize="small"
    )
