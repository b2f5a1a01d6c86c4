"""The first screen of the page and of a notebook: the five answers, and the table of the runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.render.blocks import caveat_lines
from rag_selectivity.render.decision_blocks import figures_of, marked_caveats, value_text
from rag_selectivity.render.first_lines import names_of_columns
from rag_selectivity.render.run_styles import shape_of_run
from rag_selectivity.render.templates import environment, style_of
from rag_selectivity.results.comparison import BETTER, JUDGED_IN_PART, NOT_SHOWN, PLACEBO, WORSE
from rag_selectivity.results.decision import ADVISED, ASSUMED, GIVEN, Decision, RunFigure
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.wording import counted, enumeration, level_text, number

#: What stands beside a figure that was compared with the baseline run, and its meaning.
SIGNS = {
    BETTER: ("▲", "better than the baseline"),
    WORSE: ("▼", "worse than the baseline"),
    NOT_SHOWN: ("", "no difference from the baseline is shown"),
    JUDGED_IN_PART: ("?", "undecided, since lists are judged in part"),
    PLACEBO: ("?", "undecided, since neither figure differs from its placebo"),
}
_K_FROM = {
    GIVEN: "the given K",
    ADVISED: "the K that is advised for the run with the most evidence",
    ASSUMED: "assumed, since no K was given or advised",
}
_SUBTITLES = {
    "BoR": "bits over random",
    "Success": "share of the queries",
    "RA-nWG": "best evidence shown",
    "PROC": "best evidence in the pool",
    "%PROC": "selected from the pool",
    "Harm": "share of junk",
}
#: The drawing of a cell, in its own units: its width, its height, and the space at both sides.
_WIDTH, _HEIGHT, _SIDE = 100, 12, 4


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the table: its figure as text, what a screen reader says besides, and a drawing."""

    text: str
    spoken: str
    sign: str
    drawing: str
    key: str
    verdict: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """A run of the table; `place` is its number in the report, which its colour follows."""

    run: str
    letters: str
    place: int
    is_baseline: bool
    cells: tuple[Cell | None, ...]


def first_screen(report: Report, decision: Decision) -> dict[str, Any]:
    """What the first screen shows: the answers, and the table of the runs in the order of the decision.

    A column has its name, what it is in few words, and the ends of its axis.
    """
    places = {name: place for place, name in enumerate(report.runs)}
    names = names_of_columns(report, decision)
    axes = {name: _Axis(line.figures[name] for line in decision.lines if name in line.figures) for name in names}
    rows = []
    for line in decision.lines:
        cells = [_cell(axes[name], line.figures.get(name), decision.baseline) for name in names]
        is_baseline = line.run == decision.baseline and len(decision.lines) > 1
        rows.append(Row(line.run, line.letters, places.get(line.run, 0), is_baseline, tuple(cells)))
    return {
        "facts": facts_of(report, decision),
        "K": decision.K,
        "answers": decision.answers,
        "columns": [{"name": name, "subtitle": _SUBTITLES.get(name, ""), "ends": axes[name].ends} for name in names],
        "rows": rows,
        "legend": list(_legend(decision, rows, names)),
        "caveats": list(caveat_lines(marked_caveats(figures_of(decision, names)), len(decision.lines))),
    }


def facts_of(report: Report, decision: Decision | None) -> str:
    """The number of runs and queries, N, the scale, K with its source, and the level of the intervals."""
    most = max((part.evaluated for part in report.runs.values()), default=0)
    facts = [
        counted(len(report.runs), "run"),
        counted(most if decision is None else decision.queries, "query", "queries"),
        *([] if report.corpus_size is None else [f"N = {report.corpus_size:,} passages"]),
        f"{report.scale} scale",
        *([] if report.weights is None else [f"weighted by {report.weights['source']}"]),
    ]
    if decision is not None:
        facts.append(f"all figures at K = {decision.K}, {_K_FROM.get(decision.K_from, decision.K_from)}")
    if "level" in report.settings:
        facts.append(f"{level_text(report.settings['level'])} intervals")
    return " · ".join(facts)


def html_of_first_screen(screen: Mapping[str, Any]) -> str:
    """The first screen as a piece of HTML with its own style, for a notebook.

    Raises
    ------
    MissingExtraError
        If Jinja2 is not installed (the extra `report`).
    """
    style = style_of("first_screen")
    template = environment("the first screen of a report").get_template("notebook.html.j2")
    shapes = [shape_of_run(place) for place in range(len(screen["rows"]))]
    return str(template.render(screen=screen, style=style, shapes=shapes))


# -- cells ---------------------------------------------------------------------------------------------


def _cell(axis: _Axis, figure: RunFigure | None, baseline: str) -> Cell | None:
    if figure is None:
        return None
    estimate = figure.estimate
    sign, meaning = SIGNS.get(figure.verdict or "", ("", ""))
    spoken = [_range_in_words(estimate)]
    if figure.ceiling is not None and math.isfinite(figure.ceiling):
        spoken.append(f"ceiling {number(figure.ceiling)}")
    if meaning:
        spoken.append(meaning.replace("the baseline", baseline))
    return Cell(
        value_text(estimate),
        ", ".join(part for part in spoken if part),
        sign,
        axis.drawing(figure),
        str(figure.measure),
        figure.verdict,
    )


