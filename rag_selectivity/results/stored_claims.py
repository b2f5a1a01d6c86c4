"""StoredClaims: claim checks that were saved as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.claims import ClaimMeasure
from rag_selectivity.results.claims import SCHEMA
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.shapes import (
    Misfit,
    both,
    by_name,
    digits,
    each,
    fields,
    kind,
    mapping,
    number,
    or_null,
    text,
    within,
)
from rag_selectivity.results.stored import stored_estimate
from rag_selectivity.results.stored_shape import ESTIMATE
from rag_selectivity.results.versions import stored_document
from rag_selectivity.tables.cells import id_fault

_AGAIN = "write it again with claims -o claims.json"


def _ends_of(key: str) -> tuple[float, float]:
    try:
        return ClaimMeasure.parse(key).bounds
    except InputError:
        return -math.inf, math.inf


_ID = both(text, kind("an id", lambda value: id_fault(value) is None))
_SAMPLE = fields(
    {"id": _ID, "fingerprint": digits, "measures": both(by_name(or_null(number)), within(_ends_of))},
    {"whole_context": by_name(or_null(number))},
)
_RUN = fields({"measures": both(by_name(ESTIMATE), within(_ends_of, "value")), "per_sample": each(_SAMPLE)})
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
        data = stored_document(
            file,
            SCHEMA,
            unread="so no stored claims; `claims -o claims.json` and report.save('claims.json') write them",
            other=f"not claim checks of rag-selectivity (schema {SCHEMA}); write them with claims -o claims.json",
            has="the claim checks have",
            again=_AGAIN,
        )
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
