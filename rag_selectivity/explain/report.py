"""Each figure of a report in words: its formula with the numbers put in, its interval, its limits and its caveats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.explain.words import Figure, figure_sentences
from rag_selectivity.measures.base import REGISTRY, FloatArray, Measure
from rag_selectivity.measures.names import parse_measure
from rag_selectivity.render.blocks import Block, Heading, Note, Paragraph, markdown_of, text_of
from rag_selectivity.results.estimate import Caveat, Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.stored import read_report
from rag_selectivity.wording import MARKS, number


@dataclass(frozen=True, slots=True)
class FigureInWords:
    """One figure of one run.

    Attributes
    ----------
    run, measure : str
    value : float
    sentences : tuple of str
        The formula with the numbers put in comes first.
    caveats : tuple of Caveat
        Those of the figure, and those of all figures of the run.
    """

    run: str
    measure: str
    value: float
    sentences: tuple[str, ...]
    caveats: tuple[Caveat, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The figures of a report in words; prints as text of 80 columns."""

    figures: tuple[FigureInWords, ...]

    def to_text(self) -> str:
        """Text for a terminal of 80 columns."""
        return text_of(self._blocks())

    def to_markdown(self) -> str:
        """As Markdown."""
        return markdown_of(self._blocks())

    __str__ = to_text

    def _blocks(self) -> Iterable[Block]:
        for figure in self.figures:
            yield Heading(f"{figure.run}, {figure.measure}: {number(figure.value)}")
            yield from map(Paragraph, figure.sentences)
            for caveat in figure.caveats:
                yield Note(f"{MARKS[caveat.level]} {caveat.text} [{caveat.code}]".strip())


@dataclass(frozen=True, slots=True)
class _Run:
    """What is known of a run: of a report in memory also the details of single queries."""

    estimates: Mapping[str, Estimate]
    queries: Sequence[str]
    parts: Mapping[str, tuple[FloatArray, ...]] | None
    details: Mapping[str, FloatArray] | None
    input: Mapping[str, Any]
    label_caveats: tuple[Caveat, ...]


def explain(report: Report | str | Path, figures: Iterable[str | Measure] = (), run: str | None = None) -> Explanation:
    """Each figure of a report in words, with its formula and the numbers put in.

    Parameters
    ----------
    report : Report or path
        A path is that of a report saved as JSON. It does not hold what single figures of queries are made of, such as
        the weights of RA-nWG: a Report does.
    figures : iterable of str or Measure
        Only these, as in `["BoR@10"]`; a measure without depth stands for all its depths. Default: all.
    run : str, optional
        Only this run.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        If the report does not have the run or a figure, or the file is no report.

    >>> import rag_selectivity as rs
    >>> report = rs.evaluate({"q": {"a": 1}, "r": {"b": 1}}, {"q": ["a"], "r": ["c"]}, corpus_size=8, bootstrap=None)
    >>> print(explain(report, ["BoR@1"]).figures[0].sentences[0])
    BoR@1 = log2(mean Success / mean RandomSuccess) = log2(0.5 / 0.125) = 2.000, over 2 of 2 queries.
    """
    if isinstance(report, (str, Path)):
        report = read_report(report)
    if "weights" in report.settings:
        raise InputError(
            "figures with weights of queries are not explained in words, since these state means without weights: "
            "leave weights (--weights) out"
        )
    if run is not None and run not in report.runs:
        raise InputError(f"no run {run!r}{did_you_mean(run, report.runs)} (runs: {', '.join(report.runs)})")
    wanted = [parse_measure(figure) for figure in figures]
    found: list[FigureInWords] = []
    for name in report.runs if run is None else [run]:
        part = _of_report(report, name)
        chosen = _chosen(part.estimates, wanted, name)
        for key in chosen:
            found.append(_in_words(name, key, part, report))
    return Explanation(tuple(found))


def _chosen(estimates: Mapping[str, Estimate], wanted: Sequence[Measure], run: str) -> list[str]:
    if not wanted:
        return list(estimates)
    measured = {key: parse_measure(key) for key in estimates}
    chosen: list[str] = []
    for asked in wanted:
        found = [
            key
            for key, measure in measured.items()
            if measure == asked or (asked.at is None and replace(measure, at=None) == asked)
        ]
        if not found:
            raise InputError(f"the report has no {asked} of {run}; it has {', '.join(estimates)}")
        chosen += found
    return list(dict.fromkeys(chosen))


def _of_report(report: Report, name: str) -> _Run:
    part = report.runs[name]
    details = report.query_details(name) if part.judged is not None else None
    parts = part.figures.columns or None
    return _Run(part.estimates, part.queries, parts, details, part.input, part.label_caveats)


def _in_words(name: str, key: str, part: _Run, report: Report) -> FigureInWords:
    estimate, measure = part.estimates[key], parse_measure(key)
    parts = None if part.parts is None else part.parts.get(key)
    details = None
    if part.details is not None:
        details = {
            what.rpartition(".")[2]: values
            for what, values in part.details.items()
            if what.rpartition(".")[0] in (key, str(replace(measure, at=None)))
        }
    columns = {} if part.parts is None else part.parts
    factors = {name: columns[other][0] for name, other in _factors(measure).items() if other in columns}
    figure = Figure(
        measure=measure,
        estimate=estimate,
        queries=part.queries,
        parts=parts,
        details=details,
        factors=factors,
        input=part.input,
        scale=report.scale,
        settings=report.settings,
        corpus_size=report.corpus_size if isinstance(report.corpus_size, int) else None,
    )
    if report.path is not None:
        _check_parts(figure, f"{report.path}: the report is damaged: runs.{name}.per_query.parts.{key}")
    sentences = tuple(figure_sentences(figure))
    own = [caveat for caveat in estimate.caveats if caveat not in part.label_caveats]
    return FigureInWords(name, key, estimate.value, sentences, (*own, *part.label_caveats))


def _check_parts(figure: Figure, where: str) -> None:
    """Refuse a numerator without its denominator."""
    aggregate, parts = figure.aggregate, figure.parts
    if aggregate is not None and parts is not None and aggregate.form in ("ratio", "bits") and len(parts) < 2:
        raise InputError(f"{where} must have at least 2 parts, got {len(parts)}; write it anew with -o report.json")


def _factors(measure: Measure) -> dict[str, str]:
    """The measures that a measure is made of, with its parameters and depth: their keys by their names."""
    found = {}
    for name in measure.means_of:
        cls = REGISTRY.get(name)
        if cls is not None:
            shared = {
                each.name: getattr(measure, each.name) for each in cls.parameters() if hasattr(measure, each.name)
            }
            found[name] = str(cls(at=measure.at, **shared))
    return found
