"""What a metric costs a row in Ragas, beside Ragas' own IDBasedContextPrecision in the same process.

RAGAS_DO_NOT_TRACK=true python benchmarks/ragas_overhead.py [ROWS]

Each figure is the median of interleaved rounds: processor time a row, and its ratio to that of the peer. The peer is
scored by what Ragas offers for it: `evaluate`, and in an experiment and alone by `single_turn_ascore`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rag_selectivity_ragas import NDCG, PROC, RANWG, Harm, RandomSuccess, RowFigures, Success, selectivity
from ragas import Dataset, EvaluationDataset, SingleTurnSample, evaluate, experiment
from ragas.metrics import IDBasedContextPrecision

ROWS, DEPTH, ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 500, 20, 9
OPTIONS: dict[str, Any] = {"scale": "utility", "k": 10}


def rows_and_labels() -> tuple[list[dict[str, Any]], dict[str, dict[str, int]]]:
    rng = np.random.default_rng(0)
    labels = {f"q{i}": {f"d{j}": int(rng.integers(1, 6)) for j in rng.permutation(500)[:30]} for i in range(ROWS)}
    rows = [
        {
            "user_input": question,
            "retrieved_context_ids": [f"d{j}" for j in rng.permutation(500)[:DEPTH]],
            "reference_context_ids": [passage for passage, grade in grades.items() if grade >= 4],
        }
        for question, grades in labels.items()
    ]
    return rows, labels


def metrics_of(labels: Any) -> dict[str, Any]:
    sized = {**OPTIONS, "corpus_size": 50_000}
    return {
        "Harm@10": Harm(labels, **OPTIONS),
        "RA-nWG@10": RANWG(labels, **OPTIONS),
        "Success@10": Success(labels, **sized),
        "RandomSuccess@10": RandomSuccess(labels, **sized),
        "PROC@10": PROC(labels, **OPTIONS),
        "nDCG@10": NDCG(labels, **OPTIONS),
    }


def in_experiment(data: Dataset, score: Callable[[Mapping[str, Any]], Any]) -> Callable[[], object]:
    @experiment()
    async def measured(row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "figure": await score(row)}

    return lambda: asyncio.run(measured.arun(data, name="run", backend="inmemory"))


def one_after_another(rows: list[dict[str, Any]], score: Callable[[Mapping[str, Any]], Any]) -> Callable[[], object]:
    async def all_rows() -> None:
        for row in rows:
            await score(row)

    return lambda: asyncio.run(all_rows())


def ratios(title: str, peer: Callable[[], object], ours: Mapping[str, Callable[[], object]]) -> None:
    """Print the peer's time a row, and the ratio of each of ours, from rounds of peer, ours, peer, ours …"""
    times: dict[str, list[float]] = {name: [] for name in ("peer", *ours)}
    for _ in range(ROUNDS):
        for name, call in {"peer": peer, **ours}.items():
            gc.collect()  # what the one before left behind is no cost of this one
            start = time.process_time()
            with contextlib.redirect_stderr(io.StringIO()):
                call()
            times[name].append((time.process_time() - start) / ROWS * 1e6)
    print(f"{title}: IDBasedContextPrecision {statistics.median(times['peer']):.0f} µs a row")
    for name in ours:
        of_rounds = [mine / theirs for mine, theirs in zip(times[name], times["peer"], strict=True)]
        print(f"  {name:20} {statistics.median(times[name]):6.0f} µs   {statistics.median(of_rounds):5.2f} ×")


def main() -> None:
    warnings.simplefilter("ignore")
    rows, labels = rows_and_labels()
    metrics, peer = metrics_of(labels), IDBasedContextPrecision()
    dataset = EvaluationDataset.from_list(rows)
    data = Dataset(name="rows", backend="inmemory", data=rows)

    def evaluated(*chosen: Any) -> Callable[[], object]:
        return lambda: evaluate(dataset, metrics=list(chosen), show_progress=False)

    async def score_peer(row: Mapping[str, Any]) -> float:
        return float(await peer.single_turn_ascore(SingleTurnSample(**row)))

    def scored(metric: Any) -> Callable[[Mapping[str, Any]], Any]:
        async def score(row: Mapping[str, Any]) -> Any:
            return (await metric.ascore(**row)).value

        return score

    figures = RowFigures(labels, scale="utility", corpus_size=50_000)
    ratios("evaluate", evaluated(peer), {name: evaluated(metric) for name, metric in metrics.items()})
    ratios("evaluate, six metrics", evaluated(*[_copy(i) for i in range(6)]), {"six": evaluated(*metrics.values())})
    ratios(
        "experiment",
        in_experiment(data, score_peer),
        {
            **{name: in_experiment(data, scored(metric)) for name, metric in metrics.items()},
            "RowFigures, 4 figures": in_experiment(data, lambda row: figures.ascore(**row)),
        },
    )
    ratios(
        "one row after another",
        one_after_another(rows, score_peer),
        {name: one_after_another(rows, scored(metric)) for name, metric in metrics.items()},
    )
    fields = [{name: row[name] for name in ("user_input", "retrieved_context_ids")} for row in rows]

    async def gathered() -> None:
        await asyncio.gather(*(score_peer(row) for row in rows))

    ratios(
        "batch_score",
        lambda: asyncio.run(gathered()),
        {name: lambda metric=metric: metric.batch_score(fields) for name, metric in metrics.items()},  # type: ignore[misc]
    )
    ratios(
        "selectivity, the whole report without intervals",
        evaluated(peer),
        {"selectivity": lambda: selectivity(rows, labels, scale="utility", depths=[5, 10], bootstrap=None)},
    )


def _copy(number: int) -> Any:
    return IDBasedContextPrecision(name=f"peer {number}")


if __name__ == "__main__":
    main()
