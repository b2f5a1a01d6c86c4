"""`LiveSelectivity`: watches the retrievals of a running LlamaIndex application."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore
from pydantic import PrivateAttr

from rag_selectivity.monitor import Monitor, Retrieval, approximate_tokens
from rag_selectivity.report import Report
from rag_selectivity_llama_index.identity import identity_of

_log = logging.getLogger("rag_selectivity")
#: Spans that never close (an abandoned generator) must not fill the memory.
_MOST_SPANS = 20_000

_RETRIEVE, _POSTPROCESS, _QUERY = "retrieve", "postprocess", "query"
_KINDS: dict[str, tuple[str, type]] = {
    "retrieve": (_RETRIEVE, BaseRetriever),
    "aretrieve": (_RETRIEVE, BaseRetriever),
    "_postprocess_nodes": (_POSTPROCESS, BaseNodePostprocessor),
    "_apostprocess_nodes": (_POSTPROCESS, BaseNodePostprocessor),
    "query": (_QUERY, BaseQueryEngine),
    "aquery": (_QUERY, BaseQueryEngine),
}


@dataclass(slots=True)
class _Open:
    """A span that is under way."""

    parent: str | None
    root: str
    kind: str | None
    inside_retrieval: bool
    query_id: str | None
    started: float
    given: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Found:
    """A retrieval that is over, until it is known what was made of it."""

    query: str
    query_id: str | None
    scope: str | None
    ancestors: frozenset[str]
    pool: Passages
    seconds: float
    final: Passages | None = None


@dataclass(frozen=True, slots=True)
class Passages:
    """Ids of nodes in order, and how long they are."""

    ids: tuple[str, ...]
    tokens: int


@dataclass(slots=True)
class _Tree:
    """The open spans below a root, and the retrievals that happened there."""

    spans: int = 0
    found: list[_Found] = field(default_factory=list)


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
    identity : str
        `node_id`, `ref_doc_id`, `text` or a metadata key.
    query_id_tag : str
        `with instrument_tags({"query_id": …})` around a call tells under which id the labels know the query.
    count_tokens : callable, optional
        Text → tokens; default: four characters a token.

    Use it as a context manager, or call `attach()` and `detach()`. A fault in here never reaches the
    application: it is logged, and counted in `faults`.

    Spans and not events, because events tell neither what they belong to nor what a postprocessor left.
    """

    _monitor: Monitor = PrivateAttr()
    _identity: str = PrivateAttr()
    _tag: str = PrivateAttr()
    _count: Callable[[str], int] = PrivateAttr()
    _spans: dict[str, _Open] = PrivateAttr(default_factory=dict)
    _trees: dict[str, _Tree] = PrivateAttr(default_factory=dict)
    _guard: Any = PrivateAttr(default_factory=threading.RLock)
    _faults: int = PrivateAttr(default=0)

    def __init__(
        self,
        labels: Any = None,
        *,
        corpus_size: int | None = None,
        identity: str = "node_id",
        query_id_tag: str = "query_id",
        count_tokens: Callable[[str], int] = approximate_tokens,
        monitor: Monitor | None = None,
        **options: Any,
    ) -> None:
        super().__init__(open_spans={}, completed_spans=[], dropped_spans=[], current_span_ids={})
        self._monitor = monitor if monitor is not None else Monitor(labels, corpus_size=corpus_size, **options)
        self._identity, self._tag, self._count = identity, query_id_tag, count_tokens

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
        return self._faults

    def report(self, **options: Any) -> Report:
        """The monitor's report of what was recorded so far."""
        return self._monitor.report(**options)

    def attach(self) -> Self:
        """Start watching."""
        get_dispatcher().add_span_handler(self)
        return self

    def detach(self) -> None:
        """Stop watching; what is under way is recorded as it stands."""
        dispatcher = get_dispatcher()
        dispatcher.span_handlers = [handler for handler in dispatcher.span_handlers if handler is not self]
        with self._guard:
            left = [found for tree in self._trees.values() for found in tree.found]
            self._trees.clear()
            self._spans.clear()
        self._record(left)

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
        kind = _kind(id_, instance)
        given: frozenset[str] = frozenset()
        if kind == _POSTPROCESS:
            try:
                # What goes in, before it is changed in place.
                given = frozenset(identity_of(each.node, self._identity) for each in _first(bound_args, ()))
            except Exception as error:
                self._fault(error)
        tag = (tags or {}).get(self._tag)
        with self._guard:
            parent = self._spans.get(parent_id) if parent_id is not None else None
            root = parent.root if parent is not None else id_
            self._spans[id_] = _Open(
                parent_id if parent is not None else None,
                root,
                kind,
                parent is not None and (parent.inside_retrieval or parent.kind == _RETRIEVE),
                None if tag is None else str(tag),
                time.perf_counter(),
                given,
            )
            self._trees.setdefault(root, _Tree()).spans += 1
            forgotten = [] if len(self._spans) <= _MOST_SPANS else self._forget(next(iter(self._spans.values())).root)
        self._record(forgotten)

    def span_exit(
        self, id_: str, bound_args: Any, instance: Any | None = None, result: Any | None = None, **kwargs: Any
    ) -> None:
        """A call is over."""
        span = self._spans.get(id_)
        if span is None:
            return
        try:
            self._note(id_, span, bound_args, result)
        except Exception as error:
            self._fault(error)
        self._close(id_, span)

    def span_drop(
        self, id_: str, bound_args: Any, instance: Any | None = None, err: BaseException | None = None, **kwargs: Any
    ) -> None:
        """A call has failed; what was retrieved before that still counts."""
        span = self._spans.get(id_)
        if span is None:
            return
        if span.kind == _RETRIEVE and not span.inside_retrieval:
            self._monitor.failed()
        self._close(id_, span)

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """Not needed: spans are kept in a form of their own."""

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        """Not needed."""

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        """Not needed."""

    # -- what is made of it ------------------------------------------------------------------------

    def _note(self, id_: str, span: _Open, bound_args: Any, result: Any) -> None:
        if span.kind is None or span.inside_retrieval:
            return
        if span.kind == _RETRIEVE:
            found = _Found(
                _query_text(bound_args),
                span.query_id,
                span.parent,
                self._ancestors(span),
                self._passages(result or ()),
                time.perf_counter() - span.started,
            )
            with self._guard:
                self._trees[span.root].found.append(found)
        elif span.kind == _POSTPROCESS:
            left = self._passages(result or ())
            with self._guard:
                tree = self._trees[span.root]
                tree.found = _selected(tree.found, span, left)
        elif span.kind == _QUERY:
            nodes = getattr(result, "source_nodes", None)
            with self._guard:
                tree = self._trees[span.root]
                done = [found for found in tree.found if id_ in found.ancestors]
                tree.found = [found for found in tree.found if id_ not in found.ancestors]
            if len(done) == 1 and done[0].final is None and nodes:
                left = self._passages(nodes)
                if set(left.ids) & set(done[0].pool.ids):
                    done[0].final = left
            self._record(done)

    def _close(self, id_: str, span: _Open) -> None:
        with self._guard:
            self._spans.pop(id_, None)
            tree = self._trees.get(span.root)
            if tree is None:
                return
            tree.spans -= 1
            # A stream may outlive the call that began it: then its own spans have another root.
            done = self._forget(span.root) if tree.spans <= 0 or id_ == span.root else []
        self._record(done)

    def _forget(self, root: str) -> list[_Found]:
        tree = self._trees.pop(root, None)
        if tree is not None and tree.spans > 0:
            self._spans = {id_: span for id_, span in self._spans.items() if span.root != root}
        return tree.found if tree is not None else []

    def _record(self, done: Sequence[_Found]) -> None:
        for found in done:
            final = found.final
            shown = final if final is not None else found.pool
            try:
                self._monitor.record(
                    Retrieval(
                        found.query,
                        shown.ids,
                        pool=found.pool.ids if final is not None else None,
                        query_id=found.query_id,
                        tokens=shown.tokens,
                        seconds=found.seconds,
                    )
                )
            except Exception as error:
                self._fault(error)

    def _passages(self, nodes: Sequence[NodeWithScore]) -> Passages:
        """Ids and lengths at once: the nodes are live objects that later steps may change."""
        ids = tuple(identity_of(found.node, self._identity) for found in nodes)
        return Passages(ids, sum(self._count(found.node.get_content()) for found in nodes))

    def _ancestors(self, span: _Open) -> frozenset[str]:
        names = set()
        above = span.parent
        while above is not None:
            names.add(above)
            enclosing = self._spans.get(above)
            above = enclosing.parent if enclosing is not None else None
        return frozenset(names)

    def _fault(self, error: Exception) -> None:
        with self._guard:
            self._faults += 1
        _log.warning("a retrieval was not recorded: %s", error, exc_info=self._faults == 1)


