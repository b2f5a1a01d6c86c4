"""The span processor's own thread: it has the figures of `evaluate`, and no trace is lost without being named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from rag_selectivity_otel import SelectivitySpanProcessor

pytestmark = pytest.mark.contract

LISTS = {f"question {q}": [f"d{q}", f"d{q + 1}", f"d{q + 2}"] for q in range(30)}
LABELS = {f"question {q}": {f"d{q + q % 4}": 1} for q in range(30)}
N = 64


class Application:
    """A tracer whose traces have a root span and a retriever span."""

    def __init__(self, processor: SelectivitySpanProcessor, *later: SpanProcessor) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        for each in (processor, *later):
            provider.add_span_processor(each)
        self.tracer = provider.get_tracer("test")

    def retrieve(self, query: str, ids: list[str]) -> None:
        attributes: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": query}
        attributes |= {f"retrieval.documents.{i}.document.id": id_ for i, id_ in enumerate(ids)}
        start = self.tracer.start_as_current_span
        with start("chain"), start("search", attributes=attributes):
            pass


class Slow(rs.Monitor):
    """A monitor that waits for `go` before it takes a retrieval, and knows the threads that brought one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.go, self.has_begun = threading.Event(), threading.Event()
        self.threads: set[threading.Thread] = set()

    def record(self, retrieval: rs.Retrieval) -> None:
        self.threads.add(threading.current_thread())
        self.has_begun.set()
        assert self.go.wait(20)
        super().record(retrieval)


def own_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "rag-selectivity-spans"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    others = set(own_threads())  # of processors that other tests in this process have not shut down
    yield
    assert not set(own_threads()) - others


def test_figures_are_those_of_evaluate_after_force_flush() -> None:
    processor = SelectivitySpanProcessor(LABELS, corpus_size=N, depths=[1, 3])
    application = Application(processor)
    for query, ids in LISTS.items():
        application.retrieve(query, ids)
    assert processor.force_flush()
    report = processor._monitor.report(rs.Bootstrap(resamples=50))
    expected = rs.evaluate(LABELS, {"a": LISTS}, corpus_size=N, depths=[1, 3], bootstrap=None)
    for key in ("BoR@1", "BoR@3", "Success@3", "BoR_max@3"):
        assert report[key].value == pytest.approx(expected[key].value, abs=1e-12)
    assert (processor.faults, processor.problems, processor.traffic.retrievals) == (0, {}, 30)
    processor.shutdown()


def test_the_thread_measures_without_being_asked_and_the_application_does_not_wait() -> None:
    monitor = Slow(LABELS, corpus_size=N)
    processor = SelectivitySpanProcessor(monitor=monitor)
    Application(processor).retrieve("question 1", LISTS["question 1"])
    assert monitor.has_begun.wait(20)
    (thread,) = monitor.threads
    assert thread in own_threads()
    assert thread.daemon
    assert thread is not threading.current_thread()
    started = time.monotonic()
    assert not processor.force_flush(timeout_millis=50)
    assert time.monotonic() - started < 10
    monitor.go.set()
    assert processor.traffic.retrievals == 1
    processor.shutdown()


def test_traces_without_room_are_counted_and_named(caplog) -> None:
    monitor = Slow(LABELS, corpus_size=N)
    processor = SelectivitySpanProcessor(monitor=monitor, waiting=10)
    application = Application(processor)
    application.retrieve("question 0", LISTS["question 0"])
    assert monitor.has_begun.wait(20)
    for query in list(LISTS)[1:9]:
        application.retrieve(query, LISTS[query])
    monitor.go.set()
    assert processor.traffic.retrievals == 1 + 10 // 2
    assert (processor.faults, processor.problems) == (0, {"left_out": 3})
    report = processor.report(bootstrap=rs.Bootstrap(resamples=50))
    assert any(
        note.startswith("3 traces came faster than they could be measured") for note in report.runs["live"].notes
    )
    assert caplog.text.count("a trace was left out") == 1
    processor.shutdown()


def test_a_trace_of_more_spans_than_may_wait_is_measured() -> None:
    processor = SelectivitySpanProcessor(LABELS, corpus_size=N, waiting=1)
    Application(processor).retrieve("question 1", LISTS["question 1"])
    assert (processor.traffic.retrievals, processor.problems) == (1, {})
    processor.shutdown()


@pytest.mark.parametrize("waiting", [0, True, 2.5])
def test_waiting_is_a_whole_number(waiting) -> None:
    with pytest.raises(rs.InputError, match="waiting must be a whole number ≥ 1"):
        SelectivitySpanProcessor(waiting=waiting)


