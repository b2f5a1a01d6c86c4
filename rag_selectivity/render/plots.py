"""Plots on matplotlib axes: `ax=None` makes new axes, and every function returns its axes.

The sizes fit a column of a paper; the colours can be told apart by colour-blind readers. Plots of several runs give
each run the same colour, marker and line style everywhere, by its place in the report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_selectivity.advice.planning import plan
from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.measures import Measure, Outcome, parse_measure
from rag_selectivity.measures.chance import COLLAPSE_FROM, DEGRADED_FROM, BoR, BoR_max, Success
from rag_selectivity.measures.classic import IPrec
from rag_selectivity.measures.outcome import MEAN
from rag_selectivity.measures.plan import at_depth
from rag_selectivity.measures.utility import PROC, PercentPROC
from rag_selectivity.render.labels import axes_for, direct_labels
from rag_selectivity.render.run_styles import name_of_pair, plot_text, shortened, style_of_run
from rag_selectivity.results.comparison import Comparison, RunDifference
from rag_selectivity.results.decision import Decision, Pair
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import RunReport

# The palette of Okabe and Ito.
BLUE, GREY, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#666666", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
#: From grade 5 to grade 1; unjudged passages are grey, empty slots white.
_OF_GRADES = {5: "#004B76", 4: BLUE, 3: "#9CCBE8", 2: "#F0B27A", 1: ORANGE, 0: ORANGE}
_UNJUDGED, _EMPTY = "#BBBBBB", "#F4F4F4"
#: What `Report.diagnosis` says of queries, with light colours, in the order of the bars.
OF_LOSSES = {
    "retriever-limited": "#f5cf9a",
    "selection-limited": "#a9d3ee",
    "limited by both": "#e0c3da",
    "healthy": "#dfe3e8",
    "undefined": "#f7f8f9",
}
#: Bands of more runs than this would cover each other.
_BANDS = 2
#: The least distance of two ticks, as a share of the axis.
_TICK_SPACE = 0.075
#: Of more pairs of runs than this, `differences` draws those with the best run alone.
_PAIRS = 21
#: How far apart the bars of runs at one K are, and those of the first and the last run, as ratios on a log axis.
_BESIDE, _ALL_BESIDE = 1.06, 1.4


def over_k(report: Report, measure: str | Measure, ax: Any = None, *, depth: int | None = None) -> Any:
    """A measure over K, a curve for each run, as far as its lists reach.

    One or two runs have their intervals as bands. More runs have theirs as lines at `depth`, the K that is marked.
    Beside Success stands that of a random draw, if BoR_max was measured with the same parameters.
    """
    base = parse_measure(measure)
    refuse_unmeasured(report, "plots.over_k", base)
    axes = axes_for(ax, "plots.over_k")
    ends = _curves(report, base, axes, depth)
    if isinstance(base, Success):
        most = BoR_max(rel=base.rel, m=base.m)
        depths = depths_of(report, next(iter(report.runs)), most)
        if depths:
            chance = [2.0 ** -report[next(iter(report.runs)), most @ k].value for k in depths]
            axes.plot(depths, chance, "--", color=GREY, linewidth=1, label="random draw")
            ends.append(("random draw", *_last(depths, chance), GREY))
        axes.set_ylim(top=1.02)
    axes.set(ylabel=str(base))
    axes.set_ylim(bottom=0)
    direct_labels(axes, ends)
    return axes


def selectivity(report: Report, ax: Any = None, *, measure: str | Measure = "BoR", depth: int | None = None) -> Any:
    """BoR and its ceiling over K, a curve for each run; intervals and `depth` as in `over_k`.

    The report must hold `BoR` and `BoR_max` at common depths, with the `rel` and `m` of the measure.
    """
    base = parse_measure(measure)
    most = _ceiling_of(base)
    refuse_unmeasured(report, "plots.selectivity", base, most)
    axes = axes_for(ax, "plots.selectivity")
    ends = _curves(report, base, axes, depth)
    drawn: list[list[float]] = []
    for name in report.runs:
        depths = depths_of(report, name, most)
        values = [report[name, most @ k].value for k in depths]
        # Runs with the same queries have one ceiling, as far as their lists reach.
        if depths and not any(_same_start(values, other) for other in drawn):
            axes.plot(depths, values, "--", color=GREY, linewidth=1, label="ceiling")
            drawn.append(values)
    axes.set(ylabel="bits over random")
    cells = [report[name, base @ k] for name in report.runs for k in depths_of(report, name, base)]
    axes.set_ylim(bottom=min([0.0, *(cell.low for cell in cells if math.isfinite(cell.low))]))
    if drawn and math.isfinite(drawn[0][0]):
        axes.annotate(
            "ceiling", (report.depths[0], drawn[0][0]), xytext=(8, 1), textcoords="offset points", color=GREY,
            fontsize="small",
        )  # fmt: skip
    direct_labels(axes, ends)
    return axes


def harm(report: Report, ax: Any = None, *, measure: str = "Harm", depth: int | None = None) -> Any:
    """The share of junk over K: for each run and K a bar over the possible range, or a dot with its interval.

    The range goes from no junk among the unjudged passages to nothing but junk among them.
    """
    base = parse_measure(measure)
    refuse_unmeasured(report, "plots.harm", base)
    axes = axes_for(ax, "plots.harm")
    _over_k(axes, report.depths, depth)
    shown = ticks_of(report.depths, depth)
    labels = []
    for i, name in enumerate(report.runs):
        depths = [k for k in depths_of(report, name, base) if k in shown]
        cells = [report[name, base @ k] for k in depths]
        beside = [_beside_each_other(k, i, len(report.runs)) for k in depths]
        style = style_of_run(i)
        for x, cell in zip(beside, cells, strict=True):
            low, high = cell.possible or (cell.low, cell.high)
            axes.plot([x, x], [low, high], color=style["color"], linewidth=2 if cell.possible else 1.4, alpha=0.75)
        tops = [cell.value if cell.possible is None else cell.possible[1] for cell in cells]
        axes.plot(beside, tops, **{**style, "linestyle": "none"}, label=plot_text(name))
        labels.append((shortened(name), *_last(beside, tops), style["color"]))
    axes.set(ylim=(0, 1.02), ylabel=f"{base}: share of junk")
    direct_labels(axes, labels)
    return axes


def evidence(report: Report, depth: int, ax: Any = None) -> Any:
    """Which step lost evidence: for each run, the number of queries with each answer of `Report.diagnosis`."""
    pair = [measure @ depth for measure in (PROC(), PercentPROC())]
    runs = [name for name, part in report.runs.items() if all(str(each) in part.per_query for each in pair)]
    if not runs:
        raise InputError(f"plots.evidence needs PROC and %PROC of every query at K = {depth}")
    axes = axes_for(ax, "plots.evidence")
    handles = {}
    for y, name in enumerate(reversed(runs)):
        counts = dict(report.diagnosis(name, depth).counts)
        counts["undefined"] = report.runs[name].evaluated - sum(counts.values())
        left = 0
        for answer, colour in OF_LOSSES.items():
            count = counts.get(answer, 0)
            if not count:
                continue
            handles[answer] = axes.barh(
                y, count, left=left, color=colour, edgecolor=GREY, linewidth=0.5, height=0.72, label=answer
            )
            if count >= 0.05 * report.runs[name].evaluated:
                axes.text(left + count / 2, y, str(count), ha="center", va="center_baseline", fontsize="small")
            left += count
    axes.set_yticks(range(len(runs)), [plot_text(shortened(name)) for name in reversed(runs)])
    for label, name in zip(axes.get_yticklabels(), reversed(runs), strict=True):
        label.set_color(style_of_run(list(report.runs).index(name))["color"])
    axes.set(xlabel=f"queries, at K = {depth}")
    axes.margins(x=0)
    order = [answer for answer in OF_LOSSES if answer in handles]
    _legend_above(axes, [handles[answer] for answer in order], order)
    return axes


def pairs_shown(decision: Decision) -> list[Pair]:
    """The pairs whose difference is known: all of them, or those with the best run if there are many."""
    known = [pair for pair in decision.pairs if math.isfinite(pair.difference)]
    return known if len(known) <= _PAIRS else [pair for pair in known if decision.best in (pair.run, pair.other)]


def differences(decision: Decision, ax: Any = None) -> Any:
    """The differences of the pairs of `pairs_shown` with their intervals; filled if two runs can be told apart."""
    pairs = [
        (name_of_pair(pair.run, pair.other), pair, GREEN if pair.apart else GREY, pair.apart)
        for pair in pairs_shown(decision)
    ]
    return _intervals(
        axes_for(ax, "plots.differences", height=1.2 + 0.28 * max(1, len(pairs))),
        pairs,
        f"difference in {decision.measure}",
    )


def precision_recall(report: Report, ax: Any = None) -> Any:
    """Interpolated precision over recall, a curve for each run; `IPrec` must have been measured."""
    axes = axes_for(ax, "plots.precision_recall")
    labels = []
    for i, (name, part) in enumerate(report.runs.items()):
        curve = curve_of(part)
        if not curve:
            raise InputError("plots.precision_recall needs the measure IPrec: evaluate with it")
        levels = sorted(curve)
        values, style = [curve[level].value for level in levels], style_of_run(i)
        axes.plot(levels, values, **style, label=plot_text(name))
        labels.append((shortened(name), *_last(levels, values), style["color"]))
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="recall", ylabel="precision (interpolated)")
    direct_labels(axes, labels)
    return axes


def curve_of(part: RunReport) -> dict[float, Estimate]:
    """The precision–recall curve of a run: IPrec by its recall levels, whatever its `rel`."""
    measured = [(parse_measure(key), estimate) for key, estimate in part.estimates.items()]
    return {float(m.at): estimate for m, estimate in measured if isinstance(m, IPrec) and m.at is not None}


def answer_quality(
    quality: Mapping[int, Mapping[str, float] | Sequence[float]], ax: Any = None, *, bootstrap: Bootstrap = Bootstrap()
) -> Any:
    """Mean answer quality over K with its interval.

    `quality` is {K: {query: score}} or {K: [score, …]}: scores of the answers, from people or from a judge.
    """
    depths = sorted(quality)
    if not depths:
        raise InputError("plots.answer_quality: there are no scores; give quality={K: {query: score}}")
    axes = axes_for(ax, "plots.answer_quality")
    means, low, high = [], [], []
    for depth in depths:
        given = quality[depth]
        scores = np.array(list(given.values() if isinstance(given, Mapping) else given), np.float64)[:, None]
        outcome = Outcome((scores,), "no scores", MEAN, bounds=None)
        below, above = bootstrap.intervals([outcome])[0]
        means.append(float(outcome.value()[0]))
        low.append(float(below[0]))
        high.append(float(above[0]))
    axes.plot(depths, means, "D-", color=GREEN, label="answer quality")
    axes.fill_between(depths, low, high, color=GREEN, alpha=0.2, linewidth=0)
    axes.set(ylabel="mean answer quality")
    _over_k(axes, depths, None)
    return axes


def collapse(report: Report, run: str | None = None, ax: Any = None, *, measure: str | Measure = "BoR") -> Any:
    """BoR and its ceiling over the success of a random draw, with the degraded and the collapse zone.

    The report must hold `BoR` and `BoR_max` at common depths, with the `rel` and `m` of the measure.
    """
    axes = axes_for(ax, "plots.collapse")
    name = run if run is not None else next(iter(report.runs))
    base = parse_measure(measure)
    most = _ceiling_of(base)
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
    axes = axes_for(ax, "plots.ceiling")
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
        label = plot_text(f"{name}: K = {k:.3g}")
        axes.plot([k], [most], "o", color=style_of_run(i)["color"], label=label, clip_on=False)
    axes.set(xscale="log", xlabel=f"K of N = {corpus_size:,}", ylabel="bits over random, at most", ylim=(0, None))
    _ticks(axes, [k for k in (1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000) if k <= corpus_size])
    axes.legend(loc="lower left", frameon=False, fontsize="small")
    return axes


def grades(report: Report, run: str | None = None, depth: int | None = None, ax: Any = None) -> Any:
    """The shares of each grade, of unjudged passages and of empty slots at each rank, over the queries."""
    axes = axes_for(ax, "plots.grades")
    name = run if run is not None else next(iter(report.runs))
    if name not in report.runs:
        raise InputError(f"no run {name!r}{did_you_mean(name, report.runs)} (runs: {', '.join(report.runs)})")
    judged = report.runs[name].judged
    if judged is None:
        raise InputError("plots.grades needs the lists of the run, but the report holds only sums: make it by evaluate")
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


def forest(comparison: Comparison, ax: Any = None) -> Any:
    """Every difference from the baseline run with its interval; filled if it is shown after Holm's correction."""
    rows = [row for row in comparison.rows if math.isfinite(row.difference)]
    several = len({row.run for row in rows}) > 1
    drawn = [
        (
            f"{row.measure} ({plot_text(row.run)})" if several else str(row.measure),
            row,
            {"better": GREEN, "worse": ORANGE}.get(row.verdict, GREY),
            row.verdict != "no difference shown",
        )
        for row in rows
    ]
    axes = axes_for(ax, "plots.forest", height=1.2 + 0.28 * max(1, len(rows)))
    return _intervals(axes, drawn, f"difference from {plot_text(comparison.baseline)}")


