"""What a measure is: a value that carries its name, its parameters, its definition and how it aggregates."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.judged.judged_run import WHOLE_LIST as WHOLE_LIST
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.token_budget import TokenBudget, is_budget
from rag_selectivity.measures.outcome import FloatArray as FloatArray
from rag_selectivity.measures.outcome import Outcome as Outcome
from rag_selectivity.measures.registry import Registry

if TYPE_CHECKING:
    from rag_selectivity.measures.shuffled import Universe

N = TypeVar("N", int, float)


def _number(kind: type[N], text: str, expected: str) -> N:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{expected}, got {text!r}") from None


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number of at least `lowest`."""

    lowest: int

    def check(self, value: Any, what: str) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < self.lowest:
            raise InputError(f"{what} must be a whole number ≥ {self.lowest}, got {value!r}")

    def parse(self, text: str, what: str) -> int:
        return TokenBudget.parse(text) or _number(int, text, f"{what} must be a whole number")


@dataclass(frozen=True, slots=True)
class Real:
    """A number from `low` to `high`."""

    low: float
    high: float

    def check(self, value: Any, what: str) -> None:
        is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not is_number or not self.low <= value <= self.high:
            raise InputError(f"{what} must be a number from {self.low:g} to {self.high:g}, got {value!r}")

    def parse(self, text: str, what: str) -> float:
        return _number(float, text, f"{what} must be a number")


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


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
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
    #: Whether it counts at which ranks the relevant passages stand, and not only how many are in the top K.
    counts_ranks: ClassVar[bool] = False
    #: Whether it needs groups of passages that say the same.
    needs_groups: ClassVar[bool] = False
    #: Whether its figures rest on the candidates before selection too.
    uses_pool: ClassVar[bool] = False
    #: Whether Judged is always shown beside it, since it cannot be read without.
    read_with_judged: ClassVar[bool] = False
    #: The names of its parts, if its value comes from their means: log2(mean Success / mean RandomSuccess).
    means_of: ClassVar[tuple[str, ...]] = ()
    #: Whether the measure without @ is one figure, that of the whole list.
    takes_whole_lists: ClassVar[bool] = False
    #: Whether the measure without @ is that of the whole list too where nobody gave depths, as in trec_eval.
    usually_whole: ClassVar[bool] = False
    #: What stands after the @.
    cutoff: ClassVar[Whole | Real] = Whole(1)

    at: int | float | None = field(default=None, kw_only=True)

    def __init_subclass__(cls) -> None:
        if "name" not in vars(cls):
            cls.name = cls.__name__
        dataclass(frozen=True, repr=False)(cls)

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
        """Where the measure is taken when it names no depth: at every depth of the evaluation, or of the whole list."""
        return np.array([WHOLE_LIST]) if cls.takes_whole_lists else grid

    @classmethod
    @cache
    def parameters(cls) -> list[Any]:
        """The measure's parameters as dataclass fields."""
        return [item for item in fields(cls) if "doc" in item.metadata]

    def __matmul__(self, depth: int | float) -> Self:
        result: Self = _at(self, None if depth == WHOLE_LIST else TokenBudget.of(depth) or depth)
        return result

    @property
    def without_depth(self) -> Self:
        """The measure without its depth."""
        return self @ WHOLE_LIST

    def taken_at(self, depth: int) -> Self:
        """The measure as it is, if it names its depth or takes none; else at `depth`."""
        is_fixed = self.at is not None or self.takes_whole_lists or isinstance(self.cutoff, Real)
        return self if is_fixed else self @ depth

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
        measured = judged.by_group(str(self)) if self.of_groups else judged
        if is_budget(depths).any():
            outcome = Outcome.beside([self.at_ranks(*measured.at_depth(depth)) for depth in depths.tolist()])
        else:
            outcome = self.at_ranks(measured, depths)
        return outcome if judged.weights is None else replace(outcome, weights=judged.weights.values)

    @property
    def of_groups(self) -> bool:
        """Whether it is about groups of passages that say the same, in place of passages."""
        return self.needs_groups or getattr(self, "distinct", "false") == "true"

    @abstractmethod
    def at_ranks(self, judged: JudgedRun, depths: NDArray[Any]) -> Outcome:
        """The figures of every query at every rank K (or recall level, or for whole lists), and how they aggregate.

        `depths` is one number for each column of the figures, or int64[queries, 1]: each query has its own K.
        """

    def shuffled(self, universe: Universe) -> tuple[FloatArray, ...] | None:
        """The placebo: what each query is expected to have if the same grades were shuffled within a universe.

        float64[queries, depths]; for a ratio, the expected Success and its complement. None: the measure has no
        placebo, since it looks at the grades of the lists alone.
        """
        return None

    def details(self, judged: JudgedRun, depths: NDArray[Any]) -> Mapping[str, FloatArray]:
        """What the figures were made of, for who asks why: float64[queries] or float64[queries, depths] by name."""
        return {}


