"""How many documents the vector stores and retrievers of LangChain can return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rag_selectivity.io.indexes import (
    IndexReader,
    StoredPassage,
    corpus_size_of_index,
    filter_not_counted,
    made_by,
    stored_passages,
)
from rag_selectivity.io.stores import count_of_qdrant, points_of_qdrant

_PACKAGES = ("langchain_core", "langchain_community", "langchain_chroma", "langchain_qdrant", "langchain_classic")
#: What `search_kwargs` may hold, besides `filter`, that restricts what a store returns.
_OTHER_RESTRICTIONS = ("where_document", "pre_filter", "post_filter", "namespace", "tenant", "partition", "expr")


def _of_document(document: Any) -> StoredPassage:
    return StoredPassage({"id": document.id}, document.metadata, document.page_content)


# -- vector stores ---------------------------------------------------------------------------------


class LangChainMemory(IndexReader):
    """The store in memory; a filter is a function of a document."""

    name = "langchain-memory"

    def recognises(self, index: Any) -> bool:
        """By its module and its attributes."""
        return made_by(index, *_PACKAGES) and isinstance(getattr(index, "store", None), dict)

    def size(self, index: Any, filter: Any) -> int:
        """The number of its entries."""
        return len(index.store) if filter is None else len(self._documents(index, filter))

    def passages(self, index: Any, filter: Any) -> Iterator[StoredPassage]:
        """Its documents."""
        return map(_of_document, self._documents(index, filter))

    def _documents(self, store: Any, filter: Callable[[Any], bool] | None) -> list[Any]:
        documents = store.get_by_ids(list(store.store))
        return [document for document in documents if filter is None or filter(document)]


class LangChainChroma(IndexReader):
    """Chroma; a filter is a `where`."""

    name = "langchain-chroma"

    def recognises(self, index: Any) -> bool:
        """By its class."""
        return made_by(index, *_PACKAGES) and _is_a(index, "Chroma")

    def size(self, index: Any, filter: Any) -> int:
        """The number of ids."""
        return len(index.get(where=filter, include=[])["ids"])

    def passages(self, index: Any, filter: Any) -> Iterator[StoredPassage]:
        """Its documents."""
        found = index.get(where=filter)
        rows = zip(found["ids"], found["metadatas"], found["documents"], strict=True)
        return (StoredPassage({"id": name}, metadata or {}, text) for name, metadata, text in rows)


class LangChainFaiss(IndexReader):
    """FAISS; a filter is a function of the metadata, or a mapping of keys to a value or a list of values."""

    name = "langchain-faiss"

    def recognises(self, index: Any) -> bool:
        """By its class."""
        return made_by(index, *_PACKAGES) and _is_a(index, "FAISS")

    def size(self, index: Any, filter: Any) -> int:
        """The number of vectors; with a filter the number of documents that it leaves."""
        return int(index.index.ntotal) if filter is None else len(self._documents(index, filter))

    def passages(self, index: Any, filter: Any) -> Iterator[StoredPassage]:
        """Its documents."""
        return map(_of_document, self._documents(index, filter))

    def _documents(self, store: Any, filter: Any) -> list[Any]:
        keeps = _metadata_filter(store, filter)
        documents = (store.docstore.search(name) for name in store.index_to_docstore_id.values())
        return [document for document in documents if keeps(document.metadata)]


def _metadata_filter(store: Any, filter: Any) -> Callable[[Mapping[str, Any]], bool]:
    if filter is None:
        return lambda metadata: True
    if callable(filter):
        return filter  # type: ignore[no-any-return]
    if any(key.startswith("$") or isinstance(value, Mapping) for key, value in filter.items()):
        raise filter_not_counted(store)
    wanted = {key: value if isinstance(value, list) else [value] for key, value in filter.items()}
    return lambda metadata: all(metadata.get(key) in values for key, values in wanted.items())


class LangChainQdrant(IndexReader):
    """Qdrant; a filter is that of its client."""

    name = "langchain-qdrant"

    def recognises(self, index: Any) -> bool:
        """By its class."""
        return made_by(index, *_PACKAGES) and _is_a(index, "QdrantVectorStore")

    def size(self, index: Any, filter: Any) -> int:
        """The exact count of its collection."""
        return count_of_qdrant(index.client, index.collection_name, filter)

    def passages(self, index: Any, filter: Any) -> Iterator[StoredPassage]:
        """The points of its collection."""
        for point in points_of_qdrant(index.client, index.collection_name, filter):
            # Its own documents have no id, but that of the point among their metadata.
            metadata = {**(point.metadata.get(index.metadata_payload_key) or {}), "_id": point.ids["id"]}
            yield StoredPassage(point.ids, metadata, point.metadata.get(index.content_payload_key))


class LangChainLance(IndexReader):
    """LanceDB; a filter is a condition in SQL, or a mapping of columns to values."""

    name = "langchain-lancedb"

    def recognises(self, index: Any) -> bool:
        """By its class."""
        return made_by(index, *_PACKAGES) and _is_a(index, "LanceDB")

    def size(self, index: Any, filter: Any) -> int | None:
        """The number of rows of its table."""
        return corpus_size_of_index(index.get_table(), filter=_in_sql(filter))

    def passages(self, index: Any, filter: Any) -> Iterable[StoredPassage] | None:
        """The rows of its table."""
        return stored_passages(index.get_table(), filter=_in_sql(filter))


def _in_sql(filter: Any) -> Any:
    """A filter as LangChain passes it to LanceDB."""
    return " AND ".join(f"{key} = '{value}'" for key, value in filter.items()) if isinstance(filter, dict) else filter


def _is_a(index: Any, name: str) -> bool:
    return any(cls.__name__ == name for cls in type(index).__mro__)


# -- retrievers ------------------------------------------------------------------------------------


class LangChainRetriever(IndexReader):
    """The retriever of a vector store, with its filter."""

    name = "langchain-retriever"

    def recognises(self, index: Any) -> bool:
        """By its class."""
        return made_by(index, *_PACKAGES) and _is_a(index, "VectorStoreRetriever")

    def size(self, index: Any, filter: Any) -> int | None:
        """That of its store."""
        filter = self._filter(index, filter)
        size = corpus_size_of_index(index.vectorstore, filter=filter)
        if size is None and filter is not None:
            raise filter_not_counted(index.vectorstore)
        return size

    def passages(self, index: Any, filter: Any) -> Iterable[StoredPassage] | None:
        """Those of its store."""
        return stored_passages(index.vectorstore, filter=self._filter(index, filter))

    def _filter(self, retriever: Any, filter: Any) -> Any:
        options = retriever.search_kwargs
        if any(options.get(name) for name in _OTHER_RESTRICTIONS):
            raise filter_not_counted(retriever.vectorstore)
        return options.get("filter") if filter is None else filter


class LangChainWrapper(IndexReader):
    """A retriever that passes on what one other retriever returns, perhaps reranked or compressed."""

    name = "langchain-wrapper"

    def recognises(self, index: Any) -> bool:
        """By its module and the retriever that it holds."""
        return (
            made_by(index, *_PACKAGES) and callable(getattr(index, "invoke", None)) and self._inner(index) is not None
        )

    def size(self, index: Any, filter: Any) -> int | None:
        """That of the retriever inside."""
        return corpus_size_of_index(self._inner(index), filter=filter)

    def passages(self, index: Any, filter: Any) -> Iterable[StoredPassage] | None:
        """Those of the retriever inside."""
        return stored_passages(self._inner(index), filter=filter)

    def _inner(self, retriever: Any) -> Any:
        return getattr(retriever, "base_retriever", None)


class LangChainParents(IndexReader):
    """A retriever that finds by the vectors of children and returns their parents: N counts the parents."""

    name = "langchain-parents"

    def recognises(self, index: Any) -> bool:
        """By its class."""
        return made_by(index, *_PACKAGES) and _is_a(index, "MultiVectorRetriever")

    def size(self, index: Any, filter: Any) -> int:
        """The number of documents in its docstore."""
        if filter is not None or index.search_kwargs.get("filter") is not None:
            raise filter_not_counted(index)
        return sum(1 for _ in index.docstore.yield_keys())
