"""The manifest of a golden set: what its version holds, where it comes from, and whose labels these are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, Strict
from typing_extensions import TypedDict

from rag_selectivity.results.shapes import Digits, Shape, stored

SCHEMA = "rag-selectivity/golden-set/1"
MANIFEST = "manifest.json"
QUERIES, PASSAGES, LABELS, RUBRIC = "queries.jsonl", "passages.jsonl", "labels.jsonl", "rubric.toml"
#: The files of a version beside its manifest; a rubric is there if one was given.
FILES = (QUERIES, PASSAGES, LABELS, RUBRIC)
_Version = Annotated[int, Field(ge=1, le=1 << 53)]
_Object = dict[str, Any]
_Objects = Annotated[tuple[_Object, ...], Strict(False)]


class _Previous(TypedDict):
    version: _Version
    fingerprint: Digits


class Manifest(Shape):
    """What a version of a golden set says of itself; it is stored as `manifest.json`.

    Attributes
    ----------
    name : str
    version : int
        From 1.
    fingerprint : str
        A hash of queries, labels, passages, rubric and corpus: equal content has an equal fingerprint.
    date : str
        When the version was made, as in `2026-11-24T12:00:00Z`.
    previous : mapping or None
        `version` and `fingerprint` of the version before.
    licence : str or None
    files : {name: {"rows": int, "hash": str}}
    queries : mapping
        `count`; `weighted`: whether they have weights; `weight`: the sum of these; `strata`: {stratum: queries}.
    corpus : mapping or None
        `passages` and `fingerprint` of the corpus; None if none was given.
    labels : mapping
        `rows`; `pairs`; `by_person` and `by_judge`: pairs with such a grade; `by_origin`: pairs by how they were
        chosen, where a pair that was chosen in two ways counts for both; `changed`: pairs whose label belongs to
        another text than the set has; `without_text`: pairs without the text of their query or passage.
    pools : list of mapping
        The draws of the labels: `kind`, `source`, `depth`, `pairs`, and `design` of what was drawn for people.
    judges : list of mapping
        `judge`, `model`, `parameters`, `rubric`, `rubric_version`, `prompt_version`, `graded`, `failed`.
    people : list of mapping
        `annotator`, `graded`, `skipped`, and `again`: pairs graded a second time.
    made_by : str
        The version of this package.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    name: str
    version: _Version
    fingerprint: Digits
    date: str
    previous: _Previous | None
    licence: str | None
    queries: _Object
    corpus: _Object | None
    labels: _Object
    pools: _Objects
    judges: _Objects
    people: _Objects
    files: dict[str, _Object]
    made_by: str

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        return {"schema": SCHEMA, **self.model_dump(mode="json")}

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a `manifest.json`.

        Raises
        ------
        InputError
            If it is of another format or version, or a value does not fit.
        """
        return stored(cls, path, SCHEMA, "manifest", "golden build")
