"""Results as one HTML file that loads nothing; a report's page has the decision, plots and all queries too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from rag_selectivity.errors import MissingExtraError
from rag_selectivity.render.blocks import Block, Note
from rag_selectivity.render.claim_page import claim_page_blocks
from rag_selectivity.render.decision_blocks import decision_table
from rag_selectivity.render.explorer import explorer
from rag_selectivity.render.first_lines import decided_on, depth_without_decision
from rag_selectivity.render.first_screen import facts_of, first_screen, html_of_first_screen
from rag_selectivity.render.pictures import pictures_of
from rag_selectivity.render.report_table import run_blocks, weights_text
from rag_selectivity.render.run_styles import shape_of_run
from rag_selectivity.render.templates import environment, page_policy, style_of
from rag_selectivity.render.writers import html_of, html_text
from rag_selectivity.results.claims import ClaimReport
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.report import Report
from rag_selectivity.results.result import Result
from rag_selectivity.wording import counted

#: So many pictures are on the first two printed pages.
_FIRST_PICTURES = 4
TITLE = "What retrieval is worth"


def page_of_blocks(result: Result, blocks: Iterable[Block]) -> str:
    """The page of a result without a first screen.

    Raises
    ------
    MissingExtraError
        If Jinja2 is not installed (the extra `report`).
    """
    is_claims = isinstance(result, ClaimReport)
    return _rendered(
        title="What passages support" if is_claims else type(result).__name__,
        body=html_of(claim_page_blocks(result) if isinstance(result, ClaimReport) else blocks),
    )


def to_html(
    report: Report,
    *,
    decision: Decision | None = None,
    qrels: Any = None,
    runs: Mapping[str, Any] | None = None,
    queries: Any = None,
    corpus: Any = None,
    reasons: Mapping[tuple[str, str], str] | None = None,
    by: Any = None,
    title: str = TITLE,
) -> str:
    """The whole report as one HTML file. It loads nothing from the network, has light and dark colours, and prints.

    Parameters
    ----------
    decision : Decision, optional
        What the first screen shows. Default: that of the report, or `rag_selectivity.advice.decide(report)`. A report
        that holds only sums (of a monitor) has none, and neither has one with weights of queries.
    qrels, runs : optional
        As in `evaluate`: what the passages of the queries are read from.
    queries, corpus : optional
        {id: text} or files: the texts of the queries and of the passages.
    reasons : {(query, passage): reason}, optional
        Why a passage has its grade.
    by : table of queries, optional
        A column `query_id` and columns to filter the queries by, such as type, language or customer: a path, a frame
        or records.
    title : str

    Returns
    -------
    str
        The HTML text, at most about 10 MB: long texts of passages are cut for it.

    Raises
    ------
    MissingExtraError
        If Jinja2 or matplotlib is not installed (the extra `report`).
    """
    if decision is None:
        known = decided_on(report)
        decision = None if isinstance(known, str) else known
    pictures = list(pictures_of(report, decision))
    depth = decision.K if decision is not None else None if report.weights is None else depth_without_decision(report)
    explored = None
    if depth is not None:
        explored = explorer(
            report,
            depth,
            qrels=qrels,
            runs=runs,
            queries=queries,
            corpus=corpus,
            reasons=reasons,
            by=by,
            measure=None if decision is None else decision.measure,
            best=None if decision is None else decision.best,
        )
    details = {name: html_of([*run_blocks(report, name), *_of_sums(report, name)]) for name in report.runs}
    if decision is not None:
        legend = (
            "Runs that share a letter (alike) cannot be told apart. + and − mark what is shown to be better and worse "
            f"than {decision.baseline}."
        )
        details = {f"All runs at K = {decision.K}": html_of([decision_table(decision), Note(legend)]), **details}
    return _rendered(
        title=title,
        report=report,
        screen=None if decision is None else first_screen(report, decision),
        facts=facts_of(report, decision),
        first_pictures=pictures[:_FIRST_PICTURES],
        more_pictures=pictures[_FIRST_PICTURES:],
        details=details,
        explorer=explored,
        weighted=weights_text(report),
        shapes=[shape_of_run(place) for place in range(len(report.runs))],
    )


def _of_sums(report: Report, name: str) -> Iterable[Block]:
    run = report.runs[name]
    if run.judged is None:
        queries = counted(run.evaluated, "query", "queries")
        yield Note(f"The figures were summed over {queries}, of which nothing else was kept.")


def _rendered(*, shapes: Iterable[str] = (), explorer: Any = None, **values: Any) -> str:
    """The one page: its style and scripts, and no others, may do something."""
    templates = environment("to_html")
    # A macro returns markup, which would escape what it is added to.
    style = style_of("first_screen", "style")
    style += str(templates.get_template("first_screen.html.j2").module.colours(list(shapes)))
    policy = page_policy(
        styles=[style] if explorer is None else [style, explorer.style],
        scripts=[] if explorer is None or explorer.data is None else [explorer.script],
        style_attributes=True,
    )
    template = templates.get_template("report.html.j2" if "report" in values else "page.html.j2")
    return str(template.render(style=style, policy=policy, explorer=explorer, **values))


def notebook_html(report: Report) -> str:
    """The first screen for a notebook, as text without a decision or Jinja2; `to_html` gives the whole page."""
    decision = decided_on(report)
    if not isinstance(decision, str):
        # A notebook shows a report without being asked to, so that a missing extra must not be an error.
        with suppress(MissingExtraError):
            return html_of_first_screen(first_screen(report, decision))
    return f"<pre>{html_text(report.to_text())}</pre>"
