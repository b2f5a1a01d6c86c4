"""The sentences about one figure, each true of the labels and the rule that the figure rests on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_selectivity.errors import SelectivityError
from rag_selectivity.explain.numbers import ceiling_in_words, of_mean, of_parts, plain
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.token_budget import TokenBudget, is_budget
from rag_selectivity.measures.base import Aggregate, FloatArray, Measure, Real
from rag_selectivity.measures.chance import regime
from rag_selectivity.measures.definition import summary
from rag_selectivity.results.estimate import AS_JUDGED, CALIBRATED, WITH_CONTROLS, WITH_TAIL, Estimate
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.wording import counted, level_text, number, percent

_CORPUS = 1 << 40
#: What is completed, by what a figure rests on.
_COMPLETIONS = {
    CALIBRATED: "the judge's labels, drawn by the labels of people",
    WITH_TAIL: "the labels below the pool, drawn by the graded ones",
}
_DIRECTION = {
    True: "Higher is better.",
    False: "Lower is better.",
    None: "It is a property of corpus, labels and K, not of the retriever.",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run, and what is known of how it was made.

    `parts` are the parts of the measure's outcome for each query, and `factors` the figures of each query of the
    measures that it is made of; `details` is None if they were not kept.
    """

    measure: Measure
    estimate: Estimate
    queries: Sequence[str]
    parts: tuple[FloatArray, ...] | None
    details: Mapping[str, FloatArray] | None
    factors: Mapping[str, FloatArray]
    input: Mapping[str, Any]
    scale: str
    settings: Mapping[str, Any]
    corpus_size: int | None

    @property
    def key(self) -> str:
        return str(self.measure)

    @property
    def printed(self) -> float:
        """The figure with the labels as they are, which the parts give."""
        estimate = self.estimate
        return estimate.value if estimate.as_judged is None else estimate.as_judged

    @property
    def means(self) -> list[float] | None:
        """The means of the parts over the queries with a figure; None if there are none."""
        if self.parts is None or not (defined := ~np.isnan(self.parts[0])).any():
            return None
        return [float(np.mean(part[defined])) for part in self.parts]

    @property
    def has_exact_interval(self) -> bool:
        """Whether every query succeeds or fails and all else is the same for all: then no resample is needed."""
        if self.parts is None or "clusters" in self.settings:
            return False
        first, *others = (part[~np.isnan(self.parts[0])] for part in self.parts)
        is_rate = len(first) > 0 and bool(np.isin(first, (0.0, 1.0)).all())
        return is_rate and all(bool((part == part[0]).all()) for part in others)

    @property
    def aggregate(self) -> Aggregate | None:
        """How the measure aggregates; None if its outcome needs more than grades and a list."""
        return aggregate_of(self.measure, self.scale)


def aggregate_of(measure: Measure, scale: str) -> Aggregate | None:
    """How a measure aggregates, from its outcome for one small list; None if it has none for such a list.

    >>> from rag_selectivity.measures import parse_measure
    >>> aggregate_of(parse_measure("BoR@10"), "trec").form, aggregate_of(parse_measure("IPrec@0.5"), "trec").form
    ('bits', 'mean')
    """
    known = scale_named(scale)
    one_query = JudgedRun.from_counts([_CORPUS], [1], [1], [1])
    judged = replace(one_query, scale=known, grades=np.array([known.relevant_from]))
    at = measure.at if measure.at is not None else measure.default_depths(np.array([1]))[0]
    at = 1 if is_budget(at) else at
    try:
        return replace(measure, at=None).at_ranks(judged, np.array([at])).aggregate
    except SelectivityError:
        return None


def figure_sentences(figure: Figure) -> Iterator[str]:
    """What is to be said of a figure, the formula first."""
    estimate = figure.estimate
    yield _formula(figure)
    yield " ".join(_about(figure))
    rest = [*_interval(figure), *_worked(figure), *_limits(figure)]
    if rest:
        yield " ".join(rest)
    if estimate.placebo is not None:
        yield " ".join(_placebo(estimate))


# -- the formula -----------------------------------------------------------------------------------


def _formula(figure: Figure) -> str:
    estimate, key = figure.estimate, figure.key
    if estimate.basis == WITH_CONTROLS:
        return f"{_with_controls(figure)} {_as_judged(figure)}"
    if estimate.basis in _COMPLETIONS:
        median = f"the median over many completions of {_COMPLETIONS[estimate.basis]}, of {_symbols(figure)}"
        value = f"has no value{_why(estimate)}" if math.isnan(estimate.value) else f"= {number(estimate.value)}"
        rough = " It is rough: less sure than its interval says." if estimate.rough else ""
        return f"{key} {value}: {median}.{rough} {_as_judged(figure)}"
    if math.isnan(estimate.value):
        return f"{key} = {_symbols(figure)} has no value{_why(estimate)}."
    return f"{key} = {_put_in(figure)}{_over(figure)}."


def _why(estimate: Estimate) -> str:
    return "" if estimate.reason is None else f": {estimate.reason}"


