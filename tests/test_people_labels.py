"""Labels by people from files and stores: what is taken, what is refused, and what the report says of both."""

from __future__ import annotations

import math

import pytest

import rag_selectivity as rs
from rag_selectivity.calibrated.people import calibration_ground
from rag_selectivity.grading.store import Store, label_rows
from tests.forked_cli import run_command
from tests.test_completion import drawn, evaluated, world
from tests.test_controls import judged_by
from tests.test_controls import report as controlled

pytestmark = pytest.mark.inside


def write_qrels(path, labels):
    lines = (f"{query} 0 {passage} {grade}\n" for query, row in labels.items() for passage, grade in row.items())
    path.write_text("".join(lines))
    return path


def write_run(path, lists):
    rows = ((query, rank, passage) for query, ids in lists.items() for rank, passage in enumerate(ids, 1))
    path.write_text("".join(f"{query} Q0 {passage} {rank} {-rank} x\n" for query, rank, passage in rows))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A judge's labels, people's labels of some, and two runs, all as TREC files."""
    folder = tmp_path_factory.mktemp("files")
    human, judge, runs = world(judge_error=0.3)
    write_qrels(folder / "judge.qrels", judge)
    write_qrels(folder / "people.qrels", drawn(human, judge, runs, 200))
    for name, lists in runs.items():
        write_run(folder / f"{name}.trec", lists)
    return folder


# -- the judge's labels are in a file ---------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["evaluate", "compare", "sweep"])
def test_a_judges_labels_may_be_in_any_file(files, command) -> None:
    arguments = ["--qrels", files / "judge.qrels", "--human", files / "people.qrels", "--run", files / "one.trec"]
    arguments += ["--run", files / "two.trec", "--scale", "utility", "--corpus-size", "1000", "--resamples", "200"]
    done = run_command(command, *arguments, *(["--depths", "10"] if command != "sweep" else []))
    assert done.returncode == 0, done.stderr
    assert "200 labels of people" in " ".join(done.stdout.split())


def test_agreement_reads_both_from_files(files) -> None:
    done = run_command("agree", "--human", files / "people.qrels", "--labels", files / "judge.qrels")
    assert done.returncode == 0, done.stderr


def test_a_plan_chooses_a_judge_of_a_store(files, tmp_path) -> None:
    questions, texts = {"q0": "Which?", "q1": "Who?"}, {f"d{i}": f"Passage number {i}." for i in range(10)}
    pool = {query: list(texts) for query in questions}
    for model in ("small", "large"):

        async def judge(messages, schema):
            return {"reason": "as it is", "grade": 1 + len(messages[1]["content"]) % 5}

        judge.__name__ = model
        rs.grade(questions, texts, pool, store=tmp_path / "two.db", judge=judge, progress=False)
    run = write_run(tmp_path / "run.trec", pool)
    arguments = ["plan", "--corpus-size", "100", "--human", "10", "--qrels", tmp_path / "two.db", "--run", run]
    arguments += ["--agreement", ".8", "--depths", "3"]
    done = run_command(*arguments, "--judge", "small")
    assert done.returncode == 0, done.stderr


# -- whose labels they are --------------------------------------------------------------------------------------


def test_a_file_of_a_judges_labels_is_not_people(tmp_path) -> None:
    async def judge(messages, schema):
        return {"reason": "as it is", "grade": 4}

    store = tmp_path / "labels.db"
    rs.grade({"q0": "Which?"}, {"d0": "A text."}, {"q0": ["d0"]}, store=store, judge=judge, progress=False)
    assert run_command("store", "export", store, tmp_path / "judge.jsonl").returncode == 0
    with pytest.raises(rs.InputError, match=r"judge.jsonl: these are labels by the judge judge: give labels by people"):
        rs.evaluate(store, {"mine": {"q0": ["d0"]}}, human=tmp_path / "judge.jsonl", depths=[1])


def test_labels_that_equal_the_judges_are_named() -> None:
    human, judge, runs = world(judge_error=0.3)
    places = [(query, passage) for query, row in drawn(human, judge, runs, 100).items() for passage in row]
    copied: dict[str, dict[str, int]] = {}
    for query, passage in places:
        copied.setdefault(query, {})[passage] = judge[query][passage]
    labels = rs.Qrels.from_dict(judge).on_scale("utility")
    assert any(
        "all 100 labels by people equal the judge's grades" in each for each in calibration_ground(labels, copied)[1]
    )
    query, passage = places[0]
    copied[query][passage] = 1 + judge[query][passage] % 5
    _, notes = calibration_ground(labels, copied)
    assert not any("equal the judge's" in note for note in notes)


def test_people_who_contradict_each_other_are_named(tmp_path) -> None:
    _, judge, _ = world(queries=3)
    alike = {"q0": {"d0": 3, "d1": 2}}
    for name, grades in (("ada", {"q0": {"d0": 1, "d1": 2}}), ("ben", {"q0": {"d0": 5, "d1": 2}}), ("cy", alike)):
        path = write_qrels(tmp_path / f"{name}.qrels", grades)
        assert run_command("store", "import", tmp_path / "people.db", path, "--annotator", name).returncode == 0
    labels = rs.Qrels.from_dict(judge).on_scale("utility")
    _, notes = calibration_ground(labels, tmp_path / "people.db")
    assert [note for note in notes if "different grades" in note] == [
        "people gave different grades to 1 pair, and the median counts (of two grades, the lower); the largest "
        "difference: query 'q0', passage 'd0' has the grades 1, 3 and 5"
    ]
    with Store(tmp_path / "people.db", read_only=True) as store:
        assert ("q0", "d0", 3) in list(label_rows(store, judges=()))


# -- what the report says ---------------------------------------------------------------------------------------


def test_labels_that_calibrate_nothing_conclude_nothing() -> None:
    human, judge, runs = world(judge_error=0.3)
    report = evaluated(judge, runs, human={"q0": human["q0"]})
    assert math.isnan(report["one", "RA-nWG@10"].value)
    text = report.trust.text
    assert "too few" in text
    assert "Nothing is concluded" in text
    assert "are calibrated" not in text
    assert "hold" not in text
    assert "annotate --draw calibrate:200" in text


def test_without_a_relevant_control_the_paragraph_says_what_is_shown() -> None:
    report = controlled(judged_by(0.0, number=10))
    figure = report["BoR@10"]
    assert math.isnan(figure.value)
    assert figure.shown > 1
    assert f"at least {figure.shown:.3f} bits are shown" in report.trust.text
    # So few controls show nothing, and no text says that they show something.
    labels, runs, controls = judged_by(0.0, number=1)
    some = list(labels)[:12]
    few = controlled(({q: labels[q] for q in some}, runs, {q: controls[q] for q in some}))
    assert few["BoR@10"].shown < 0
    assert "no bits are shown" in few.trust.text
    assert "Nothing is shown about the retriever" in few.trust.text
    text = few.details()
    assert "(nothing is shown)" in text
    assert "(shown)" not in text


def test_a_control_in_the_top_is_not_among_those_that_are_none_relevant() -> None:
    labels, runs, controls = judged_by(0.0, number=10)
    query = next(iter(labels))
    in_list = runs["own"][query][4]
    del labels[query][in_list]
    controls[query][in_list] = 1
    text = controlled((labels, runs, controls)).details()
    assert "none of 1,200 controls is relevant" in text
    assert "1 control is in the top 10 of the query's list" in " ".join(text.split())


def test_controls_beside_labels_by_people_are_said_to_be_unused() -> None:
    human, judge, runs = world(judge_error=0.3)
    controls = {query: {"elsewhere": 1} for query in judge}
    report = evaluated(judge, runs, human=drawn(human, judge, runs, 200), controls=controls)
    assert "40 random controls are not used, since only the judge graded them" in report.trust.text


def test_a_caveat_of_both_runs_stands_once_in_a_comparison() -> None:
    lists = {f"q{i}": [f"d{i}-{rank}" for rank in range(10)] for i in range(40)}
    other = {query: ids[::-1] for query, ids in lists.items()}
    labels = {query: {p: 1 + (i + n) % 5 for n, p in enumerate(ids)} for i, (query, ids) in enumerate(lists.items())}
    row = next(
        row
        for row in rs.compare(labels, {"one": lists, "two": other}, scale="utility", depths=[10]).rows
        if str(row.measure) == "RA-nWG@10"
    )
    closed = [caveat.text for caveat in row.caveats if caveat.code == "closed-labels"]
    assert len(closed) == 1
    assert not closed[0].startswith(("one:", "two:"))
