"""What watching costs: a LangChain retriever of 20 documents with the callback and without, in the same process.

    python benchmarks/live_overhead.py

Rounds with and without take turns, and count the processor's time, which other programs disturb less than the clock.
The difference of the fastest rounds is what a retrieval pays; measuring is included. "No measuring" is the part that
each retrieval pays at once; the rest is paid by one retrieval in 512. The steps of a chain without a retriever are
timed in the same way.
"""

from __future__ import annotations

import random
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
DOCUMENTS, QUERIES, CALLS, ROUNDS = 20, 200, 2048, 11
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
    start = time.process_time()
    for i in range(CALLS):
        retriever.invoke(queries[i % len(queries)], config=config)
    return (time.process_time() - start) / CALLS


def seconds_of_steps(callbacks: list[Any], steps: int = 30) -> float:
    chain: Any = RunnableLambda(lambda value: value)
    for _ in range(steps):
        chain = chain | RunnableLambda(lambda value: value)
    config: Any = {"callbacks": callbacks}
    start = time.process_time()
    for _ in range(CALLS // steps):
        chain.invoke("query 1", config=config)
    return (time.process_time() - start) / CALLS


def compare(what: str, handlers: Mapping[str, Any], seconds_with: Callable[[Any], float]) -> None:
    found: dict[str, list[float]] = {name: [] for name in handlers}
    for _ in range(ROUNDS):
        for name, handler in handlers.items():
            found[name].append(seconds_with(handler))
    fastest = {name: min(times) for name, times in found.items()}
    base = fastest[NOTHING]
    print(f"{what:36} {'fastest':>10} {'more':>9} {'ratio':>7}")
    for name, time_ in fastest.items():
        print(f"  {name:34} {time_ * 1e6:7.1f} µs {(time_ - base) * 1e6:6.1f} µs {time_ / base:7.2f}")


def main() -> None:
    retriever, labels, queries = world()
    watched = SelectivityCallback(labels, scale="utility", corpus_size=len(CORPUS))
    elsewhere = SelectivityCallback({"another query": {"d1": 5}}, scale="utility", corpus_size=len(CORPUS))
    unmeasured = SelectivityCallback(labels, scale="utility", corpus_size=len(CORPUS))
    unmeasured.monitor._measure_later = lambda batch: None  # type: ignore[method-assign]
    handlers = {
        NOTHING: Nothing(),
        "labels for every query": watched,
        "the same, no measuring": unmeasured,
        "labels for no query": elsewhere,
    }
    compare("a retrieval", handlers, lambda handler: seconds(retriever, queries, [handler]))
    compare("a retrieval, documents in cache", handlers, lambda handler: seconds(retriever, queries[:1], [handler]))
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
