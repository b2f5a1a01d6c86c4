"""The plot of cost against quality: all runs at all K, with the front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import Measure
from rag_selectivity.render.labels import axes_for, direct_labels, point_labels
from rag_selectivity.results.decision import CostPoint

_GREY = "#666666"
_UNITS = {"tokens": "tokens a query", "milliseconds": "milliseconds a query", "price": "price of a query"}
#: The K that have a dot on each curve, and a label on the front where there is room.
_MARKED = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
#: From this ratio of the largest cost to the smallest on, the axis is logarithmic.
_LOG_FROM = 8.0
_TICKS = 6


def cost_quality(
    points: Sequence[CostPoint],
    measure: Measure | str,
    kind: str = "tokens",
    ax: Any = None,
    *,
    styles: Mapping[str, Mapping[str, Any]],
    decision_depth: int | None = None,
) -> Any:
    """The quality of every run over its cost, a curve for each run, with the front as a step line.

    The steps show the best quality for at most that cost. The numbers on the front are K. A ring on each curve marks
    the K of the decision.

    Parameters
    ----------
    points : sequence of CostPoint
        Of one kind of cost, as `Decision.cost_points[kind]` holds them.
    measure : Measure or str
        What the quality is, without depth.
    kind : {"tokens", "milliseconds", "price"}
    ax : matplotlib axes, optional
    styles : {run: {"color", "marker", "linestyle"}}
        As `style_of_run` gives them; without a marker or a line style these are a dot and a solid line.
    decision_depth : int, optional
    """
    if not points:
        raise InputError(f"plots.cost_quality: there are no points; give what the {kind} of a query are")
    axes = axes_for(ax, "plots.cost_quality")
    curves: dict[str, list[CostPoint]] = {}
    for point in sorted(points, key=lambda point: point.K):
        curves.setdefault(point.run, []).append(point)
    single = all(len(curve) == 1 for curve in curves.values())
    for run, curve in curves.items():
        costs, quality = [point.cost for point in curve], [point.quality for point in curve]
        look = styles[run]
        axes.plot(costs, quality, look.get("linestyle", "-"), color=look["color"], linewidth=1.6, zorder=3)
        dots = [point for point in curve if point.K in _MARKED or len(curve) == 1]
        axes.plot(
            [p.cost for p in dots],
            [p.quality for p in dots],
            look.get("marker", "o"),
            color=look["color"],
            markersize=3.5,
            zorder=4,
        )
    _scale(axes, np.array([point.cost for point in points]), single=single)
    _draw_front(axes, points)
    chosen = [point for point in points if decision_depth == point.K and not single]
    axes.plot(
        [point.cost for point in chosen],
        [point.quality for point in chosen],
        "o",
        markersize=9,
        markerfacecolor="none",
        markeredgecolor=_GREY,
        markeredgewidth=1.2,
        zorder=5,
    )
    axes.margins(y=0.1)
    axes.set(xlabel=f"{_UNITS[kind]} (mean)", ylabel=str(measure))
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("grey steps: the best quality for at most that cost", loc="left", fontsize="small")
    ends = [(run, curve[-1].cost, curve[-1].quality, styles[run]["color"]) for run, curve in curves.items()]
    places = [(point.cost, point.quality) for point in points if single or point.K in _MARKED]
    if single:
        point_labels(axes, ends, clear_of=places)
    else:
        direct_labels(axes, ends)
        _label_depths(axes, points, chosen, places)
    return axes


def _scale(axes: Any, costs: Any, *, single: bool) -> None:
    """The axis of the cost: logarithmic if the costs differ by much, with few ticks that are plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    low, high = float(costs.min()), float(costs.max())
    if low > 0 and high / low >= _LOG_FROM:
        axes.set_xscale("log")
        low, high = low / 1.15, high * (1.3 if single else 1.06)
        axes.xaxis.set_major_locator(FixedLocator(round_numbers(low, high)))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(_TICKS - 1))
        room = (high - low) * 0.06 or high * 0.1 or 1.0
        low, high = max(0.0, low - room) if low > 0 else -room, high + room
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.set_xlim(low, high)


def round_numbers(low: float, high: float, finest: tuple[int, ...] = (1, 2, 5)) -> list[float]:
    """1, 2 and 5, or what is `finest`, times powers of ten from low to high; fewer where an axis has no room for these.

    >>> round_numbers(90, 6000), round_numbers(1, 10_000)
    ([100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0], [1.0, 10.0, 100.0, 1000.0, 10000.0])
    """
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks: list[float] = []
    for factors in (finest, (1, 2, 5), (1, 3), (1,)):
        ticks = [factor * 10.0**power for power in powers for factor in factors]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= _TICKS:
            return ticks
    return ticks[:: -(-len(ticks) // _TICKS)]


def _draw_front(axes: Any, points: Sequence[CostPoint]) -> None:
    """The best quality for at most each cost."""
    front = sorted({(point.cost, point.quality) for point in points if point.front})
    if not front:
        return
    costs = [cost for cost, _ in front] + [axes.get_xlim()[1]]
    quality = [figure for _, figure in front] + [front[-1][1]]
    axes.step(costs, quality, where="post", color=_GREY, linewidth=5, alpha=0.25, solid_capstyle="butt", zorder=2)


def _label_depths(
    axes: Any, points: Sequence[CostPoint], chosen: Sequence[CostPoint], places: Sequence[tuple[float, float]]
) -> None:
    """K at the decision's best point and, where there is room, at the best point of the front at some other K."""
    ink = axes.xaxis.label.get_color()
    best = max(chosen, key=lambda point: point.quality, default=None)
    if best is not None:
        decided = [(f"K = {best.K}", best.cost, best.quality, ink)]
        point_labels(axes, decided, clear_of=places, weight="bold")
    of_front: dict[int, CostPoint] = {}
    for point in points:
        if point.front and point.K in _MARKED and (best is None or point.K != best.K):
            before = of_front.setdefault(point.K, point)
            of_front[point.K] = max(before, point, key=lambda each: each.quality)
    rest = [(str(point.K), point.cost, point.quality, ink) for _, point in sorted(of_front.items())]
    point_labels(axes, rest, clear_of=places, droppable=True)
