"""Eight processes that use one label store at the same time: they grade, read, export and evaluate.

Three processes grade pairs that overlap, with a judge behind a local server; two read the store, two export it, and one
evaluates a run with it. No call may fail, and at the end the store holds the grade of every pair that was asked for.

    python -m benchmarks.shared_store [60]
"""

from __future__ import annotations

import json
import multiprocessing
import random
import re
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import rag_selectivity as rs
from rag_selectivity.grading.exchange import export_labels
from rag_selectivity.grading.limits import Limits
from rag_selectivity.grading.openai_judge import OpenAIJudge
from rag_selectivity.grading.store import Store
from tests.judge_server import KEY, JudgeServer, Reply, texts

QUERIES, PASSAGES, A_ROUND = 200, 100, 60
ROLES = ("grade", "grade", "grade", "read", "read", "export", "export", "evaluate")


def grade_of(query: str, passage: str) -> int:
    """The grade that the judge gives."""
    return (int(re.findall(r"\d+", query)[0]) * 7 + int(re.findall(r"\d+", passage)[0])) % 5 + 1


def respond(request: dict[str, Any], _: int) -> Reply:
    """The answer of the judge."""
    said = texts(request)
    return Reply(json.dumps({"reason": "so", "grade": grade_of(said["question"], said["passage"])}), delay=0.005)


def _grade(place: Path, url: str, draw: random.Random) -> Counter[str]:
    asked = draw.sample(range(QUERIES), 4)
    pool = {f"q{q}": [f"d{d}" for d in draw.sample(range(PASSAGES), A_ROUND // 4)] for q in asked}
    done = rs.grade(
        {f"q{i}": f"question {i}?" for i in range(QUERIES)},
        {f"d{i}": f"passage number {i}" for i in range(PASSAGES)},
        pool,
        store=place / "labels.db",
        judge=OpenAIJudge("m", base_url=url, api_key=KEY),
        limits=Limits(concurrency=8),
        progress=False,
    )
    assert (done.failed, done.left) == (0, 0), done
    with (place / f"asked-{multiprocessing.current_process().name}").open("a") as file:
        file.writelines(f"{q} {d}\n" for q, passages in pool.items() for d in passages)
    return Counter({"pairs asked for": sum(map(len, pool.values()))})


def _read(place: Path, _url: str, _draw: random.Random) -> Counter[str]:
    found = rs.read_qrels(place / "labels.db").to_dict()
    wrong = [(q, d) for q, grades in found.items() for d, grade in grades.items() if grade != grade_of(q, d)]
    assert not wrong, wrong[:3]
    return Counter({"reads": 1})


def _export(place: Path, _url: str, draw: random.Random) -> Counter[str]:
    # Both processes that export write the same files.
    with Store(place / "labels.db") as store:
        export_labels(store, place / draw.choice(["export.jsonl", "export.csv"]))
    return Counter({"exports": 1})


def _evaluate(place: Path, _url: str, draw: random.Random) -> Counter[str]:
    lists = {f"q{q}": [f"d{d}" for d in draw.sample(range(PASSAGES), 10)] for q in range(QUERIES)}
    report = rs.evaluate(place / "labels.db", lists, corpus_size=PASSAGES, depths=[10])
    report.save(place / "report.json")
    return Counter({"evaluations": 1})


_WORK: dict[str, Callable[[Path, str, random.Random], Counter[str]]] = {
    "grade": _grade,
    "read": _read,
    "export": _export,
    "evaluate": _evaluate,
}


def _work(role: str, number: int, place: Path, url: str, seconds: float, results: Any, together: Any) -> None:
    draw, done, errors = random.Random(number), Counter[str](), []
    # The imports of so many processes take as long as a short run.
    together.wait()
    until = time.time() + seconds
    while time.time() < until and len(errors) < 3:
        try:
            done += _WORK[role](place, url, draw)
        except BaseException:
            errors.append(f"{role}: {traceback.format_exc()}")
    results.put((done, errors))


def run(place: Path, seconds: float) -> bool:
    """Use one store for so long; whether nothing failed and no label is lost."""
    place.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with JudgeServer(respond) as server:
        _grade(place, server.url, random.Random(99))
        together = context.Barrier(len(ROLES))
        processes = [
            context.Process(
                target=_work, args=(role, number, place, server.url, seconds, results, together), name=f"p{number}"
            )
            for number, role in enumerate(ROLES)
        ]
        for process in processes:
            process.start()
        found = [results.get(timeout=seconds + 300) for _ in processes]
        for process in processes:
            process.join()
        answered = Counter(server.finished)
    done: Counter[str] = sum((each for each, _ in found), Counter())
    errors = [error for _, each in found for error in each]
    asked = {tuple(line.split()) for file in place.glob("asked-*") for line in file.read_text().splitlines()}
    grades = {(q, d): g for q, each in rs.read_qrels(place / "labels.db").to_dict().items() for d, g in each.items()}
    with closing(sqlite3.connect(place / "labels.db")) as file:
        whole = file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    lost = asked - grades.keys()
    wrong = [pair for pair, grade in grades.items() if grade != grade_of(*pair)]
    twice = sum(answered.values()) - len(answered)
    left = [path.name for path in place.iterdir() if ".partial" in path.name]
    print(f"one store, {len(processes)} processes, {seconds:.0f} s: {dict(done)}")
    print(
        f"  {len(asked):,} pairs asked for, {len(grades):,} in the store; lost {len(lost)}, wrong {len(wrong)}, paid "
        f"for twice {twice}; errors {len(errors)} (lock errors {sum('locked' in e or 'busy' in e for e in errors)}); "
        f"the file is whole: {'yes' if whole else 'no'}; partial files left: {len(left)}",
        flush=True,
    )
    for error in errors[:3]:
        print(error, flush=True)
    missing = {"pairs asked for", "reads", "exports", "evaluations"} - done.keys()
    return whole and not (lost or wrong or errors or left or missing)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        sys.exit(not run(Path(name) / "store", float(sys.argv[1]) if len(sys.argv) > 1 else 60))
