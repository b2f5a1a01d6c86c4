"""The kinds of input of golden sets: versions, what they are built of, forms of other tools, questions and draws."""

from __future__ import annotations

import io
import json
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from rag_selectivity import golden
from rag_selectivity.cli.golden_adjudicate import golden_adjudicate
from rag_selectivity.cli.golden_draw import golden_draw
from rag_selectivity.golden.forms import FORMS
from rag_selectivity.golden.golden_set import content_hash, fingerprint, versions_of
from rag_selectivity.golden.render import check_text, difference_text
from rag_selectivity.grading.store import Draw, HumanLabel, Store
from rag_selectivity.io.writing import write_rows
from tests.fuzz.changes import JSON_ATOMS, changed_bytes, changed_json, changed_text, changed_value
from tests.fuzz.kind import Kind, changed_file, changed_one, quietly, written
from tests.fuzz.seeds import LABELS, RUN, TEXTS, seeds
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
            golden.export(made, root / form, form, rule="median")
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


# -- a changed version ---------------------------------------------------------------------------------------


def changed_content(random: Random, name: str, content: bytes) -> bytes:
    """A file of a folder, changed as a file of its suffix."""
    if random.random() < 0.15:
        return changed_bytes(random, content)
    text = content.decode()
    if text.startswith(("{", "[")) and random.random() < 0.8:
        return changed_json(random, text, lines=name.endswith(".jsonl")).encode("utf-8", "surrogatepass")
    return changed_text(random, text).encode("utf-8", "surrogatepass")


def changed_folder(random: Random, folder: Path, name: str) -> Path:
    """A folder of the seeds with a changed file."""
    root = put_folder(folder, name)
    file = random.choice(list(folders()[name]))
    content = changed_content(random, file, folders()[name][file])
    (root / file).write_bytes(content)
    if name == "set" and not file.endswith("manifest.json") and random.random() < 0.8:
        # With the hash of the former content nothing but the hash would be looked at.
        put_hash((root / file).parent, Path(file).name, content)
    return root


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


def version(random: Random, folder: Path) -> object:
    """A changed version: read, checked, compared with the other one, exported, or built of."""
    root = changed_folder(random, folder, "set")
    place = random.choice((root, root / "v1", root / "v2"))
    match random.choice((0, 0, 0, 0, 1, 2, 3, 4, 5)):
        case 0:
            read = golden.GoldenSet.read(place)
            return read.weights, read.label_rows
        case 1:
            return check_text(golden.check(place, corpus=CORPUS, queries=TEXTS))
        case 2:
            return golden.GoldenSet.read(place).qrels(rule="median").to_dict()
        case 3:
            return difference_text(golden.diff(root / "v1", root / "v2", rule="median"))
        case 4:
            return golden.export(place, folder / "exported", random.choice(list(FORMS)), rule="median")
        case _:
            return built(folder / "new", labels=place, queries=place)


def built(place: Path, **given: Any) -> object:
    """A version that is built; whatever becomes of it, what is in the folder are whole versions."""
    try:
        return golden.build(place, **{"date": DATE, **given})
    finally:
        whole(place)


def whole(place: Path) -> None:
    """An AssertionError where a folder holds anything but versions that can be read."""
    names = sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    assert names == [f"v{number}" for number in versions_of(place)], names
    for number in versions_of(place):
        golden.GoldenSet.read(place, version=number).qrels(rule="median")


# -- what a version is made of -------------------------------------------------------------------------------


def build(random: Random, folder: Path) -> object:
    """A version of a changed file of labels, queries, texts or a rubric, or of changed values."""
    given: dict[str, Any] = {"labels": GRADES, "queries": QUERIES, "corpus": CORPUS}
    changed = random.choice((*given, "labels", "queries", "rubric", "options", "value", "value"))
    match changed:
        case "labels":
            files = ("exported.jsonl", "exported.csv", "exported.qrels", "labels.trec", "labels.csv", "store.db")
            given["labels"] = written(random, folder, random.choice(files))
        case "queries":
            given["queries"] = written(random, folder, random.choice(("queries.jsonl", "queries.csv")))
        case "corpus":
            given["corpus"] = written(random, folder, "corpus.jsonl")
        case "rubric":
            given["rubric"] = written(random, folder, "rubric.toml")
        case "options":
            options = {"name": "n", "licence": "l", "description": "d", "annotator": "ada", "grade_map": {1: 1, 5: 5}}
            given |= changed_one(random, {**options, "date": DATE})
        case _:
            given = changed_one(random, given)
    return built(folder / "new", **given)


# -- forms of other tools ------------------------------------------------------------------------------------


