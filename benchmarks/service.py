"""A service that grades, evaluates, compares and reports again and again in one process, with flat memory.

    python -m benchmarks.service [--repetitions 2000] [--runs 200] [--judgments 20000]

Many short runs of `grade`, each with a store and an endpoint of its own process; one run with many judgments; and
`evaluate`, `compare` and reports in JSON, text and HTML. After each kind of work the process may hold no task, no event
loop, no socket and no file more than before. `benchmarks/memory.py` says what flat means.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rag_selectivity as rs
from benchmarks.memory import Watch
from benchmarks.shared_store import grade_of, respond
from rag_selectivity.grading.limits import Limits
from rag_selectivity.grading.openai_judge import OpenAIJudge
from rag_selectivity.grading.store import Store
from rag_selectivity.results.stored import StoredReport
from tests.judge_server import KEY, JudgeServer

RUNS, JUDGMENTS = 200, 20_000
QUERIES, A_RUN = 40, 12
#: A page in HTML is made for one of so many evaluations.
A_PAGE = 200
_OPTIONS: Mapping[str, Any] = {
    "corpus_size": 60,
    "scale": "utility",
    "depths": [5],
    "measures": ["BoR", "RA-nWG", "Harm"],
    "bootstrap": rs.Bootstrap(resamples=100),
}
_COUNTED = (asyncio.Task, asyncio.AbstractEventLoop, Store, threading.Thread)


def held() -> Counter[str]:
    """What the process holds of what must be given back: objects by type, and open files by kind."""
    gc.collect()
    counts = Counter({kind.__name__: 0 for kind in _COUNTED})
    for each in gc.get_objects():
        for kind in _COUNTED:
            counts[kind.__name__] += isinstance(each, kind)
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        counts["sockets" if target.startswith("socket:") else "files"] += 1
    return counts


def _serve(urls: Any, end: Any) -> None:
    with JudgeServer(respond) as server:
        urls.put(server.url)
        end.wait()


@contextmanager
def endpoint() -> Iterator[str]:
    """The address of an endpoint in a process of its own, so that what it keeps is not counted."""
    context = multiprocessing.get_context("spawn")
    urls, end = context.Queue(), context.Event()
    process = context.Process(target=_serve, args=(urls, end), daemon=True)
    process.start()
    try:
        yield urls.get(timeout=60)
    finally:
        end.set()
        process.join()
        urls.close()
        urls.join_thread()


def _graded(pool: dict[str, list[str]], store: Path, judge: Any, concurrency: int) -> None:
    done = rs.grade(
        {query: f"question {query[1:]}?" for query in pool},
        {passage: f"passage number {passage[1:]}" for passages in pool.values() for passage in passages},
        pool,
        store=store,
        judge=judge,
        limits=Limits(concurrency=concurrency),
        progress=False,
    )
    assert (done.failed, done.left) == (0, 0), done


def short_runs(folder: Path, runs: int, watch: Watch) -> None:
    """Runs of `grade` with an endpoint, a new store for every tenth."""
    draw = random.Random(2)
    with endpoint() as url:
        for run in range(runs):
            queries = draw.sample(range(QUERIES), 3)
            pool = {f"q{q}": [f"d{draw.randrange(10**6)}" for _ in range(A_RUN // 3)] for q in queries}
            _graded(pool, folder / f"store-{run // 10}.db", OpenAIJudge("m", base_url=url, api_key=KEY), 4)
            gc.collect()  # garbage in circles is no loss
            watch.look(run)


def one_run(folder: Path, judgments: int, watch: Watch) -> None:
    """A run of `grade` with so many judgments, by a function as the judge; a third of the samples are of its start."""
    asked = 0

    async def judge(_messages: Any, _schema: Any) -> str:
        nonlocal asked
        asked += 1
        if asked % 50 == 0:
            watch.look(asked)
        await asyncio.sleep(0)
        return json.dumps({"reason": "so", "grade": asked % 5 + 1})

    each = max(1, judgments // QUERIES)
    _graded({f"q{q}": [f"d{d}" for d in range(each)] for q in range(QUERIES)}, folder / "large.db", judge, 32)
    assert asked >= each * QUERIES, asked


def evaluations(folder: Path, repetitions: int, watch: Watch) -> None:
    """`evaluate`, `compare`, and reports of them."""
    draw = random.Random(3)
    labels = {f"q{q}": {f"d{d}": grade_of(f"q{q}", f"p{d}") for d in range(0, 40, 2)} for q in range(A_RUN)}
    for repetition in range(repetitions):
        runs = {name: {f"q{q}": [f"d{d}" for d in draw.sample(range(60), 10)] for q in range(A_RUN)} for name in "ab"}
        report = rs.evaluate(labels, runs, **_OPTIONS)
        comparison = rs.compare(labels, runs, **_OPTIONS)
        report.save(folder / "report.json")
        StoredReport.read(folder / "report.json")
        for view in (str(report), str(comparison), report.to_markdown(), report.to_rows()):
            assert view
        if repetition % A_PAGE == 0:
            report.to_html()
        if repetition % 10 == 0:
            gc.collect()
            watch.look(repetition)


def run(folder: Path, repetitions: int, *, runs: int = RUNS, judgments: int = JUDGMENTS) -> bool:
    """Do all of it; whether the memory stayed flat, and nothing was left open."""
    good = True
    parts: dict[str, tuple[Callable[[Path, int, Watch], None], int]] = {
        "short runs of grade": (short_runs, runs),
        "judgments in one run": (one_run, judgments),
        "evaluations, comparisons and reports": (evaluations, repetitions),
    }
    warnings.simplefilter("ignore", rs.SelectivityWarning)
    for name, (work, count) in parts.items():
        if not count:
            continue
        place = folder / work.__name__
        place.mkdir(parents=True)
        work(place, max(1, count // 20), Watch())  # imports, and what is made once
        before, watch = held(), Watch()
        place = folder / f"{work.__name__}-watched"
        place.mkdir()
        work(place, count, watch)
        more = held() - before
        good &= watch.is_flat and not more
        print(f"{count:,} {name}")
        print("\n".join(watch.lines()))
        print(f"  left open: {dict(more) or 'nothing'}", flush=True)
    return good


def main() -> None:
    """The command; the exit code is 1 if something grew or was left open."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--judgments", type=int, default=JUDGMENTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        good = run(Path(name), options.repetitions, runs=options.runs, judgments=options.judgments)
    sys.exit(not good)


if __name__ == "__main__":
    main()