def _range_in_words(estimate: Estimate) -> str:
    if estimate.possible is not None:
        return "possible range"
    if math.isnan(estimate.value):
        return estimate.reason or "undefined"
    return "" if math.isnan(estimate.low) else f"interval {number(estimate.low)} to {number(estimate.high)}"


class _Axis:
    """The axis of a column, which all runs share, and the drawings of its cells."""

    def __init__(self, figures: Iterable[RunFigure | None]) -> None:
        numbers = [x for figure in figures if figure is not None for x in _numbers_of(figure) if math.isfinite(x)]
        self.low, self.high = min(numbers, default=math.nan), max(numbers, default=math.nan)

    @property
    def ends(self) -> str:
        """The ends in words; empty where nothing can be drawn."""
        return "" if math.isnan(self.low) else f"{number(self.low)} to {number(self.high)}"

    def at(self, value: float) -> float:
        """The place of a value in a drawing; beyond the ends for what is infinite."""
        if math.isinf(value):
            return 0.0 if value < 0 else float(_WIDTH)
        width = self.high - self.low
        share = (value - self.low) / width if width > 0 else 0.5
        return round(_SIDE + share * (_WIDTH - 2 * _SIDE), 1)

    def drawing(self, figure: RunFigure) -> str:
        """The figure with its interval, its possible range as a bar, and its ceiling as a tick; as SVG."""
        estimate, middle = figure.estimate, _HEIGHT / 2
        if math.isnan(self.low):
            return ""
        parts = [f'<path class="axis" d="M{_SIDE} {middle:g}H{_WIDTH - _SIDE}"/>']
        if estimate.possible is not None:
            low, high = map(self.at, estimate.possible)
            parts.append(f'<rect x="{low:g}" y="2.5" width="{max(high - low, 1.5):g}" height="7" rx="1.5"/>')
        else:
            if not math.isnan(estimate.low):
                parts.append(f'<path d="M{self.at(estimate.low):g} {middle:g}H{self.at(estimate.high):g}"/>')
            if math.isfinite(estimate.value):
                parts.append(f'<circle cx="{self.at(estimate.value):g}" cy="{middle:g}" r="3.2"/>')
        if figure.ceiling is not None and math.isfinite(figure.ceiling):
            parts.append(f'<path class="tick" d="M{self.at(figure.ceiling):g} 1V{_HEIGHT - 1}"/>')
        box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="xMinYMid"'
        return f'<svg {box} aria-hidden="true">{"".join(parts)}</svg>'


def _numbers_of(figure: RunFigure) -> Sequence[float]:
    estimate = figure.estimate
    if estimate.possible is not None:
        return estimate.possible
    ceiling = math.nan if figure.ceiling is None else figure.ceiling
    return estimate.value, estimate.low, estimate.high, ceiling


# -- notes ---------------------------------------------------------------------------------------------


def _legend(decision: Decision, rows: Sequence[Row], names: Sequence[str]) -> Iterable[str]:
    level = "" if decision.level is None else f" at the {level_text(decision.level)} level"
    yield "An answer is marked as shown if a test or a bound shows what it says."
    if len(rows) > 1:
        yield (
            f"Best first under {decision.measure}. Runs with a common letter cannot be told apart under "
            f"{decision.measure}{level} (paired tests of all pairs of runs, Holm's correction)."
        )
    verdicts = [cell.verdict for row in rows for cell in row.cells if cell is not None and cell.sign]
    meanings: dict[str, list[str]] = {}
    for verdict in dict.fromkeys(verdicts):
        sign, meaning = SIGNS[str(verdict)]
        meanings.setdefault(sign, []).append(meaning.replace("the baseline", decision.baseline))
    if meanings:
        signs = (f"{sign} {' or '.join(words)}" for sign, words in meanings.items())
        yield (
            f"{', '.join(signs)}{level} (Holm's correction; the columns other than "
            f"{decision.measure.name} are one family of tests). Without a sign, no difference "
            f"from {decision.baseline} is shown."
        )
    figures = [figure for _, figure in figures_of(decision, names)]
    parts = ["a dot is the figure"]
    if any(not math.isnan(each.estimate.low) for each in figures):
        parts.append("the line is its interval")
    if any(each.ceiling is not None for each in figures):
        parts.append("the tick of BoR is the most that is possible at this K")
    if any(each.estimate.possible is not None for each in figures):
        parts.append("a bar is the range that the unjudged passages leave open")
    yield f"In a column all runs are drawn on one axis: {enumeration(parts)}."
    if decision.cheapest is not None:
        yield f"{decision.cheapest}."
    yield from (f"{note[0].upper()}{note[1:]}." for note in decision.notes)
