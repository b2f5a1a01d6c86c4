"""The exact baseline, and the intervals of 6,980 queries at 10 depths, beside scipy and a plain loop.

    python benchmarks/intervals.py

scipy.stats.bootstrap and the loop are run with fewer resamples and for one measure at one depth, and scaled up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

import rag_selectivity as rs
from rag_selectivity import Bootstrap
from rag_selectivity.data.ids import IdColumn
from rag_selectivity.measures import REGISTRY, BoR
from rag_selectivity.measures.base import WHOLE_LIST
from rag_selectivity.measures.hypergeometric import random_success

QUERIES, CORPUS_SIZE, RESAMPLES = 6980, 8_841_823, 5000
DEPTHS = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return float(best)


def memory(field: str) -> float:
    """Resident memory now (VmRSS) or at its peak (VmHWM), in MB; Linux only."""
    return next(
        int(line.split()[1]) / 1000 for line in Path("/proc/self/status").read_text().splitlines() if field in line
    )


def judged_run(rng: np.random.Generator) -> rs.JudgedRun:
    """6,980 queries with ten judged passages each, in lists of 1,000."""
    names = [str(i) for i in range(QUERIES)]
    rows, listed = [], []
    for name in names:
        passages = rng.integers(0, CORPUS_SIZE, 1000)
        listed.append(passages)
        judged = np.append(passages[rng.integers(0, 1000, 8)], rng.integers(0, CORPUS_SIZE, 2))
        rows.extend((name, str(p), int(g)) for p, g in dict(zip(judged, rng.integers(1, 6, 10), strict=True)).items())
    run = rs.Run(names, np.arange(QUERIES + 1) * 1000, IdColumn.from_strings(np.concatenate(listed).tolist()))
    return rs.join(rs.Qrels.from_records(rows), run, scale="utility", corpus_size=CORPUS_SIZE)


def main() -> None:
    rng = np.random.default_rng(0)
    columns = rng.integers(1, 11, QUERIES)[:, None]
    baseline = seconds(lambda: random_success(CORPUS_SIZE, columns, DEPTHS))
    peer = seconds(lambda: stats.hypergeom.sf(0, CORPUS_SIZE, columns, DEPTHS), repeats=1)
    print(
        f"exact baseline              {baseline * 1000:8.1f} ms"
        f"   scipy.stats.hypergeom {peer * 1000:9.1f} ms   {peer / baseline:6.0f} ×"
    )

    judged = judged_run(rng)
    bor = BoR().outcome(judged, DEPTHS)
    known = bor.defined[:, 3]
    success, chance = bor.parts[0][known, 3], bor.parts[1][known, 3]

    def loop() -> list[float]:
        draws = np.random.default_rng(7)
        ratios = []
        for _ in range(RESAMPLES):
            rows = draws.integers(0, len(success), len(success))
            ratios.append(success[rows].mean() / chance[rows].mean())
        return ratios

    def scipys(method: str, few: int) -> float:
        call = lambda: stats.bootstrap(  # noqa: E731
            (success, chance),
            lambda s, c, axis: s.mean(axis=axis) / c.mean(axis=axis),
            paired=True,
            vectorized=True,
            n_resamples=few,
            batch=50,
            method=method,
            rng=np.random.default_rng(7),
        )
        return seconds(call, repeats=1) * RESAMPLES / few

    plain = seconds(loop, repeats=1)
    everything = []
    for cls in REGISTRY.values():
        grid = cls.default_depths(DEPTHS)
        everything.append(cls().outcome(judged, grid if len(grid) else np.array([WHOLE_LIST])))
    figures = sum(outcome.parts[0].shape[1] for outcome in everything)
    for method in ("percentile", "bca"):
        bootstrap = Bootstrap(resamples=RESAMPLES, method=method)
        peer = scipys("percentile", 200)
        one = seconds(lambda bootstrap=bootstrap: bootstrap.intervals([bor]))
        print(
            f"BoR at 10 depths, {method:10}{one:8.2f} s    plain loop {plain * 10:8.1f} s {plain * 10 / one:6.0f} ×"
            f"   scipy.stats.bootstrap {peer * 10:8.1f} s {peer * 10 / one:6.0f} ×"
        )
        before = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
        everywhere = seconds(lambda bootstrap=bootstrap: bootstrap.intervals(everything), repeats=1)
        extra = memory("VmHWM") - before
        print(
            f"all measures, {method:10}    {everywhere:8.2f} s    {figures} figures, scipy.stats.bootstrap"
            f" {peer * figures:8.1f} s {peer * figures / everywhere:6.0f} ×   {extra:.0f} MB"
        )


if __name__ == "__main__":
    main()
