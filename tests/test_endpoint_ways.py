"""What the server can do is found once; forms of other hosts; keys, headers, proxies and names."""

import json

import pytest

from tests.endpoint_runs import grades, rows, run, write_pairs
from tests.hostile_server import KEY, HostileServer, Reply, Request, but, fails, good, grade_of, per_passage, refuses

pytestmark = pytest.mark.contract

ALL = {number: grade_of(number) for number in range(12)}
#: (what the server refuses, the way that is left, requests that were refused)
LADDER = [
    ((), "json_schema", 0),
    (("json_schema",), "json_object", 1),
    (("json_schema", "json_object"), "tools", 2),
    (("json_schema", "json_object", "tools"), "text", 3),
]


@pytest.mark.parametrize(("refused", "way", "cost"), LADDER)
@pytest.mark.parametrize("status", [400, 422, 501])
def test_the_way_to_ask_steps_down_once(tmp_path, refused: tuple[str, ...], way: str, cost: int, status: int) -> None:
    if status != 400 and cost not in (1, 3):
        pytest.skip("the steps between differ by the status of one refusal only")
    write_pairs(tmp_path, 12)
    with HostileServer(but(refuses(*refused, status=status), delay=0.02)) as server:
        done = run(tmp_path, server.url)
        statuses = [reply.status for _, reply in server.answered]
        ways = [request.way for request, reply in server.answered if reply.status == 200]
        assert server.requests[0].at_once == 1
    assert grades(tmp_path) == ALL
    if status == 422:
        # FastAPI names `response_format` and not its type, so that the next type may be left out.
        assert statuses.count(422) <= cost
    else:
        assert statuses.count(status) == cost
        assert set(ways) == {way}
    assert statuses[: statuses.count(status)] == [status] * statuses.count(status) or cost == 0
    assert (done.code, done.data["way"]["answer"], done.data["requests"]) == (0, ways[0], len(statuses))
    assert {json.loads(row["way"])["answer"] for row in rows(tmp_path).values()} == {ways[0]}


def test_a_server_that_refuses_everything_by_name_is_asked_in_plain_text(tmp_path) -> None:
    write_pairs(tmp_path, 12)
    everything = ("json_schema", "json_object", "tools", "temperature", "max_completion_tokens")
    with HostileServer(refuses(*everything)) as server:
        done = run(tmp_path, server.url, "-c", "judge.temperature=0")
        assert len(server.requests) == 12 + len(everything)
    assert (done.code, grades(tmp_path)) == (0, ALL)
    assert done.data["way"]["answer"] == "text"


@pytest.mark.parametrize("status", [400, 501])
def test_a_refusal_that_names_nothing_is_found_out_once(tmp_path, status: int) -> None:
    write_pairs(tmp_path, 12)
    with HostileServer(refuses("json_schema", "json_object", status=status, named=False)) as server:
        done = run(tmp_path, server.url)
        statuses = [reply.status for _, reply in server.answered]
    assert (done.code, grades(tmp_path)) == (0, ALL)
    refused = statuses.count(status)
    assert refused <= 6
    assert statuses == [status] * refused + [200] * 12


def test_a_first_pair_that_is_refused_for_itself_takes_nothing_from_the_others(tmp_path) -> None:
    write_pairs(tmp_path, 8)
    with HostileServer(per_passage({0: fails(400, "not this one"), 5: fails(400, "nor this one")})) as server:
        done = run(tmp_path, server.url)
        asked = [request.passages for request in server.requests]
    assert (done.code, done.data["errors"]) == (1, {"rejected": 2})
    assert (done.data["way"]["answer"], done.data["way"]["limit"]) == ("json_schema", "max_completion_tokens")
    # What it lacks is guessed once, for the first pair.
    assert asked.count((0,)) <= 8
    assert asked.count((5,)) == 1


def test_what_was_found_is_found_again_by_the_next_run_only(tmp_path) -> None:
    write_pairs(tmp_path, 12)
    with HostileServer(refuses("json_schema", "max_completion_tokens")) as server:
        run(tmp_path, server.url, "--max-calls", "6")
        rest = run(tmp_path, server.url)
        refused = sum(reply.status == 400 for _, reply in server.answered)
    # The labels are the same judge's, whatever way they were asked for.
    assert (rest.code, rest.data["cached"], grades(tmp_path)) == (0, 4, ALL)
    assert refused <= 4


