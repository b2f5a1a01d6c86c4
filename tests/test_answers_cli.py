"""`rag-selectivity answers`, with a scripted model, with llama.cpp's own server, and with scores that exist."""

from __future__ import annotations

import csv
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from rag_selectivity.answers.given import answers_given
from rag_selectivity.errors import InputError
from rag_selectivity.grading.store import Store
from rag_selectivity.sample import write_sample
from tests.answer_world import ScriptedModel, world
from tests.endpoint_runs import cli
from tests.judge_server import JudgeServer

pytestmark = pytest.mark.inside


def write_world(folder: Path, **options: Any) -> None:
    """The files of a world."""
    made = world(**{"queries": 12, "junk": 6, "depth": 8, **options})
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": id_, "text": text}) + "\n" for id_, text in made.corpus.items())
    )
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": id_, "text": text}) + "\n" for id_, text in made.queries.items())
    )
    (folder / "references.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made.references))
    grades = [f"{q} 0 {p} {grade}\n" for q, of_query in made.qrels.items() for p, grade in of_query.items()]
    (folder / "grades.trec").write_text("".join(grades))
    for name, lists in made.runs.items():
        lines = [f"{q} Q0 {p} {i} {-i} {name}\n" for q, ps in lists.items() for i, p in enumerate(ps, 1)]
        (folder / f"{name}.trec").write_text("".join(lines))


FILES = [
    *("--run", "first.trec", "--corpus", "corpus.jsonl", "--queries", "queries.jsonl"),
    *("--references", "references.jsonl", "--qrels", "grades.trec", "--scale", "utility", "--store", "answers.db"),
    *("--resamples", "200"),
]


def test_the_command_asks_writes_scores_and_goes_on(tmp_path: Path) -> None:
    write_world(tmp_path)
    with JudgeServer(ScriptedModel(slope=0.1).respond) as server:
        asked = [*FILES, "--model", "scripted", "--base-url", server.url, "-k", "2,5", "--junk", "0,3,6"]
        dry = cli(tmp_path, "answers", *asked, "--dry-run", "--price-in", "1", "--price-out", "2")
        assert (dry.code, len(server.requests)) == (0, 0), dry.said
        assert "nothing was sent" in dry.out
        stopped = cli(tmp_path, "answers", *asked, "--max-calls", "30")
        assert (stopped.code, len(server.requests)) == (1, 30), stopped.said
        assert "go on with: rag-selectivity answers" in " ".join(stopped.out.split())
        done = cli(
            tmp_path, "answers", *asked, "--format", "json", "--scores", "scores.csv", "--answers", "answers.csv"
        )
        assert done.code == 0, done.said
        sent = len(server.requests)
    data = done.data
    assert data["schema"] == "rag-selectivity/answer-report/1"
    assert data["spent"]["prompts"] == sent
    assert {each["kind"] for each in data["contrasts"]} == {"lift", "share", "bits", "depth", "slope"}
    with (tmp_path / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query_id", "run", "k", "score", "model", "passages"]
    assert {(row["run"], row["k"]) for row in rows} == {("first", "2"), ("first", "5"), ("closed-book", "0")}
    mean = sum(float(row["score"]) for row in rows if row["k"] == "5") / 12
    figure = next(each for each in data["figures"] if (each["run"], each["k"], each["score"]) == ("first", 5, "choice"))
    assert mean == pytest.approx(figure["value"])
    with (tmp_path / "answers.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(data["answers"])
    # The written scores can be brought back, and give the same figures.
    again = cli(
        tmp_path, "answers", "--given", "scores.csv", "--run", "first.trec", "--resamples", "200", "--format", "json"
    )
    assert again.code == 0, again.said
    lifts = [
        {
            (each["shown"]["k"], each["value"], each["low"], each["p"])
            for each in report["contrasts"]
            if each["kind"] == "lift" and each["score"] in ("choice", "score") and each["shown"]["run"] == "first"
        }
        for report in (data, again.data)
    ]
    assert lifts[0] == lifts[1]


def test_mistakes_of_the_command(tmp_path: Path) -> None:
    write_world(tmp_path)
    for words, message in (
        (["--run", "first.trec"], "say what to ask"),
        (["--given", "scores.csv", "--model", "m"], "leave --model out"),
        (["--given", "references.jsonl", "--score-range", "5"], "--score-range '5' is not LOW:HIGH"),
        ([*FILES, "--model", "m", "--order", "best", "--base-url", "http://127.0.0.1:9/v1"], "orders are"),
    ):
        done = cli(tmp_path, "answers", *words)
        assert (done.code, message in done.err) == (2, True), done.said
        assert "Traceback" not in done.err
    assert not (tmp_path / "scores.csv").exists()


# -- a real inference server -------------------------------------------------------------------------------


def multiple_choice(folder: Path, count: int) -> list[dict[str, Any]]:
    """Questions of the packaged sample: which function of Python's standard library does it?"""
    passages = [json.loads(line)["_id"] for line in (folder / "corpus.jsonl").read_text().splitlines()]
    questions = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    drawn, rows = random.Random(7), []
    for question in questions[:count]:
        options = [question["expected"], *drawn.sample([p for p in passages if p != question["expected"]], 3)]
        drawn.shuffle(options)
        rows.append({"query_id": question["_id"], "reference": question["expected"], "choices": options})
    return rows


@pytest.mark.slow
def test_a_model_of_random_weights_has_about_no_bits(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    pytest.importorskip("gguf")
    from tests.tiny_llama import KEY, NAME, TinyLlama

    folder = tmp_path / "sample"
    write_sample(folder)
    rows = multiple_choice(folder, 20)
    (folder / "choices.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with TinyLlama(tmp_path, key=KEY) as server:
        done = cli(
            folder,
            *("answers", "--run", "bm25.trec", "--corpus", "corpus.jsonl", "--queries", "queries.jsonl"),
            *("--references", "choices.jsonl", "--qrels", "grades.trec", "--scale", "utility", "-k", "3"),
            *("--store", "answers.db", "--model", NAME, "--base-url", server.url, "--format", "json"),
            *("--no-citations", "--no-abstention"),
            env={"OPENAI_API_KEY": KEY},
            timeout=300,
        )
    assert done.code == 0, done.said
    data = done.data
    assert data["spent"]["failed"] == 0
    assert data["settings"]["served"] == [NAME]
    (bits,) = [each for each in data["contrasts"] if each["kind"] == "bits"]
    assert bits["n"] == 20
    # Whoever guesses among four choices has so many right answers of twenty with a probability below 4e-7.
    too_many = 16
    assert binom.sf(too_many - 1, 20, 1 / 4) < 4e-7
    for mean in (bits["first"], bits["second"]):
        assert round(20 * mean) < too_many
        assert 20 * mean == pytest.approx(round(20 * mean))
    if bits["first"] > 0 and bits["second"] > 0:
        assert bits["value"] == pytest.approx(math.log2(bits["first"] / bits["second"]), rel=1e-12, abs=1e-14)
        assert bits["low"] is None or bits["low"] <= bits["value"]
        assert bits["high"] is None or bits["value"] <= bits["high"]
    else:
        assert bits["value"] is None
        assert "no answer is right" in bits["reason"]
    with Store(folder / "answers.db", read_only=True) as store:
        assert store.failures() == []


# -- scores that exist -------------------------------------------------------------------------------------


def rows_of(hits: dict[tuple[str, int], int], queries: int = 40) -> list[dict[str, Any]]:
    return [
        {"query_id": f"q{i}", "run": run, "k": k, "score": float(i < hit)}
        for (run, k), hit in hits.items()
        for i in range(queries)
    ]


def test_given_scores_have_the_same_figures_as_counts() -> None:
    report = answers_given(rows_of({("bm25", 10): 30, ("random", 10): 10, ("closed-book", 0): 5, ("bm25", 100): 20}))
    assert report["bm25", 10, "score"].value == 0.75
    assert report.contrast("bits", "score", "bm25", 10).value == pytest.approx(math.log2(3))
    assert report.contrast("lift", "score", "bm25", 10).value == pytest.approx(0.625)
    assert report.contrast("depth", "score", "bm25", 100).value == pytest.approx(-0.25)


def test_a_threshold_makes_scores_right_or_wrong() -> None:
    rows = [{**row, "score": 4.5 if row["score"] else 2} for row in rows_of({("a", 5): 30, ("random", 5): 15})]
    without = answers_given(rows, ends=(1, 5))
    assert not [each for each in without.contrasts if each.kind == "bits"]
    assert any("correct_from" in note for note in without.notes)
    report = answers_given(rows, ends=(1, 5), correct_from=4)
    assert report.contrast("bits", "score ≥ 4", "a", 5).value == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "options", "match"),
    [
        ({"score": 3}, {}, "off its scale of 0 to 1"),
        ({"score": "good"}, {}, "give a number"),
        ({"run": "b", "model": "m1"}, {}, "several models"),
        ({}, {"column": "correct"}, "no column 'correct'"),
        ({}, {"correct_from": 2}, "above 0 and at most 1"),
        ({}, {"baseline": "c"}, "none of the runs a"),
        ({"passages": "x y"}, {"run": {"a": {"q0": ["x", "z"]}}}, r"row 1: the answer of query 'q0' is not to what a"),
        ({"passages": '["x"]'}, {"run": {"a": {"q0": ["x", "z"]}}}, r"1 of 2"),
    ],
)
def test_bad_scores_are_named(change: dict[str, Any], options: dict[str, Any], match: str) -> None:
    rows = [{**row, "k": 2, "model": "m0"} for row in rows_of({("a", 2): 10})]
    rows[0] |= change
    with pytest.raises(InputError, match=match):
        answers_given(rows, **options)


def test_a_score_that_comes_twice_is_refused() -> None:
    rows = rows_of({("a", 2): 10})
    with pytest.raises(InputError, match="query 'q0' of run 'a' has a score for K = 2 already"):
        answers_given([*rows, rows[0]])
