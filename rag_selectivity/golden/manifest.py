"""The manifest of a golden set: what its version holds, where it comes from, and whose labels these are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, Strict
from typing_extensions import TypedDict

from rag_selectivity.results.shapes import Amount, Count, Digits, Shape, check_version, fitted, stored_document

SCHEMA = "rag-selectivity/golden-set/1"
MANIFEST = "manifest.json"
QUERIES, PASSAGES, LABELS, RUBRIC = "queries.jsonl", "passages.jsonl", "labels.jsonl", "rubric.toml"
#: The files of a version beside its manifest; a rubric is there if one was given.
FILES = (QUERIES, PASSAGES, LABELS, RUBRIC)


_Version = Annotated[int, Field(ge=1, le=1 << 53)]


class _Previous(TypedDict):
    version: _Version
    fingerprint: Digits


class _File(TypedDict):
    rows: Count
    hash: str


class _Queries(TypedDict):
    count: Count
    weighted: bool
    weight: Amount | None
    strata: dict[str, Count]


class _Corpus(TypedDict):
    passages: Count
    fingerprint: str


class _Labels(TypedDict):
    rows: Count
    pairs: Count
    by_person: Count
    by_judge: Count
    changed: Count
    without_text: Count
    by_origin: dict[str, Count]


class _Pool(TypedDict):
    kind: str
    source: str
    depth: Count | None
    pairs: Count
    design: NotRequired[str]


class _Judge(TypedDict):
    judge: str
    model: str
    parameters: str
    rubric: str
    rubric_version: str
    prompt_version: str
    graded: Count
    failed: Count


class _Person(TypedDict):
    annotator: str
    graded: Count
    skipped: Count
    again: Count


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
    licence, description : str or None
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
    description: str | None
    queries: _Queries
    corpus: _Corpus | None
    labels: _Labels
    pools: Annotated[tuple[_Pool, ...], Strict(False)]
    judges: Annotated[tuple[_Judge, ...], Strict(False)]
    people: Annotated[tuple[_Person, ...], Strict(False)]
    files: dict[str, _File]
    made_by: str

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        return {"schema": SCHEMA, **self.model_dump(mode="json")}

    @classmethod
    def of_dict(cls, data: Any, where: str) -> Manifest:
        """The manifest that `to_dict` described.

        Raises
        ------
        InputError
            If it is of another format or version, or a value does not fit; `where` names the file.
        """
        found = data.get("schema") if isinstance(data, dict) else None
        check_version(found, SCHEMA, where, f"not the manifest of a golden set (schema {SCHEMA}); {_AGAIN}")
        return fitted(cls, data, f"{where}: the manifest is damaged", _AGAIN)

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a `manifest.json`, as `of_dict`."""
        data = stored_document(
            path,
            SCHEMA,
            unread=f"so no manifest of a golden set; {_AGAIN}",
            other=f"not the manifest of a golden set (schema {SCHEMA}); {_AGAIN}",
            has="the set has",
            again=_AGAIN,
        )
        return cls.of_dict(data, str(path))


_AGAIN = "make the set again with `golden build`"
