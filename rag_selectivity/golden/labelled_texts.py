"""The texts that people read for their labels, where a label does not say it: those of the first version with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rag_selectivity.golden.golden_set import GoldenSet, versions_of
from rag_selectivity.golden.label_source import Row
from rag_selectivity.grading.store import digest

_HASHES = ("query_hash", "passage_hash")
_IDENTITY = ("judge", "query_id", "passage_id", "sample")


def with_versions_before(golden: GoldenSet) -> Iterator[GoldenSet]:
    """A version of a set and those before it, the newest first."""
    yield golden
    place = golden.folder.resolve()
    if place.name != f"v{golden.version}":
        # A version that was copied elsewhere: what lies beside it is of another set.
        return
    for number in reversed(versions_of(place.parent)):
        if number < golden.version:
            yield GoldenSet.read(place.parent, version=number)


def with_labelled_texts(rows: Sequence[Row], versions: Iterable[GoldenSet]) -> list[Row]:
    """The rows, where those of people that lack the hashes of their texts have those of the first version with them.

    A version has a label if it has the same grade by the same person for the same pair, unless both are dated and the
    label of the version is the older one: then the person has labelled the pair again since.

    Parameters
    ----------
    rows : sequence of rows of an export
    versions : iterable of GoldenSet
        The newest first. None is read if all rows have their hashes.
    """
    searched = {_identity(row): row for row in rows if _lacks_texts(row)}
    hashes: dict[tuple[Any, ...], dict[str, str]] = {}
    if searched:
        for version in versions:
            queries: Mapping[str, str | None] = {row["query_id"]: row["text"] for row in version.queries}
            for known in version.label_rows:
                key = _identity(known)
                if known["source"] != "human" or key not in searched:
                    continue
                if _is_another(searched[key], known):
                    del searched[key]
                    continue
                texts = queries.get(known["query_id"]), version.passages.get(known["passage_id"])
                stated = {
                    name: known.get(name) or (None if text is None else text_hash(text))
                    for name, text in zip(_HASHES, texts, strict=True)
                }
                hashes.setdefault(key, {}).update({name: value for name, value in stated.items() if value})
                if all(known.get(name) for name in _HASHES):
                    del searched[key]
            if not searched:
                break
    return [
        {**row, **{name: row.get(name) or value for name, value in hashes.get(_identity(row), {}).items()}}
        if _lacks_texts(row)
        else row
        for row in rows
    ]


def keeping_labelled_texts(
    rows: Sequence[Row],
    versions: Iterable[GoldenSet],
    queries: Mapping[str, str | None],
    passages: Mapping[str, str],
) -> list[Row]:
    """The rows for a version with these texts; those of people that were given to other texts get their hashes.

    A label that belongs to the texts of the version stays as it is, so that the same content makes no new version.
    """
    kept = []
    for row, full in zip(rows, with_labelled_texts(rows, versions), strict=True):
        texts = queries.get(row["query_id"]), passages.get(row["passage_id"])
        is_of_these = all(
            full.get(name) in (None, None if text is None else text_hash(text))
            for name, text in zip(_HASHES, texts, strict=True)
        )
        kept.append(row if is_of_these else full)
    return kept


def text_hash(text: str) -> str:
    """The hash of a text, as a row of an export has it."""
    return digest(text).hex()


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) or 0 for name in _IDENTITY)


def _lacks_texts(row: Row) -> bool:
    # A label of a judge always says which texts were read; a pair that was skipped has no label.
    return row["source"] == "human" and row["grade"] is not None and not all(row.get(name) for name in _HASHES)


def _is_another(row: Row, known: Row) -> bool:
    """Whether a label was given after that of a version, or is another grade."""
    if row["grade"] != known["grade"]:
        return True
    date, known_date = row.get("created"), known.get("created")
    return isinstance(date, (int, float)) and isinstance(known_date, (int, float)) and date > known_date
