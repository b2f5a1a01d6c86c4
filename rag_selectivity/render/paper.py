"""A table for a paper: systems × measures, the best figure bold, and which systems are significantly worse."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase

from rag_selectivity.measures.base import Measure, parse_measure
from rag_selectivity.render.writers import latex_of, latex_text
from rag_selectivity.results.comparison import BETTER, WORSE, Comparison
from rag_selectivity.results.report import Report
from rag_selectivity.wording import counted, level_text, number


def as_latex(result: Report | Comparison) -> str:
    """LaTeX tables of a report or a comparison, one for each depth; they need booktabs.

    A superscript at a figure names the systems that a test shows to be worse: in a comparison each run is tested
    against the baseline run, with Holm's correction over all tests.
    """
    report = result.report if isinstance(result, Comparison) else result
    by_depth: dict[object, list[Measure]] = {}
    for key in dict.fromkeys(key for run in report.runs.values() for key in run.estimates):
        measure = parse_measure(key)
        if measure.higher_is_better is not None and measure.name != "Judged":
            by_depth.setdefault(measure.at, []).append(measure)
    return "\n\n".join(_table(result, report, measures) for measures in by_depth.values())


def _table(result: Report | Comparison, report: Report, measures: list[Measure]) -> str:
    names = list(report.runs)
    letters = (
        ascii_lowercase if len(names) <= len(ascii_lowercase) else [f"{place}," for place in range(1, len(names) + 1)]
    )
    letter_of = dict(zip(names, letters, strict=False))
    columns = [list(_cells(result, report, measure, letter_of)) for measure in measures]
    sign = r"$^{{{}}}$ " if isinstance(result, Comparison) else ""
    rows = [
        [rf"{sign.format(letter_of[name].rstrip(','))}\texttt{{{latex_text(name)}}}", *cells]
        for name, *cells in zip(names, *columns, strict=True)
    ]
    return latex_of(["system", *(latex_text(str(measure)) for measure in measures)], rows, _caption(result, report))


def _cells(result: Report | Comparison, report: Report, measure: Measure, letter_of: dict[str, str]) -> Iterator[str]:
    """The figures of a measure in LaTeX."""
    shown = {name: run.estimates.get(str(measure)) for name, run in report.runs.items()}
    values = [each.value for each in shown.values() if each is not None and each.value == each.value]
    best = number(max(values) if measure.higher_is_better else min(values)) if values else ""
    worse: dict[str, str] = dict.fromkeys(shown, "")
    for row in result.rows if isinstance(result, Comparison) else ():
        if row.measure == measure and row.verdict in (BETTER, WORSE):
            better, other = (row.run, row.baseline) if row.verdict == BETTER else (row.baseline, row.run)
            worse[better] += letter_of[other]
    for name, estimate in shown.items():
        text = "–" if estimate is None else number(estimate.value)
        figure = rf"\textbf{{{latex_text(text)}}}" if text == best and len(shown) > 1 else latex_text(text)
        yield f"{figure}$^{{{worse[name].rstrip(',')}}}$" if worse[name] else figure


def _caption(result: Report | Comparison, report: Report) -> str:
    n = max((run.evaluated for run in report.runs.values()), default=0)
    size = "" if report.corpus_size is None else f", N = {report.corpus_size:,} passages"
    text = f"{counted(len(report.runs), 'system')}, n = {counted(n, 'query', 'queries')}{size}, {report.scale} scale."
    if len(report.runs) > 1:
        text += " The best figure of a column is bold."
    if isinstance(result, Comparison):
        settings = result.settings
        kind = "paired tests" if settings["paired"] else "tests of independent samples"
        text += (
            f" A superscript names the systems that are significantly worse at the {level_text(settings['level'])} "
            f"level: {kind} of each system against {result.baseline}, with Holm's correction over "
            f"{counted(settings['family'], 'test')}."
        )
    return latex_text(text)
