"""StoredClaims: claim checks that were saved as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.claims import ClaimMeasure
from rag_selectivity.results.claims import SCHEMA
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.shapes import Digits, Id, Misfit, Shape, fitted, stored_document, within
from rag_selectivity.results.stored import EstimateShape, estimates_in, run_named

_AGAIN = "write it again with claims -o claims.json"


def _ends_of(key: str) -> tuple[float, float]:
    try:
        return ClaimMeasure.parse(key).bounds
    except InputError:
        return -math.inf, math.inf


class _Sample(Shape):
    id: Id
    fingerprint: Digits
    measures: Annotated[dict[str, float | None], within(_ends_of)]
    whole_context: dict[str, float | None] = Field({})


class _Run(Shape):
    measures: Annotated[dict[str, EstimateShape], within(_ends_of, "value")]
    per_sample: list[_Sample]

    @model_validator(mode="after")
    def _of_different_ids(self) -> _Run:
        ids: set[str] = set()
        for sample in self.per_sample:
            if sample.id in ids:
                raise Misfit("samples with different ids", sample.id, ".per_sample")
            ids.add(sample.id)
        return self


class _Claims(Shape):
    judge: str
    runs: dict[str, _Run]
    settings: dict[str, Any] = Field({})


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
        claims = fitted(_Claims, data, f"{file}: the claim checks are damaged", _AGAIN)
        return cls(file, claims.judge, {name: _stored_run(run) for name, run in claims.runs.items()})

    def run(self, name: str, runs: int) -> StoredClaimRun:
        """A run by name. If both sides have only one run, its name does not matter."""
        return run_named(self.path, self.runs, name, runs)

    def refuse_other(self, judge: str, runs: Sequence[str]) -> None:
        """Refuse to compare with another judge, or without one of the runs; this is known before anything is asked.

        Raises
        ------
        InputError
        """
        if judge != self.judge:
            raise InputError(
                f"{self.path} cannot be compared: the judge is {judge} here and {self.judge} there, and two judges "
                f"differ in what they take for support; check both with one judge"
            )
        for name in runs:
            self.run(name, len(runs))


def _stored_run(run: _Run) -> StoredClaimRun:
    return StoredClaimRun(
        estimates_in(run.measures),
        tuple(sample.id for sample in run.per_sample),
        tuple(sample.fingerprint for sample in run.per_sample),
        tuple(
            {
                **sample.measures,
                **{f"ContextRecall(whole)@{k}": value for k, value in sample.whole_context.items()},
            }
            for sample in run.per_sample
        ),
    )
