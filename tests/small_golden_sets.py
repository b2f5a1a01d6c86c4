"""Small golden sets: a folder of two versions, and an export of it in each form, as files that a test may change."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

from rag_selectivity import golden
from rag_selectivity.golden.forms import FORMS
from rag_selectivity.golden.golden_set import content_hash, fingerprint
from rag_selectivity.grading.store import Draw, HumanLabel, Store
from tests.small_files import LABELS, TEXTS, seeds
from tests.test_store import put

#: Three queries are enough: each call makes label stores of its own.
ASKED = ("q1", "q2", "q3")
GRADES = {query: LABELS[query] for query in ASKED}
QUERIES = [
    {"query_id": query, "text": TEXTS[query], "weight": 1.5 + place, "stratum": "s", "reference": "r"}
    for place, query in enumerate(ASKED)
]
CORPUS = {passage: TEXTS[passage] for passage in ("d1", "d2", "d3", "d4")}
DATE = "2026-01-01"


# -- seeds ---------------------------------------------------------------------------------------------------


@cache
def folders() -> dict[str, dict[str, bytes]]:
    """The files of folders, by their path within: a set of two versions, and an export of it in each form."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "people.db").write_bytes(people())
        (root / "rubric.toml").write_bytes(seeds()["rubric.toml"])
        given = {"labels": root / "people.db", "queries": QUERIES, "corpus": CORPUS, "date": DATE}
        made = golden.build(root / "set", **given, licence="CC0", rubric=root / "rubric.toml").golden
        changed = [{**row, "weight": 1.0, "text": f"{row['text']}?"} for row in QUERIES]
        golden.build(root / "set", **{**given, "queries": changed})
        for form in FORMS:
            golden.export(made, root / form, form)
        return {name: _files(root / name) for name in ("set", *FORMS)}


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@cache
def people() -> bytes:
    """A label store with the grades of a judge and of two people who differ."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "people.db"
        drawn = Draw("person", "ada", how={"design": "agree:3"})
        with Store(path) as store:
            put(store, "m", {(query, passage): grade for query, of in GRADES.items() for passage, grade in of.items()})
            put(store, "n", {(query, "d1"): 2 for query in ASKED})
            store.put_human_labels(
                HumanLabel(query, passage, by, grade, draw=drawn)
                for query in ASKED
                for passage, grades in (("d1", (4, 2)), ("d2", (3, 3)))
                for by, grade in zip(("ada", "ben"), grades, strict=True)
            )
        return path.read_bytes()


def put_folder(folder: Path, name: str) -> Path:
    """A folder of the seeds, as it is."""
    for file, content in folders()[name].items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / name


def put_hash(version: Path, file: str, content: bytes) -> None:
    """Let the manifest say that the file has this content."""
    manifest = json.loads((version / "manifest.json").read_bytes())
    manifest["files"][file] = {
        "rows": len(content.splitlines()) if file.endswith("l") else 1,
        "hash": content_hash(content),
    }
    hashes = {name: values["hash"] for name, values in manifest["files"].items()}
    manifest["fingerprint"] = fingerprint(hashes, manifest["corpus"])
    (version / "manifest.json").write_text(json.dumps(manifest))
