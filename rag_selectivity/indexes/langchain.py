"""The vector stores and retrievers of LangChain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from rag_selectivity.indexes.contents import Contents, StoredPassage, contents_of, filter_not_counted, is_a, reader
from rag_selectivity.indexes.stores import lance, of_chroma, qdrant_collection

#: What `search_kwargs` may hold, besides `filter`, that restricts what a store returns.
_OTHER_RESTRICTIONS = ("where_document", "pre_filter", "post_filter", "namespace", "tenant", "partition", "expr")

langchain = partial(
    reader, "langchain_core", "langchain_community", "langchain_chroma", "langchain_qdrant", "langchain_classic"
)


# -- retrievers ------------------------------------------------------------------------------------


@langchain(of=is_a("VectorStoreRetriever"))
def retriever(index: Any, filter: Any) -> Contents | None:
    """The retriever of a vector store, with its filter."""
    options = index.search_kwargs
    if any(options.get(name) for name in _OTHER_RESTRICTIONS):
        raise filter_not_counted(index.vectorstore)
    filter = options.get("filter") if filter is None else filter
    found = contents_of(index.vectorstore, filter)
    if found is None and filter is not None:
        raise filter_not_counted(index.vectorstore)
    return found


@langchain(of=lambda index: hasattr(index, "invoke") and getattr(index, "base_retriever", None) is not None)
def wrapper(index: Any, filter: Any) -> Contents | None:
    """A retriever that passes on what one other retriever returns, perhaps reranked or compressed."""
    return contents_of(index.base_retriever, filter)


@langchain(of=is_a("MultiVectorRetriever"))
def parents(index: Any, filter: Any) -> Contents:
    """A retriever that finds by the vectors of children and returns their parents: N counts the parents."""
    if filter is not None or index.search_kwargs.get("filter") is not None:
        raise filter_not_counted(index)
    return Contents(lambda: sum(1 for _ in index.docstore.yield_keys()))


# -- vector stores ---------------------------------------------------------------------------------


@langchain(of=is_a("LanceDB"))
def of_lance(index: Any, filter: Any) -> Contents | None:
    """LanceDB; a filter is a condition in SQL, or a mapping of columns to values, as LangChain passes it on."""
    if isinstance(filter, dict):
        filter = " AND ".join(f"{key} = '{value}'" for key, value in filter.items())
    return lance(index.get_table(), filter)


@langchain(of=is_a("QdrantVectorStore"))
def of_qdrant(index: Any, filter: Any) -> Contents:
    """Qdrant; a filter is that of its client."""
    stored = qdrant_collection(index.client, index.collection_name, filter)

    def passages() -> Iterator[StoredPassage]:
        for point in stored.passages() or ():
            # Its own documents have no id, but that of the point among their metadata.
            metadata = {**(point.metadata.get(index.metadata_payload_key) or {}), "_id": point.ids["id"]}
            yield StoredPassage(point.ids, metadata, point.metadata.get(index.content_payload_key))

    return Contents(stored.size, passages)


@langchain(of=is_a("FAISS"))
def of_faiss(index: Any, filter: Any) -> Contents:
    """FAISS; a filter is a function of the metadata, or a mapping of keys to a value or a list of values."""
    keeps = _metadata_filter(index, filter)

    def passages() -> Iterator[StoredPassage]:
        documents = (index.docstore.search(name) for name in index.index_to_docstore_id.values())
        return (_of_document(document) for document in documents if keeps(document.metadata))

    return Contents(lambda: int(index.index.ntotal), passages) if filter is None else Contents.listed(passages)


def _metadata_filter(store: Any, filter: Any) -> Callable[[Mapping[str, Any]], bool]:
    if filter is None:
        return lambda metadata: True
    if callable(filter):
        return filter  # type: ignore[no-any-return]
    if any(key.startswith("$") or isinstance(value, Mapping) for key, value in filter.items()):
        raise filter_not_counted(store)
    wanted = {key: value if isinstance(value, list) else [value] for key, value in filter.items()}
    return lambda metadata: all(metadata.get(key) in values for key, values in wanted.items())


@langchain(of=is_a("Chroma"))
def of_chroma_store(index: Any, filter: Any) -> Contents:
    """Chroma; a filter is a `where`."""
    return Contents(lambda: len(index.get(where=filter, include=[])["ids"]), lambda: of_chroma(index.get(where=filter)))


@langchain(of=lambda index: isinstance(getattr(index, "store", None), dict))
def memory(index: Any, filter: Any) -> Contents:
    """The store in memory; a filter is a function of a document."""

    def passages() -> Iterator[StoredPassage]:
        documents = index.get_by_ids(list(index.store))
        return (_of_document(document) for document in documents if filter is None or filter(document))

    return Contents(lambda: len(index.store), passages) if filter is None else Contents.listed(passages)


def _of_document(document: Any) -> StoredPassage:
    return StoredPassage({"id": document.id}, document.metadata, document.page_content)
