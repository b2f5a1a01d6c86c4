"""Gates: what they read, when they fail, and the exit status of the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import rag_selectivity as rs
from rag_selectivity.gates import StoredReport, failures, parse_fail_if, parse_max_drop

QRELS = {f"q{i}": {"d": 5, "j": 1} for i in range(40)}
GOOD = {q: ["d", "x"] if i < 30 else ["j", "x"] for i, q in enumerate(QRELS)}
WORSE = {q: ["d", "x"] if i < 20 else ["j", "x"] for i, q in enumerate(QRELS)}


def report(run=GOOD, name="run") -> rs.Report:
    return rs.evaluate(
        QRELS, {name: run}, corpus_size=100, scale="utility", measures=["Success", "BoR", "RA-nWG", "Harm"], depths=[1]
    )


@pytest.mark.parametrize(
    ("condition", "line"),
    [
        ("BoR@1 < 4.5", None),
        ("BoR@1 < 7", "run: BoR@1 = 6.229 < 7"),
        ("low(BoR@1)<6.1", "run: low(BoR@1) = 5.95 < 6.1"),
        ("high(Harm@1) >= .3", "run: high(Harm@1) = 0.4017 >= 0.3"),
        ("Harm@1 > 0.25", None),
        ("Harm@1 >= 0.25", "run: Harm@1 = 0.25 >= 0.25"),
        ("value(BoR@1) < 0", None),
    ],
)
def test_conditions(condition, line) -> None:
    found = failures(report(), [parse_fail_if(condition)])
    if line is None:
        assert found == []
    else:
        ((figure, expected),) = [(found[0].split(" = ")[0], line.split(" = ")[0])]
        assert figure == expected
        assert len(found) == 1


def test_what_is_undefined_fails_and_minus_infinity_is_low() -> None:
    nothing = report({q: ["j"] for q in QRELS})
    assert failures(nothing, [parse_fail_if("BoR@1 < -100")]) == ["run: BoR@1 = -inf < -100"]
    unlabelled = rs.evaluate({"q": {"d": 5}}, {"r": {"q": ["d"]}}, scale="utility", measures=["Harm"], depths=[1])
    assert failures(unlabelled, [parse_fail_if("Harm@1 > .5")]) == ["r: Harm@1 is undefined"]


def test_a_drop_is_a_change_for_the_worse(tmp_path) -> None:
    report().save(tmp_path / "before.json")
    stored = StoredReport.read(tmp_path / "before.json")
    assert failures(report(), [], [parse_max_drop("RA-nWG@1:0")], stored) == []
    after = report(WORSE, name="renamed")
    assert failures(after, [], [parse_max_drop("RA-nWG@1:0.02")], stored) == [
        "renamed: RA-nWG@1 went from 0.75 to 0.5, worse by more than 0.02"
    ]
    assert failures(after, [], [parse_max_drop("RA-nWG@1:0.3")], stored) == []
    assert len(failures(after, [], [parse_max_drop("Harm@1:0.02")], stored)) == 1
    report(WORSE).save(tmp_path / "worse.json")
    better = StoredReport.read(tmp_path / "worse.json")
    assert failures(report(), [], [parse_max_drop("Harm@1:0"), parse_max_drop("BoR@1:0")], better) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: parse_fail_if("BoR@10 = 4"), "is not a condition such as"),
        (lambda: parse_fail_if("BoR < 4"), "name the depth, as in BoR@10"),
        (lambda: parse_fail_if("Bor@10 < four"), "'four' is not a number"),
        (lambda: parse_fail_if("Bro@10 < 4"), "did you mean"),
        (lambda: parse_max_drop("RA-nWG@10"), "is not MEASURE@K:AMOUNT"),
        (lambda: parse_max_drop("lambda@10:1"), "cannot get worse"),
        (lambda: failures(report(), [], [parse_max_drop("BoR@1:0")]), "needs --against FILE"),
    ],
)
def test_mistakes_are_named(make, message) -> None:
    with pytest.raises(rs.InputError, match=message):
        make()


def test_stored_reports_that_do_not_fit_are_named(tmp_path) -> None:
    (tmp_path / "other.json").write_text('{"schema": "something"}')
    (tmp_path / "broken.json").write_text("{")
    for name, message in (("other", "not a report"), ("broken", "not JSON"), ("absent", "cannot be read")):
        with pytest.raises(rs.InputError, match=message):
            StoredReport.read(tmp_path / f"{name}.json")
    report().save(tmp_path / "r.json")
    stored = StoredReport.read(tmp_path / "r.json")
    with pytest.raises(rs.InputError, match=r"has no BoR@5 of 'run'"):
        stored.value("run", rs.parse_measure("BoR@5"), 1)
    with pytest.raises(rs.InputError, match="has no run 'other'"):
        stored.value("other", rs.parse_measure("BoR@1"), 2)


def command(folder, *arguments) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rag_selectivity", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def test_exit_status_of_the_commands(tmp_path) -> None:
    (tmp_path / "qrels.trec").write_text(
        "".join(f"{q} 0 {p} {g}\n" for q, row in QRELS.items() for p, g in row.items())
    )
    for name, run in (("good", GOOD), ("worse", WORSE)):
        lines = [f"{q} Q0 {p} {i} {9 - i} t\n" for q, row in run.items() for i, p in enumerate(row)]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    base = ["--qrels", "qrels.trec", "--scale", "utility", "--corpus-size", "100", "--depths", "1"]
    evaluate = ["evaluate", *base, "--run", "run=good.trec"]
    passed = command(tmp_path, *evaluate, "--fail-if", "BoR@1 < 5", "-o", "before.json")
    assert (passed.returncode, passed.stderr) == (0, "")
    # What is usual is reported beside what the gate rests on.
    stored = json.loads((tmp_path / "before.json").read_text())["runs"]["run"]["measures"]
    assert {"Success@1", "BoR@1", "lambda@1"} <= set(stored)
    failed = command(tmp_path, *evaluate, "--fail-if", "low(RA-nWG@1) < .9", "--format", "json")
    assert failed.returncode == 1
    assert failed.stderr.startswith("gate failed: run: low(RA-nWG@1) = 0.")
    assert json.loads(failed.stdout)["runs"]
    dropped = command(
        tmp_path, "evaluate", *base, "--run", "worse.trec", "--against", "before.json", "--max-drop", "BoR@1:0.1"
    )
    assert dropped.returncode == 1
    assert "BoR@1 went from 6.229 to 5.644, worse by more than 0.1" in dropped.stderr
    compare = ["compare", *base, "--run", "good.trec", "--run", "worse.trec", "--baseline", "good"]
    assert command(tmp_path, *compare).returncode == 0
    gated = command(tmp_path, *compare, "--fail-if", "BoR@1 < 6", "--format", "csv")
    assert gated.returncode == 1
    assert gated.stderr == "gate failed: worse: BoR@1 = 5.644 < 6\n"
    assert gated.stdout.startswith("run,baseline,measure,value,baseline_value,difference,low,high,p,p_adjusted")
    mistaken = command(tmp_path, *evaluate, "--fail-if", "BoR@1")
    assert mistaken.returncode == 2
