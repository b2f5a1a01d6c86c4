"""Two processes grade into one store and are killed twenty times, at random: nothing is lost, nothing half-written."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import rag_selectivity as rs
from tests.judge_server import KEY, JudgeServer, Reply, texts

pytestmark = pytest.mark.contract

QUERIES = {f"q{i}": f"question {i}?" for i in range(40)}
CORPUS = {f"d{i}": f"passage number {i}" for i in range(45)}
CONCURRENCY, KILLS = 6, 20


def grade_of(query: str, passage: str) -> int:
    return (int(re.search(r"\d+", query)[0]) * 7 + int(re.search(r"\d+", passage)[0])) % 5 + 1


def respond(request, n) -> Reply:
    said = texts(request)
    grade = grade_of(said["question"], said["passage"])
    return Reply(json.dumps({"reason": f"grade {grade}", "grade": grade}), delay=0.04)


# A process that has imported everything forks the graders, so that twenty of them start in a moment.
NURSERY = """
import os, sys
from pathlib import Path
import aiohttp
from rag_selectivity.grading.grade import grade
from rag_selectivity.grading.openai_judge import OpenAIJudge
from rag_selectivity.grading.limits import Limits

url, key, concurrency = sys.argv[1:]
for line in sys.stdin:
    order, _, number = line.strip().partition(" ")
    if order == "wait":
        print(os.waitstatus_to_exitcode(os.waitpid(int(number), 0)[1]), flush=True)
        continue
    child = os.fork()
    if child == 0:
        done = grade("queries.jsonl", "corpus.jsonl", "pool.trec", store="labels.db", progress=False,
                     judge=OpenAIJudge("m", base_url=url, api_key=key), limits=Limits(concurrency=int(concurrency)))
        os._exit(0 if done.left == done.failed == 0 else 3)
    print(child, flush=True)
"""


class Nursery:
    """Starts graders, and says how they ended."""

    def __init__(self, folder: Path, server: JudgeServer) -> None:
        command = [sys.executable, "-c", NURSERY, server.url, KEY, str(CONCURRENCY)]
        self._process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def start(self) -> int:
        """The number of a new grader."""
        return self._ordered("start")

    def kill(self, process: int) -> None:
        """End a grader at once; it must not have ended by itself."""
        os.kill(process, signal.SIGKILL)
        assert self.exit_code(process) == -signal.SIGKILL

    def exit_code(self, process: int) -> int:
        """The exit code of a grader, when it ends."""
        return self._ordered(f"wait {process}")

    def close(self) -> None:
        """End the process that starts graders."""
        self._process.communicate(timeout=60)

    def _ordered(self, order: str) -> int:
        self._process.stdin.write(order + "\n")
        return int(self._process.stdout.readline())


def stored(path: Path) -> set[tuple]:
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return set(file.execute("SELECT query_hash, passage_hash, grade, reason FROM labels"))


@pytest.mark.slow
def test_twenty_kills_of_two_processes_lose_nothing(tmp_path) -> None:
    for name, rows in (("queries", QUERIES), ("corpus", CORPUS)):
        lines = (json.dumps({"_id": id_, "text": text}) + "\n" for id_, text in rows.items())
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    ranked = [f"{q} Q0 {d} {i} {99 - i} t\n" for q in QUERIES for i, d in enumerate(CORPUS, 1)]
    (tmp_path / "pool.trec").write_text("".join(ranked))
    draw = random.Random(11)
    before: set[tuple] = set()
    with JudgeServer(respond) as server:
        nursery = Nursery(tmp_path, server)
        running = [nursery.start() for _ in range(2)]
        for _ in range(KILLS):
            wanted = len(server.requests) + draw.randrange(1, 90)
            while len(server.requests) < wanted:
                time.sleep(0.001)
            time.sleep(draw.random() * 0.05)
            place = draw.randrange(2)
            nursery.kill(running[place])
            after = stored(tmp_path / "labels.db")
            assert before <= after
            before = after
            running[place] = nursery.start()
        assert [nursery.exit_code(process) for process in running] == [0, 0]
        nursery.close()
        asked = dict(server.started)
    assert len(before) < len(asked) == len(QUERIES) * len(CORPUS)
    # A pair is paid for again where a kill took its call, and where both processes had it on its way.
    assert sum(asked.values()) - len(asked) <= 3 * KILLS * CONCURRENCY
    assert rs.read_qrels(tmp_path / "labels.db").to_dict() == {
        q: {d: grade_of(q, d) for d in sorted(CORPUS)} for q in QUERIES
    }
    assert {(grade, reason) for _, _, grade, reason in stored(tmp_path / "labels.db")} == {
        (grade, f"grade {grade}") for grade in range(1, 6)
    }
    with closing(sqlite3.connect(tmp_path / "labels.db")) as file:
        ranks = dict(file.execute("SELECT passage_id, rank FROM origins WHERE query_id = 'q0'").fetchall())
    assert ranks == {d: i for i, d in enumerate(CORPUS, 1)}
