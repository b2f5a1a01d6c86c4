"""StoredReport: a report that was saved as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.results.estimate import AS_JUDGED, Caveat, Estimate
from rag_selectivity.results.provenance import NO_AGREEMENT
from rag_selectivity.results.records import Fingerprint, QueryRecords
from rag_selectivity.results.report import SCHEMA
from rag_selectivity.results.shapes import Misfit
from rag_selectivity.results.slices import Slice, Slices
from rag_selectivity.results.stored_shape import check_report
from rag_selectivity.results.versions import stored_document

_AGAIN = "write it again with -o report.json"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run of a stored report; `records` is None if the report does not hold the figures of each query.

    `input`, `label_caveats` and `slices` are as in `rag_selectivity.results.run_report.RunReport`.
    """

    estimates: Mapping[str, Estimate]
    fingerprint: Fingerprint | None
    records: QueryRecords | None
    input: Mapping[str, Any] = field(default_factory=dict)
    label_caveats: tuple[Caveat, ...] = ()
    slices: Slices = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report that was saved as JSON: its figures, its fingerprints, and the figures of each query."""

    path: Path
    runs: Mapping[str, StoredRun]
    scale: str = "trec"
    corpus_size: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path) -> StoredReport:
        """Read a file written by `Report.save`, by `evaluate -o report.json`, or with a comparison; of format 1 too."""
        file = Path(path)
        data = stored_document(
            file,
            SCHEMA,
            unread="so no stored report; `evaluate -o report.json` and report.save('report.json') write one",
            other=f"not a report of rag-selectivity (schema {SCHEMA}); write one with -o report.json",
            has="the report has",
            again=_AGAIN,
            former={"rag-selectivity/report/1": _of_format_1},
        )
        try:
            check_report(data)
            runs = {run: _stored_run(part) for run, part in data["runs"].items()}
            return cls(file, runs, str(data["scale"]), data["corpus_size"], dict(data["settings"]))
        except Misfit as error:
            raise InputError(f"{file}: the report is damaged: {error}; {_AGAIN}") from None
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise InputError(f"{file}: the report is damaged ({error!r}); {_AGAIN}") from None

    def run(self, name: str, runs: int) -> StoredRun:
        """A run by name. If both reports have only one run, its name does not matter."""
        if name not in self.runs and len(self.runs) == 1 and runs == 1:
            name = next(iter(self.runs))
        if name not in self.runs:
            raise InputError(f"{self.path} has no run {name!r} (it has: {', '.join(self.runs)})")
        return self.runs[name]


def _of_format_1(data: Any) -> Any:
    """A report of format 1 as one of format 2: the same figures, without what identifies the queries and judgments."""
    runs = data.get("runs")
    if not isinstance(runs, dict) or not all(isinstance(part, dict) for part in runs.values()):
        return data  # damaged, as the check of its shape says
    return {**data, "runs": {run: {**part, "fingerprint": None, "per_query": None} for run, part in runs.items()}}


def _stored_run(part: Mapping[str, Any]) -> StoredRun:
    fingerprint, records = part["fingerprint"], part["per_query"]
    estimates = {key: stored_estimate(cell) for key, cell in part["measures"].items()}
    of_figures = {caveat.code for estimate in estimates.values() for caveat in estimate.caveats}
    return StoredRun(
        estimates,
        None if fingerprint is None else Fingerprint.from_dict(fingerprint),
        None if records is None else QueryRecords.from_dict(records),
        part.get("input", {}),
        tuple(_caveat(each) for each in part.get("caveats", ()) if each["code"] not in of_figures - {NO_AGREEMENT}),
        {
            column: {value: _slice(column, value, some) for value, some in by_value.items()}
            for column, by_value in part.get("slices", {}).items()
        },
    )


def _slice(column: str, value: str, part: Mapping[str, Any]) -> Slice:
    estimates = {key: stored_estimate(cell) for key, cell in part["measures"].items()}
    return Slice(column, value, int(part["queries"]), estimates)


def _caveat(data: Mapping[str, Any]) -> Caveat:
    return Caveat(data["code"], data["text"], data["level"], data.get("figures", {}))


def stored_estimate(cell: Mapping[str, Any]) -> Estimate:
    """A stored estimate; a null value is −inf if the reason says so, otherwise NaN."""
    value, low, high = (math.nan if cell[name] is None else float(cell[name]) for name in ("value", "low", "high"))
    reason = cell.get("reason")
    if cell["value"] is None and "log2 of 0" in (reason or ""):
        value = -math.inf
    basis = cell.get("basis", AS_JUDGED)
    as_judged = cell.get("as_judged")
    if basis != AS_JUDGED and as_judged is None:
        as_judged = math.nan
    return Estimate(
        value,
        low,
        high,
        int(cell["n"]),
        int(cell["n_total"]),
        reason,
        _ends(cell, "possible"),
        tuple(map(_caveat, cell.get("caveats", ()))),
        basis,
        as_judged,
        _ends(cell, "as_judged_interval"),
        cell.get("shown"),
        bool(cell.get("rough")),
        cell.get("placebo"),
        _ends(cell, "above_placebo"),
        cell.get("effective"),
    )


def _ends(cell: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    """The ends of a stored interval, NaN for null; None if there is no such interval."""
    if name not in cell:
        return None
    low, high = (math.nan if end is None else float(end) for end in cell[name])
    return low, high
