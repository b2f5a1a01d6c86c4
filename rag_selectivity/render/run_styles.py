"""How a run looks everywhere: its colour, marker and line style by its place in the report, and its name in plots."""

from __future__ import annotations

import math
from typing import Any

from rag_selectivity.render.blocks import latex_text
from rag_selectivity.render.decision_blocks import middle_cut
from rag_selectivity.wording import visible

#: The palette of Okabe and Ito, darkened so that text in it can be read on white.
OF_RUNS = ("#0072b2", "#b84f00", "#007a5a", "#a8447e", "#866000", "#4d5561")
#: Triangles up and down come last: they also mark what is better and worse.
_MARKERS = "osDPX*hp<>^v"
_LINES = ("-", "--", ":", "-.")
#: Of so many characters plots have room for a name; for two of the shorter ones beside an axis.
_LONGEST_NAME, _LONGEST_OF_PAIR = 22, 15
#: The corners of an upright cross in a square from −1 to 1, clockwise, and how wide its arms are on both sides.
_ARM = 0.36
_CROSS = [
    *((_ARM, 1), (_ARM, _ARM), (1, _ARM), (1, -_ARM), (_ARM, -_ARM), (_ARM, -1)),
    *((-_ARM, -1), (-_ARM, -_ARM), (-1, -_ARM), (-1, _ARM), (-_ARM, _ARM), (-_ARM, 1)),
]


def style_of_run(place: int) -> dict[str, Any]:
    """Colour, marker and line style of the run at a place of the report: no two of the first 24 are the same."""
    return {
        "color": OF_RUNS[place % len(OF_RUNS)],
        "marker": _marker(place),
        "linestyle": _LINES[place // len(OF_RUNS) % len(_LINES)],
        "markersize": 4.5,
        "linewidth": 1.5,
    }


def shape_of_run(place: int) -> str:
    """The marker of a run as a value of `clip-path` in CSS."""
    corners = _corners(_marker(place))
    return (
        f"polygon({','.join(f'{50 + 50 * x:.0f}% {50 - 50 * y:.0f}%' for x, y in corners)})" if corners else "circle()"
    )


def shortened(name: str, *, of_pair: bool = False) -> str:
    """A run's name for a plot, with its middle left out where it is long."""
    return middle_cut(name, _LONGEST_OF_PAIR if of_pair else _LONGEST_NAME)


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
    return visible(name).replace("$", r"\$") if rcParams["text.parse_math"] else visible(name)


def _marker(place: int) -> str:
    """The marker of a run: no two of the first 24 have the same one and the same colour."""
    return _MARKERS[(place + place // len(_MARKERS)) % len(_MARKERS)]


def _corners(marker: str) -> list[tuple[float, float]]:
    """The corners of a marker in a square from −1 to 1, empty for the circle."""
    match marker:
        case "s":
            return [(-0.85, 0.85), (0.85, 0.85), (0.85, -0.85), (-0.85, -0.85)]
        case "D":
            return _regular(4)
        case "^" | "v" | "<" | ">":
            turned = {"^": 0.0, "<": 0.25, "v": 0.5, ">": 0.75}[marker]
            return [_at(corner + turned, 1) for corner in (0, 0.36, 0.64)]
        case "P":
            return _CROSS
        case "X":
            return [((x + y) * 0.75, (y - x) * 0.75) for x, y in _CROSS]
        case "*":
            return [_at(i / 10, 1 if i % 2 == 0 else 0.42) for i in range(10)]
        case "h" | "p":
            return _regular(6 if marker == "h" else 5)
    return []


def _regular(corners: int) -> list[tuple[float, float]]:
    return [_at(i / corners, 1) for i in range(corners)]


def _at(turn: float, radius: float) -> tuple[float, float]:
    """The point at a share of a whole turn, against the clock from the top."""
    return -radius * math.sin(2 * math.pi * turn), radius * math.cos(2 * math.pi * turn)
