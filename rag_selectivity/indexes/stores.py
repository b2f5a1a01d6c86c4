"""What Chroma, FAISS, Qdrant, LanceDB and the stores and retrievers of LangChain can return. None is imported here.

A reader takes an object and a filter in the object's own terms, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any

from rag_selectivity.errors import InputError

#: How many points or rows are read at once.
_BATCH = 1000
#: What `search_kwargs` of LangChain may hold, besides `filter`, that restricts what a store returns.
_OTHER_RESTRICTIONS = ("where_document", "pre_filter", "post_filter", "namespace", "tenant", "partition", "expr")


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage of an index.

    Attributes
    ----------
    ids : {name: value or None}
        The ids that the framework gives it: `node_id` and `ref_doc_id` in LlamaIndex, `id` in LangChain.
    metadata : mapping
    text : str or None
        None if the index does not hold it.
    """

    ids: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None


Passages = Iterable[StoredPassage] | None


@dataclass(frozen=True, slots=True)
class Contents:
    """Which passages can be returned, or None, and how many; without a count, they are counted one by one."""

    passages: Callable[[], Passages]
    count: Callable[[], int] | None = None

    def size(self) -> int | None:
        if self.count is not None:
            return int(self.count())
        found = self.passages()
        return None if found is None else sum(1 for _ in found)


def made_by(index: Any, *packages: str) -> bool:
    """Whether the class of an object, or a class that it is derived from, is defined in one of the packages."""
    return any(cls.__module__.split(".")[0] in packages for cls in type(index).__mro__)


def has(index: Any, *methods: str) -> bool:
    """Whether an object has methods that can be called without an event loop."""
    found = [getattr(index, name, None) for name in methods]
    return all(callable(method) and not iscoroutinefunction(method) for method in found)


def is_a(index: Any, *names: str) -> bool:
    """Whether the class of an object, or one that it is derived from, has one of the names."""
    return any(cls.__name__ in names for cls in type(index).__mro__)


def filter_not_counted(index: Any) -> InputError:
    """The error if it is not known how many passages a filter leaves."""
    return InputError(
        f"the retriever filters what {type(index).__name__} returns, and it is unknown how many passages the filter "
        f"leaves: give this number as corpus_size="
    )


def of_store(index: Any, filter: Any) -> Contents | None:
    """The contents of a store itself, by its own client; None for anything else."""
    if made_by(index, "chromadb") and has(index, "count", "get"):
        return _chroma(index, filter)
    if made_by(index, "faiss") and hasattr(index, "ntotal"):
        if filter is not None:
            raise filter_not_counted(index)
        return Contents(lambda: None, lambda: index.ntotal)
    if made_by(index, "qdrant_client") and has(index, "count", "scroll", "get_collections"):
        collections = index.get_collections().collections
        return qdrant(index, collections[0].name, filter) if len(collections) == 1 else None
    return _lance(index, filter) if made_by(index, "lancedb") and has(index, "count_rows") else None


def _chroma(collection: Any, filter: Any) -> Contents:
    """A collection of Chroma; a filter is a `where`."""

    def passages() -> Iterator[StoredPassage]:
        for offset in range(0, collection.count(), _BATCH):
            page = collection.get(where=filter, include=["metadatas", "documents"], limit=_BATCH, offset=offset)
            for name, metadata, text in zip(page["ids"], page["metadatas"], page["documents"], strict=True):
                yield StoredPassage({"id": name}, metadata or {}, text)

    return Contents(passages, collection.count if filter is None else None)


def qdrant(client: Any, name: str, filter: Any) -> Contents:
    """The points of a collection of Qdrant, with their payload as metadata; a filter is a `count_filter`."""

    def points() -> Iterator[StoredPassage]:
        page, offset = client.scroll(name, scroll_filter=filter, limit=_BATCH)
        while True:
            yield from (StoredPassage({"id": point.id}, point.payload or {}) for point in page)
            if offset is None:
                return
            page, offset = client.scroll(name, scroll_filter=filter, limit=_BATCH, offset=offset)

    return Contents(points, lambda: client.count(name, count_filter=filter, exact=True).count)


