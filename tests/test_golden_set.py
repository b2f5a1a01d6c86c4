"""Golden sets: versions, what a manifest counts, and what is refused when one is read."""

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.errors import InputError
from rag_selectivity.golden import GoldenSet, build, diff, queries
from rag_selectivity.grading.exchange import export_labels
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
from rag_selectivity.grading.store import HumanLabel, Store
from tests.golden_world import CORPUS, QUERIES, RUNS, golden_set

pytestmark = pytest.mark.inside

SMALL = {"labels": {"q1": {"d1": 5, "d2": 1}}, "queries": {"q1": "What is RAG?"}, "corpus": {"d1": "one", "d2": "two"}}


@pytest.fixture(scope="module")
def golden(tmp_path_factory) -> GoldenSet:
    return golden_set(tmp_path_factory.mktemp("golden"))


def test_the_manifest_counts_what_the_store_holds(golden) -> None:
    pairs = {(q, p) for run in RUNS.values() for q, passages in run.items() for p in passages}
    of = [{(q, p) for q, passages in run.items() for p in passages} for run in RUNS.values()]
    manifest = golden.manifest
    assert manifest.labels == {
        "rows": len(pairs) + 4,
        "pairs": len(pairs),
        "by_person": 2,
        "by_judge": len(pairs),
        "by_origin": {"person": 2, "pool": len(pairs)},
        "changed": 0,
        "without_text": 0,
    }
    assert [(each["kind"], each["source"], each["pairs"]) for each in manifest.pools] == [
        ("person", "ada", 2),
        ("pool", "left", len(of[0])),
        ("pool", "right", len(of[1])),
    ]
    assert [each["graded"] for each in manifest.judges] == [len(pairs)]
    assert manifest.judges[0]["rubric_version"] == DEFAULT_RUBRIC.version
    assert list(manifest.people) == [
        {"annotator": "ada", "graded": 2, "skipped": 0, "again": 1},
        {"annotator": "ben", "graded": 0, "skipped": 1, "again": 0},
    ]
    assert manifest.queries == {
        "count": 6,
        "weighted": True,
        "weight": sum(1.5 + i for i in range(6)),
        "strata": {"coffee?": 3, "tea?": 3},
    }
    assert manifest.corpus is not None
    assert manifest.corpus["passages"] == 24
    assert golden.weights == {q: 1.5 + i for i, q in enumerate(QUERIES)}
    assert set(golden.passages) == {p for _, p in pairs}


def test_its_labels_are_those_of_the_store(golden, tmp_path) -> None:
    store = golden.folder.parents[1] / "labels.db"
    options = {"corpus_size": 24, "depths": [2, 3], "bootstrap": None}
    by_store, by_set = (rs.evaluate(path, {"left": RUNS["left"]}, **options) for path in (store, golden.folder.parent))
    assert by_set.to_dict()["runs"]["left"]["measures"] == by_store.to_dict()["runs"]["left"]["measures"]
    assert rs.read_qrels(golden.folder, humans=False).to_dict() == rs.read_qrels(store, humans=False).to_dict()
    with pytest.raises(InputError, match="holds no run"):
        rs.read_run(golden.folder)


def test_the_same_content_makes_no_version_and_another_one_the_next(tmp_path) -> None:
    first = build(tmp_path / "set", **SMALL, date="2026-01-01")
    again = build(tmp_path / "set", **SMALL)
    assert (first.is_new, again.is_new, again.golden.version) == (True, False, 1)
    changed = build(tmp_path / "set", **{**SMALL, "labels": {"q1": {"d1": 4}}}).golden
    assert changed.manifest.previous == {"version": 1, "fingerprint": first.golden.manifest.fingerprint}
    assert GoldenSet.read(tmp_path / "set").version == 2
    assert GoldenSet.read(tmp_path / "set", version=1) == first.golden
    assert GoldenSet.read(tmp_path / "set" / "v2", version=1) == first.golden
    licensed = build(tmp_path / "set", **{**SMALL, "labels": {"q1": {"d1": 4}}}, licence="MIT").golden
    kept = build(tmp_path / "set", **SMALL).golden
    assert (licensed.version, licensed.manifest.licence, kept.manifest.licence) == (3, "MIT", "MIT")


