"""Retrievals from spans, as OpenTelemetry records them: OpenInference, the GenAI conventions, Langfuse."""

from rag_selectivity.live.spans.otlp import Problem, Problems, Span, names_spans, outermost
from rag_selectivity.live.spans.replay import SpanReader, retrievals_of_spans

__all__ = ["Problem", "Problems", "Span", "SpanReader", "names_spans", "outermost", "retrievals_of_spans"]
