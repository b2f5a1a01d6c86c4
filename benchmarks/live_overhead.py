"""What watching costs: a LangChain retriever of 20 documents with the callback and without, in the same process.

    python benchmarks/live_overhead.py

Rounds with and without take turns. The difference of the medians is what a retrieval pays; measuring is included. The
steps of a chain without a retriever are timed in the same way.
"""

from __future__ import annotations

import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from rag_selectivity_langchain import SelectivityCallback

NOTHING = "a handler that does nothing"
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

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        pass

    def on_chain_end(self, *args: Any, **kwargs: Any) -> None:
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


def seconds_of_steps(callbacks: list[Any], steps: int = 30) -> float:
    chain: Any = RunnableLambda(lambda value: value)
    for _ in range(steps):
        chain = chain | RunnableLambda(lambda value: value)
    config: Any = {"callbacks": callbacks}
    start = time.perf_counter()
    for _ in range(CALLS // steps):
        chain.invoke("query 1", config=config)
    return (time.perf_counter() - start) / CALLS


def compare(what: str, handlers: Mapping[str, Any], seconds_with: Callable[[Any], float]) -> None:
    found: dict[str, list[float]] = {name: [] for name in handlers}
    for _ in range(ROUNDS):
        for name, handler in handlers.items():
            found[name].append(seconds_with(handler))
    medians = {name: statistics.median(times) for name, times in found.items()}
    base = medians[NOTHING]
    print(f"{what:30} {'median':>12} {'more':>9} {'ratio':>7}")
    for name, median in medians.items():
        print(f"  {name:28} {median * 1e6:9.1f} µs {(median - base) * 1e6:6.1f} µs {median / base:7.2f}")


def main() -> None:
    retriever, labels, queries = world()
    watched = SelectivityCallback(labels, scale="utility", corpus_size=len(CORPUS))
    elsewhere = SelectivityCallback({"another query": {"d1": 5}}, scale="utility", corpus_size=len(CORPUS))
    handlers = {NOTHING: Nothing(), "labels for every query": watched, "labels for no query": elsewhere}
    compare("a retrieval", handlers, lambda handler: seconds(retriever, queries, [handler]))
    compare("a step of a chain", handlers, lambda handler: seconds_of_steps([handler]))
    watched.report()
    start = time.perf_counter()
    watched.report()
    print(f"a report over {watched.traffic.retrievals:,} retrievals: {(time.perf_counter() - start) * 1e3:.1f} ms")
    tracemalloc.start()
    long_lived = SelectivityCallback(labels, scale="utility", corpus_size=len(CORPUS))
    for after in (10_000, 40_000):
        while long_lived.traffic.retrievals < after:
            seconds(retriever, queries, [long_lived])
        long_lived.monitor.flush()
        print(f"memory after {after:,} retrievals: {tracemalloc.get_traced_memory()[0] / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