def _lance(table: Any, filter: Any) -> Contents:
    """A table of LanceDB; a filter is a condition in SQL."""

    def passages() -> Iterator[StoredPassage]:
        columns = [name for name in ("id", "text", "metadata") if name in table.schema.names]
        query = table.search().select(columns).limit(max(table.count_rows(filter), 1))
        for row in (query if filter is None else query.where(filter)).to_arrow().to_pylist():
            yield StoredPassage({"id": row.get("id")}, row.get("metadata") or {}, row.get("text"))

    return Contents(passages, lambda: table.count_rows(filter))


# -- LangChain --------------------------------------------------------------------------------------------


def of_langchain(index: Any, filter: Any) -> Contents | None:
    """The contents of a vector store or retriever of LangChain; None for anything else."""
    if is_a(index, "VectorStoreRetriever"):
        options = index.search_kwargs
        if any(options.get(name) for name in _OTHER_RESTRICTIONS):
            raise filter_not_counted(index.vectorstore)
        filter = options.get("filter") if filter is None else filter
        found = of_langchain(index.vectorstore, filter)
        if found is None and filter is not None:
            raise filter_not_counted(index.vectorstore)
        return found
    if hasattr(index, "invoke") and getattr(index, "base_retriever", None) is not None:
        # It passes on what the other retriever returns, perhaps reranked or compressed.
        return of_langchain(index.base_retriever, filter)
    if is_a(index, "MultiVectorRetriever"):
        # It finds by the vectors of children and returns their parents: N counts the parents.
        if filter is not None or index.search_kwargs.get("filter") is not None:
            raise filter_not_counted(index)
        return Contents(lambda: None, lambda: sum(1 for _ in index.docstore.yield_keys()))
    if is_a(index, "LanceDB"):
        if isinstance(filter, dict):
            filter = " AND ".join(f"{key} = '{value}'" for key, value in filter.items())
        return _lance(index.get_table(), filter)
    if is_a(index, "Chroma"):
        return _chroma(index._collection, filter)
    if is_a(index, "QdrantVectorStore"):
        return Contents(lambda: _documents_of_qdrant(index, filter), qdrant_of(index, filter).size)  # type: ignore[arg-type]
    if is_a(index, "FAISS"):
        keeps, every = _metadata_filter(index, filter), index.index_to_docstore_id.values()
        return Contents(lambda: _listed(map(index.docstore.search, every), lambda each: keeps(each.metadata)))
    if isinstance(getattr(index, "store", None), dict):
        return Contents(lambda: _listed(index.get_by_ids(list(index.store)), filter or (lambda document: True)))
    return None


def qdrant_of(index: Any, filter: Any) -> Contents:
    """The points of a store over Qdrant."""
    return qdrant(index.client, index.collection_name, filter)


def _documents_of_qdrant(index: Any, filter: Any) -> Iterator[StoredPassage]:
    for point in qdrant_of(index, filter).passages() or ():
        # Its own documents have no id, but that of the point among their metadata.
        metadata = {**(point.metadata.get(index.metadata_payload_key) or {}), "_id": point.ids["id"]}
        yield StoredPassage(point.ids, metadata, point.metadata.get(index.content_payload_key))


def _listed(documents: Iterable[Any], keeps: Callable[[Any], bool]) -> list[StoredPassage]:
    return [StoredPassage({"id": each.id}, each.metadata, each.page_content) for each in documents if keeps(each)]


def _metadata_filter(store: Any, filter: Any) -> Callable[[Mapping[str, Any]], bool]:
    """A filter of FAISS: a function of the metadata, or a mapping of keys to a value or a list of values."""
    if callable(filter):
        return filter  # type: ignore[no-any-return]
    given = filter or {}
    if any(key.startswith("$") or isinstance(value, Mapping) for key, value in given.items()):
        raise filter_not_counted(store)
    wanted = {key: value if isinstance(value, list) else [value] for key, value in given.items()}
    return lambda metadata: all(metadata.get(key) in values for key, values in wanted.items())
