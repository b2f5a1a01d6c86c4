"""The next step can be taken as it is printed, and the first screen names only what it shows."""

import json
import re
import shlex
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.cli.app import app
from rag_selectivity.grading.judge import JudgeFailure

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


@pytest.mark.parametrize(("graded", "k"), [(5, 3), (2, 4)])
def test_a_proposed_grading_is_as_deep_as_that_of_the_labels_and_goes_on_in_their_store(graded, k, sample, monkeypatch):
    monkeypatch.chdir(sample)

    async def judge(messages, schema):
        return {"reason": "words", "grade": 1 + len(messages[-1]["content"]) % 5}

    labels = f"{graded}.db"
    rs.grade("queries.jsonl", "corpus.jsonl", "bm25.trec", store=labels, judge=judge, pool_depth=graded, progress=False)
    alone = printed("evaluate", labels, "bm25.trec", "--k", str(k), "--corpus-size", "1000", "--format", "json")
    acts = [re.match(r"Have ([\d,]+) .*?: (.*)", act) for act in json.loads(alone)["trust"]["acts"]]
    for act in filter(None, acts):
        more = json.loads(printed(*shlex.split(act[2])[1:], "--dry-run", "--format", "json"))["pairs"] - 60 * graded
        assert more == int(act[1].replace(",", ""))
    both = printed("evaluate", labels, "bm25.trec", "dense.trec", "--k", str(k))
    assert f"--store {labels} --model MODEL --pool-depth {max(graded, k)}\n" in both
    assert len(acts) == 3


def test_texts_that_lie_beside_the_runs_are_named_and_others_are_in_capitals(sample) -> None:
    given = [str(sample / "labels.db"), f"mine={sample / 'bm25.trec'}", "--corpus-size", "1000"]
    line = next(line for line in printed("evaluate", *given).splitlines() if line.startswith("Next: "))
    texts = f"--queries {sample / 'queries.jsonl'} --corpus {sample / 'corpus.jsonl'}"
    drawn = f"labels draw {given[0]} {given[1]} {texts} --draw calibrate:200"
    assert f"rag-selectivity {drawn} --output task.html" in line
    (sample / "queries.jsonl").rename(sample / "asked.jsonl")
    text = printed("evaluate", *given)
    (sample / "asked.jsonl").rename(sample / "queries.jsonl")
    assert f"--queries QUERIES --corpus {sample / 'corpus.jsonl'}" in text


def test_in_python_the_next_step_is_that_command_with_the_paths_given(sample, monkeypatch) -> None:
    monkeypatch.chdir(sample)
    report = rs.evaluate("labels.db", {"bm25": "bm25.trec", "mine": rs.read_run("dense.trec")}, corpus_size=1000)
    given = "labels draw labels.db bm25=bm25.trec mine=RUN --queries QUERIES --corpus CORPUS --draw calibrate:200"
    assert f"(how-to: annotation), then rag-selectivity {given} --output task.html" in " ".join(report.trust.acts)
    compared = rs.compare("labels.db", {name: rs.read_run(f"{name}.trec") for name in ("bm25", "dense")}).report
    assert " bm25=RUN dense=RUN --queries " in " ".join(compared.trust.acts)
    files = {"mine=RUN": "mine=dense.trec", "QUERIES": "queries.jsonl", "CORPUS": "corpus.jsonl"}
    printed(*[files.get(word, word) for word in given.split()], "--output", "page.html")
    assert "<html" in (sample / "page.html").read_text()


def test_a_grading_that_stopped_is_finished_first(tmp_path) -> None:
    async def judge(messages, schema):
        return {"reason": "words", "grade": 5 if "text 0" in messages[-1]["content"] else 1}

    pool = {"q01": [f"p{n}" for n in range(6)]}
    texts = {"q01": "who?"}, {f"p{n}": f"text {n}" for n in range(9)}
    budget = rs.Budget(max_calls=4)
    stopped = rs.grade(*texts, pool, store=tmp_path / "l.db", judge=judge, budget=budget, progress=False)
    assert stopped.left == 2

    async def slow(messages, schema):
        raise JudgeFailure("slow", "timeout")

    slow.__name__ = "judge"
    once = rs.Limits(attempts=1)
    assert rs.grade(*texts, pool, store=tmp_path / "l.db", judge=slow, limits=once, progress=False).failed == 2
    step = decide(rs.evaluate(tmp_path / "l.db", {"mine": pool}, bootstrap=None), k=5)["next"].text
    assert step.startswith(f"Finish the grading: no grade yet for 2 pairs in {tmp_path / 'l.db'}; ")
    rs.grade(*texts, pool, store=tmp_path / "l.db", judge=judge, progress=False)
    lists = pool, {"q01": [f"p{n}" for n in range(9)]}
    whole, longer = (rs.evaluate(tmp_path / "l.db", {"mine": run}, bootstrap=None) for run in lists)
    assert "Finish" not in str(whole)
    watched = replace(longer, runs={"mine": replace(longer.run(), input={})})
    # Nothing is left to grade below the pool, or three passages are; of live retrievals it is not known how many.
    acts = [str(each.trust.acts) for each in (whole, longer, watched)]
    assert [re.findall(r"Have (\d+) pass\w+ below", each) for each in acts] == [[], ["3"], ["10"]]


