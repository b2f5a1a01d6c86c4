"""A retriever span is measured."""

from opentelemetry.sdk.trace import TracerProvider
from rag_selectivity_otel import SelectivitySpanProcessor

processor = SelectivitySpanProcessor({"who?": {"d": 1}}, corpus_size=8)
provider = TracerProvider()
provider.add_span_processor(processor)
attributes = {
    "openinference.span.kind": "RETRIEVER",
    "input.value": "who?",
    "retrieval.documents.0.document.id": "d",
}
with provider.get_tracer("smoke").start_as_current_span("search", attributes=attributes):
    pass
assert processor.report()["BoR@1"].value == 3
assert processor.faults == 0
