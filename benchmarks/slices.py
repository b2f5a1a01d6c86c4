"""What `--by` adds to an evaluation: 6,980 queries × 1,000 passages, 10 depths, several columns of slices.

    python -m benchmarks.slices

Labels and a run are measured with the default measures, depths and intervals, without and with slices: by one column of
a table (5 values), and by its three columns (5, 4 and 3 values) and the number of relevant passages together; by the
command with TREC files, by `rs.evaluate` with the same files, and with objects in memory. With and without take turns;
the processor's time counts, and the ratio is the median over the rounds. The figures of all queries must be the same.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import rag_selectivity as rs
from benchmarks.intervals import CORPUS_SIZE, LISTED, QUERIES, data
from benchmarks.speed_row import Row
from rag_selectivity.wording import counted

MOST_ADDED, ROUNDS = 0.2, 5
VALUES = {"language": 5, "type": 4, "customer": 3}


def table(path: Path, queries: list[str]) -> Path:
    """A table of the queries with values of unequal frequency."""
    rng = np.random.default_rng(0)
    columns = [
        rng.choice(count, len(queries), p=np.arange(1, count + 1) / sum(range(count + 1))) for count in VALUES.values()
    ]
    rows = (",".join([query, *map(str, row)]) for query, *row in zip(queries, *columns, strict=True))
    path.write_text("\n".join([",".join(["query_id", *VALUES]), *rows]) + "\n", encoding="utf-8")
    return path


def written(folder: Path) -> tuple[rs.Qrels, rs.Run]:
    """The labels and a run in memory, which are also files in the folder."""
    qrels, runs = data()
    run = runs["one"]
    labels = qrels.to_dict()
    with (folder / "qrels.trec").open("w") as file:
        file.writelines(f"{query} 0 {passage} 1\n" for query, row in labels.items() for passage in row)
    with (folder / "run.trec").open("w") as file:
        for query, passages in run.to_dict().items():
            file.writelines(f"{query} Q0 {passage} {i} {LISTED - i} one\n" for i, passage in enumerate(passages, 1))
    return qrels, run


#: The processor's time of an evaluation, what the figures of all queries are, and the number of slices of each column.
Measured = tuple[float, str, list[int]]


def measured(qrels: Any, run: Any, by: list[str]) -> Measured:
    """A call in this process."""
    start = time.process_time()
    report = rs.evaluate(qrels, {"run": run}, corpus_size=CORPUS_SIZE, by=by or None)
    seconds = time.process_time() - start
    of_run = report.runs["run"]
    return seconds, repr(of_run.estimates), [len(each) for each in of_run.slices.values()]


def measured_command(qrels: Path, run: Path, by: list[str]) -> Measured:
    """The command in a process of its own, from its start to the printed tables."""
    given = ["--qrels", str(qrels), "--run", f"run={run}", "--corpus-size", str(CORPUS_SIZE)]
    before = _seconds_of_children()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "rag_selectivity",
            "evaluate",
            *given,
            *(part for each in by for part in ("--by", each)),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds = _seconds_of_children() - before
    of_all, *tables = done.stdout.partition("\nSystem: ")[0].split("\nrun by ")
    return seconds, of_all, [each.split("\n\n")[1].count("\n") for each in tables]


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compared(what: str, measure: Callable[..., Measured], qrels: Any, run: Any, by: list[str]) -> Row:
    """The evaluation without and with slices, in turns."""
    ratios, plain, sliced = [], [], []
    for _ in range(ROUNDS):
        without, figures, _ = measure(qrels, run, [])
        with_slices, same_figures, slices = measure(qrels, run, by)
        if figures.split() != same_figures.split():
            raise SystemExit("the figures of all queries differ with slices")
        plain.append(without)
        sliced.append(with_slices)
        ratios.append(with_slices / without)
    added = statistics.median(ratios) - 1
    return Row(
        f"slices, {what}: {QUERIES:,} queries, 10 depths, {sum(slices)} slices of "
        f"{counted(len(slices), 'column', 'columns')}",
        f"≤ {MOST_ADDED:.0%} more than the evaluation",
        f"{statistics.median(sliced):.2f} s of processor time, {added:+.0%}",
        f"the evaluation without slices {statistics.median(plain):.2f} s",
        added <= MOST_ADDED,
    )


def rows() -> Iterable[Row]:
    """The command, a call with files, and one with objects in memory, which leaves out the reading."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        qrels, run = written(folder)
        files = folder / "qrels.trec", folder / "run.trec"
        path = table(folder / "by.csv", list(qrels.to_dict()))
        for by in ([f"{path}:language"], [str(path), "R"]):
            yield compared("the command", measured_command, *files, by)
            yield compared("a call with files", measured, *files, by)
            yield compared("a call with objects", measured, qrels, run, by)


def main() -> None:
    for row in rows():
        print(f"{row.work}\n  to reach {row.reach}; measured {row.measured}; peer: {row.peer}", flush=True)


if __name__ == "__main__":
    main()