# -- hosts, keys and headers ----------------------------------------------------------------------


def test_azures_form_by_base_url_and_header_alone(tmp_path) -> None:
    write_pairs(tmp_path, 3)

    def azure(request: Request, n: int) -> Reply:
        right = request.target == "/openai/deployments/judge/chat/completions?api-version=2024-10-21"
        if not right or request.headers.get("api-key") != "azure-secret-123":
            return Reply(status=404, error={"code": "404", "message": "Resource not found"})
        return good(request, n)

    with HostileServer(azure) as server:
        url = f"{server.root}/openai/deployments/judge?api-version=2024-10-21"
        done = run(tmp_path, url, "--header", "api-key=azure-secret-123", env={"OPENAI_API_KEY": ""})
        assert "authorization" not in server.requests[0].headers
    assert (done.code, len(grades(tmp_path))) == (0, 3), done.said
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"azure-secret-123" not in everything + done.said.encode()


def test_headers_are_sent_and_never_shown(tmp_path) -> None:
    write_pairs(tmp_path, 3)
    headers = ("--header", "HTTP-Referer=https://example.org", "--header", "X-Secret=s3cr3t-value=x")

    def echoes(request: Request, n: int) -> Reply:
        if n == 1 and request.passages == (2,):
            return Reply(status=400, error={"message": f"bad request with headers {request.headers}"})
        return good(request, n)

    with HostileServer(echoes) as server:
        done = run(tmp_path, server.url, *headers, json_format=False)
        seen = server.requests[0].headers
    assert (seen["http-referer"], seen["x-secret"]) == ("https://example.org", "s3cr3t-value=x")
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for secret in ("s3cr3t-value", KEY):
        assert secret not in done.said
        assert secret.encode() not in everything
    mistake = run(tmp_path, server.url, "--header", "no-equals-sign")
    assert (mistake.code, "--header" in mistake.err) == (2, True)


def test_a_short_key_or_header_does_not_change_what_the_server_says(tmp_path) -> None:
    write_pairs(tmp_path, 12)
    with HostileServer() as server:
        done = run(
            tmp_path, server.url, "--header", "X-Version=3", "--header", "X-Word=grade", env={"OPENAI_API_KEY": "n"}
        )
    assert (done.code, grades(tmp_path)) == (0, ALL), done.said
    assert {number: row["reason"] for number, row in rows(tmp_path).items()} == {n: f"number {n}" for n in ALL}


def test_the_key_comes_from_the_named_variable(tmp_path) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer(key="sk-other") as server:
        wrong = run(tmp_path, server.url)
        right = run(tmp_path, server.url, "-c", "judge.api_key_env=OTHER_KEY", env={"OTHER_KEY": "sk-other"})
        unset = run(tmp_path, server.url, "-c", "judge.api_key_env=NOT_SET", store="other.db")
        assert len(server.requests) <= 1 + 3 + 1
    assert (wrong.code, right.code, unset.code) == (2, 0, 2)
    assert "NOT_SET" in unset.err
    assert "sk-other" not in wrong.said + right.said + unset.said


# -- the model that answers -----------------------------------------------------------------------


def test_another_model_than_asked_for_is_a_warning_that_names_both(tmp_path) -> None:
    write_pairs(tmp_path, 3)
    with HostileServer(but(good, model="cheap-model-q4")) as server:
        done = run(tmp_path, server.url, model="dear-model")
        plain = run(tmp_path, server.url, model="dear-model", store="other.db", json_format=False)
    assert done.data["served_models"] == ["cheap-model-q4"]
    assert {row["served_model"] for row in rows(tmp_path).values()} == {"cheap-model-q4"}
    assert "cheap-model-q4" in plain.said
    assert "dear-model" in plain.said
    assert (done.code, plain.code) == (0, 0)


def test_a_dated_name_of_the_same_model_is_no_warning(tmp_path) -> None:
    write_pairs(tmp_path, 2)
    with HostileServer(but(good, model="gpt-5-mini-2025-08-07")) as server:
        done = run(tmp_path, server.url, model="gpt-5-mini", json_format=False)
    assert done.code == 0
    assert "warning" not in done.said.lower()
