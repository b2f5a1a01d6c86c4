"""Two processes that grade into one store, killed again and again: nothing is lost, nothing is paid for twice."""

import random
import sqlite3
import time
from contextlib import closing

import pytest

from tests.endpoint_runs import Run, grades, run, write_pairs
from tests.hostile_server import HostileServer, but, good, grade_of

pytestmark = pytest.mark.contract

PAIRS, KILLS, CONCURRENCY = 600, 20, 4


@pytest.mark.slow
def test_twenty_kills_of_two_processes_lose_nothing(tmp_path) -> None:
    write_pairs(tmp_path, PAIRS)
    moments, in_flight = random.Random(7), 0
    with HostileServer(but(good, delay=0.05)) as server:
        before: dict[int, int] = {}
        for _ in range(KILLS):
            begun = len(server.requests)
            processes = [Run(tmp_path, server.url, "--concurrency", str(CONCURRENCY)) for _ in range(2)]
            end = time.monotonic() + 20
            while len(server.requests) < begun + 4 and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(moments.uniform(0, 0.3))
            for process in processes:
                process.process.kill()
                process.finish()
            in_flight += 2 * CONCURRENCY
            with closing(sqlite3.connect(tmp_path / "labels.db")) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            stored = grades(tmp_path)
            assert before.items() <= stored.items()
            # Whatever the server has answered is stored, but for what was in flight at a kill.
            assert len(stored) >= len({request.passages for request, _ in server.answered}) - in_flight
            before = stored
        done = run(tmp_path, server.url)
        assert (done.code, done.data["failed"], done.data["left"]) == (0, 0, 0), done.said
        repeated = sum(times - 1 for times in server.asked.values())
    assert grades(tmp_path) == {number: grade_of(number) for number in range(PAIRS)}
    # And what both asked at once after a start, before one of them turned to the other end.
    assert repeated <= 3 * in_flight
