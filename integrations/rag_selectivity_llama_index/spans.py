"""LlamaIndex's spans as the calls of a tree: what each does, and the passages that went through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, TextNode
from llama_index.core.workflow import Workflow

from rag_selectivity import Monitor
from rag_selectivity.live.calls import CallTree, Faults, Kind, Passages
from rag_selectivity_llama_index.nodes import parts_of, text_of, texts_of


class Spans:
    """Follows spans, and records each retrieval with the monitor.

    Not a pydantic model, as LlamaIndex's handlers are: a private attribute of one takes a microsecond to read.
    """

    def __init__(self, monitor: Monitor, identity: str, query_id_tag: str, count_tokens: Callable[[str], int]) -> None:
        self.calls = CallTree(monitor.record)
        self.faults = Faults("a retrieval was not recorded")
        self._monitor, self._labelled = monitor, monitor.labels.by_query
        self._identity = monitor.identity(identity)
        self._tag, self._count = query_id_tag, count_tokens

    def enter(self, id_: str, arguments: Mapping[str, Any], instance: Any, parent: str | None, tags: Any) -> None:
        """A call has begun."""
        cls: Any = type(instance)
        (kind, asks), query = _kind(cls, id_.partition("-")[0]), ""
        given: tuple[str, ...] = ()
        tag = tags.get(self._tag) if tags else None
        query_id = None if tag is None else str(tag)
        if kind is Kind.OTHER and not asks:
            with self.faults:
                self.calls.begin(id_, parent, kind, query_id=query_id)
            return
        with self.faults:
            if kind is Kind.RETRIEVE:
                query = next(texts_of(next(iter(arguments.values()), None)), "")
            elif kind is Kind.SELECT:
                nodes, *asked = arguments.values()
                query = next(texts_of(asked), "")
                # What goes in, before it is changed in place.
                given = self._ids([each.node for each in nodes or ()])
        if asks and query_id is None and self._labelled:
            with self.faults:
                said = (query,) if query else texts_of(arguments)
                query_id = next((text for text in said if text in self._labelled), None)
        with self.faults:
            self.calls.begin(id_, parent, kind, query=query, query_id=query_id, given=given)

    def exit(self, id_: str, result: Any) -> None:
        """A call is over."""
        kind, passages = self.calls.kind_of(id_), None
        if kind is not Kind.OTHER:
            with self.faults:
                if kind is Kind.RETRIEVE and result is None:
                    self.calls.fail(id_)
                elif kind is Kind.RETRIEVE or kind is Kind.SELECT:
                    passages = self._passages(result or (), named=kind is Kind.SELECT or self._wants_ids(id_))
                elif kind is Kind.ANSWER:
                    passages = self._passages(getattr(result, "source_nodes", None) or ())
        with self.faults:
            self.calls.end(id_, passages)

    def drop(self, id_: str) -> None:
        """A call has failed."""
        with self.faults:
            self.calls.fail(id_)

    def _wants_ids(self, id_: str) -> bool:
        """Whether it matters which nodes a retrieval got; where it is part of something, that may select from them."""
        alone = self.calls.alone(id_)
        return alone is None or self._monitor.wants_ids(*alone)

    def _ids(self, nodes: Sequence[BaseNode]) -> tuple[str, ...]:
        identity = self._identity
        settled = identity.settled
        if settled == "node_id" or (settled is None and not self._labelled):
            # The commonest case, without what the others need; as a property, the id takes three times as long.
            ids = [node.id_ if type(node) is TextNode else node.node_id for node in nodes]
            if all(ids):
                return tuple(ids)
        return tuple([identity.id_of(**parts_of(node)) for node in nodes])

    def _passages(self, found: Sequence[NodeWithScore], *, named: bool = True) -> Passages:
        nodes = [each.node for each in found]
        return Passages.of(
            self._ids(nodes) if named else ("",) * len(nodes),
            [node.text if type(node) is TextNode else text_of(node) for node in nodes],
            scores=[each.score for each in found],
            count_tokens=self._count,
            keep_texts=self._monitor.wants_texts,
        )


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
