"""Intervals, comparison and sweep of 6,980 queries, beside `scipy.stats.bootstrap` and the evaluation itself.

    python -m benchmarks.intervals

Two runs of 1,000 passages a query, in memory. The intervals count what they take beyond the evaluation. Comparison and
sweep of both runs, with all that they return, are beside the evaluation of both with its default measures, depths and
intervals, all from Qrels and Run objects. Everything is run in turns, and the best of the rounds counts.
`scipy.stats.bootstrap` makes few resamples of one figure, and is scaled up.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

import rag_selectivity as rs
from benchmarks.speed_row import Row
from rag_selectivity import Bootstrap
from rag_selectivity.evaluate import measure_all
from rag_selectivity.joined import join_runs
from rag_selectivity.judged.policy import resolve_policy
from rag_selectivity.measures.base import Outcome

QUERIES, LISTED, CORPUS_SIZE, RESAMPLES = 6980, 1000, 8_841_823, 5000
MOST_SECONDS, MOST_MEGABYTES, MOST_RATIO = 0.3, 100.0, 2.0
DEPTHS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
MEASURES = ["Success", "BoR", "nDCG"]
METHODS = ("bca", "percentile")
ROUNDS = 3


def data() -> tuple[rs.Qrels, dict[str, rs.Run]]:
    """One to four relevant passages for each query, most of them near the top of the lists."""
    rng = np.random.default_rng(0)
    names = [str(1_000_000 + i) for i in range(QUERIES)]
    number = rng.choice([1, 2, 3, 4], QUERIES, p=[0.93, 0.05, 0.01, 0.01])
    row = np.repeat(np.arange(QUERIES), number)
    relevant = CORPUS_SIZE - 1 - np.arange(len(row))
    qrels = rs.Qrels.from_records([(names[i], str(p), 1) for i, p in zip(row.tolist(), relevant.tolist(), strict=True)])
    runs = {}
    for run, spread in (("one", 8.0), ("other", 9.0)):
        starts, steps = rng.integers(0, 100_000, (QUERIES, 1)), rng.integers(1, 8000, (QUERIES, 1))
        passages = starts + steps * np.arange(LISTED)
        rank = np.exp(rng.random(len(row)) * spread).astype(np.int64) - 1
        found = rank < LISTED
        passages[row[found], rank[found]] = relevant[found]
        column = list(map(str, passages.ravel().tolist()))
        runs[run] = rs.Run(names, np.arange(QUERIES + 1) * LISTED, column)
    return qrels, runs


def best(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The seconds of each call, the best of some rounds in which they take turns."""
    seconds = dict.fromkeys(calls, np.inf)
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def memory(field: str) -> float:
    """Resident memory now (VmRSS) or at its peak (VmHWM), in MB; Linux only."""
    return next(
        int(line.split()[1]) / 1000 for line in Path("/proc/self/status").read_text().splitlines() if field in line
    )


def added_memory(call: Callable[[], object]) -> float:
    """How much the peak of a call is above the memory before it, in MB."""
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = memory("VmRSS")
    call()
    return memory("VmHWM") - before


def scipys(success: np.ndarray, chance: np.ndarray, few: int = 100) -> float:
    """The seconds that `scipy.stats.bootstrap` takes for all resamples of one ratio of means."""
    from scipy import stats

    start = time.perf_counter()
    stats.bootstrap(
        (success, chance),
        lambda s, c, axis: s.mean(axis=axis) / c.mean(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=few,
        batch=50,
        method="percentile",
        rng=np.random.default_rng(7),
    )
    return (time.perf_counter() - start) * RESAMPLES / few


def measured() -> tuple[list[Outcome], tuple[str, ...]]:
    """The outcomes that intervals are made of, and their queries."""
    qrels, runs = data()
    joined = join_runs(qrels, {"one": runs["one"]}, corpus_size=CORPUS_SIZE, policy=resolve_policy(None)).judged
    return measure_all(joined, MEASURES, DEPTHS).outcomes["one"], joined["one"].queries


def of_intervals(outcomes: list[Outcome], queries: tuple[str, ...]) -> list[Row]:
    """The intervals alone, by each method."""

    def intervals(method: str) -> Callable[[], object]:
        return lambda: Bootstrap(RESAMPLES, method=method).intervals(outcomes, queries)

    calls = {method: intervals(method) for method in METHODS}
    megabytes = {method: added_memory(call) for method, call in calls.items()}
    seconds = best(calls)
    figures = sum(outcome.parts[0].shape[1] for outcome in outcomes)
    peer = scipys(outcomes[1].parts[0][:, 3], outcomes[1].parts[1][:, 3]) * figures
    return [
        Row(
            f"intervals, {method}: {RESAMPLES:,} resamples, {QUERIES:,} queries, {len(DEPTHS)} depths, "
            f"{len(MEASURES)} measures",
            f"≤ {MOST_SECONDS:g} s, ≤ {MOST_MEGABYTES:g} MB",
            f"{seconds[method]:.2f} s, {megabytes[method]:.0f} MB",
            f"scipy.stats.bootstrap {peer:.1f} s, {peer / seconds[method]:.0f} ×",
            seconds[method] <= MOST_SECONDS and megabytes[method] <= MOST_MEGABYTES,
        )
        for method in METHODS
    ]


def of_runs() -> list[Row]:
    """Comparison and sweep beside the evaluation of the same runs."""
    qrels, runs = data()
    first = {"one": runs["one"]}
    calls: dict[str, Callable[[], object]] = {
        "evaluate": lambda: rs.evaluate(qrels, runs, corpus_size=CORPUS_SIZE),
        "compare": lambda: rs.compare(qrels, runs, corpus_size=CORPUS_SIZE),
        "sweep": lambda: rs.sweep(qrels, runs, corpus_size=CORPUS_SIZE),
        "evaluate one": lambda: rs.evaluate(qrels, first, corpus_size=CORPUS_SIZE),
        "sweep one": lambda: rs.sweep(qrels, first, corpus_size=CORPUS_SIZE),
    }
    megabytes = {name: added_memory(call) for name, call in calls.items()}
    seconds = best(calls)
    return [
        Row(
            f"{work}, {QUERIES:,} queries, with the join",
            f"≤ {MOST_RATIO:g} × the evaluation",
            f"{seconds[name]:.2f} s, {seconds[name] / seconds[evaluation]:.2f} ×, {megabytes[name]:.0f} MB",
            f"evaluate, with intervals: {seconds[evaluation]:.2f} s, {megabytes[evaluation]:.0f} MB",
            seconds[name] <= MOST_RATIO * seconds[evaluation],
        )
        for work, name, evaluation in (
            ("compare two runs", "compare", "evaluate"),
            (f"sweep two runs, K = 1…{LISTED:,}", "sweep", "evaluate"),
            (f"sweep one run, K = 1…{LISTED:,}", "sweep one", "evaluate one"),
        )
    ]


def rows() -> Iterable[Row]:
    # A process that once held the data would reuse its memory, and seem to add none.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as processes:
        outcomes = processes.apply(measured)
        yield from processes.apply(of_intervals, outcomes)
        yield from processes.apply(of_runs)


def main() -> None:
    for row in rows():
        print(f"{row.work}\n  to reach {row.reach}; measured {row.measured}; peer: {row.peer}", flush=True)


if __name__ == "__main__":
    main()
