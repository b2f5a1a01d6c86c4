"""Stored reports as reports: their figures, also those of each query, without their lists and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.figures.figures import Figures, Rules
from rag_selectivity.figures.stored import digest_of, figures_of_data, figures_of_parquet
from rag_selectivity.judged.rows import Coverage
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures import Measure, parse_measure
from rag_selectivity.results.claims import RULES, ClaimMeasure, ClaimReport, ClaimRun
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.estimate import Caveat, Estimate
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import RunReport, Slice
from rag_selectivity.results.shapes import Count, Digits, Id, Shape, kind, stored
from rag_selectivity.results.usage import Usage

ReportOrFile = Report | str | Path


def read_report(path: ReportOrFile) -> Report:
    """Read a file written by `Report.save`, by `evaluate -o report.json`, or with a comparison; a report stays one.

    It has no bootstrap, and its runs have no lists.

    Raises
    ------
    InputError
        If the file is of another format or version, or a value does not fit.
    """
    if isinstance(path, Report):
        return path
    file = Path(path)
    found = stored(_Report, file, Report.schema, "report", "-o report.json")
    runs = {name: run.report(file.parent) for name, run in found.runs.items()}
    measures = _measures(key for run in runs.values() for key in run.estimates)
    depths = {each.at for each in measures if type(each.at) is int and not is_budget(each.at)}
    return Report(
        runs=runs,
        measures=tuple(dict.fromkeys(replace(each, at=None) for each in measures)),
        depths=tuple(sorted(depths)),
        corpus_size=found.corpus_size,
        scale=found.scale,
        settings=found.settings,
        absent=found.absent,
        provenance=found.trust.labels,
        decision=found.decision,
        path=file,
    )


def read_claims(path: str | Path) -> ClaimReport:
    """Read a file written by `ClaimReport.save` or by `claims -o claims.json`; its runs have figures and no samples.

    Raises
    ------
    InputError
        If the file is of another format or version, or a value does not fit.
    """
    found = stored(_Claims, Path(path), ClaimReport.schema, "file of claim checks", "claims -o claims.json")
    runs = {
        name: ClaimRun(run.per_query.figures(RULES, ClaimMeasure.parse), run.measures, label_caveats=run.label_caveats)
        for name, run in found.runs.items()
    }
    return ClaimReport(**{**dict(found), "runs": runs, "path": Path(path)})


def _measures(keys: Iterable[str]) -> list[Measure]:
    """The measures that are installed here."""
    measures = []
    for key in dict.fromkeys(keys):
        with suppress(InputError):
            measures.append(parse_measure(key))
    return measures


_Figure = float | Literal["inf", "-inf"] | None
_Column = list[_Figure] | _Figure | str


class _PerQuery(Shape):
    queries: list[Id]
    labels: list[Digits] | None
    corpus_size: list[Count] | Count | None
    parts: dict[str, Annotated[list[_Column], Field(min_length=1)]]
    weights: list[float] | float | None = None

    def figures(self, rules: Rules | None, parse: Callable[[str], Measure] = parse_measure) -> Figures:
        return figures_of_data(dict(self), rules, parse)

    @model_validator(mode="after")
    def _of_one_length(self) -> _PerQuery:
        if self.labels is not None and len(self.labels) != len(self.queries):
            raise ValueError(f"has {len(self.labels)} labels for {len(self.queries)} queries")
        try:
            self.figures(None)
        except (KeyError, OverflowError, TypeError) as error:
            raise ValueError(f"holds no figures ({error!r})") from None
        return self


class _Beside(Shape):
    """A Parquet file in the folder of the report."""

    file: Annotated[str, kind("the name of a file", lambda value: Path(value).name == value != "")]
    digest: Digits

    def figures(self, folder: Path, rules: Rules | None) -> Figures:
        path = folder / self.file
        mend = "put it back beside the report as it was written, or write the report again with -o report.json"
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: the figures by query cannot be read ({error.strerror}); {mend}") from None
        if digest_of(content) != self.digest:
            raise InputError(f"{path}: changed since the report was written (another digest than there); {mend}")
        try:
            return figures_of_parquet(content, rules)
        except ImportError:
            raise MissingExtraError("polars", "files", f"reading {path}") from None


class _Run(Shape):
    queries: Coverage
    measures: dict[str, Estimate]
    fingerprint: Rules | None
    per_query: _PerQuery | None
    figures: _Beside | None = None
    notes: tuple[str, ...] = ()
    input: dict[str, Any] = Field({})
    label_caveats: tuple[Caveat, ...] = ()
    slices: dict[str, dict[str, Slice]] = Field({})
    slots_per_relevant: dict[int, float] = Field({})

    def report(self, folder: Path) -> RunReport:
        figures = Figures((), [], [])
        if self.figures is not None:
            figures = self.figures.figures(folder, self.fingerprint)
        elif self.per_query is not None:
            figures = self.per_query.figures(self.fingerprint)
        same = ("notes", "input", "label_caveats", "slices", "slots_per_relevant")
        return RunReport(figures, self.measures, self.queries, **{name: getattr(self, name) for name in same})


class _Trust(Shape):
    labels: Provenance | None


class _Report(Shape):
    trust: _Trust
    runs: dict[str, _Run]
    scale: str
    corpus_size: Count | None
    settings: dict[str, Any]
    absent: dict[str, str] = Field({})
    decision: Decision | None = None


class _ClaimRun(Shape):
    measures: dict[str, Estimate]
    per_query: _PerQuery
    label_caveats: tuple[Caveat, ...] = ()


class _Claims(Shape):
    runs: dict[str, _ClaimRun]
    judge: str
    checks: tuple[str, ...]
    depths: tuple[Count, ...]
    usage: Usage
    cost: float | None
    calls: Count
    failed: Count
    stopped: str | None
    settings: dict[str, Any]


def json_schema(of: type[Report | ClaimReport]) -> dict[str, Any]:
    """The JSON schema of what a stored report, or stored claim checks, are read from; further fields are left alone."""
    return (_Claims if of is ClaimReport else _Report).model_json_schema()
