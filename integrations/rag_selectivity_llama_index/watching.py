"""`LiveSelectivity`: watches the retrievals of a running LlamaIndex application."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, TextNode
from llama_index.core.workflow import Workflow

from rag_selectivity.live.calls import CallTree, Kind
from rag_selectivity.live.monitor import RetrievalWatcher
from rag_selectivity.live.retrieval import Passages, Question
from rag_selectivity.live.watching import Watcher
from rag_selectivity_llama_index.nodes import parts_of, text_of, texts_of


class SpanWatcher(Watcher):
    """A handler of spans: its methods `span_enter`, `span_exit` and `span_drop` are what LlamaIndex calls.

    No BaseSpanHandler, which keeps the spans of an application in memory.
    """

    def attach(self) -> Self:
        """Start watching."""
        handlers: list[Any] = get_dispatcher().span_handlers
        if all(handler is not self for handler in handlers):
            handlers.append(self)
        return self

    def detach(self) -> None:
        """Stop watching."""
        dispatcher = get_dispatcher()
        dispatcher.span_handlers = [handler for handler in dispatcher.span_handlers if handler is not self]

    def capture_propagation_context(self) -> dict[str, Any]:
        """What another process has to know: nothing."""
        return {}

    def restore_propagation_context(self, context: Any) -> None:
        """Nothing came from another process."""

    def __enter__(self) -> Self:
        return self.attach()

    def __exit__(self, *raised: object) -> None:
        self.detach()


class LiveSelectivity(SpanWatcher, RetrievalWatcher):
    """Watches every retrieval of the application and what its postprocessors left of it.

    The result of the outermost retriever is the pool, and that of the last postprocessor after it, or the source nodes
    of the query's response, is what the LLM was shown. A retriever that leaves some of the one list found inside it
    selects, too: that list is the pool. Where nothing selects there is no pool, as in `SelectivityEvaluator`.

    A retrieval is recorded when its query engine is done, or whatever it was part of (a chat turn, an agent's run); one
    that is part of nothing at once.

    A retrieval belongs to the query that the tag names; else to its own query, if that has labels; else to the nearest
    question around it that has labels: a sub-question, a chat message, what the user asked an agent, or a text in the
    start event of a workflow.

    Parameters
    ----------
    labels, **options
        As in `rag_selectivity.Monitor`; or `monitor=`, one that is there already.
    identity : {"auto", "node_id", "ref_doc_id", "text"} or str
        How labels know a node: its id, its document's, a hash of its text, or a metadata key (`source`, or
        `source.id` for a key inside it). `"auto"` takes whichever finds most labels in the first 50 retrievals of
        labelled queries; they are measured then, or when a report is asked for.
    query_id_tag : str
        `with instrument_tags({"query_id": …})` around a call tells under which id the labels know the query.
    count_tokens : callable, optional
        Text → tokens; default: four characters a token.

    A retrieval that raises an error, is cancelled, or returns None counts as an empty list. So does one whose
    postprocessor does, unless what called both goes on without it.

    Use it as a context manager, or call `attach()` and `detach()`. A fault in here never reaches the
    application: it is logged, and counted in `faults`.

    Spans and not events, because events tell neither what they belong to nor what a postprocessor left.
    """

    def __init__(self, labels: Any = None, *, query_id_tag: str = "query_id", **options: Any) -> None:
        super().__init__(labels, query_id_key=query_id_tag, **options)
        self._calls = CallTree(self.monitor.record, asked=self.monitor.asked)

    def attach(self) -> Self:
        """Start watching."""
        # LlamaIndex makes no span of a reranker's own asynchronous code (LLMRerank). Its decorator takes effect once.
        spanned = get_dispatcher().span(vars(BaseNodePostprocessor)["apostprocess_nodes"])
        BaseNodePostprocessor.apostprocess_nodes = spanned  # type: ignore[method-assign,unused-ignore]
        return super().attach()

    def detach(self) -> None:
        """Stop watching; what is under way is recorded as it stands, and the trace has every retrieval."""
        super().detach()
        self._calls.finish()
        self.monitor.flush()

    # -- what LlamaIndex calls ---------------------------------------------------------------------

    def span_enter(
        self, id_: str, bound_args: Any, instance: Any = None, parent_id: str | None = None, tags: Any = None, **_: Any
    ) -> None:
        """A call has begun."""
        cls: Any = type(instance)
        (kind, asks), arguments = _kind(cls, id_.partition("-")[0]), bound_args.arguments
        query, given = "", tuple[str, ...]()
        tag = tags.get(self.query_id_key) if tags else None
        query_id = None if tag is None else str(tag)
        with self.guard:
            if kind is Kind.RETRIEVE:
                query = next(texts_of(next(iter(arguments.values()), None)), "")
            elif kind is Kind.SELECT:
                nodes, *asked = arguments.values()
                query = next(texts_of(asked), "")
                # What goes in, before it is changed in place.
                given = self._ids([each.node for each in nodes or ()])
        with self.guard:
            if asks and query_id is None and self.labelled:
                said = (query,) if query else texts_of(arguments)
                query_id = next((Question(text) for text in said if text in self.labelled), None)
        with self.guard:
            self._calls.begin(id_, parent_id, kind, query=query, query_id=query_id, given=given)

    def span_exit(self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **_: Any) -> None:
        """A call is over."""
        kind, passages = self._calls.kind_of(id_), None
        with self.guard:
            if result is None and kind in (Kind.RETRIEVE, Kind.SELECT):
                self._calls.fail(id_, returned=True)
            elif kind in (Kind.RETRIEVE, Kind.SELECT):
                passages = self._passages(result, named=self._calls.needs_ids(id_, self.monitor.wants_ids))
            elif kind is Kind.ANSWER:
                passages = self._passages(getattr(result, "source_nodes", None) or ())
        with self.guard:
            self._calls.end(id_, passages)

    def span_drop(self, id_: str, bound_args: Any, instance: Any = None, err: Any = None, **_: Any) -> None:
        """A call has failed, and with it a retrieval that is under way, or whose postprocessor let the call fail."""
        with self.guard:
            self._calls.fail(id_)

    def _ids(self, nodes: Sequence[BaseNode]) -> tuple[str, ...]:
        settled = self.identity.settled
        if settled == "node_id" or (settled is None and not self.labelled):
            # The commonest case, without what the others need; as a property, the id takes three times as long.
            ids = [node.id_ if type(node) is TextNode else node.node_id for node in nodes]
            if all(ids):
                return tuple(ids)
        return tuple([self.identity.id_of(**parts_of(node)) for node in nodes])

    def _passages(self, found: Sequence[NodeWithScore], *, named: bool = True) -> Passages:
        nodes = [each.node for each in found]
        ids = self._ids(nodes) if named else ("",) * len(nodes)
        texts = [node.text if type(node) is TextNode else text_of(node) for node in nodes]
        return self.passages(ids, texts, [each.score for each in found])


@lru_cache(maxsize=1024)
def _kind(cls: type, name: str) -> tuple[Kind, bool]:
    """What a span of LlamaIndex is here, by the class of its object and its name `Class.method`; and whether it asks.

    A question goes to a retriever, a query engine, a chat engine, or the run of a workflow.
    """
    method = name.rpartition(".")[2]
    if issubclass(cls, BaseRetriever) and method in ("retrieve", "aretrieve"):
        return Kind.RETRIEVE, True
    # The span is that of the hook which `postprocess_nodes` calls.
    if issubclass(cls, BaseNodePostprocessor) and method.endswith("postprocess_nodes"):
        return Kind.SELECT, False
    if issubclass(cls, BaseQueryEngine) and method in ("query", "aquery"):
        return Kind.ANSWER, True
    chats = issubclass(cls, BaseChatEngine) and method.endswith("chat")
    return Kind.OTHER, chats or (issubclass(cls, Workflow) and method == "run")
