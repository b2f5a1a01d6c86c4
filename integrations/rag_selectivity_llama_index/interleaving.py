"""Two retrievers interleaved in production, and credit for what answers cite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.query import QueryEndEvent
from llama_index.core.schema import NodeWithScore, QueryBundle

from rag_selectivity.online import Interleaver
from rag_selectivity_llama_index.nodes import identities_of


class InterleavedRetriever(BaseRetriever):  # type: ignore[misc,unused-ignore]
    """A retriever that drafts from two others, for the impression that `rag_selectivity.online.impression` names.

    Nodes are known by `identity`: `node_id`, `ref_doc_id`, `text` or a metadata key.
    """

    def __init__(
        self, retrievers: Mapping[str, BaseRetriever], interleaver: Interleaver, *, identity: str = "node_id"
    ) -> None:
        self.retrievers, self.interleaver, self.identity = dict(retrievers), interleaver, identity
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._drafted(
            query_bundle, {name: each.retrieve(query_bundle) for name, each in self.retrievers.items()}
        )

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = {name: await each.aretrieve(query_bundle) for name, each in self.retrievers.items()}
        return self._drafted(query_bundle, found)

    def _drafted(self, query: QueryBundle, found: Mapping[str, list[NodeWithScore]]) -> list[NodeWithScore]:
        ids = {name: identities_of(nodes, self.identity) for name, nodes in found.items()}
        known = {id_: each for name in found for id_, each in zip(ids[name], found[name], strict=True)}
        return [known[passage] for passage in self.interleaver.draft(query.query_str, ids).passages]


class CitationHandler(BaseEventHandler):  # type: ignore[misc,unused-ignore]
    """Credits the passages that a query engine's answer cites in brackets: by number, or by id if not `numbered`."""

    interleaver: Any
    numbered: bool = True

    @classmethod
    def class_name(cls) -> str:
        """As LlamaIndex knows the handler."""
        return "CitationHandler"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """An event; the end of a query has the answer."""
        if isinstance(event, QueryEndEvent):
            self.interleaver.credit_answer(str(event.response), numbered=self.numbered)
