"""How many nodes the indexes, vector stores and retrievers of LlamaIndex can return.

The store is asked and not the docstore, which is empty with a store that keeps texts, and which holds parents too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.io.indexes import (
    IndexReader,
    StoredPassage,
    corpus_size_of_index,
    filter_not_counted,
    index_reader_of,
    made_by,
    stored_passages,
)
from rag_selectivity.io.stores import count_of_qdrant, points_of_qdrant

#: Options of a query in a store's own terms that restrict what it returns.
_STORE_FILTERS = ("where", "qdrant_filters")
_OTHER_RESTRICTIONS = ("where_document", "shard_identifier", "namespace", "tenant", "partition", "filter", "filters")


@dataclass(frozen=True, slots=True)
class Restriction:
    """What a retriever restricts its store to; a true value has a restriction."""

    filters: Any = None
    node_ids: Sequence[str] = ()
    document_ids: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.filters is not None or bool(self.document_ids) or bool(self.options)

    @classmethod
    def of(cls, filter: Any) -> Restriction:
        """From the `MetadataFilters` that a user gives, or what a retriever holds."""
        return filter if isinstance(filter, cls) else cls(filters=filter)

    @property
    def own_filter(self) -> Any:
        """The filter in the terms of the store, or None."""
        return next((self.options[name] for name in _STORE_FILTERS if name in self.options), None)

    @property
    def is_uncountable(self) -> bool:
        """Whether it restricts by what no store here can count."""
        return bool(self.document_ids) or any(name not in _STORE_FILTERS for name in self.options)


def _is_of_llama_index(index: Any) -> bool:
    return made_by(index, "llama_index")


# -- vector stores ---------------------------------------------------------------------------------


class LlamaIndexStore(IndexReader):
    """A vector store: that in memory, and those over Chroma, FAISS, Qdrant and LanceDB."""

    name = "llama-index-store"

    def recognises(self, index: Any) -> bool:
        """By its module and its attributes."""
        return _is_of_llama_index(index) and hasattr(index, "stores_text") and hasattr(index, "is_embedding_query")

    def size(self, index: Any, filter: Any) -> int | None:
        """Asked from the store behind it."""
        restriction = Restriction.of(filter)
        if in_memory(index):
            return len(ids_in_memory(index, restriction))
        if restriction.is_uncountable:
            raise filter_not_counted(index)
        if restriction.filters is not None and restriction.own_filter is None:
            return len(_filtered_nodes(index, restriction.filters))
        return self._size_of_store(index, restriction.own_filter)

    def _size_of_store(self, store: Any, own_filter: Any) -> int | None:
        if made_by(store.client, "qdrant_client"):
            return count_of_qdrant(store.client, store.collection_name, own_filter)
        size = corpus_size_of_index(_behind(store), filter=own_filter)
        if size is None and own_filter is not None:
            raise filter_not_counted(store)
        return size

    def passages(self, index: Any, filter: Any) -> Iterable[StoredPassage] | None:
        """With the metadata of the nodes."""
        restriction = Restriction.of(filter)
        if in_memory(index):
            return [_in_memory(index, node) for node in ids_in_memory(index, restriction)]
        if restriction.is_uncountable:
            raise filter_not_counted(index)
        if restriction.filters is not None and restriction.own_filter is None:
            return map(passage_of_node, _filtered_nodes(index, restriction.filters))
        if made_by(index.client, "qdrant_client"):
            stored: Any = points_of_qdrant(index.client, index.collection_name, restriction.own_filter)
        else:
            stored = stored_passages(_behind(index), filter=restriction.own_filter)
        return None if stored is None else map(_of_payload, stored)


def _behind(store: Any) -> Any:
    """What the store is made of: a LanceDB table, or its client, which is the collection of Chroma or FAISS' index."""
    return store.table if made_by(store.client, "lancedb") else store.client


def in_memory(store: Any) -> bool:
    """Whether a store is LlamaIndex' own, which holds all vectors in memory."""
    return hasattr(getattr(store, "data", None), "embedding_dict")


def ids_in_memory(store: Any, restriction: Restriction) -> list[str]:
    """The ids of the nodes that a query of the store in memory can return."""
    if restriction.is_uncountable or restriction.options:
        raise filter_not_counted(store)
    ids = list(store.data.embedding_dict)
    if restriction.node_ids:
        allowed = set(restriction.node_ids)
        ids = [node for node in ids if node in allowed]
    if restriction.filters is None:
        return ids
    from llama_index.core.vector_stores.utils import build_metadata_filter_fn

    keeps = build_metadata_filter_fn(store.data.metadata_dict.__getitem__, restriction.filters)
    return [node for node in ids if keeps(node)]


