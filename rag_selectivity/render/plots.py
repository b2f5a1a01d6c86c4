"""Eight plots on matplotlib axes: `ax=None` makes new axes, and every function returns its axes.

The sizes fit a column of a paper; the colours can be told apart by colour-blind readers. Plots of several runs give
each run the same colour, marker and line style everywhere, by its place in the report, and a legend.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, needing
from rag_selectivity.measures import Measure, parse_measure
from rag_selectivity.measures.chance import COLLAPSE_FROM, DEGRADED_FROM, BoR, BoR_max, Success
from rag_selectivity.measures.classic import IPrec
from rag_selectivity.measures.plan import at_depth
from rag_selectivity.measures.utility import PROC, PercentPROC
from rag_selectivity.render.blocks import grouped
from rag_selectivity.render.writers import latex_text
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.difference import BETTER, WORSE
from rag_selectivity.results.report import Comparison, Report
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.wording import visible

# The palette of Okabe and Ito.
BLUE, GREY, ORANGE, GREEN = "#0072B2", "#666666", "#D55E00", "#009E73"
#: From grade 5 to grade 1; unjudged passages are grey, empty slots white.
_OF_GRADES = {5: "#004B76", 4: BLUE, 3: "#9CCBE8", 2: "#F0B27A", 1: ORANGE}
_UNJUDGED, _EMPTY = "#BBBBBB", "#F4F4F4"
#: What `Report.diagnosis` says of queries, with light colours, in the order of the bars.
OF_LOSSES = {
    "retriever-limited": "#f5cf9a",
    "selection-limited": "#a9d3ee",
    "limited by both": "#e0c3da",
    "healthy": "#dfe3e8",
    "undefined": "#f7f8f9",
}
_BARS = {"edgecolor": GREY, "linewidth": 0.5, "height": 0.72}
#: Bands of more runs than this would cover each other.
_BANDS = 2
#: A legend names so many runs; the table of a page names all.
_NAMED = 12
#: Of more pairs of runs than this, `forest` draws those with the best run alone.
MOST_PAIRS = 21
#: How far apart the bars of runs at one K are, and those of the first and the last run, as ratios on a log axis.
_BESIDE, _ALL_BESIDE = 1.06, 1.4

#: The colours of runs, by their place: the same palette, darkened so that text in it can be read on white.
OF_RUNS = ("#0072b2", "#b84f00", "#007a5a", "#a8447e", "#866000", "#4d5561")
#: The markers of matplotlib, and the same shapes as values of `clip-path` in CSS.
_SHAPES = {
    "o": "circle()",
    "s": "polygon(8% 8%,92% 8%,92% 92%,8% 92%)",
    "D": "polygon(50% 0%,100% 50%,50% 100%,0% 50%)",
    "P": "polygon(68% 0%,68% 32%,100% 32%,100% 68%,68% 68%,68% 100%,32% 100%,32% 68%,0% 68%,0% 32%,32% 32%,32% 0%)",
    "^": "polygon(50% 0%,0% 82%,100% 82%)",
    "h": "polygon(50% 0%,7% 25%,7% 75%,50% 100%,93% 75%,93% 25%)",
    "p": "polygon(50% 0%,2% 35%,21% 90%,79% 90%,98% 35%)",
}
_LINES = ("-", "--", ":", "-.")
#: Of so many characters plots have room for a name; for two of the shorter ones beside an axis.
_LONGEST_NAME, _LONGEST_OF_PAIR = 22, 15


def over_k(report: Report, measure: str | Measure, ax: Any = None, *, depth: int | None = None) -> Any:
    """A measure over K, a curve for each run, as far as its lists reach.

    One or two runs have their intervals as bands. More runs have theirs as lines at `depth`, the K that is marked.
    Beside Success stands that of a random draw, and beside BoR its ceiling, if BoR_max was measured with the same
    parameters.
    """
    base = parse_measure(measure)
    _refuse_unmeasured(report, "over_k", base)
    axes = _axes(ax, "over_k")
    lowest = _curves(report, base, axes, depth)
    if isinstance(base, (BoR, Success)):
        most = BoR_max(rel=base.rel, m=base.m)
        # Runs with the same queries have one ceiling; that of the longest list goes as far as any.
        depths, name = max(((_depths_of(report, run, most), run) for run in report.runs), key=lambda each: len(each[0]))
        beside = [report[name, most @ k].value for k in depths]
        label = "ceiling"
        if isinstance(base, Success):
            label, beside = "random draw", [2.0**-bits for bits in beside]
            axes.set_ylim(top=1.02)
        axes.plot(depths, beside, "--", color=GREY, linewidth=1, **({"label": label} if depths else {}))
    axes.set(ylabel="bits over random" if isinstance(base, BoR) else str(base), ylim=(lowest, None))
    return _with_legend(axes)


def selectivity(report: Report, ax: Any = None, *, measure: str | Measure = "BoR", depth: int | None = None) -> Any:
    """BoR and its ceiling over K, a curve for each run; intervals and `depth` as in `over_k`.

    The report must hold `BoR` and `BoR_max` at common depths, with the `rel` and `m` of the measure.
    """
    base = parse_measure(measure)
    _refuse_unmeasured(report, "selectivity", base, _ceiling_of(base))
    return over_k(report, base, ax, depth=depth)


def harm(report: Report, ax: Any = None, *, measure: str = "Harm", depth: int | None = None) -> Any:
    """The share of junk over K: for each run and K a dot with a bar over the possible range, or with its interval.

    The range goes from no junk among the unjudged passages to nothing but junk among them.
    """
    base = parse_measure(measure)
    _refuse_unmeasured(report, "harm", base)
    axes = _axes(ax, "harm")
    shown = _over_k(axes, report.depths, depth)
    for i, name in enumerate(report.runs):
        style = style_of_run(i)
        cells = {k: report[name, base @ k] for k in _depths_of(report, name, base) if k in shown}
        beside = [_beside_each_other(k, i, len(report.runs)) for k in cells]
        for x, cell in zip(beside, cells.values(), strict=True):
            low, high = cell.possible or (cell.low, cell.high)
            axes.plot([x, x], [low, high], color=style["color"], linewidth=2 if cell.possible else 1.4, alpha=0.75)
        figures = [cell.value for cell in cells.values()]
        axes.plot(beside, figures, **{**style, "linestyle": "none"}, label=plot_text(shortened(name)))
    axes.set(ylim=(0, 1.02), ylabel=f"{base}: share of junk")
    return _with_legend(axes)


def evidence(report: Report, depth: int, ax: Any = None) -> Any:
    """Which step lost evidence: for each run, the number of queries with each answer of `Report.diagnosis`."""
    pair = [str(measure @ depth) for measure in (PROC(), PercentPROC())]
    runs = [name for name, part in report.runs.items() if all(each in part.per_query for each in pair)]
    if not runs:
        raise InputError(f"plots.evidence needs PROC and %PROC of every query at K = {depth}")
    axes = _axes(ax, "evidence", rows=len(runs))
    counts = {name: dict(report.diagnosis(name, depth).counts) for name in reversed(runs)}
    for name, of_run in counts.items():
        of_run["undefined"] = len(report.runs[name].queries) - sum(of_run.values())
    left = np.zeros(len(runs))
    for answer, colour in OF_LOSSES.items():
        widths = np.array([of_run.get(answer, 0) for of_run in counts.values()])
        if widths.any():
            axes.barh(range(len(runs)), widths, left=left, color=colour, label=answer, **_BARS)
        for y, width in enumerate(widths.tolist()):
            if width >= 0.05 * len(report.runs[list(counts)[y]].queries):
                axes.text(left[y] + width / 2, y, str(width), ha="center", va="center_baseline", fontsize="small")
        left += widths
    axes.set_yticks(range(len(runs)), [plot_text(shortened(name)) for name in counts])
    axes.set(xlabel=f"queries, at K = {depth}")
    axes.margins(x=0)
    return _with_legend(axes)


def precision_recall(report: Report, ax: Any = None) -> Any:
    """Interpolated precision over recall, a curve for each run; `IPrec` must have been measured."""
    curves = {name: _points_of(part) for name, part in report.runs.items()}
    if not all(curves.values()):
        raise InputError("plots.precision_recall needs the measure IPrec: evaluate with it")
    axes = _axes(ax, "precision_recall")
    for i, (name, points) in enumerate(curves.items()):
        axes.plot(*zip(*points, strict=True), **style_of_run(i), label=plot_text(shortened(name)))
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="recall", ylabel="precision (interpolated)")
    return _with_legend(axes)


def collapse(report: Report, run: str | None = None, ax: Any = None, *, measure: str | Measure = "BoR") -> Any:
    """BoR and its ceiling over the success of a random draw, with the degraded and the collapse zone.

    The report must hold `BoR` and `BoR_max` at common depths, with the `rel` and `m` of the measure.
    """
    axes = _axes(ax, "collapse")
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
    axes.axvspan(DEGRADED_FROM, COLLAPSE_FROM, color=ORANGE, alpha=0.12, linewidth=0, label="degraded: chance ≥ 63%")
    axes.axvspan(COLLAPSE_FROM, 1, color=ORANGE, alpha=0.3, linewidth=0, label="collapse: chance ≥ 95%")
    axes.set(xscale="log", xlim=(min([0.5, *chance[chance > 0].tolist()]) / 1.5, 1.0))
    axes.set(xlabel="success of a random draw", ylabel="bits", ylim=(min([0.0, *filter(np.isfinite, bor)]), None))
    return _with_legend(axes)


def grades(report: Report, run: str | None = None, depth: int | None = None, ax: Any = None) -> Any:
    """The shares of each grade, of unjudged passages and of empty slots at each rank, over the queries."""
    axes = _axes(ax, "grades")
    judged = report.run(run if run is not None else next(iter(report.runs))).judged
    if judged is None:
        raise InputError("plots.grades needs the lists of the run, but the report holds only sums: make it by evaluate")
    reach = min(depth or 20, max(1, int(judged.returned.max(initial=1))))
    colours = _OF_GRADES if judged.scale.name == "utility" else {0: ORANGE, 1: "#9CCBE8", 2: BLUE}
    drawn = [
        (column, f"grade {grade}", colours.get(grade, "#004B76"))
        for column, grade in sorted(enumerate(judged.grades.tolist()), key=lambda each: -each[1])
    ]
    taken = " (as junk)" if judged.policy.unjudged == "worst" else ""
    drawn += [(len(drawn), f"unjudged{taken}", _UNJUDGED), (len(drawn) + 1, "empty", _EMPTY)]
    shares, bottom = judged.grades_by_rank(reach), np.zeros(reach)
    for column, label, colour in drawn:
        if shares[:, column].any():
            axes.bar(np.arange(1, reach + 1), shares[:, column], bottom=bottom, width=0.9, color=colour, label=label)
        bottom += shares[:, column]
    axes.set(xlim=(0.4, reach + 0.6), ylim=(0, 1), xlabel="rank", ylabel="share of the queries")
    axes.set_xticks([rank for rank in (1, 2, 3, 4, 5, 10, 15, 20, 30, 50, 100) if rank <= reach])
    return _with_legend(axes)


def forest(result: Comparison | Decision, ax: Any = None) -> Any:
    """Every difference from the baseline run, or of pairs of runs, with its interval; filled where it is shown."""
    rows: list[tuple[str, Any, str, bool]] = []
    if isinstance(result, Decision):
        known = [pair for pair in result.pairs if math.isfinite(pair.difference)]
        if len(known) > MOST_PAIRS:
            known = [pair for pair in known if result.best in (pair.run, pair.other)]
        rows = [(name_of_pair(each.run, each.other), each, GREEN if each.apart else GREY, each.apart) for each in known]
        label = f"difference in {result.measure}"
    else:
        several = len({row.run for row in result.rows}) > 1
        colours = {BETTER: GREEN, WORSE: ORANGE}
        for row in result.rows:
            if math.isfinite(row.difference):
                name = f"{row.measure} ({plot_text(row.run)})" if several else str(row.measure)
                rows.append((name, row, colours.get(row.verdict, GREY), row.verdict in colours))
        label = f"difference from {plot_text(result.baseline)}"
    axes = _axes(ax, "forest", rows=len(rows))
    for y, (_, row, colour, filled) in enumerate(reversed(rows)):
        axes.plot([row.low, row.high], [y, y], "-", color=colour, linewidth=1.6)
        axes.plot([row.difference], [y], "o", color=colour, markerfacecolor=colour if filled else "none")
    axes.set_yticks(range(len(rows)), [name for name, *_ in reversed(rows)])
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set(xlabel=label, ylim=(-0.7, len(rows) - 0.3))
    return axes


# -- how a run looks --------------------------------------------------------------------------------


def style_of_run(place: int) -> dict[str, Any]:
    """Colour, marker and line style of the run at a place of the report: no two of the first 42 are the same."""
    return {
        "color": OF_RUNS[place % len(OF_RUNS)],
        "marker": list(_SHAPES)[place % len(_SHAPES)],
        "linestyle": _LINES[place // len(OF_RUNS) % len(_LINES)],
        "markersize": 4.5,
        "linewidth": 1.5,
    }


def shape_of_run(place: int) -> str:
    """The marker of a run as a value of `clip-path` in CSS."""
    return list(_SHAPES.values())[place % len(_SHAPES)]


def shortened(name: str, *, of_pair: bool = False) -> str:
    """A run's name for a plot, with its middle left out where it is long.

    >>> shortened("bge-large-en-v1.5+cohere-rerank-v3")
    'bge-large-e…-rerank-v3'
    """
    longest = _LONGEST_OF_PAIR if of_pair else _LONGEST_NAME
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[-end:]}"


def name_of_pair(run: str, other: str) -> str:
    """The names of two runs as a plot shows their difference."""
    return plot_text(" − ".join(shortened(name, of_pair=True) for name in (run, other)))


def plot_text(name: str) -> str:
    r"""A name as matplotlib shows it unchanged: a dollar sign begins no formula, and no command is run by TeX.

    >>> print(plot_text(r"$\frac{1}$"))
    \$\frac{1}\$
    """
    from matplotlib import rcParams

    if rcParams["text.usetex"]:
        return latex_text(name)
    shown = visible(name).replace("$", r"\$") if rcParams["text.parse_math"] else visible(name)
    # A legend leaves out what begins with an underscore.
    return f" {shown}" if shown.startswith("_") else shown


# -- shared --------------------------------------------------------------------------------------------


def height_of(rows: int) -> float:
    """The height of a figure with so many rows, in inches; of one that has none the usual one."""
    return 1.4 + 0.28 * rows if rows else 3.6


def _axes(ax: Any, what: str, rows: int = 0) -> Any:
    """The given axes, or new ones."""
    if ax is not None:
        return ax
    with needing("matplotlib", "report", f"plots.{what}"):
        import matplotlib.pyplot as plt
    return plt.subplots(figsize=(5.2, height_of(rows)), layout="constrained")[1]


def _with_legend(axes: Any) -> Any:
    """The axes with a legend above them, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    title = f"the first {_NAMED} of {len(labels)}" if len(labels) > _NAMED else None
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
    axes.legend(handles[:_NAMED], labels[:_NAMED], title=title, frameon=False, fontsize="small", **place)
    return axes


