"""`golden check`: each finding where it is due and nowhere else, and reusability against brute force."""

import csv
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.golden import Check, build, check, diff
from rag_selectivity.grading.store import HumanLabel, Store
from rag_selectivity.people import make_tasks
from tests.forked_cli import run_command
from tests.golden_world import CORPUS, QUERIES, RUNS, golden_set, graded_store, judge

pytestmark = pytest.mark.contract


def codes(found: Check) -> list[tuple[str, str]]:
    return [(finding.level, finding.code) for finding in found.findings]


def test_a_clean_set_has_no_finding(tmp_path) -> None:
    found = check(golden_set(tmp_path), corpus=CORPUS, queries=QUERIES, threshold=0.95)
    assert codes(found) == []
    assert found.passed(strict=True)
    assert found.relabel == ()


def test_ids_without_a_text(tmp_path) -> None:
    asked = {"q1": "What is RAG?", "q2": "Something else entirely"}
    rows = [{"query_id": q, "text": text if q == "q1" else None} for q, text in asked.items()]
    labels = {"q1": {"d1": 5, "d2": 1}, "q2": {"d1": 5}}
    golden = build(tmp_path / "set", labels=labels, queries=rows, corpus={"d1": "one"}).golden
    found = check(golden)
    assert [(f.code, f.items) for f in found.failing()] == [
        ("query-without-text", ("q2",)),
        ("passage-without-text", ("d2",)),
    ]
    assert not found.passed()
    # The texts of now have them.
    assert check(golden, queries=asked, corpus={"d1": "one", "d2": "two"}).passed()
    assert [f.code for f in check(golden, corpus={"d1": "one", "d2": " "}, queries=asked).failing()] == [
        "passage-without-text"
    ]


def test_near_duplicate_queries_are_grouped(tmp_path) -> None:
    asked = {"a": "How do I rerank passages?", "b": "how do I rerank  passages", "c": "What is the licence?"}
    golden = build(tmp_path / "set", labels={q: {"d1": 5} for q in asked}, queries=asked).golden
    (found,) = [f for f in check(golden).findings if f.code == "near-duplicate-queries"]
    assert [sorted(group) for group in found.items] == [["a", "b"]]
    assert found.text.startswith("1 group of queries asks nearly the same, 2 queries in all ('a', 'b'): ")
    assert all(f.code != "near-duplicate-queries" for f in check(golden, threshold=1.0).findings)


def test_queries_without_a_relevant_passage_or_a_label(tmp_path) -> None:
    asked = {"one": "aaa", "two": "bbb bbb", "three": "cccc"}
    golden = build(tmp_path / "set", labels={"one": {"d1": 4}, "two": {"d1": 3, "d2": 1}}, queries=asked).golden
    found = {f.code: f.items for f in check(golden, corpus={"d1": "x", "d2": "y"}).findings}
    assert found == {"query-without-labels": ("three",), "no-relevant-passage": ("two",)}


# -- texts that changed ------------------------------------------------------------------------------------


def test_labels_of_people_whose_text_changed_are_found(tmp_path) -> None:
    golden = golden_set(tmp_path)
    changed = {**CORPUS, "d0": "quite another text", "d3": "another one too"}
    found = check(golden, corpus=changed, queries={**QUERIES, "q1": "another question"}, threshold=0.95)
    # ada labelled (q0, d0) and (q1, d1); ben skipped (q2, d3).
    assert [tuple(e.values()) for e in found.relabel] == [("q0", "d0", "passage", "ada"), ("q1", "d1", "query", "ada")]
    judged = {
        (q, p)
        for run in RUNS.values()
        for q, passages in run.items()
        for p in passages
        if p in ("d0", "d3") or q == "q1"
    }
    texts = [f.text for f in found.findings if f.code == "text-changed"]
    assert texts[0].startswith("2 pairs had another text when labelled")
    assert texts[1].startswith(f"a judge labelled {len(judged)} pairs")
    assert ("warning", "corpus-changed") in codes(found)


