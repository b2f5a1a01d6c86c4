"""rag-selectivity for OpenTelemetry: retrievals from the spans of a running process, figures as metrics.

Needs the extra `rag-selectivity[otel]`. Files of spans need no extra: `rag-selectivity evaluate --trace`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from rag_selectivity.errors import MissingExtraError

try:
    from opentelemetry import metrics
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
    from opentelemetry.trace import StatusCode
except ImportError as error:
    raise MissingExtraError("opentelemetry-sdk", "otel", "rag_selectivity_otel") from error

from rag_selectivity import InputError, Monitor, Report, parse_measure
from rag_selectivity.live.monitor import RetrievalWatcher
from rag_selectivity.live.spans import Problem, Problems, Span, SpanReader
from rag_selectivity.live.watching import Faults, shared_lock

__all__ = ["SelectivitySpanProcessor", "observe_figures"]

#: Traces that never end must not fill the memory.
_MOST_SPANS = 20_000

_Key = tuple[int, int]


@dataclass(eq=False)
class _Operation:
    """The spans below a span without a parent in this process."""

    root: _Key
    members: list[_Key] = field(default_factory=list)
    ended: list[Span] = field(default_factory=list)


class SelectivitySpanProcessor(RetrievalWatcher, SpanProcessor):  # type: ignore[misc,unused-ignore]
    """Measures retrieval by the spans of this process: `provider.add_span_processor(SelectivitySpanProcessor(labels))`.

    The spans are those of OpenInference, of OpenTelemetry's GenAI conventions, or of Langfuse, as in a file of spans.
    The end of a root span completes its retrievals, and hands them to the monitor, whose thread measures them and calls
    `on_alert`. Spans that begin or end after that stand for themselves. Beyond 20,000 spans the oldest trace is
    measured before its end; the report says so.

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

    An error of the processor does not reach the application: it is logged, and counted in `faults`.
    """

    def __init__(self, labels: Any = None, *, rerank: str | None = None, **options: Any) -> None:
        super().__init__(labels, **options)
        self._reader = SpanReader(
            self.monitor.record,
            self.identity,
            query_id_key=self.query_id_key,
            rerank=rerank,
            count_tokens=self.count_tokens,
            keep_texts=self.monitor.wants_texts,
            asked=self.monitor.asked,
        )
        self._lock, self._reading = shared_lock(), shared_lock()
        self._early = Problems()
        #: Of the spans under way or ended below a root that is under way, the oldest first.
        self._of_span: dict[_Key, _Operation] = {}

    # -- what the SDK calls ------------------------------------------------------------------------

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """A span begins."""
        with self.guard:
            key = (span.context.trace_id, span.context.span_id)
            parent = None if span.parent is None else (span.parent.trace_id, span.parent.span_id)
            with self._lock:
                operation = self._of_span.get(parent or key) or _Operation(key)
                operation.members.append(key)
                self._of_span[key] = operation
                oldest = next(iter(self._of_span.values())) if len(self._of_span) > _MOST_SPANS else None
                if oldest is not None:
                    self._forget(oldest, early=True)
            if oldest is not None:
                self._read(oldest.ended)

    def on_end(self, span: ReadableSpan) -> None:
        """A span is over."""
        with self.guard:
            key = (span.context.trace_id, span.context.span_id)
            # Now, since later processors may change the attributes in order to hide texts.
            ended = _span_of(span)
            with self._lock:
                if (operation := self._of_span.get(key)) is not None:
                    operation.ended.append(ended)
                    if operation.root != key:
                        return
                    self._forget(operation)
            self._read([ended] if operation is None else operation.ended)

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Measure the traces that have ended, and check the alerts. Traces that are under way go on."""
        with self.guard:
            self.monitor.flush()
        return True

    def shutdown(self) -> None:
        """Record what is under way, and close a trace."""
        with self.guard:
            with self._lock:
                left = list({operation.root: operation for operation in self._of_span.values()}.values())
                for operation in left:
                    self._forget(operation, early=bool(operation.ended))
            for operation in left:
                self._read(operation.ended)
        with self.guard:
            self.monitor.close()

    # -- giving out --------------------------------------------------------------------------------

    def report(self, **options: Any) -> Report:
        """The figures of all retrievals so far, with notes on what was wrong with their spans.

        Raises
        ------
        InputError
            As `Monitor.report`.
        """
        report = super().report(**options)
        facts = {"spans": self.problems} if self.problems else {}
        return report.with_input(self.monitor.name, facts, self._all_problems.notes)

    @property
    def problems(self) -> dict[str, int]:
        """What was wrong with spans so far: {"cut_list": 2}."""
        return self._all_problems.facts

    @property
    def _all_problems(self) -> Problems:
        return Problems(self._reader.problems + self._early)

    # -- within ------------------------------------------------------------------------------------

    def _forget(self, operation: _Operation, *, early: bool = False) -> None:
        self._early[Problem.EARLY] += early
        for key in operation.members:
            self._of_span.pop(key, None)

    def _read(self, spans: list[Span]) -> None:
        with self._reading:
            self._reader.read(spans)


