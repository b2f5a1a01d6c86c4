"""A run in which no pair could be graded is an error with cause and mend, and leaves all pairs open."""

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.single import blocking, label_lists
from rag_selectivity.grading.store import HumanLabel, Store
from tests.endpoint_runs import cli, grades, rows, run, write_pairs
from tests.hostile_server import (
    FAILS_ONE,
    HostileServer,
    Mode,
    Reply,
    Request,
    but,
    fails,
    good,
    hangs,
    per_passage,
    says,
)

pytestmark = pytest.mark.contract

QUICK = ("-c", "judge.attempts=2", "-c", "judge.timeout=0.5", "-c", "judge.max_wait=5")
FAST = rs.Limits(attempts=1, backoff=0.01)
PROSE = "I would rather not say."


@pytest.mark.parametrize(
    ("mode", "cause", "mend"),
    [
        pytest.param(says(PROSE), "off_schema", "judge.max_answer_tokens", id="prose"),
        pytest.param(FAILS_ONE["refusal"], "refusal", "another model", id="refusal"),
        pytest.param(fails(500, "no worker is free"), "no worker is free", "Look at the endpoint", id="server error"),
        pytest.param(hangs, "timeout", "judge.timeout", id="timeout"),
        pytest.param(
            per_passage({0: says(PROSE), 1: FAILS_ONE["refusal"]}, but(good, content="", finish="length")),
            "cut",
            "judge.max_answer_tokens",
            id="several reasons",
        ),
    ],
)
def test_it_ends_with_the_cause_and_the_next_run_asks_again(tmp_path, mode: Mode, cause: str, mend: str) -> None:
    write_pairs(tmp_path, 5)
    with HostileServer(mode) as server:
        done = run(tmp_path, server.url, *QUICK, json_format=False)
        said = " ".join(done.said.split())
        assert (done.code, cause in said, mend in said) == (2, True, True), said
        assert "none of the pairs was graded" in said
        assert rows(tmp_path) == {}
        scored = cli(tmp_path, "evaluate", "labels.db", "pool.trec")
        assert scored.code == 2, scored.said
        server.mode = good
        rest = run(tmp_path, server.url)
    assert (rest.code, rest.data["graded"], rest.data["cached"]) == (0, 5, 0)
    assert len(grades(tmp_path)) == 5


def test_pairs_that_fail_beside_stored_grades_are_failures_as_before(tmp_path) -> None:
    write_pairs(tmp_path, 5)
    with HostileServer(per_passage({1: FAILS_ONE["refusal"], 2: FAILS_ONE["refusal"]})) as server:
        assert run(tmp_path, server.url).data["failed"] == 2
        again = run(tmp_path, server.url, "--retry-failed")
        stopped = run(tmp_path, server.url, "--retry-failed", "-c", "judge.max_calls=1")
    assert (again.code, again.data["failed"], again.data["cached"]) == (1, 2, 3)
    assert (stopped.data["failed"], stopped.data["left"]) == (1, 1)


def test_a_grade_that_needs_no_judge_makes_no_report_of_failures(tmp_path) -> None:
    async def judge(messages, schema):
        return "prose"

    with pytest.raises(rs.SelectivityError, match="none of the pairs was graded"):
        rs.grade({"q": "?"}, {"d": "text", "e": " "}, {"q": ["d", "e"]}, store=tmp_path / "labels.db", judge=judge)


def one_question(folder, pairs: int) -> None:
    write_pairs(folder, pairs)
    (folder / "pool.trec").write_text((folder / "pool.trec").read_text().replace("q1 ", "q0 "))


def test_batches_that_fail_are_asked_one_by_one_before_the_run_ends(tmp_path) -> None:
    def respond(request: Request, n: int) -> Reply:
        return says(PROSE)(request, n) if request.ids or request.passages == (0,) else good(request, n)

    one_question(tmp_path, 8)
    with HostileServer(respond) as server:
        done = run(tmp_path, server.url, "--batch", "2", *QUICK)
    assert (done.code, done.data["graded"], done.data["failed"]) == (1, 7, 1), done.said


def test_batches_of_which_nothing_can_be_read_leave_all_pairs_open(tmp_path) -> None:
    one_question(tmp_path, 8)
    with HostileServer(says(PROSE)) as server:
        done = run(tmp_path, server.url, "--batch", "4", *QUICK, json_format=False)
    assert (done.code, "none of the pairs was graded" in " ".join(done.said.split())) == (2, True), done.said
    assert rows(tmp_path) == {}


def test_labels_for_an_adapter_end_with_the_cause_too(tmp_path) -> None:
    async def judge(messages, schema):
        raise ConnectionError("no route")

    with pytest.raises(rs.SelectivityError, match="none of the pairs was graded"):
        blocking(label_lists)({"q": "?"}, {"d": "t"}, {"q": ["d"]}, store=tmp_path / "s.db", judge=judge, limits=FAST)


def test_labels_for_an_adapter_are_those_of_this_rubric_and_of_people(tmp_path) -> None:
    def labels(grade: int, **options) -> dict[str, int]:
        async def judge(messages, schema):
            return {"reason": "so", "grade": grade}

        texts = {"q": "?"}, {"d": "t", "e": "u"}, {"q": ["d", "e"]}
        return blocking(label_lists)(*texts, store=tmp_path / "s.db", judge=judge, **options).to_dict()["q"]

    strict = {"rubric": Rubric("strict", "Be strict.", DEFAULT_RUBRIC.levels)}
    assert [labels(2), labels(5, **strict), labels(4)] == [{"d": 2, "e": 2}, {"d": 5, "e": 5}, {"d": 2, "e": 2}]
    with Store(tmp_path / "s.db") as store:
        store.put_human_labels([HumanLabel("q", "e", "ada", 1)])
    assert labels(5, **strict) == {"d": 5, "e": 1}