def test_the_list_to_label_again_is_a_draw_and_a_new_grade_mends_the_set(tmp_path) -> None:
    golden_set(tmp_path)
    changed = {**CORPUS, "d0": "passage 0, quite another text"}
    for name, texts in (("changed", changed), ("queries", QUERIES)):
        lines = [json.dumps({"_id": id_, "text": text}) for id_, text in texts.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    command = ["golden", "check", "golden", "--corpus", "changed.jsonl", "--relabel", "again.csv"]
    done = run_command(*command, cwd=tmp_path, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "the set did not pass: text-changed" in done.stderr
    rows = list(csv.DictReader((tmp_path / "again.csv").open(encoding="utf-8")))
    assert rows == [{"query_id": "q0", "passage_id": "d0", "changed": "passage", "annotators": "ada"}]
    # The judge grades the new text, ada too, and the next version passes.
    store = tmp_path / "labels.db"
    rs.grade(QUERIES, changed, [tmp_path / f"{name}.trec" for name in RUNS], store=store, judge=judge)
    with Store(store) as opened:
        files = {"queries": tmp_path / "queries.jsonl", "corpus": tmp_path / "changed.jsonl"}
        (task,) = make_tasks(opened, f"file:{tmp_path / 'again.csv'}", annotators=["ada"], repeats=0, **files).tasks
        assert [(item.query, item.passage) for item in task.items] == [("q0", "d0")]
        assert check(build(tmp_path / "golden", labels=store, queries=QUERIES, corpus=changed).golden).relabel
        opened.put_human_labels([HumanLabel("q0", "d0", "ada", 2)])
    golden = build(tmp_path / "golden", labels=store, queries=QUERIES, corpus=changed).golden
    assert (golden.version, codes(check(golden, corpus=changed, threshold=0.95))) == (3, [])


# -- labels that do not say which texts were read -------------------------------------------------------

ASKED = {"q1": "What is RAG?"}
GRADES = {"q1": {"d1": 5, "d2": 1}}
TEXTS, EDITED = {"d1": "one", "d2": "two"}, {"d1": "one", "d2": "another text"}


def relabelled(place: Path, corpus: Any, labels: Any = GRADES) -> list[tuple[str, str]]:
    """What is to be labelled again in the next version of a set that is made of qrels."""
    golden = build(place / "set", labels=labels, queries=ASKED, corpus=corpus).golden
    return [(each["query_id"], each["passage_id"]) for each in check(golden).relabel]


def test_a_label_belongs_to_the_text_of_the_version_in_which_it_first_stands(tmp_path) -> None:
    assert relabelled(tmp_path, TEXTS) == []
    assert relabelled(tmp_path, EDITED) == [("q1", "d2")]
    assert relabelled(tmp_path, {**EDITED, "d3": "more"}) == [("q1", "d2")]
    assert relabelled(tmp_path, EDITED, {"q1": {"d1": 5, "d2": 2}}) == []


def test_a_version_without_a_corpus_knows_no_text_of_a_passage(tmp_path) -> None:
    assert relabelled(tmp_path, None) == []
    assert relabelled(tmp_path, TEXTS) == []
    assert relabelled(tmp_path, EDITED) == [("q1", "d2")]
    assert diff(tmp_path / "set").passages_reworded == ("d2",)
    first = diff(tmp_path / "set" / "v1", tmp_path / "set" / "v2")
    assert (first.labels_added, first.labels_removed) == ({}, {})


# -- runs ----------------------------------------------------------------------------------------------


def average_precision(grades: dict[str, int], listed: list[str]) -> float:
    relevant = {passage for passage, grade in grades.items() if grade >= 4}
    if not relevant:
        return 0.0
    hits = [place for place, passage in enumerate(listed, 1) if passage in relevant]
    return sum(number / place for number, place in enumerate(hits, 1)) / len(relevant)


def tau_b(one: list[float], other: list[float]) -> float:
    pairs = list(combinations(range(len(one)), 2))
    signs = [[(a[i] > a[j]) - (a[i] < a[j]) for i, j in pairs] for a in (one, other)]
    agree = sum(x * y for x, y in zip(*signs, strict=True))
    sizes = [sum(map(abs, each)) for each in signs]
    return agree / (sizes[0] * sizes[1]) ** 0.5


def brute_force(
    labels: Any, runs: Any, brought: dict[str, set[tuple[str, str]]]
) -> dict[str, tuple[float, float, float]]:
    """{run: (figure, figure without its own labels, tau)} of AP."""

    def figures(grades: Any) -> list[float]:
        return [sum(average_precision(grades[q], run[q]) for q in grades) / len(grades) for run in runs.values()]

    full, found = figures(labels), {}
    for place, name in enumerate(runs):
        own = brought[name] - set().union(*(brought[other] for other in runs if other != name))
        less = {q: {p: g for p, g in grades.items() if (q, p) not in own} for q, grades in labels.items()}
        without = figures(less)
        found[name] = (full[place], without[place], tau_b(full, without))
    return found


@pytest.mark.parametrize("with_origins", [True, False])
def test_reusability_is_that_of_brute_force(with_origins, tmp_path) -> None:
    runs = {**RUNS, "both": {q: [*RUNS["right"][q][:2], RUNS["left"][q][1]] for q in QUERIES}}
    if with_origins:
        golden = build(tmp_path / "set", labels=graded_store(tmp_path / "l.db", people=False), queries=QUERIES).golden
        brought = {name: {(q, p) for q in QUERIES for p in RUNS.get(name, {}).get(q, [])} for name in runs}
    else:
        labels = {q: {p: 1 + (7 * int(p[1:]) + i) % 5 for p in CORPUS} for i, q in enumerate(QUERIES)}
        golden = build(tmp_path / "set", labels=labels, queries=QUERIES).golden
        brought = {name: {(q, p) for q in QUERIES for p in runs[name][q][:2]} for name in runs}
    found = check(golden, runs=runs, measures=["AP"], depths=[2]).reusability
    assert found is not None
    assert found.attributed_by == ("origins" if with_origins else "ranks")
    assert found.depth == (None if with_origins else 2)
    expected = brute_force(golden.qrels().to_dict(), runs, brought)
    for left in found.runs:
        figures = left.figures["AP"], left.without["AP"], left.tau["AP"]
        assert figures == pytest.approx(expected[left.run], nan_ok=True), left.run
    assert {left.run: left.pairs > 0 for left in found.runs}["left"]
    first = found.runs[0]
    assert first.shifts["AP"] == first.without["AP"] - first.figures["AP"]


# -- the command -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("check")
    golden_set(folder)
    return folder


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--threshold", ".95"], 0),
        ([], 0),
        (["--strict"], 1),
        (["left.trec", "right.trec", "--measure", "AP"], 0),
        (["--measure", "AP"], 2),
        (["--format", "csv"], 2),
    ],
)
def test_exit_codes(words, status, place) -> None:
    done = run_command("golden", "check", "golden", *words, cwd=place, timeout=60)
    assert done.returncode == status, done.stderr


def test_check_and_diff_write_json(place) -> None:
    words = ["left.trec", "right.trec", "--format", "json", "--output", "check.json"]
    done = run_command("golden", "check", "golden", *words, cwd=place, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads((place / "check.json").read_text(encoding="utf-8"))["passed"]
    build(place / "golden", labels=place / "labels.db", queries=QUERIES, corpus=CORPUS)
    done = run_command("golden", "diff", "golden", "--format", "json", cwd=place, timeout=60)
    assert json.loads(done.stdout)["schema"] == "rag-selectivity/golden-diff/2"
    assert "6 weights changed" in run_command("golden", "diff", "golden", cwd=place, timeout=60).stdout
