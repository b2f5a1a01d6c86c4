"""The pictures of the page: one of each kind, with all runs in it, as SVG in the page's own colours."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from html import escape
from io import StringIO
from typing import Any

from rag_selectivity.errors import InputError, needing
from rag_selectivity.measures.chance import BoR, success_of
from rag_selectivity.measures.utility import RANWG
from rag_selectivity.render import plots
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.difference import NOT_TESTED
from rag_selectivity.results.report import Report

#: Stand for the page's text colour and for its line colour in what matplotlib draws.
_INK, _LINE = "#0a0b0c", "#0d0e0f"
#: What matplotlib writes into each drawing.
_STYLE_OF_SVG = '<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>'
#: A coordinate with more than one decimal.
_TOO_EXACT = re.compile(r"(?<=[ML\s(\"])-?\d+\.\d{2,}(?=[\s,)\"])")


#: The page's own colours for those of a drawing.
_COLOURS = {
    _INK: "currentColor",
    _LINE: "var(--line)",
    **{colour: f"var(--run-{place})" for place, colour in enumerate(plots.OF_RUNS)},
    plots.GREY.lower(): "var(--muted)",
    plots.GREEN.lower(): "var(--good)",
    **{colour: f"var(--loss-{place})" for place, colour in enumerate(plots.OF_LOSSES.values())},
}
_CAPTIONS = {
    "Bits over random, over K": "The dashed line is the ceiling of the figures; their intervals may cross it.",
    "Success over K": "The share of the queries with enough relevant passages in the top K. The dashed line is a "
    "random draw.",
    "Utility over K": "RA-nWG: the share of the best evidence that K passages can hold.",
    "Junk over K": "The share of junk in the top K: a dot is the figure. A bar goes from no junk to nothing but junk "
    "among the unjudged passages.",
    "Who lost the evidence": "Queries by the step that lost more of their evidence: the retriever (not in the pool, "
    "which is the run's own list where none is given) or the selection (in the pool, not in the top K).",
    "Precision and recall": "The highest precision at each recall or a higher one.",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot with its title and a caption."""

    title: str
    caption: str
    svg: str


def pictures_of(report: Report, decision: Decision | None) -> Iterator[Picture]:
    """Everything that the report can show, the most important first."""
    depth = None if decision is None else decision.K
    success = success_of(report.measures)
    bor = BoR(rel=success.rel, m=success.m)
    losses = partial(plots.evidence, report, depth or max(report.depths, default=1))
    drawn: list[tuple[str, Callable[..., Any], int]] = [
        ("Bits over random, over K", partial(plots.selectivity, report, measure=bor, depth=depth), 0),
        ("Success over K", partial(plots.over_k, report, success, depth=depth), 0),
        ("Utility over K", partial(plots.over_k, report, RANWG(), depth=depth), 0),
        ("Junk over K", partial(plots.harm, report, depth=depth), 0),
        ("Who lost the evidence", losses, len(report.runs)),
        ("Precision and recall", partial(plots.precision_recall, report), 0),
    ]
    captions = dict(_CAPTIONS)
    if decision is not None and decision.pairs:
        pairs, title = decision.pairs, "Differences between the runs"
        tested = [pair for pair in pairs if pair.verdict != NOT_TESTED]
        rows = len(pairs) if len(pairs) <= plots.MOST_PAIRS else len(report.runs) - 1
        drawn.insert(5, (title, partial(plots.forest, decision), rows))
        captions[title] = (
            f"A test shows a difference in {decision.measure} for {sum(pair.apart for pair in pairs)} of {len(tested)} "
            f"pairs of runs, after Holm's correction (filled dots). Of many pairs, those with the best run are drawn."
        )
    for title, draw, rows in drawn:
        # A report may lack the measure.
        with suppress(InputError):
            yield Picture(title, captions[title], drawing(title, draw, rows))


def drawing(title: str, draw: Callable[..., Any], rows: int = 0) -> str:
    """A plot on new axes as SVG for the page.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed (the extra `report`).
    """
    with needing("matplotlib", "report", "Report.to_html"):
        import matplotlib
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
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
        figure = Figure(figsize=(5.4, plots.height_of(rows)), layout="constrained", dpi=72)
        axes = figure.subplots()
        draw(ax=axes)
        figure.patch.set_alpha(0)
        axes.patch.set_alpha(0)
        out = StringIO()
        # `savefig` would draw twice: it lays out first.
        FigureCanvasSVG(figure).print_svg(out, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _inlined(out.getvalue(), title)


def _inlined(svg: str, title: str) -> str:
    """The SVG as part of the page: sized by its style, coloured by its variables, with a label for screen readers."""
    head, _, rest = svg[svg.index("<svg") :].partition(">")
    box = head[head.index('viewBox="') :].split('"')[1]
    # Ids that nothing refers to could occur in several pictures of the page: remove them.
    referred = set(re.findall(r'(?:url\(|href=")#([^")]+)', rest))

    def of_page(tag: re.Match[str]) -> str:
        """A tag in the colours of the page, with coordinates to a tenth of a point."""
        coloured = re.sub("|".join(_COLOURS), lambda found: _COLOURS[found[0]], tag[0])
        known = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in referred else "", coloured)
        return _TOO_EXACT.sub(lambda found: f"{round(float(found[0]), 1) + 0.0:g}", known)

    # The page's own style says the same, and its policy allows no other. Texts stay as they are.
    rest = re.sub(r"<!--.*?-->", "", rest, flags=re.S).replace(_STYLE_OF_SVG, "")
    rest = re.sub(r"<[^>]*>", of_page, rest)
    named = f'role="img" aria-label="{escape(title)}" xmlns:xlink="http://www.w3.org/1999/xlink"'
    lines = re.sub(r"\s*\n\s*", "\n", rest)
    return f'<svg viewBox="{box}" {named}>{lines}'