def _in_memory(store: Any, node: str) -> StoredPassage:
    document = store.data.text_id_to_ref_doc_id.get(node)
    metadata = (store.data.metadata_dict or {}).get(node) or {}
    return StoredPassage({"node_id": node, "ref_doc_id": _id_or_none(document)}, metadata)


def _filtered_nodes(store: Any, filters: Any) -> list[Any]:
    """The nodes that a filter of LlamaIndex leaves, from the stores that are known to return all of them."""
    if made_by(store.client, "qdrant_client"):
        total = count_of_qdrant(store.client, store.collection_name, None)
        return list(store.get_nodes(filters=filters, limit=max(total, 1)))
    if made_by(store.client, "chromadb", "lancedb"):
        return list(store.get_nodes(None, filters=filters))
    raise filter_not_counted(store)


def passage_of_node(node: Any) -> StoredPassage:
    """A node as it is."""
    return StoredPassage({"node_id": node.node_id, "ref_doc_id": node.ref_doc_id}, node.metadata, node.get_content())


def _of_payload(stored: StoredPassage) -> StoredPassage:
    """A node from what LlamaIndex writes to a store: the node as JSON in one key, and its flat metadata beside it."""
    payload = stored.metadata
    node = json.loads(payload.get("_node_content") or "{}")
    ids = {"node_id": stored.ids["id"], "ref_doc_id": _id_or_none(payload.get("ref_doc_id"))}
    text = node.get("text") if stored.text is None else stored.text
    return StoredPassage(ids, node.get("metadata", payload), text)


def _id_or_none(document: Any) -> Any:
    # LlamaIndex writes "None" for a node without a document.
    return None if document == "None" else document


# -- indexes and docstores -------------------------------------------------------------------------


class LlamaIndexIndex(IndexReader):
    """An index: a VectorStoreIndex, or one that lists its nodes, as a SummaryIndex."""

    name = "llama-index"

    def recognises(self, index: Any) -> bool:
        """By its module and its attributes."""
        return _is_of_llama_index(index) and hasattr(index, "index_struct") and hasattr(index, "docstore")

    def size(self, index: Any, filter: Any) -> int | None:
        """From the index where it lists its nodes, else from its vector store."""
        restriction, store = Restriction.of(filter), getattr(index, "vector_store", None)
        if getattr(store, "stores_text", False):
            return corpus_size_of_index(store, filter=restriction)
        ids = self._ids(index, store, restriction)
        return None if ids is None else len(ids)

    def passages(self, index: Any, filter: Any) -> Iterable[StoredPassage] | None:
        """The nodes that it lists, from the docstore, or those of its vector store."""
        restriction, store = Restriction.of(filter), getattr(index, "vector_store", None)
        if getattr(store, "stores_text", False):
            return stored_passages(store, filter=restriction)
        ids = self._ids(index, store, restriction)
        return None if ids is None else map(passage_of_node, index.docstore.get_nodes(ids, raise_error=False))

    def _ids(self, index: Any, store: Any, restriction: Restriction) -> list[str] | None:
        listed = _nodes_listed(index.index_struct)
        if listed is None:
            return None
        if store is not None and in_memory(store):
            # What was deleted from the store alone stands in the index still.
            return [node for node in ids_in_memory(store, restriction) if node in listed]
        if restriction:
            raise filter_not_counted(index if store is None else store)
        return list(listed)


def _nodes_listed(struct: Any) -> dict[str, None] | None:
    """The ids of the nodes of an index, as vector, list and keyword indexes have them."""
    if hasattr(struct, "nodes_dict"):
        return dict.fromkeys(struct.nodes_dict.values())
    nodes = getattr(struct, "nodes", None) or getattr(struct, "node_ids", None)
    return None if nodes is None else dict.fromkeys(nodes)


