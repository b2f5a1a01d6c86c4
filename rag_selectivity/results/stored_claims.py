"""StoredClaims: claim checks that were saved as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.data.cells import id_fault
from rag_selectivity.errors import InputError
from rag_selectivity.io.opening import json_document
from rag_selectivity.io.shapes import Misfit, by_name, digits, each, fields, mapping, number, or_null, text
from rag_selectivity.io.versions import check_version
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.results.claims import SCHEMA
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.stored import stored_estimate
from rag_selectivity.results.stored_shape import ESTIMATE

_SCHEMAS = SCHEMA.rpartition("/")[0] + "/"
_AGAIN = "write it again with claims -o claims.json"


def _id(value: Any, place: str) -> None:
    text(value, place)
    if id_fault(value) is not None:
        raise Misfit(place, "an id", value)


_SAMPLE = fields(
    {"id": _id, "fingerprint": digits, "measures": by_name(or_null(number))},
    {"whole_context": by_name(or_null(number))},
)
_RUN = fields({"measures": by_name(ESTIMATE), "per_sample": each(_SAMPLE)})
_CLAIMS = fields({"judge": text, "runs": by_name(_RUN)}, {"settings": mapping})


@dataclass(frozen=True, slots=True)
class StoredClaimRun:
    """One run of stored claim checks: its figures, its queries with their fingerprints, and the figures of each."""

    estimates: Mapping[str, Estimate]
    queries: tuple[str, ...]
    fingerprints: tuple[str, ...]
    values: tuple[Mapping[str, float | None], ...]

    def column(self, measure: str) -> FloatArray:
        """The figure of each query under a measure, NaN where it is undefined."""
        found = (row.get(measure) for row in self.values)
        return np.array([math.nan if value is None else value for value in found], np.float64)


@dataclass(frozen=True, slots=True)
class StoredClaims:
    """Claim checks that were saved as JSON."""

    path: Path
    judge: str
    runs: Mapping[str, StoredClaimRun]

    @classmethod
    def read(cls, path: str | Path) -> StoredClaims:
        """Read a file written by `ClaimReport.save` or by `claims -o claims.json`.

        Raises
        ------
        InputError
            If the file is none, is of another version, or is damaged.
        """
        file = Path(path)
        try:
            data: Any = json_document(file)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{file}: not JSON ({error}), so no stored claims; `claims -o claims.json` and "
                f"report.save('claims.json') write them"
            ) from None
        schema = data.get("schema") if isinstance(data, dict) else None
        wrong = f"not claim checks of rag-selectivity (schema {SCHEMA}); write them with claims -o claims.json"
        if str(schema).startswith(_SCHEMAS):
            wrong = f"the claim checks have schema {schema}, but this version reads only {SCHEMA}: {_AGAIN}"
        check_version(schema, SCHEMA, str(file), wrong)
        try:
            _CLAIMS(data, "")
            return cls(file, data["judge"], {name: _stored_run(part) for name, part in data["runs"].items()})
        except Misfit as error:
            raise InputError(f"{file}: the claim checks are damaged: {error}; {_AGAIN}") from None

    def run(self, name: str, runs: int) -> StoredClaimRun:
        """A run by name. If both sides have only one run, its name does not matter."""
        if name not in self.runs and len(self.runs) == 1 and runs == 1:
            name = next(iter(self.runs))
        if name not in self.runs:
            raise InputError(f"{self.path} has no run {name!r} (it has: {', '.join(self.runs)})")
        return self.runs[name]


def _stored_run(part: Mapping[str, Any]) -> StoredClaimRun:
    samples = part["per_sample"]
    ids = [sample["id"] for sample in samples]
    if len(set(ids)) < len(ids):
        twice = next(id_ for place, id_ in enumerate(ids) if id_ in ids[:place])
        raise Misfit("per_sample", "samples with different ids", twice)
    return StoredClaimRun(
        {key: stored_estimate(cell) for key, cell in part["measures"].items()},
        tuple(ids),
        tuple(sample["fingerprint"] for sample in samples),
        tuple(
            {
                **sample["measures"],
                **{f"ContextRecall(whole)@{k}": value for k, value in sample.get("whole_context", {}).items()},
            }
            for sample in samples
        ),
    )
