"""The span processor: it has the figures of `evaluate`, and no trace is lost without being named."""

import subprocess
import sys
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


def test_figures_are_those_of_evaluate_after_force_flush() -> None:
    processor = SelectivitySpanProcessor(LABELS, corpus_size=N, depths=[1, 3])
    application = Application(processor)
    for query, ids in LISTS.items():
        application.retrieve(query, ids)
    assert processor.force_flush()
    report = processor.report(bootstrap=rs.Bootstrap(resamples=50))
    expected = rs.evaluate(LABELS, {"a": LISTS}, corpus_size=N, depths=[1, 3], bootstrap=None)
    for key in ("BoR@1", "BoR@3", "Success@3", "BoR_max@3"):
        assert report[key].value == pytest.approx(expected[key].value, abs=1e-12)
    assert (processor.faults, processor.problems, processor.traffic.retrievals) == (0, {}, 30)
    processor.shutdown()


def test_a_fault_costs_one_trace() -> None:
    class Broken(rs.Monitor):
        def record(self, retrieval: rs.Retrieval) -> None:
            if retrieval.query == "question 1":
                raise OSError("disk")
            super().record(retrieval)

    processor = SelectivitySpanProcessor(monitor=Broken(LABELS, corpus_size=N))
    application = Application(processor)
    for query in list(LISTS)[:5]:
        application.retrieve(query, LISTS[query])
    assert (processor.faults, processor.traffic.retrievals) == (1, 4)
    processor.shutdown()


def test_a_request_reaches_the_retrievals() -> None:
    processor = SelectivitySpanProcessor(LABELS, corpus_size=N)
    application = Application(processor)
    with processor.monitor.request("r1", arm="b", query_id="question 4"):
        application.retrieve("worded anew", LISTS["question 4"])
    assert (processor.traffic.labelled, [each.arm for each in processor.monitor.retrievals]) == (1, ["b"])
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
