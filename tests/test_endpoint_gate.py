"""Budgets, rates and pauses, as the server sees them."""

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.endpoint_runs import Run, cli, grades, rows, run, write_pairs
from tests.hostile_server import (
    HostileServer,
    Mode,
    Reply,
    after,
    at_most,
    but,
    fails,
    first,
    good,
    once_each,
    reasons,
    refuses,
    says,
    wait,
    wait_until,
)

pytestmark = pytest.mark.contract

#: Waits short enough for a test.
QUICK = ("-c", "judge.max_wait=2", "-c", "judge.timeout=5")


# -- calls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(good, id="good"),
        pytest.param(once_each(says('{"reason": "r", "grade": 4.5}'), 2), id="asked again"),
        pytest.param(refuses("json_schema", "json_object", "max_completion_tokens"), id="negotiation"),
        pytest.param(once_each(fails(500)), id="server errors"),
    ],
)
def test_never_more_requests_than_max_calls(tmp_path, mode: Mode) -> None:
    write_pairs(tmp_path, 20)
    with HostileServer(mode) as server:
        done = run(tmp_path, server.url, "--max-calls", "9", *QUICK)
        assert len(server.requests) == done.data["requests"] == 9
    assert (done.code, "budget" in done.data["stopped"]) == (1, True)
    assert done.data["graded"] == len(grades(tmp_path)) < 10
    assert "labels.db" in done.data["resume"]


def test_the_halves_of_a_batch_count_as_calls(tmp_path) -> None:
    write_pairs(tmp_path, 20)
    with HostileServer(says("not JSON at all, nothing but prose")) as server:
        done = run(tmp_path, server.url, "--batch", "5", "--max-calls", "7", *QUICK)
        assert len(server.requests) == done.data["requests"] == 7
    assert done.code == 1


def test_claims_keep_to_max_calls(tmp_path) -> None:
    sample = {"user_input": "who?", "retrieved_contexts": ["passage number 1", "passage number 2"], "reference": "Ada."}
    lines = (json.dumps({**sample, "user_input": f"who {number}?"}) + "\n" for number in range(9))
    (tmp_path / "samples.jsonl").write_text("".join(lines))
    said = {"claims": ["Ada."], "entities": ["Ada"], "reason": "r", "supported": [1], "useful": True, "mentioned": [1]}
    with HostileServer(says(json.dumps({**said, "statements": []}))) as server:
        shared = ("--model", "m", "--base-url", server.url, "--store", "claims.db", "--max-calls", "5", *QUICK)
        done = cli(tmp_path, "claims", "--samples", "samples.jsonl", *shared)
        assert len(server.requests) == 5, done.said
    assert done.code == 1


def test_the_next_run_goes_on_where_a_budget_stopped_the_first(tmp_path) -> None:
    write_pairs(tmp_path, 12)
    with HostileServer() as server:
        run(tmp_path, server.url, "--max-calls", "5")
        rest = run(tmp_path, server.url)
        assert (rest.code, rest.data["cached"], rest.data["graded"]) == (0, 5, 7)
        assert set(server.asked.values()) == {1}
        assert rest.data["stopped"] is rest.data["resume"] is None


# -- tokens and money -----------------------------------------------------------------------------


def test_a_token_budget_holds_with_many_calls_in_flight(tmp_path) -> None:
    write_pairs(tmp_path, 40)
    slow = but(good, delay=0.05, usage={"prompt_tokens": 500, "completion_tokens": 900})
    with HostileServer(slow) as server:
        done = run(tmp_path, server.url, "-c", "judge.max_tokens=20000", "--concurrency", "16")
        assert 0 < server.tokens <= 20000
        assert done.data["usage"]["prompt_tokens"] + done.data["usage"]["completion_tokens"] == server.tokens
        # The worst case is the answer's limit, so that what stays unspent is less than what two calls reserve.
        assert server.tokens > 20000 - 2 * 3000
    assert (done.code, "budget" in done.data["stopped"]) == (1, True)
    assert done.data["usage_from"] == "server"


def test_a_token_budget_holds_where_the_language_changes(tmp_path) -> None:
    write_pairs(tmp_path, 40, {number: "塔" * 2000 if number % 5 else "The tower" for number in range(40)})

    def counts(request, n) -> Reply:
        tokens = sum(0.2 if letter.isascii() else 1.2 for letter in request.text)
        return but(good, delay=0.2, usage={"prompt_tokens": int(tokens), "completion_tokens": 20})(request, n)

    with HostileServer(counts) as server:
        run(tmp_path, server.url, "-c", "judge.max_tokens=15000", "-c", "judge.max_answer_tokens=50")
        assert 8000 < server.tokens <= 15000


