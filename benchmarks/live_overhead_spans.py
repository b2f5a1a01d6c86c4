"""What watching spans costs: traces with a retriever span and a reranker span, beside a processor that does nothing.

    python benchmarks/live_overhead_spans.py

Rounds with each processor take turns. The time is the CPU time of the application's thread for a trace; beside it
stands the CPU time that the interpretation and measuring of a trace take, which the processor's own thread pays.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from rag_selectivity_otel import SelectivitySpanProcessor

DOCUMENTS, LEFT, QUERIES, TRACES, ROUNDS = 20, 5, 200, 50, 101
CORPUS = 5000

Attributes = dict[str, Any]


def world() -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    draw = random.Random(7)
    corpus = [f"d{i}" for i in range(CORPUS)]
    lists = {f"query {q}": draw.sample(corpus, DOCUMENTS) for q in range(QUERIES)}
    judged = {query: [*draw.sample(ids, 8), *draw.sample(corpus, 12)] for query, ids in lists.items()}
    return lists, {query: {id_: draw.randint(1, 5) for id_ in ids} for query, ids in judged.items()}


def flattened(query: str, ids: list[str], name: str, kind: str) -> Attributes:
    """As OpenInference's instrumentation of LlamaIndex writes documents."""
    written: Attributes = {"openinference.span.kind": kind, "input.value": query}
    for i, id_ in enumerate(ids):
        start = f"{name}.{i}.document."
        written |= {
            f"{start}id": id_,
            f"{start}content": "word " * 60,
            f"{start}score": 1 / (i + 1),
            f"{start}metadata": json.dumps({"source": f"{id_}.pdf", "page": 7}),
        }
    return written


def in_json(query: str, ids: list[str], name: str, kind: str) -> Attributes:
    """As OpenInference's instrumentation of LangChain does: the ids are in the output alone."""
    written = flattened(query, ids, name, kind)
    documents = [
        {"id": id_, "metadata": {"source": f"{id_}.pdf"}, "page_content": "word " * 60, "type": "Document"}
        for id_ in ids
    ]
    kept = {key: value for key, value in written.items() if not key.endswith(("document.id", "document.score"))}
    return kept | {"output.value": json.dumps({"documents": documents}), "output.mime_type": "application/json"}


def run_traces(tracer: Any, attributes: list[tuple[Attributes, Attributes]]) -> float:
    """Seconds of CPU time of this thread for a trace."""
    start = time.thread_time()
    for i in range(TRACES):
        found, left = attributes[i % len(attributes)]
        with tracer.start_as_current_span("chain"):
            with tracer.start_as_current_span("search", attributes=found):
                pass
            with tracer.start_as_current_span("rerank", attributes=left):
                pass
    return (time.thread_time() - start) / TRACES


def compare(what: str, written: Callable[[str, list[str], str, str], Attributes]) -> None:
    lists, labels = world()
    attributes = [
        (
            written(query, ids, "retrieval.documents", "RETRIEVER"),
            written(query, ids[:LEFT], "reranker.output_documents", "RERANKER"),
        )
        for query, ids in lists.items()
    ]
    processors: dict[str, SpanProcessor] = {
        "a processor that does nothing": SpanProcessor(),
        "labels for every query": SelectivitySpanProcessor(labels, scale="utility", corpus_size=CORPUS),
        "no labels": SelectivitySpanProcessor(corpus_size=CORPUS),
    }
    tracers = {}
    for name, processor in processors.items():
        provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=1000), shutdown_on_exit=False)
        provider.add_span_processor(processor)
        tracers[name] = provider.get_tracer("benchmark")
    here: dict[str, list[float]] = {name: [] for name in processors}
    behind: dict[str, list[float]] = {name: [] for name in processors}
    for _ in range(ROUNDS):
        for name, processor in processors.items():
            began = time.process_time()
            here[name].append(run_traces(tracers[name], attributes))
            processor.force_flush()
            behind[name].append((time.process_time() - began) / TRACES - here[name][-1])
    base = statistics.median(here["a processor that does nothing"])
    print(f"{what:32} {'a trace':>12} {'more':>9} {'ratio':>7} {'in the thread':>16}")
    for name, processor in processors.items():
        median, thread = statistics.median(here[name]), statistics.median(behind[name])
        more = (median - base) * 1e6
        print(f"  {name:30} {median * 1e6:9.1f} µs {more:6.1f} µs {median / base:7.2f} {thread * 1e6:13.1f} µs")
        if isinstance(processor, SelectivitySpanProcessor):
            assert processor.traffic.retrievals == ROUNDS * TRACES
            assert not processor.problems
        processor.shutdown()


def main() -> None:
    compare("ids in attributes", flattened)
    compare("ids in JSON", in_json)


if __name__ == "__main__":
    main()
