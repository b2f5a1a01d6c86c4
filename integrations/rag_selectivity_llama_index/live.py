"""`LiveSelectivity`: watches the retrievals of a running LlamaIndex application."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from pydantic import PrivateAttr

from rag_selectivity import Monitor, Report
from rag_selectivity.live.calls import approximate_tokens
from rag_selectivity_llama_index.spans import Spans
from rag_selectivity_llama_index.watcher import Watcher


class LiveSelectivity(Watcher):
    """Watches every retrieval of the application and what its postprocessors left of it.

    The nodes of the outermost retriever and of the retrievers inside it are the pool; the result of the last
    postprocessor after it, or the source nodes of the query's response, is what the LLM was shown. A retrieval is
    recorded when its query engine is done, or whatever it was part of (a chat turn, an agent's run); one that is
    part of nothing at once.

    A retrieval belongs to the query that the tag names; else to its own query, if that has labels; else to the nearest
    question around it that has labels: a sub-question, a chat message, what the user asked an agent, or a text in the
    start event of a workflow.

    Parameters
    ----------
    labels, corpus_size, **options
        As in `rag_selectivity.Monitor`; or `monitor=`, one that is there already.
    identity : {"auto", "node_id", "ref_doc_id", "text"} or str
        How labels know a node: its id, its document's, a hash of its text, or a metadata key (`source`, or
        `source.id` for a key inside it). `"auto"` takes whichever finds most labels in the first 50 retrievals of
        labelled queries; they are measured then, or when a report is asked for.
    query_id_tag : str
        `with instrument_tags({"query_id": …})` around a call tells under which id the labels know the query.
    count_tokens : callable, optional
        Text → tokens; default: four characters a token.

    A retrieval that raises an error, is cancelled, or returns None counts as an empty list.

    Use it as a context manager, or call `attach()` and `detach()`. A fault in here never reaches the
    application: it is logged, and counted in `faults`.

    Spans and not events, because events tell neither what they belong to nor what a postprocessor left.
    """

    _monitor: Monitor = PrivateAttr()
    _spans: Spans = PrivateAttr()

    def __init__(
        self,
        labels: Any = None,
        *,
        corpus_size: Any = None,
        identity: str = "auto",
        query_id_tag: str = "query_id",
        count_tokens: Callable[[str], int] = approximate_tokens,
        monitor: Monitor | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._monitor = monitor if monitor is not None else Monitor(labels, corpus_size=corpus_size, **options)
        self._spans = Spans(self._monitor, identity, query_id_tag, count_tokens)

    @property
    def monitor(self) -> Monitor:
        """Where the retrievals go."""
        return self._monitor

    @property
    def faults(self) -> int:
        """How often something went wrong in here; each time is in the log `rag_selectivity`."""
        return self._spans.faults.count

    def report(self, **options: Any) -> Report:
        """The monitor's report of what was recorded so far."""
        report, notes = self._monitor.report(**options), self._spans.calls.notes
        return report.with_input(self._monitor.name, {}, notes) if notes else report

    def attach(self) -> Self:
        """Start watching."""
        dispatcher = get_dispatcher()
        # LlamaIndex makes no span of a reranker's own asynchronous code (LLMRerank). Its decorator takes effect once.
        asynchronous = vars(BaseNodePostprocessor)["apostprocess_nodes"]
        BaseNodePostprocessor.apostprocess_nodes = dispatcher.span(asynchronous)  # type: ignore[method-assign,unused-ignore]
        return super().attach()

    def detach(self) -> None:
        """Stop watching; what is under way is recorded as it stands, and the trace has every retrieval."""
        super().detach()
        self._spans.calls.finish()
        self._monitor.flush()

    # -- what LlamaIndex calls ---------------------------------------------------------------------

    # A private attribute of a pydantic model takes a microsecond to read, a cached property next to nothing.
    @cached_property
    def _enter(self) -> Callable[..., None]:
        return self._spans.enter

    @cached_property
    def _exit(self) -> Callable[[str, Any], None]:
        return self._spans.exit

    def span_enter(
        self,
        id_: str,
        bound_args: Any,
        instance: Any | None = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A call has begun."""
        self._enter(id_, bound_args.arguments, instance, parent_id, tags)

    def span_exit(
        self, id_: str, bound_args: Any, instance: Any | None = None, result: Any | None = None, **kwargs: Any
    ) -> None:
        """A call is over."""
        self._exit(id_, result)

    def span_drop(
        self, id_: str, bound_args: Any, instance: Any | None = None, err: BaseException | None = None, **kwargs: Any
    ) -> None:
        """A call has failed; what was retrieved before that still counts, and a retrieval under way is a failure."""
        self._spans.drop(id_)
