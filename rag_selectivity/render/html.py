"""The report as one HTML file: findings in words, plots, and a table of queries with their passages."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.advice import DEFAULT_MAX_K, DEFAULT_MAX_LOSS, advise_on, parameters_of, resampling_of
from rag_selectivity.data.forms import IdForm
from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.measures import (
    PROC,
    RANWG,
    BoR,
    BoR_max,
    Harm,
    Judged,
    Measure,
    PercentPROC,
    Success,
    nDCG,
    parse_measure,
)
from rag_selectivity.measures.plan import at_depth, without_depth
from rag_selectivity.render.passages import Passage, Reading, read_passages
from rag_selectivity.render.report_table import grid, lines_of_controls, lines_without_depth, notes_of
from rag_selectivity.render.tables import next_grids
from rag_selectivity.render.words import Finding, findings, headline_depth
from rag_selectivity.results.comparison import Comparison
from rag_selectivity.results.estimate import finite
from rag_selectivity.results.report import Report
from rag_selectivity.results.sweep import Recommendation
from rag_selectivity.statistics.next_passages import next_passages
from rag_selectivity.wording import number, percent

_PAGE = Path(__file__).with_name("page")
#: The page's colour variables (for light and dark) by the colour that matplotlib draws.
_INK, _LINE = "#0a0b0c", "#0d0e0f"
_CSS_COLOURS = {
    _INK: "currentColor",
    _LINE: "var(--line)",
    "#0072b2": "var(--blue)",
    "#d55e00": "var(--orange)",
    "#009e73": "var(--green)",
    "#666666": "var(--muted)",
    "#f4f4f4": "var(--empty)",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot with its title and a caption."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query in the table: its figures in the order of the columns, and its passages if they were read."""

    id: str
    text: str | None
    figures: tuple[float | None, ...]
    diagnosis: str | None
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything that the page shows about a run."""

    name: str
    findings: list[Finding]
    pictures: list[Picture]
    header: list[str]
    rows: list[list[str]]
    next_tables: list[tuple[list[str], list[list[str]]]]
    lines: list[str]
    notes: list[str]
    columns: tuple[str, ...]
    queries: list[QueryRow]
    total: int


def to_html(
    report: Report,
    *,
    comparison: Comparison | None = None,
    quality: Mapping[int, Mapping[str, float] | Sequence[float]] | None = None,
    qrels: Any = None,
    runs: Mapping[str, Any] | None = None,
    queries: Any = None,
    corpus: Any = None,
    reasons: Mapping[tuple[str, str], str] | None = None,
    title: str = "What retrieval is worth",
    depth: int | None = None,
    rel: int | None = None,
    m: int | None = None,
    max_k: int = DEFAULT_MAX_K,
    max_loss: float = DEFAULT_MAX_LOSS,
    max_queries: int = 500,
    max_read: int = 100,
    top: int = 10,
) -> str:
    """The whole report as one HTML file. It loads nothing from the network, has light and dark colours, and prints.

    Parameters
    ----------
    comparison : Comparison, optional
        A comparison of the same runs; adds a plot of the differences.
    quality : {K: {query: score}} or {K: [score, …]}, optional
        Scores of the answers; adds a plot of answer quality with BoR.
    qrels, runs : optional
        As in `evaluate`. With both, the worst queries show their passages.
    queries, corpus : optional
        {id: text} or files: the texts of the queries and of the passages.
    reasons : {(query, passage): reason}, optional
        Why a passage has its grade.
    depth : int, optional
        The K of the findings. Default: the advised K, or the nearest K that was measured.
    rel, m, max_k, max_loss : optional
        Parameters of the advice on K, as in `rag_selectivity.sweep`. Default of `rel` and `m`: those of the report's
        first BoR, or of its first Success.
    max_queries, max_read : int
        How many queries the table lists, and how many of them show their passages, worst first.
    top : int
        How many passages of a query are shown.

    Returns
    -------
    str
        The HTML text.

    Raises
    ------
    InputError
        If `depth` was not measured.
    MissingExtraError
        If Jinja2 or matplotlib is not installed (the extra `report`).
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("Jinja2", "report", "Report.to_html") from None
    pages = []
    if rel is None and m is None:
        rel, m = parameters_of(report.measures)
    advice = {name: advise_on(report, name, rel=rel, m=m, max_k=max_k, max_loss=max_loss) for name in report.runs}
    shown_at = {name: _depth_of(report, advice[name], depth) for name in report.runs}
    listed = {
        name: [query for query, _ in _worst(report, name, shown_at[name])[1][:max_queries]] for name in report.runs
    }
    reading = read_passages(
        {name: of_run[:max_read] for name, of_run in listed.items()},
        qrels if runs is not None and qrels is not None else {},
        runs if runs is not None and qrels is not None else {},
        named={query for of_run in listed.values() for query in of_run},
        queries=queries,
        corpus=corpus,
        depth=top,
        reasons=reasons,
        form=IdForm.of(next((run.input.get("ids") for run in report.runs.values()), None)),
    )
    for name in report.runs:
        tables = _next_tables(report, name, rel, 1 if m is None else m)
        pages.append(_run_page(report, name, advice[name], tables, quality, reading, shown_at[name], max_queries))
    pictures = [_forest(comparison)] if comparison is not None and comparison.rows else []
    environment = Environment(
        loader=FileSystemLoader(_PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["figure"] = lambda value: "–" if value is None else number(value)
    return environment.get_template("report.html.j2").render(
        title=title,
        report=report,
        pages=pages,
        pictures=[*pictures, *_of_all_runs(report)],
        style=(_PAGE / "style.css").read_text(encoding="utf-8"),
        script=(_PAGE / "script.js").read_text(encoding="utf-8"),
    )


def notebook_html(report: Report) -> str:
    """The findings and the tables for a notebook; `to_html` gives the whole page."""
    parts = [f"<p>{escape(report.trust.text)}</p>"]
    for name, run in report.runs.items():
        header, rows = grid(report, name, run)
        answers = "".join(
            f"<dt><b>{escape(each.question)}</b></dt><dd>{escape(each.answer)}</dd>" for each in findings(report, name)
        )
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        notes = "".join(
            f"<p><small>{escape(note)}</small></p>" for note in [*lines_of_controls(run), *notes_of(report, run)]
        )
        parts.append(
            f"<section><h3>{escape(name)}</h3><dl>{answers}</dl><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{notes}</section>"
        )
    return "".join(parts)


# -- a run ---------------------------------------------------------------------------------------------


def _run_page(
    report: Report,
    name: str,
    advice: Recommendation | None,
    next_tables: list[tuple[list[str], list[list[str]]]],
    quality: Mapping[int, Any] | None,
    reading: Reading,
    chosen: int,
    max_queries: int,
) -> RunPage:
    run = report.runs[name]
    header, rows = grid(report, name, run)
    columns, worst = _worst(report, name, chosen)
    verdicts: Mapping[str, str | None] = {}
    if all(at_depth(run.estimates, measure, chosen) for measure in (PROC(), PercentPROC())):
        verdicts = report.diagnosis(name, chosen).queries
    passages = reading.passages.get(name, {})
    queries = [
        QueryRow(query, reading.queries.get(query), figures, verdicts.get(query), tuple(passages.get(query, ())))
        for query, figures in worst[:max_queries]
    ]
    return RunPage(
        name,
        findings(report, name, chosen, advice),
        _pictures(report, name, quality, chosen),
        header,
        rows,
        next_tables,
        [*lines_without_depth(report, run), *lines_of_controls(run)],
        notes_of(report, run),
        columns,
        queries,
        run.evaluated,
    )


def _depth_of(report: Report, advice: Recommendation | None, depth: int | None) -> int:
    if depth is not None:
        if depth not in report.depths:
            raise InputError(f"depth {depth} was not measured; choose from {', '.join(map(str, report.depths))}")
        return depth
    return headline_depth(report, advice)


def _next_tables(report: Report, name: str, rel: int | None, m: int) -> list[tuple[list[str], list[list[str]]]]:
    """The tables of what the next passages add, if N and the lists are known."""
    judged = report.runs[name].judged
    if judged is None or judged.corpus_size is None:
        return []
    bootstrap = resampling_of(report)
    brackets = next_passages(judged, rel=rel, m=m, bootstrap=bootstrap)
    return next_grids(brackets, None if bootstrap is None else bootstrap.level)


def _worst(
    report: Report, name: str, chosen: int
) -> tuple[tuple[str, ...], list[tuple[str, tuple[float | None, ...]]]]:
    """The columns of the table, and every query with its figures, worst first, undefined figures last.

    Queries are ordered by the first measure of the table, then by the next.
    """
    run = report.runs[name]
    rel, m = parameters_of(report.measures)
    success = Success(rel=rel, m=1 if m is None else m)
    of_table: tuple[Measure, ...] = (RANWG(), PROC(), PercentPROC(), nDCG(), success, Harm(), Judged())
    columns = [measure @ chosen for measure in of_table if at_depth(run.per_query, measure, chosen) is not None]
    if not columns:
        columns = [parse_measure(key) for key in list(run.per_query)[:5]]
    values = [run.per_query[str(measure)] for measure in columns]
    order: list[int] = list(range(len(run.queries)))
    if columns:
        rising = [
            -value if measure.higher_is_better is False else value
            for measure, value in zip(columns, values, strict=True)
        ]
        order = np.lexsort([np.nan_to_num(value, nan=np.inf) for value in reversed(rising)]).tolist()
    return tuple(map(str, columns)), [(run.queries[i], tuple(finite(value[i]) for value in values)) for i in order]


# -- pictures ------------------------------------------------------------------------------------------


def _pictures(report: Report, name: str, quality: Mapping[int, Any] | None, depth: int) -> list[Picture]:
    from rag_selectivity.render import plots

    run = report.runs[name]
    has = _at_every_depth(report, [name])
    pictures = []
    first, last = (report.depths[0], report.depths[-1]) if report.depths else (1, 1)
    rel, m = parameters_of(report.measures)
    bor, most, success = (kind(rel=rel, m=1 if m is None else m) for kind in (BoR, BoR_max, Success))
    if {bor, most, success} <= has:
        pictures.append(
            _picture(
                f"{name}: selectivity and success over K",
                f"BoR goes from {_figure(report, name, bor @ first)} bits at K = {first} to "
                f"{_figure(report, name, bor @ last)} at K = {last}, while success goes from "
                f"{_figure(report, name, success @ first)} to {_figure(report, name, success @ last)}. "
                f"The dashed line is the ceiling of BoR.",
                lambda axes: plots.selectivity(report, name, axes, measure=bor),
            )
        )
    if {bor, most} <= has and math.isfinite(report[name, most @ last].value):
        ceiling = report[name, most @ last].value
        pictures.append(
            _picture(
                f"{name}: BoR and the regimes of K",
                f"At K = {last} a random draw succeeds in {percent(2**-ceiling)} of the queries, and no retriever can "
                f"be more than {number(ceiling)} bits better. In the degraded zone the ceiling is less than .67 bits, "
                f"in the collapse zone less than .074.",
                lambda axes: plots.collapse(report, name, axes, measure=bor),
            )
        )
    selected = at_depth(run.estimates, PercentPROC(), depth)
    if at_depth(run.per_query, PROC(), depth) is not None and selected is not None and selected.n:
        pictures.append(
            _picture(
                f"{name}: who lost the evidence, query by query",
                f"At K = {depth} the pool holds {_figure(report, name, PROC() @ depth)} of the best evidence, and "
                f"{_figure(report, name, PercentPROC() @ depth)} of that was selected. For a query to the left of "
                f".8, the pool lacks evidence; for a query below .8, the selection left evidence in the pool.",
                lambda axes: plots.evidence(report, name, depth, axes),
                square=True,
            )
        )
    if run.judged is not None:
        pictures.append(
            _picture(
                f"{name}: grades in the prompt",
                "The share of each grade at every rank, over all queries.",
                lambda axes: plots.grades(report, name, 20, axes),
            )
        )
    if quality and bor in has:
        pictures.append(
            _picture(
                f"{name}: answer quality over K",
                "The mean score of the answers with its interval, and BoR.",
                lambda axes: plots.answer_quality(report, quality, name, axes, measure=bor),
            )
        )
    return pictures


def _at_every_depth(report: Report, runs: Iterable[str]) -> set[Measure]:
    """The measures that have an estimate at every depth, so that a curve over K can be drawn."""
    if not report.depths:
        return set()
    parts = [report.runs[name].estimates for name in runs]
    return {
        measure
        for measure in without_depth(report.measures)
        if all(at_depth(part, measure, k) for part in parts for k in report.depths)
    }


def _of_all_runs(report: Report) -> list[Picture]:
    from rag_selectivity.render import plots

    has = _at_every_depth(report, report.runs)
    pictures = []
    if Harm() in has:
        pictures.append(
            _picture(
                "Junk over K",
                "Harm is the share of junk in the top K. The dotted line counts every unjudged passage as junk.",
                lambda a: plots.harm(report, a),
            )
        )
    if all(plots.curve_of(run) for run in report.runs.values()):
        pictures.append(
            _picture(
                "Precision and recall",
                "The highest precision at each recall or a higher one.",
                lambda axes: plots.precision_recall(report, axes),
            )
        )
    return pictures


def _forest(comparison: Comparison) -> Picture:
    from rag_selectivity.render import plots

    shown = [row for row in comparison.rows if row.verdict != "no difference shown"]
    return _picture(
        f"Differences from {comparison.baseline}",
        f"{len(shown)} of {len(comparison.rows)} differences are shown after Holm's correction (filled dots).",
        lambda axes: plots.forest(comparison, axes),
        height=1.0 + 0.26 * len(comparison.rows),
    )


def _figure(report: Report, name: str, measure: Measure) -> str:
    return number(report[name, measure].value)


def _picture(
    title: str, caption: str, draw: Callable[[Any], Any], *, square: bool = False, height: float = 3.5
) -> Picture:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "Report.to_html") from None
    settings: dict[str, Any] = {
        "svg.fonttype": "none",
        # Ids must differ between the pictures of a page, and be the same each time the page is made.
        "svg.hashsalt": title,
        "font.family": "sans-serif",
        "font.size": 10.5,
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), _INK),
        **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), _LINE),
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(4.6, 4.2) if square else (4.9, height), layout="constrained")
        axes = figure.subplots()
        draw(axes)
        axes.set_title("")
        figure.patch.set_alpha(0)
        for panel in figure.axes:
            panel.patch.set_alpha(0)
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return Picture(title, caption, _inlined(out.getvalue(), title))


def _inlined(svg: str, title: str) -> str:
    """The SVG as part of the page: sized by its style, coloured by its variables, with a label for screen readers."""
    body = svg[svg.index("<svg") :]
    head, _, rest = body.partition(">")
    box = head[head.index('viewBox="') :].split('"')[1]
    for given, variable in _CSS_COLOURS.items():
        rest = rest.replace(given, variable)
    # Ids that nothing refers to could occur in several pictures of the page: remove them.
    referred = set(re.findall(r'(?:url\(|href=")#([^")]+)', rest))
    rest = re.sub(r' id="([^"]*)"', lambda match: match.group(0) if match.group(1) in referred else "", rest)
    named = f'role="img" aria-label="{escape(title)}" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg viewBox="{box}" {named}>{rest}'
