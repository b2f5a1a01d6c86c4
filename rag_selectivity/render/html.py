"""Results as one HTML file that loads nothing; a report's page has the decision, plots and all queries too."""

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from rag_selectivity.errors import MissingExtraError
from rag_selectivity.render.blocks import Block
from rag_selectivity.render.explorer import Explorer, explorer
from rag_selectivity.render.first_screen import (
    FirstScreen,
    cost_notes,
    decided_on,
    decision_table,
    figure_cell,
    first_screen,
    in_words,
    report_of,
)
from rag_selectivity.render.pictures import pictures_of
from rag_selectivity.render.plots import OF_RUNS, shape_of_run
from rag_selectivity.render.report_tables import change_blocks, comparison_blocks, run_blocks
from rag_selectivity.render.templates import environment, page_policy, style_of
from rag_selectivity.render.writers import html_of, html_text
from rag_selectivity.results.decision import RunFigure
from rag_selectivity.results.report import Comparison, Report

#: So many pictures are on the first two printed pages.
_FIRST_PICTURES = 4
#: The drawing of a cell, in its own units: its width, its height, and the space at both sides.
_WIDTH, _HEIGHT, _SIDE = 100, 12, 4


def page_of_blocks(title: str, blocks: Iterable[Block]) -> str:
    """The page of a result without a first screen.

    Raises
    ------
    MissingExtraError
        If Jinja2 is not installed (the extra `report`).
    """
    return _rendered("page.html.j2", title=title, body=html_of(blocks))


def to_html(result: Report | Comparison, *, title: str = "What retrieval is worth", **given: Any) -> str:
    """The whole report or comparison as one HTML file.

    It loads nothing from the network, has light and dark colours, and prints. The first screen shows the decision of
    the report, or else that of `rag_selectivity.advice.decide`.

    Parameters
    ----------
    title : str
    qrels, runs, queries, corpus, reasons, by : optional
        What the explorer shows (`rag_selectivity.render.explorer.explorer`): the labels and the lists of the runs, as
        in `evaluate`; {id: text} or files of queries and passages; {(query, passage): why it has its grade}; and a
        table of queries with a column `query_id`, and columns to filter by, such as type, language or customer.

    Returns
    -------
    str
        The HTML text, at most about 10 MB: long texts of passages are cut for it.

    Raises
    ------
    MissingExtraError
        If Jinja2 or matplotlib is not installed (the extra `report`).
    """
    report, known = report_of(result), decided_on(result)
    decision = None if isinstance(known, str) else known
    pictures = list(pictures_of(report, decision))
    explored = None if decision is None else explorer(report, decision.K, decision=decision, **given)
    details = {name: html_of(run_blocks(report, name)) for name in report.runs}
    if decision is not None:
        of_all = html_of([decision_table(decision), *cost_notes(decision)])
        details = {f"All runs at K = {decision.K}": of_all, **details}
    screen = first_screen(result)
    groups = pictures[:_FIRST_PICTURES], pictures[_FIRST_PICTURES:]
    return _rendered(
        "report.html.j2",
        _colours_of_runs(report) + style_of("explorer/style"),
        title=title,
        screen=screen,
        rows=_rows(report, screen),
        decided=decision is not None,
        pictures=[group for group in groups if group],
        compared=html_of(comparison_blocks(result)) if isinstance(result, Comparison) else None,
        since=None if report.changes is None else html_of(change_blocks(report.changes)),
        details=details,
        explorer=explored,
    )


def notebook_html(report: Report) -> str:
    """The first screen for a notebook, as text without a decision or Jinja2; `to_html` gives the whole page."""
    if not isinstance(decided_on(report), str):
        # A notebook shows a report without being asked to, so that a missing extra must not be an error.
        with suppress(MissingExtraError):
            screen, template = first_screen(report), environment("the first screen").get_template("notebook.html.j2")
            style = style_of("colours", "first_screen") + _colours_of_runs(report)
            return str(template.render(screen=screen, rows=_rows(report, screen), style=style))
    return f"<pre>{html_text(report.to_text())}</pre>"


