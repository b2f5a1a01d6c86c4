"""A field that an endpoint refuses is left out, whatever the status; an account that may not spend ends the run."""

import json
from pathlib import Path

import pytest

from tests.endpoint_runs import cli, grades, rows, run, write_pairs
from tests.hostile_server import MODEL, HostileServer, Mode, Reply, Request, after, fails, good, grade_of, refuses

pytestmark = pytest.mark.contract

NO_TEMPERATURE = "You are not allowed to set a temperature of this model"
ALL = {number: grade_of(number) for number in range(6)}


def forbids(field: str, status: int, text: str, in_200: bool = False) -> Mode:
    """Refuses requests with a field in these words; otherwise good answers."""

    def respond(request: Request, n: int) -> Reply:
        if field not in request.body:
            return good(request, n)
        if in_200:
            return Reply(body=json.dumps({"error": {"message": text, "code": status}}).encode())
        return fails(status, text, type="invalid_request_error")(request, n)

    return respond


COLD = ("-c", "judge.temperature=0")
#: A field, how it is refused, and arguments that send it.
REFUSED: list[tuple[str, Mode, tuple[str, ...]]] = [
    ("temperature", forbids("temperature", status, NO_TEMPERATURE), COLD)
    for status in (400, 401, 403, 404, 409, 422, 429, 500, 501, 503)
]
REFUSED.append(("temperature", forbids("temperature", 403, NO_TEMPERATURE, in_200=True), COLD))
for status in (403, 404, 500):
    for field, text in (
        ("response_format", "This key may not use response_format."),
        ("max_completion_tokens", "Unknown field max_completion_tokens"),
    ):
        REFUSED.append((field, forbids(field, status, text), ()))
for status in (400, 422, 501):
    for field, arguments in (("temperature", COLD), ("max_completion_tokens", ())):
        REFUSED.append((field, refuses(field, status=status), arguments))


@pytest.mark.parametrize(("field", "mode", "arguments"), REFUSED)
def test_any_field_that_was_sent_is_left_out(tmp_path, field: str, mode: Mode, arguments: tuple[str, ...]) -> None:
    write_pairs(tmp_path, 6)
    with HostileServer(mode) as server:
        done = run(tmp_path, server.url, *arguments)
        # `response_format` has two values to try.
        refused = 2 if field == "response_format" else 1
        fields = [field in request.body for request in server.requests]
        assert fields[:refused] == [True] * refused
        assert len(fields) == refused + 6
        assert field == "response_format" or not any(fields[1:])
        assert all(request.limit is not None for request in server.requests)
    assert (done.code, grades(tmp_path)) == (0, ALL), done.said
    assert field != "temperature" or done.data["way"]["refused"] == ["temperature"]


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (402, "This request requires more credits, or fewer max_completion_tokens.", "fatal"),
        (403, "Project `p` does not have access to the model.", "fatal"),
        (400, "flagged by moderation: 'the temperature of response_format'", "content_filter"),
        (403, "Your input was flagged: 'its account was suspended, over the spending limit'", "content_filter"),
        (400, "max_completion_tokens is too large: the maximum context length is 8192 tokens", "too_long"),
    ],
)
def test_a_refusal_for_another_reason_takes_no_field_from_others(tmp_path, status: int, text: str, kind: str) -> None:
    write_pairs(tmp_path, 6)

    def respond(request: Request, n: int) -> Reply:
        return (fails(status, text) if request.passages == (2,) else good)(request, n)

    with HostileServer(respond) as server:
        done = run(tmp_path, server.url, "-c", "judge.temperature=0", "--concurrency", "1")
        fields = [set(request.body) for request in server.requests]
    assert all(each == fields[0] for each in fields)
    assert done.code == (2 if kind == "fatal" else 1)
    assert {row["failure"] for row in rows(tmp_path).values()} - {None} == ({kind} if kind != "fatal" else set())


@pytest.mark.parametrize(
    "text",
    [
        "Limit of 8000 tokens per minute reached; reduce max_completion_tokens.",
        "You exceeded your current quota, please check your plan and billing details. Please retry in 0.1s.",
    ],
)
def test_a_limit_that_passes_takes_no_field_and_ends_no_run(tmp_path, text: str) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer(after(1, fails(429, text, code=429, headers={"retry-after": "0"}))) as server:
        done = run(tmp_path, server.url, "-c", "judge.attempts=1", "--concurrency", "1")
        assert all("max_completion_tokens" in request.body for request in server.requests)
    assert done.data["errors"] == {"rate_limit": 2}


