"""Each figure of a report in words: its formula with the numbers put in, its interval and its caveats."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.inference.bounded import few_differ
from rag_selectivity.inference.interval_methods import NEARLY
from rag_selectivity.measures.base import DIRECTION, FloatArray, Measure, parse_measure, summary
from rag_selectivity.render.blocks import Block, Heading, Note, shown
from rag_selectivity.results.estimate import AS_JUDGED, CALIBRATED, WITH_CONTROLS, WITH_TAIL, Caveat, Estimate
from rag_selectivity.results.plain import Plain
from rag_selectivity.results.report import Report
from rag_selectivity.results.result import Result
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.results.stored import read_report
from rag_selectivity.wording import MARKS, counted, level_text, number

#: What a figure is that rests on more than the labels as they are.
_BASES = {
    WITH_CONTROLS: "the median of draws of the lists' success and of a random draw's, with random controls",
    WITH_TAIL: "the median over completions of the labels below the pool, drawn by the graded ones",
    CALIBRATED: "the median over completions of the judge's labels, drawn by the labels of people",
}


class FigureInWords(Plain):
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


class Explanation(Result):
    """The figures of a report in words."""

    schema = "rag-selectivity/explanation/1"

    figures: tuple[FigureInWords, ...]

    def table(self) -> Iterable[FigureInWords]:
        """A row for each figure."""
        return self.figures


@shown(Explanation, "The figures in words")
def _blocks(found: Explanation) -> Iterable[Block]:
    for figure in found.figures:
        yield Heading(f"{figure.run}, {figure.measure}: {number(figure.value)}")
        yield from map(Note, figure.sentences)
        for caveat in figure.caveats:
            yield Note(f"{MARKS[caveat.level]} {caveat.text} [{caveat.code}]".strip())


def explain(report: Report | str | Path, figures: Iterable[str | Measure] = (), run: str | None = None) -> Explanation:
    """Each figure of a report in words, with its formula and the numbers put in.

    Parameters
    ----------
    report : Report or path
        A path is that of a report saved as JSON.
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
    report = read_report(report) if isinstance(report, (str, Path)) else report
    if report.weights is not None:
        raise InputError("figures with weights of queries are not explained in words: leave weights (data.weights) out")
    if run is not None and run not in report.runs:
        raise InputError(f"no run {run!r}{did_you_mean(run, report.runs)} (runs: {', '.join(report.runs)})")
    wanted = [parse_measure(figure) for figure in figures]
    found = []
    for name in report.runs if run is None else [run]:
        part = report.runs[name]
        for key in _chosen(part.estimates, wanted, name):
            sentences = tuple(_sentences(parse_measure(key), part, part.figures.columns.get(key), report.settings))
            own = [caveat for caveat in part.estimates[key].caveats if caveat not in part.label_caveats]
            found.append(FigureInWords(name, key, part.estimates[key].value, sentences, (*own, *part.label_caveats)))
    return Explanation(tuple(found))


def _chosen(estimates: Mapping[str, Estimate], wanted: Sequence[Measure], run: str) -> list[str]:
    """The keys of the figures that are asked for."""
    chosen: list[str] = []
    for asked in wanted:
        own = [key for key in estimates if asked in (each := parse_measure(key), replace(each, at=None))]
        if not own:
            raise InputError(f"the report has no {asked} of {run}; it has {', '.join(estimates)}")
        chosen += own
    return list(dict.fromkeys(chosen)) if wanted else list(estimates)


def _sentences(
    measure: Measure, part: RunReport, parts: Sequence[FloatArray] | None, settings: Mapping[str, Any]
) -> Iterator[str]:
    """What is to be said of a figure, the formula first."""
    estimate = part.estimates[str(measure)]
    why = "" if estimate.reason is None else f": {estimate.reason}"
    counts = f", over {estimate.n:,} of {counted(estimate.n_total, 'query', 'queries')}"
    is_open = math.isnan(estimate.value)
    value = f"has no value{counts}{why}" if is_open else f"= {number(estimate.value)}{counts}"
    if estimate.basis == AS_JUDGED:
        formula = "" if is_open else f"= {_formula(measure, parts, estimate.value)} "
        yield f"{measure} {formula}{value}."
    else:
        rough = " It is rough: less sure than its interval says." if estimate.rough else ""
        yield f"{measure} {value}." if is_open else f"{measure} {value}: {_BASES[estimate.basis]}.{rough}"
        judged, ends = estimate.as_judged, estimate.as_judged_interval
        if judged is not None and math.isfinite(judged):
            interval = "" if ends is None else f", interval {number(ends[0])} to {number(ends[1])}"
            yield f"With the labels as they are: {_formula(measure, parts, judged)} = {number(judged)}{interval}."
    yield f"{summary(type(measure))} {DIRECTION[measure.higher_is_better]}"
    if math.isnan(estimate.low):
        yield f"It has no interval{why}."
    else:
        reach = f"{number(estimate.low)} to {number(estimate.high)}"
        interval = f"The {level_text(settings['level'])} interval is {reach}: {_method(estimate, parts, settings)}."
        yield f"It may be anything from {reach}." if is_open else interval
    if estimate.possible is not None:
        reach = " to ".join(map(number, estimate.possible))
        yield f"Some passages are unjudged: by what they are, the figure is {reach}."
    if estimate.placebo is not None:
        yield f"If its grades were shuffled, the figure as judged would be {number(estimate.placebo)} (its placebo)."


