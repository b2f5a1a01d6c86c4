"""`rag-selectivity answers`, with a scripted model, with llama.cpp's own server, and with scores that exist."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_selectivity.answers.given import answers_given
from rag_selectivity.errors import InputError
from tests.answer_world import ScriptedModel, world
from tests.endpoint_runs import cli
from tests.judge_server import JudgeServer
from tests.wall.worlds import trec

pytestmark = pytest.mark.contract


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
    for name, rows in {"grades": made.qrels, **made.runs}.items():
        trec(folder / f"{name}.trec", rows)


FILES = [
    *("first.trec", "--corpus", "corpus.jsonl", "--queries", "queries.jsonl"),
    *("--references", "references.jsonl", "--qrels", "grades.trec", "--scale", "utility", "--store", "answers.db"),
    *("-c", "intervals.resamples=200"),
]


def test_the_command_asks_writes_scores_and_goes_on(tmp_path: Path) -> None:
    write_world(tmp_path)
    with JudgeServer(ScriptedModel(slope=0.1).respond) as server:
        asked = [*FILES, "--model", "scripted", "--base-url", server.url, "-k", "2,5", "-c", "judge.junk=0,3,6"]
        dry = cli(tmp_path, "answers", *asked, "--dry-run", "-c", "judge.price_in=1", "-c", "judge.price_out=2")
        assert (dry.code, len(server.bodies)) == (0, 0), dry.said
        assert "nothing was sent" in dry.out
        assert not (tmp_path / "answers.db").exists()
        # Why it stopped is told where the result is written, too.
        for calls, written in ((30, []), (31, ["-o", "answers.json"])):
            stopped = cli(tmp_path, "answers", *asked, "--max-calls", f"{1 if written else 30}", *written)
            assert (stopped.code, len(server.bodies)) == (1, calls), stopped.said
            assert "go on with: rag-selectivity answers" in " ".join(stopped.said.split())
        tables = ("--scores", "scores.csv", "--answers", "answers.csv")
        done = cli(tmp_path, "answers", *asked, "--format", "json", *tables)
        assert done.code == 0, done.said
        sent = len(server.bodies)
    data = done.data
    assert data["schema"] == "rag-selectivity/answer-report/1"
    assert data["spent"]["prompts"] == sent
    assert {each["kind"] for each in data["contrasts"]} == {"lift", "bits", "depth", "slope"}
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
        tmp_path, "answers", "first.trec", "--given", "scores.csv", "-c", "intervals.resamples=200", "--format", "json"
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


def test_what_lacks_and_questions_in_the_place_of_answers_are_named(tmp_path: Path) -> None:
    write_world(tmp_path)
    asked = ["first.trec", "--corpus", "corpus.jsonl", "--queries", "queries.jsonl", "--model", "m", "--dry-run"]
    lacking = cli(tmp_path, "answers", *asked).err
    assert lacking.startswith("error: give --references and --store too"), lacking
    swapped = cli(tmp_path, "answers", *asked, "--store", "a.db", "--references", "queries.jsonl")
    assert (swapped.code, "references: every right answer is the question itself" in swapped.err) == (2, True)
    (tmp_path / "scores.csv").write_text("query_id,run,k,score\nq0,other,2,1\n")
    unused = cli(tmp_path, "answers", "first.trec", "--given", "scores.csv")
    assert "name no passages" in unused.out, unused.said


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
    assert "@" not in str(answers_given([{"query_id": f"q{i}", "run": "a", "score": i % 2} for i in range(9)]))
    report = answers_given(rows, ends=(1, 5), correct_from=4)
    assert report.contrast("bits", "score ≥ 4", "a", 5).value == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "options", "match"),
    [
        ({"score": 3}, {}, "off its scale of 0 to 1"),
        ({"score": "good"}, {}, "give a number"),
        ({"run": "b", "model": "m1"}, {}, "several models"),
        ({}, {"column": "correct"}, "no column for the score, .* needs one of correct"),
        ({}, {"correct_from": 2}, "above 0 and at most 1"),
        ({}, {"baseline": "c"}, "none of the runs a"),
        ({"passages": "x y"}, {"run": {"a": {"q0": ["x", "z"]}}}, r"row 1: the answer of query 'q0' is not to what a"),
        ({"passages": '["x"]'}, {"run": {"a": {"q0": ["x", "z"]}}}, r"1 of 2"),
        ({"passages": np.array(["x", "y"])}, {"run": {"a": {"q0": ["x", "z"]}}}, "it was shown 'y', which is not in"),
    ],
)
def test_bad_scores_are_named(change: dict[str, Any], options: dict[str, Any], match: str) -> None:
    rows = [{**row, "k": 2, "model": "m0"} for row in rows_of({("a", 2): 10})]
    rows[0] |= change
    with pytest.raises(InputError, match=match):
        answers_given(rows, **options)
