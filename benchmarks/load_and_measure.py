"""Reading and measuring a run of 7 million rows: rag-selectivity beside pytrec_eval and ranx.

    python benchmarks/load_and_measure.py [--queries 6980] [--depth 1000] [--with-ranx]

Every contender has a process of its own, so that its peak memory is its own; times include reading
the files. The success rates of rag-selectivity and pytrec_eval must agree, or the script fails.
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
from typing import Any

import numpy as np

CORPUS_SIZE = 8_841_823
SUCCESS_DEPTHS = (1, 5, 10)
ALL_DEPTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SEED = 3


def generate(folder: Path, queries: int, depth: int) -> None:
    """A run with scores of six decimals, its qrels, and the run with all its lines shuffled; made once."""
    done = folder / f"made.{queries}.{depth}"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    lines: list[bytes] = []
    with (folder / "qrels.trec").open("w") as qrels, (folder / "run.trec").open("wb") as run:
        for query in range(1_000_000, 1_000_000 + queries):
            passages = rng.choice(CORPUS_SIZE, depth, replace=False).tolist()
            scores = np.sort(rng.gamma(4, 3, depth))[::-1].tolist()
            rows = [
                f"{query} Q0 {passage} {rank} {score:.6f} bm25\n".encode()
                for rank, (passage, score) in enumerate(zip(passages, scores, strict=True), 1)
            ]
            run.writelines(rows)
            lines.extend(rows)
            for place in rng.integers(0, int(1.3 * depth), size=1 + (rng.random() < 0.07)):
                judged = passages[place] if place < depth else CORPUS_SIZE + place
                qrels.write(f"{query} 0 {judged} 1\n")
    with (folder / "shuffled.trec").open("wb") as shuffled:
        shuffled.writelines(lines[i] for i in rng.permutation(len(lines)).tolist())
    done.touch()


def ours(folder: Path, name: str, *, intervals: bool = False) -> dict[str, float]:
    import rag_selectivity as rs

    report = rs.evaluate(
        rs.read_qrels(folder / "qrels.trec"),
        {"run": folder / name},
        corpus_size=CORPUS_SIZE,
        measures=["Success", "BoR"],
        policy="trec_eval",
        bootstrap=rs.Bootstrap() if intervals else None,
    )
    return {str(k): report["run", f"Success@{k}"].value for k in SUCCESS_DEPTHS if k in report.depths}


def pytrec(folder: Path, name: str = "run.trec") -> dict[str, float]:
    import pytrec_eval

    with (folder / "qrels.trec").open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    with (folder / name).open() as file:
        run = pytrec_eval.parse_run(file)
    wanted = {"success." + ",".join(map(str, SUCCESS_DEPTHS)), "recall." + ",".join(map(str, ALL_DEPTHS))}
    results = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    return {str(k): float(np.mean([row[f"success_{k}"] for row in results.values()])) for k in SUCCESS_DEPTHS}


def ranx(folder: Path) -> dict[str, float]:
    from ranx import Qrels, Run, evaluate

    qrels = Qrels.from_file(str(folder / "qrels.trec"), kind="trec")
    run = Run.from_file(str(folder / "run.trec"), kind="trec")
    rates: Any = evaluate(qrels, run, [f"hit_rate@{k}" for k in ALL_DEPTHS])
    return {str(k): float(rates[f"hit_rate@{k}"]) for k in SUCCESS_DEPTHS}


CONTENDERS = {
    "pytrec_eval": pytrec,
    "ranx": ranx,
    "pytrec, shuffled": lambda folder: pytrec(folder, "shuffled.trec"),
    "rag-selectivity": lambda folder: ours(folder, "run.trec"),
    "… with intervals": lambda folder: ours(folder, "run.trec", intervals=True),
    "… shuffled lines": lambda folder: ours(folder, "shuffled.trec"),
}


def run_child(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, __file__, "--child", name, "--folder", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def child(name: str, folder: Path) -> None:
    if name == "generate":
        queries, depth = map(int, folder.name.split("x"))
        generate(folder, queries, depth)
        return
    start = time.perf_counter()
    figures = CONTENDERS[name](folder)
    seconds = time.perf_counter() - start
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({"seconds": seconds, "megabytes": megabytes, "success": figures}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "rag-selectivity-bench")
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--with-ranx", action="store_true", help="ranx takes most of a minute")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.folder)
        return

    folder = arguments.folder / f"{arguments.queries}x{arguments.depth}"
    # In a process of its own: a child's peak memory counts from its parent's at the start.
    run_child("generate", folder)
    print(f"{'':18}{'seconds':>9}{'MB':>8}{'× faster':>10}{'of memory':>11}")
    results: dict[str, Any] = {}
    for name in CONTENDERS:
        if name == "ranx" and not arguments.with_ranx:
            continue
        done = run_child(name, folder)
        if done.returncode:
            print(f"{name:18}failed: {done.stderr.strip().splitlines()[-1]}")
            continue
        results[name] = result = json.loads(done.stdout.splitlines()[-1])
        peer = results["pytrec_eval"]
        print(
            f"{name:18}{result['seconds']:9.2f}{result['megabytes']:8.0f}"
            f"{peer['seconds'] / result['seconds']:10.1f}{result['megabytes'] / peer['megabytes']:11.2f}"
        )
    expected = results["pytrec_eval"]["success"]
    for name, result in results.items():
        for depth, value in result["success"].items():
            if abs(value - expected[depth]) > 1e-9:
                sys.exit(f"{name}: success@{depth} is {value}, pytrec_eval has {expected[depth]}")


if __name__ == "__main__":
    main()
