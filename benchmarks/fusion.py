"""Fusing two runs by reciprocal rank, beside reading them: CPU time, and the ratio of both.

    python benchmarks/fusion.py [--queries 3500] [--depth 1000] [--rounds 5] [--ranx]

The runs are TREC files with 7 million rows in all. Half of what one run lists for a query is listed by the other too.
Reading and fusing take turns, and the smallest of each counts. With `--ranx` the scores of the first 50 queries must be
those of ranx, whose compilation takes minutes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import rag_selectivity as rs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=3500)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranx", action="store_true")
    options = parser.parse_args()
    reading, fusing = [], []
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.trec" for name in ("one", "other")]
        for seed, file in enumerate(files):
            _write(file, options.queries, options.depth, np.random.default_rng(seed))
        for _ in range(options.rounds):
            start = time.process_time()
            runs = [rs.read_run(file) for file in files]
            middle = time.process_time()
            fused = rs.Run.fused(runs)
            reading.append(middle - start)
            fusing.append(time.process_time() - middle)
    if options.ranx:
        _compare_with_ranx(runs)
    rows = sum(len(run.passages) for run in runs)
    print(f"{rows:,} rows become {len(fused.passages):,}")
    print(f"reading {min(reading):.2f} s, fusing {min(fusing):.2f} s, ratio {min(fusing) / min(reading):.2f}")


def _compare_with_ranx(runs: list[rs.Run]) -> None:
    import ranx

    some = [run.of_lists(np.arange(50)) for run in runs]
    scored = [{q: {d: -float(i) for i, d in enumerate(ds)} for q, ds in run.to_dict().items()} for run in some]
    theirs = ranx.fuse([ranx.Run(run) for run in scored], norm=None, method="rrf", params={"k": 60}).to_dict()
    fused = rs.Run.fused(some)
    assert fused.scores is not None
    for i, (query, passages) in enumerate(fused.to_dict().items()):
        scores = fused.scores[fused.offsets[i] : fused.offsets[i + 1]]
        np.testing.assert_allclose(scores, [theirs[query][passage] for passage in passages], rtol=1e-14)
    print("the scores are those of ranx")


def _write(file: Path, queries: int, depth: int, random: np.random.Generator) -> None:
    """A run whose lists are a random half of twice as many passages that belong to the query."""
    with file.open("w") as lines:
        for query in range(queries):
            listed = 7919 * query + random.permutation(2 * depth)[:depth]
            lines.writelines(
                f"q{query} Q0 d{passage} {rank} {1000 - rank * 0.5} run\n" for rank, passage in enumerate(listed, 1)
            )


if __name__ == "__main__":
    main()
