"""A version of a golden set: queries, texts of the labelled passages, and all labels, with a manifest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.golden.labels import Row
from rag_selectivity.golden.manifest import FILES, LABELS, MANIFEST, PASSAGES, QUERIES, RUBRIC, Manifest
from rag_selectivity.grading.exchange import exported_labels
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.small import read_texts
from rag_selectivity.tables.writing import json_line

_AGAIN = "make the set again"
_VERSION = re.compile(r"v([1-9][0-9]{0,8})")
_CORPUS_BYTES = 32


def contents_of(files: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """What a manifest remembers of files: {name: number of rows and hash}."""
    return {
        name: {
            "rows": 1 if name == RUBRIC else content.count(b"\n"),
            "hash": blake2b(content, digest_size=16).hexdigest(),
        }
        for name, content in files.items()
    }


def fingerprint(files: Mapping[str, Mapping[str, Any]], corpus: Mapping[str, Any] | None) -> str:
    """The fingerprint of a version by the hashes of its files and the print of its corpus."""
    hashes = {name: files[name]["hash"] for name in sorted(files)}
    content = json_line([hashes, None if corpus is None else dict(sorted(corpus.items()))])
    return blake2b(content.encode(), digest_size=8).hexdigest()


def counts_of(queries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a manifest says of queries."""
    weights = [float(row["weight"]) for row in queries if "weight" in row]
    strata = Counter(str(row["stratum"]) for row in queries if row.get("stratum") not in (None, ""))
    return {
        "count": len(queries),
        "weighted": bool(weights),
        "weight": sum(weights) if weights else None,
        "strata": dict(sorted(strata.items())),
    }


def printed(corpus: Any, wanted: Collection[str] = ()) -> tuple[dict[str, Any], dict[str, str]]:
    """The print of a corpus, as a manifest has it, and the texts of the passages that are wanted.

    The print is the same for the same ids and texts, in whatever order they stand. The corpus is read once. An id that
    comes again counts once; one with two texts is an InputError.
    """
    total, seen, texts = 0, set[str](), dict[str, str]()
    for id_, text in read_texts(corpus, "corpus"):
        if id_ in seen:
            continue
        seen.add(id_)
        if id_ in wanted:
            texts[id_] = text
        # A sum does not depend on the order, and needs no list of all passages.
        name = id_.encode("utf-8", "surrogatepass")
        content = b"%d\n%b%b" % (len(name), name, text.encode("utf-8", "surrogatepass"))
        total += int.from_bytes(blake2b(content, digest_size=_CORPUS_BYTES).digest())
    return {"passages": len(seen), "fingerprint": f"{total % (1 << 8 * _CORPUS_BYTES):064x}"}, texts


def versions_of(folder: Path) -> list[int]:
    """The numbers of the versions of a set, in their order; one that lost its manifest is among them."""
    if not folder.is_dir():
        return []
    # A version is put in its place whole: without a manifest it is damaged, and the one before it is not the newest.
    places = (each for each in folder.iterdir() if (each / MANIFEST).is_file() or (each / LABELS).is_file())
    found = (_VERSION.fullmatch(place.name) for place in places)
    return sorted(int(number[1]) for number in found if number is not None)


def is_golden_set(path: Any) -> bool:
    """Whether a value is the path of a golden set, or of a version of one."""
    try:
        return (
            is_path(path) and Path(path).is_dir() and bool((Path(path) / MANIFEST).is_file() or versions_of(Path(path)))
        )
    except (OSError, ValueError):
        # A text that cannot be a path; who reads it says what is wrong.
        return False


def recognised(path: Path, head: bytes) -> str | None:
    """`golden` for a folder with a manifest, or with versions that have one; `rag_selectivity.tables` asks here."""
    return "golden" if not head and is_golden_set(path) else None


def read_labels(kind: str, path: Path, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
    """The labels of some judges, one grade for each pair, of a golden set or one of its versions."""
    return GoldenSet.read(path).qrels(judges=judges, humans=humans)


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
        number = _VERSION.fullmatch(place.resolve().name)
        if number is not None and int(number[1]) != manifest.version:
            raise InputError(
                f"{place / MANIFEST}: this is version {manifest.version}, and the folder is called {number[0]}: put "
                f"it back as v{manifest.version}, or remove it"
            )
        found = contents_of({name: _content(place, name, manifest) for name in manifest.files})
        if not found.keys() >= {QUERIES, PASSAGES, LABELS} or manifest.fingerprint != fingerprint(
            found, manifest.corpus
        ):
            raise InputError(
                f"{place / MANIFEST}: the manifest is damaged: it does not fit the files of the version; {_AGAIN}"
            )
        queries = tuple(_rows(place / QUERIES))
        return cls(place, manifest, queries, {row["passage_id"]: row["text"] for row in _rows(place / PASSAGES)})

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
    def texts(self) -> dict[str, str | None]:
        """{query: text}."""
        return {row["query_id"]: row["text"] for row in self.queries}

    @property
    def weights(self) -> dict[str, float] | None:
        """{query: weight}; None if the queries have none."""
        return {row["query_id"]: float(row["weight"]) for row in self.queries if "weight" in row} or None

    @cached_property
    def label_rows(self) -> tuple[Row, ...]:
        """Every label as a row of an export of a label store."""
        return tuple(_rows(self.folder / LABELS))

    def qrels(self, *, judges: Sequence[str] | None = None, humans: bool = True) -> Qrels:
        """The labels, one grade for each pair; the arguments as in `rag_selectivity.read_qrels`."""
        return exported_labels(self.folder / LABELS, judges, humans)


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


def _content(place: Path, name: str, manifest: Manifest) -> bytes:
    """The content of a file, which is that of when the version was made."""
    if name not in FILES:
        raise InputError(f"{place / MANIFEST}: a golden set has no file {name!r}; {_AGAIN}")
    try:
        content = (place / name).read_bytes()
    except OSError as error:
        raise InputError(f"{place / name}: cannot be read ({error.strerror or error}); {_AGAIN}") from None
    if contents_of({name: content})[name]["hash"] != manifest.files[name].get("hash"):
        raise InputError(
            f"{place / name}: the file has changed since version {manifest.version} was made. Versions stay as they "
            f"are: put the old file back, or make a new version from it with `golden build`"
        )
    return content


def _rows(file: Path) -> list[Row]:
    """The rows of a file of a version, which may have none."""
    return [row for _, row in read_records(file)] if file.is_file() and file.stat().st_size else []
