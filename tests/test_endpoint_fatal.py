"""What ends a run, what fails one pair, and what Ctrl-C does: exit codes, requests and what the store keeps."""

import time

import pytest

from tests.endpoint_runs import Run, cli, grades, rows, run, write_pairs
from tests.hostile_server import (
    FAILS_ONE,
    FATAL,
    KEY,
    HostileServer,
    Mode,
    after,
    but,
    cut_off,
    drips,
    error_in_200,
    fails,
    filtered,
    first,
    flagged,
    good,
    hangs,
    html_page,
    no_json,
    once_each,
    per_passage,
    says,
    wait,
)

pytestmark = pytest.mark.contract

PROSE = "I would rather not say anything about it."


# -- fatal ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [*FATAL.values(), error_in_200(402, "Insufficient credits")])
def test_a_fatal_answer_to_the_first_request_ends_the_run(tmp_path, mode: Mode) -> None:
    write_pairs(tmp_path, 10)
    with HostileServer(mode) as server:
        done = run(tmp_path, server.url, json_format=False)
        assert (done.code, len(server.requests)) == (2, 1), done.said
    assert rows(tmp_path) == {}
    assert KEY not in done.said
    assert "Traceback" not in done.said
    assert any(word in done.said.lower() for word in ("key", "model", "credit", "account", "quota", "access"))


def test_a_fatal_answer_midway_keeps_what_is_done_and_fails_no_pair(tmp_path) -> None:
    write_pairs(tmp_path, 40)
    with HostileServer(after(12, FATAL["empty account"], but(good, delay=0.02))) as server:
        done = run(tmp_path, server.url)
        assert len(server.requests) <= 12 + 16
        assert done.code == 2
        assert len(rows(tmp_path)) == len(grades(tmp_path)) == 12
        assert "Insufficient credits" in done.said
        assert "rag-selectivity grade" in done.said
        server.mode = good
        rest = run(tmp_path, server.url)
    assert (rest.code, rest.data["cached"], rest.data["graded"]) == (0, 12, 28)


def test_a_server_that_dies_midway_stops_the_run_and_another_goes_on(tmp_path) -> None:
    write_pairs(tmp_path, 60)
    server = HostileServer(but(good, delay=0.05))
    process = Run(tmp_path, server.url, "-c", "judge.max_wait=1", "--concurrency", "4")
    server.wait_for(12)
    server.close()
    done = process.finish(30)
    answered = len(server.answered)
    assert done.code == 2
    assert len(rows(tmp_path)) == len(grades(tmp_path)) == answered == done.data["graded"]
    assert "labels.db" in done.data["resume"]
    with HostileServer(port=server.port) as revived:
        assert (run(tmp_path, revived.url).code, len(revived.requests)) == (0, 60 - answered)


@pytest.mark.parametrize("burst", [fails(503), fails(429, "Too many requests")])
def test_a_burst_of_503_or_of_rate_limits_without_retry_after_ends_and_nothing_fails(tmp_path, burst: Mode) -> None:
    write_pairs(tmp_path, 20)
    with HostileServer(after(5, first(6, burst))) as server:
        # On a busy machine few requests meet the burst at once, so that more of the growing waits follow each other.
        done = run(tmp_path, server.url, "-c", "judge.max_wait=60")
        assert len(server.requests) == 20 + 6
    assert (done.code, done.data["graded"], done.data["failed"]) == (0, 20, 0)


