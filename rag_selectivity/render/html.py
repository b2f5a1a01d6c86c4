"""The report as one HTML file: the decision about all runs, plots of all runs side by side, and all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.render.blocks import Figures, html_text
from rag_selectivity.render.cost_blocks import costs_of
from rag_selectivity.render.decision_blocks import decision_table
from rag_selectivity.render.explorer import CANDIDATES, explorer
from rag_selectivity.render.explorer.packing import BUDGET
from rag_selectivity.render.first_lines import decided_on, depth_without_decision
from rag_selectivity.render.first_screen import facts_of, first_screen, html_of_first_screen
from rag_selectivity.render.pictures import pictures_of
from rag_selectivity.render.report_table import (
    figures_without_depth,
    grid,
    grid_of_pools,
    lines_of_controls,
    notes_of,
    weights_text,
)
from rag_selectivity.render.run_styles import shape_of_run
from rag_selectivity.render.slice_tables import USUAL_DEPTH, slice_differences, slice_grid
from rag_selectivity.render.templates import PAGE, environment, page_policy
from rag_selectivity.results.comparison import Comparison
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.report import Report
from rag_selectivity.wording import visible

#: So many pictures are on the first two printed pages.
_FIRST_PICTURES = 4


def to_html(
    report: Report,
    *,
    decision: Decision | None = None,
    comparison: Comparison | None = None,
    quality: Mapping[int, Mapping[str, float] | Sequence[float]] | None = None,
    qrels: Any = None,
    runs: Mapping[str, Any] | None = None,
    queries: Any = None,
    corpus: Any = None,
    reasons: Mapping[tuple[str, str], str] | None = None,
    by: Any = None,
    candidates: int = CANDIDATES,
    all_texts: bool = False,
    title: str = "What retrieval is worth",
) -> str:
    """The whole report as one HTML file. It loads nothing from the network, has light and dark colours, and prints.

    Parameters
    ----------
    decision : Decision, optional
        What the first screen shows. Default: that of the report, or `rag_selectivity.advice.decide(report)`. A report
        that holds only sums (of a monitor) has none, and neither has one with weights of queries.
    comparison : Comparison, optional
        Of `compare` with `by`: the page shows the differences within its slices.
    quality : {K: {query: score}} or {K: [score, …]}, optional
        Scores of the answers; adds a plot of answer quality.
    qrels, runs : optional
        As in `evaluate`: what the passages of the queries are read from.
    queries, corpus : optional
        {id: text} or files: the texts of the queries and of the passages.
    reasons : {(query, passage): reason}, optional
        Why a passage has its grade.
    by : table of queries, optional
        A column `query_id` and columns to filter the queries by, such as type, language or customer: a path, a frame
        or records.
    candidates : int
        How many passages of each list can be read on the page.
    all_texts : bool
        Keep the texts of all passages, and keep them whole, whatever the size of the page. Default: a page below
        10 MB. Long texts are cut for it, and if those of all queries do not fit, the queries that matter have texts.
    title : str

    Returns
    -------
    str
        The HTML text.

    Raises
    ------
    InputError
        If the comparison has no slices.
    MissingExtraError
        If Jinja2 or matplotlib is not installed (the extra `report`).
    """
    templates = environment("Report.to_html")
    if comparison is not None and not comparison.slices:
        raise InputError("`comparison` has no slices, and the page shows only these: compare with `by`")
    if decision is None:
        known = decided_on(report)
        decision = None if isinstance(known, str) else known
    pictures = list(pictures_of(report, decision, quality))
    shapes = [shape_of_run(place) for place in range(len(report.runs))]
    style = "".join((PAGE / name).read_text(encoding="utf-8") for name in ("first_screen.css", "style.css"))
    # A macro returns markup, which would escape what it is added to.
    style += str(templates.get_template("first_screen.html.j2").module.colours(shapes))
    depth = depth_of_page(report, decision)
    explored = (
        None
        if depth is None
        else explorer(
            report,
            depth,
            qrels=qrels,
            runs=runs,
            queries=queries,
            corpus=corpus,
            reasons=reasons,
            by=by,
            candidates=candidates,
            budget=None if all_texts else BUDGET,
            measure=None if decision is None else decision.measure,
            best=None if decision is None else decision.best,
        )
    )
    return str(
        templates.get_template("report.html.j2").render(
            title=title,
            report=report,
            decision=decision,
            screen=None if decision is None else first_screen(report, decision),
            facts=facts_of(report, decision),
            all_runs=None if decision is None else decision_table(decision),
            first_pictures=pictures[:_FIRST_PICTURES],
            more_pictures=pictures[_FIRST_PICTURES:],
            costs=[] if decision is None else list(costs_of(decision)),
            tables=[_tables(report, name, USUAL_DEPTH if decision is None else decision.K) for name in report.runs],
            comparison=comparison,
            differences=[]
            if comparison is None
            else [table for name in comparison.report.runs for table in slice_differences(comparison, name)],
            style=style,
            explorer=explored,
            weighted=weights_text(report),
            policy=page_policy(
                styles=[style] if explored is None else [style, explored.style],
                scripts=[] if explored is None or explored.data is None else [explored.script],
                style_attributes=True,
            ),
        )
    )


def notebook_html(report: Report) -> str:
    """The first screen for a notebook, as text without a decision or Jinja2; `to_html` gives the whole page."""
    decision = decided_on(report)
    if not isinstance(decision, str):
        # A notebook shows a report without being asked to, so that a missing extra must not be an error.
        with suppress(MissingExtraError):
            return html_of_first_screen(first_screen(report, decision))
    return f"<pre>{html_text(report.to_text())}</pre>"


def depth_of_page(report: Report, decision: Decision | None) -> int | None:
    """The K of the decision, or that of a weighted report, which has none; None where the page shows no queries."""
    if decision is not None:
        return decision.K
    return None if report.weights is None else depth_without_decision(report)


def _tables(report: Report, name: str, depth: int) -> dict[str, Any]:
    """All figures of a run, as tables, lines and notes; `slices` have a name, a header, rows and notes."""
    run = report.runs[name]
    header, rows = grid(report, name, run)
    further = (Figures(figures_without_depth(report, run)).lines, lines_of_controls(report, run))
    return {
        "name": name,
        "header": header,
        "rows": rows,
        "pools": grid_of_pools(report, run),
        "lines": ["\n".join(map(visible, lines)) for lines in further if lines],
        "notes": notes_of(report, run),
        "is_summed": run.judged is None,
        "queries": run.evaluated,
        "slices": [(column, *slice_grid(by_value, depth)) for column, by_value in run.slices.items()],
    }
