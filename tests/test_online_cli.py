"""The commands `online …`, on the sample and on files with mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_selectivity import Monitor, Retrieval
from rag_selectivity.online import interleave, preference
from rag_selectivity.sample import write_sample
from tests.forked_cli import run_command


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sample") / "try"
    write_sample(folder)
    return folder


def of_command(*words: object) -> tuple[int, str, str]:
    done = run_command(*map(str, words))
    return done.returncode, done.stdout, done.stderr


def test_a_log_is_joined_and_decided(sample, tmp_path) -> None:
    status, _, said = of_command("online", "join", sample / "impressions.jsonl", "-o", tmp_path / "joined.jsonl")
    assert status == 0
    assert "2 of 906 credits came a second time, and count once" in said
    assert (tmp_path / "joined.jsonl").read_text() == (sample / "records.jsonl").read_text()
    status, printed, _ = of_command("online", "preference", tmp_path / "joined.jsonl", "--format", "json")
    assert status == 0
    assert json.loads(printed) == preference(sample / "records.jsonl").to_dict()
    status, printed, _ = of_command("online", "preference", tmp_path / "joined.jsonl", "--format", "csv")
    assert printed.splitlines()[0].startswith("baseline,candidate,wins")
    status, _, said = of_command("online", "preference", sample / "impressions.jsonl")
    assert status == 2
    assert "join the log first" in said


def test_runs_are_interleaved(sample, tmp_path) -> None:
    place = tmp_path / "drafted.jsonl"
    words = ["online", "interleave", "--run", f"a={sample / 'bm25.trec'}", "--run", f"b={sample / 'dense.trec'}"]
    assert of_command(*words, "--k", 5, "-o", place)[0] == 0
    rows = [json.loads(line) for line in place.read_text().splitlines()]
    assert len(rows) == 60
    assert {len(row["passages"]) for row in rows} == {5}
    status, _, said = of_command(*words[:4])
    assert status == 2
    assert "takes two runs, got 1" in said


def test_arms_are_compared(sample) -> None:
    words = ["online", "compare", sample / "arms.csv", "--metric", "cited"]
    rails = ["--guardrail", "harm=.05", "--lower", "harm", "--mean", "harm=0:1"]
    status, printed, _ = of_command(*words, *rails, "--detect", "cited=.03", "--format", "json")
    assert status == 0
    decided = json.loads(printed)
    assert (decided["verdict"], decided["guardrails"][0]["verdict"]) == ("better", "kept")
    assert decided["metrics"][0]["still_needed"] > 0
    plain, adjusted = (
        json.loads(of_command(*words, "--once", "--unit", "user", *more, "--format", "json")[1])["metrics"][0]
        for more in ([], ["--covariate", "cited=before:0:1"])
    )
    assert adjusted["high"] - adjusted["low"] < plain["high"] - plain["low"]
    assert adjusted["variance_left"] < 0.95


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--planned", "60,40"], "60.0% and 40.0% were planned"),
        (["--arms", "a,c"], "arm 'b' is neither 'a' nor 'c'"),
        (["--arms", "a"], "must be two names"),
        (["--mean", "harm=0:1"], "'harm', which is no --metric or --guardrail"),
        (["--guardrail", "harm"], "must be NAME=VALUE"),
        (["--guardrail", "harm=x"], "'x' is not a number"),
        (["--guardrail", "harm=.1"], "a rate takes 0 and 1"),
        (["--unit", "user"], "unit is for one look"),
        (["--detect", "cite=.1"], "which is no metric"),
        (["--planned", "1"], "must be two shares"),
    ],
)
def test_mistakes_of_compare(sample, more, message) -> None:
    status, _, said = of_command("online", "compare", sample / "arms.csv", "--metric", "cited", *more)
    assert (status, message in said) == (2, True), said


def test_arms_of_a_trace(tmp_path) -> None:
    monitor = Monitor({"q": {"d1": 1}}, corpus_size=10, trace=tmp_path / "trace.jsonl")
    for i in range(600):
        monitor.record(Retrieval("q", ["d1"], id=f"r{i}", arm="ab"[i % 2], seconds=0.1 + 0.05 * (i % 2)))
        monitor.outcome(f"r{i}", i % 10 < (3, 8)[i % 2])
    monitor.close()
    words = ["online", "compare", tmp_path / "trace.jsonl", "--metric", "outcome", "--format", "json"]
    status, printed, _ = of_command(*words, "--guardrail", "seconds=.2", "--mean", "seconds=0:1", "--lower", "seconds")
    decided = json.loads(printed)
    assert (status, decided["metrics"][0]["verdict"], decided["guardrails"][0]["verdict"]) == (0, "better", "kept")


def test_positions_and_past_experiments(sample, tmp_path) -> None:
    status, printed, _ = of_command("online", "positions", sample / "shuffled.jsonl")
    assert (status, "shuffled orders" in printed) == (0, True)
    _, printed, _ = of_command("online", "positions", sample / "records.jsonl")
    assert "nothing can be corrected" in " ".join(printed.split())
    weighted = of_command(
        "online", "preference", sample / "records.jsonl", "--weigh-positions", sample / "records.jsonl"
    )
    assert "Nothing was corrected for the position" in " ".join(weighted[1].split())
    status, printed, _ = of_command("online", "foretold", sample / "experiments.csv", "--format", "csv")
    assert printed.splitlines()[1].startswith("RA-nWG@10,8,6,5")
    (tmp_path / "past.csv").write_text("online,winner,BoR@10\n,b,1\n")
    status, _, said = of_command("online", "foretold", tmp_path / "past.csv")
    assert (status, "past.csv:2: lacks `online`" in said) == (2, True)


def test_control_characters_of_ids_are_shown(tmp_path) -> None:
    draft = interleave({"\x1b[2Ja": ["d1"], "b": ["d2"]}, k=2, seed="i")
    (tmp_path / "records.jsonl").write_text(json.dumps(draft.record("q", {"d2": 1})) + "\n")
    printed = of_command("online", "preference", tmp_path / "records.jsonl")[1]
    assert "\x1b" not in printed
    assert r"\x1b[2Ja" in printed
