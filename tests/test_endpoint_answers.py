"""Which answers are read as a grade, which are not, and what becomes of cut answers and of batches."""

import json
from dataclasses import replace

import pytest

from tests.endpoint_runs import grades, rows, run, write_pairs
from tests.hostile_server import (
    HostileServer,
    Mode,
    Reply,
    Request,
    answer,
    cut_below,
    good,
    grade_of,
    per_passage,
    reasons,
    says,
    tool_call,
)

pytestmark = pytest.mark.contract

#: Each says 4.
FORMS = [
    "4/5",
    "4 / 5",
    "**4/5**",
    "Grade: 4/5",
    "Grade: **4** out of 5",
    "The passage is useful.\n\nGrade (1-5): 4",
    '{"Reason": "x", "Grade": 4}',
    '{"REASON": "x", "GRADE": "4/5"}',
    '{"reason": "x", "grade": "4/5"}',
    "<grade>4</grade>",
    "<reason>It helps.</reason>\n<grade> 4 </grade>",
    "评分：4",
    "理由：相关。\n评分：4/5",
    "評価：4",
    "Score: 4/5",
    "Rating: 4",
    "grade = 4.0",
]
#: Answers in which exactly one grade can be read, each with that grade.
READABLE: list[tuple[Mode, int]] = [
    *((says(text), 4) for text in FORMS),
    (says('{"reason": "r", "grade": "4"}'), 4),
    (says('{"reason": "r", "grade": 4.0}'), 4),
    (says('{"reason": "r", "grade": "5 "}'), 5),
    (says('{"grade": 2, "reason": "r"}'), 2),
    (says('  \n{"reason": "r", "grade": 2}\n\n'), 2),
    (says('Here is my judgment:\n{"reason": "it helps", "grade": 4}\nI hope that it is of use.'), 4),
    (says('```json\n{"reason": "r", "grade": 5}\n```'), 5),
    (says('```\n{"reason": "r", "grade": 1}\n```'), 1),
    (says('<think>Is it a 2, or {"grade": 1}? No: it answers.</think>\n\n{"reason": "r", "grade": 5}'), 5),
    (says('Is it a 2, or {"grade": 1}? No.</think>{"reason": "r", "grade": 5}'), 5),
    (says('<thinking>{"reason": "", "grade": 3}</thinking>{"reason": "r", "grade": 4}'), 4),
    (
        says(
            '<|channel|>analysis<|message|>Perhaps {"grade": 2}.<|end|><|start|>assistant<|channel|>final<|message|>'
            '{"reason": "r", "grade": 4}<|return|>'
        ),
        4,
    ),
    (says([{"type": "text", "text": '{"reason": "r",'}, {"type": "text", "text": ' "grade": 3}'}]), 3),
    (
        says(
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": '{"grade": 1}'}]},
                {"type": "text", "text": '{"reason": "r", "grade": 4}'},
            ]
        ),
        4,
    ),
    (says("", message={"reasoning_content": 'It answers. {"reason": "r", "grade": 5}'}), 5),
    (says(None, message={"reasoning": "Thoughts.", "reasoning_content": '{"reason": "r", "grade": 2}'}), 2),
    (says('{"reason": "r", "grade": 3}', message={"reasoning_content": 'Or {"grade": 5}?'}), 3),
    (lambda request, n: tool_call('{"reason": "r", "grade": 4}'), 4),
    (says('{"reason": "a \\"5\\" would be too much", "grade": 3}'), 3),
    (says('{"reason": "zwölf \\u00e4 \\ud83d\\ude00", "grade": 3}'), 3),
    (says('{"reason": "r", "grade": 2}\n{"reason": "r", "grade": 2}'), 2),
]