def test_every_source_of_labels_gives_the_same(golden, tmp_path) -> None:
    store = golden.folder.parents[1] / "labels.db"
    with Store(store, read_only=True) as opened:
        export_labels(opened, tmp_path / "labels.jsonl")
    options = {"queries": golden.queries, "corpus": CORPUS}
    exported = build(tmp_path / "b", labels=tmp_path / "labels.jsonl", **options).golden
    from_set = build(tmp_path / "c", labels=golden.folder.parent, queries=golden, corpus=CORPUS).golden
    prints = {each.manifest.fingerprint for each in (golden, exported, from_set)}
    assert prints == {golden.manifest.fingerprint}


def test_qrels_are_labels_of_a_person(tmp_path) -> None:
    qrels = tmp_path / "mine.qrels"
    qrels.write_text("q1 0 d1 2\nq1 0 d2 0\nq9 0 d2 0\n", encoding="utf-8")
    options = {"queries": queries(["What is RAG?"]).to_rows() and {"q1": "What?"}, "grade_map": "0:1,2:5"}
    made = build(tmp_path / "set", labels=qrels, annotator="ada", **options)
    assert made.left_out == 1
    assert made.golden.qrels().to_dict() == {"q1": {"d1": 5, "d2": 1}}
    assert [each["annotator"] for each in made.golden.manifest.people] == ["ada"]
    assert not build(tmp_path / "set", labels=qrels, annotator="ada", **options).is_new


