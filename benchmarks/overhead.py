"""What watching costs the application's thread, and a metric costs a row in Ragas, beside the same that does nothing.

    RAGAS_DO_NOT_TRACK=true python -m benchmarks.overhead [monitor | langchain | spans | ragas] [--quick]

Rounds with each contender take turns and count the thread's CPU time; the medians count. Between rounds a monitor
measures what waits, as it does between the requests of an application. The first round does not count.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

DOCUMENTS, QUERIES, CORPUS, ROUNDS = 20, 200, 5000, 21
#: A call takes (query, ids); the second function is called between rounds.
Takes = dict[str, tuple[Callable[[str, list[str]], Any], Callable[[], Any]]]


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def world() -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    """Lists of queries, and labels of some of their passages."""
    draw = random.Random(7)
    lists = {f"query {q}": [f"d{i}" for i in draw.sample(range(CORPUS), DOCUMENTS)] for q in range(QUERIES)}
    return lists, {query: {id_: draw.randint(1, 5) for id_ in ids[::2]} for query, ids in lists.items()}


def of_monitor() -> Takes:
    import rag_selectivity as rs

    _, labels = world()
    options: dict[str, Any] = {"scale": "utility", "corpus_size": CORPUS}
    alerts = ["tokens > 8000", "seconds > 2", "BoR < 2"]
    trace = Path(mkdtemp()) / "trace.jsonl"
    monitors = {
        "labels": rs.Monitor(labels, **options),
        "labels and three alerts": rs.Monitor(labels, alerts=alerts, **options),
        "a trace without labels": rs.Monitor(trace=trace),
    }
    takes: Takes = {"nothing": (nothing, nothing)}
    for name, monitor in monitors.items():

        def take(query: str, ids: list[str], record: Any = monitor.record) -> None:
            record(rs.Retrieval(query, ids, tokens=900, seconds=0.1))

        takes[name] = (take, monitor.flush)
    return takes


def of_langchain() -> Takes:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from rag_selectivity_langchain import SelectivityCallback

    class Fixed(BaseRetriever):
        lists: dict[str, list[Document]]

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return self.lists[query]

    class Nothing(BaseCallbackHandler):
        on_retriever_start = on_retriever_end = nothing

    lists, labels = world()
    retriever = Fixed(lists={q: [Document(id=i, page_content="word " * 60) for i in ids] for q, ids in lists.items()})
    watched = SelectivityCallback(labels, scale="utility", corpus_size=CORPUS)

    def take(handler: Any, query: str, _: list[str]) -> None:
        retriever.invoke(query, config={"callbacks": [handler]})

    return {"nothing": (partial(take, Nothing()), nothing), "labels": (partial(take, watched), watched.monitor.flush)}


def of_spans() -> Takes:
    from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
    from rag_selectivity_otel import SelectivitySpanProcessor

    _, labels = world()
    takes: Takes = {}
    watched = SelectivitySpanProcessor(labels, scale="utility", corpus_size=CORPUS)
    for name, processor in (("nothing", SpanProcessor()), ("labels", watched)):
        provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=1000), shutdown_on_exit=False)
        provider.add_span_processor(processor)

        def take(query: str, ids: list[str], tracer: Any = provider.get_tracer("benchmark")) -> None:
            written = {f"retrieval.documents.{i}.document.id": id_ for i, id_ in enumerate(ids)}
            written |= {"openinference.span.kind": "RETRIEVER", "input.value": query}
            with tracer.start_as_current_span("search", attributes=written):
                pass

        takes[name] = (take, processor.force_flush)
    return takes


def of_ragas() -> Takes:
    """A row in `evaluate`; the peer is Ragas' own IDBasedContextPrecision, also six times."""
    from rag_selectivity_ragas import NDCG, RANWG, Harm, Precision, RandomSuccess, Success
    from ragas import EvaluationDataset, evaluate
    from ragas.metrics import IDBasedContextPrecision

    lists, labels = world()
    fields = [
        {"user_input": q, "retrieved_context_ids": ids, "reference_context_ids": list(labels[q])}
        for q, ids in lists.items()
    ]
    data, first = EvaluationDataset.from_list(fields), next(iter(lists))

    def take(metrics: list[Any], query: str, _: list[str]) -> None:
        if query == first:  # all rows at once, so that the mean over the queries is that of a row
            with contextlib.redirect_stderr(io.StringIO()):
                evaluate(data, metrics=metrics, show_progress=False)

    options: dict[str, Any] = {"scale": "utility", "k": 10}
    metrics = [metric(labels, **options) for metric in (Harm, RANWG, NDCG, Precision)]
    metrics += [metric(labels, corpus_size=CORPUS, **options) for metric in (Success, RandomSuccess)]
    peers = [IDBasedContextPrecision() for _ in metrics]
    for i, peer in enumerate(peers):
        peer.name = f"peer {i}"
    contenders: dict[str, list[Any]] = {"IDBasedContextPrecision": peers[:1], "six of them": peers}
    contenders |= {type(metric).__name__: [metric] for metric in metrics[:2]} | {"six metrics": metrics}
    return {name: (partial(take, each), nothing) for name, each in contenders.items()}


PARTS = {
    "monitor": of_monitor,
    "langchain": of_langchain,
    "spans": of_spans,
    "ragas": of_ragas,
}


def main() -> None:
    """Print microseconds a call, and what is more than the peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="two rounds")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lists, _ = world()
    for part in given.parts or PARTS:
        takes = PARTS[part]()
        times: dict[str, list[float]] = {name: [] for name in takes}
        for _ in range(2 if given.quick else ROUNDS):
            for name, (take, settle) in takes.items():
                clock = time.process_time if part == "ragas" else time.thread_time
                start = clock()
                for query, ids in lists.items():
                    take(query, ids)
                times[name].append((clock() - start) / QUERIES * 1e6)
                settle()
        base = statistics.median(next(iter(times.values()))[1:])
        for name, found in times.items():
            took = statistics.median(found[1:])
            print(
                f"{part:12} {name:26} {took:8.1f} µs {took - base:+8.1f} µs {took / base if base else 0:6.2f} ×",
                flush=True,
            )


if __name__ == "__main__":
    main()