@pytest.mark.parametrize("obeys", [True, False])
def test_a_reasoning_model_does_not_pass_the_budget(tmp_path, obeys: bool) -> None:
    write_pairs(tmp_path, 40)
    with HostileServer(but(reasons(3000, obeys), delay=0.02)) as server:
        limits = "-c judge.max_tokens=25000 -c judge.max_answer_tokens=4000 --concurrency 16"
        done = run(tmp_path, server.url, *limits.split())
        assert all(request.limit is not None for request in server.requests)
        assert 0 < server.tokens <= 25000 + 3500
    assert (done.code, done.data["graded"] >= 3) == (1, True)


def test_a_cost_budget_holds_and_says_where_the_cost_comes_from(tmp_path) -> None:
    write_pairs(tmp_path, 40)
    mode = but(good, delay=0.02, usage={"prompt_tokens": 500, "completion_tokens": 500})
    with HostileServer(mode) as server:
        prices = ("-c", "judge.price_in=1", "-c", "judge.price_out=10")
        done = run(tmp_path, server.url, "--max-cost", "0.1", "--concurrency", "16", *prices)
        cost = len(server.answered) * (500 * 1 + 500 * 10) / 1e6
    assert 0.07 < cost <= 0.1
    assert done.data["cost"] == pytest.approx(cost)
    assert done.data["cost_from"] == "prices"
    assert (done.code, "budget" in done.data["stopped"]) == (1, True)


def test_a_cost_budget_holds_by_the_servers_own_cost(tmp_path) -> None:
    write_pairs(tmp_path, 40)
    costly = but(good, delay=0.02, usage={"prompt_tokens": 500, "completion_tokens": 500, "cost": 0.01})
    with HostileServer(costly) as server:
        done = run(tmp_path, server.url, "--max-cost", "0.1", "--concurrency", "16")
        assert 2 <= len(server.requests) <= 11
    assert (done.code, done.data["cost_from"]) == (1, "server")
    assert done.data["cost"] == pytest.approx(0.01 * len(server.requests))


def test_without_usage_the_estimate_counts_and_the_summary_says_so(tmp_path) -> None:
    write_pairs(tmp_path, 40)
    with HostileServer(but(good, usage=None, delay=0.02)) as server:
        done = run(tmp_path, server.url, "-c", "judge.max_tokens=12000", json_format=False)
        characters = sum(len(request.text) for request in server.requests)
        assert 0 < len(server.requests) < 40
    assert (done.code, "estimate" in done.said) == (1, True)
    # A token is about four characters of English; the prompts alone must not pass the budget by that count.
    assert characters / 4 < 12000 * 1.2
    with HostileServer(but(good, usage=None)) as server:
        done = run(tmp_path, server.url, "--max-calls", "3")
    assert done.data["usage_from"] == "estimate"
    assert done.data["usage"]["prompt_tokens"] > 0


# -- rates ----------------------------------------------------------------------------------------


def test_rpm_counts_retries_too(tmp_path) -> None:
    write_pairs(tmp_path, 6)
    with HostileServer(once_each(fails(500))) as server:
        done = run(tmp_path, server.url, "-c", "judge.rpm=240", "-c", "judge.max_wait=5", "-c", "judge.timeout=5")
        times = [request.time for request in server.requests]
    assert (done.code, len(times)) == (0, 12)
    # 240 a minute are 60 / 240 s from one to the next; the clock of the wire may shift one by some hundredths.
    assert times[-1] - times[0] >= 11 * 0.25 - 0.1
    assert all(later - earlier > 0.1 for earlier, later in pairwise(times))


@pytest.mark.parametrize(("option", "value", "allowed"), [("-c", "judge.rpm=3", 3), ("-c", "judge.tpm=3500", 3)])
def test_a_full_minute_holds_the_rest_back_until_ctrl_c(tmp_path, option: str, value: str, allowed: int) -> None:
    write_pairs(tmp_path, 20)
    with HostileServer(but(good, usage={"prompt_tokens": 500, "completion_tokens": 600})) as server:
        process = Run(tmp_path, server.url, option, value, "-c", "judge.max_answer_tokens=600")
        server.wait_for(1)
        time.sleep(1.5)
        done = process.interrupt()
        assert 1 <= len(server.requests) <= allowed
        assert len(grades(tmp_path)) == len(server.answered)
    assert done.code == 130


