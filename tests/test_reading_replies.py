"""What is read out of an endpoint's reply: calls of tools, errors in place of a message, usage, secrets."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.judge import GradingError
from rag_selectivity.grading.openai_judge import OpenAIJudge
from tests.endpoint_runs import cli, grades, rows, run, write_pairs
from tests.hostile_server import KEY, HostileServer, Mode, Reply, Request, answer, but, good, per_passage, says
from tests.judge_server import JudgeServer
from tests.judge_server import Reply as PlainReply

pytestmark = pytest.mark.contract


def calls_of(*arguments: Any, content: Any = None) -> Mode:
    """A reply that calls the tool `answer` once for each of the arguments, beside a content."""
    calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": "answer", "arguments": each}}
        for i, each in enumerate(arguments)
    ]
    return lambda request, n: Reply(content, message={"tool_calls": calls}, finish="tool_calls")


def graded(folder: Path, server: HostileServer, **limits: Any) -> Any:
    """The pairs of `write_pairs`, graded by the judge of a server."""
    return rs.grade(
        folder / "queries.tsv",
        folder / "corpus.jsonl",
        folder / "pool.trec",
        store=folder / "labels.db",
        judge=OpenAIJudge("judge-1", base_url=server.url, api_key=KEY),
        limits=rs.Limits(**limits),
        progress=False,
    )


# -- calls of tools -------------------------------------------------------------------------------

FOUR, FIVE, ONE = ('{"reason": "r", "grade": %d}' % grade for grade in (4, 5, 1))  # noqa: UP031


@pytest.mark.parametrize(
    ("mode", "grade"),
    [
        pytest.param(calls_of(ONE, FIVE), None, id="two calls that differ"),
        pytest.param(calls_of(FOUR, FOUR), 4, id="two calls that agree"),
        pytest.param(calls_of(FOUR, content=" \n"), 4, id="beside blanks"),
        pytest.param(calls_of(FOUR, content="I grade the passage:"), 4, id="beside prose"),
        pytest.param(calls_of(FOUR, content=ONE), 4, id="before a content that differs"),
        pytest.param(calls_of("{}", content=FOUR), 4, id="empty, so that the content is read"),
        pytest.param(calls_of("", content=FOUR), 4, id="without arguments, so that the content is read"),
        pytest.param(calls_of({"reason": "r", "grade": 4}), 4, id="arguments as an object"),
    ],
)
def test_calls_of_tools_are_read_before_the_content(tmp_path, mode: Mode, grade: int | None) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer(per_passage({1: mode})) as server:
        done = run(tmp_path, server.url, "--concurrency", "1")
        asked = server.asked[(1,)]
    assert grades(tmp_path).get(1) == grade, done.said
    assert asked == (1 if grade else 3)
    assert rows(tmp_path)[1]["failure"] == (None if grade else "off_schema")


def test_a_server_that_answers_by_calls_beside_a_text_goes_on_answering_so(tmp_path) -> None:
    def respond(request: Request, n: int) -> Reply:
        if request.way in ("json_schema", "json_object"):
            return Reply(status=400, error={"message": "response_format is not supported", "param": "response_format"})
        return calls_of(answer(request), content=" \n")(request, n) if request.way == "tools" else Reply("prose")

    write_pairs(tmp_path, 20)
    with HostileServer(respond) as server:
        done = run(tmp_path, server.url)
        answered = [request.way for request, reply in server.answered if reply.status == 200]
    assert (done.code, done.data["graded"]) == (0, 20), done.said
    assert answered == ["tools"] * 20


# -- errors in place of a message -----------------------------------------------------------------

SAID = "the upstream has no room for 17 lamps"


def body(value: Any) -> Mode:
    """A reply with status 200 and this body."""
    return lambda request, n: Reply(body=json.dumps(value).encode())


ERRORS: dict[str, tuple[Any, str]] = {
    "a text": ({"error": SAID}, "server_error"),
    "beside no choices": ({"choices": [], "error": {"message": SAID}}, "server_error"),
    "beside choices of null": ({"choices": None, "error": {"message": SAID, "code": 503}}, "server_error"),
    "in a choice": ({"choices": [{"index": 0, "error": {"message": SAID, "code": 502}}]}, "server_error"),
    "beside an empty message": (
        {"choices": [{"message": {"role": "assistant", "content": ""}, "error": {"message": SAID, "code": 502}}]},
        "server_error",
    ),
    "Gemini's list": ([{"error": {"code": 503, "message": SAID, "status": "UNAVAILABLE"}}], "server_error"),
    "a detail": ({"detail": SAID}, "server_error"),
    "a message": ({"object": "error", "message": SAID, "code": 500}, "server_error"),
    "a code as a text": ({"error": {"message": SAID, "code": "429"}}, "rate_limit"),
    "a code in words": ({"error": {"message": SAID, "type": "rate_limit_exceeded"}}, "rate_limit"),
    "a filter": ({"error": {"message": f"content_filter: {SAID}", "code": "400"}}, "content_filter"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_place_of_a_message_is_read_and_quoted(tmp_path, name: str) -> None:
    value, kind = ERRORS[name]
    write_pairs(tmp_path, 3)
    with HostileServer(per_passage({1: body(value)})) as server:
        done = graded(tmp_path, server, concurrency=1, backoff=0.001, attempts=2)
    assert done.errors == {kind: 1}
    assert SAID in (done.last_error or "")
    assert "holds no message" not in (done.last_error or "")


@pytest.mark.parametrize("value", [{"error": SAID}, {"choices": [], "error": {"message": SAID}}, {"choices": []}])
def test_an_endpoint_that_answers_with_errors_is_not_asked_six_times_a_pair(tmp_path, value: Any) -> None:
    write_pairs(tmp_path, 24)
    with HostileServer(body(value)) as server:
        with pytest.raises(GradingError, match=SAID if "error" in value else "holds no message"):
            graded(tmp_path, server, backoff=0.001)
        assert len(server.requests) <= 2 * 24
    # Nothing is known of the pairs: the same call asks for them again.
    with HostileServer() as server:
        run(tmp_path, server.url)
    assert len(grades(tmp_path)) == 24


# -- empty passages ---------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", ["1", "5"])
def test_an_empty_passage_is_graded_1_without_a_request(tmp_path, batch: str) -> None:
    write_pairs(tmp_path, 5)
    lines = [json.loads(line) for line in (tmp_path / "corpus.jsonl").read_text().splitlines()]
    lines[2]["text"], lines[3]["text"] = "", " \n\t"
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with HostileServer() as server:
        planned = run(tmp_path, server.url, "--batch", batch, "--dry-run")
        done = run(tmp_path, server.url, "--batch", batch)
        asked = {number for request in server.requests for number in request.passages}
        shown = "".join(request.text for request in server.requests)
    assert (planned.data["left"], planned.data["requests"]) == (5, 3 if batch == "1" else 1)
    assert (done.code, done.data["graded"]) == (0, 5), done.said
    assert grades(tmp_path)[2] == grades(tmp_path)[3] == 1
    assert asked == {0, 1, 4}
    assert shown.count("end passage") == 3
    assert rows(tmp_path)[2]["reason"] == "the passage is empty"


def test_empty_passages_alone_need_no_endpoint(tmp_path) -> None:
    done = rs.grade(
        {"q": "what?"},
        {"a": "", "b": " "},
        {"q": ["a", "b"]},
        store=tmp_path / "labels.db",
        judge=OpenAIJudge("judge-1", base_url="http://127.0.0.1:9/v1", api_key=KEY),
        progress=False,
    )
    assert (done.graded, done.requests, done.stopped) == (2, 0, None)


# -- usage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [10**30, 10**25, 2**63 - 1, 10**12, -5])
def test_absurd_usage_is_ignored_and_said(tmp_path, tokens: int) -> None:
    write_pairs(tmp_path, 6)
    absurd = but(good, usage={"prompt_tokens": tokens, "completion_tokens": tokens})
    with HostileServer(per_passage({1: absurd, 3: absurd, 4: absurd})) as server:
        done = run(tmp_path, server.url, "-c", "judge.max_tokens=1000000")
        ways = {request.limit for request in server.requests}
    assert (done.code, done.data["graded"]) == (0, 6), done.said
    assert done.data["usage_from"] == "both"
    assert 3 * 520 < done.data["usage"]["prompt_tokens"] + done.data["usage"]["completion_tokens"] < 10_000
    assert done.err.count("usage-ignored") == 1
    assert "which none can: such figures are ignored" in " ".join(done.err.split())
    assert ways == {1000}
    assert cli(tmp_path, "labels", "info", "labels.db").code == 0


def test_absurd_costs_are_ignored(tmp_path) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer(but(good, usage={"prompt_tokens": 5, "completion_tokens": 5, "cost": 1e300})) as server:
        done = run(tmp_path, server.url)
    assert done.data["cost"] is None


def test_a_store_whose_counters_would_overflow_is_still_read(tmp_path) -> None:
    import sqlite3

    write_pairs(tmp_path, 3)
    with HostileServer() as server:
        run(tmp_path, server.url)
    with sqlite3.connect(tmp_path / "labels.db") as connection:
        connection.execute("UPDATE labels SET prompt_tokens = 9223372036854775807, completion_tokens = -1")
    connection.close()
    done = cli(tmp_path, "labels", "info", "labels.db")
    assert done.code == 0, done.said
    assert "3 grades" in done.out


# -- secrets --------------------------------------------------------------------------------------


def leak(form: Callable[[str], str]) -> Mode:
    """An answer whose reason quotes the headers of its request."""
    return lambda request, n: Reply(
        form(json.dumps({"reason": f"Seen: {request.headers['authorization']} in it", "grade": 4}))
    )


@pytest.mark.parametrize(
    "form", [str, lambda text: text.replace(KEY, "".join(f"\\u{ord(c):04x}" for c in KEY))], ids=["as it is", "escaped"]
)
def test_a_key_that_an_answer_quotes_is_not_stored(tmp_path, form: Callable[[str], str]) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer(leak(form), key=KEY) as server:
        done = run(tmp_path, server.url)
    assert grades(tmp_path) == {0: 4, 1: 4, 2: 4}
    assert "Seen: " in rows(tmp_path)[0]["reason"]
    assert KEY not in done.said
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_key_is_cleaned_out_of_calls_of_tools_and_names_of_models(tmp_path) -> None:
    write_pairs(tmp_path, 3)
    arguments = json.dumps({"reason": f"the key {KEY}", "grade": 4})
    with HostileServer(but(calls_of(arguments), model=f"judge {KEY}")) as server:
        run(tmp_path, server.url)
    assert grades(tmp_path) == {0: 4, 1: 4, 2: 4}
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_words_that_only_look_like_keys_stay_in_an_answer(tmp_path) -> None:
    write_pairs(tmp_path, 1)
    said = "The sk-learn docs speak of Bearer bonds and ollama"
    with HostileServer(says(json.dumps({"reason": said, "grade": 4}))) as server:
        run(tmp_path, server.url, env={"OPENAI_API_KEY": "ollama"})
    assert rows(tmp_path)[0]["reason"] == said


# -- long replies ---------------------------------------------------------------------------------

#: By a reader that goes back over what it read, an answer of so many characters would take a quarter of an hour.
LENGTH = 100_000
UNITS = [
    "</think",
    "</think>",
    "<think>",
    "<div>plain</div>",
    "<|channel|>final",
    "<|channel|>final<|message|>",
    '{"grade": ',
    '{"grade": [',
    '{"a": {"a": "b"}, ',
    '{"',
    '{"a": "',
    '{"a": 1, "a": ',
    "[",
    "[{",
    "grade",
    "grade ",
    "grade ** ",
    "Grade: 4/Grade: 3/",
    "4/5 ",
    "<grade>",
    "\\",
    '"',
    "9",
    "\u8bc4\u5206\uff1a",
    "\ufdfa",
]


@pytest.fixture(scope="module")
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as started:
        yield started


def is_refused(server: JudgeServer, reply: PlainReply, folder: Path) -> None:
    """Grading one pair with this answer ends, without a grade."""
    server.respond = lambda request, n: reply
    judge = OpenAIJudge("judge-1", base_url=server.url, api_key=KEY)
    given: dict[str, Any] = {"store": folder / "labels.db", "judge": judge, "limits": rs.Limits(attempts=1)}
    with pytest.raises(GradingError):
        rs.grade({"q": "?"}, {"a": "a passage"}, {"q": ["a"]}, progress=False, **given)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("place", ["content", "reasoning_content"])
def test_a_very_long_answer_without_a_grade_is_refused(server, tmp_path, unit: str, place: str) -> None:
    text = unit * (LENGTH // len(unit))
    is_refused(server, PlainReply(text) if place == "content" else PlainReply("", message={place: text}), tmp_path)


@pytest.mark.parametrize("unit", ["grade", '"grade":', '"passage":'])
def test_very_many_blanks_after_a_name_are_refused(server, tmp_path, unit: str) -> None:
    is_refused(server, PlainReply(unit + " " * LENGTH), tmp_path)


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("unit", ["<", "<p>", "model ", '{"error": ', '"', "[", "\\\\"])
def test_a_very_long_error_is_refused(server, tmp_path, unit: str, status: int) -> None:
    is_refused(server, PlainReply(status=status, body=(unit * (LENGTH // len(unit))).encode()), tmp_path)