#: Answers in which no single grade can be read.
UNREADABLE = [
    '{"reason": "r", "grade": 4.5}',
    '{"reason": "r", "grade": 7}',
    '{"reason": "r", "grade": 0}',
    '{"reason": "r", "grade": -3}',
    '{"reason": "r", "grade": null}',
    '{"reason": "r", "grade": true}',
    '{"reason": "r", "grade": "good"}',
    '{"reason": "r", "grade": [4]}',
    '{"reason": "r"}',
    '{"reason": "r", "grade": 2}\n{"reason": "r", "grade": 4}',
    "It is a 2, or perhaps a 4.",
    "",
    "null",
    "[]",
    '{"reason": "r", "grade": NaN}',
    '{"reason": "r", "grade": 1e999}',
    '<think>{"reason": "r", "grade": 4}</think>',
    "4/10",
    "Grade: 4/10",
    "Grade: 3-4",
    "Grade: 4.5/5",
    "Grade: 6/5",
    '{"reason": "x", "grade": "4/10"}',
    '{"Grade": 4, "grade": 5}',
    "<grade>4</grade><grade>2</grade>",
    "评分：4 评分：2",
    "Grade: 45",
    "[" * 5000,
]


def test_every_answer_with_one_grade_is_read(tmp_path) -> None:
    write_pairs(tmp_path, len(READABLE))
    with HostileServer(per_passage({number: mode for number, (mode, _) in enumerate(READABLE)})) as server:
        done = run(tmp_path, server.url)
        again = {numbers: times for numbers, times in server.asked.items() if times > 1}
    expected = {number: grade for number, (_, grade) in enumerate(READABLE)}
    assert grades(tmp_path) == expected
    assert (again, done.code) == ({}, 0)


def test_no_answer_without_exactly_one_grade_is_read(tmp_path) -> None:
    # A good answer between two bad ones: the run is about each of them, not about a server that is useless.
    write_pairs(tmp_path, 2 * len(UNREADABLE))
    modes = {2 * number: says(content) for number, content in enumerate(UNREADABLE)}
    with HostileServer(per_passage(modes)) as server:
        done = run(tmp_path, server.url, "--concurrency", "2")
        assert {server.asked[(number,)] for number in modes} == {3}
        repeated = [request for request in server.requests if request.passages == (2,)]
    stored = rows(tmp_path)
    assert {number: stored[number]["grade"] for number in modes} == dict.fromkeys(modes)
    assert {stored[number]["failure"] for number in modes} == {"off_schema"}
    assert done.data["errors"] == {"off_schema": len(UNREADABLE)}
    assert stored[2]["last_answer"] == UNREADABLE[1]
    # Asked again with the error: a longer conversation, which quotes the bad answer or says what was wrong.
    assert len(repeated[1].body["messages"]) > len(repeated[0].body["messages"])
    assert "grade" in repeated[1].body["messages"][-1]["content"]


# -- answers that are cut -------------------------------------------------------------------------


def test_a_larger_limit_that_helps_is_kept(tmp_path) -> None:
    write_pairs(tmp_path, 20)
    with HostileServer(cut_below(300)) as server:
        done = run(tmp_path, server.url, "-c", "judge.max_answer_tokens=100")
        limits = [request.limit for request in server.requests]
    assert (done.code, done.data["graded"]) == (0, 20)
    # The first one, and those that were in flight before its repetition showed that more tokens help.
    assert 1 <= limits.count(100) <= 1 + 4
    assert limits.count(400) == 20


def test_a_larger_limit_that_does_not_help_is_tried_once(tmp_path) -> None:
    write_pairs(tmp_path, 10)
    with HostileServer(per_passage({3: reasons(10**6)})) as server:
        done = run(tmp_path, server.url, "-c", "judge.max_answer_tokens=200")
        limits = [request.limit for request in server.requests if request.passages == (3,)]
        others = {request.limit for request in server.requests if request.passages != (3,)}
    assert limits == [200, 800]
    assert others == {200}
    assert (done.code, done.data["errors"]) == (1, {"cut": 1})
    assert rows(tmp_path)[3]["failure"] == "cut"


