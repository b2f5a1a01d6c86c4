"""The indexes, vector stores and retrievers of LlamaIndex.

The store is asked and not the docstore, which is empty with a store that keeps texts, and which holds parents too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rag_selectivity.indexes.contents import (
    Contents,
    Passages,
    StoredPassage,
    contents_of,
    filter_not_counted,
    made_by,
    reader,
    reader_of,
)
from rag_selectivity.indexes.stores import qdrant_collection

#: Options of a query in a store's own terms that restrict what it returns.
_STORE_FILTERS = ("where", "qdrant_filters")
_OTHER_RESTRICTIONS = ("where_document", "shard_identifier", "namespace", "tenant", "partition", "filter", "filters")

llama_index = partial(reader, "llama_index")


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


# -- retrievers ------------------------------------------------------------------------------------


@llama_index(of=lambda index: callable(getattr(index, "aretrieve", None)))
def retriever(index: Any, filter: Any) -> Contents | None:
    """A retriever, by the retrievers, indexes or stores that it holds; a retriever inside has its own restrictions.

    A retriever that merges nodes into their parents is counted by the nodes of its index, from which it starts.
    """
    restriction = _restriction(index) if filter is None else Restriction.of(filter)
    parts = [(part, reader_of(part) is retriever) for part in _parts(index)]
    if restriction and any(inside for _, inside in parts):
        raise filter_not_counted(index)
    found = [contents_of(part, None if inside else restriction) for part, inside in parts]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    return known[0] if len(known) == 1 else Contents.listed(lambda: _together(known))


def _together(parts: Sequence[Contents]) -> Passages:
    lists = [part.passages() for part in parts]
    if any(passages is None for passages in lists):
        return None
    return {each.ids["node_id"]: each for passages in lists for each in passages or ()}.values()


def _parts(index: Any) -> list[Any]:
    """What it retrieves from: other retrievers and indexes, without these stores, without these a docstore."""
    # Retrievers that make their own filters for each query, and those whose nodes stand for other retrievers.
    if getattr(index, "object_map", None) or any("AutoRetriever" in cls.__name__ for cls in type(index).__mro__):
        return []
    kinds: list[dict[int, Any]] = [{}, {}, {}]
    for each in _held_by(index):
        read = reader_of(each)
        if read is not None:
            kinds[0 if read in (retriever, of_index) else 2 if read is docstore else 1][id(each)] = each
    return list(next((kind for kind in kinds if kind), {}).values())


def _restriction(index: Any) -> Restriction:
    # By the names of the constructor's arguments, under which retrievers keep them.
    kept = {name.strip("_"): value for name, value in _attributes(index).items()}
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


def _held_by(index: Any) -> Iterator[Any]:
    """The values of its attributes, and those in lists and mappings among them."""
    for value in _attributes(index).values():
        yield value
        if isinstance(value, (list, tuple)):
            yield from value[:100]
        elif isinstance(value, Mapping):
            yield from list(value.values())[:100]


# -- indexes, stores and docstores -----------------------------------------------------------------


@llama_index(of=lambda index: hasattr(index, "index_struct") and hasattr(index, "docstore"))
def of_index(index: Any, filter: Any) -> Contents | None:
    """A VectorStoreIndex, or an index that lists its nodes, as a SummaryIndex."""
    restriction, store = Restriction.of(filter), getattr(index, "vector_store", None)
    if getattr(store, "stores_text", False):
        return contents_of(store, restriction)
    listed = _nodes_listed(index.index_struct)
    if listed is None:
        return None
    if store is not None and _is_in_memory(store):
        # What was deleted from the store alone stands in the index still.
        known = set(listed)
        listed = [node for node in _ids_in_memory(store, restriction) if node in known]
    elif restriction:
        raise filter_not_counted(index if store is None else store)
    return Contents(lambda: len(listed), lambda: map(_of_node, index.docstore.get_nodes(listed, raise_error=False)))


def _nodes_listed(struct: Any) -> list[str] | None:
    """The ids of the nodes of an index, as vector, list and keyword indexes have them."""
    if hasattr(struct, "nodes_dict"):
        return list(dict.fromkeys(struct.nodes_dict.values()))
    nodes = getattr(struct, "nodes", None) or getattr(struct, "node_ids", None)
    return None if nodes is None else list(dict.fromkeys(nodes))


@llama_index(of=lambda index: hasattr(index, "stores_text") and hasattr(index, "is_embedding_query"))
def store(index: Any, filter: Any) -> Contents | None:
    """A vector store: that in memory, and those over Chroma, FAISS, Qdrant and LanceDB, which are asked."""
    restriction = Restriction.of(filter)
    if _is_in_memory(index):
        ids = _ids_in_memory(index, restriction)
        return Contents(lambda: len(ids), lambda: [_in_memory(index, node) for node in ids])
    if restriction.is_uncountable:
        raise filter_not_counted(index)
    own = restriction.own_filter
    if restriction.filters is not None and own is None:
        return Contents.listed(lambda: map(_of_node, _filtered_nodes(index, restriction.filters)))
    if made_by(index.client, "qdrant_client"):
        found: Contents | None = qdrant_collection(index.client, index.collection_name, own)
    else:
        # A LanceDB table, or the client, which is the collection of Chroma or FAISS' index.
        found = contents_of(index.table if made_by(index.client, "lancedb") else index.client, own)
    if found is None:
        if own is not None:
            raise filter_not_counted(index)
        return None
    return Contents(found.size, lambda: None if (stored := found.passages()) is None else map(_of_payload, stored))


def _filtered_nodes(index: Any, filters: Any) -> list[Any]:
    """The nodes that a filter of LlamaIndex leaves, from the stores that are known to return all of them."""
    if made_by(index.client, "qdrant_client"):
        total = qdrant_collection(index.client, index.collection_name, None).size() or 1
        return list(index.get_nodes(filters=filters, limit=total))
    if made_by(index.client, "chromadb", "lancedb"):
        return list(index.get_nodes(None, filters=filters))
    raise filter_not_counted(index)


def _is_in_memory(index: Any) -> bool:
    return hasattr(getattr(index, "data", None), "embedding_dict")


def _ids_in_memory(index: Any, restriction: Restriction) -> list[str]:
    """The ids of the nodes that a query of the store in memory can return."""
    if restriction.is_uncountable or restriction.options:
        raise filter_not_counted(index)
    allowed = set(restriction.node_ids)
    ids = [node for node in index.data.embedding_dict if not allowed or node in allowed]
    if restriction.filters is None:
        return ids
    from llama_index.core.vector_stores.utils import build_metadata_filter_fn

    keeps = build_metadata_filter_fn(index.data.metadata_dict.__getitem__, restriction.filters)
    return [node for node in ids if keeps(node)]


def _in_memory(index: Any, node: str) -> StoredPassage:
    document = index.data.text_id_to_ref_doc_id.get(node)
    metadata = (index.data.metadata_dict or {}).get(node) or {}
    return StoredPassage({"node_id": node, "ref_doc_id": _id_or_none(document)}, metadata)


def _of_node(node: Any) -> StoredPassage:
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


@llama_index(of=lambda index: hasattr(index, "docs") and hasattr(index, "get_node"))
def docstore(index: Any, filter: Any) -> Contents | None:
    """The docstore of a retriever that has no index: its nodes, if none is the parent of another."""
    if Restriction.of(filter):
        raise filter_not_counted(index)
    nodes = list(index.docs.values())
    if any(node.child_nodes for node in nodes):
        return None
    return Contents(lambda: len(nodes), lambda: map(_of_node, nodes))
