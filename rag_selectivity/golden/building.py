"""`build`: a new version of a golden set, written whole or not at all."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import rag_selectivity
from rag_selectivity.errors import InputError
from rag_selectivity.golden.golden_set import (
    GoldenSet,
    contents_of,
    counts_of,
    fingerprint,
    is_golden_set,
    printed,
    versions_of,
)
from rag_selectivity.golden.labels import Row, Texts, changed_texts, label_rows_of, pair_of, sources_of, with_texts
from rag_selectivity.golden.manifest import LABELS, MANIFEST, PASSAGES, QUERIES, RUBRIC, Manifest
from rag_selectivity.golden.query_rows import query_rows
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.writing import json_line, json_text, named, refuse_unwritable_folder, write_files

_JUDGE = ("judge", "model", "parameters", "rubric", "rubric_version", "prompt_version")
_OF_PERSON = ("graded", "skipped", "again")
#: What a version says of itself: with the same of each, it is no new one.
_NAMED = ("name", "licence")


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
        person that does not say which texts were read, as in qrels, belongs to those of the version in which it first
        stands, unless it has another grade or a later date there.
    queries : QuerySet, path, DataFrame, {id: text} or list of records
        As `golden build` without labels writes them; `weight`, `stratum` and other columns are kept.
    corpus : path, {id: text}, DataFrame or records, optional
        Gives the texts of the labelled passages, and the fingerprint of the corpus. Without it the set has no texts of
        passages.
    name, licence : str, optional
        Default: those of the version before; of the first one the name of the folder, and none.
    rubric : path, optional
        The rubric by which was labelled, kept as a file of the set. Default: that of the version before.
    annotator, grade_map
        As in `labels import`, for qrels.
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
    labels, queries = (
        GoldenSet.read(given).folder / file if isinstance(given, GoldenSet) or is_golden_set(given) else given
        for given, file in ((labels, LABELS), (queries, QUERIES))
    )
    former = _newest_of(place)
    refuse_unwritable_folder(place)
    rows = query_rows(queries)
    asked: Texts = {row["query_id"]: row["text"] for row in rows}
    all_labels = label_rows_of(labels, annotator=annotator, grade_map=grade_map)
    of_set = [row for row in all_labels if row["query_id"] in asked]
    if not of_set:
        raise InputError(
            f"{place}: no label (there are {len(all_labels):,}) belongs to a query of the set (there are "
            f"{len(rows):,}): do they use the same ids?"
        )
    of_corpus, texts = (None, {}) if corpus is None else printed(corpus, {row["passage_id"] for row in of_set})
    labelled = [*with_texts(of_set, () if former is None else former.label_rows, asked, texts)]
    files = {
        QUERIES: _lines(rows),
        PASSAGES: _lines({"passage_id": id_, "text": texts[id_]} for id_ in sorted(texts)),
        LABELS: _lines(labelled),
        **_rubric(rubric, former),
    }
    before = None if former is None else former.manifest
    contents = contents_of(files)
    manifest = Manifest.model_validate(
        {
            "name": name or (place.resolve().name if before is None else before.name),
            "licence": before.licence if licence is None and before is not None else licence,
            "version": 1 if before is None else before.version + 1,
            "fingerprint": fingerprint(contents, of_corpus),
            "date": date or _now(),
            "previous": None if before is None else {"version": before.version, "fingerprint": before.fingerprint},
            "files": contents,
            "queries": counts_of(rows),
            "corpus": of_corpus,
            "labels": _labels(labelled, asked, texts),
            "pools": list(_draws(labelled)),
            "judges": list(_judges(labelled)),
            "people": list(_people(labelled)),
            "made_by": f"rag-selectivity {rag_selectivity.__version__}",
        }
    )
    left_out = len(all_labels) - len(of_set)
    if former is not None and all(
        getattr(manifest, key) == getattr(former.manifest, key) for key in ("fingerprint", *_NAMED)
    ):
        return Built(former, False, left_out)
    return Built(_put_version(place, manifest, files), True, left_out)


def _put_version(place: Path, manifest: Manifest, files: Mapping[str, bytes]) -> GoldenSet:
    """Write a version beside its place, and put it there whole."""
    target = place / f"v{manifest.version}"
    with named(place):
        place.mkdir(exist_ok=True)
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


def _rubric(given: str | Path | None, former: GoldenSet | None) -> dict[str, bytes]:
    """The file of a rubric, or of that of the version before; none if there is none."""
    if given is not None:
        Rubric.read(given)
        return {RUBRIC: Path(given).read_bytes()}
    if former is not None and RUBRIC in former.manifest.files:
        return {RUBRIC: (former.folder / RUBRIC).read_bytes()}
    return {}


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


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(f"{json_line(dict(row))}\n" for row in rows).encode()


# -- what a manifest says of labels -----------------------------------------------------------------------


def _labels(labels: Sequence[Row], queries: Texts, passages: Texts) -> dict[str, Any]:
    kinds: dict[tuple[str, str], set[str]] = {}
    for row in labels:
        kinds.setdefault(pair_of(row), set()).update(str(each["kind"]) for each in sources_of(row))
    by_origin = Counter(chain.from_iterable(of_pair or {"unknown"} for of_pair in kinds.values()))
    by = Counter(source for source, _ in {(row["source"], pair_of(row)) for row in labels if row["grade"] is not None})
    return {
        "rows": len(labels),
        "pairs": len(kinds),
        "by_person": by["human"],
        "by_judge": by["judge"],
        "by_origin": dict(sorted(by_origin.items())),
        "changed": len({pair_of(row) for row in labels if changed_texts(row, queries, passages)}),
        "without_text": sum(queries.get(query) is None or passage not in passages for query, passage in kinds),
    }


def _draws(labels: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Each draw of the labels, with how many pairs it chose."""
    pairs: dict[tuple[str, str, int | None, str | None], set[tuple[str, str]]] = {}
    for row in labels:
        for origin in sources_of(row):
            design = (origin.get("how") or {}).get("design")
            key = (str(origin["kind"]), str(origin.get("source", "")), origin.get("depth"), design)
            pairs.setdefault(key, set()).add(pair_of(row))
    for (kind, source, depth, design), chosen in sorted(pairs.items(), key=lambda item: tuple(map(str, item[0]))):
        draw: dict[str, Any] = {"kind": kind, "source": source, "depth": depth, "pairs": len(chosen)}
        yield draw if design is None else {**draw, "design": str(design)}


def _judges(labels: Sequence[Row]) -> Iterator[dict[str, Any]]:
    rows = (row for row in labels if row["source"] == "judge")
    kinds = ((tuple(str(row.get(name) or "") for name in _JUDGE), row["grade"] is None) for row in rows)
    for key, (graded, failed) in _counted(kinds, (False, True)):
        yield {**dict(zip(_JUDGE, key, strict=True)), "graded": graded, "failed": failed}


def _people(labels: Sequence[Row]) -> Iterator[dict[str, Any]]:
    rows = (row for row in labels if row["source"] == "human")
    kinds = (
        (str(row["judge"]), "skipped" if row["grade"] is None else "again" if row.get("sample") else "graded")
        for row in rows
    )
    for name, counts in _counted(kinds, _OF_PERSON):
        yield {"annotator": name, **dict(zip(_OF_PERSON, counts, strict=True))}


def _counted(kinds: Iterable[tuple[Any, Any]], of: Sequence[Any]) -> list[tuple[Any, list[int]]]:
    """(key, how many of each kind) of (key, kind), by key."""
    counts = Counter(kinds)
    return [(key, [counts[key, kind] for kind in of]) for key in sorted({key for key, _ in counts})]
