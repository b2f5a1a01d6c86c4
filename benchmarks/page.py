"""A page of 6,980 queries × 50 passages with texts: the time to make it, its size, and the time to open it.

    python -m benchmarks.page [--queries 6980] [--small]

The data is made by the script: two runs of 50 passages, labels of 12 passages a query on the utility scale, and texts
of 350 characters on average. `report` and `evaluate` of the same files run in processes of their own. The page is
opened in Chromium if there is one; it is open when the table of queries is painted. `--small` adds one of 225 queries.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed_row import Row

QUERIES, SMALL = 6980, 225
DEPTH, JUDGED, FOR_A_QUERY, SEED = 50, 12, 80, 5
MOST_SECONDS, MOST_MEGABYTES, MOST_OPENING = 10.0, 10.0, 2.0
OPENINGS = 5


def generate(folder: Path, queries: int) -> None:
    """Runs, labels, queries and a corpus in which each passage is retrieved for 1.6 queries on average."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    size = queries * DEPTH
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = ["".join(letters[rng.integers(0, 26, n)]) for n in rng.integers(2, 11, 30_000).tolist()]
    shares = np.cumsum(1 / np.arange(1, len(vocabulary) + 1))

    def texts(lengths: list[int]) -> Iterator[str]:
        for count in lengths:
            drawn = np.searchsorted(shares, rng.random(count) * shares[-1])
            yield " ".join([vocabulary[i] for i in drawn.tolist()])

    for name, ids, lengths in (
        ("corpus", range(1_000_000, 1_000_000 + 20 * size, 20), rng.integers(25, 95, size).tolist()),
        ("queries", range(5_000_000, 5_000_000 + 7 * queries, 7), [6] * queries),
    ):
        with (folder / f"{name}.jsonl").open("w") as file:
            for id_, text in zip(ids, texts(lengths), strict=True):
                file.write(json.dumps({"_id": str(id_), "text": text}) + "\n")
    skills = {"bm25": 0.4, "dense": 1.0}
    files = {name: (folder / f"{name}.trec").open("w") for name in skills}
    with (folder / "qrels.trec").open("w") as qrels:
        for query in range(5_000_000, 5_000_000 + 7 * queries, 7):
            passages = (1_000_000 + 20 * rng.permutation(rng.integers(0, size, 2 * FOR_A_QUERY))).tolist()
            passages = list(dict.fromkeys(passages))[:FOR_A_QUERY]
            grades = rng.choice([5, 4, 3, 2, 1], JUDGED, p=[0.1, 0.1, 0.2, 0.3, 0.3])
            qrels.writelines(f"{query} 0 {passages[i]} {grade}\n" for i, grade in enumerate(grades.tolist()))
            for name, skill in skills.items():
                scores = rng.normal(10, 1, len(passages))
                scores[:JUDGED] += skill * (grades - 2)
                order = np.argsort(-scores)[:DEPTH].tolist()
                files[name].writelines(
                    f"{query} Q0 {passages[i]} {rank} {scores[i]:.6f} {name}\n" for rank, i in enumerate(order, 1)
                )
    for file in files.values():
        file.close()


def command(name: str, folder: Path) -> list[str]:
    words = ["--qrels", "qrels.trec", "--run", "bm25.trec", "--run", "dense.trec", "--scale", "utility", "--k", "10"]
    words += ["--corpus", "corpus.jsonl", "--output", "report.html" if name == "report" else "figures.json"]
    more = ["--queries", "queries.jsonl"] if name == "report" else ["--depths", "1,2,5,10,20,50"]
    return [name, *(str(folder / word) if "." in word else word for word in (*words, *more))]


def seconds_to_open(page: Path) -> float | None:
    """The median of some openings in Chromium; None where there is none, or nothing to drive it."""
    from tests.browser import chromium_program

    program = chromium_program()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if program is None:
        return None
    seconds = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for _ in range(OPENINGS):
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            tab = context.new_page()
            start = time.perf_counter()
            tab.goto(page.as_uri())
            tab.wait_for_selector("html[data-explorer=ready]")
            # The second frame begins when the first one, with the table, is painted.
            tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            seconds.append(time.perf_counter() - start)
            if tab.locator("#x-queries tbody tr").count() < 6:
                raise RuntimeError("the table of queries has no rows")
            context.close()
        browser.close()
    return statistics.median(seconds)


def child(name: str, folder: Path, queries: int) -> Any:
    """What a process of its own does; it prints the result as JSON."""
    if name == "generate":
        return generate(folder, queries)
    if name == "open":
        return seconds_to_open(folder / "report.html")
    from rag_selectivity.cli.app import app

    start = time.perf_counter()
    app(command(name, folder), standalone_mode=False)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": time.perf_counter() - start,
        "cpu": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1000,
    }


def result_of(name: str, folder: Path, queries: int) -> Any:
    words = [sys.executable, "-m", "benchmarks.page", "--child", name, str(folder), "--queries", str(queries)]
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr.strip()}")
    result = json.loads(done.stdout.splitlines()[-1])
    if isinstance(result, dict):
        # The whole process, with its imports.
        result["seconds"] = time.perf_counter() - start
    return result


def row_of(queries: int) -> Row:
    """The figures of a page of so many queries."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        result_of("generate", folder, queries)
        figures = {name: result_of(name, folder, queries) for name in ("evaluate", "report")}
        size = (folder / "report.html").stat().st_size / 1e6
        opening = result_of("open", folder, queries)
    report, evaluate = figures["report"], figures["evaluate"]
    opened = "opening not measured: no Chromium" if opening is None else f"opens in {opening:.1f} s"
    reached = None
    if isinstance(opening, float):
        reached = report["seconds"] <= MOST_SECONDS and size <= MOST_MEGABYTES and opening <= MOST_OPENING
    return Row(
        f"report.html, {queries:,} queries × {DEPTH} passages with texts",
        f"≤ {MOST_SECONDS:g} s, ≤ {MOST_MEGABYTES:g} MB, opens in ≤ {MOST_OPENING:g} s",
        f"{_told(report)}, page of {size:.1f} MB, {opened}",
        f"evaluate: {_told(evaluate)}; the page takes {report['cpu'] / evaluate['cpu']:.1f} × its CPU",
        reached,
    )


def _told(figures: dict[str, float]) -> str:
    return f"{figures['seconds']:.1f} s (CPU {figures['cpu']:.1f} s), {figures['megabytes']:.0f} MB of memory"


def rows(sizes: Sequence[int] = (QUERIES,)) -> Iterable[Row]:
    """The rows of the table of speed."""
    return map(row_of, sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--small", action="store_true", help=f"a page of {SMALL} queries too")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, folder = arguments.child
        print(json.dumps(child(name, Path(folder), arguments.queries)))
        return
    for row in rows((*([SMALL] if arguments.small else []), arguments.queries)):
        told = {True: "reached", False: "not reached", None: "not measured"}[row.reached]
        print(f"{row.work}\n  to reach  {row.reach}: {told}\n  measured  {row.measured}\n  peer      {row.peer}")


if __name__ == "__main__":
    main()