def test_what_a_judge_alone_says_is_called_so_and_a_file_still_shows_the_answers(sample, tmp_path) -> None:
    runs = [str(sample / f"{name}.trec") for name in RUNS]
    words = ["evaluate", str(sample / "labels.db"), *runs, "-o"]
    done = CliRunner().invoke(app, [*words, str(tmp_path / "a.json")])
    assert [line.split(":")[0] for line in done.stderr.splitlines()[-6:-1]] == ["System", "K", "Loss", "Next", "Trust"]
    assert "; all by this judge's grades." in done.stderr
    quiet = CliRunner().invoke(app, [*words, str(tmp_path / "a.md"), "--quiet"])
    assert "System" not in quiet.stderr


def test_the_first_screen_names_no_figure_that_it_does_not_show(sample) -> None:
    runs = {name: sample / f"{name}.trec" for name in RUNS}
    report = rs.evaluate(sample / "labels.db", runs, corpus_size=1000, pool=sample / "candidates.trec")
    assert "PROC" not in str(report)


@pytest.mark.parametrize("known", [["--agreement", ".8"], ["--known", "scripted.qrels"]])
def test_a_plan_for_people_says_how_narrow_the_intervals_become(known, sample, monkeypatch) -> None:
    monkeypatch.chdir(sample)
    words = ["plan", "grades.trec", "bm25.trec", "dense.trec", "--scale", "utility", "--human", "100", *known]
    words += ["--corpus-size", "1000", "--depths", "5"]
    found = json.loads(printed(*words, "--format", "json"))
    rows = found["rows"]
    for measure in ("Success@5", "BoR@5", "RA-nWG@5", "Harm@5"):
        widths = [row["half_width"] for row in rows if row["measure"] == measure]
        assert widths == sorted(widths, reverse=True)
    assert {row["labels"] for row in rows} == {100, 200, 400, 800}
    of_harm = [row for row in rows if row["measure"] == "Harm@5"]
    # The queries add to the uncertainty of the labels.
    assert all(0 < row["half_width"] < row["with_queries"] < 1 for row in of_harm)
    halved = next((row["labels"] for row in of_harm if row["half_width"] <= widths[0] / 2), None)
    assert found["halved_by"]["Harm@5"] == halved
    text = printed(*words)
    assert "means of six simulations and of bm25 and dense" in " ".join(text.split())
    assert f"Harm@5: {f'{halved} labels halve it' if halved else '800 (the most tried) do not halve it'}" in text


def test_a_plan_for_people_needs_what_it_simulates_with(sample, monkeypatch) -> None:
    monkeypatch.chdir(sample)
    for words, problem in (
        (["grades.trec", "--human", "100", "--agreement", ".8"], "labels, then the runs"),
        (["grades.trec", "bm25.trec", "--human", "100"], "give people's labels so far"),
        (["grades.trec", "bm25.trec", "--human", "0", "--agreement", ".8"], "whole number ≥ 1"),
    ):
        done = CliRunner().invoke(app, ["plan", "--scale", "utility", *words])
        assert isinstance(done.exception, rs.InputError)
        assert problem in str(done.exception)


def test_grades_of_several_judges_are_called_theirs(tmp_path) -> None:
    pool = {f"q{n}": [f"good{n}", f"bad{n}"] for n in range(30)}
    runs = {"one": pool, "other": {query: ids[::-1] for query, ids in pool.items()}}
    texts = {query: query for query in pool}, {passage: passage for ids in pool.values() for passage in ids}

    async def judge(messages, schema):
        return {"reason": "words", "grade": 5 if "good" in messages[-1]["content"] else 1}

    for judge.__name__ in ("m", "n"):
        rs.grade(*texts, pool, store=tmp_path / "l.db", judge=judge, progress=False)
    assert "all by these judges' grades." in decide(rs.evaluate(tmp_path / "l.db", runs, depths=[1]))["system"].text
