"""What a row costs in Ragas: its `evaluate` with a trivial metric, with ours, and the batch path.

RAGAS_DO_NOT_TRACK=true python benchmarks/ragas_overhead.py
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rag_selectivity_ragas import RANWG, selectivity
from ragas import EvaluationDataset, evaluate
from ragas.metrics.base import MetricType, SingleTurnMetric

ROWS, DEPTH = 2000, 20


@dataclass
class Trivial(SingleTurnMetric):  # type: ignore[misc]
    """A metric that does nothing."""

    name: str = "trivial"
    _required_columns: dict[MetricType, set[str]] = field(
        default_factory=lambda: {MetricType.SINGLE_TURN: {"user_input", "retrieved_context_ids"}}
    )

    def init(self, run_config: Any) -> None:
        pass

    async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:
        return 0.0


def microseconds(call: Callable[[], object]) -> float:
    best = np.inf
    for _ in range(2):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return float(best) / ROWS * 1e6


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    rows = [
        {"user_input": f"q{i}", "retrieved_context_ids": [f"d{j}" for j in rng.integers(0, 500, DEPTH)]}
        for i in range(ROWS)
    ]
    labels = {f"q{i}": {f"d{j}": int(rng.integers(1, 6)) for j in rng.integers(0, 500, 30)} for i in range(ROWS)}
    dataset = EvaluationDataset.from_list(rows)
    trivial = microseconds(lambda: evaluate(dataset, metrics=[Trivial()], show_progress=False))
    ours = microseconds(lambda: evaluate(dataset, metrics=[RANWG(labels, scale="utility", k=10)], show_progress=False))
    metric = RANWG(labels, scale="utility", k=10)
    alone = microseconds(lambda: [metric.value_of(sample) for sample in dataset.samples])
    batch = microseconds(lambda: selectivity(dataset, labels, scale="utility", depths=[5, 10], bootstrap=None))
    print(f"evaluate with a trivial metric   {trivial:7.0f} µs a row")
    print(f"evaluate with RA-nWG@10          {ours:7.0f} µs a row   {ours / trivial:5.2f} × the trivial one")
    print(f"RA-nWG@10 without Ragas around   {alone:7.0f} µs a row")
    print(f"selectivity, RA-nWG, Harm, …     {batch:7.1f} µs a row   {batch / trivial:5.2f} × the trivial one")


if __name__ == "__main__":
    main()
