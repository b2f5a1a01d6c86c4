"""The exact baseline and the bootstrap intervals of 6,980 queries at 10 depths, beside scipy and a plain loop.

    python benchmarks/intervals.py

scipy.stats.bootstrap and the loop are run with fewer resamples and at one depth, and scaled up.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from rag_selectivity import Bootstrap, JudgedRun
from rag_selectivity.measures import BoR
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


def main() -> None:
    rng = np.random.default_rng(0)
    relevant = rng.integers(1, 11, QUERIES)
    columns = relevant[:, None]
    baseline = seconds(lambda: random_success(CORPUS_SIZE, columns, DEPTHS))
    peer = seconds(lambda: stats.hypergeom.sf(0, CORPUS_SIZE, columns, DEPTHS), repeats=1)
    print(
        f"exact baseline       {baseline * 1000:8.1f} ms"
        f"   scipy.stats.hypergeom {peer * 1000:9.1f} ms   {peer / baseline:6.0f} ×"
    )

    shown = np.full(QUERIES, 1000)
    judged = JudgedRun.from_counts(np.full(QUERIES, CORPUS_SIZE), shown, relevant, rng.random(QUERIES) < 0.85)
    outcome = BoR().outcome(judged, DEPTHS)
    ours = seconds(lambda: Bootstrap(resamples=RESAMPLES).intervals([outcome]))

    success, chance = outcome.parts[0][:, 3], outcome.parts[1][:, 3]

    def loop() -> list[float]:
        draws = np.random.default_rng(7)
        ratios = []
        for _ in range(RESAMPLES):
            rows = draws.integers(0, QUERIES, QUERIES)
            ratios.append(success[rows].mean() / chance[rows].mean())
        return ratios

    plain = seconds(loop, repeats=1) * len(DEPTHS)
    few = 200
    scipys = (
        seconds(
            lambda: stats.bootstrap(
                (success, chance),
                lambda s, c, axis: s.mean(axis=axis) / c.mean(axis=axis),
                paired=True,
                vectorized=True,
                n_resamples=few,
                batch=50,
                method="percentile",
                rng=np.random.default_rng(7),
            ),
            repeats=1,
        )
        * RESAMPLES
        / few
        * len(DEPTHS)
    )
    print(f"intervals            {ours:8.2f} s    plain loop            {plain:9.1f} s    {plain / ours:6.0f} ×")
    print(f"                                  scipy.stats.bootstrap {scipys:9.1f} s    {scipys / ours:6.0f} ×")


if __name__ == "__main__":
    main()
