"""What watching LlamaIndex costs: a retriever of 20 nodes with `LiveSelectivity` and without, in the same process.

    python benchmarks/live_overhead_llama_index.py

Rounds with and without take turns; the difference of the medians is what a retrieval pays, measuring included.
"""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import NullSpanHandler
from llama_index.core.schema import NodeWithScore, TextNode
from rag_selectivity_llama_index import LiveSelectivity

NODES, QUERIES, CALLS, ROUNDS = 20, 200, 2000, 7
CORPUS = [NodeWithScore(node=TextNode(id_=f"d{i}", text="word " * 60), score=1.0) for i in range(5000)]


class Fixed(BaseRetriever):
    """Lists that are there already: nothing but LlamaIndex's own cost is left."""

    def __init__(self, lists: dict[str, list[NodeWithScore]]) -> None:
        self.lists = lists
        super().__init__()

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return self.lists[query_bundle.query_str]


def world() -> tuple[Fixed, dict[str, dict[str, int]]]:
    draw = random.Random(7)
    lists, labels = {}, {}
    for q in range(QUERIES):
        found = draw.sample(CORPUS, NODES)
        judged = [*draw.sample(found, 8), *draw.sample(CORPUS, 12)]
        lists[f"query {q}"] = found
        labels[f"query {q}"] = {each.node.node_id: draw.randint(1, 5) for each in judged}
    return Fixed(lists), labels


def seconds(retriever: Fixed, handler: Any) -> float:
    dispatcher, queries = get_dispatcher(), list(retriever.lists)
    others = dispatcher.span_handlers
    dispatcher.span_handlers = [*others, handler]
    start = time.perf_counter()
    for i in range(CALLS):
        retriever.retrieve(queries[i % len(queries)])
    taken = time.perf_counter() - start
    dispatcher.span_handlers = others
    return taken / CALLS


def main() -> None:
    retriever, labels = world()
    handlers = {
        "a handler that does nothing": NullSpanHandler(),
        "labels for every query": LiveSelectivity(labels, scale="utility", corpus_size=len(CORPUS)),
        "no labels": LiveSelectivity(corpus_size=len(CORPUS)),
    }
    found: dict[str, list[float]] = {name: [] for name in handlers}
    for _ in range(ROUNDS):
        for name, handler in handlers.items():
            found[name].append(seconds(retriever, handler))
    medians = {name: statistics.median(times) for name, times in found.items()}
    base = next(iter(medians.values()))
    print(f"{'':30} {'a retrieval':>12} {'more':>9} {'ratio':>7}")
    for name, median in medians.items():
        print(f"{name:30} {median * 1e6:9.1f} µs {(median - base) * 1e6:6.1f} µs {median / base:7.2f}")


if __name__ == "__main__":
    main()
