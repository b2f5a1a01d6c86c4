"""`SelectivitySpanProcessor`: measures the retrievals of a running process by their spans."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import StatusCode

from rag_selectivity import InputError, Monitor, Report
from rag_selectivity.live.calls import Faults, approximate_tokens
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.spans import Problem, Problems, Span, SpanReader
from rag_selectivity.live.traffic import Traffic
from rag_selectivity.live.worker import Worker
from rag_selectivity.log import LOG

#: Traces that never end must not fill the memory.
_MOST_SPANS = 20_000

#: A shutdown, or a look at the figures, waits this long for the traces that wait.
_SECONDS = 30.0

_Key = tuple[int, int]
_Ended = tuple[ReadableSpan, dict[str, Any]]


@dataclass(eq=False)
class _Operation:
    """The spans below a span without a parent in this process."""

    root: _Key
    members: list[_Key] = field(default_factory=list)
    ended: list[_Ended] = field(default_factory=list)


class SelectivitySpanProcessor(SpanProcessor):  # type: ignore[misc,unused-ignore]
    """Measures retrieval by the spans of this process: `provider.add_span_processor(SelectivitySpanProcessor(labels))`.

    The spans are those of OpenInference, of OpenTelemetry's GenAI conventions, or of Langfuse, as in a file of spans.
    The end of a root span completes its retrievals. Spans that begin or end after that stand for themselves. Beyond
    20,000 spans the oldest trace is measured before its end; the report says so.

    A thread of its own interprets traces a moment after their end, as `BatchSpanProcessor` exports them; the monitor's
    thread measures them and calls `on_alert`. The report, the counts and `monitor` wait until every trace that has
    ended is measured.

    Parameters
    ----------
    labels, **options
        As in `rag_selectivity.Monitor`: `corpus_size`, alerts, a trace, and so on. `monitor=` takes an existing
        monitor instead.
    identity : {"auto", "id", "text"} or str, optional
        How labels know a passage: the id in the span, a hash of the text, or a key of its metadata. `"auto"` takes the
        one that finds most labels. None takes the id if there is one, else the hash.
    query_id_key : str
        An attribute of the span or of the spans around it (`session.id`), or a key of its `metadata`, that has the id
        of the query in the labels. Without it, the labels know the query by its text.
    rerank : str, optional
        The name of spans that select documents although no attribute says so.
    count_tokens : callable, optional
        Text → tokens; default: four characters a token.
    waiting : int
        The most spans that wait to be measured. A trace that finds no room is left out and counted: `problems` and the
        report's notes have it as `left_out`.

    An error of the processor does not reach the application: it is logged, and counted in `faults`.
    """

    def __init__(
        self,
        labels: Any = None,
        *,
        identity: str | None = "auto",
        query_id_key: str = "query_id",
        rerank: str | None = None,
        count_tokens: Callable[[str], int] = approximate_tokens,
        monitor: Monitor | None = None,
        waiting: int = 20_000,
        **options: Any,
    ) -> None:
        if isinstance(waiting, bool) or not isinstance(waiting, int) or waiting < 1:
            raise InputError(f"waiting must be a whole number ≥ 1, got {waiting!r}")
        self._monitor = monitor if monitor is not None else Monitor(labels, **options)
        self._faults = Faults("a retrieval was not recorded")
        self._reading: dict[str, Any] = {
            "names": self._monitor.identity(identity),
            "query_id_key": query_id_key,
            "rerank": rerank,
            "count_tokens": count_tokens,
            "keep_texts": self._monitor.wants_texts,
        }
        self._lock_of_process = threading.Lock()
        self._problems = Problems()
        self._process = os.getpid()
        #: Of the spans under way or ended below a root that is under way, the oldest first.
        self._of_span: dict[_Key, _Operation] = {}
        self._worker = Worker(self._record, waiting, name="rag-selectivity-spans", delay=0.2)

    # -- what the SDK calls ------------------------------------------------------------------------

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """A span begins."""
        with self._faults:
            key = (span.context.trace_id, span.context.span_id)
            parent = None if span.parent is None else (span.parent.trace_id, span.parent.span_id)
            with self._lock:
                operation = None if parent is None else self._of_span.get(parent)
                operation = _Operation(key) if operation is None else operation
                operation.members.append(key)
                self._of_span[key] = operation
                oldest = next(iter(self._of_span.values())) if len(self._of_span) > _MOST_SPANS else None
                if oldest is not None:
                    self._problems[Problem.EARLY] += 1
                    self._forget(oldest)
            if oldest is not None:
                self._put(oldest.ended)

    def on_end(self, span: ReadableSpan) -> None:
        """A span is over."""
        with self._faults:
            context = span.context
            key = (context.trace_id, context.span_id)
            # A copy, since later processors may change the attributes in order to hide texts.
            ended = (span, span.attributes.copy())
            with self._lock:
                operation = self._of_span.get(key)
                if operation is not None:
                    operation.ended.append(ended)
                    if operation.root != key:
                        return
                    self._forget(operation)
            self._put([ended] if operation is None else operation.ended)

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Measure the traces that have ended, and check the alerts; False if that takes longer.

        Traces that are under way go on.
        """
        done = self._worker.drain(timeout_millis / 1000)
        with self._faults:
            self._monitor.flush()
        return done

    def shutdown(self) -> None:
        """Record what is under way, close a trace, and end the thread."""
        with self._faults:
            with self._lock:
                left = list({operation.root: operation for operation in self._of_span.values()}.values())
                self._of_span.clear()
                self._problems[Problem.EARLY] += sum(bool(operation.ended) for operation in left)
            for operation in left:
                self._put(operation.ended)
            given_up = self._worker.stop(_SECONDS)
            if given_up:
                self._leave_out(given_up)
        with self._faults:
            self._monitor.close()

    # -- giving out --------------------------------------------------------------------------------

    def report(self, **options: Any) -> Report:
        """The figures of all retrievals so far, with notes on what was wrong with their spans.

        Raises
        ------
        InputError
            As `Monitor.report`.
        """
        report = self.monitor.report(**options)
        facts = {"spans": self.problems} if self.problems else {}
        return report.with_input(self.monitor.name, facts, self._problems.notes)

    @property
    def monitor(self) -> Monitor:
        """Where the retrievals go, those of every trace that has ended."""
        self._catch_up()
        return self._monitor

    @property
    def problems(self) -> dict[str, int]:
        """What was wrong with spans so far: {"cut_list": 2}."""
        self._catch_up()
        with self._lock:
            return self._problems.facts

    @property
    def faults(self) -> int:
        """The number of errors of the processor itself; each is in the log `rag_selectivity`."""
        self._catch_up()
        return self._faults.count

    @property
    def traffic(self) -> Traffic:
        """What was seen so far, labelled or not."""
        return self.monitor.traffic

    # -- within ------------------------------------------------------------------------------------

    @property
    def _lock(self) -> threading.Lock:
        if self._process != os.getpid():
            # What the parent of a fork began ends in the parent, which may have held the lock.
            self._process, self._lock_of_process, self._of_span = os.getpid(), threading.Lock(), {}
        return self._lock_of_process

    def _forget(self, operation: _Operation) -> None:
        for key in operation.members:
            self._of_span.pop(key, None)

    def _catch_up(self) -> None:
        if not self._worker.drain(_SECONDS) and not self._worker.works_here:
            LOG.warning("traces that have ended still wait to be measured after %d seconds", _SECONDS)

    def _put(self, spans: list[_Ended]) -> None:
        # What the application said of its request (`Monitor.request`) is in the context.
        if spans and not self._worker.put((spans, copy_context()), len(spans)):
            self._leave_out(1)

    def _leave_out(self, traces: int) -> None:
        with self._lock:
            is_first = not self._problems[Problem.LEFT_OUT]
            self._problems[Problem.LEFT_OUT] += traces
        if is_first:
            LOG.warning("a trace was left out: spans come faster than they can be measured, or after the shutdown")

    def _record(self, traces: list[tuple[list[_Ended], Context]]) -> None:
        with self._faults:
            ((spans, context),) = traces
            try:
                context.run(self._measure, spans)
            except SystemExit as error:
                # It ends a thread without a word.
                raise RuntimeError("SystemExit was raised while a trace was measured") from error

    def _measure(self, spans: list[_Ended]) -> None:
        retrievals: list[Retrieval] = []
        reader = SpanReader(retrievals.append, **self._reading)
        reader.read([_span_of(span, attributes) for span, attributes in spans])
        with self._lock:
            self._problems.update(reader.problems)
        for retrieval in retrievals:
            self._monitor.record(retrieval)


def _span_of(span: Any, attributes: Mapping[str, Any]) -> Span:
    return Span(
        format(span.context.trace_id, "032x"),
        format(span.context.span_id, "016x"),
        None if span.parent is None else format(span.parent.span_id, "016x"),
        span.name,
        span.start_time,
        span.end_time,
        span.status.status_code is StatusCode.ERROR,
        {name: list(value) if isinstance(value, tuple) else value for name, value in attributes.items()},
        span.dropped_attributes,
    )