# A report asks for the same ones again and again. 10 and 10.0 are equal, and print alike, but only one is a rank.
@lru_cache(maxsize=4096, typed=True)
def _at(measure: M, depth: int | float | None) -> M:
    return replace(measure, at=depth)


def plain_text(value: Any) -> str:
    """A parameter's shortest spelling: 2, .25 as 0.25, words as they are."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


#: Every measure class by its name. The parser, the docs, the adapters and the command line read it.
REGISTRY = Registry(Measure)


def register_measure(measure: type[M]) -> type[M]:
    """Add a measure; a decorator for subclasses of Measure.

    An installed package adds its measures by entry points of the group `rag_selectivity.measures`, each of which names
    a class.

    Raises
    ------
    InputError
        If another measure has the name.
    """
    REGISTRY.add(measure)
    return measure


# Under which other tools and papers have a measure. Reports show the measure's own name.
REGISTRY.aliases |= {"MAP": "AP", "MRR": "RR", "F1": "F", "HitRate": "Success", "Hit": "Success"}
REGISTRY.aliases |= {"hit_rate": "Success", "precision": "P", "recall": "R"}
#: What a further name says of a parameter already.
_SAID = {"f1": ("beta", "alpha")}

_SHAPE = re.compile(r"\s*([^\s()@]+)\s*(?:\(([^()]*)\))?\s*(?:@\s*(\S+))?\s*")


def parse_measure(text: str | Measure) -> Measure:
    """The measure that a string names; its `str` is the canonical spelling.

    Names are case-insensitive. A typo is an InputError with the closest name. MAP, MRR, F1, precision, recall,
    HitRate, hit_rate and Hit are further names of AP, RR, F, P, R and Success.

    >>> parse_measure("bor( rel=5, m=1 )@10")
    BoR(rel=5)@10
    >>> parse_measure("MRR"), parse_measure("f1@5"), parse_measure("HitRate(m=2)@10")
    (RR, F@5, Success(m=2)@10)
    """
    if isinstance(text, Measure):
        return text
    if isinstance(text, type) and issubclass(text, Measure):
        return text()
    match = _SHAPE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InputError(f"measure {text!r} is not NAME, NAME@K or NAME(parameter=value)@K")
    return _parsed(REGISTRY.find(match[1]), text, match[1], match[2], match[3])


# A report reads the keys of its figures again and again. A class may be defined again under its name.
@lru_cache(maxsize=4096)
def _parsed(cls: type[Measure], text: str, name: str, arguments: str | None, depth: str | None) -> Measure:
    known = {item.name: item for item in cls.parameters()}
    values: dict[str, Any] = {}
    for argument in filter(None, (part.strip() for part in (arguments or "").split(","))):
        key, equals, value = (part.strip() for part in argument.partition("="))
        if not equals or key not in known:
            raise InputError(
                f"measure {text!r}: {cls.name} has no parameter {key!r}{did_you_mean(key, known)} "
                f"(it has: {', '.join(known) or 'none'})"
            )
        if key in _SAID.get(name.casefold(), ()):
            raise InputError(
                f"measure {text!r}: {name} says already that beta is 1: leave {key} out, or write {cls.name}({key}=…)"
            )
        if key in values:
            raise InputError(f"measure {text!r}: {key} is given twice")
        values[key] = known[key].metadata["kind"].parse(value, f"measure {text!r}: {key}")
    if depth is not None:
        values["at"] = cls.cutoff.parse(depth, f"measure {text!r}: the depth")
    return cls(**values)


# -- its definition as text -----------------------------------------------------------------------------

#: What a larger figure says, by `Measure.higher_is_better`.
DIRECTION = {True: "Higher is better.", False: "Lower is better.", None: "A property of corpus, labels and K."}


def summary(measure: type[Measure]) -> str:
    """The first line of a measure's definition."""
    return (inspect.getdoc(measure) or "").split("\n", 1)[0]


def explain(measure: Measure) -> str:
    """A measure's definition with its worked example, its direction and its parameters as text."""
    cls = type(measure)
    parts = [f"{cls.name}: {inspect.getdoc(cls)}", DIRECTION[cls.higher_is_better]]
    lines = [
        f"  {item.name}={'scale' if item.default is None else plain_text(item.default)}: {item.metadata['doc']}"
        for item in cls.parameters()
    ]
    if lines:
        parts.append("Parameters and defaults\n" + "\n".join(lines))
    return "\n\n".join(parts)


# -- figures that are given -----------------------------------------------------------------------------


class Given(Measure):
    """A measure whose figures are given; it prints as `ContextRecall@10`. Each of its values has a name of its own."""

    name: str = field(default="", kw_only=True)  # type: ignore[misc]
    ends: tuple[float, float] = field(default=(0.0, 1.0), kw_only=True)  # type: ignore[misc]
    higher_is_better: bool | None = field(default=True, kw_only=True)  # type: ignore[misc]

    def at_ranks(self, judged: JudgedRun, depths: NDArray[Any]) -> Outcome:
        raise InputError(f"{self} is given, by a judge or a user: lists and labels do not make it")
