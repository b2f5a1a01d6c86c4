"""Labels beside curves, and the plot of cost against quality: nothing overlaps, and what is drawn is what was given."""

from __future__ import annotations

import itertools
from io import StringIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from rag_selectivity.decision.costs import pareto
from rag_selectivity.errors import InputError
from rag_selectivity.render.cost_plot import cost_quality
from rag_selectivity.render.labels import apart, direct_labels, point_labels
from rag_selectivity.results.decision import CostPoint

pytestmark = pytest.mark.inside

COLOURS = dict(zip("abcdef", ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#666666"), strict=True))
STYLES = {run: {"color": colour} for run, colour in COLOURS.items()}


def new_axes():
    return Figure(figsize=(4.9, 3.5), layout="constrained").subplots()


def assert_apart(texts) -> None:
    boxes = [text.get_window_extent() for text in texts]
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)


@given(st.lists(st.tuples(st.floats(-50, 150), st.floats(1, 20)), min_size=1, max_size=9))
def test_labels_are_moved_apart_and_stay_inside_where_there_is_room(drawn) -> None:
    middles, heights = (np.array(column, np.float64) for column in zip(*drawn, strict=True))
    moved = apart(middles, heights, 0.0, 100.0)
    order = np.argsort(middles, kind="stable")
    gaps = np.diff(moved[order]) - (heights[order][1:] + heights[order][:-1]) / 2
    assert (gaps > -1e-9).all(), "they overlap, or their order has changed"
    if heights.sum() <= 100:
        assert (moved - heights / 2 > -1e-9).all()
        assert (moved + heights / 2 < 100 + 1e-9).all()
    # Whatever is apart already is not moved.
    assert apart(moved, heights, 0.0, 100.0) == pytest.approx(moved, abs=1e-6)


@pytest.mark.parametrize("log", [False, True])
def test_labels_of_curves_that_end_together_do_not_overlap(log) -> None:
    axes = new_axes()
    labels = []
    for i, (run, colour) in enumerate(COLOURS.items()):
        x = np.arange(1, 60 - 8 * i)
        y = 1 - np.exp(-x / (10 + 0.1 * i))
        axes.plot(x, y, color=colour)
        labels.append((f"{run}: a long name", x[-1], y[-1], colour))
    labels.append(("nowhere", 5.0, float("nan"), "black"))
    labels.append(("outside", 5.0, 40.0, "black"))
    if log:
        axes.set_xscale("log")
    limits = axes.get_xlim(), axes.get_ylim()
    texts = direct_labels(axes, labels)
    axes.figure.savefig(StringIO(), format="svg")
    assert [(t.get_text(), t.get_color()) for t in texts] == [(text, colour) for text, *_, colour in labels[:-2]]
    assert_apart(texts)
    assert (axes.get_xlim(), axes.get_ylim()) == limits
    for text in texts:
        box = text.get_window_extent()
        assert box.x0 >= axes.bbox.x1, "a label covers the curves"
        assert box.x1 <= axes.figure.bbox.x1
        assert axes.bbox.y0 - 1 <= box.y0 < box.y1 <= axes.bbox.y1 + 1


def test_labels_of_points_cover_neither_each_other_nor_points() -> None:
    axes = new_axes()
    points = [(x, y) for x in (1.0, 1.02, 1.5) for y in (2.0, 2.01)]
    axes.plot(*zip(*points, strict=True), "o")
    axes.margins(0.3)
    texts = point_labels(axes, [(f"run {i}", x, y, "black") for i, (x, y) in enumerate(points)], clear_of=points)
    assert len(texts) == 6
    assert_apart(texts)
    pixels = axes.transData.transform(points)
    assert not any(text.get_window_extent().contains(*pixel) for text in texts for pixel in pixels)
    many = [("a label that is long", 1.0, 2.0, "black")] * 40
    assert len(point_labels(axes, many, clear_of=points, droppable=True)) < 8
    assert len(point_labels(axes, many, clear_of=points)) == 40


def curve(run: str, start: float, quality: float, depths: int = 50) -> list[CostPoint]:
    return [CostPoint(run, k, start * k, 1 - (1 - quality) * 0.95**k, False) for k in range(1, depths + 1)]


def drawn(points, kind="tokens", **given):
    axes = cost_quality(points, "RA-nWG", kind, new_axes(), styles=STYLES, **given)
    axes.figure.savefig(StringIO(), format="svg")
    return axes


def test_the_plot_draws_every_curve_the_front_and_the_k_of_the_decision() -> None:
    points = pareto(p for i, run in enumerate(COLOURS) for p in curve(run, 90 + 7 * i, 0.3 + 0.05 * i))
    axes = drawn(points, decision_depth=10)
    lines = {line.get_color(): line for line in axes.get_lines() if line.get_linestyle() == "-" and line.zorder == 3}
    for run, colour in COLOURS.items():
        own = [(p.cost, p.quality) for p in points if p.run == run]
        assert list(zip(*lines[colour].get_data(), strict=True)) == own
    (front,) = (line for line in axes.get_lines() if line.get_drawstyle() == "steps-post")
    costs, quality = front.get_data()
    assert set(zip(costs, quality, strict=True)) >= {(p.cost, p.quality) for p in points if p.front}
    assert (np.diff(costs) >= 0).all()
    assert (np.diff(quality) >= 0).all()
    rings = next(line for line in axes.get_lines() if line.get_markersize() == 9)
    assert list(rings.get_xdata()) == [p.cost for p in points if p.K == 10]
    texts = [text for text in axes.texts if text.get_text()]
    assert {*COLOURS, "K = 10"} <= {text.get_text() for text in texts}
    assert_apart(texts)


@pytest.mark.parametrize(
    "costs", [(90, 6000), (1, 200_000), (95, 240), (0, 50), (0.0004, 0.0031), (7, 7), (1e-5, 3.0), (120_000, 2_400_000)]
)
def test_ticks_of_the_cost_do_not_overlap(costs) -> None:
    points = pareto(CostPoint(run, 5, cost, 0.5, False) for run, cost in zip("ab", costs, strict=True))
    axes = drawn(points, kind="price")
    low, high = axes.get_xlim()
    labels = [t for t, at in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True) if low <= at <= high]
    assert len(labels) >= 2
    assert_apart(labels)
    assert len({label.get_text() for label in labels}) == len(labels)
    assert {"a", "b"} <= {text.get_text() for text in axes.texts}
    assert all(low <= cost <= high for cost in costs)


def test_a_plot_without_points_says_what_is_missing() -> None:
    with pytest.raises(InputError, match="there are no points"):
        cost_quality([], "Success", styles={})
