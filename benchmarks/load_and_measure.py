"""Reading a run of 7 million rows and measuring it: rag-selectivity beside pytrec_eval, polars and DuckDB.

    python -m benchmarks.load_and_measure [--queries 6980] [--depth 1000] [--rounds 3] [--with-ranx]

Every contender has a process of its own, so that its peak memory is its own; times include reading the files, not the
imports. The contenders take turns, and the least time of the rounds counts. All success rates must agree, or the script
fails.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed_row import Row

CORPUS_SIZE = 8_841_823
SUCCESS_DEPTHS = (1, 5, 10)
ALL_DEPTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SEED = 3


def generate(folder: Path, queries: int, depth: int) -> None:
    """A run with scores of six decimals and its qrels, and the same rows in awkward forms; made once."""
    done = folder / f"written.{queries}.{depth}"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    lines: list[bytes] = []
    names = ("qrels", "dense", "run", "unsorted", "ties", "repr")
    files = {name: (folder / f"{name}.trec").open("wb") for name in names}
    for query in range(1_000_000, 1_000_000 + queries):
        passages = rng.choice(CORPUS_SIZE, depth, replace=False).tolist()
        scores = np.sort(rng.gamma(4, 3, depth))[::-1]
        files["run"].write(rows := _text(query, passages, [f"{score:.6f}" for score in scores.tolist()]))
        lines += rows.splitlines(keepends=True)
        files["ties"].write(_text(query, passages, [f"{score:.1f}" for score in scores.tolist()]))
        files["repr"].write(_text(query, passages, [repr(score) for score in scores.tolist()]))
        files["unsorted"].writelines(lines[len(lines) - depth + i] for i in rng.permutation(depth).tolist())
        for place in rng.choice(int(1.3 * depth), size=1 + (rng.random() < 0.07), replace=False).tolist():
            judged = passages[place] if place < depth else CORPUS_SIZE + place
            files["qrels"].write(b"%d 0 %d 1\n" % (query, judged))
        for place in rng.choice(depth, depth // 10, replace=False).tolist():
            files["dense"].write(b"%d 0 %d %d\n" % (query, passages[place], place % 2))
    for file in files.values():
        file.close()
    with (folder / "shuffled.trec").open("wb") as shuffled:
        shuffled.writelines(lines[i] for i in rng.permutation(len(lines)).tolist())
    with gzip.open(folder / "run.trec.gz", "wb", 6) as packed:
        packed.writelines(lines)
    done.touch()


def _text(query: int, passages: list[int], scores: list[str]) -> bytes:
    rows = enumerate(zip(passages, scores, strict=True), 1)
    return "".join(f"{query} Q0 {passage} {rank} {score} bm25\n" for rank, (passage, score) in rows).encode()


def ours(folder: Path, name: str, *, labels: str = "qrels.trec", intervals: bool = False) -> dict[str, float]:
    import rag_selectivity as rs

    def work() -> dict[str, float]:
        report = rs.evaluate(
            rs.read_qrels(folder / labels),
            {"run": folder / name},
            corpus_size=CORPUS_SIZE,
            measures=["Success", "BoR"],
            policy="trec_eval",
            bootstrap=rs.Bootstrap() if intervals else None,
        )
        return {str(k): report["run", f"Success@{k}"].value for k in SUCCESS_DEPTHS if k in report.depths}

    rs.evaluate({"q": {"d": 1}}, {"run": {"q": ["d"]}})
    return timed(work)


def pytrec(folder: Path) -> dict[str, float]:
    import pytrec_eval

    def work() -> dict[str, float]:
        with (folder / "qrels.trec").open() as file:
            qrels = pytrec_eval.parse_qrel(file)
        with (folder / "run.trec").open() as file:
            run = pytrec_eval.parse_run(file)
        wanted = {"success." + ",".join(map(str, SUCCESS_DEPTHS)), "recall." + ",".join(map(str, ALL_DEPTHS))}
        results = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
        return {str(k): float(np.mean([row[f"success_{k}"] for row in results.values()])) for k in SUCCESS_DEPTHS}

    return timed(work)


def polars(folder: Path) -> dict[str, float]:
    """Success at ten depths; ranks by score, equal scores in any order."""
    import polars as pl

    def work() -> dict[str, float]:
        form: dict[str, Any] = {"separator": " ", "has_header": False}
        ids = {"query": pl.String, "passage": pl.String}
        names = ["query", "q0", "passage", "rank", "score", "tag"]
        run = pl.scan_csv(folder / "run.trec", new_columns=names, schema_overrides=ids, **form)
        run = run.select("query", "passage", "score").collect()
        names = ["query", "q0", "passage", "grade"]
        qrels = pl.read_csv(folder / "qrels.trec", new_columns=names, schema_overrides=ids, **form)
        ranked = run.with_columns(rank=pl.col("score").rank("ordinal", descending=True).over("query"))
        first = ranked.join(qrels, on=["query", "passage"]).group_by("query").agg(pl.col("rank").min())
        count = qrels["query"].n_unique()
        found = {k: float((first["rank"] <= k).sum() / count) for k in ALL_DEPTHS}
        return {str(k): found[k] for k in SUCCESS_DEPTHS}

    return timed(work)


def duckdb(folder: Path) -> dict[str, float]:
    """Success at ten depths; ranks by score, equal scores in any order."""
    import duckdb as db

    def work() -> dict[str, float]:
        connection = db.connect()
        read = "read_csv('{}', delim=' ', header=false, columns={})"
        run_types = "{'q': 'VARCHAR', 'q0': 'VARCHAR', 'd': 'VARCHAR', 'r': 'INT', 's': 'DOUBLE', 't': 'VARCHAR'}"
        qrels_types = "{'q': 'VARCHAR', 'i': 'VARCHAR', 'd': 'VARCHAR', 'g': 'INT'}"
        run = read.format(folder / "run.trec", run_types)
        qrels = read.format(folder / "qrels.trec", qrels_types)
        depths = ", ".join(f"count(*) FILTER (rank <= {k})" for k in ALL_DEPTHS)
        (counts,) = connection.execute(
            f"WITH ranked AS (SELECT q, d, row_number() OVER (PARTITION BY q ORDER BY s DESC) AS rank FROM {run}), "
            f"first AS (SELECT min(rank) AS rank FROM ranked JOIN {qrels} USING (q, d) GROUP BY q) "
            f"SELECT {depths} FROM first"
        ).fetchall()
        ((total,),) = connection.execute(f"SELECT count(DISTINCT q) FROM {qrels}").fetchall()
        found = dict(zip(ALL_DEPTHS, counts, strict=True))
        return {str(k): found[k] / total for k in SUCCESS_DEPTHS}

    return timed(work)


def ranx(folder: Path) -> dict[str, float]:
    from ranx import Qrels, Run, evaluate

    def work() -> dict[str, float]:
        qrels = Qrels.from_file(str(folder / "qrels.trec"), kind="trec")
        run = Run.from_file(str(folder / "run.trec"), kind="trec")
        rates: Any = evaluate(qrels, run, [f"hit_rate@{k}" for k in ALL_DEPTHS])
        return {str(k): float(rates[f"hit_rate@{k}"]) for k in SUCCESS_DEPTHS}

    return timed(work)


def decompressing(folder: Path) -> dict[str, float]:
    """Nothing but the decompression of the gzipped file."""

    def work() -> dict[str, float]:
        with gzip.open(folder / "run.trec.gz") as file:
            while file.read(1 << 20):
                pass
        return {}

    return timed(work)


def timed(work: Any) -> dict[str, float]:
    """What the work gives, and its seconds."""
    start = time.perf_counter()
    figures: dict[str, float] = work()
    return {**figures, "seconds": time.perf_counter() - start}


PLAIN = "rag-selectivity"
OURS = {
    PLAIN: lambda folder: ours(folder, "run.trec"),
    "… with intervals": lambda folder: ours(folder, "run.trec", intervals=True),
    "… gzip": lambda folder: ours(folder, "run.trec.gz"),
    "… shuffled lines": lambda folder: ours(folder, "shuffled.trec"),
    "… unsorted lists": lambda folder: ours(folder, "unsorted.trec"),
    "… one decimal": lambda folder: ours(folder, "ties.trec"),
    "… repr floats": lambda folder: ours(folder, "repr.trec"),
    "… 698,000 judgments": lambda folder: ours(folder, "run.trec", labels="dense.trec"),
}
PEERS = {"pytrec_eval": pytrec, "polars": polars, "DuckDB": duckdb, "ranx": ranx}
CONTENDERS = {**OURS, **PEERS, "gunzip": decompressing}
#: The awkward forms: how many times the plain file's time they may take, and how many megabytes.
AWKWARD = {
    "… shuffled lines": (3.0, 150),
    "… unsorted lists": (2.0, 150),
    "… one decimal": (2.0, 150),
    "… repr floats": (2.0, 150),
    "… 698,000 judgments": (2.0, 250),
}


def measured(folder: Path, rounds: int, *, with_ranx: bool = False) -> dict[str, dict[str, float]]:
    """Seconds and megabytes of each contender; a peer that is not installed is left out."""
    found: dict[str, dict[str, float]] = {}
    left_out = set() if with_ranx else {"ranx"}
    for _ in range(rounds):
        for name in CONTENDERS:
            if name in left_out:
                continue
            done = _run_child(name, folder)
            if done.returncode:
                print(f"{name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                left_out.add(name)
                continue
            result = json.loads(done.stdout.splitlines()[-1])
            known = found.setdefault(name, result)
            for unit in ("seconds", "megabytes"):
                known[unit] = min(known[unit], result[unit])
    _check(found)
    return found


def _check(found: dict[str, dict[str, float]]) -> None:
    expected = found[PLAIN]
    for name in (*PEERS, *(name for name in OURS if not name.endswith(("decimal", "judgments")))):
        for depth in map(str, SUCCESS_DEPTHS) if name in found else ():
            if abs(found[name][depth] - expected[depth]) > 1e-9:
                sys.exit(f"{name}: success@{depth} is {found[name][depth]}, ours is {expected[depth]}")


def rows(folder: Path | None = None, rounds: int = 3) -> Iterator[Row]:
    """The rows of the table of speed."""
    folder = folder or Path(tempfile.gettempdir()) / "rag-selectivity-bench" / "6980x1000"
    _run_child("generate", folder)
    found = measured(folder, rounds)
    plain = found[PLAIN]
    peers = {name: found[name] for name in PEERS if name in found}
    limits = {"pytrec_eval": 0.1, "polars": 0.5, "DuckDB": 0.5}
    ratios = {name: plain["seconds"] / peer["seconds"] for name, peer in peers.items()}
    reached = [ratios[name] <= limit for name, limit in limits.items() if name in ratios]
    yield Row(
        "TREC, 7 M rows, load and measure",
        "≤ 1/10 of pytrec_eval, ≤ 1/2 of polars and DuckDB; ≤ 100 MB",
        f"{_figures(plain)}; {', '.join(f'{ratio:.2f} × {name}' for name, ratio in ratios.items())}",
        "; ".join(f"{name} {_figures(peer)}" for name, peer in peers.items()),
        all(reached) and plain["megabytes"] <= 100 if len(reached) == len(limits) else None,
    )
    unpacked = found["gunzip"]["seconds"]
    yield Row(
        "the same, gzip",
        "the pace of the decompressor",
        f"{_figures(found['… gzip'])}; {found['… gzip']['seconds'] / unpacked:.2f} × gunzip",
        f"Python's gzip alone {unpacked:.2f} s",
        found["… gzip"]["seconds"] <= 1.25 * unpacked,
    )
    for name, (times, megabytes) in AWKWARD.items():
        ratio = found[name]["seconds"] / plain["seconds"]
        yield Row(
            f"the same, {name.removeprefix('… ')}",
            f"≤ {times:g} × the plain file, ≤ {megabytes} MB",
            f"{_figures(found[name])}; {ratio:.2f} × plain",
            f"plain {_figures(plain)}",
            ratio <= times and found[name]["megabytes"] <= megabytes,
        )


def _figures(result: dict[str, float]) -> str:
    return f"{result['seconds']:.2f} s, {result['megabytes']:.0f} MB"


def _run_child(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.load_and_measure", "--child", name]
    return subprocess.run([*command, "--folder", str(folder)], capture_output=True, text=True, check=False)


def _child(name: str, folder: Path) -> None:
    if name == "generate":
        queries, depth = map(int, folder.name.split("x"))
        generate(folder, queries, depth)
        return
    figures = CONTENDERS[name](folder)
    print(json.dumps({**figures, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "rag-selectivity-bench")
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--with-ranx", action="store_true", help="ranx takes most of a minute")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _child(arguments.child, arguments.folder)
        return

    folder = arguments.folder / f"{arguments.queries}x{arguments.depth}"
    # In a process of its own: a child's peak memory counts from its parent's at the start.
    _run_child("generate", folder)
    found = measured(folder, arguments.rounds, with_ranx=arguments.with_ranx)
    print(f"{'':22}{'seconds':>9}{'MB':>8}{'× of pytrec_eval':>18}")
    peer = found.get("pytrec_eval", {"seconds": float("nan")})
    for name, result in found.items():
        ratio = result["seconds"] / peer["seconds"]
        print(f"{name:22}{result['seconds']:9.2f}{result['megabytes']:8.0f}{ratio:18.3f}")


if __name__ == "__main__":
    main()
