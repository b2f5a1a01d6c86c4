"""What a measure is: a value that carries its name, its parameters, its definition and how it aggregates."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import WHOLE_LIST as WHOLE_LIST
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.token_budget import TokenBudget, are_budgets
from rag_selectivity.measures.refusal import Refusal, reasons
from rag_selectivity.measures.universe import Universe
from rag_selectivity.tables.registry import Registry

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """How the means of a measure's parts become its value over all queries.

    Attributes
    ----------
    value : callable
        Means of the parts → value, in the form that keeps the most digits.
    statistic : callable
        Means of the parts → a finite number of which `value` is a monotone function. Intervals are quantiles of this.
    link : callable
        statistic → value, applied to quantiles: log2 after, so that a resample without a success is no NaN.
    form : {"mean", "ratio", "bits", "ceiling", "other"}
        The mean of the first part; the ratio of the first two parts' means, or log2 of it; −log2 of the first part's
        mean; or something else. The last two are properties of corpus, labels and depth and are not compared between
        runs.
    """

    value: Callable[..., FloatArray]
    statistic: Callable[..., FloatArray]
    link: Callable[[FloatArray], FloatArray]
    form: Literal["mean", "ratio", "bits", "ceiling", "other"] = "other"


def _identity(mean: FloatArray, *_: FloatArray) -> FloatArray:
    return mean


def _ratio(top: FloatArray, bottom: FloatArray, *_: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return top / bottom


MEAN = Aggregate(value=_identity, statistic=_identity, link=_identity, form="mean")
RATIO = Aggregate(value=_ratio, statistic=_ratio, link=_identity, form="ratio")


#: Why a figure of all queries together is undefined.
OF_A_PART = "the lists of the other queries are known of a whole run only, not of a part of its queries"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A measure's figures for every query.

    Attributes
    ----------
    parts : tuple of float64[queries, depths]
        The quantities whose means over the defined queries make the value; NaN where a query is undefined.
    undefined : str
        Why a query may be undefined.
    aggregate : Aggregate
    bounds : (low, high) or None
        Between which the first part lies, whatever the queries; None where it is a property of corpus,
        labels and depth, of which no retriever's luck is a part.
    premise : bool
        Whether the labels hold what the measure speaks of at all (junk, for Harm).
    baseline : int or None
        Which of the parts is the random baseline, whose mean few queries can carry.
    refused : Refusal or None
        At which depths the measure is undefined for the whole dataset that these queries are a part of.
    weights : float64[queries] or None
        How much each query counts in means over queries, above 0; None where all count alike.
    of_all : bool
        Whether the figures are those of all queries together: a part of them has none.
    """

    parts: tuple[FloatArray, ...]
    undefined: str
    aggregate: Aggregate = MEAN
    bounds: tuple[Any, Any] | None = (0.0, 1.0)
    premise: bool = True
    baseline: int | None = None
    refused: Refusal | None = None
    weights: FloatArray | None = None
    of_all: bool = False

    def settled(self) -> Outcome:
        """The outcome of a whole dataset: without its premise, or where it is refused, every query is undefined."""
        if self.premise and self.refused is None:
            return self
        nowhere = np.full(self.parts[0].shape[1], not self.premise)
        if self.refused is not None:
            nowhere |= self.refused.refused
        if not nowhere.any():
            return self
        return replace(self, parts=tuple(np.where(nowhere, np.nan, part) for part in self.parts), premise=True)

    @property
    def reasons(self) -> list[str]:
        """Why a query, or all of them, may be undefined at each depth."""
        return reasons(self.undefined, self.refused, self.parts[0].shape[1])

    @classmethod
    def beside(cls, outcomes: Sequence[Outcome]) -> Outcome:
        """The outcome at all depths from those at some of them, one after the other."""
        parts = tuple(map(np.hstack, zip(*(outcome.parts for outcome in outcomes), strict=True)))
        refused = None
        given = [outcome.refused for outcome in outcomes if outcome.refused is not None]
        if given:
            refused = Refusal(tuple(count for each in given for count in each.repeating), given[0].lists)
        ends = None
        if all(outcome.bounds is not None for outcome in outcomes):
            of_each = [[np.broadcast_to(e, o.parts[0].shape[1:]) for e in o.bounds or ()] for o in outcomes]
            low, high = map(np.concatenate, zip(*of_each, strict=True))
            ends = low, high
        premise = any(outcome.premise for outcome in outcomes)
        return replace(outcomes[0], parts=parts, bounds=ends, premise=premise, refused=refused)

    def over(self, rows: NDArray[Any] | slice) -> Outcome:
        """The outcome of some of its queries, by mask, by position or by slice."""
        weights = None if self.weights is None else self.weights[rows]
        part = replace(self, parts=tuple(part[rows] for part in self.parts), weights=weights)
        if not self.of_all or len(part.parts[0]) == len(self.parts[0]):
            return part
        return replace(part, parts=tuple(np.full_like(each, np.nan) for each in part.parts), undefined=OF_A_PART)

    def counting(self) -> FloatArray | None:
        """How much each query counts at each depth, from 0 (undefined) to 1: float64[queries, depths].

        None where all queries count alike, so that there is nothing to weight. At a depth at which all defined queries
        have the same weight, all of them have 1.
        """
        if self.weights is None or not len(self.weights) or self.weights.min() == self.weights.max():
            return None
        counts: FloatArray = self.defined * self.weights[:, None]
        largest = counts.max(axis=0)
        return counts / np.where(largest > 0, largest, 1.0)

    def at(self, columns: slice) -> Outcome:
        """The outcome at some of its depths."""
        bounds = self.bounds
        if bounds is not None:
            depths = self.parts[0].shape[1:]
            low, high = (end if np.ndim(end) == 0 else np.broadcast_to(end, depths)[columns] for end in bounds)
            bounds = low, high
        refused = None if self.refused is None else self.refused.at(columns)
        return replace(self, parts=tuple(part[:, columns] for part in self.parts), bounds=bounds, refused=refused)

    def ends_at(self, column: int) -> tuple[float, float] | None:
        """Between what the first part lies at one of the depths; None where that is not known."""
        if self.bounds is None:
            return None
        low, high = (float(np.broadcast_to(end, self.parts[0].shape[1:])[column]) for end in self.bounds)
        return low, high

    def without_spread(self) -> NDArray[np.bool_]:
        """Whether it is a property of corpus and labels that all queries share, at each depth: bool[depths]."""
        if self.bounds is not None:
            return np.zeros(self.parts[0].shape[1], bool)
        first = self.parts[0]
        lowest = np.where(self.defined, first, np.inf).min(axis=0, initial=np.inf)
        same: NDArray[np.bool_] = lowest == np.where(self.defined, first, -np.inf).max(axis=0, initial=-np.inf)
        return same

    def effective_queries(self) -> FloatArray | None:
        """Over how many queries the random baseline is spread: (Σp)²/Σp² at each depth; None without a baseline.

        With weights it is (Σwp)²/Σ(wp)².
        As many as there are where chance is the same for all of them; 1 where a single query carries it. Infinite
        where all queries have the very same chance, so that there is no spread to know.
        """
        if self.baseline is None:
            return None
        chance, counts = self.parts[self.baseline], self.counting()
        carried = chance if counts is None else chance * counts
        return effective_number(
            np.nansum(carried, axis=0),
            np.nansum(carried**2, axis=0),
            np.where(np.isnan(chance), np.inf, chance).min(axis=0, initial=np.inf),
            np.where(np.isnan(chance), -np.inf, chance).max(axis=0, initial=-np.inf),
        )

    def value(self, weights: NDArray[Any] | None = None) -> FloatArray:
        """The measure's figure at each depth; with weights, as if each query were there so many times.

        By default the weights are those of the outcome.
        """
        own = self.counting() if weights is None else None
        counted = self.defined * (np.ones(len(self.parts[0])) if weights is None else weights)[:, None]
        counted = counted if own is None else own
        with np.errstate(invalid="ignore", divide="ignore"):
            total = counted.sum(axis=0)
            # NumPy sums pairwise along the last axis only, and pairwise sums have the smaller rounding error.
            parts = [(np.where(self.defined, part, 0.0) * counted).T.copy() for part in self.parts]
            means = [part.sum(axis=1) / total for part in parts]
            return self.aggregate.value(*means)

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Whether each query counts at each depth."""
        result: NDArray[np.bool_] = ~np.isnan(self.parts[0])
        return result


@dataclass(frozen=True, slots=True)
class Placebo:
    """What a measure would show if the same grades were shuffled, and what its figure has beyond that.

    Weights, best sets and ideal gains are the same after shuffling, so the expectations are exact.

    Attributes
    ----------
    outcome : Outcome
        The placebo's figures, with the measure's own aggregate.
    difference : callable
        Gives `beyond`, which only intervals need.
    """

    outcome: Outcome
    difference: Callable[[], Outcome]

    @property
    def beyond(self) -> Outcome:
        """The figure minus its placebo, over the same queries."""
        return self.difference()

    def weighted(self, weights: FloatArray | None) -> Placebo:
        """The placebo over queries that count unequally; None leaves it as it is."""
        if weights is None:
            return self
        return Placebo(replace(self.outcome, weights=weights), lambda: replace(self.difference(), weights=weights))

    @classmethod
    def beside(cls, placebos: Sequence[Placebo]) -> Placebo:
        """The placebo at all depths from those at some of them, one after the other."""
        return cls(
            Outcome.beside([each.outcome for each in placebos]),
            lambda: Outcome.beside([each.beyond for each in placebos]),
        )

    @classmethod
    def of_mean(cls, figures: Outcome, expected: FloatArray) -> Placebo:
        """The placebo of a mean over queries, from its expectation for each query."""
        values = figures.parts[0]
        placebo = np.where(np.isnan(values), np.nan, expected)

        def difference() -> Outcome:
            gap = values - placebo
            # A difference that is only rounding is none.
            gap = np.where(np.abs(gap) <= 1e-12 * np.maximum(1.0, np.abs(values)), 0.0, gap)
            # A figure lies between 0 and 1, so this is how far from it the placebos can be.
            low = -np.nan_to_num(placebo, nan=0.0).max(axis=0, initial=0.0)
            high = 1.0 - np.nan_to_num(placebo, nan=1.0).min(axis=0, initial=1.0)
            # The figures stand beside: where few of them differ, their distances to placebos say no more.
            return Outcome((gap, values), figures.undefined, figures.aggregate, bounds=(low, high))

        return cls(replace(figures, parts=(placebo,)), difference)


def effective_number(total: FloatArray, squares: FloatArray, lowest: FloatArray, highest: FloatArray) -> FloatArray:
    """(Σp)²/Σp², infinite where all p are the same (Kish 1965, Survey Sampling)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(highest - lowest <= 1e-12 * np.abs(highest), np.inf, total**2 / squares)


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number of at least `lowest`."""

    lowest: int

    def check(self, value: Any, what: str) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < self.lowest:
            raise InputError(f"{what} must be a whole number ≥ {self.lowest}, got {value!r}")

    def parse(self, text: str, what: str) -> int:
        budget = TokenBudget.parse(text)
        if budget is not None:
            return budget
        try:
            return int(text)
        except ValueError:
            raise InputError(f"{what} must be a whole number, got {text!r}") from None


@dataclass(frozen=True, slots=True)
class Real:
    """A number from `low` to `high`."""

    low: float
    high: float

    def check(self, value: Any, what: str) -> None:
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float, np.number))
            or not self.low <= value <= self.high
        ):
            raise InputError(f"{what} must be a number from {self.low:g} to {self.high:g}, got {value!r}")

    def parse(self, text: str, what: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise InputError(f"{what} must be a number, got {text!r}") from None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, value: Any, what: str) -> None:
        if value not in self.words:
            raise InputError(f"{what} must be one of {', '.join(self.words)}, got {value!r}")

    def parse(self, text: str, what: str) -> str:
        return text.casefold()


def parameter(default: Any, kind: Whole | Real | Choice, doc: str) -> Any:
    """Declare a parameter of a measure with its range."""
    return field(default=default, kw_only=True, metadata={"kind": kind, "doc": doc})


def distinct_parameter() -> Any:
    """Declare `distinct`: passages that say the same count once."""
    return parameter("false", Choice(("false", "true")), "whether passages of the same group (data.groups) count once")


def rel_parameter() -> Any:
    """Declare `rel`, whose default follows the scale of the qrels."""
    return parameter(None, Whole(0), "lowest grade that counts as relevant (default 1 on trec, 4 on utility)")


M = TypeVar("M", bound="Measure")


@dataclass(frozen=True, repr=False)
class Measure(ABC):
    """A measure, with or without its depth: `BoR`, `BoR()@10`, `BoR(rel=5)@10`.

    Prints as it parses; parameters at their default are left out.
    """

    #: As it is written; that of its class, where this is a name in Python too.
    name: ClassVar[str]
    higher_is_better: ClassVar[bool | None] = True
    #: Whether its per-query figures mean something (a ratio of means has none).
    per_query: ClassVar[bool] = True
    #: Between which its figures lie, whatever lists and labels are.
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    #: The only scale of grades that it is defined on, if there is but one.
    required_scale: ClassVar[str | None] = None
    #: Whether an unjudged passage counts as not relevant in it: of lists judged in part it is the least it can be.
    unjudged_is_a_miss: ClassVar[bool] = False
    #: Whether it compares with a random draw, which needs the corpus size N.
    needs_corpus_size: ClassVar[bool] = False
    #: Whether it compares what was retrieved with all labelled passages: with their number, the best of them, or a
    #: random draw. Labels of nothing but what was retrieved then make it a figure about itself.
    compares_with_all_labels: ClassVar[bool] = False
    #: Whether it needs groups of passages that say the same.
    needs_groups: ClassVar[bool] = False
    #: Whether its figures rest on the candidates before selection too.
    uses_pool: ClassVar[bool] = False
    #: The names of its parts, if its value comes from their means: log2(mean Success / mean RandomSuccess).
    means_of: ClassVar[tuple[str, ...]] = ()
    #: What stands after the @.
    cutoff: ClassVar[Whole | Real] = Whole(1)

    at: int | float | None = field(default=None, kw_only=True)

    def __init_subclass__(cls) -> None:
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def __post_init__(self) -> None:
        if self.at is not None:
            self.check_cutoff(self.at)
        for item in self.parameters():
            value = getattr(self, item.name)
            if value is not None:
                item.metadata["kind"].check(value, f"{self.name}: parameter {item.name}")

    @classmethod
    def check_cutoff(cls, at: int | float) -> None:
        """Refuse what cannot stand after the @."""
        cls.cutoff.check(at, f"{cls.name}: depth @{at}")

    @classmethod
    def default_depths(cls, grid: NDArray[Any]) -> NDArray[Any]:
        """Where the measure is taken when it names no depth: at every depth of the evaluation."""
        return grid

    #: Whether the measure without @ is that of the whole list too where nobody gave depths, as in trec_eval.
    usually_whole: ClassVar[bool] = False

    @property
    def takes_whole_lists(self) -> bool:
        """Whether the measure without @ is one figure, that of the whole list."""
        return WHOLE_LIST in self.default_depths(np.array([1]))

    @classmethod
    def parameters(cls) -> list[Any]:
        """The measure's parameters as dataclass fields."""
        return _parameters_of(cls)

    def __matmul__(self, depth: int | float) -> Self:
        result: Self = _at(self, None if depth == WHOLE_LIST else TokenBudget.of(depth) or depth)
        return result

    @property
    def without_depth(self) -> Self:
        """The measure without its depth."""
        result: Self = _at(self, None)
        return result

    @cached_property
    def _text(self) -> str:
        changed = [
            f"{item.name}={plain_text(getattr(self, item.name))}"
            for item in self.parameters()
            if getattr(self, item.name) != item.default
        ]
        arguments = f"({','.join(changed)})" if changed else ""
        return f"{self.name}{arguments}" + (f"@{plain_text(self.at)}" if self.at is not None else "")

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    @property
    def differs_with(self) -> Measure:
        """The measure that differs between two runs exactly where this one does, if both have the same baseline."""
        return self

    @classmethod
    def said(cls, what: str) -> str:
        """What its docstring says in the lines that begin with a word, such as `Formula`; empty without one."""
        found = re.search(rf"^{what}: (.*?)(?=^\w[\w ]*: |\Z)", inspect.getdoc(cls) or "", flags=re.M | re.S)
        return "" if found is None else " ".join(found[1].split())

    @property
    def formula(self) -> str:
        """The figure of one query in symbols, which its docstring says; empty without one."""
        return self.said("Formula")

    def companions(self) -> tuple[Measure, ...]:
        """Measures that are always shown beside this one, since it cannot be read without them."""
        return ()

    @property
    def upper_end(self) -> Measure | None:
        """The same measure with every unjudged passage counted in, where this one leaves all of them out."""
        return None

    def outcome(self, judged: JudgedRun, depths: NDArray[Any]) -> Outcome:
        """The figures of every query at every depth, and how they aggregate.

        At a budget of tokens, each query is measured at its own K.

        Raises
        ------
        InputError
            If a budget is among the depths, and the join does not know how many passages fit in it; if the labels are
            on another scale than the measure needs.
        """
        if self.required_scale not in (None, judged.scale.name):
            raise InputError(
                f"{self} needs grades 1 to 5 (the utility scale), but the scale is {judged.scale.name}: give "
                f"scale='utility' (--scale utility); if the judgments have other grades, also give a grade map, as in "
                f"grade_map='0:1,1:3,2:4,3:5' (--grade-map 0:1,1:3,2:4,3:5) (how-to: labels-on-the-wrong-scale)"
            )
        outcome = self._of_all(judged.by_group(str(self)) if self.of_groups else judged, depths)
        return outcome if judged.weights is None else replace(outcome, weights=judged.weights.values)

    def _of_all(self, judged: JudgedRun, depths: NDArray[Any]) -> Outcome:
        if not are_budgets(depths).any():
            return self.at_ranks(judged, depths)
        return Outcome.beside([self.at_ranks(*judged.at_depth(depth)) for depth in depths.tolist()])

    @property
    def of_groups(self) -> bool:
        """Whether it is about groups of passages that say the same, in place of passages."""
        return self.needs_groups or getattr(self, "distinct", "false") == "true"

    @abstractmethod
    def at_ranks(self, judged: JudgedRun, depths: NDArray[Any]) -> Outcome:
        """The figures of every query at every rank K (or recall level, or for whole lists), and how they aggregate.

        `depths` is one number for each column of the figures, or int64[queries, 1]: each query has its own K.
        """

    def placebo(self, judged: JudgedRun, universe: Universe, figures: Outcome) -> Placebo | None:
        """Its expected figures if the grades were shuffled within the universe, at the universe's depths.

        `figures` are its outcome for the same join and depths. None for a measure that has no placebo, or if none is
        known for these labels.
        """
        return None

    def details(self, judged: JudgedRun, depths: NDArray[Any]) -> Mapping[str, FloatArray]:
        """What the figures were made of, for who asks why: float64[queries] or float64[queries, depths] by name."""
        return {}


# A report asks for the same ones again and again. 10 and 10.0 are equal, and print alike, but only one is a rank.
@lru_cache(maxsize=4096, typed=True)
def _at(measure: M, depth: int | float | None) -> M:
    return replace(measure, at=depth)


@cache
def _parameters_of(cls: type[Measure]) -> list[Any]:
    return [item for item in fields(cls) if "doc" in item.metadata]


def plain_text(value: Any) -> str:
    """A parameter's shortest spelling: 2, .25 as 0.25, words as they are."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


#: Every measure class by its name. The parser, the docs, the adapters and the command line read it.
REGISTRY: Registry[type[Measure]] = Registry("measure", "rag_selectivity.measures", Measure, any_case=True)


def register_measure(measure: type[M]) -> type[M]:
    """Add a measure; a decorator for subclasses of Measure.

    An installed package adds its measures by entry points of the group `rag_selectivity.measures`, each of which names
    a class.

    Raises
    ------
    InputError
        If another measure has the name.
    """
    REGISTRY.add(measure.name, measure)
    return measure
