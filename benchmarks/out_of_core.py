"""Runs larger than memory: 1, 10 and 100 million rows of Parquet, rate and peak memory, and how they grow.

    python benchmarks/out_of_core.py [--rows 1,10,100] [--memory 900] [--folder FOLDER]

Each size is measured in a process of its own, after the data were written; the reference is pyarrow reading the very
same columns and nothing else, in the same minute. Rows are in the order of their queries, in ten files.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PER_QUERY, CORPUS = 100, 8_841_823


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


def measure(folder: Path, memory: int) -> None:
    """In a process of its own: JSON with seconds, the reference's seconds, megabytes and the figures."""
    from pyarrow import parquet

    start = time.perf_counter()
    for file in sorted((folder / "run").glob("*.parquet")):
        for _ in parquet.ParquetFile(file).iter_batches(1 << 18):
            pass
    plain = time.perf_counter() - start

    from rag_selectivity.scale.out_of_core import evaluate_out_of_core

    start = time.perf_counter()
    report = evaluate_out_of_core(
        folder / "qrels", {"run": folder / "run"}, corpus_size=CORPUS, memory=memory, folder=folder, resamples=1000
    )
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    cell = report["BoR@10"]
    print(json.dumps({"seconds": seconds, "plain": plain, "MB": peak, "BoR@10": [cell.value, cell.low, cell.high]}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="1,10,100", help="millions")
    parser.add_argument("--memory", type=int, default=900, help="megabytes")
    parser.add_argument("--folder", type=Path, help="for the data; default: the system's")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.memory)
        return
    print(f"{'rows':>12} {'seconds':>8} {'rows/s':>12} {'× reading':>10} {'MB':>6}   BoR@10")
    for millions in map(float, options.rows.split(",")):
        rows = int(millions * 1_000_000)
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            write(Path(name), rows)
            words = [sys.executable, __file__, "--measure", name, "--memory", str(options.memory)]
            done = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        value, low, high = done["BoR@10"]
        seconds = done["seconds"]
        print(
            f"{rows:12,} {seconds:8.1f} {rows / seconds:12,.0f} {seconds / done['plain']:10.1f} "
            f"{done['MB']:6.0f}   {value:.4f} [{low:.4f}, {high:.4f}]",
            flush=True,
        )


if __name__ == "__main__":
    main()
