"""Loading and measuring 7 million rows from tables and frames, beside the same rows as a TREC file.

    python benchmarks/columns.py [--queries 6980] [--depth 1000] [--rounds 3]

Every reading has a process of its own. Times include reading a file and leave out making a frame; memory is the peak of
the process for a file, and the peak above the frame itself for a frame. All figures must agree, or the script fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

if __package__:
    from benchmarks import load_and_measure
    from benchmarks.speed_row import Row
else:
    import load_and_measure
    from speed_row import Row

FOLDER = Path(tempfile.gettempdir()) / "rag-selectivity-columns"
FRAMES = ("Arrow table", "polars", "pandas", "pandas of objects", "pandas of whole numbers")
FILES = {"TREC": "run.trec", "Parquet": "run.parquet", "CSV": "run.csv", "JSONL": "run.jsonl"}
MOST_MEGABYTES = 150


def generate(folder: Path) -> None:
    """The rows of the TREC file as a table in every format; made once."""
    queries, depth = map(int, folder.name.split("x"))
    load_and_measure.generate(folder, queries, depth)
    done = folder / f"tables.{(folder / 'run.trec').stat().st_size}"
    if done.exists():
        return
    import pyarrow
    from pyarrow import csv, parquet

    table = csv.read_csv(
        folder / "run.trec",
        csv.ReadOptions(column_names=["query_id", "q0", "doc_id", "rank", "score", "tag"]),
        csv.ParseOptions(delimiter=" "),
        csv.ConvertOptions(
            include_columns=["query_id", "doc_id", "score"],
            column_types={"query_id": pyarrow.string(), "doc_id": pyarrow.string(), "score": pyarrow.float64()},
        ),
    )
    parquet.write_table(table, folder / "run.parquet")
    csv.write_csv(table, folder / "run.csv", csv.WriteOptions(quoting_style="none"))
    with (folder / "run.jsonl").open("w") as lines:
        for batch in table.to_batches():
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                lines.write('{{"query_id": "{}", "doc_id": "{}", "score": {!r}}}\n'.format(*row))
    done.touch()


def frame_of(kind: str, path: Path) -> Any:
    from pyarrow import parquet

    if kind == "Arrow table":
        return parquet.read_table(path)
    if kind == "polars":
        import polars

        return polars.read_parquet(path)
    frame = parquet.read_table(path).to_pandas()
    types = {"pandas of objects": object, "pandas of whole numbers": "int64"}
    return frame.astype(dict.fromkeys(("query_id", "doc_id"), types[kind])) if kind in types else frame


def peak_megabytes() -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def child(contender: str, folder: Path) -> None:
    if contender == "generate":
        generate(folder)
        return
    run: Any = folder / FILES[contender] if contender in FILES else frame_of(contender, folder / "run.parquet")
    before = 0.0
    if contender not in FILES:
        with contextlib.suppress(OSError):
            # Linux then counts the peak from here on.
            Path("/proc/self/clear_refs").write_text("5")
        before = peak_megabytes()
    start, start_of_cpu = time.perf_counter(), time.process_time()
    import rag_selectivity as rs

    report = rs.evaluate(
        rs.read_qrels(folder / "qrels.trec"),
        {"run": run},
        corpus_size=load_and_measure.CORPUS_SIZE,
        measures=["Success", "BoR"],
        policy="trec_eval",
        bootstrap=None,
    )
    figures = {str(depth): report["run", f"BoR@{depth}"].value for depth in report.depths}
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_of_cpu
    print(json.dumps({"seconds": seconds, "cpu": cpu, "megabytes": peak_megabytes() - before, "figures": figures}))


def measured(contender: str, folder: Path) -> dict[str, Any] | None:
    """The figures of a process of its own; None if a library is missing."""
    command = [sys.executable, "-W", "ignore", __file__, "--child", contender, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "ModuleNotFoundError" in done.stderr:
        return None
    if done.returncode:
        sys.exit(f"{contender}: {done.stderr.strip().splitlines()[-1]}")
    return dict(json.loads(done.stdout.splitlines()[-1])) if done.stdout else None


def rows(queries: int = 6980, depth: int = 1000, rounds: int = 3) -> Iterable[Row]:
    """A row for each kind of table, the best of some rounds."""
    folder = FOLDER / f"{queries}x{depth}"
    measured("generate", folder)
    best: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for contender in (*FILES, *FRAMES):
            result = measured(contender, folder)
            if result is None:
                continue
            known = best.setdefault(contender, result)
            for figure in ("seconds", "cpu", "megabytes"):
                known[figure] = min(known[figure], result[figure])
            if result["figures"] != best["TREC"]["figures"]:
                sys.exit(f"{contender}: its figures differ from those of the TREC file")
    trec = best.pop("TREC")
    of_trec = f"TREC {trec['seconds']:.2f} s ({trec['cpu']:.2f} CPU), {trec['megabytes']:.0f} MB"
    for contender, result in best.items():
        most = 2 if contender in ("CSV", "JSONL") else 1.3
        ratio = result["seconds"] / trec["seconds"]
        yield Row(
            work=f"{contender}, {queries * depth / 1e6:.1f} M rows, load and measure",
            reach=f"≤ {most} × TREC's time" + ("" if most == 2 else f", ≤ {MOST_MEGABYTES} MB"),
            measured=(
                f"{result['seconds']:.2f} s ({result['cpu']:.2f} CPU), {result['megabytes']:.0f} MB"
                f"{' above the frame' if contender in FRAMES else ''}: {ratio:.2f} ×"
            ),
            peer=of_trec,
            reached=ratio <= most and (most == 2 or result["megabytes"] <= MOST_MEGABYTES),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER, help=argparse.SUPPRESS)
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.folder)
        return
    for row in rows(arguments.queries, arguments.depth, arguments.rounds):
        print(
            f"{row.work}\n    {row.measured} | {row.peer} | {row.reach} | {'reached' if row.reached else 'NOT reached'}"
        )


if __name__ == "__main__":
    main()
