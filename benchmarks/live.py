"""Watching live retrievals: what an event costs the application's thread, how reading grows, and the memory.

    python -m benchmarks.live [--ten-million]

An event's cost is the CPU time of the thread that records, beside a call or a handler that does nothing, in rounds that
take turns; between rounds the monitor measures what waits, as it does between the requests of an application. Growth is
the CPU time for a file with four times the retrievals. Memory is the peak of a process of its own.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.speed_row import Row
from rag_selectivity import Monitor, Qrels
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace import Trace

EVENTS, ROUNDS, DOCUMENTS, QUERIES, CORPUS = 2000, 9, 20, 200, 5000
#: Microseconds an event; and growth at four times the retrievals: 4 with room for noise, 16 if quadratic.
MOST_MICROSECONDS, MOST_GROWTH = 20.0, 6.0
RETRIEVALS = 5_000

# -- events ------------------------------------------------------------------------------------------


def world() -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    draw = random.Random(7)
    corpus = [f"d{i}" for i in range(CORPUS)]
    lists = {f"query {q}": draw.sample(corpus, DOCUMENTS) for q in range(QUERIES)}
    judged = {query: [*draw.sample(ids, 8), *draw.sample(corpus, 12)] for query, ids in lists.items()}
    return lists, {query: {id_: draw.randint(1, 5) for id_ in ids} for query, ids in judged.items()}


def seconds_an_event(take: Callable[[str, list[str]], Any], lists: dict[str, list[str]]) -> float:
    queries = list(lists)
    start = time.thread_time()
    for i in range(EVENTS):
        query = queries[i % QUERIES]
        take(query, lists[query])
    return (time.thread_time() - start) / EVENTS


def compared(
    takes: dict[str, tuple[Callable[[str, list[str]], Any], Callable[[], Any]]], lists: dict[str, list[str]]
) -> dict[str, float]:
    """Microseconds an event of each contender, the median of rounds that take turns."""
    times: dict[str, list[float]] = {name: [] for name in takes}
    for _ in range(ROUNDS):
        for name, (take, settle) in takes.items():
            times[name].append(seconds_an_event(take, lists))
            settle()
    return {name: median(each) * 1e6 for name, each in times.items()}


def rows_of_events() -> Iterator[Row]:
    lists, labels = world()
    options: dict[str, Any] = {"scale": "utility", "corpus_size": CORPUS}
    with tempfile.TemporaryDirectory() as folder:
        monitors = {
            "labels for every query": Monitor(labels, **options),
            "labels for no query": Monitor({"another": {"d1": 5}}, **options),
            "labels and three alerts": Monitor(labels, alerts=["tokens > 8000", "seconds > 2", "BoR < 2"], **options),
            "a trace without labels": Monitor(trace=Path(folder) / "trace.jsonl"),
        }
        takes: dict[str, Any] = {"nothing": (lambda query, ids: None, lambda: None)}
        for name, monitor in monitors.items():
            record = monitor.record
            takes[name] = (
                lambda query, ids, record=record: record(Retrieval(query, ids, tokens=900, seconds=0.1)),
                monitor.flush,
            )
        yield from _rows("a retrieval recorded", compared(takes, lists))
        for monitor in monitors.values():
            monitor.close()


def rows_of_langchain() -> Iterator[Row]:
    try:
        from langchain_core.documents import Document
        from rag_selectivity_langchain import SelectivityCallback

        from benchmarks.live_overhead import Fixed, Nothing
    except ImportError:
        return
    lists, labels = world()
    documents = {query: [Document(id=id_, page_content="word " * 60) for id_ in ids] for query, ids in lists.items()}
    retriever = Fixed(lists=documents)
    watched = SelectivityCallback(labels, scale="utility", corpus_size=CORPUS)
    unlabelled = SelectivityCallback({"another": {"d1": 5}}, scale="utility", corpus_size=CORPUS)
    takes: dict[str, Any] = {}
    for name, handler in (
        ("nothing", Nothing()),
        ("labels for every query", watched),
        ("labels for no query", unlabelled),
    ):
        config = {"callbacks": [handler]}
        settle = handler.monitor.flush if isinstance(handler, SelectivityCallback) else lambda: None
        takes[name] = (lambda query, _ids, config=config: retriever.invoke(query, config=config), settle)
    # A retriever has two events: it begins and it ends.
    yield from _rows("an event of a LangChain retriever, 20 documents", compared(takes, lists), events=2)


def _rows(work: str, found: dict[str, float], events: int = 1) -> Iterator[Row]:
    base = found.pop("nothing")
    for name, microseconds in found.items():
        more = (microseconds - base) / events
        yield Row(
            f"{work}: {name}",
            f"≤ {MOST_MICROSECONDS:.0f} µs in the caller's thread",
            f"{more:.1f} µs",
            f"a handler that does nothing: {base / events:.1f} µs",
            more <= MOST_MICROSECONDS,
        )


# -- reading -----------------------------------------------------------------------------------------


def span(number: int, parent: int | None, kind: str, ids: Iterable[str], start: int, end: int) -> dict[str, Any]:
    name = "reranker.output_documents" if kind == "RERANKER" else "retrieval.documents"
    values = {"openinference.span.kind": kind, "input.value": f"query {number % QUERIES}"}
    values |= {f"{name}.{i}.document.id": id_ for i, id_ in enumerate(ids)}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
    own = {"traceId": f"{1:032x}", "spanId": f"{number:016x}", "startTimeUnixNano": start, "endTimeUnixNano": end}
    return {**own, "attributes": attributes, **({} if parent is None else {"parentSpanId": f"{parent:016x}"})}


LAST = 10**12


def in_one_trace(n: int, ids: Callable[[], list[str]]) -> Iterator[dict[str, Any]]:
    yield span(1, None, "CHAIN", (), 1, LAST)
    for i in range(n):
        yield span(i + 2, 1, "RETRIEVER", ids(), 10 * i + 10, 10 * i + 15)


def each_reranked(n: int, ids: Callable[[], list[str]]) -> Iterator[dict[str, Any]]:
    yield span(1, None, "CHAIN", (), 1, LAST)
    for i in range(n // 2):
        found = ids()
        yield span(2 * i + 2, 1, "RETRIEVER", found, 20 * i + 10, 20 * i + 15)
        yield span(2 * i + 3, 1, "RERANKER", found[:2], 20 * i + 20, 20 * i + 25)


def nested(n: int, ids: Callable[[], list[str]]) -> Iterator[dict[str, Any]]:
    half = n // 2
    for i in range(half):
        yield span(i + 1, i or None, "CHAIN", (), i + 1, LAST - i)
        yield span(half + i + 1, i + 1, "RETRIEVER", ids(), LAST // 2 + 10 * i, LAST // 2 + 10 * i + 5)


def inside_one_retrieval(n: int, ids: Callable[[], list[str]]) -> Iterator[dict[str, Any]]:
    yield span(1, None, "RETRIEVER", ids(), 1, LAST)
    for i in range(n):
        yield span(i + 2, 1, "RETRIEVER", ids(), 10 * i + 10, 10 * i + 15)


def without_parents(n: int, ids: Callable[[], list[str]]) -> Iterator[dict[str, Any]]:
    for i in range(n):
        yield span(i + 2, 10**9 + i, "RETRIEVER", ids(), 10 * i + 10, 10 * i + 15)


def in_circles(n: int, ids: Callable[[], list[str]]) -> Iterator[dict[str, Any]]:
    for i in range(n):
        yield span(i + 2, (i ^ 1) + 2, "RETRIEVER", ids(), 10 * i + 10, 10 * i + 15)


def of_a_monitor(n: int, ids: Callable[[], list[str]]) -> Iterator[dict[str, Any]]:
    for i in range(n):
        yield {"time": 1.0, "query": f"query {i % QUERIES}", "shown": ids(), "tokens": 90}


def cpu_seconds(make: Callable[[int, Callable[[], list[str]]], Iterator[dict[str, Any]]], n: int) -> float:
    draw = random.Random(7)
    labels = Qrels.from_dict({f"query {q}": {f"d{i}": 1 for i in range(q % 10, 300, 10)} for q in range(QUERIES)})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.jsonl"
        lines = (json.dumps(row) for row in make(n, lambda: [f"d{i}" for i in draw.sample(range(300), 3)]))
        file.write_text("\n".join(lines), encoding="utf-8")
        start = time.process_time()
        Trace.read(file, identity=None if make is of_a_monitor else "id").labels_from(labels)
        return time.process_time() - start


def rows_of_reading() -> Iterator[Row]:
    for what, make in (
        ("a monitor's trace", of_a_monitor),
        ("spans in one trace", in_one_trace),
        ("retrievals and rerankers in one trace", each_reranked),
        ("nested calls", nested),
        ("retrievals inside one retrieval", inside_one_retrieval),
        ("spans without their parents", without_parents),
        ("circles of parents", in_circles),
    ):
        pairs = [(cpu_seconds(make, RETRIEVALS), cpu_seconds(make, 4 * RETRIEVALS)) for _ in range(3)]
        few, many = (min(side) for side in zip(*pairs, strict=True))
        yield Row(
            f"reading {what}: {4 * RETRIEVALS:,} spans beside {RETRIEVALS:,}",
            f"≤ {MOST_GROWTH:.0f} × the time (quadratic: 16 ×)",
            f"{many / few:.1f} × ({few:.2f} s, {many:.2f} s)",
            f"{many / 4 / RETRIEVALS * 1e6:.0f} µs a span",
            many / few <= MOST_GROWTH,
        )


# -- memory ------------------------------------------------------------------------------------------


def watch(events: int) -> None:
    """Record events, each with a query and a passage of its own; print the peak.

    One in 500 has labels. The first 100,000, and one in ten after that, have an id, an arm and an outcome of their own.
    """
    lists, labels = world()
    monitor = Monitor(labels, scale="utility", corpus_size=CORPUS, alerts=["BoR < 2", "outcome < .1"])
    asked, record = list(labels), monitor.record
    for i in range(events):
        if not i % 500:
            record(Retrieval(query := asked[i // 500 % QUERIES], lists[query], tokens=i % 999))
        elif i < 100_000 or not i % 10:
            record(Retrieval(f"question {i}", (f"new {i}",), tokens=i % 999, id=f"r{i}", arm="ab"[i % 2]))
            monitor.outcome(f"r{i}", i % 2)
        else:
            record(Retrieval(f"question {i}", (f"new {i}",)))
    report = monitor.report()
    assert report["BoR"].n == -(-events // 500), report["BoR"].n
    assert monitor.traffic.retrievals == events
    print(_peak())


def _peak() -> float:
    """The peak of this process in megabytes; `ru_maxrss` counts from what its parent held at the fork."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def rows_of_memory(sizes: Iterable[int]) -> Iterator[Row]:
    peaks: dict[int, float] = {}
    for events in sizes:
        command = [sys.executable, "-m", "benchmarks.live", "--watch", str(events)]
        peaks[events] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for (fewer, before), (more, after) in pairwise(peaks.items()):
        yield Row(
            f"a monitor after {more:,} events",
            f"bounded: ≤ 1.1 × the peak after {fewer:,}",
            f"{after:.0f} MB",
            f"after {fewer:,}: {before:.0f} MB",
            after <= 1.1 * before,
        )


def rows(*, ten_million: bool = False) -> Iterator[Row]:
    """The rows of this part."""
    yield from rows_of_reading()
    yield from rows_of_events()
    yield from rows_of_langchain()
    yield from rows_of_memory([100_000, 1_000_000, *([10_000_000] if ten_million else [])])


def main() -> None:
    if "--watch" in sys.argv:
        watch(int(sys.argv[-1]))
        return
    for row in rows(ten_million="--ten-million" in sys.argv):
        mark = "yes" if row.reached else "no"
        print(f"{row.work:72} {row.reach:42} {row.measured:28} {row.peer:45} {mark}", flush=True)


if __name__ == "__main__":
    main()