def test_nobody_is_made_the_annotator_of_grades_that_do_not_say_who_gave_them(tmp_path) -> None:
    qrels = tmp_path / "mine.qrels"
    qrels.write_text("q1 0 d1 2\nq1 0 d2 5\n", encoding="utf-8")
    first, second = (build(tmp_path / "set", **{**SMALL, "labels": qrels, "corpus": {"d2": b}}).golden for b in "bB")
    assert (first.manifest.people, first.manifest.labels["by_person"]) == ((), 0)
    assert second.manifest.labels["changed"] == 1
    for labels in (first.folder, first.folder / "labels.jsonl"):
        report = rs.evaluate(labels, {"run": {"q1": ["d2", "d1"]}}, depths=[1], bootstrap=None)
        assert "2 labels that do not say who gave them" in str(report)
    assert build(tmp_path / "b", **{**SMALL, "labels": first}).golden.manifest.people == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": [{"text": "no id"}]}, "row 1: no column for the query"),
        ({"queries": [{"query_id": "", "text": "x"}]}, "row 1: the query id is empty"),
        ({"queries": [{"query_id": "q1", "text": 3}]}, "no text, but 3"),
        ({"queries": [{"query_id": "q1", "weight": True}]}, "above 0, got True"),
        ({"queries": [{"query_id": "q1", "weight": 1}, {"query_id": "q2"}]}, "'q2' has no weight"),
        ({"queries": [{"query_id": "q1", "x": {1, 2}}]}, "holds a value that JSON lacks"),
        ({"queries": []}, "there are no queries"),
        ({"queries": ["q1"]}, "expected {column: value}"),
        ({"queries": 3}, "give a file"),
        ({"annotator": "ada", "labels": "store"}, "leave out annotator"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(change, message, tmp_path) -> None:
    if change.get("labels") == "store":
        with Store(tmp_path / "labels.db") as store:
            store.put_human_labels([HumanLabel("q1", "d1", "ada", 5)])
        change = {**change, "labels": tmp_path / "labels.db"}
    with pytest.raises(InputError, match=message):
        build(tmp_path / "set", **{**SMALL, **change})
    assert not (tmp_path / "set").exists()


# -- what is stored is checked -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["queries.jsonl", "passages.jsonl", "labels.jsonl"])
def test_a_file_that_was_changed_is_named(name, tmp_path) -> None:
    place = build(tmp_path / "set", **SMALL).golden.folder
    with (place / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    with pytest.raises(InputError, match=rf"{name}: the file has changed since version 1"):
        GoldenSet.read(place)
    (place / name).unlink()
    with pytest.raises(InputError, match=rf"{name}: cannot be read"):
        rs.read_qrels(place)


# -- interruptions -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_build_leaves_whole_versions(tmp_path) -> None:
    many = {f"q{i}": {f"d{j}": 1 + (i + j) % 5 for j in range(40)} for i in range(40)}
    asked = {q: f"question {q}" for q in many}
    texts = {f"d{j}": "text " * 40 for j in range(40)}
    place, random_ = tmp_path / "set", random.Random(7)
    build(place, labels=many, queries=asked, corpus=texts)
    for number in range(12):
        child = os.fork()
        if child == 0:
            changed = {**many, "q0": {**many["q0"], "d0": 1 + number % 5}}
            try:
                build(place, labels=changed, queries=asked, corpus=texts, licence=f"try {number}")
            finally:
                os._exit(0)
        time.sleep(random_.uniform(0, 0.25))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        newest = GoldenSet.read(place)
        for version in range(1, newest.version + 1):
            assert len(GoldenSet.read(place, version=version).label_rows) == 1600
    last = build(place, labels=many, queries=asked, corpus=texts, licence="at last").golden
    # What a killed process was writing stays beside the versions, under a name of its own.
    assert sorted(each.name for each in place.glob("v*")) == sorted(f"v{i}" for i in range(1, last.version + 1))


def test_two_builds_at_once_write_no_version_twice(tmp_path, monkeypatch) -> None:
    build(tmp_path / "set", **SMALL)
    from rag_selectivity.golden import building

    write, place = building.write_files, tmp_path / "set"

    def meanwhile(contents: dict[Path, Any]) -> None:
        write(contents)
        if not (place / "v2").exists():
            shutil.copytree(place / "v1", place / "v2")

    monkeypatch.setattr(building, "write_files", meanwhile)
    with pytest.raises(InputError, match="another process has made this version"):
        build(tmp_path / "set", **{**SMALL, "labels": {"q1": {"d1": 2}}})
    assert sorted(each.name for each in (tmp_path / "set").iterdir()) == ["v1", "v2"]


# -- differences ---------------------------------------------------------------------------------------


def test_a_difference_names_what_changed(tmp_path) -> None:
    asked = [{"query_id": "q1", "text": "one", "weight": 2}, {"query_id": "q2", "text": "two", "weight": 1}]
    now = [{"query_id": "q1", "text": "One?", "weight": 3}, {"query_id": "q3", "text": "three", "weight": 1}]
    old = {"q1": {"d1": 5, "d2": 1, "d4": 3}, "q2": {"d1": 2}}
    new = {"q1": {"d1": 4, "d3": 1, "d4": 3}, "q3": {"d1": 2}}
    build(tmp_path / "set", labels=old, queries=asked, corpus={"d1": "a", "d2": "b", "d4": "c"})
    build(tmp_path / "set", labels=new, queries=now, corpus={"d1": "A", "d2": "b", "d3": "d", "d4": "c"})
    found = diff(tmp_path / "set")
    assert (found.queries_added, found.queries_removed, found.queries_reworded) == (("q3",), ("q2",), ("q1",))
    assert [(each.query, each.old, each.new) for each in found.weights] == [("q1", 2.0, 3.0)]
    assert found.passages_reworded == ("d1",)
    assert [(each.query, each.passage, each.old, each.new) for each in found.grades] == [
        ("q1", "d1", 5, 4),
        ("q1", "d2", 1, None),
        ("q1", "d3", None, 1),
        ("q2", "d1", 2, None),
        ("q3", "d1", None, 2),
    ]
    assert (found.labels_added, found.labels_removed, found.corpus_changed) == (
        {"not known": 3},
        {"not known": 3},
        True,
    )
    told = found.to_text()
    assert "1 query added\n1 query removed\n1 query with another text\n1 weight changed\n1 passage with another" in told
    assert "2 pairs with a grade now\n2 pairs without a grade now\n1 grade changed" in told
    assert not found.is_empty
    same = diff(tmp_path / "set" / "v1", tmp_path / "set" / "v1")
    assert same.is_empty
    assert "Both hold the same." in str(same)