def _over(figure: Figure) -> str:
    n, total = figure.estimate.n, figure.estimate.n_total
    return f", over {n:,} of {counted(total, 'query', 'queries')}"


def _as_judged(figure: Figure) -> str:
    if not math.isfinite(figure.printed):
        return "With the labels as they are it has no finite value."
    ends = figure.estimate.as_judged_interval
    interval = "" if ends is None or math.isnan(ends[0]) else f", interval {number(ends[0])} to {number(ends[1])}"
    return f"With the labels as they are: {_put_in(figure)}{interval}."


def _put_in(figure: Figure) -> str:
    """`log2(mean Success / mean RandomSuccess) = log2(0.858 / 0.0232) = 5.208`."""
    means, aggregate, value = figure.means, figure.aggregate, number(figure.printed)
    if means is None or aggregate is None or figure.parts is None:
        kept = "" if figure.parts is not None else " (the figures of single queries were not kept)"
        return f"{_symbols(figure)} = {value}{kept}"
    if aggregate.form == "mean":
        counts = int((~np.isnan(figure.parts[0])).sum())
        return f"{_symbols(figure)} = {of_mean(float(np.nansum(figure.parts[0])), counts, figure.printed)} = {value}"
    formula = of_parts(aggregate, means, figure.printed)
    if formula is None:
        numbers = ", ".join(plain(mean, 6) for mean in means)
        return f"{_symbols(figure)} of the means {numbers} = {value}"
    return f"{_symbols(figure)} = {formula} = {value}"


def _symbols(figure: Figure) -> str:
    """The formula in symbols, of all queries together."""
    measure, aggregate = figure.measure, figure.aggregate
    names = [f"mean {name}" for name in measure.means_of]
    form = "mean" if aggregate is None else aggregate.form
    if form in ("ratio", "bits") and len(names) >= 2:
        ratio = f"{names[0]} / {names[1]}"
        return ratio if form == "ratio" else f"log2({ratio})"
    if form == "ceiling" and names:
        return f"−log2({names[0]})"
    of_query = measure.formula_in_use() or summary(type(measure)).rstrip(".")
    return f"mean over queries of [{of_query}]" if form == "mean" else f"[{of_query}]"


#: What is estimated with random controls, by the form of the aggregate.
_CONTROLLED = {"bits": "log2(S / p)", "ratio": "S / p", "ceiling": "−log2(p)", "mean": "p"}


def _with_controls(figure: Figure) -> str:
    """The formula with random controls, whose numbers are drawn and not put in."""
    estimate, facts, aggregate = figure.estimate, figure.input.get("controls", {}), figure.aggregate
    symbols = "p" if aggregate is None else _CONTROLLED.get(aggregate.form, "p")
    names = "p, how often a random draw of K passages succeeds, is estimated"
    if "S" in symbols:
        names = (
            "S, how often the lists succeed over all queries of the labels, and p, how often a random draw of K "
            "passages does, are estimated"
        )
    if figure.measure.name == "lambda":
        symbols, names = "K·r/N", "r, the relevant passages that a query has in the corpus, is estimated"
    controls = (
        f"{counted(facts.get('graded', 0), 'random control')} of "
        f"{counted(facts.get('queries', 0), 'query', 'queries')}, of which the judge calls "
        f"{facts.get('relevant', 0):,} relevant"
    )
    if math.isnan(estimate.value):
        return f"{figure.key} = {symbols} has no value{_why(estimate)}. {names[0].upper()}{names[1:]} from {controls}."
    shown = ""
    if estimate.shown is not None:
        bits = f"{estimate.shown:.1f} bits" if estimate.shown > 0 else "no bits"
        shown = f" Without a model of the judge's errors, {bits} are shown."
    return f"{figure.key} = median of {symbols} = {number(estimate.value)}: {names} from {controls}.{shown}"


# -- around it -------------------------------------------------------------------------------------


def _about(figure: Figure) -> Iterable[str]:
    """The definition, what the symbols stand for, and which queries count."""
    measure, estimate = figure.measure, figure.estimate
    if measure.formula or measure.means_of:
        changed = any(
            getattr(measure, each.name) != each.default for each in measure.parameters() if each.name != "rel"
        )
        yield f"{measure.name}{', at its defaults' if changed else ''}: {summary(type(measure))}"
    symbols = []
    if measure.at is not None:
        symbols.append(_cutoff(measure, measure.at))
    if measure.needs_corpus_size and figure.corpus_size is not None:
        symbols.append(f"N = {figure.corpus_size:,}")
    for item in measure.parameters():
        value = getattr(measure, item.name)
        named = re.search(rf"\b{item.name}\b", measure.formula) is not None
        if item.name == "rel":
            lowest = scale_named(figure.scale).relevant_from if value is None else value
            symbols.append(f"relevant = grade {lowest} or more")
        elif value is not None and (named or value != item.default):
            symbols.append(f"{item.name} = {value:g}" if isinstance(value, (int, float)) else f"{item.name} = {value}")
    if symbols:
        yield f"Here {', '.join(symbols)}."
    yield _DIRECTION[measure.higher_is_better]
    if 0 < estimate.n < estimate.n_total:
        left = counted(estimate.n_total - estimate.n, "query is", "queries are")
        yield f"It is undefined for the {left.partition(' ')[0]} other queries, which are left out."


