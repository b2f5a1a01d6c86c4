"""All utility measures at many depths for 6,980 queries × 1,000 passages in memory, beside pytrec_eval's nDCG@10 alone.

python benchmarks/utility.py
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import rag_selectivity as rs
from rag_selectivity.measures.rarity import LEVELS

QUERIES, DEPTH, JUDGED, CORPUS_SIZE = 6980, 1000, 50, 8_841_823
UTILITY = ["RA-nWG", "PROC", "%PROC", "N-Recall4+", "N-Recall5", "Precision4+", "Harm", "Harm(max_grade=1)", "Judged"]
TEN = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]


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


def main() -> None:
    rng = np.random.default_rng(0)
    names = [str(1_000_000 + i) for i in range(QUERIES)]
    listed = [rng.choice(CORPUS_SIZE, DEPTH, replace=False) for _ in range(QUERIES)]
    rows = []
    for name, passages in zip(names, listed, strict=True):
        judged = np.append(rng.choice(passages, JUDGED - 5, replace=False), rng.integers(0, CORPUS_SIZE, 5))
        grades = rng.choice(LEVELS, JUDGED, p=[0.5, 0.2, 0.15, 0.1, 0.05])
        rows.extend(zip([name] * JUDGED, dict.fromkeys(judged.tolist()), grades.tolist(), strict=False))
    qrels = rs.Qrels.from_records(rows)
    run = rs.Run(names, np.arange(QUERIES + 1) * DEPTH, np.concatenate(listed).tolist())

    def measure(measures: Sequence[str], depths: Sequence[int]) -> Callable[[], object]:
        return lambda: rs.evaluate_joined(
            {"run": rs.join(qrels, run, scale="utility")}, measures=measures, depths=depths, bootstrap=None
        )

    one = seconds(measure(["RA-nWG"], [10]))
    ten = seconds(measure(UTILITY, TEN))
    print(f"RA-nWG@10, join included               {one:6.2f} s")
    print(f"all utility measures at ten depths     {ten:6.2f} s   {ten / one:5.2f} × of it")
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    every = seconds(measure(UTILITY, range(1, 1001)), repeats=1)
    peak = memory("VmHWM")
    print(
        f"all of them at all depths 1..1000      {every:6.2f} s   peak {peak:.0f} MB ({before:.0f} MB of it the data)"
    )

    import pytrec_eval

    as_dicts = {
        name: {str(passage): float(DEPTH - rank) for rank, passage in enumerate(passages.tolist())}
        for name, passages in zip(names, listed, strict=True)
    }
    evaluator = pytrec_eval.RelevanceEvaluator(qrels.to_dict(), {"ndcg_cut.10"})
    peer = seconds(lambda: evaluator.evaluate(as_dicts), repeats=1)
    print(f"pytrec_eval, nDCG@10 alone             {peer:6.2f} s   {peer / ten:5.1f} × all of ours at ten depths")


if __name__ == "__main__":
    main()
