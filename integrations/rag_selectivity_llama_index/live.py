"""`LiveSelectivity`: watches the retrievals of a running LlamaIndex application."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, Self

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Workflow
from pydantic import PrivateAttr

from rag_selectivity import Monitor, Report
from rag_selectivity.live.calls import CallTree, Faults, Identity, Kind, Passages, approximate_tokens
from rag_selectivity_llama_index.nodes import parts_of, text_of, texts_of


class LiveSelectivity(BaseSpanHandler[BaseSpan]):  # type: ignore[misc,unused-ignore]
    """Watches every retrieval of the application and what its postprocessors left of it.

    The nodes of the outermost retriever are the pool; the result of the last postprocessor after it, or the
    source nodes of the query's response, is what the LLM was shown. A retrieval is recorded when its query
    engine is done, or whatever it was part of (a chat turn, an agent's run); one that is part of nothing
    at once.

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
    _calls: CallTree = PrivateAttr()
    _identity: Identity = PrivateAttr()
    _labelled: Collection[str] = PrivateAttr()
    _tag: str = PrivateAttr()
    _count: Callable[[str], int] = PrivateAttr()
    _faults: Faults = PrivateAttr()

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
        super().__init__(open_spans={}, completed_spans=[], dropped_spans=[], current_span_ids={})
        self._monitor = monitor if monitor is not None else Monitor(labels, corpus_size=corpus_size, **options)
        self._calls = CallTree(self._monitor.record, pool_of_children=True)
        self._identity = self._monitor.identity(identity)
        self._labelled = self._monitor.labels.by_query
        self._tag, self._count = query_id_tag, count_tokens
        self._faults = Faults("a retrieval was not recorded")

    @classmethod
    def class_name(cls) -> str:
        """As LlamaIndex knows the handler."""
        return "LiveSelectivity"

    @property
    def monitor(self) -> Monitor:
        """Where the retrievals go."""
        return self._monitor

    @property
    def faults(self) -> int:
        """How often something went wrong in here; each time is in the log `rag_selectivity`."""
        return self._faults.count

    def report(self, **options: Any) -> Report:
        """The monitor's report of what was recorded so far."""
        return self._monitor.report(**options)

    def attach(self) -> Self:
        """Start watching."""
        dispatcher = get_dispatcher()
        # LlamaIndex makes no span of a reranker's own asynchronous code (LLMRerank). Its decorator takes effect once.
        asynchronous = vars(BaseNodePostprocessor)["apostprocess_nodes"]
        BaseNodePostprocessor.apostprocess_nodes = dispatcher.span(asynchronous)  # type: ignore[method-assign,unused-ignore]
        if all(handler is not self for handler in dispatcher.span_handlers):
            dispatcher.add_span_handler(self)
        return self

    def detach(self) -> None:
        """Stop watching; what is under way is recorded as it stands."""
        dispatcher = get_dispatcher()
        dispatcher.span_handlers = [handler for handler in dispatcher.span_handlers if handler is not self]
        self._calls.finish()

    def __enter__(self) -> Self:
        return self.attach()

    def __exit__(self, *raised: object) -> None:
        self.detach()

    # -- what LlamaIndex calls ---------------------------------------------------------------------

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
        (kind, asks), query = _kind(type(instance), id_.partition("-")[0]), ""
        given: tuple[str, ...] = ()
        tag = tags.get(self._tag) if tags else None
        query_id = None if tag is None else str(tag)
        with self._faults:
            if kind is Kind.RETRIEVE:
                query = next(texts_of(next(iter(bound_args.arguments.values()), None)), "")
            elif kind is Kind.SELECT:
                nodes, *asked = bound_args.arguments.values()
                query = next(texts_of(asked), "")
                # What goes in, before it is changed in place.
                given = self._ids(nodes or ())
        with self._faults:
            if (asks or query) and query_id is None and self._labelled and kind is not Kind.SELECT:
                said = (query,) if query else texts_of(bound_args.arguments)
                query_id = next((text for text in said if text in self._labelled), None)
        with self._faults:
            self._calls.begin(id_, parent_id, kind, query=query, query_id=query_id, given=given)

    def span_exit(
        self, id_: str, bound_args: Any, instance: Any | None = None, result: Any | None = None, **kwargs: Any
    ) -> None:
        """A call is over."""
        passages = None
        with self._faults:
            kind = self._calls.kind_of(id_)
            if kind is Kind.RETRIEVE and result is None:
                self._calls.fail(id_)
            elif kind is Kind.RETRIEVE or kind is Kind.SELECT:
                passages = self._passages(result or ())
            elif kind is Kind.ANSWER:
                passages = self._passages(getattr(result, "source_nodes", None) or ())
        with self._faults:
            self._calls.end(id_, passages)

    def span_drop(
        self, id_: str, bound_args: Any, instance: Any | None = None, err: BaseException | None = None, **kwargs: Any
    ) -> None:
        """A call has failed; what was retrieved before that still counts, and a retrieval under way is a failure."""
        with self._faults:
            self._calls.fail(id_)

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """Not needed: calls are kept in a tree of their own."""

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        """Not needed."""

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        """Not needed."""

    def _ids(self, nodes: Sequence[NodeWithScore]) -> tuple[str, ...]:
        return tuple([self._identity.id_of(**parts_of(each.node)) for each in nodes])

    def _passages(self, nodes: Sequence[NodeWithScore]) -> Passages:
        return Passages.of(
            self._ids(nodes),
            [text_of(each.node) for each in nodes],
            scores=[each.score for each in nodes],
            count_tokens=self._count,
            keep_texts=self._monitor.wants_texts,
        )


@lru_cache(maxsize=1024)
def _kind(cls: type, name: str) -> tuple[Kind, bool]:
    """What a span of LlamaIndex is here, by the class of its object and its name `Class.method`; and whether it asks.

    A question of the user goes to a query engine, a chat engine, or the run of a workflow.
    """
    method = name.rpartition(".")[2]
    if issubclass(cls, BaseRetriever) and method in ("retrieve", "aretrieve"):
        return Kind.RETRIEVE, False
    # The span is that of the hook which `postprocess_nodes` calls.
    if issubclass(cls, BaseNodePostprocessor) and method.endswith("postprocess_nodes"):
        return Kind.SELECT, False
    if issubclass(cls, BaseQueryEngine) and method in ("query", "aquery"):
        return Kind.ANSWER, True
    chats = issubclass(cls, BaseChatEngine) and method.endswith("chat")
    return Kind.OTHER, chats or (issubclass(cls, Workflow) and method == "run")