# -- the same useless answer again and again ------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "shown", "least"),
    [
        pytest.param(says(PROSE), PROSE, 20, id="off_schema"),
        pytest.param(FAILS_ONE["refusal"], "I cannot help with that", 20, id="refusal"),
        pytest.param(filtered, "content", 20, id="content_filter"),
        pytest.param(hangs, "", 20, id="timeout"),
        pytest.param(but(good, content="", message={}, finish="length"), "cut", 20, id="cut"),
        # Server errors end the run by the time without an answer, if that comes first.
        pytest.param(no_json, "", 4, id="damaged"),
    ],
)
def test_twenty_times_the_same_useless_answer_ends_the_run(tmp_path, mode: Mode, shown: str, least: int) -> None:
    write_pairs(tmp_path, 60)
    # A good answer that comes after a useless one would make that one a pair that fails alone.
    with HostileServer(after(3, but(mode, delay=0.2))) as server:
        limits = ("-c", "judge.timeout=0.5", "-c", "judge.max_wait=2", "--concurrency", "8", "-c", "judge.attempts=3")
        done = run(tmp_path, server.url, *limits)
        # At most three for each of twenty pairs, and what was in flight.
        assert 3 + least <= len(server.requests) <= 3 + 60 + 8
    assert done.code == 2, done.said
    assert len(rows(tmp_path)) == len(grades(tmp_path)) == 3
    assert (done.data["failed"], done.data["left"]) == (0, 57)
    assert shown in done.said
    assert "labels.db" in done.data["resume"]


def test_useless_answers_among_good_ones_do_not_end_the_run(tmp_path) -> None:
    write_pairs(tmp_path, 50)
    useless = per_passage({number: says(PROSE) for number in range(1, 50, 2)})
    with HostileServer(useless) as server:
        done = run(tmp_path, server.url, "--concurrency", "1")
        assert len(server.requests) == 25 + 3 * 25
    assert (done.code, done.data["graded"], done.data["failed"]) == (1, 25, 25)
    assert done.data["errors"] == {"off_schema": 25}


# -- what fails alone -----------------------------------------------------------------------------


def test_what_fails_alone_is_a_failed_pair_with_its_reason(tmp_path) -> None:
    write_pairs(tmp_path, 20)
    modes: dict[int, tuple[Mode, str, int]] = {
        3: (FAILS_ONE["content_filter"], "content_filter", 1),
        4: (flagged, "content_filter", 1),
        5: (FAILS_ONE["too_long"], "too_long", 1),
        6: (FAILS_ONE["refusal"], "refusal", 1),
        7: (filtered, "content_filter", 1),
        8: (says(PROSE + " " + "x" * 2000), "off_schema", 3),
        9: (fails(500), "server_error", 3),
        10: (cut_off, "server_error", 3),
        11: (no_json, "server_error", 3),
        12: (html_page(502), "server_error", 3),
        13: (hangs, "timeout", 3),
        14: (fails(400, "Invalid 'messages[1]': this text cannot be read."), "rejected", 1),
        15: (but(good, content='{"reason": "an', finish="length"), "cut", 2),
    }
    server_mode = per_passage({number: mode for number, (mode, _, _) in modes.items()})
    with HostileServer(server_mode) as server:
        done = run(tmp_path, server.url, "-c", "judge.attempts=3", "-c", "judge.timeout=1", "-c", "judge.max_wait=30")
        asked = {number: server.asked[(number,)] for number in modes}
    stored = rows(tmp_path)
    assert {number: stored[number]["failure"] for number in modes} == {n: kind for n, (_, kind, _) in modes.items()}
    assert asked == {number: times for number, (_, _, times) in modes.items()}
    assert {number: stored[number]["attempts"] for number in modes} == asked
    assert all(stored[number]["error"] and stored[number]["grade"] is None for number in modes)
    assert stored[8]["last_answer"].startswith(PROSE)
    assert len(stored[8]["last_answer"]) == 500
    assert (done.code, done.data["graded"], done.data["failed"]) == (1, 20 - len(modes), len(modes))
    counts: dict[str, int] = {}
    for _, kind, _ in modes.values():
        counts[kind] = counts.get(kind, 0) + 1
    assert done.data["errors"] == counts


PASSING = [fails(500), cut_off, no_json, html_page(502), error_in_200(502), hangs]


@pytest.mark.parametrize("mode", [*(per_passage({2: once_each(bad)}) for bad in PASSING), first(1, hangs)])
def test_what_passes_is_asked_again(tmp_path, mode: Mode) -> None:
    write_pairs(tmp_path, 5)
    with HostileServer(mode) as server:
        done = run(tmp_path, server.url, "-c", "judge.timeout=1", "-c", "judge.max_wait=10")
        assert (done.code, len(server.requests)) == (0, 6), done.said
    assert len(grades(tmp_path)) == 5