# -- Retry-After ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("pause", "seconds"), [(wait(1), 1.0), (wait_until(2), 1.0), (wait(0.7, 503), 0.7)])
def test_retry_after_holds_for_all_calls(tmp_path, pause: Mode, seconds: float) -> None:
    write_pairs(tmp_path, 30)
    sent: list[float] = []

    def limited(request, n) -> Reply:
        sent.append(request.time)
        return pause(request, n)

    with HostileServer(after(10, first(1, limited, but(good, delay=0.05)), but(good, delay=0.05))) as server:
        done = run(tmp_path, server.url, "--concurrency", "8", "-c", "judge.max_wait=10")
        (moment,) = sent
        early = [r.time - moment for r in server.requests if 0.3 < r.time - moment < seconds - 0.05]
        assert early == []
        assert (done.code, len(server.requests)) == (0, 31)
    assert len(grades(tmp_path)) == 30


def test_a_wait_above_max_wait_stops_the_run(tmp_path) -> None:
    write_pairs(tmp_path, 30)
    with HostileServer(after(10, wait(600))) as server:
        done = run(tmp_path, server.url, "-c", "judge.max_wait=100")
        assert len(server.requests) <= 10 + 16
    assert done.code == 2
    assert len(grades(tmp_path)) == len(rows(tmp_path)) == 10
    assert all(word in done.said for word in ("600", "judge.max_wait"))
    assert "labels.db" in done.data["resume"]
    with HostileServer() as server:
        assert (run(tmp_path, server.url).code, len(server.requests)) == (0, 20)


def test_the_last_lines_of_a_stopped_run_name_the_resume_command(tmp_path) -> None:
    write_pairs(tmp_path, 5)
    with HostileServer(after(2, wait(600))) as server:
        done = run(tmp_path, server.url, "--concurrency", "3", json_format=False)
    assert done.code == 2
    last = "\n".join(done.said.strip().splitlines()[-3:])
    assert all(word in last for word in ("rag-selectivity grade", "--concurrency 3", "--pool pool.trec"))


def test_a_limited_server_grades_everything_in_the_end(tmp_path) -> None:
    write_pairs(tmp_path, 30)
    with HostileServer(at_most(12, 1.0)) as server:
        done = run(tmp_path, server.url, "-c", "judge.max_wait=10")
        refused = sum(reply.status == 429 for _, reply in server.answered)
    assert (done.code, done.data["graded"], done.data["failed"]) == (0, 30, 0)
    # Whoever heeds Retry-After is refused once for each call in flight and window, not again and again.
    assert refused <= 3 * 16


# -- concurrency ----------------------------------------------------------------------------------


def test_the_probe_goes_alone_and_concurrency_grows_from_four(tmp_path) -> None:
    write_pairs(tmp_path, 60)
    with HostileServer(but(good, delay=0.1)) as server:
        done = run(tmp_path, server.url, "--concurrency", "9")
        at_once = [request.at_once for request in server.requests]
        times = [request.time for request in server.requests]
    assert (done.code, len(at_once)) == (0, 60)
    assert at_once[0] == 1
    assert times[1] - times[0] >= 0.1
    assert max(at_once[1:5]) == 4
    assert 8 <= max(at_once) <= 9


def test_concurrency_is_halved_where_the_server_pushes_back(tmp_path) -> None:
    write_pairs(tmp_path, 90)
    slow = but(good, delay=0.1)
    limited: list[float] = []

    def mode(request, n) -> Reply:
        # One push back, at a time when 16 are in flight.
        if not limited and request.at_once == 16:
            limited.append(request.time)
            return wait(0.5)(request, n)
        return slow(request, n)

    with HostileServer(mode) as server:
        assert (run(tmp_path, server.url, "--concurrency", "16").code, len(limited)) == (0, 1)
        later = [request for request in server.requests if request.time > limited[0] + 0.4]
    # The first to come after the pause, before one of them is answered.
    assert max(request.at_once for request in later if request.time < later[0].time + 0.08) <= 9


def test_a_dry_run_asks_nothing_and_estimates(tmp_path: Path) -> None:
    write_pairs(tmp_path, 10)
    with HostileServer() as server:
        planned = run(tmp_path, server.url, "--dry-run", "-c", "judge.price_in=1", "-c", "judge.price_out=2").data
        assert server.requests == []
        assert not (tmp_path / "labels.db").exists()
        done = run(tmp_path, server.url).data
        characters = sum(len(request.text) for request in server.requests)
        stored = {path: path.read_bytes() for path in tmp_path.iterdir()}
        again = run(tmp_path, server.url, "--dry-run").data
        run(tmp_path, server.url, "--dry-run", "--batch", "5")
    assert (planned["pairs"], planned["graded"], planned["left"]) == (10, 0, 10)
    assert planned["usage"]["prompt_tokens"] == pytest.approx(characters / 4, rel=0.25)
    assert planned["cost"] > 0
    assert done["requests"] == 10
    assert (again["cached"], again["left"]) == (10, 0)
    # Not even the settings of the second one are in the store, and there is nothing beside it.
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == stored