# -- shared --------------------------------------------------------------------------------------------


def depths_of(report: Report, run: str, base: Measure) -> list[int]:
    """The depths at which the report holds the measure, up to the first that is no less than the run's longest list."""
    part = report.runs[run]
    depths = [k for k in report.depths if at_depth(part.estimates, base, k)]
    if part.judged is None:
        return depths
    longest = int(part.judged.returned.max(initial=1))
    return [k for i, k in enumerate(depths) if i == 0 or depths[i - 1] < longest]


def refuse_unmeasured(report: Report, plot: str, *measures: Measure) -> None:
    """Raise an InputError that names the first of these measures which no run has at any depth."""
    for measure in measures:
        if not any(depths_of(report, run, measure) for run in report.runs):
            mend = report.absent.get(measure.name, f"evaluate with measures=[…, '{measure}'] and depths=[…]")
            raise InputError(f"{plot} needs the measure {measure} at some depth, which the report lacks: {mend}")


def ticks_of(depths: Sequence[int], depth: int | None = None) -> list[int]:
    """The depths that have room for a label on a log axis: `depth`, the ends, 1, 2, 5, 10, … and then the others.

    >>> ticks_of([1, 2, 5, 10, 17, 20, 50, 100, 200], 17)
    [1, 2, 5, 10, 17, 50, 100, 200]
    """
    if len(depths) < 2:
        return list(depths)
    width = math.log(depths[-1] / depths[0])
    steps = [k for k in depths if str(k).rstrip("0") in ("1", "2", "5")]
    chosen: list[int] = []
    first = [] if depth is None or depth not in depths else [depth]
    for k in dict.fromkeys([*first, depths[0], depths[-1], *steps, *depths]):
        if all(abs(math.log(k / other)) >= _TICK_SPACE * width for other in chosen):
            chosen.append(k)
    return sorted(chosen)


