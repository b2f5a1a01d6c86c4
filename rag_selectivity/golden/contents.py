"""What a version of a golden set consists of: its files, and the manifest that counts what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rag_selectivity
from rag_selectivity.golden.golden_set import content_hash, fingerprint
from rag_selectivity.golden.label_source import Row, sources_of
from rag_selectivity.golden.manifest import LABELS, PASSAGES, QUERIES, RUBRIC, Manifest
from rag_selectivity.grading.store import digest
from rag_selectivity.tables.writing import json_line

_JUDGE = ("judge", "model", "parameters", "rubric", "rubric_version", "prompt_version")


@dataclass(frozen=True)
class SetContents:
    """Queries, texts of passages, labels, a rubric and the print of the corpus, before they are a version."""

    queries: Sequence[Mapping[str, Any]]
    passages: Mapping[str, str]
    labels: Sequence[Row]
    corpus: Mapping[str, Any] | None = None
    rubric: bytes | None = None

    def files(self) -> dict[str, bytes]:
        """{name: content} of all files but the manifest."""
        texts = ({"passage_id": id_, "text": self.passages[id_]} for id_ in sorted(self.passages))
        files = {QUERIES: _lines(self.queries), PASSAGES: _lines(texts), LABELS: _lines(self.labels)}
        return files if self.rubric is None else {**files, RUBRIC: self.rubric}

    def manifest(
        self,
        files: Mapping[str, bytes],
        *,
        name: str,
        date: str,
        previous: Manifest | None,
        licence: str | None,
        description: str | None,
    ) -> Manifest:
        """The manifest of a version with these files."""
        rows = {QUERIES: len(self.queries), PASSAGES: len(self.passages), LABELS: len(self.labels), RUBRIC: 1}
        hashes = {file: content_hash(content) for file, content in files.items()}
        values = {
            "name": name,
            "version": 1 if previous is None else previous.version + 1,
            "fingerprint": fingerprint(hashes, self.corpus),
            "date": date,
            "previous": None
            if previous is None
            else {"version": previous.version, "fingerprint": previous.fingerprint},
            "licence": licence,
            "description": description,
            "files": {file: {"rows": rows[file], "hash": hashes[file]} for file in files},
            "queries": self._queries(),
            "corpus": None if self.corpus is None else dict(self.corpus),
            "labels": self._labels(),
            "pools": list(_draws(self.labels)),
            "judges": list(_judges(self.labels)),
            "people": list(_people(self.labels)),
            "made_by": f"rag-selectivity {rag_selectivity.__version__}",
        }
        return Manifest.model_validate(values)

    def _queries(self) -> dict[str, Any]:
        weights = [float(row["weight"]) for row in self.queries if "weight" in row]
        strata = Counter(str(row["stratum"]) for row in self.queries if row.get("stratum") not in (None, ""))
        return {
            "count": len(self.queries),
            "weighted": bool(weights),
            "weight": sum(weights) if weights else None,
            "strata": dict(sorted(strata.items())),
        }

    def _labels(self) -> dict[str, Any]:
        kinds: dict[tuple[str, str], set[str]] = {}
        for row in self.labels:
            kinds.setdefault(_pair(row), set()).update(str(each["kind"]) for each in sources_of(row))
        by_origin = Counter(kind for of_pair in kinds.values() for kind in of_pair or {"unknown"})
        by = Counter(
            source for source, _ in {(row["source"], _pair(row)) for row in self.labels if row["grade"] is not None}
        )
        texts = {row["query_id"]: row["text"] for row in self.queries}
        return {
            "rows": len(self.labels),
            "pairs": len(kinds),
            "by_person": by["human"],
            "by_judge": by["judge"],
            "by_origin": dict(sorted(by_origin.items())),
            "changed": len({_pair(row) for row in changed_labels(self.labels, texts, self.passages)}),
            "without_text": sum(texts.get(query) is None or passage not in self.passages for query, passage in kinds),
        }


def changed_labels(
    labels: Iterable[Row], queries: Mapping[str, str | None], passages: Mapping[str, str | None]
) -> Iterator[Row]:
    """The labels that were given to another text of their query or passage than the ids have now.

    A label that does not say which texts were read, and one whose ids have no text now, is left out.
    """
    of_query = {id_: digest(text).hex() for id_, text in queries.items() if text is not None}
    of_passage = {id_: digest(text).hex() for id_, text in passages.items() if text is not None}
    for row in labels:
        for stated, now in (
            (row.get("query_hash"), of_query.get(row["query_id"])),
            (row.get("passage_hash"), of_passage.get(row["passage_id"])),
        ):
            if stated and now is not None and stated != now:
                yield row
                break


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(f"{json_line(dict(row))}\n" for row in rows).encode()


def _pair(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["query_id"], row["passage_id"]


def _draws(labels: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Each draw of the labels, with how many pairs it chose."""
    pairs: dict[tuple[str, str, int | None, str | None], set[tuple[str, str]]] = {}
    for row in labels:
        for origin in sources_of(row):
            design = (origin.get("how") or {}).get("design")
            key = (str(origin["kind"]), str(origin.get("source", "")), origin.get("depth"), design)
            pairs.setdefault(key, set()).add(_pair(row))
    for (kind, source, depth, design), chosen in sorted(pairs.items(), key=lambda item: tuple(map(str, item[0]))):
        draw: dict[str, Any] = {"kind": kind, "source": source, "depth": depth, "pairs": len(chosen)}
        yield draw if design is None else {**draw, "design": str(design)}


def _judges(labels: Sequence[Row]) -> Iterator[dict[str, Any]]:
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for row in labels:
        if row["source"] == "judge":
            key = tuple(str(row.get(name) or "") for name in _JUDGE)
            counts.setdefault(key, Counter())["failed" if row["grade"] is None else "graded"] += 1
    for key, count in sorted(counts.items()):
        yield {**dict(zip(_JUDGE, key, strict=True)), "graded": count["graded"], "failed": count["failed"]}


def _people(labels: Sequence[Row]) -> Iterator[dict[str, Any]]:
    counts: dict[str, Counter[str]] = {}
    for row in labels:
        if row["source"] == "human":
            kind = "skipped" if row["grade"] is None else "again" if row.get("sample") else "graded"
            counts.setdefault(str(row["judge"]), Counter())[kind] += 1
    for name, count in sorted(counts.items()):
        yield {"annotator": name, **{kind: count[kind] for kind in ("graded", "skipped", "again")}}