def _kind(id_: str, instance: Any) -> str | None:
    """What a span of LlamaIndex is here, by its name `Class.method-uuid` and its object."""
    method = id_.partition("-")[0].rpartition(".")[2]
    kind, cls = _KINDS.get(method, (None, None))
    return kind if cls is not None and isinstance(instance, cls) else None


def _first(bound_args: Any, default: Any) -> Any:
    return next(iter(bound_args.arguments.values()), default)


def _query_text(bound_args: Any) -> str:
    asked = _first(bound_args, "")
    return str(getattr(asked, "query_str", asked))


def _selected(found: list[_Found], span: _Open, left: Passages) -> list[_Found]:
    """The retrievals, with what a postprocessor left written to the one that it worked on.

    That is the last whose nodes went in, else the last of the same call; several for the same query whose
    nodes went in together are one retrieval with one pool.
    """
    went_in = [each for each in found if span.given & set(each.pool.ids)]
    touched = went_in or [each for each in found if each.scope == span.parent]
    if not touched:
        return found
    last = touched[-1]
    together = [each for each in went_in if (each.query, each.scope) == (last.query, last.scope)] or [last]
    pool = Passages(
        tuple(dict.fromkeys(id_ for each in together for id_ in each.pool.ids)),
        sum(each.pool.tokens for each in together),
    )
    merged = replace(last, pool=pool, seconds=sum(each.seconds for each in together), final=left)
    return [*(each for each in found if all(each is not other for other in together)), merged]
