"""Every result as text, Markdown and LaTeX, as a page and in a notebook: importing it fills the registry of views."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from string import ascii_lowercase
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import Measure, parse_measure
from rag_selectivity.measures.plan import nearest_depth
from rag_selectivity.render import judging, report_tables, workflows  # noqa: F401 - two fill SHOWN
from rag_selectivity.render.blocks import BLANK, SHOWN, Block, Details, Lines, bare
from rag_selectivity.render.first_screen import decided_on, first_screen, report_of, rules_of
from rag_selectivity.render.html import notebook_html, page_of_blocks, to_html
from rag_selectivity.render.writers import latex_of, latex_text, markdown_of, text_of
from rag_selectivity.results.claims import ClaimReport
from rag_selectivity.results.difference import BETTER, WORSE
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.report import Comparison, Report
from rag_selectivity.results.result import VIEWS, Result
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.wording import counted, level_text

_MORE = Lines(["All figures, intervals and notes: --details, or details() in Python."])


def blocks_of(result: Result) -> Iterable[Block]:
    """The headings, tables and notes of a result."""
    return SHOWN[type(result)][1](result)


def _first(result: Result) -> list[Block]:
    """The first screen of a report and of a comparison, and changes since a stored report."""
    if not isinstance(result, (Report, Comparison)):
        return []
    changes = report_of(result).changes
    return [*first_screen(result).blocks(), *(() if changes is None else report_tables.change_blocks(changes))]


def as_text(result: Result, *, ruled: bool = True, details: bool = False) -> str:
    """Text for a terminal; `ruled` draws a line below table heads."""
    first = _first(result)
    return text_of([*first, *(blocks_of(result) if details or not first else [_MORE])], ruled=ruled)


def as_markdown(result: Result, *, details: bool = False) -> str:
    """Markdown, for example for a pull request; the details below a first screen are folded."""
    first = _first(result)
    rest = [*blocks_of(result)] if details or not first else [_MORE]
    folded = [Details("All figures, intervals and notes", rest)] if details and first else rest
    return markdown_of([*first, *folded])


def _page(result: Result, **options: Any) -> str:
    if isinstance(result, (Report, Comparison)):
        return to_html(result, **options)
    blocks = judging.claim_blocks(result, whole=True) if isinstance(result, ClaimReport) else blocks_of(result)
    return page_of_blocks(SHOWN[type(result)][0], [*_first(result), *blocks])


def as_latex(result: Result) -> str:
    """The LaTeX table of a report or a comparison, at the depth nearest to the K of its decision; it needs booktabs.

    A superscript at a figure names the systems that a test shows to be worse: in a comparison each run is tested
    against the baseline run, with Holm's correction over all tests.
    """
    if not isinstance(result, (Report, Comparison)):
        raise InputError(f"a {type(result).__name__} has no LaTeX output; use text, Markdown, JSON or CSV")
    report = report_of(result)
    figures = _figures(result, report)
    names = list(report.runs)
    letters = ascii_lowercase if len(names) <= 26 else [f"{place}," for place, _ in enumerate(names, 1)]
    letter_of = dict(zip(names, letters, strict=False))
    measures = dict.fromkeys(measure for of_run in figures.values() for measure in of_run)
    columns = [
        list(_cells(result, {name: of_run.get(measure) for name, of_run in figures.items()}, measure, letter_of))
        for measure in measures
    ]
    sign = r"$^{{{}}}$ " if isinstance(result, Comparison) else ""
    rows = [
        [rf"{sign.format(letter_of[name].rstrip(','))}\texttt{{{latex_text(name)}}}", *cells]
        for name, *cells in zip(names, *columns, strict=True)
    ]
    heads = ["system", *(latex_text(str(measure)) for measure in measures)]
    return latex_of(heads, rows, _caption(result, report, figures.values(), "".join(map("".join, columns))))


def _figures(result: Report | Comparison, report: Report) -> dict[str, dict[Measure, Estimate]]:
    """The figures of each run that were asked for: at their own depth, at that nearest to the K, or of whole lists."""
    known = decided_on(result)
    wanted = nearest_depth(report.depths, *([] if isinstance(known, str) else [known.K]))
    figures = {}
    for name, run in report.runs.items():
        parsed = {parse_measure(key): estimate for key, estimate in run.estimates.items()}
        asked = {m for m in report.measures if m.at is not None and m.name != "Judged"}
        ranked = {m for m in parsed if m.higher_is_better is not None and m.name != "Judged"}
        chosen = asked | {m for m in ranked if m.at in (None, wanted)} or ranked or set(parsed)
        figures[name] = {m: each for m, each in parsed.items() if m in chosen}
    return figures


def _cells(
    result: Report | Comparison, shown: Mapping[str, Estimate | None], measure: Measure, letter_of: Mapping[str, str]
) -> Iterator[str]:
    """The figures of a measure in LaTeX; no best one is bold where some are ranges, or without a direction."""
    known = [each for each in shown.values() if each is not None and each.value == each.value]
    has_best = measure.higher_is_better is not None and not any(each.possible for each in known)
    best = (max if measure.higher_is_better else min)([each.value for each in known if has_best], default=math.nan)
    worse: dict[str, str] = dict.fromkeys(shown, "")
    for row in result.rows if isinstance(result, Comparison) else ():
        if row.measure == measure and row.verdict in (BETTER, WORSE):
            better, other = (row.run, row.baseline) if row.verdict == BETTER else (row.baseline, row.run)
            worse[better] += letter_of[other]
    for name, estimate in shown.items():
        figure = latex_text(BLANK if estimate is None else bare(replace(estimate, caveats=())))
        if estimate is not None and estimate.value == best and len(shown) > 1:
            figure = rf"\textbf{{{figure}}}"
        yield f"{figure}$^{{{worse[name].rstrip(',')}}}$" if worse[name] else figure


def _caption(result: Report | Comparison, report: Report, figures: Iterable[Mapping[Any, Estimate]], cells: str) -> str:
    size = "" if report.corpus_size is None else f", N = {report.corpus_size:,} passages"
    text = f"{counted(len(report.runs), 'system')}, n = {counted(report.evaluated, 'query', 'queries')}{size}, "
    scale = f"{report.scale} scale, relevant from grade {scale_named(report.scale).relevant_from}"
    text += f"{', '.join([scale, *rules_of(report)])}."
    text += " The best figure of a column is bold." * (r"\textbf" in cells)
    text += " A ≥ stands before the lower end of a figure that is not known." * (r"\geq" in cells)
    if isinstance(result, Comparison):
        kind = "paired tests" if result.settings["paired"] else "tests of independent samples"
        tests, level = counted(result.settings["family"], "test"), level_text(result.settings["level"])
        text += " A superscript names the systems that are" if "$^{" in cells else " No system is shown to be"
        text += f" significantly worse at the {level} level: {kind} of each system against {result.baseline} (other "
        text += f"pairs have no marks), with Holm's correction over {tests}."
    codes = {each.code for of_run in figures for x in of_run.values() for each in x.caveats}
    return latex_text(text + f" Caveats: {', '.join(sorted(codes))} (rag-selectivity explain)." * bool(codes))


VIEWS.update(text=as_text, markdown=as_markdown, latex=as_latex, page=_page, notebook=notebook_html)
