"""Labels beside the curves and points of a plot, in place of a legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rag_selectivity.errors import MissingExtraError
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.render.run_styles import plot_text

_SPACING = 1.05
#: Points between the axes and a label, and how far a label may be from its point without a line between them.
_GAP, _NEAR = 5.0, 9.0


def axes_for(ax: Any, what: str, height: float = 3.6) -> Any:
    """The given axes, or new ones for the plot `what`.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed (the extra `report`).
    """
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError("matplotlib", "report", what) from None
    return plt.subplots(figsize=(5.2, height), layout="constrained")[1]


def direct_labels(axes: Any, labels: Sequence[tuple[str, float, float, str]]) -> None:
    """Write each text right of the axes at the height of its point, in its colour, without overlaps.

    Labels that would overlap are moved apart vertically. A thin line connects a label with its point where the two are
    not next to each other. Call this last: after the curves, scales and limits of the axes. A figure with a constrained
    layout makes room for the labels.

    Parameters
    ----------
    axes : matplotlib axes
    labels : sequence of (text, x, y, colour)
        x and y in the units of the axes. A point that is not finite, or outside the limits, has no label.
    """
    from matplotlib.transforms import ScaledTranslation

    x_limits, y_limits = axes.get_xlim(), axes.get_ylim()
    # Lines to the labels must not widen the axes.
    axes.set(xlim=x_limits, ylim=y_limits)
    known = [
        (plot_text(text), x, y, colour)
        for text, x, y, colour in labels
        if _inside(x, x_limits) and _inside(y, y_limits)
    ]
    if not known:
        return
    figure = axes.figure
    beside = axes.transAxes + ScaledTranslation(_GAP / 72, 0, figure.dpi_scale_trans)
    drawn = [
        axes.text(1, 0.5, text, transform=beside, va="center_baseline", ha="left", fontsize="small", color=colour)
        for text, _, _, colour in known
    ]
    # The layout decides how far apart the points are.
    settle(figure)
    points = axes.transData.transform(np.array([[x, y] for _, x, y, _ in known], np.float64))
    low, high = axes.bbox.y0, axes.bbox.y1
    heights = np.array([text.get_window_extent().height * _SPACING for text in drawn])
    middles = apart(points[:, 1], heights, low, high)
    near = _NEAR * figure.dpi / 72
    for text, (_, x, y, colour), point, middle in zip(drawn, known, points, middles.tolist(), strict=True):
        height = (middle - low) / (high - low)
        text.set_y(height)
        if max(axes.bbox.x1 - point[0], abs(middle - point[1])) > near:
            axes.annotate(
                "",
                (x, y),
                xytext=(1, height),
                textcoords=axes.transAxes + ScaledTranslation((_GAP - 1) / 72, 0, figure.dpi_scale_trans),
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "linewidth": 0.6, "color": colour, "shrinkA": 0, "shrinkB": 3},
            )


def settle(figure: Any) -> None:
    """Put everything where the layout wants it, without drawing."""
    layout = figure.get_layout_engine()
    if layout is None:
        figure.draw_without_rendering()
    else:
        layout.execute(figure)


def point_labels(
    axes: Any,
    labels: Sequence[tuple[str, float, float, str]],
    *,
    clear_of: Sequence[tuple[float, float]] = (),
    droppable: bool = False,
    weight: str = "normal",
) -> None:
    """Write each text next to its point, at the first place where it covers no other label and no point.

    Call this last, and after `direct_labels`.

    Parameters
    ----------
    axes : matplotlib axes
    labels : sequence of (text, x, y, colour)
        The most important first.
    clear_of : sequence of (x, y)
        The points that no label may cover.
    droppable : bool
        Whether a label without a free place is left out; otherwise it stands at the place that covers least.
    weight : str
        Of the font.
    """
    settle(axes.figure)
    taken = [text.get_window_extent() for text in axes.texts if text.get_text() and text.get_visible()]
    pixels = axes.transData.transform(np.array(clear_of, np.float64).reshape(-1, 2))
    for name, x, y, colour in labels:
        text = plot_text(name)
        label = axes.annotate(
            text, (x, y), xytext=(0, 0), textcoords="offset points", fontsize="small", color=colour, weight=weight
        )
        covered = []
        for place in _PLACES:
            box = _put(label, place)
            inside = box.x0 >= axes.bbox.x0 and box.x1 <= axes.bbox.x1
            inside = inside and box.y0 >= axes.bbox.y0 and box.y1 <= axes.bbox.y1
            hidden = sum(box.overlaps(other) for other in taken) + int(
                ((pixels >= (box.x0, box.y0)) & (pixels <= (box.x1, box.y1))).all(axis=1).sum()
            )
            covered.append(hidden if inside else 1000 + hidden)
            if not covered[-1]:
                break
        if droppable and covered[-1]:
            label.remove()
            continue
        taken.append(_put(label, _PLACES[int(np.argmin(covered))]))


#: Where a label can stand at its point: the offset in points, and which of its sides is there.
_PLACES = (
    (-4, 4, "right", "bottom"),
    (0, 6, "center", "bottom"),
    (6, 0, "left", "center"),
    (4, -4, "left", "top"),
    (0, -6, "center", "top"),
    (-6, 0, "right", "center"),
)


def _put(label: Any, place: tuple[float, float, str, str]) -> Any:
    """Move a label to a place; returns its box."""
    x, y, horizontal, vertical = place
    label.set(position=(x, y), horizontalalignment=horizontal, verticalalignment=vertical)
    return label.get_window_extent()


def _inside(value: float, limits: tuple[float, float]) -> bool:
    return bool(np.isfinite(value) and min(limits) <= value <= max(limits))


def apart(middles: FloatArray, heights: FloatArray, low: float, high: float) -> FloatArray:
    """The middles of labels with these heights moved as little as possible (least squares), so that none overlap.

    Their order stays. They stay between `low` and `high`; where there is no room for all, they stand without gaps, and
    as far beyond the one as beyond the other.

    >>> apart(np.array([1.0, 1.2, 8.0]), np.array([2.0, 2.0, 2.0]), 0, 10).round(6).tolist()
    [1.0, 3.0, 8.0]
    """
    order = np.argsort(middles, kind="stable")
    sizes = heights[order]
    # Where each would be in one block without gaps: relative to this, the middles must not decrease.
    block = np.cumsum(sizes) - sizes / 2
    relative = _not_decreasing(middles[order] - block)
    room = high - low - sizes.sum()
    relative = np.clip(relative, low, low + room) if room >= 0 else np.full(len(sizes), low + room / 2)
    result = np.empty_like(middles)
    result[order] = relative + block
    return result


def _not_decreasing(values: FloatArray) -> FloatArray:
    """The sequence that does not decrease and is nearest in least squares: neighbours are pooled into their mean."""
    means: list[float] = []
    counts: list[int] = []
    for value in values.tolist():
        means.append(value)
        counts.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            count = counts[-2] + counts[-1]
            mean = (means[-2] * counts[-2] + means[-1] * counts[-1]) / count
            means[-2:], counts[-2:] = [mean], [count]
    return np.repeat(means, counts)
