"""`rag-selectivity answers`, with a scripted model."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

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
    *("first.trec", "--corpus", "corpus.jsonl", "--queries", "queries.jsonl"),
    *("--references", "references.jsonl", "--qrels", "grades.trec", "--scale", "utility", "--store", "answers.db"),
    *("-c", "intervals.resamples=200"),
]


def test_the_command_asks_writes_scores_and_goes_on(tmp_path: Path) -> None:
    write_world(tmp_path)
    with JudgeServer(ScriptedModel(slope=0.1).respond) as server:
        asked = [*FILES, "--model", "scripted", "--base-url", server.url, "-k", "2,5"]
        dry = cli(tmp_path, "answers", *asked, "--dry-run", "-c", "judge.price_in=1", "-c", "judge.price_out=2")
        assert (dry.code, len(server.bodies)) == (0, 0), dry.said
        assert "nothing was sent" in dry.out
        stopped = cli(tmp_path, "answers", *asked, "--max-calls", "30")
        assert (stopped.code, len(server.bodies)) == (1, 30), stopped.said
        assert "go on with: rag-selectivity answers" in " ".join(stopped.out.split())
        done = cli(
            tmp_path, "answers", *asked, "--format", "json", "--scores", "scores.csv", "--answers", "answers.csv"
        )
        assert done.code == 0, done.said
        sent = len(server.bodies)
    data = done.data
    assert data["schema"] == "rag-selectivity/answer-report/1"
    assert data["spent"]["prompts"] == sent
    assert {each["kind"] for each in data["contrasts"]} == {"lift", "bits", "depth"}
    with (tmp_path / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query_id", "run", "k", "score", "model", "passages"]
    assert {(row["run"], row["k"]) for row in rows} == {("first", "2"), ("first", "5"), ("closed-book", "0")}
    mean = sum(float(row["score"]) for row in rows if row["k"] == "5") / 12
    figure = next(each for each in data["figures"] if (each["run"], each["k"], each["score"]) == ("first", 5, "choice"))
    assert mean == pytest.approx(figure["value"])
    with (tmp_path / "answers.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(data["answers"])
