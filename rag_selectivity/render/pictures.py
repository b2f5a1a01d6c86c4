"""The pictures of the page: one of each kind, with all runs in it, as SVG in the page's own colours."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from io import StringIO
from typing import Any

from rag_selectivity.advice.by_loss import parameters_of
from rag_selectivity.errors import MissingExtraError
from rag_selectivity.measures import Measure
from rag_selectivity.measures.chance import BoR, BoR_max, Success
from rag_selectivity.measures.plan import at_depth, without_depth
from rag_selectivity.measures.utility import PROC, RANWG, Harm, PercentPROC
from rag_selectivity.render.decision_blocks import middle_cut
from rag_selectivity.render.labels import settle
from rag_selectivity.render.run_styles import OF_RUNS, shortened, style_of_run
from rag_selectivity.results.decision import CostPoint, Decision
from rag_selectivity.results.report import Report
from rag_selectivity.wording import number

#: Stand for the page's text colour and for its line colour in what matplotlib draws.
_SVG_DPI = 72
_INK, _LINE = "#0a0b0c", "#0d0e0f"
#: To how many characters the names of runs are cut in captions.
_LONGEST_IN_TEXT = 48
#: What matplotlib writes into each drawing.
_STYLE_OF_SVG = '<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>'
#: A coordinate with more than one decimal.
_TOO_EXACT = re.compile(r"(?<=[ML\s(\"])-?\d+\.\d{2,}(?=[\s,)\"])")


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot with its title and a caption."""

    title: str
    caption: str
    svg: str


def pictures_of(
    report: Report,
    decision: Decision | None,
    quality: Mapping[int, Any] | None,
) -> Iterator[Picture]:
    """Everything that the report can show, the most important first."""
    from rag_selectivity.render import plots

    depth = None if decision is None else decision.K
    has = _drawable(report)
    rel, m = parameters_of(report.measures)
    bor, most, success = (kind(rel=rel, m=1 if m is None else m) for kind in (BoR, BoR_max, Success))
    if decision is not None:
        yield from _of_costs(report, decision)
    if {bor, most} <= has:
        yield picture(
            "Bits over random, over K",
            f"{_spread(report, bor, depth)} No retriever can be above the dashed line.",
            lambda axes: plots.selectivity(report, axes, measure=bor, depth=depth),
        )
    if success in has:
        drawn = "The share of the queries with enough relevant passages in the top K."
        drawn += " The dashed line is a random draw." if most in has else ""
        yield picture(
            "Success over K",
            f"{_spread(report, success, depth)} {drawn}",
            lambda axes: plots.over_k(report, success, axes, depth=depth),
        )
    if RANWG() in has:
        yield picture(
            "Utility over K",
            f"{_spread(report, RANWG(), depth)} It is the share of the best evidence that K passages can hold.",
            lambda axes: plots.over_k(report, RANWG(), axes, depth=depth),
        )
    if Harm() in has:
        yield picture(
            "Junk over K",
            "The share of junk in the top K. A bar goes from no junk to nothing but junk among the unjudged passages.",
            lambda axes: plots.harm(report, axes, depth=depth),
        )
    losses = _depth_of_losses(report, depth)
    if losses is not None:
        yield picture(
            "Who lost the evidence",
            "Queries by the step that lost more of their evidence: the retriever (not in the pool) or the "
            "selection (in the pool, not in the top K).",
            lambda axes: plots.evidence(report, losses, axes),
            height=1.5 + 0.3 * len(report.runs),
        )
    if decision is not None and decision.pairs:
        apart, pairs = sum(pair.apart for pair in decision.pairs), plots.pairs_shown(decision)
        others = (
            ""
            if len(pairs) == len(decision.pairs)
            else f"Only pairs with {middle_cut(decision.best, _LONGEST_IN_TEXT)} are drawn."
        )
        yield picture(
            "Differences between the runs",
            f"{apart} of {len(decision.pairs)} pairs of runs can be told apart under {decision.measure} after "
            f"Holm's correction (filled dots). {others}",
            lambda axes: plots.differences(decision, axes),
            height=1.0 + 0.26 * len(pairs),
        )
    if report.runs and all(plots.curve_of(run) for run in report.runs.values()):
        yield picture(
            "Precision and recall",
            "The highest precision at each recall or a higher one.",
            lambda axes: plots.precision_recall(report, axes),
        )
    if quality:
        yield picture(
            "Answer quality over K",
            "The mean score of the answers with its interval.",
            lambda axes: plots.answer_quality(quality, axes),
        )


def _of_costs(report: Report, decision: Decision) -> Iterator[Picture]:
    """Cost against quality, for each kind of cost that is known."""
    from rag_selectivity.render.cost_plot import cost_quality

    names = {name: shortened(name) for name in report.runs}
    taken = Counter(names.values())
    names = {name: f"{i}: {names[name]}" if taken[names[name]] > 1 else names[name] for i, name in enumerate(names, 1)}
    styles = {names[name]: style_of_run(place) for place, name in enumerate(report.runs)}
    measure = replace(decision.measure, at=None)
    for trade in decision.trade_offs.values():
        measure = trade.measure

    def of(kind: str, points: Sequence[CostPoint]) -> Picture:
        over_k = len({point.K for point in points}) > 1
        depths = f"A ring is K = {decision.K}; the numbers are K." if over_k else f"At K = {decision.K}."
        return picture(
            f"{kind.capitalize()} of a query against {measure}",
            f"{depths} The grey steps are the best {measure} for at most that cost.",
            lambda axes: cost_quality(
                [replace(point, run=names[point.run]) for point in points],
                measure,
                kind,
                axes,
                styles=styles,
                decision_depth=decision.K,
            ).set_title("", loc="left"),
        )

    yield from (of(kind, points) for kind, points in decision.cost_points.items() if points)