# -- batches --------------------------------------------------------------------------------------


def items(request: Request) -> list[dict[str, object]]:
    content: list[dict[str, object]] = json.loads(answer(request))["grades"]
    return content


def batch(change) -> Mode:
    """A mode that changes the items of a batch, and answers a single passage well."""

    def respond(request: Request, n: int) -> Reply:
        if not request.ids:
            return good(request, n)
        return Reply(json.dumps({"grades": change(items(request))}))

    return respond


def cut_in_the_middle(request: Request, n: int) -> Reply:
    """An answer whose second half is missing."""
    text = answer(request)
    return Reply(text[: len(text) // 2], finish="length") if request.ids else good(request, n)


def refuses_batches(request: Request, n: int) -> Reply:
    """A refusal of every batch."""
    return Reply(None, message={"refusal": "Too many at once."}) if request.ids else good(request, n)


def missing(content):
    return content[:-2]


def invented(content):
    return [*content[:-1], {"passage": "p1", "reason": "r", "grade": 5}]


def one_bad(content):
    return [{**content[0], "grade": 9}, *content[1:]]


def doubled(content):
    return [*content, {**content[0], "grade": 5 if content[0]["grade"] != 5 else 1}]


@pytest.mark.parametrize(
    ("mode", "most"),
    [
        # Of each batch of ten, what is good is kept: so many passages are asked for again.
        pytest.param(batch(missing), 2, id="missing"),
        pytest.param(batch(invented), 1, id="invented"),
        pytest.param(batch(one_bad), 1, id="one bad grade"),
        pytest.param(batch(doubled), 1, id="duplicates"),
        pytest.param(cut_in_the_middle, 6, id="cut"),
        pytest.param(refuses_batches, 10, id="refused"),
    ],
)
def test_of_a_bad_batch_what_is_good_is_kept_and_the_rest_is_halved(tmp_path, mode: Mode, most: int) -> None:
    write_pairs(tmp_path, 10)
    lines = (tmp_path / "pool.trec").read_text().replace("q1 ", "q0 ")
    (tmp_path / "pool.trec").write_text(lines)  # ten passages of one question
    with HostileServer(mode) as server:
        done = run(tmp_path, server.url, "--batch", "10", "--concurrency", "1")
        sizes = [len(request.passages) for request in server.requests]
        again = {number for request in server.requests[1:] for number in request.passages}
    assert (done.code, done.data["graded"], done.data["failed"]) == (0, 10, 0), done.said
    assert grades(tmp_path) == {number: grade_of(number) for number in range(10)}
    assert sizes[0] == 10
    fresh = [size for size in sizes[1:] if size < 10]
    assert fresh[0] <= -(-most // 2) or most == 1
    assert len(again) <= (most if 10 not in sizes[1:] else 10)
    assert len(sizes) <= 1 + 2 + 2 * most


def test_a_passage_that_fails_in_every_batch_fails_alone(tmp_path) -> None:
    write_pairs(tmp_path, 5)
    whole = says(None, message={"refusal": "Not this one."})
    with HostileServer(per_passage({3: whole})) as server:
        done = run(tmp_path, server.url, "--batch", "5")
        assert len([request for request in server.requests if request.passages == (3,)]) == 1
        assert len(server.requests) <= 9
    assert (done.code, done.data["errors"]) == (1, {"refusal": 1})
    assert grades(tmp_path) == {number: grade_of(number) for number in (0, 1, 2, 4)}


def test_samples_ask_each_pair_so_often_and_keep_all_grades(tmp_path) -> None:
    write_pairs(tmp_path, 4)
    with HostileServer(
        lambda request, n: replace(good(request, n), content=f'{{"grade": {n}, "reason": ""}}')
    ) as server:
        done = run(tmp_path, server.url, "--samples", "3")
        assert set(server.asked.values()) == {3}
    assert (done.code, done.data["graded"]) == (0, 12)
