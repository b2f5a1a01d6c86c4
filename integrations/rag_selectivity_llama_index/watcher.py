"""What both handlers of spans share: attaching to LlamaIndex, and what LlamaIndex calls without need."""

from __future__ import annotations

from typing import Any, Self

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler

from rag_selectivity.live.calls import Shared


class Watcher(Shared, BaseSpanHandler[BaseSpan]):  # type: ignore[misc,unused-ignore]
    """A handler of spans that keeps the calls itself."""

    def __init__(self) -> None:
        super().__init__(open_spans={}, completed_spans=[], dropped_spans=[], current_span_ids={})

    @classmethod
    def class_name(cls) -> str:
        """As LlamaIndex knows the handler."""
        return cls.__name__

    def attach(self) -> Self:
        """Start watching."""
        dispatcher = get_dispatcher()
        if all(handler is not self for handler in dispatcher.span_handlers):
            dispatcher.add_span_handler(self)
        return self

    def detach(self) -> None:
        """Stop watching."""
        dispatcher = get_dispatcher()
        dispatcher.span_handlers = [handler for handler in dispatcher.span_handlers if handler is not self]

    def __enter__(self) -> Self:
        return self.attach()

    def __exit__(self, *raised: object) -> None:
        self.detach()

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """Not needed: calls are kept by the handler itself."""

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        """Not needed."""

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        """Not needed."""
