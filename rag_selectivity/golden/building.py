"""`build`: a new version of a golden set, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.golden.contents import SetContents
from rag_selectivity.golden.corpus_print import printed
from rag_selectivity.golden.golden_set import GoldenSet, is_set_path, versions_of
from rag_selectivity.golden.label_source import label_rows_of
from rag_selectivity.golden.labelled_texts import keeping_labelled_texts, with_versions_before
from rag_selectivity.golden.manifest import LABELS, MANIFEST, QUERIES, RUBRIC, Manifest
from rag_selectivity.golden.query_rows import query_rows
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.writing import json_text, refuse_unwritable_folder, write_files


@dataclass(frozen=True)
class Built:
    """What `build` made.

    Attributes
    ----------
    golden : GoldenSet
    is_new : bool
        False where the newest version has the same content: then it is that one.
    left_out : int
        Labels of queries that the set does not have.
    """

    golden: GoldenSet
    is_new: bool
    left_out: int


def build(
    folder: str | Path,
    *,
    labels: Any,
    queries: Any,
    corpus: Any = None,
    name: str | None = None,
    licence: str | None = None,
    description: str | None = None,
    rubric: str | Path | None = None,
    annotator: str | None = None,
    grade_map: Any = None,
    date: str | None = None,
) -> Built:
    """Make the next version of a golden set: `folder/v1`, `folder/v2` and so on.

    A version never changes. It is made beside its place and put there when it is complete, so that an interruption
    leaves the versions before it, and the same call makes it again. The same content makes no new version.

    Parameters
    ----------
    folder : str or Path
        Of the set; made if need be.
    labels : path of a label store, of its export, of qrels or of a golden set; Qrels; or {query: {passage: grade}}
        Grades from 1 to 5. All labels of the queries are kept, with judges, people, reasons and origins. A label of a
        person that does not say which texts were read, as in qrels, belongs to those of the first version that has it:
        it keeps their hashes where the texts are others now, unless it has another grade or a later date.
    queries : QuerySet, path, DataFrame, {id: text} or list of records
        As `golden queries` writes them; `weight`, `stratum` and other columns are kept.
    corpus : path, {id: text}, DataFrame or records, optional
        Gives the texts of the labelled passages, and the fingerprint of the corpus. Without it the set has no texts of
        passages.
    name, licence, description : str, optional
        Default: those of the version before; of the first one the name of the folder, and none.
    rubric : path, optional
        The rubric by which was labelled, kept as a file of the set. Default: that of the version before.
    annotator, grade_map
        As in `store import`, for qrels.
    date : str, optional
        Default: now, or the time of the environment variable SOURCE_DATE_EPOCH.

    Returns
    -------
    Built

    Raises
    ------
    InputError
        If a source is wrong, no label belongs to a query of the set, or the folder cannot be written. Nothing is
        written then.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> of = {"labels": {"q1": {"d1": 5}}, "queries": {"q1": "What is RAG?"}, "corpus": {"d1": "RAG is …"}}
    >>> with TemporaryDirectory() as place:
    ...     made, again = build(f"{place}/faq", **of), build(f"{place}/faq", **of)
    ...     made.golden.title, made.golden.qrels().to_dict(), made.is_new, again.is_new
    ('faq v1', {'q1': {'d1': 5}}, True, False)
    """
    place = Path(folder)
    sets = [
        GoldenSet.read(each) if isinstance(each, GoldenSet) or is_set_path(each) else None for each in (labels, queries)
    ]
    labels, queries = (
        given if golden is None else golden.folder / file
        for given, golden, file in zip((labels, queries), sets, (LABELS, QUERIES), strict=True)
    )
    former = _newest_of(place)
    refuse_unwritable_folder(place)
    rows = query_rows(queries)
    asked = {row["query_id"] for row in rows}
    all_labels = label_rows_of(labels, annotator=annotator, grade_map=grade_map)
    kept = [row for row in all_labels if row["query_id"] in asked]
    if not kept:
        raise InputError(
            f"{place}: no label (there are {len(all_labels):,}) belongs to a query of the set (there are "
            f"{len(rows):,}): do they use the same ids?"
        )
    labelled = {row["passage_id"] for row in kept}
    of_corpus, texts = (None, {}) if corpus is None else printed(corpus, labelled)
    texts_of_queries = {row["query_id"]: row["text"] for row in rows}
    for known in (sets[0], former):
        if known is not None:
            kept = keeping_labelled_texts(kept, with_versions_before(known), texts_of_queries, texts)
    contents = SetContents(
        rows,
        texts,
        kept,
        of_corpus,
        _rubric(rubric, former),
    )
    files = contents.files()
    before = None if former is None else former.manifest
    if before is not None:
        name = before.name if name is None else name
        licence = before.licence if licence is None else licence
        description = before.description if description is None else description
    manifest = contents.manifest(
        files,
        name=name or place.resolve().name,
        date=date or _now(),
        previous=before,
        licence=licence,
        description=description,
    )
    told = ("fingerprint", "name", "licence", "description")
    left_out = len(all_labels) - len(kept)
    if former is not None and all(getattr(manifest, key) == getattr(former.manifest, key) for key in told):
        return Built(former, False, left_out)
    return Built(_put_version(place, manifest, files), True, left_out)


def _put_version(place: Path, manifest: Manifest, files: Mapping[str, bytes]) -> GoldenSet:
    """Write a version beside its place, and put it there whole."""
    target = place / f"v{manifest.version}"
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{place}: cannot be made ({error.strerror or error}); make the folder above it first"
        ) from None
    with TemporaryDirectory(dir=place) as own:
        made = Path(own) / target.name
        made.mkdir()
        write_files({made / file: content for file, content in files.items()})
        write_files({made / MANIFEST: f"{json_text(manifest.to_dict())}\n"})
        try:
            os.rename(made, target)
        except OSError as error:
            if (target / MANIFEST).is_file():
                raise InputError(f"{target}: another process has made this version meanwhile; build again") from None
            if target.exists():
                raise InputError(
                    f"{target}: there is something else in the place of the next version: move it away, and build again"
                ) from None
            raise InputError(f"{target}: cannot be written ({error.strerror or error})") from None
    return GoldenSet.read(target)


def _newest_of(place: Path) -> GoldenSet | None:
    """The newest version in the folder of a set, None if there is none; an InputError for what is no such folder."""
    if (place / MANIFEST).is_file():
        raise InputError(f"{place}: this is a version of a set, which never changes; give the folder of the set")
    if place.exists() and not place.is_dir():
        raise InputError(f"{place}: this is a file; a golden set is a folder")
    return GoldenSet.read(place) if versions_of(place) else None


def _rubric(given: str | Path | None, former: GoldenSet | None) -> bytes | None:
    """The file of a rubric, or of that of the version before; None if there is none."""
    if given is not None:
        Rubric.read(given)
        return Path(given).read_bytes()
    if former is not None and RUBRIC in former.manifest.files:
        return (former.folder / RUBRIC).read_bytes()
    return None


def _now() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        if epoch and not (epoch.isascii() and epoch.isdecimal()):
            raise ValueError
        at = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"SOURCE_DATE_EPOCH must be a time in seconds since 1970, got {shown(epoch)}; set it right, or give the "
            f"date (--date)"
        ) from None
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
