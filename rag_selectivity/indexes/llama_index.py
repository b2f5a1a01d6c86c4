"""What the indexes, vector stores and retrievers of LlamaIndex can return.

The store is asked and not the docstore, which is empty with a store that keeps texts, and which holds parents too.
What restricts a retriever is {name of its argument: value}, without what is empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rag_selectivity.indexes.stores import (
    Contents,
    Passages,
    StoredPassage,
    filter_not_counted,
    made_by,
    of_store,
    qdrant_of,
)

#: Filters in a store's own terms, and what else restricts a query, which no store here can count.
_STORE_FILTERS = ("where", "qdrant_filters")
_UNCOUNTED = ("where_document", "shard_identifier", "namespace", "tenant", "partition", "filter", "doc_ids")

Restriction = dict[str, Any]


def of_llama_index(index: Any, filter: Any) -> Contents | None:
    """The contents of an index, a store, a docstore or a retriever; `filter` are `MetadataFilters`."""
    kind = _kind(index)
    if kind is None:
        return None
    restriction = _restriction(index) if kind == "retriever" else {}
    return _READERS[kind](index, restriction if filter is None else {"filters": filter})


def _kind(index: Any) -> str | None:
    if not made_by(index, "llama_index"):
        return None
    tests = {
        "retriever": callable(getattr(index, "aretrieve", None)),
        "index": hasattr(index, "index_struct") and hasattr(index, "docstore"),
        "store": hasattr(index, "stores_text") and hasattr(index, "is_embedding_query"),
        "docstore": hasattr(index, "docs") and hasattr(index, "get_node"),
    }
    return next((kind for kind, fits in tests.items() if fits), None)


def _filters(restriction: Restriction) -> bool:
    return any(name != "node_ids" for name in restriction)


# -- retrievers -------------------------------------------------------------------------------------------


def _of_retriever(index: Any, restriction: Restriction) -> Contents | None:
    """A retriever, by the retrievers, indexes or stores that it holds; a retriever inside has its own restrictions.

    A retriever that merges nodes into their parents is counted by the nodes of its index, from which it starts.
    """
    parts = _parts(index)
    if _filters(restriction) and any(_kind(part) == "retriever" for part in parts):
        raise filter_not_counted(index)
    found = [
        of_llama_index(part, None) if _kind(part) == "retriever" else _READERS[str(_kind(part))](part, restriction)
        for part in parts
    ]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    return known[0] if len(known) == 1 else Contents(lambda: _together(known))


def _together(parts: list[Contents]) -> Passages:
    lists = [part.passages() for part in parts]
    if any(passages is None for passages in lists):
        return None
    return {each.ids["node_id"]: each for passages in lists for each in passages or ()}.values()


def _parts(index: Any) -> list[Any]:
    """What it retrieves from: other retrievers and indexes, without these stores, without these a docstore."""
    # Retrievers that make their own filters for each query, and those whose nodes stand for other retrievers.
    if getattr(index, "object_map", None) or any("AutoRetriever" in cls.__name__ for cls in type(index).__mro__):
        return []
    held = {id(each): each for each in _held_by(index) if _kind(each) is not None}.values()
    for kinds in (("retriever", "index"), ("store",), ("docstore",)):
        if found := [each for each in held if _kind(each) in kinds]:
            return found
    return []


def _restriction(index: Any) -> Restriction:
    # By the names of the constructor's arguments, under which retrievers keep them.
    kept = {name.strip("_"): value for name, value in _attributes(index).items()}
    options = {**(kept.get("kwargs") or {}), **(kept.get("vector_store_kwargs") or {})}
    filters = [each for each in kept.values() if type(each).__name__ == "MetadataFilters" and each.filters]
    found = {name: options.get(name) for name in (*_STORE_FILTERS, *_UNCOUNTED)}
    found |= {"filters": next(iter(filters), None), "own filters": options.get("filters")}
    found |= {name: kept.get(name) for name in ("node_ids", "doc_ids")}
    return {name: value for name, value in found.items() if value}


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


# -- indexes, stores and docstores ------------------------------------------------------------------------


def _of_index(index: Any, restriction: Restriction) -> Contents | None:
    """A VectorStoreIndex, or an index that lists its nodes, as a SummaryIndex."""
    store = getattr(index, "vector_store", None)
    if getattr(store, "stores_text", False):
        return _of_store(store, restriction)
    struct = index.index_struct
    nodes = getattr(struct, "nodes", None) or getattr(struct, "node_ids", None)
    nodes = struct.nodes_dict.values() if hasattr(struct, "nodes_dict") else nodes
    if nodes is None:
        return None
    listed = list(dict.fromkeys(nodes))
    if _is_in_memory(store):
        # What was deleted from the store alone stands in the index still.
        known = set(listed)
        listed = [node for node in _ids_in_memory(store, restriction) if node in known]
    elif _filters(restriction):
        raise filter_not_counted(index if store is None else store)
    return Contents(lambda: map(_of_node, index.docstore.get_nodes(listed, raise_error=False)), lambda: len(listed))


def _of_store(index: Any, restriction: Restriction) -> Contents | None:
    """A vector store: that in memory, and those over Chroma, FAISS, Qdrant and LanceDB, which are asked."""
    if _is_in_memory(index):
        ids = _ids_in_memory(index, restriction)
        return Contents(lambda: [_in_memory(index, node) for node in ids])
    if not set(restriction) <= {"filters", "node_ids", *_STORE_FILTERS}:
        raise filter_not_counted(index)
    own = next((restriction[name] for name in _STORE_FILTERS if name in restriction), None)
    is_qdrant = made_by(index.client, "qdrant_client")
    if "filters" in restriction and own is None:
        if not made_by(index.client, "qdrant_client", "chromadb", "lancedb"):
            raise filter_not_counted(index)
        limit = {"limit": qdrant_of(index, None).size() or 1} if is_qdrant else {}
        return Contents(lambda: map(_of_node, index.get_nodes(None, filters=restriction["filters"], **limit)))
    # A LanceDB table, or the client, which is the collection of Chroma or FAISS' index.
    client = index.table if made_by(index.client, "lancedb") else index.client
    found = qdrant_of(index, own) if is_qdrant else of_store(client, own)
    if found is None and own is not None:
        raise filter_not_counted(index)
    return None if found is None else Contents(lambda: _of_payloads(found.passages()), found.count)


def _of_docstore(index: Any, restriction: Restriction) -> Contents | None:
    """The docstore of a retriever that has no index: its nodes, if none is the parent of another."""
    if _filters(restriction):
        raise filter_not_counted(index)
    nodes = list(index.docs.values())
    return None if any(node.child_nodes for node in nodes) else Contents(lambda: list(map(_of_node, nodes)))


_READERS = {"retriever": _of_retriever, "index": _of_index, "store": _of_store, "docstore": _of_docstore}


def _is_in_memory(index: Any) -> bool:
    return hasattr(getattr(index, "data", None), "embedding_dict")


def _ids_in_memory(index: Any, restriction: Restriction) -> list[str]:
    """The ids of the nodes that a query of the store in memory can return."""
    if not set(restriction) <= {"filters", "node_ids"}:
        raise filter_not_counted(index)
    allowed = set(restriction.get("node_ids", ()))
    ids = [node for node in index.data.embedding_dict if not allowed or node in allowed]
    if "filters" not in restriction:
        return ids
    from llama_index.core.vector_stores.utils import build_metadata_filter_fn

    keeps = build_metadata_filter_fn(index.data.metadata_dict.__getitem__, restriction["filters"])
    return [node for node in ids if keeps(node)]


def _in_memory(index: Any, node: str) -> StoredPassage:
    document = index.data.text_id_to_ref_doc_id.get(node)
    metadata = (index.data.metadata_dict or {}).get(node) or {}
    return StoredPassage({"node_id": node, "ref_doc_id": _id_or_none(document)}, metadata)


def _of_node(node: Any) -> StoredPassage:
    return StoredPassage({"node_id": node.node_id, "ref_doc_id": node.ref_doc_id}, node.metadata, node.get_content())


def _of_payloads(stored: Passages) -> Passages:
    """Nodes from what LlamaIndex writes to a store: each as JSON in one key, and its flat metadata beside it."""
    return None if stored is None else map(_of_payload, stored)


def _of_payload(stored: StoredPassage) -> StoredPassage:
    payload = stored.metadata
    node = json.loads(payload.get("_node_content") or "{}")
    ids = {"node_id": stored.ids["id"], "ref_doc_id": _id_or_none(payload.get("ref_doc_id"))}
    return StoredPassage(ids, node.get("metadata", payload), node.get("text") if stored.text is None else stored.text)


def _id_or_none(document: Any) -> Any:
    # LlamaIndex writes "None" for a node without a document.
    return None if document == "None" else document