def _span_of(span: Any) -> Span:
    return Span(
        format(span.context.trace_id, "032x"),
        format(span.context.span_id, "016x"),
        None if span.parent is None else format(span.parent.span_id, "016x"),
        span.name,
        span.start_time,
        span.end_time,
        span.status.status_code is StatusCode.ERROR,
        {name: list(value) if isinstance(value, tuple) else value for name, value in (span.attributes or {}).items()},
        span.dropped_attributes,
    )


_lock = shared_lock()
#: What each meter observes, by the name of the run: a meter takes an instrument once.
_observed: WeakKeyDictionary[Any, dict[str, Report | Monitor]] = WeakKeyDictionary()
_faults = Faults("figures were not observed")


def observe_figures(source: Report | Monitor, *, meter: Any = None) -> None:
    """Give the figures of a report, or those of a monitor at each collection, to a meter.

    The gauge is `rag_selectivity.figure`, with the attributes `run`, `measure`, `depth` (a whole number; absent for all
    passages shown) and `statistic`: `value`, or `low` and `high` for the ends of the interval. What is not a finite
    number is left out. A later source with the same run takes the place of the earlier one.

    Parameters
    ----------
    source : Report or Monitor
        A monitor computes its report at each collection, and has none until a labelled retrieval happened. It is kept
        alive.
    meter : opentelemetry.metrics.Meter, optional
        Default: the meter `rag_selectivity` of the global provider.

    Raises
    ------
    InputError
        If the source is neither.
    """
    if not isinstance(source, (Report, Monitor)):
        raise InputError(f"source must be a Report or a Monitor, got {type(source).__name__}")
    meter = metrics.get_meter("rag_selectivity") if meter is None else meter
    with _lock:
        is_new = meter not in _observed
        sources = _observed.setdefault(meter, {})
        sources.update(dict.fromkeys([source.name] if isinstance(source, Monitor) else source.runs, source))
    if is_new:
        said = "Figures of retrieval over all labelled queries"
        meter.create_observable_gauge("rag_selectivity.figure", [lambda _: _observations(sources)], description=said)


def _observations(sources: Mapping[str, Report | Monitor]) -> list[Any]:
    with _lock:
        current = list(sources.items())
    observations = []
    for run, source in current:
        with _faults:
            observations += list(_figures(run, source))
    return observations


def _figures(run: str, source: Report | Monitor) -> Iterator[Any]:
    if isinstance(source, Monitor) and not source.traffic.labelled:
        return
    for key, estimate in (source.report() if isinstance(source, Monitor) else source).runs[run].estimates.items():
        measure = parse_measure(key)
        attributes: dict[str, Any] = {"run": run, "measure": str(replace(measure, at=None))}
        if measure.at is not None:
            attributes["depth"] = measure.at
        for statistic in ("value", "low", "high"):
            number = float(getattr(estimate, statistic))
            if math.isfinite(number):
                yield metrics.Observation(number, {**attributes, "statistic": statistic})
