"""The manifest of a golden set: what its version holds, where it comes from, and whose labels these are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.results.shapes import (
    Check,
    Misfit,
    amount,
    both,
    by_name,
    count,
    digits,
    each,
    fields,
    kind,
    or_null,
    text,
    truth,
)
from rag_selectivity.results.versions import stored_document

SCHEMA = "rag-selectivity/golden-set/1"
MANIFEST = "manifest.json"
QUERIES, PASSAGES, LABELS, RUBRIC = "queries.jsonl", "passages.jsonl", "labels.jsonl", "rubric.toml"
#: The files of a version beside its manifest; a rubric is there if one was given.
FILES = (QUERIES, PASSAGES, LABELS, RUBRIC)


@dataclass(frozen=True, slots=True)
class Manifest:
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

    name: str
    version: int
    fingerprint: str
    date: str
    previous: Mapping[str, Any] | None
    licence: str | None
    description: str | None
    queries: Mapping[str, Any]
    corpus: Mapping[str, Any] | None
    labels: Mapping[str, Any]
    pools: tuple[Mapping[str, Any], ...]
    judges: tuple[Mapping[str, Any], ...]
    people: tuple[Mapping[str, Any], ...]
    files: Mapping[str, Mapping[str, Any]]
    made_by: str

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        return {"schema": SCHEMA, **{name: getattr(self, name) for name in _NEEDED}}

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a `manifest.json`.

        Raises
        ------
        InputError
            If it is of another format or version, or a value does not fit.
        """
        data = stored_document(
            path,
            SCHEMA,
            unread=f"so no manifest of a golden set; {_AGAIN}",
            other=f"not the manifest of a golden set (schema {SCHEMA}); {_AGAIN}",
            has="the set has",
            again=_AGAIN,
        )
        try:
            _SHAPE(data, "")
        except Misfit as error:
            raise InputError(f"{path}: the manifest is damaged: {error}; {_AGAIN}") from None
        values: Any = {name: tuple(data[name]) if isinstance(data[name], list) else data[name] for name in _NEEDED}
        return cls(**values)


_AGAIN = "make the set again with `golden build`"


_version = both(count, kind("a whole number ≥ 1", lambda value: value >= 1))


_JUDGE = dict.fromkeys(("judge", "model", "parameters", "rubric", "rubric_version", "prompt_version"), text)
_NEEDED: dict[str, Check] = {
    "name": text,
    "version": _version,
    "fingerprint": digits,
    "date": text,
    "previous": or_null(fields({"version": _version, "fingerprint": digits})),
    "licence": or_null(text),
    "description": or_null(text),
    "queries": fields({"count": count, "weighted": truth, "weight": or_null(amount), "strata": by_name(count)}),
    "corpus": or_null(fields({"passages": count, "fingerprint": text})),
    "labels": fields(
        {
            **dict.fromkeys(("rows", "pairs", "by_person", "by_judge", "changed", "without_text"), count),
            "by_origin": by_name(count),
        }
    ),
    "pools": each(fields({"kind": text, "source": text, "depth": or_null(count), "pairs": count}, {"design": text})),
    "judges": each(fields({**_JUDGE, "graded": count, "failed": count})),
    "people": each(fields({"annotator": text, "graded": count, "skipped": count, "again": count})),
    "files": by_name(fields({"rows": count, "hash": text})),
    "made_by": text,
}
_SHAPE = fields(_NEEDED)