# -- answers and claims ---------------------------------------------------------------------------

#: An answer to every question that `claims` and `answers` ask.
ANSWER = {
    "claims": ["It is so."], "entities": [], "reason": "r", "supported": [1], "useful": True, "mentioned": [],
    "statements": [], "answer": "42", "passages": [], "abstain": False,
}  # fmt: skip


def answers_all(request: Request, n: int) -> Reply:
    return Reply(json.dumps(ANSWER))


def words_of(command: str, folder: Path, url: str) -> list[str]:
    """A run of `claims` or `answers` over one question, as words of a command line."""
    if command == "claims":
        sample = {"user_input": "question?", "reference": "It is so.", "retrieved_contexts": ["one", "two"]}
        (folder / "samples.jsonl").write_text(json.dumps(sample) + "\n")
        what = ["--samples", "samples.jsonl"]
    else:
        write_pairs(folder, 3)
        (folder / "references.jsonl").write_text(json.dumps({"query_id": "q0", "reference": "42"}) + "\n")
        what = ["--queries", "queries.tsv", "--corpus", "corpus.jsonl", "pool.trec"]
        what += ["--references", "references.jsonl", "-c", "judge.controls=closed-book", "-k", "2"]
    shared = f"--store labels.db --model {MODEL} --base-url {url} -c judge.temperature=0 --format json"
    return [command, *what, *shared.split()]


@pytest.mark.parametrize("command", ["claims", "answers"])
def test_claims_and_answers_leave_the_field_out_too(tmp_path, command: str) -> None:
    def respond(request: Request, n: int) -> Reply:
        return (fails(403, NO_TEMPERATURE) if "temperature" in request.body else answers_all)(request, n)

    with HostileServer(respond) as server:
        done = cli(tmp_path, *words_of(command, tmp_path, server.url))
        refused = [reply.status for _, reply in server.answered].count(403)
        assert len(server.requests) > refused == 1
    assert done.code == 0, done.said


# -- an account that may not spend ----------------------------------------------------------------

#: Errors as LiteLLM, OpenAI, Fireworks and Groq send them.
SPENT: dict[str, Mode] = {
    "litellm": fails(
        400, "Budget has been exceeded! Current cost: 0.0512, Max budget: 0.05", type="budget_exceeded", code="400"
    ),
    "litellm, a user": fails(400, "ExceededBudget: User=u1 over budget. Spend=3.1, Budget=3.0", code="400"),
    "openai": fails(
        400, "Billing hard limit has been reached", type="invalid_request_error", code="billing_hard_limit_reached"
    ),
    "openai, inactive": fails(429, "Your account is not active.", type="billing_not_active", code="billing_not_active"),
    "fireworks": fails(412, "Account a-1 is suspended, possibly due to reaching the monthly spending limit."),
    "groq": fails(400, "Organization has been restricted.", code="organization_restricted"),
    "within a 200": lambda request, n: Reply(body=b'{"error": {"message": "insufficient_quota", "code": "429"}}'),
}


@pytest.mark.parametrize("case", SPENT)
def test_an_account_that_may_not_spend_ends_the_run_and_keeps_pairs_open(tmp_path, case: str) -> None:
    write_pairs(tmp_path, 12)
    with HostileServer(after(4, SPENT[case])) as server:
        done = run(tmp_path, server.url, "--concurrency", "1")
        assert (done.code, len(server.requests)) == (2, 5), done.said
        assert "account" in done.err
        assert set(grades(tmp_path)) == set(rows(tmp_path)) == {0, 5, 10, 1}
        server.mode = good
        paid = run(tmp_path, server.url)
    assert (paid.code, paid.data["cached"], paid.data["graded"], paid.data["failed"]) == (0, 4, 8, 0)


@pytest.mark.parametrize("command", ["claims", "answers"])
def test_claims_and_answers_go_on_after_payment_too(tmp_path, command: str) -> None:
    with HostileServer(after(1, SPENT["litellm"], answers_all)) as server:
        words = words_of(command, tmp_path, server.url)
        done = cli(tmp_path, *words)
        assert (done.code, len(server.requests) <= 6) == (2, True), done.said
        server.mode = answers_all
        server.requests.clear()
        paid = cli(tmp_path, *words)
        assert (paid.code, len(server.requests) > 0) == (0, True), paid.said
