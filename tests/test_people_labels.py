"""Labels by people from files and stores: what is taken, what is refused, and what the report says of both."""

import math

import pytest

import rag_selectivity as rs
from tests.forked_cli import run_command
from tests.test_calibrated_figures import evaluated, world
from tests.wall.worlds import trec

pytestmark = pytest.mark.contract


# -- whose labels they are --------------------------------------------------------------------------------------


def test_a_file_of_a_judges_labels_is_not_people(tmp_path) -> None:
    async def judge(messages, schema):
        return {"reason": "as it is", "grade": 4}

    store = tmp_path / "labels.db"
    rs.grade({"q0": "Which?"}, {"d0": "A text."}, {"q0": ["d0"]}, store=store, judge=judge, progress=False)
    assert run_command("labels", "export", store, tmp_path / "judge.jsonl").returncode == 0
    with pytest.raises(rs.InputError, match=r"judge.jsonl: these are labels by the judge judge: give labels by people"):
        rs.evaluate(store, {"mine": {"q0": ["d0"]}}, human=tmp_path / "judge.jsonl", depths=[1])


def test_people_who_contradict_each_other_are_named(tmp_path) -> None:
    _, judge, runs = world()
    alike = {"q0": {"d0": 3, "d1": 2}}
    for name, grades in (("ada", {"q0": {"d0": 1, "d1": 2}}), ("ben", {"q0": {"d0": 5, "d1": 2}}), ("cy", alike)):
        path = trec(tmp_path / f"{name}.qrels", grades)
        assert run_command("labels", "import", tmp_path / "people.db", path, "--annotator", name).returncode == 0
    notes = evaluated(judge, runs, human=tmp_path / "people.db").runs["one"].notes
    assert [note for note in notes if "different grades" in note] == [
        "people gave different grades to 1 pair, and the median counts (of two grades, the lower); the largest "
        "difference: query 'q0', passage 'd0' has the grades 1, 3 and 5"
    ]
    assert rs.read_qrels(tmp_path / "people.db")["q0"]["d0"] == 3
    for name, step in (("ada", 1), ("ben", 3)):
        path = trec(tmp_path / f"{name}.qrels", {q: {"d3": 1 + step * i % 5} for i, q in enumerate(judge)})
        assert run_command("labels", "import", tmp_path / "people.db", path, "--annotator", name).returncode == 0
    assert "; their quadratic kappa is " in str(evaluated(judge, runs, human=tmp_path / "people.db").runs["one"].notes)


# -- what the report says ---------------------------------------------------------------------------------------


def test_labels_that_calibrate_nothing_conclude_nothing() -> None:
    human, judge, runs = world(judge_error=0.3)
    report = evaluated(judge, runs, human={"q0": human["q0"]})
    assert math.isnan(report["one", "RA-nWG@10"].value)
    text = report.trust.text
    assert "too few" in text
    assert "to calibrate a figure" in text
    assert "are calibrated" not in text
    assert "hold" not in text
    assert "labels draw STORE one=RUN two=RUN --queries QUERIES --corpus CORPUS" in " ".join(report.trust.acts)