def _formula(measure: Measure, parts: Sequence[FloatArray] | None, value: float) -> str:
    """`log2(mean Success / mean RandomSuccess) = log2(0.858 / 0.0232)`; without numbers if these were not kept."""
    of_query = f"mean over queries of [{measure.formula or summary(type(measure)).rstrip('.')}]"
    if not parts or np.isnan(parts[0]).all():
        return f"{of_query} (the figures of single queries were not kept)"
    symbols, numbers = put_in(parts, measure.means_of, value)
    return f"{symbols or of_query} = {numbers}"


def _method(estimate: Estimate, parts: Sequence[FloatArray] | None, settings: Mapping[str, Any]) -> str:
    """How the interval was made."""
    if estimate.basis != AS_JUDGED:
        return "over what was drawn for the labels, and queries"
    resamples = settings.get("resamples")
    drawn = f"{resamples:,} bootstrap resamples of the queries" if resamples else f"method {settings.get('method')}"
    if parts and "clusters" not in settings:
        first, *others = (part[~np.isnan(parts[0])] for part in parts)
        # Every query succeeds or fails, and chance is nearly the same for all.
        if np.isin(first, (0.0, 1.0)).all() and all(part.max() <= NEARLY * part.min() for part in others[:1]):
            uneven = any(np.ptp(part) > 0 for part in others)
            return "exact, from the binomial distribution (mid-P)" + ", but for the error of the mean chance" * uneven
        if np.ptp(first) == 0 or (not others and few_differ(first[:, None])):
            return f"{drawn}, widened to the bound for few queries that differ (Clopper and Pearson, Gaffke)"
    return drawn


# -- the formula with numbers put in: as few digits as give the printed figure again ---------------------

#: A formula with at most so many digits is read, not copied.
_READABLE = 8
_ALL_DIGITS = 17


@dataclass(frozen=True, slots=True)
class Form:
    """A formula: with `{0}` and `{1}` for its numbers, and as a function of them."""

    text: str
    value: Callable[..., float]


def _log2(value: float) -> float:
    return math.log2(value) if value > 0 else -math.inf


def _divided(a: float, b: float) -> float:
    return a / b if b else math.nan


_RATIO, _BITS = Form("{0} / {1}", _divided), Form("log2({0} / {1})", lambda a, b: _log2(_divided(a, b)))
_CEILING = Form("−log2({0})", lambda a: -_log2(a))
#: Near 1 a probability has too few digits; what is missing to 1 has them all.
_BITS_OF_MISSES = Form("log2((1 − {0}) / (1 − {1}))", lambda a, b: _log2(_divided(1 - a, 1 - b)))
_CEILING_OF_MISS = Form("−log2(1 − {0})", lambda a: -math.log1p(-a) / math.log(2))


def put_in(parts: Sequence[FloatArray], names: Sequence[str], value: float) -> tuple[str, str]:
    """The formula of a figure in the names of its means, and in numbers: the one that gives the figure.

    >>> put_in([np.array([1.0, 0.0]), np.array([0.125, 0.125]), np.array([0.875, 0.875])], ["Success", "chance"], 2.0)
    ('log2(mean Success / mean chance)', 'log2(0.5 / 0.125)')
    """
    known = ~np.isnan(parts[0])
    means = [float(np.mean(part[known])) for part in parts]
    forms: list[tuple[Form, Sequence[float]]] = [(_RATIO, (float(np.sum(parts[0][known])), int(known.sum())))]
    if len(names) == 1:
        forms = [(_CEILING, means[:1]), *([(_CEILING_OF_MISS, means[1:2])] if means[1:] else [])]
    elif names and means[1:]:
        forms = [(_RATIO, means[:2]), (_BITS, means[:2]), (_BITS_OF_MISSES, (1 - means[0], means[-1]))]
    form, numbers = _filled(forms, value)
    symbols = _CEILING.text if len(names) == 1 else ""
    if len(names) == 2 and means[1:]:
        symbols = _RATIO.text if form is _RATIO else _BITS.text
    return symbols.format(*(f"mean {name}" for name in names)), re.sub("(?<!e)-", "−", numbers)


def _filled(forms: Sequence[tuple[Form, Sequence[float]]], printed: float) -> tuple[Form, str]:
    """The first form that gives the printed figure with few digits; else the first that gives it at all."""
    wanted = number(printed)
    for most in (_READABLE, _ALL_DIGITS):
        for form, values in forms:
            for digits in range(3, most + 1):
                texts = [_plain(value, digits) for value in values]
                if number(form.value(*map(float, texts)) + 0.0) == wanted:
                    return form, form.text.format(*texts)
    form, values = forms[0]
    return form, form.text.format(*(_plain(value, _ALL_DIGITS) for value in values))


def _plain(value: float, digits: int) -> str:
    """A number with so many significant digits, and no needless zeros."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    rounded = f"{value:.{digits}g}"
    return rounded if abs(value) < 1e-4 else np.format_float_positional(float(rounded), trim="-")
