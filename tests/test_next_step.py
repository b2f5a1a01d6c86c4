"""The next step can be taken as it is printed, and the first screen names only what it shows."""

from __future__ import annotations

import json
import shlex

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.cli.app import app
from rag_selectivity.people import draw_pairs

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]
RUNS = ("bm25", "dense", "reranked")


def printed(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_of_the_next_step_runs_as_it_is_printed(sample, monkeypatch) -> None:
    monkeypatch.chdir(sample)
    files = ["labels.db", "bm25.trec", "--corpus", "corpus.jsonl", "--queries", "queries.jsonl"]
    line = next(line for line in printed("evaluate", *files).splitlines() if line.startswith("Next: "))
    assert line.startswith("Next: Let a person grade 200 pairs: rag-selectivity labels draw labels.db bm25.trec ")
    command = shlex.split(line[line.index("rag-selectivity ") :])
    printed(*command[1:])
    assert "<html" in (sample / command[-1]).read_text()


def test_what_evaluate_was_not_given_is_in_capitals(sample) -> None:
    given = [str(sample / "labels.db"), f"mine={sample / 'bm25.trec'}", "--corpus-size", "1000"]
    line = next(line for line in printed("evaluate", *given).splitlines() if line.startswith("Next: "))
    drawn = f"labels draw {given[0]} {given[1]} --queries QUERIES --corpus CORPUS --draw calibrate:200"
    assert f"rag-selectivity {drawn} --output task.html" in line


def test_in_python_the_next_step_is_a_call(sample) -> None:
    report = rs.evaluate(sample / "labels.db", {"bm25": sample / "bm25.trec"}, corpus_size=1000)
    call = 'rag_selectivity.people.draw_pairs("calibrate:200", labels, runs)'
    assert f"Next: Let a person grade 200 pairs: {call}\n" in str(report)
    labels, runs = rs.read_qrels(sample / "labels.db"), {"bm25": rs.read_run(sample / "bm25.trec")}
    assert len(draw_pairs("calibrate:200", labels, runs)) == 200


def test_the_first_screen_names_no_figure_that_it_does_not_show(sample) -> None:
    runs = {name: sample / f"{name}.trec" for name in RUNS}
    report = rs.evaluate(sample / "labels.db", runs, corpus_size=1000, pool=sample / "candidates.trec")
    assert "shuffled at random, PROC@" in decide(report)["trust"].more
    assert "PROC" not in str(report)


@pytest.mark.parametrize("known", [["--agreement", ".8"], ["--known", "scripted.qrels"]])
def test_a_plan_for_people_says_how_narrow_the_intervals_become(known, sample, monkeypatch) -> None:
    monkeypatch.chdir(sample)
    words = ["plan", "grades.trec", "bm25.trec", "dense.trec", "--scale", "utility", "--human", "100", *known]
    words += ["--corpus-size", "1000", "--depths", "5"]
    found = json.loads(printed(*words, "--format", "json"))
    rows = found["rows"]
    assert {row["measure"] for row in rows} == {"Success@5", "BoR@5", "RA-nWG@5", "Harm@5"}
    assert {row["labels"] for row in rows} == {100, 200, 400, 800}
    of_harm = [row for row in rows if row["measure"] == "Harm@5"]
    widths = [row["half_width"] for row in of_harm]
    assert widths == sorted(widths, reverse=True)
    # The queries add to the uncertainty of the labels.
    assert all(0 < row["half_width"] < row["with_queries"] < 1 for row in of_harm)
    halved = next((row["labels"] for row in of_harm if row["half_width"] <= widths[0] / 2), None)
    assert found["halved_by"]["Harm@5"] == halved
    text = printed(*words)
    assert f"Harm@5: {f'{halved} labels halve it' if halved else '800 (the most tried) do not halve it'}" in text


def test_a_plan_for_people_needs_what_it_simulates_with(sample, monkeypatch) -> None:
    monkeypatch.chdir(sample)
    for words, problem in (
        (["grades.trec", "--human", "100", "--agreement", ".8"], "labels, then the runs"),
        (["grades.trec", "bm25.trec", "--human", "100"], "give either labels by people so far"),
        (["grades.trec", "bm25.trec", "--human", "0", "--agreement", ".8"], "whole number ≥ 1"),
    ):
        done = CliRunner().invoke(app, ["plan", "--scale", "utility", *words])
        assert isinstance(done.exception, rs.InputError)
        assert problem in str(done.exception)
