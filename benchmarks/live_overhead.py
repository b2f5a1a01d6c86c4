"""What watching costs: a retriever of 20 documents with a handler of ours and without, in the same process.

    python benchmarks/live_overhead.py                 # LangChain
    python benchmarks/live_overhead.py llama-index

Rounds with and without take turns; the difference of the medians is what a retrieval pays, measuring included.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from rag_selectivity_langchain import SelectivityCallback

from rag_selectivity import Monitor

DOCUMENTS, QUERIES, CALLS, ROUNDS = 20, 200, 2000, 7
CORPUS = [Document(id=f"d{i}", page_content="word " * 60) for i in range(5000)]


class Fixed(BaseRetriever):
    """Lists that are there already: nothing but LangChain's own cost is left."""

    lists: dict[str, list[Document]]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.lists[query]


class Nothing(BaseCallbackHandler):
    """A handler that does nothing: what LangChain charges for any."""

    def on_retriever_start(self, *args: Any, **kwargs: Any) -> None:
        pass

    def on_retriever_end(self, *args: Any, **kwargs: Any) -> None:
        pass


def world() -> tuple[Fixed, dict[str, dict[str, int]], list[str]]:
    draw = random.Random(7)
    lists, labels = {}, {}
    for q in range(QUERIES):
        found = draw.sample(CORPUS, DOCUMENTS)
        judged = [*draw.sample(found, 8), *draw.sample(CORPUS, 12)]
        lists[f"query {q}"] = found
        labels[f"query {q}"] = {str(document.id): draw.randint(1, 5) for document in judged}
    return Fixed(lists=lists), labels, list(lists)


def seconds(retriever: Fixed, queries: Sequence[str], callbacks: list[Any]) -> float:
    config: Any = {"callbacks": callbacks}
    start = time.perf_counter()
    for i in range(CALLS):
        retriever.invoke(queries[i % len(queries)], config=config)
    return (time.perf_counter() - start) / CALLS


def table(found: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(times) for name, times in found.items()}
    base = next(iter(medians.values()))
    print(f"{'':30} {'a retrieval':>12} {'more':>9} {'ratio':>7}")
    for name, median in medians.items():
        print(f"{name:30} {median * 1e6:9.1f} µs {(median - base) * 1e6:6.1f} µs {median / base:7.2f}")


def in_langchain() -> None:
    retriever, labels, queries = world()
    watched = SelectivityCallback(labels, scale="utility", corpus_size=len(CORPUS))
    unlabelled = SelectivityCallback(corpus_size=len(CORPUS))
    handlers = {"a handler that does nothing": Nothing(), "labels for every query": watched, "no labels": unlabelled}
    found: dict[str, list[float]] = {name: [] for name in handlers}
    for _ in range(ROUNDS):
        for name, handler in handlers.items():
            found[name].append(seconds(retriever, queries, [handler]))
    table(found)
    report_of(watched.monitor)
    tracemalloc.start()
    long_lived = SelectivityCallback(labels, scale="utility", corpus_size=len(CORPUS))
    for after in (10_000, 40_000):
        while long_lived.traffic.retrievals < after:
            seconds(retriever, queries, [long_lived])
        long_lived.monitor.flush()
        print(f"memory after {after:,} retrievals: {tracemalloc.get_traced_memory()[0] / 1e6:.2f} MB")


def report_of(monitor: Monitor) -> None:
    monitor.report()
    start = time.perf_counter()
    monitor.report()
    print(f"a report over {monitor.traffic.retrievals:,} retrievals: {(time.perf_counter() - start) * 1e3:.1f} ms")


def in_llama_index() -> None:
    """The same lists in LlamaIndex, beside a span handler that does nothing."""
    from llama_index.core.base.base_retriever import BaseRetriever as Retriever
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.span_handlers import NullSpanHandler
    from llama_index.core.schema import NodeWithScore, TextNode
    from rag_selectivity_llama_index import LiveSelectivity

    langchain, labels, queries = world()
    lists = {
        query: [NodeWithScore(node=TextNode(id_=str(each.id), text=each.page_content), score=1.0) for each in documents]
        for query, documents in langchain.lists.items()
    }

    class FixedNodes(Retriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return lists[query_bundle.query_str]

    retriever, dispatcher = FixedNodes(), get_dispatcher()
    options: dict[str, Any] = {"corpus_size": len(CORPUS)}
    watched = LiveSelectivity(labels, scale="utility", **options)
    handlers = {
        "a handler that does nothing": NullSpanHandler(),
        "labels for every query": watched,
        "no labels": LiveSelectivity(**options),
    }
    found: dict[str, list[float]] = {name: [] for name in handlers}
    others = dispatcher.span_handlers
    for _ in range(ROUNDS):
        for name, handler in handlers.items():
            dispatcher.span_handlers = [*others, handler]
            start = time.perf_counter()
            for i in range(CALLS):
                retriever.retrieve(queries[i % len(queries)])
            found[name].append((time.perf_counter() - start) / CALLS)
    table(found)
    report_of(watched.monitor)


if __name__ == "__main__":
    in_llama_index() if sys.argv[1:] == ["llama-index"] else in_langchain()
