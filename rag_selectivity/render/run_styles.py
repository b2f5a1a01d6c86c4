"""How a run looks everywhere: its colour, marker and line style by its place in the report, and its name in plots."""

from __future__ import annotations

from typing import Any

from rag_selectivity.render.writers import latex_text
from rag_selectivity.wording import visible

#: The palette of Okabe and Ito, darkened so that text in it can be read on white.
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