def test_a_fault_costs_one_trace_and_the_thread_goes_on() -> None:
    class Broken(rs.Monitor):
        def record(self, retrieval: rs.Retrieval) -> None:
            if retrieval.query == "question 1":
                raise OSError("disk")
            if retrieval.query == "question 2":
                raise SystemExit
            super().record(retrieval)

    processor = SelectivitySpanProcessor(monitor=Broken(LABELS, corpus_size=N))
    application = Application(processor)
    for query in list(LISTS)[:5]:
        application.retrieve(query, LISTS[query])
    assert (processor.faults, processor.traffic.retrievals) == (2, 3)
    processor.shutdown()


def test_shutdown_measures_what_waits_and_later_traces_are_named() -> None:
    others = set(own_threads())
    processor = SelectivitySpanProcessor(LABELS, corpus_size=N)
    application = Application(processor)
    application.retrieve("question 1", LISTS["question 1"])
    processor.shutdown()
    assert not set(own_threads()) - others
    application.retrieve("question 2", LISTS["question 2"])
    assert (processor.traffic.retrievals, processor.problems) == (1, {"left_out": 1})
    processor.shutdown()


def test_a_request_reaches_the_thread() -> None:
    processor = SelectivitySpanProcessor(LABELS, corpus_size=N)
    application = Application(processor)
    with processor.monitor.request("r1", arm="b", query_id="question 4"):
        application.retrieve("worded anew", LISTS["question 4"])
    assert processor.traffic.labelled == processor.traffic.arms["b"].retrievals == 1
    assert processor.monitor.outcome("r1", 1)
    processor.shutdown()


def test_an_alert_may_look_at_the_figures() -> None:
    seen = []
    processor = SelectivitySpanProcessor(
        LABELS, corpus_size=N, alerts=["tokens > 1"], on_alert=lambda alarm: seen.append(processor.traffic.retrievals)
    )
    application = Application(processor)
    for _ in range(200):
        attributes = {"openinference.span.kind": "RETRIEVER", "input.value": "who?"}
        attributes |= {"retrieval.documents.0.document.content": "a text of several tokens"}
        application.tracer.start_span("search", attributes=attributes).end()
    assert processor.force_flush()
    assert processor.faults == 0
    assert seen
    assert processor.traffic.retrievals == 200
    processor.shutdown()


def test_a_later_processor_that_hides_texts_changes_nothing() -> None:
    class Hiding(SpanProcessor):
        def on_end(self, span: Any) -> None:
            with span._attributes._lock:
                span._attributes._dict.clear()
            span._attributes = {}

    processor = SelectivitySpanProcessor(LABELS, corpus_size=N)
    Application(processor, Hiding()).retrieve("question 1", LISTS["question 1"])
    assert (processor.traffic.labelled, processor.problems) == (1, {})
    processor.shutdown()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_leaves_what_waits_to_the_parent_and_works_in_the_child() -> None:
    processor = SelectivitySpanProcessor(LABELS, corpus_size=N)
    application = Application(processor)
    for query, ids in LISTS.items():
        application.retrieve(query, ids)
    application.tracer.start_span("ends in the parent")
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        # The copy of the monitor has what was measured before the fork.
        before = processor.traffic.retrievals
        application.retrieve("question 1", LISTS["question 1"])
        until = time.monotonic() + 20
        while processor._monitor.traffic.retrievals == before and time.monotonic() < until:
            time.sleep(0.01)
        result = [processor._monitor.traffic.retrievals - before, len(processor._of_span)]
        os.write(writes, json.dumps(result).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert json.loads(os.read(reads, 100)) == [1, 0]
    os.close(reads), os.close(writes)
    assert (processor.traffic.retrievals, processor.faults) == (30, 0)
    processor.shutdown()


def test_a_fork_waits_for_the_trace_that_is_being_measured() -> None:
    monitor = Slow(LABELS, corpus_size=N)
    processor = SelectivitySpanProcessor(monitor=monitor)
    Application(processor).retrieve("question 1", LISTS["question 1"])
    assert monitor.has_begun.wait(20)
    threading.Timer(0.1, monitor.go.set).start()
    # Without `os.fork`, since the child of a test would run its teardown.
    processor._worker._before_fork()
    assert monitor.traffic.retrievals == 1
    processor._worker._after_fork()
    processor.shutdown()


def test_what_waits_at_the_exit_of_the_interpreter_is_measured(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    code = f"""
from tests.test_span_processor import *
application = Application(SelectivitySpanProcessor(corpus_size=N, trace={str(trace)!r}))
for query, ids in LISTS.items():
    application.retrieve(query, ids)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1], timeout=60)
    assert sum('"shown"' in line or '"ids"' in line for line in trace.read_text().splitlines()) == len(LISTS)
