"""rag-selectivity for OpenTelemetry: retrievals from the spans of a running process, figures as metrics.

Needs the extra `rag-selectivity[otel]`. Files of spans need no extra: `rag-selectivity evaluate --trace`.
"""

from __future__ import annotations

from rag_selectivity.errors import MissingExtraError

try:
    import opentelemetry.sdk.trace  # noqa: F401
except ImportError as error:
    raise MissingExtraError("opentelemetry-sdk", "otel", "rag_selectivity_otel") from error

from rag_selectivity_otel.metrics import observe_figures
from rag_selectivity_otel.processor import SelectivitySpanProcessor

__all__ = ["SelectivitySpanProcessor", "observe_figures"]