def _depths_of(report: Report, run: str, base: Measure) -> list[int]:
    """The depths at which the report holds the measure, up to the first that is no less than the run's longest list."""
    part = report.runs[run]
    depths = [k for k in report.depths if at_depth(part.estimates, base, k)]
    if part.judged is None:
        return depths
    longest = int(part.judged.returned.max(initial=1))
    return [k for i, k in enumerate(depths) if i == 0 or depths[i - 1] < longest]


def _points_of(part: RunReport) -> list[tuple[float, float]]:
    """The precision–recall curve of a run: the first measured IPrec by its recall levels, whatever its `rel`."""
    measured = ((parse_measure(key), estimate.value) for key, estimate in part.estimates.items())
    points = [(m, (float(m.at), value)) for m, value in measured if isinstance(m, IPrec) and m.at is not None]
    return sorted(next(iter(grouped((replace(m, at=None), point) for m, point in points).values()), []))


def _refuse_unmeasured(report: Report, plot: str, *measures: Measure) -> None:
    """Raise an InputError that names the first of these measures which no run has at any depth."""
    for measure in measures:
        if not any(_depths_of(report, run, measure) for run in report.runs):
            mend = report.absent.get(measure.name, f"evaluate with measures=[…, '{measure}'] and depths=[…]")
            raise InputError(f"plots.{plot} needs the measure {measure} at some depth, which the report lacks: {mend}")


