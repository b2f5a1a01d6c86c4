"""StoredReport: a report that was saved as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, model_validator

from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.figures.figures import Figures, Rules
from rag_selectivity.figures.stored import figures_of_data, figures_of_parquet
from rag_selectivity.measures import parse_measure
from rag_selectivity.results.estimate import AS_JUDGED, LEVELS, Caveat, Estimate
from rag_selectivity.results.provenance import NO_AGREEMENT
from rag_selectivity.results.report import SCHEMA
from rag_selectivity.results.shapes import (
    Count,
    Digits,
    Misfit,
    Shape,
    fitted,
    items,
    kind,
    nan,
    one_or,
    stored_document,
    within,
)
from rag_selectivity.results.slices import Slice, Slices
from rag_selectivity.tables.cells import id_fault

_T = TypeVar("_T")
_AGAIN = "write it again with -o report.json"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run of a stored report; `figures` is None if the report does not hold the figures of each query.

    `input`, `label_caveats` and `slices` are as in `rag_selectivity.results.run_report.RunReport`.
    """

    estimates: Mapping[str, Estimate]
    figures: Figures | None
    input: Mapping[str, Any] = field(default_factory=dict)
    label_caveats: tuple[Caveat, ...] = ()
    slices: Slices = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report that was saved as JSON: its figures, its fingerprints, and the figures of each query."""

    path: Path
    runs: Mapping[str, StoredRun]
    scale: str = "trec"
    corpus_size: int | Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path) -> StoredReport:
        """Read a file written by `Report.save`, by `evaluate -o report.json`, or with a comparison."""
        file = Path(path)
        data = stored_document(
            file,
            SCHEMA,
            unread="so no stored report; `evaluate -o report.json` and report.save('report.json') write one",
            other=f"not a report of rag-selectivity (schema {SCHEMA}); write one with -o report.json",
            has="the report has",
            again=_AGAIN,
        )
        report = fitted(_Report, data, f"{file}: the report is damaged", _AGAIN)
        try:
            runs = {name: run.stored(file.parent) for name, run in report.runs.items()}
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise InputError(f"{file}: the report is damaged ({error!r}); {_AGAIN}") from None
        return cls(file, runs, report.scale, report.corpus_size, data["settings"])

    def run(self, name: str, runs: int) -> StoredRun:
        """A run by name. If both reports have only one run, its name does not matter."""
        return run_named(self.path, self.runs, name, runs)


def run_named(path: Path, stored: Mapping[str, _T], name: str, runs: int) -> _T:
    """A stored run by name. If both sides have only one run, its name does not matter."""
    if name not in stored and len(stored) == 1 and runs == 1:
        name = next(iter(stored))
    if name not in stored:
        raise InputError(f"{path} has no run {name!r} (it has: {', '.join(stored)})")
    return stored[name]


# -- the shapes of a document -----------------------------------------------------------------------------


def _ends_of(key: str) -> tuple[float, float]:
    """Between which the figures of a measure lie; a measure that is not installed here may have any."""
    try:
        return parse_measure(key).ends
    except InputError:
        return -math.inf, math.inf


_Ends = Annotated[list[float | None], kind("a list of two ends", lambda value: len(value) == 2)]


class _Caveat(Shape):
    code: str
    text: str
    level: Annotated[str, kind(f"{', '.join(LEVELS[:-1])} or {LEVELS[-1]}", LEVELS.__contains__)]
    figures: dict[str, Any] = Field({})

    def caveat(self) -> Caveat:
        return Caveat(self.code, self.text, self.level, self.figures)


class EstimateShape(Shape):
    """An estimate, of a report or of claim checks."""

    value: float | None
    low: float | None
    high: float | None
    n: Count
    n_total: Count
    reason: str | None = None
    possible: _Ends | None = None
    caveats: list[_Caveat] = Field([])
    basis: str = AS_JUDGED
    as_judged: float | None = None
    as_judged_interval: _Ends | None = None
    shown: float | None = None
    rough: bool = False
    placebo: float | None = None
    above_placebo: _Ends | None = None
    effective: float | None = None

    def estimate(self) -> Estimate:
        """The estimate; a null value is −inf if the reason says so, otherwise NaN."""
        intervals = {name: getattr(self, name) for name in ("possible", "as_judged_interval", "above_placebo")}
        no_success = self.value is None and "log2 of 0" in (self.reason or "")
        return Estimate(
            **{
                **dict(self),
                "value": -math.inf if no_success else nan(self.value),
                "low": nan(self.low),
                "high": nan(self.high),
                "caveats": tuple(each.caveat() for each in self.caveats),
                "as_judged": self.as_judged if self.basis == AS_JUDGED else nan(self.as_judged),
                **{name: ends and (nan(ends[0]), nan(ends[1])) for name, ends in intervals.items()},
            }
        )


_Measures = Annotated[dict[str, EstimateShape], within(_ends_of, "value", "as_judged")]


def estimates_in(measures: Mapping[str, EstimateShape]) -> dict[str, Estimate]:
    """The estimates of an object of them."""
    return {key: each.estimate() for key, each in measures.items()}


class _PoolSource(Shape):
    alone: EstimateShape
    without: EstimateShape
    adds: EstimateShape


class _Fingerprint(Shape):
    scale: str
    policy: dict[str, str]
    pool: bool
    passages_of: Digits | None


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and value.bit_length() < 1024)


def _is_figure(value: Any) -> bool:
    """Whether it is a number, null, or an infinity, which JSON writes as a text."""
    return value is None or value in ("inf", "-inf") or _is_number(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= 1 << 53


def _is_count_or_null(value: Any) -> bool:
    return value is None or _is_count(value)


def _is_part(value: Any) -> bool:
    return isinstance(value, str) or _is_figure(value)


_FIGURES = items('a number, null, or a text such as "inf"', {int, float, type(None)}, _is_figure)
_COUNTS = items("a whole number ≥ 0", set(), _is_count)
_Part = Annotated[Any, one_or(kind("a list of numbers, a number, null or the name of a part", _is_part), _FIGURES)]
_Sizes = Annotated[Any, one_or(kind("a list of whole numbers, a whole number or null", _is_count_or_null), _COUNTS)]


class _PerQuery(Shape):
    queries: Annotated[list[str], items("an id", set(), lambda value: id_fault(value) is None)]
    labels: list[Digits] | None
    corpus_size: _Sizes
    parts: dict[str, Annotated[list[_Part], Field(min_length=1)]]
    weights: Annotated[Any, one_or(kind("a list of numbers or a number", _is_number), _FIGURES)] = None

    @model_validator(mode="after")
    def _of_one_length(self) -> _PerQuery:
        columns = {"labels": self.labels, "corpus_size": self.corpus_size, "weights": self.weights}
        for measure, parts in self.parts.items():
            columns |= {f"parts.{measure}[{i}]": part for i, part in enumerate(parts)}
        for name, column in columns.items():
            if isinstance(column, list) and len(column) != len(self.queries):
                raise Misfit(f"a list for the {len(self.queries):,} queries", column, f".{name}")
        return self


class _Beside(Shape):
    """A Parquet file in the folder of the report."""

    file: Annotated[str, kind("the name of a file", lambda value: Path(value).name == value != "")]
    digest: Digits

    def read(self, folder: Path, rules: Rules | None) -> Figures:
        path, again = folder / self.file, "keep it beside the report, as it was written"
        try:
            return figures_of_parquet(path.read_bytes(), self.digest, rules)
        except ImportError:
            raise MissingExtraError("polars", "files", f"reading {path}") from None
        except OSError as error:
            raise InputError(f"{path}: the figures of the queries cannot be read ({error.strerror}); {again}") from None
        except ValueError as error:
            raise InputError(f"{path}: these are not the figures of the report ({error}); {again}") from None


class _Slice(Shape):
    queries: Count
    few: bool
    measures: _Measures


class _Run(Shape):
    measures: _Measures
    fingerprint: _Fingerprint | None
    per_query: _PerQuery | None
    figures: _Beside | None = None
    input: dict[str, Any] = Field({})
    caveats: list[_Caveat] = Field([])
    slices: dict[str, dict[str, _Slice]] = Field({})
    pool_sources: dict[str, dict[str, _PoolSource]] = Field({})

    def stored(self, folder: Path) -> StoredRun:
        estimates = estimates_in(self.measures)
        of_figures = {caveat.code for estimate in estimates.values() for caveat in estimate.caveats}
        return StoredRun(
            estimates,
            self._figures(folder),
            self.input,
            tuple(each.caveat() for each in self.caveats if each.code not in of_figures - {NO_AGREEMENT}),
            {
                column: {
                    value: Slice(column, value, part.queries, estimates_in(part.measures))
                    for value, part in by_value.items()
                }
                for column, by_value in self.slices.items()
            },
        )

    def _figures(self, folder: Path) -> Figures | None:
        rules = None if self.fingerprint is None else Rules(**dict(self.fingerprint))
        if self.figures is not None:
            return self.figures.read(folder, rules)
        return None if self.per_query is None else figures_of_data(dict(self.per_query), rules)


class _Weights(Shape):
    source: str
    effective: float


class _Settings(Shape):
    level: Annotated[float, kind("a number between 0 and 1", lambda value: 0 < value < 1)] | None = None
    resamples: Count | None = None
    method: str | None = None
    weights: _Weights | None = None


class _Report(Shape):
    runs: dict[str, _Run]
    scale: str
    corpus_size: Annotated[
        Any,
        kind(
            "a whole number, an object or null",
            lambda value: isinstance(value, dict) or _is_count_or_null(value),
        ),
    ]
    settings: _Settings
