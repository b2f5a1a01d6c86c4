"""StoredClaims: claim checks that were saved as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from rag_selectivity.errors import InputError
from rag_selectivity.figures.figures import Figures
from rag_selectivity.measures.claims import ClaimMeasure
from rag_selectivity.results.claims import ClaimReport, table_of_claims
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.shapes import Digits, Id, Shape, kind, stored


class StoredSample(Shape):
    """A query with the fingerprint of its question and reference answer, and its figures."""

    id: Id
    fingerprint: Digits
    measures: dict[str, float | None]
    whole_context: dict[str, float | None] = Field({})

    @property
    def figures(self) -> dict[str, float | None]:
        """All its figures by their measures."""
        return {**self.measures, **{f"ContextRecall(whole)@{k}": value for k, value in self.whole_context.items()}}


def _have_different_ids(samples: list[StoredSample]) -> bool:
    return len({sample.id for sample in samples}) == len(samples)


class StoredClaimRun(Shape):
    """One run of stored claim checks: its figures, and those of each query."""

    estimates: dict[str, Estimate] = Field(alias="measures")
    samples: Annotated[list[StoredSample], kind("samples with different ids", _have_different_ids)] = Field(
        alias="per_sample"
    )

    @cached_property
    def figures(self) -> Figures:
        """The figures of every query."""
        columns = {
            ClaimMeasure.parse(key): [[each.figures.get(key)] for each in self.samples] for key in self.estimates
        }
        ids, fingerprints = ([getattr(each, name) for each in self.samples] for name in ("id", "fingerprint"))
        return table_of_claims(ids, fingerprints, columns)


class StoredClaims(Shape):
    """Claim checks that were saved as JSON."""

    judge: str
    runs: dict[str, StoredClaimRun]
    path: Path = Field(Path(), exclude=True)

    @classmethod
    def read(cls, path: str | Path) -> StoredClaims:
        """Read a file written by `ClaimReport.save` or by `claims -o claims.json`.

        Raises
        ------
        InputError
            If the file is none, is of another version, or is damaged.
        """
        found = stored(cls, Path(path), ClaimReport.schema, "file of claim checks", "claims -o claims.json")
        return found.model_copy(update={"path": Path(path)})

    def run_like(self, name: str, runs: int) -> StoredClaimRun:
        """A run by name. If both sides have only one run, its name does not matter."""
        if name not in self.runs and len(self.runs) == runs == 1:
            return next(iter(self.runs.values()))
        if name not in self.runs:
            raise InputError(f"{self.path} has no run {name!r} (it has: {', '.join(self.runs)})")
        return self.runs[name]

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
            self.run_like(name, len(runs))
