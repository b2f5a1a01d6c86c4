"""A version of a golden set: queries, texts of the labelled passages, and all labels, with a manifest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.golden.label_source import Row, qrels_of_export
from rag_selectivity.golden.manifest import FILES, LABELS, MANIFEST, PASSAGES, QUERIES, RUBRIC, Manifest
from rag_selectivity.golden.query_rows import checked_weight
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.writing import json_line

_AGAIN = "make the set again"
_VERSION = re.compile(r"v([1-9][0-9]{0,8})")


def content_hash(content: bytes) -> str:
    """What a manifest remembers of a file."""
    return blake2b(content, digest_size=16).hexdigest()


def fingerprint(hashes: Mapping[str, str], corpus: Mapping[str, Any] | None) -> str:
    """The fingerprint of a version by the hashes of its files and the print of its corpus."""
    content = json_line([dict(sorted(hashes.items())), None if corpus is None else dict(sorted(corpus.items()))])
    return blake2b(content.encode(), digest_size=8).hexdigest()


def versions_of(folder: Path) -> list[int]:
    """The numbers of the versions of a set, in their order; one that lost its manifest is among them."""
    if not folder.is_dir():
        return []
    # A version is put in its place whole: without a manifest it is damaged, and the one before it is not the newest.
    places = (each for each in folder.iterdir() if (each / MANIFEST).is_file() or (each / LABELS).is_file())
    found = (_VERSION.fullmatch(place.name) for place in places)
    return sorted(int(number[1]) for number in found if number is not None)


def is_golden_set(path: Path) -> bool:
    """Whether a folder is a golden set, or a version of one."""
    try:
        return path.is_dir() and ((path / MANIFEST).is_file() or bool(versions_of(path)))
    except (OSError, ValueError):
        # A text that cannot be a path; who reads it says what is wrong.
        return False


@dataclass(frozen=True)
class GoldenSet:
    """A version of a golden set.

    Attributes
    ----------
    folder : Path
        The folder of the version, as in `golden/v2`.
    manifest : Manifest
    queries : tuple of mapping
        A row for each query: `query_id`, `text` (None where there is none), perhaps `weight`, and other columns.
    passages : {id: text}
        The texts of the labelled passages, as the corpus had them when the version was made.
    """

    folder: Path
    manifest: Manifest
    queries: tuple[Mapping[str, Any], ...] = field(repr=False)
    passages: Mapping[str, str] = field(repr=False)

    @classmethod
    def read(cls, path: str | Path | GoldenSet, *, version: int | None = None) -> GoldenSet:
        """Read a set.

        Parameters
        ----------
        path : str or Path
            The folder of the set, of which the newest version is read, or that of a version (`golden/v2`).
        version : int, optional
            Another version of the set.

        Raises
        ------
        InputError
            If there is no such set or version, a newer rag-selectivity made it, or a file is not what the manifest
            says.
        """
        if isinstance(path, GoldenSet):
            return path
        place = _version_folder(Path(path), version)
        manifest = Manifest.read(place / MANIFEST)
        _check_number(place, manifest)
        _check_files(place, manifest)
        queries: list[Row] = []
        for line, row in _rows(place / QUERIES, manifest):
            if not isinstance(row.get("query_id"), str) or not isinstance(row.get("text", 0), (str, type(None))):
                raise InputError(f"{place / QUERIES}:{line}: a query has query_id and text; {_AGAIN}")
            queries.append(row)
        passages: dict[str, str] = {}
        for line, row in _rows(place / PASSAGES, manifest):
            if not isinstance(row.get("passage_id"), str) or not isinstance(row.get("text"), str):
                raise InputError(f"{place / PASSAGES}:{line}: a passage has passage_id and text; {_AGAIN}")
            passages[row["passage_id"]] = row["text"]
        _check_counts(place, manifest, queries)
        return cls(place, manifest, tuple(queries), passages)

    @property
    def name(self) -> str:
        """What the set is called."""
        return self.manifest.name

    @property
    def version(self) -> int:
        """The number of this version."""
        return self.manifest.version

    @property
    def title(self) -> str:
        """Its name and version, as in `python-docs v2`."""
        return f"{self.name} v{self.version}"

    @property
    def weights(self) -> dict[str, float] | None:
        """{query: weight}; None if the queries have none."""
        if not self.manifest.queries["weighted"]:
            return None
        return {row["query_id"]: float(row["weight"]) for row in self.queries}

    @cached_property
    def label_rows(self) -> tuple[Row, ...]:
        """Every label as a row of an export of a label store."""
        rows = []
        for line, row in _rows(self.folder / LABELS, self.manifest):
            nested = [name for name, value in row.items() if isinstance(value, (list, dict))]
            if nested:
                raise InputError(f"{self.folder / LABELS}:{line}: {nested[0]} must be a text or a number; {_AGAIN}")
            rows.append(row)
        return tuple(rows)

    def qrels(self, *, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
        """The labels, one grade for each pair; the arguments as in `rag_selectivity.read_qrels`."""
        return qrels_of_export(self.folder / LABELS, judges, humans=humans)


def _version_folder(path: Path, version: int | None) -> Path:
    if (path / MANIFEST).is_file():
        if version is None:
            return path
        path = path.parent
    known = versions_of(path)
    if not known:
        raise InputError(f"{path}: there is no golden set in this folder; make one with `golden build`")
    if version is not None and version not in known:
        raise InputError(f"{path}: there is no version {version}; there are {', '.join(map(str, known))}")
    return path / f"v{known[-1] if version is None else version}"


def _check_number(place: Path, manifest: Manifest) -> None:
    """Refuse a version in the place of another one, such as a copy that was made by hand."""
    number = _VERSION.fullmatch(place.resolve().name)
    if number is not None and int(number[1]) != manifest.version:
        raise InputError(
            f"{place / MANIFEST}: this is version {manifest.version}, and the folder is called {number[0]}: put it "
            f"back as v{manifest.version}, or remove it"
        )


def _check_counts(place: Path, manifest: Manifest, queries: Sequence[Row]) -> None:
    stated = manifest.queries["count"], manifest.queries["weighted"], manifest.labels["rows"]
    weighted = any("weight" in row for row in queries)
    for line, row in enumerate(queries if weighted else (), 1):
        checked_weight(row.get("weight"), f"{place / QUERIES}:{line}")
    if stated != (len(queries), weighted, manifest.files[LABELS]["rows"]):
        raise _damaged(place, "its counts of queries, weights or labels are not those of the files")


def _damaged(place: Path, why: str) -> InputError:
    return InputError(f"{place / MANIFEST}: the manifest is damaged: {why}; {_AGAIN}")


def _check_files(place: Path, manifest: Manifest) -> None:
    for name in (QUERIES, PASSAGES, LABELS):
        if name not in manifest.files:
            raise _damaged(place, f"files.{name} is missing")
    for name, stated in manifest.files.items():
        if name not in FILES:
            raise InputError(f"{place / MANIFEST}: a golden set has no file {name!r}; {_AGAIN}")
        try:
            content = (place / name).read_bytes()
        except OSError as error:
            raise InputError(f"{place / name}: cannot be read ({error.strerror or error}); {_AGAIN}") from None
        if content_hash(content) != stated["hash"]:
            raise InputError(
                f"{place / name}: the file has changed since version {manifest.version} was made. Versions stay as "
                f"they are: put the old file back, or make a new version from it with `golden build`"
            )
        lines = content.count(b"\n")
        if name != RUBRIC and stated["rows"] != lines:
            raise _damaged(place, f"files.{name}.rows is {stated['rows']}, and the file has {lines}")
    hashes = {name: str(stated["hash"]) for name, stated in manifest.files.items()}
    if fingerprint(hashes, manifest.corpus) != manifest.fingerprint:
        raise _damaged(place, "the fingerprint is not that of its files and its corpus")


def _rows(file: Path, manifest: Manifest) -> Iterator[tuple[int, Row]]:
    if file.name in manifest.files and manifest.files[file.name]["rows"]:
        yield from read_records(file)


def is_set_path(value: Any) -> bool:
    """Whether a value is the path of a golden set."""
    return is_path(value) and is_golden_set(Path(value))