class LlamaIndexDocstore(IndexReader):
    """The docstore of a retriever that has no index: its nodes, if none is the parent of another."""

    name = "llama-index-docstore"

    def recognises(self, index: Any) -> bool:
        """By its module and its attributes."""
        return _is_of_llama_index(index) and hasattr(index, "docs") and hasattr(index, "get_node")

    def size(self, index: Any, filter: Any) -> int | None:
        """The number of its nodes."""
        nodes = self._nodes(index, filter)
        return None if nodes is None else len(nodes)

    def passages(self, index: Any, filter: Any) -> Iterator[StoredPassage] | None:
        """Its nodes."""
        nodes = self._nodes(index, filter)
        return None if nodes is None else map(passage_of_node, nodes)

    def _nodes(self, docstore: Any, filter: Any) -> list[Any] | None:
        if Restriction.of(filter):
            raise filter_not_counted(docstore)
        nodes = list(docstore.docs.values())
        return None if any(node.child_nodes for node in nodes) else nodes


# -- retrievers ------------------------------------------------------------------------------------


class LlamaIndexRetriever(IndexReader):
    """A retriever, by the retrievers, indexes or stores that it holds.

    A retriever that merges nodes into their parents is counted by the nodes of its index, from which it starts.
    """

    name = "llama-index-retriever"

    def recognises(self, index: Any) -> bool:
        """By its module and its methods."""
        return _is_of_llama_index(index) and callable(getattr(index, "aretrieve", None))

    def size(self, index: Any, filter: Any) -> int | None:
        """The number of passages of the only one that it holds; of several the number of different passages."""
        parts = self._restricted_parts(index, filter)
        if len(parts) == 1:
            part, restriction = parts[0]
            return corpus_size_of_index(part, filter=restriction)
        passages = self.passages(index, filter)
        return None if passages is None else sum(1 for _ in passages)

    def passages(self, index: Any, filter: Any) -> Iterable[StoredPassage] | None:
        """Those of all that it holds."""
        parts = self._restricted_parts(index, filter)
        lists = [stored_passages(part, filter=restriction) for part, restriction in parts]
        if not lists or any(each is None for each in lists):
            return None
        if len(lists) == 1:
            return lists[0]
        return {each.ids["node_id"]: each for passages in lists for each in passages or ()}.values()

    def _restricted_parts(self, retriever: Any, filter: Any) -> list[tuple[Any, Restriction | None]]:
        """What it retrieves from, and what it restricts each to; a retriever inside has its own restrictions."""
        restriction = self._restriction(retriever, filter)
        parts = self._parts(retriever)
        inside = [part for part in parts if isinstance(index_reader_of(part), LlamaIndexRetriever)]
        if inside and restriction:
            raise filter_not_counted(retriever)
        return [(part, None if part in inside else restriction) for part in parts]

    def _parts(self, retriever: Any) -> list[Any]:
        """What it retrieves from: other retrievers and indexes, without these stores, without these a docstore."""
        # Retrievers that make their own filters for each query, and those whose nodes stand for other retrievers.
        if getattr(retriever, "object_map", None) or any(
            "AutoRetriever" in c.__name__ for c in type(retriever).__mro__
        ):
            return []
        held = [(each, index_reader_of(each)) for each in _held_by(retriever)]
        for kinds in (LlamaIndexRetriever, LlamaIndexIndex), (), (LlamaIndexDocstore,):
            found = {
                id(each): each
                for each, reader in held
                if reader is not None
                and (isinstance(reader, kinds) if kinds else not isinstance(reader, LlamaIndexDocstore))
            }
            if found:
                return list(found.values())
        return []

    def _restriction(self, retriever: Any, filter: Any) -> Restriction:
        if filter is not None:
            return Restriction.of(filter)
        # By the names of the constructor's arguments, under which retrievers keep them.
        kept = {name.strip("_"): value for name, value in _attributes(retriever).items()}
        filters = [value for value in kept.values() if type(value).__name__ == "MetadataFilters"]
        options = {**(kept.get("kwargs") or {}), **(kept.get("vector_store_kwargs") or {})}
        return Restriction(
            filters=next((each for each in filters if each.filters), None),
            node_ids=tuple(kept.get("node_ids") or ()),
            document_ids=tuple(kept.get("doc_ids") or ()),
            options={name: options[name] for name in (*_STORE_FILTERS, *_OTHER_RESTRICTIONS) if options.get(name)},
        )


def _attributes(index: Any) -> dict[str, Any]:
    return {**getattr(index, "__dict__", {}), **(getattr(index, "__pydantic_private__", None) or {})}


def _held_by(retriever: Any) -> Iterator[Any]:
    """The values of its attributes, and those in lists and mappings among them."""
    for value in _attributes(retriever).values():
        yield value
        if isinstance(value, (list, tuple)):
            yield from value[:100]
        elif isinstance(value, Mapping):
            yield from list(value.values())[:100]
