"""Retrievals from spans, as OpenTelemetry records them: OpenInference, the GenAI conventions, Langfuse."""

from __future__ import annotations

from rag_selectivity.live.spans.otlp import is_otlp, names_spans, read_spans
from rag_selectivity.live.spans.problems import Problem, Problems
from rag_selectivity.live.spans.reading import SpanFile, read_span_file
from rag_selectivity.live.spans.replay import SpanReader
from rag_selectivity.live.spans.span import Span, outermost

__all__ = [
    "Problem",
    "Problems",
    "Span",
    "SpanFile",
    "SpanReader",
    "is_otlp",
    "names_spans",
    "outermost",
    "read_span_file",
    "read_spans",
]