def _cutoff(measure: Measure, at: int | float) -> str:
    budget = TokenBudget.of(at)
    if budget is not None:
        return f"K = the passages of each query's list that fit in {budget.tokens:,} tokens"
    return f"r = {at:g}" if isinstance(measure.cutoff, Real) else f"K = {at}"


def _interval(figure: Figure) -> Iterable[str]:
    estimate, settings = figure.estimate, figure.settings
    if math.isnan(estimate.low):
        if estimate.reason is None or not math.isnan(estimate.value):
            yield f"It has no interval{_why(estimate)}."
        return
    level = level_text(settings["level"]) if settings.get("level") else "Its"
    ends = f"{number(estimate.low)} to {number(estimate.high)}"
    if math.isnan(estimate.value):
        ends = f"{number(estimate.low)} (shown without a model) and {number(estimate.high)} (as judged)"
        yield f"It lies between {ends}."
        return
    how = {
        WITH_CONTROLS: "the quantiles of what was drawn for S and p",
        CALIBRATED: "over completions and queries",
        WITH_TAIL: "over completions and queries",
    }.get(estimate.basis)
    if how is None:
        resamples = settings.get("resamples")
        how = f"method {settings.get('method')}"
        if figure.has_exact_interval:
            how = "exact, from the binomial distribution (mid-P)"
        elif resamples:
            how = f"{resamples:,} bootstrap resamples of the queries ({settings.get('method')})"
    yield f"The {level} interval is {ends}: {how}."
    if estimate.possible is not None:
        yield (
            f"Some passages are unjudged: by what they are, the figure is {number(estimate.possible[0])} to "
            f"{number(estimate.possible[1])}."
        )


def _limits(figure: Figure) -> Iterable[str]:
    """What a random draw does, and the most that a list can reach."""
    means, aggregate, names = figure.means, figure.aggregate, figure.measure.means_of
    if figure.estimate.basis == WITH_CONTROLS or means is None or aggregate is None:
        return
    if figure.measure.needs_corpus_size and len(names) == 2 and len(means) >= 2:
        chance, neutral = means[1], "0" if aggregate.form == "bits" else "1"
        yield f"A random draw of K passages has a mean {names[0]} of {plain(chance)}: its figure is {neutral}."
        most = ceiling_in_words(aggregate, chance, means[2] if len(means) > 2 else None)
        if most is not None:
            yield f"The figure is at most {most}, at a mean {names[0]} of 1."
        if names[1] == "RandomSuccess":
            yield f"The regime of this K is {regime(chance)}."
    elif figure.measure.name == "RandomSuccess" or names == ("RandomSuccess",):
        share = percent(means[0])
        yield f"A random draw succeeds in {share} of the queries: the regime of this K is {regime(means[0])}."


def _worked(figure: Figure) -> Iterable[str]:
    """One query as an example: the one whose figure is nearest to the mean."""
    measure, parts = figure.measure, figure.parts
    if parts is None or figure.aggregate is None or figure.aggregate.form != "mean" or not len(figure.queries):
        return
    if np.isnan(parts[0]).all():
        return
    values = parts[0]
    query = int(np.nanargmin(np.abs(values - np.nanmean(values))))
    name, value = repr(figure.queries[query]), number(float(values[query]))
    of_query = "" if figure.estimate.basis == AS_JUDGED else " as judged"
    if len(figure.factors) == len(measure.means_of) == 2:
        a, b = (float(figure.factors[each][query]) for each in measure.means_of)
        first, second = measure.means_of
        yield (
            f"In query {name}{of_query}: {first} / {second} = {plain(a, 6)} / {plain(b, 6)} = {value}, so that "
            f"{first} = {second} × {measure.name}."
        )
        return
    if figure.details:
        made = ", ".join(f"{what} = {plain(float(column[query]), 6)}" for what, column in figure.details.items())
        yield f"In query {name}{of_query} it is {value}: {made}."
        return
    yield f"In query {name}{of_query}, for example, it is {value}."
    if type(measure).details is not Measure.details:
        yield "What it is made of there is not in a stored report: evaluate --explain shows it."


def _placebo(estimate: Estimate) -> Iterable[str]:
    of = "the figure as judged" if estimate.basis == WITH_TAIL else "it"
    yield f"If the same grades were shuffled, {of} would be {number(estimate.placebo or 0.0)} (its placebo)."
    if estimate.above_placebo is not None and not math.isnan(estimate.above_placebo[0]):
        low, high = estimate.above_placebo
        zero = "holds 0" if low <= 0 <= high else "does not hold 0"
        yield f"The interval of the difference, {number(low)} to {number(high)}, {zero}."