def test_connections_that_end_unannounced_cost_nothing_but_requests(tmp_path) -> None:
    write_pairs(tmp_path, 40)
    with HostileServer(but(good, close=True)) as server:
        done = run(tmp_path, server.url, "-c", "judge.max_wait=10")
        assert len(server.requests) == 40
    assert (done.code, done.data["graded"]) == (0, 40)


def test_failed_pairs_are_asked_again_if_they_are_to_be(tmp_path) -> None:
    write_pairs(tmp_path, 10)
    modes = {1: FAILS_ONE["refusal"], 2: FAILS_ONE["too_long"], 3: FAILS_ONE["too_long"], 4: FAILS_ONE["refusal"]}
    with HostileServer(per_passage(modes)) as server:
        assert run(tmp_path, server.url).data["failed"] == 4
        server.requests.clear()
        again = run(tmp_path, server.url)
        assert (again.code, again.data["earlier_failures"], len(server.requests)) == (1, 4, 0)
        listed = cli(tmp_path, "labels", "info", "labels.db")
        assert listed.code == 0, listed.said
        assert "refusal" in listed.out
        assert "too_long" in listed.out
        server.mode = good
        rest = run(tmp_path, server.url, "--retry-failed")
        assert {request.passages for request in server.requests} == {(1,), (2,), (3,), (4,)}, rest.said
        assert (rest.code, rest.data["graded"], rest.data["earlier_failures"]) == (0, 4, 0)
    assert len(grades(tmp_path)) == 10


# -- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "arguments", "requests"),
    [
        pytest.param(hangs, (), 1, id="in the probe"),
        pytest.param(after(6, hangs), ("-c", "judge.timeout=500"), 8, id="in hanging reads"),
        pytest.param(after(6, wait(600)), ("-c", "judge.max_wait=1000"), 7, id="in a long Retry-After"),
        pytest.param(good, ("-c", "judge.rpm=60"), 2, id="between paced requests"),
        pytest.param(after(6, drips), ("-c", "judge.timeout=500"), 8, id="in a slow drip"),
        pytest.param(after(6, fails(500)), ("-c", "judge.max_wait=1000"), 9, id="between attempts"),
        pytest.param(but(good, delay=0.2), (), 8, id="in good answers"),
    ],
)
def test_ctrl_c_waits_for_no_answer(tmp_path, mode: Mode, arguments: tuple[str, ...], requests: int) -> None:
    """Each wait of these runs is longer than a run may take in a test, so that one that waits does not end."""
    write_pairs(tmp_path, 40)
    with HostileServer(mode) as server:
        process = Run(tmp_path, server.url, *arguments, json_format=False)
        server.wait_for(requests)
        time.sleep(0.3)
        done = process.interrupt()
        kept = sum(reply.status == 200 for _, reply in server.answered)
    assert done.code == 130, done.said
    assert len(server.requests) < 40
    assert "Traceback" not in done.said
    assert "rag-selectivity grade" in done.said
    stored = rows(tmp_path) if (tmp_path / "labels.db").exists() else {}
    assert all(row["grade"] is not None for row in stored.values())
    # An answer that the server has sent in the last moment may not have been read.
    assert kept - 16 <= len(stored) <= kept
    with HostileServer() as server:
        assert (run(tmp_path, server.url).code, len(server.requests)) == (0, 40 - len(stored))


def test_a_second_ctrl_c_ends_at_once(tmp_path) -> None:
    write_pairs(tmp_path, 20)
    with HostileServer(after(3, hangs)) as server:
        process = Run(tmp_path, server.url, "-c", "judge.timeout=500")
        server.wait_for(5)
        process.process.send_signal(2)
        time.sleep(0.05)
        done = process.interrupt()
        assert len(server.requests) < 20
    assert done.code in (130, -2)
