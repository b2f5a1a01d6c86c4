"""How a run looks in every picture: its colour, marker and line style by its place in the report, and its name."""

from __future__ import annotations

from typing import Any

#: The palette of Okabe and Ito, darkened so that text in it can be read on white.
OF_RUNS = ("#0072b2", "#b84f00", "#007a5a", "#a8447e", "#866000", "#4d5561")
_MARKERS = "osD^vPX*<>hp"
_LINES = ("-", "--", ":", "-.")
_LONGEST_NAME = 24


def style_of_run(place: int) -> dict[str, Any]:
    """Colour, marker and line style of the run at a place of the report: no two of the first 24 are the same."""
    return {
        "color": OF_RUNS[place % len(OF_RUNS)],
        "marker": _MARKERS[place % len(_MARKERS)],
        "linestyle": _LINES[place // len(OF_RUNS) % len(_LINES)],
        "markersize": 4.5,
        "linewidth": 1.5,
    }


def shortened(name: str) -> str:
    """A run's name for a label: at most 24 characters."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
