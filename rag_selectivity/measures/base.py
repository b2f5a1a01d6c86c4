"""What a measure is: a value that carries its name, its parameters, its definition and how it aggregates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.ids import IntArray
from rag_selectivity.judged import JudgedRun

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
    """

    value: Callable[..., FloatArray]
    statistic: Callable[..., FloatArray]
    link: Callable[[FloatArray], FloatArray]


def _identity(mean: FloatArray) -> FloatArray:
    return mean


MEAN = Aggregate(value=_identity, statistic=_identity, link=_identity)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A measure's figures for every query.

    Attributes
    ----------
    parts : tuple of float64[queries, depths]
        The quantities whose means over the defined queries make the value; NaN where a query is undefined.
    aggregate : Aggregate
    undefined : str
        Why a query may be undefined.
    """

    parts: tuple[FloatArray, ...]
    undefined: str
    aggregate: Aggregate = MEAN

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Whether each query counts at each depth."""
        result: NDArray[np.bool_] = ~np.isnan(self.parts[0])
        return result


def parameter(default: Any, *, lowest: int = 1, doc: str) -> Any:
    """Declare a whole-number parameter of a measure with its range."""
    return field(default=default, kw_only=True, metadata={"lowest": lowest, "doc": doc})


def rel_parameter() -> Any:
    """Declare `rel`, whose default follows the scale of the qrels."""
    return parameter(None, lowest=0, doc="lowest grade that counts as relevant (default 1 on trec, 4 on utility)")


@dataclass(frozen=True, repr=False)
class Measure(ABC):
    """A measure, with or without its depth: `BoR`, `BoR()@10`, `BoR(rel=5)@10`.

    Prints as it parses; parameters at their default are left out.
    """

    name: ClassVar[str]
    higher_is_better: ClassVar[bool | None] = True
    #: Whether its per-query figures mean something (a ratio of means has none).
    per_query: ClassVar[bool] = True

    at: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.at is not None:
            _check_whole(self.at, 1, f"{self.name}: depth @{self.at}")
        for item in self.parameters():
            value = getattr(self, item.name)
            if value is not None:
                _check_whole(value, item.metadata["lowest"], f"{self.name}: parameter {item.name}")

    @classmethod
    def parameters(cls) -> list[Any]:
        """The measure's parameters as dataclass fields."""
        return [item for item in fields(cls) if "doc" in item.metadata]

    def __matmul__(self, depth: int) -> Self:
        return replace(self, at=depth)

    def __str__(self) -> str:
        changed = [
            f"{item.name}={getattr(self, item.name)}"
            for item in self.parameters()
            if getattr(self, item.name) != item.default
        ]
        arguments = f"({','.join(changed)})" if changed else ""
        return f"{self.name}{arguments}" + (f"@{self.at}" if self.at is not None else "")

    __repr__ = __str__

    @abstractmethod
    def outcome(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        """The figures of every query at every depth, and how they aggregate."""


REGISTRY: dict[str, type[Measure]] = {}
M = TypeVar("M", bound=Measure)


def register(measure: type[M]) -> type[M]:
    """Add a measure class to the one list of names that the parser, the docs and the CLI read."""
    REGISTRY[measure.name] = measure
    return measure


def measure_class(name: str) -> type[Measure]:
    """Look a measure up by its name, whatever the case."""
    by_folded = {known.casefold(): cls for known, cls in REGISTRY.items()}
    try:
        return by_folded[name.casefold()]
    except KeyError:
        raise InputError(
            f"unknown measure {name!r}{did_you_mean(name, REGISTRY)} (known: {', '.join(REGISTRY)})"
        ) from None


def _check_whole(value: Any, lowest: int, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < lowest:
        raise InputError(f"{what} must be a whole number ≥ {lowest}, got {value!r}")