def _curves(report: Report, base: Measure, axes: Any, depth: int | None) -> float:
    """The curves of all runs over K; returns the lowest number of them and their intervals, at most 0."""
    lowest = 0.0
    for i, name in enumerate(report.runs):
        cells = {k: report[name, base @ k] for k in _depths_of(report, name, base)}
        style = style_of_run(i)
        lowest = min([lowest, *(x for cell in cells.values() for x in (cell.value, cell.low) if math.isfinite(x))])
        axes.plot(list(cells), [cell.value for cell in cells.values()], **style, label=plot_text(shortened(name)))
        if len(report.runs) <= _BANDS:
            ends = zip(*((cell.low, cell.high) for cell in cells.values()), strict=True)
            axes.fill_between(list(cells), *ends, color=style["color"], alpha=0.18, linewidth=0)
        elif depth in cells:
            beside = _beside_each_other(depth, i, len(report.runs))
            axes.plot([beside] * 2, [cells[depth].low, cells[depth].high], color=style["color"], linewidth=2, alpha=0.7)
    _over_k(axes, report.depths, depth)
    return lowest


def _over_k(axes: Any, depths: Sequence[int], depth: int | None) -> list[int]:
    """A log axis of K with a line at `depth`; returns the depths with a tick: `depth`, 1, 2, 5, 10, … and the last."""
    axes.set(xscale="log", xlabel="K (passages given to the LLM)")
    rounded = [k for k in depths if k == depths[-1] or str(k).rstrip("0") in ("1", "2", "5")]
    # Two ticks that are close would cover each other.
    marked = depth if depth in depths else None
    ticks = sorted({*(k for k in rounded if marked is None or not 0.8 < k / marked < 1.25), *filter(None, [marked])})
    if depths:
        axes.set_xlim(depths[0] / 1.15, depths[-1] * 1.15)
    axes.set_xticks(ticks, [f"{each:,}" for each in ticks])
    axes.minorticks_off()
    if depth is not None:
        axes.axvline(depth, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    return ticks


def _beside_each_other(k: float, place: int, runs: int) -> float:
    """A place near K on a log axis, so that the bars of several runs do not cover each other."""
    step = min(_BESIDE, _ALL_BESIDE ** (1 / max(1, runs - 1)))
    return float(k * step ** (place - (runs - 1) / 2))


def _ceiling_of(measure: Measure) -> Measure:
    """BoR_max with the `rel` and `m` of a BoR."""
    if not isinstance(measure, BoR):
        raise InputError(f"this plot needs a BoR as its measure, got {measure.name}")
    return BoR_max(rel=measure.rel, m=measure.m)