def _drawable(report: Report) -> set[Measure]:
    """The measures that every run has at some depth, so that there are curves over K."""
    return {
        measure
        for measure in without_depth(report.measures)
        if all(any(at_depth(run.estimates, measure, k) for k in report.depths) for run in report.runs.values())
    }


def _depth_of_losses(report: Report, depth: int | None) -> int | None:
    """The K of the picture of losses: that of the decision, else the largest at which something was selected."""
    pair = (PROC(), PercentPROC())
    known = [
        k
        for k in report.depths
        if any(
            at_depth(run.per_query, pair[0], k) is not None and (cell := at_depth(run.estimates, pair[1], k)) and cell.n
            for run in report.runs.values()
        )
    ]
    if depth is not None:
        return depth if depth in known else None
    return known[-1] if known else None


def _spread(report: Report, measure: Measure, depth: int | None) -> str:
    """The lowest and the highest figure of the runs at a depth, in words."""
    cells = {name: depth and at_depth(run.estimates, measure, depth) for name, run in report.runs.items()}
    values = {name: cell.value for name, cell in cells.items() if cell and math.isfinite(cell.value)}
    if not values:
        return ""
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    if len(values) == 1:
        return f"{measure.name} is {number(values[low])} at K = {depth}."
    if number(values[low]) == number(values[high]):
        return f"At K = {depth}, {measure.name} is {number(values[low])} for all runs."
    ends = [f"{number(values[name])} ({middle_cut(name, _LONGEST_IN_TEXT)})" for name in (low, high)]
    return f"At K = {depth}, {measure.name} goes from {' to '.join(ends)}."


# -- drawing -------------------------------------------------------------------------------------------


def picture(title: str, caption: str, draw: Callable[[Any], Any], *, height: float = 3.4) -> Picture:
    """A plot on new axes as SVG.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed (the extra `report`).
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "Report.to_html") from None
    settings: dict[str, Any] = {
        "svg.fonttype": "none",
        # Ids must differ between the pictures of a page, and be the same each time the page is made.
        "svg.hashsalt": title,
        # Names of runs are text, whatever they hold.
        "text.parse_math": False,
        "font.family": "sans-serif",
        "font.size": 10.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), _INK),
        **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), _LINE),
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The browser has glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = Figure(figsize=(5.4, height), layout="constrained")
        axes = figure.subplots()
        draw(axes)
        axes.set_title("")
        figure.patch.set_alpha(0)
        for panel in figure.axes:
            panel.patch.set_alpha(0)
        # As `savefig` does it, which would draw the whole figure for it, to no paper.
        FigureCanvasSVG(figure)
        figure.dpi = _SVG_DPI
        settle(figure)
        figure.set_layout_engine("none")
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return Picture(title, " ".join(caption.split()), inlined(out.getvalue(), title))


def _css_colours() -> Iterable[tuple[str, str]]:
    from rag_selectivity.render import plots

    yield _INK, "currentColor"
    yield _LINE, "var(--line)"
    for place, colour in enumerate(OF_RUNS):
        yield colour, f"var(--run-{place})"
    yield plots.GREY.lower(), "var(--muted)"
    yield plots.GREEN.lower(), "var(--good)"
    for place, colour in enumerate(plots.OF_LOSSES.values()):
        yield colour, f"var(--loss-{place})"


def inlined(svg: str, title: str) -> str:
    """The SVG as part of the page: sized by its style, coloured by its variables, with a label for screen readers."""
    body = svg[svg.index("<svg") :]
    head, _, rest = body.partition(">")
    box = head[head.index('viewBox="') :].split('"')[1]
    for given, variable in _css_colours():
        rest = rest.replace(given, variable)
    # Ids that nothing refers to could occur in several pictures of the page: remove them.
    referred = set(re.findall(r'(?:url\(|href=")#([^")]+)', rest))
    rest = re.sub(r' id="([^"]*)"', lambda match: match.group(0) if match.group(1) in referred else "", rest)
    rest = _shortened(rest)
    named = f'role="img" aria-label="{escape(title)}" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg viewBox="{box}" {named}>{rest}'


def _shortened(svg: str) -> str:
    """Without comments, and with coordinates to a tenth of a point; texts stay as they are."""
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.S)
    # The page's own style says it, and its policy allows no other.
    svg = svg.replace(_STYLE_OF_SVG, "")
    svg = re.sub(r"<[^>]*>", lambda tag: _TOO_EXACT.sub(_rounded, tag.group(0)), svg)
    return re.sub(r"\s*\n\s*", "\n", svg)


def _rounded(match: re.Match[str]) -> str:
    return f"{round(float(match.group(0)), 1) + 0.0:g}"