def _curves(report: Report, base: Measure, axes: Any, depth: int | None) -> list[tuple[str, float, float, str]]:
    """The curves of all runs over K; what `direct_labels` writes at their ends."""
    ends = []
    for i, name in enumerate(report.runs):
        depths = depths_of(report, name, base)
        cells = [report[name, base @ k] for k in depths]
        style = style_of_run(i)
        axes.plot(depths, [cell.value for cell in cells], **style, label=plot_text(name))
        if len(report.runs) <= _BANDS:
            low, high = [cell.low for cell in cells], [cell.high for cell in cells]
            axes.fill_between(depths, low, high, color=style["color"], alpha=0.18, linewidth=0)
        elif depth is not None and depth in depths:
            cell, beside = report[name, base @ depth], _beside_each_other(depth, i, len(report.runs))
            axes.plot([beside] * 2, [cell.low, cell.high], color=style["color"], linewidth=2, alpha=0.7)
        ends.append((shortened(name), *_last(depths, [cell.value for cell in cells]), style["color"]))
    _over_k(axes, report.depths, depth)
    return ends


def _intervals(axes: Any, rows: Sequence[tuple[str, Pair | RunDifference, str, bool]], xlabel: str) -> Any:
    """Differences with their intervals, the first at the top: each has a label, a colour, and whether it is filled."""
    for y, (_, row, colour, filled) in enumerate(reversed(rows)):
        axes.plot([row.low, row.high], [y, y], "-", color=colour, linewidth=1.6)
        axes.plot([row.difference], [y], "o", color=colour, markerfacecolor=colour if filled else "none")
    axes.set_yticks(range(len(rows)), [label for label, *_ in reversed(rows)])
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set(xlabel=xlabel, ylim=(-0.7, len(rows) - 0.3))
    return axes


