"""Runs larger than memory: 1, 10 and 100 million rows of Parquet, CPU time and peak memory, and how they grow.

    python benchmarks/out_of_core.py [--rows 1,10,100] [--memory 200] [--folder FOLDER]

Each size is written, read and measured by processes of their own. The reference is pyarrow reading the same columns
and nothing else, in the same minute. Rows are in the order of their queries, in ten files.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __package__:
    from benchmarks.speed_row import Row
else:
    from speed_row import Row

PER_QUERY, CORPUS = 100, 8_841_823
MILLIONS, MEMORY = 10, 200


def write(folder: Path, rows: int) -> None:
    """A made-up run and its qrels: every query has one relevant passage, found in two of three at a random rank."""
    import pyarrow
    from pyarrow import parquet

    rng = np.random.default_rng(7)
    queries, files = rows // PER_QUERY, 10
    for kind in ("run", "qrels"):
        (folder / kind).mkdir()
    for number, some in enumerate(np.array_split(np.arange(queries), files)):
        codes = np.repeat(np.arange(len(some), dtype=np.int32), PER_QUERY)
        names = pyarrow.array([f"q{query}" for query in some.tolist()])
        passages = rng.integers(0, CORPUS, len(codes))
        relevant = rng.integers(0, CORPUS, len(some))
        found = np.flatnonzero(rng.random(len(some)) < 2 / 3)
        passages[found * PER_QUERY + rng.integers(0, PER_QUERY, len(found))] = relevant[found]
        table = pyarrow.table(
            {
                "query_id": pyarrow.DictionaryArray.from_arrays(codes, names),
                "passage_id": pyarrow.array(passages).cast(pyarrow.string()),
                "score": np.tile(np.arange(PER_QUERY, 0, -1, dtype=np.float32), len(some)),
            }
        )
        parquet.write_table(table, folder / "run" / f"part-{number}.parquet", row_group_size=1 << 20)
        labels = {"query_id": names, "passage_id": pyarrow.array(relevant).cast(pyarrow.string())}
        labels["grade"] = np.ones(len(some), np.int8)
        parquet.write_table(pyarrow.table(labels), folder / "qrels" / f"part-{number}.parquet")


def read(folder: Path) -> None:
    """Read the run and do nothing else."""
    from pyarrow import parquet

    for file in sorted((folder / "run").glob("*.parquet")):
        for _ in parquet.ParquetFile(file).iter_batches(1 << 18):
            pass


def measure(folder: Path, memory: int) -> list[float]:
    """Success@10 and its interval."""
    from rag_selectivity.scale.out_of_core import evaluate_out_of_core

    report = evaluate_out_of_core(
        folder / "qrels", {"run": folder / "run"}, corpus_size=CORPUS, memory=memory, folder=folder, resamples=1000
    )
    cell = report["Success@10"]
    return [cell.value, cell.low, cell.high]


@dataclass(frozen=True, slots=True)
class Taken:
    """What a process took; `megabytes` is its highest use of memory."""

    seconds: float
    cpu: float
    megabytes: float
    figures: list[float] | None


def in_a_process(work: str, folder: Path, number: int = 0) -> Taken:
    """Do some work in a process of its own."""
    words = [sys.executable, "-W", "ignore", __file__, "--work", work, "--folder", str(folder), "--number", str(number)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return Taken(**json.loads(done.stdout))


def peak() -> float:
    """The highest use of memory in MB; `getrusage` would count what the parent had when it started this process."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def compared(millions: float, memory: int, folder: Path | None) -> tuple[Taken, Taken]:
    """What measuring takes, and what reading takes."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        in_a_process("write", Path(name), int(millions * 1_000_000))
        return in_a_process("measure", Path(name), memory), in_a_process("read", Path(name))


def rows(millions: float = MILLIONS, memory: int = MEMORY, folder: Path | None = None) -> Iterable[Row]:
    """The limit of memory; `millions` of rows may be 100."""
    ours, reading = compared(millions, memory, folder)
    yield Row(
        f"--memory {memory}, {millions:g} M rows of Parquet",
        f"≤ {memory} MB",
        f"{ours.megabytes:.0f} MB, {ours.cpu:.1f} CPU s, {ours.cpu / reading.cpu:.0f} × reading",
        f"pyarrow, reading alone: {reading.megabytes:.0f} MB, {reading.cpu:.1f} CPU s",
        ours.megabytes <= memory,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="1,10,100", help="millions")
    parser.add_argument("--memory", type=int, default=MEMORY, help="megabytes")
    parser.add_argument("--folder", type=Path, help="for the data; default: the system's")
    parser.add_argument("--work", choices=["write", "read", "measure"], help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        start, figures = time.perf_counter(), None
        if options.work == "write":
            write(options.folder, options.number)
        elif options.work == "read":
            read(options.folder)
        else:
            figures = measure(options.folder, options.number)
        spent = time.perf_counter() - start, time.process_time(), peak()
        print(json.dumps(dict(zip(("seconds", "cpu", "megabytes"), spent, strict=True)) | {"figures": figures}))
        return
    print(f"{'rows':>12} {'seconds':>8} {'CPU s':>7} {'rows/CPU s':>11} {'× reading':>10} {'MB':>6}   Success@10")
    sizes = [float(millions) for millions in options.rows.split(",")]
    taken = []
    for millions in sizes:
        ours, reading = compared(millions, options.memory, options.folder)
        taken.append(ours.cpu)
        value, low, high = ours.figures or (float("nan"),) * 3
        print(
            f"{int(millions * 1e6):12,} {ours.seconds:8.1f} {ours.cpu:7.1f} {millions * 1e6 / ours.cpu:11,.0f} "
            f"{ours.cpu / reading.cpu:10.1f} {ours.megabytes:6.0f}   {value:.4f} [{low:.4f}, {high:.4f}]",
            flush=True,
        )
    if len(sizes) > 1:
        slope = np.polyfit(np.log(sizes), np.log(taken), 1)[0]
        print(f"CPU time grows with the {slope:.2f}th power of the rows")


if __name__ == "__main__":
    main()
