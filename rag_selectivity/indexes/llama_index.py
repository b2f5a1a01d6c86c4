"""What the indexes, vector stores and retrievers of LlamaIndex can return.

The store is asked and not the docstore, which is empty with a store that keeps texts, and which holds parents too.
What restricts a retriever is {"filters": `MetadataFilters`, "node_ids": ids}, without what is empty.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import compress, repeat
from typing import Any

from rag_selectivity.indexes import stores
from rag_selectivity.indexes.stores import Contents, Passages, Reader, StoredPassage

#: What else restricts a query, which no store here can count.
_UNCOUNTED = "where where_document qdrant_filters shard_identifier namespace tenant partition filter filters doc_ids"


def of_llama_index(index: Any, restriction: Mapping[str, Any] | None = None) -> Contents | None:
    """The contents of an index, a store, a docstore or a retriever; None for anything else."""
    return stores.reader_of(index, _READERS)(index, restriction or {})


# -- retrievers -------------------------------------------------------------------------------------------


def _retriever(index: Any, restriction: Mapping[str, Any]) -> Contents | None:
    """A retriever, by the retrievers, indexes or stores that it holds; a retriever inside has its own restrictions.

    A retriever that merges nodes into their parents is counted by the nodes of its index, from which it starts.
    """
    if "filters" in restriction:
        raise stores.filter_not_counted(index)
    own = _restriction(index)
    found = [(type(part).__name__, of_llama_index(part, own)) for part in _parts(index)]
    known = [each for _, each in found if each is not None]
    if known and (unknown := {name for name, each in found if each is None}):
        raise LookupError(f"the nodes of {', '.join(sorted(unknown))} cannot be counted")
    if not known:
        return None
    every = known[0] if len(known) == 1 else Contents(lambda: _together(known))
    return Contents(every.passages, every.count, filtered=bool(own) or any(each.filtered for each in known))


def _together(parts: list[Contents]) -> Passages:
    lists = [part.passages() for part in parts]
    found = {each.ids["node_id"]: each for passages in lists for each in passages or ()}
    return None if None in lists else found.values()


def _recursive(index: Any, restriction: Mapping[str, Any]) -> Contents:
    """A RecursiveRetriever: the nodes to which those of its retriever link (IndexNode), and those that are no links."""
    retriever, *others = index._retriever_dict.values()
    found = of_llama_index(retriever, restriction)
    if others or index._query_engine_dict or found is None or (listed := found.passages()) is None:
        raise LookupError("what its links lead to cannot be counted")
    nodes = [_of_node(index._node_dict[each.link]) if each.link else each for each in listed]
    return Contents(lambda: _together([Contents(lambda: nodes)]), filtered=found.filtered)


def _bm25(index: Any, restriction: Mapping[str, Any]) -> Contents:
    """A BM25Retriever, which keeps its nodes as a store does, with a mask of those that its filters leave."""
    from llama_index.core.vector_stores.utils import metadata_dict_to_node

    rows = compress(index.corpus, index.corpus_weight_mask or repeat(True))
    nodes = list(map(_of_node, map(metadata_dict_to_node, rows)))
    return Contents(lambda: _together([Contents(lambda: nodes)]), filtered=bool(index.corpus_weight_mask))


def _parts(index: Any) -> list[Any]:
    """What it retrieves from: other retrievers and indexes, without these stores, without these a docstore."""
    # Retrievers that make their own filters for each query, and those whose nodes stand for other retrievers.
    if getattr(index, "object_map", None) or any("AutoRetriever" in cls.__name__ for cls in type(index).__mro__):
        return []
    held = [(stores.reader_of(each, _READERS), each) for each in {id(each): each for each in _held_by(index)}.values()]
    for readers in ((_retriever, _recursive, _bm25, _index), (_store,), (_docstore,)):
        if found := [each for reader, each in held if reader in readers]:
            return found
    return []


def _restriction(index: Any) -> dict[str, Any]:
    # By the names of the constructor's arguments, under which retrievers keep them.
    kept = {name.strip("_"): value for name, value in _attributes(index).items()}
    options = {"doc_ids": kept.get("doc_ids"), **(kept.get("kwargs") or {}), **(kept.get("vector_store_kwargs") or {})}
    if any(map(options.get, _UNCOUNTED.split())):
        raise stores.filter_not_counted(index)
    filters = (each for each in kept.values() if type(each).__name__ == "MetadataFilters" and each.filters)
    found = ("filters", next(filters, None)), ("node_ids", kept.get("node_ids"))
    return {name: value for name, value in found if value}


def _attributes(index: Any) -> dict[str, Any]:
    return {**getattr(index, "__dict__", {}), **(getattr(index, "__pydantic_private__", None) or {})}


def _held_by(index: Any) -> Iterator[Any]:
    """The values of its attributes, and those in lists and mappings among them."""
    for value in _attributes(index).values():
        inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
        yield from [value, *inside][:101]


# -- indexes, stores and docstores ------------------------------------------------------------------------


def _index(index: Any, restriction: Mapping[str, Any]) -> Contents | None:
    """A VectorStoreIndex, or an index that lists its nodes, as a SummaryIndex."""
    store = getattr(index, "vector_store", None)
    if getattr(store, "stores_text", False):
        return _store(store, restriction)
    kept = index.index_struct
    nodes = getattr(kept, "nodes_dict", {}).values() or getattr(kept, "nodes", None) or getattr(kept, "node_ids", None)
    if nodes is None:
        return None
    listed = dict.fromkeys(nodes)
    if hasattr(getattr(store, "data", None), "embedding_dict"):  # in memory
        # What was deleted from the store alone stands in the index still.
        listed = {node: None for node in _ids_in_memory(store, restriction) if node in listed}
    elif "filters" in restriction:
        raise stores.filter_not_counted(index if store is None else store)
    ids = [*listed]

    def found(some: list[str] = ids) -> list[StoredPassage]:
        return list(map(_of_node, index.docstore.get_nodes(some, raise_error=False)))

    # Nodes that stand for others come last; several of them may stand for one.
    is_own = [each.ids["node_id"] for each in found(ids[-1:])] == ids[-1:]
    return Contents(lambda: _together([Contents(found)]), (lambda: len(ids)) if is_own else None)


def _store(index: Any, restriction: Mapping[str, Any]) -> Contents | None:
    """A vector store: that in memory, and those over Chroma, FAISS, Qdrant and LanceDB, which are asked."""
    if hasattr(getattr(index, "data", None), "embedding_dict"):  # in memory
        return Contents(lambda: [_in_memory(index, node) for node in _ids_in_memory(index, restriction)])
    is_qdrant = type(index).__name__ == "QdrantVectorStore"
    points = stores.qdrant(index.client, index.collection_name) if is_qdrant else None
    # The others pass over the ids of nodes.
    filters, allowed = restriction.get("filters"), restriction.get("node_ids") if is_qdrant else None
    if filters or allowed:
        if points is None and type(index).__name__ not in ("ChromaVectorStore", "LanceDBVectorStore"):
            raise stores.filter_not_counted(index)
        limit = {} if points is None else {"limit": points.size() or 1}
        nodes = partial(index.get_nodes, None, filters=filters, **limit)
        return Contents(lambda: [_of_node(node) for node in nodes() if not allowed or node.node_id in allowed])
    # A LanceDB table, or the client, which is the collection of Chroma or FAISS' index.
    found = points or stores.of_store(index.table if type(index).__name__ == "LanceDBVectorStore" else index.client)
    # Nodes as LlamaIndex writes them to a store: each as JSON in one key, and its flat metadata beside it.
    return found and Contents(lambda: (listed := found.passages()) and map(_of_payload, listed), found.count)


def _docstore(index: Any, restriction: Mapping[str, Any]) -> Contents | None:
    """The docstore of a retriever that has no index: its nodes, if none is the parent of another."""
    if restriction:
        raise stores.filter_not_counted(index)
    nodes = list(index.docs.values())
    return None if any(node.child_nodes for node in nodes) else Contents(lambda: list(map(_of_node, nodes)))


_READERS: dict[str, Reader] = {
    "llama_index.RecursiveRetriever": _recursive,
    "llama_index.BM25Retriever": _bm25,
    "llama_index.BaseRetriever": _retriever,
    "llama_index.BaseIndex": _index,
    "llama_index.BasePydanticVectorStore": _store,
    "llama_index.BaseDocumentStore": _docstore,
}


def _ids_in_memory(index: Any, restriction: Mapping[str, Any]) -> list[str]:
    """The ids of the nodes that a query of the store in memory can return."""
    from llama_index.core.vector_stores.utils import build_metadata_filter_fn

    keeps = build_metadata_filter_fn(index.data.metadata_dict.__getitem__, restriction.get("filters"))
    allowed = set(restriction.get("node_ids", index.data.embedding_dict))
    return [node for node in index.data.embedding_dict if node in allowed and keeps(node)]


def _in_memory(index: Any, node: str) -> StoredPassage:
    ids = {"node_id": node, "ref_doc_id": _id_or_none(index.data.text_id_to_ref_doc_id.get(node))}
    return StoredPassage(ids, (index.data.metadata_dict or {}).get(node) or {})


def _of_node(node: Any) -> StoredPassage:
    """A node, or the one that an IndexNode has as its object, which a retriever returns in its place."""
    node = getattr(node, "obj", None) or node
    ids = {"node_id": node.node_id, "ref_doc_id": node.ref_doc_id}
    return StoredPassage(ids, node.metadata, node.get_content(), getattr(node, "index_id", None))


def _of_payload(stored: StoredPassage) -> StoredPassage:
    payload = stored.metadata
    node = json.loads(payload.get("_node_content") or "{}")
    ids = {"node_id": stored.ids["id"], "ref_doc_id": _id_or_none(payload.get("ref_doc_id"))}
    return StoredPassage(ids, node.get("metadata", payload), stored.text or node.get("text"), node.get("index_id"))


def _id_or_none(document: Any) -> Any:
    # LlamaIndex writes "None" for a node without a document.
    return None if document == "None" else document