def form(random: Random, folder: Path) -> object:
    """A changed export in one of the forms, imported with its side file or without."""
    name = random.choice(list(FORMS))
    source = changed_folder(random, folder, name)
    options: dict[str, Any] = {}
    if random.random() < 0.5:
        (source / "golden-set.side.jsonl").unlink()
        options = {"form": name, "annotator": "ada", "date": DATE}
    try:
        return golden.import_set(source, folder / "new", **options)
    finally:
        whole(folder / "new")


# -- questions -----------------------------------------------------------------------------------------------


def questions(random: Random, folder: Path) -> object:
    """An evaluation set of a changed file, of changed values, with changed vectors or changed options."""
    texts = [TEXTS[query] for query in ASKED]
    given: dict[str, Any] = {"group": "exact", "size": 2, "by": "length", "seed": 3}
    match random.randrange(5):
        case 0 | 1:
            name = random.choice(("queries.jsonl", "queries.csv", "questions.txt", "trace.jsonl", "spans.json"))
            found = golden.queries(written(random, folder, name), group=random.choice(("exact", "ngrams")), size=2)
        case 2:
            found = golden.queries(changed_value(random, random.choice((texts, QUERIES, TEXTS))), by="length", size=2)
        case 3:
            path = folder / "vectors.npy"
            path.write_bytes(changed_bytes(random, vectors()))
            given["vectors"] = random.choice((path, changed_value(random, np.eye(3).tolist())))
            found = golden.queries(texts, group="vectors", vectors=given["vectors"])
        case _:
            found = golden.queries(QUERIES, **changed_one(random, given))
    write_rows(folder / "out.jsonl", found.to_rows())
    return found


@cache
def vectors() -> bytes:
    """A vector of each question, as NumPy saves them."""
    file = io.BytesIO()
    np.save(file, np.eye(3))
    return file.getvalue()


# -- people --------------------------------------------------------------------------------------------------

DRAWS = ("disagree:2", "disagree-sampled:2", "decide:3", "random:1", "tail:4:1", "calibrate:2", "agree:2", "outside:1")


def drawn(random: Random, folder: Path) -> None:
    """A task drawn for people, with a changed draw, texts or list of pairs; or one that adjudicates."""
    store = folder / "people.db"
    store.write_bytes(people())
    queries, corpus = folder / "queries.jsonl", folder / "corpus.jsonl"
    for path in (queries, corpus):
        changed = random.random() < 0.2
        path.write_bytes(changed_file(random, path.name) if changed else seeds()[path.name])
    task = folder / random.choice(("task.csv", "task.html"))
    texts: dict[str, Any] = {"queries": queries, "corpus": corpus}
    if random.random() < 0.4:
        options = (
            changed_one(random, {"annotator": ["ada", "ben"], "at_least": 1, "seed": 3})
            if random.random() < 0.5
            else {}
        )
        if not isinstance(options.get("annotator", []), list):
            options = {}
        out = folder / "out.json"
        quietly(golden_adjudicate, store, **options, **texts, adjudicator="cy", task=task, resamples=20, output=out)
        return
    runs = [str(written(random, folder, "run.trec")), str(folder / "other.csv")]
    Path(runs[1]).write_text("query_id,doc_id,score\nq1,d3,2\nq1,d4,1\nq2,d3,1\n")
    draw = random.choice(DRAWS)
    if random.random() < 0.3:
        draw = changed_text(random, draw, ":")
    elif random.random() < 0.3:
        draw = f"file:{written(random, folder, 'pairs.csv')}"
    quietly(golden_draw, store, draw, task, **texts, run=runs, list_depth=2, measure="RA-nWG@2")


OPTIONS: dict[str, Any] = {
    "queries": TEXTS,
    "corpus": CORPUS,
    "runs": {"a": RUN, "b": GRADES},
    "measures": ["AP"],
    "depths": [2],
    "pool_depth": 2,
    "threshold": 0.6,
    "judges": ["m"],
    "rule": "median",
    "min_judged": 0.5,
    "max_shift": 0.1,
    "min_tau": 0.5,
}


def checked(random: Random, folder: Path) -> object:
    """The unchanged set, checked, compared or exported with a changed option."""
    root = put_folder(folder, "set")
    options = changed_one(random, {name: OPTIONS[name] for name in random.sample(list(OPTIONS), 2)})
    if random.random() < 0.7:
        return check_text(golden.check(root / "v1", **{"rule": "median", **options}))
    judges = changed_one(random, {"judges": ["m"], "rule": "median"})
    if random.random() < 0.5:
        return difference_text(golden.diff(root, **judges))
    corpus = changed_value(random, CORPUS, JSON_ATOMS)
    return golden.export(
        root / "v1", folder / "exported", random.choice(("beir", "llama-index")), corpus=corpus, **judges
    )


KINDS: tuple[Kind, ...] = (
    Kind("golden version", version),
    Kind("golden build", build),
    Kind("golden form", form),
    Kind("golden questions", questions),
    Kind("golden draw", drawn),
    Kind("golden check", checked),
)