def _colours_of_runs(report: Report) -> str:
    """Markers of the runs, and colours of those after the last one, which take the same colours again."""
    places = range(len(report.runs))
    again = [f"--run-{place}: var(--run-{place % len(OF_RUNS)});" for place in places[len(OF_RUNS) :]]
    shapes = [f"--shape-{place}: {shape_of_run(place)};" for place in places]
    return f".first-screen {{ {' '.join([*again, *shapes])} }}\n"


def _rendered(template: str, more_style: str = "", *, explorer: Explorer | None = None, **values: Any) -> str:
    """The one page: its style and scripts, and no others, may do something."""
    style = style_of("colours", "base", "first_screen", "style") + more_style
    scripts = [] if explorer is None or explorer.data is None else [explorer.script]
    policy = page_policy(styles=[style], scripts=scripts, style_attributes=True)
    page = environment("to_html").get_template(template)
    return str(page.render(style=style, policy=policy, explorer=explorer, **values))


# -- the table of the first screen, with drawings ------------------------------------------------------


def _rows(report: Report, screen: FirstScreen) -> Iterator[dict[str, Any]]:
    """The runs, best first; `place` is a run's number in the report, which its colour follows."""
    for run in screen.runs:
        cells = [_cell(column.figures.get(run), _ends(column.figures.values())) for column in screen.columns]
        yield {"run": run, "place": list(report.runs).index(run), "cells": cells}


def _cell(figure: RunFigure | None, ends: tuple[float, float]) -> dict[str, str]:
    if figure is None:
        return {"text": figure_cell(None), "spoken": "not measured", "drawing": "", "key": ""}
    return {
        "text": figure_cell(figure),
        "spoken": in_words(figure.estimate),
        "drawing": _drawing(figure, *ends),
        "key": str(figure.measure),
    }


def _ends(figures: Iterable[RunFigure]) -> tuple[float, float]:
    """The ends of the axis that all runs share; NaN where nothing can be drawn."""
    known = ((figure.estimate, _ceiling(figure)) for figure in figures)
    ends = (each.possible or (each.value, each.low, each.high, ceiling) for each, ceiling in known)
    numbers = [number for each in ends for number in each if math.isfinite(number)]
    return min(numbers, default=math.nan), max(numbers, default=math.nan)


def _ceiling(figure: RunFigure) -> float:
    return math.nan if figure.ceiling is None else figure.ceiling


def _drawing(figure: RunFigure, lowest: float, highest: float) -> str:
    """The figure with its interval, its possible range as a bar, and its ceiling as a tick; as SVG."""
    if math.isnan(lowest):
        return ""

    def at(value: float) -> float:
        """The place of a value; beyond the ends for what is infinite."""
        if math.isinf(value):
            return 0.0 if value < 0 else float(_WIDTH)
        share = (value - lowest) / (highest - lowest) if highest > lowest else 0.5
        return round(_SIDE + share * (_WIDTH - 2 * _SIDE), 1)

    estimate, middle = figure.estimate, _HEIGHT / 2
    parts = [f'<path class="axis" d="M{_SIDE} {middle:g}H{_WIDTH - _SIDE}"/>']
    if estimate.possible is not None:
        low, high = map(at, estimate.possible)
        parts.append(f'<rect x="{low:g}" y="2.5" width="{max(high - low, 1.5):g}" height="7" rx="1.5"/>')
    else:
        if not math.isnan(estimate.low):
            parts.append(f'<path d="M{at(estimate.low):g} {middle:g}H{at(estimate.high):g}"/>')
        if math.isfinite(estimate.value):
            parts.append(f'<circle cx="{at(estimate.value):g}" cy="{middle:g}" r="3.2"/>')
    if math.isfinite(_ceiling(figure)):
        parts.append(f'<path class="tick" d="M{at(_ceiling(figure)):g} 1V{_HEIGHT - 1}"/>')
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="xMinYMid"'
    return f'<svg {box} aria-hidden="true">{"".join(parts)}</svg>'
