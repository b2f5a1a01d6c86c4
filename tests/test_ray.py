"""On a real local Ray: the digits of `evaluate`, and grading that survives a worker that is killed in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.contract

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

ROOT = Path(__file__).resolve().parents[1]


def in_a_process_of_its_own(code: str, tmp_path: Path) -> str:
    """Ray starts processes and threads that would outlive a test."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
        },
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


START = """
import logging, os, sys, warnings
warnings.simplefilter("ignore")
import ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
ray.data.DataContext.get_current().enable_progress_bars = False
import rag_selectivity as rs
"""


def test_the_digits_are_those_of_evaluate_whatever_the_parts(tmp_path) -> None:
    printed = in_a_process_of_its_own(
        START
        + """
from tests.test_engines import SETTINGS, tables, whole
from tests.test_out_of_core import same
run, qrels = (ray.data.from_arrow(table).repartition(5) for table in tables())
for parts in (1, 7):
    same(whole(), rs.ray.evaluate(run, qrels, parts=parts, **SETTINGS))
    print("same", parts)
try:
    rs.ray.evaluate(run, qrels, parts=0)
except rs.InputError as error:
    print(error)
""",
        tmp_path,
    )
    assert "same 1" in printed
    assert "same 7" in printed
    assert "parts must be a whole number" in printed


def test_a_killed_worker_costs_only_its_own_batch(tmp_path) -> None:
    printed = in_a_process_of_its_own(
        START
        + """
import pathlib, signal, time
folder = pathlib.Path.cwd()

def make_judge():
    calls = folder / "calls"
    calls.mkdir(exist_ok=True)
    async def judge(messages, schema):
        import asyncio, re
        number = int(re.findall(r"passage d(\\d+)", messages[1]["content"])[0])
        await asyncio.sleep(0.02)
        with open(calls / f"{os.getpid()}-{number}-{time.time_ns()}", "w"):
            pass
        # Once, in the middle of a batch, this worker dies as if its machine had gone.
        if number == 70 and not (folder / "killed").exists():
            (folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"reason": "r", "grade": 1 + number % 5}
    return judge

rows = [
    {"query_id": f"q{i // 10}", "passage_id": f"d{i}", "query": f"question {i // 10}", "passage": f"passage d{i}"}
    for i in range(120)
]
done = rs.ray.grade(
    ray.data.from_items(rows).repartition(6), store=folder / "labels.db", judge=make_judge, workers=2, batch=20
)
print("counted", done)
asked = [int(name.name.split("-")[1]) for name in (folder / "calls").iterdir()]
again = {number for number in asked if asked.count(number) > 1}
print("killed", (folder / "killed").exists(), "again", len(again), "of one batch", len({n // 20 for n in again}) <= 1)
grades = rs.read_qrels(folder / "labels.db").to_dict()
right = all(grade == 1 + int(d[1:]) % 5 for row in grades.values() for d, grade in row.items())
print("grades", sum(map(len, grades.values())), right)
before = len(asked)
more = rs.ray.grade(
    ray.data.from_items(rows).repartition(6), store=folder / "labels.db", judge=make_judge, workers=2, batch=20
)
print("second run", more["graded"], len(list((folder / "calls").iterdir())) - before)
""",
        tmp_path,
    )
    assert "'graded': 120, 'failed': 0" in printed
    assert "killed True" in printed
    assert "of one batch True" in printed
    assert "grades 120 True" in printed
    assert "second run 120 0" in printed


def test_the_limit_is_shared_by_all_workers(tmp_path) -> None:
    printed = in_a_process_of_its_own(
        START
        + """
import time
def make_judge():
    async def judge(messages, schema):
        return {"reason": "r", "grade": 3}
    return judge
rows = [{"query_id": "q", "passage_id": f"d{i}", "query": "q", "passage": f"p{i}"} for i in range(24)]
ray.data.from_items(rows[:1]).map_batches(lambda t: t).materialize()
start = time.monotonic()
rs.ray.grade(ray.data.from_items(rows).repartition(4), store="s.db", judge=make_judge, workers=2, batch=6, rpm=240)
print("seconds", time.monotonic() - start)
""",
        tmp_path,
    )
    # 24 requests at four a second, whichever worker sends them: the last may start after 5.75 s.
    assert float(printed.split("seconds ")[1]) > 5.5