def _over_k(axes: Any, depths: Sequence[int], depth: int | None) -> None:
    """A log axis of K, with a line at `depth`."""
    axes.set(xscale="log", xlabel="K (passages given to the LLM)")
    if depths:
        axes.set_xlim(depths[0] / 1.15, depths[-1] * 1.15)
    _ticks(axes, ticks_of(depths, depth))
    if depth is not None:
        axes.axvline(depth, color=GREY, linewidth=0.8, linestyle=":", zorder=0)


def _same_start(values: Sequence[float], other: Sequence[float]) -> bool:
    length = min(len(values), len(other))
    return bool(np.allclose(values[:length], other[:length], equal_nan=True))


def _last(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """The last point that can be drawn."""
    known = [(float(x), float(y)) for x, y in zip(xs, ys, strict=True) if math.isfinite(y)]
    return known[-1] if known else (math.nan, math.nan)


def _beside_each_other(k: float, place: int, runs: int) -> float:
    """A place near K on a log axis, so that the bars of several runs do not cover each other."""
    step = min(_BESIDE, _ALL_BESIDE ** (1 / max(1, runs - 1)))
    return float(k * step ** (place - (runs - 1) / 2))


def _grade_colour(grade: int, scale: str) -> str:
    if scale == "utility":
        return _OF_GRADES[grade]
    return ORANGE if grade == 0 else {1: "#9CCBE8", 2: BLUE}.get(grade, "#004B76")


def _ticks(axes: Any, depths: Sequence[int]) -> None:
    axes.set_xticks(depths, [f"{depth:,}" for depth in depths])
    axes.minorticks_off()


def _ceiling_of(measure: Measure) -> Measure:
    """BoR_max with the `rel` and `m` of a BoR."""
    if not isinstance(measure, BoR):
        raise InputError(f"this plot needs a BoR as its measure, got {measure.name}")
    return BoR_max(rel=measure.rel, m=measure.m)


def _zones(axes: Any, degraded: float, lost: float, end: float) -> None:
    if degraded < end:
        axes.axvspan(degraded, min(lost, end), color=ORANGE, alpha=0.12, linewidth=0, label="degraded: chance ≥ 63%")
    if lost < end:
        axes.axvspan(lost, end, color=ORANGE, alpha=0.3, linewidth=0, label="collapse: chance ≥ 95%")


def _legend_above(axes: Any, handles: Sequence[Any], labels: Sequence[str], columns: int = 3) -> None:
    axes.legend(
        handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, frameon=False, fontsize="small"
    )
