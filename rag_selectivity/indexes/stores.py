"""What vector stores hold, one reader a store, and what the stores and retrievers of LangChain can return.

No framework is imported here: a reader is found by the package and the name of a class. It takes an object and a filter
in the object's own terms, or None.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.tables.identity import candidates, named_id

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
    link : str or None
        The id of what it stands for, as an IndexNode of LlamaIndex does.
    """

    ids: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    link: str | None = None

    def by(self, identity: str) -> str | None:
        """The id of this name, as `identity=` takes it; None if the passage has none."""
        return named_id(identity, self.ids, self.text or "", self.metadata)

    @property
    def candidates(self) -> dict[str, str]:
        """Every id by which labels may know the passage."""
        return candidates(self.ids, self.text or "", self.metadata)


Passages = Iterable[StoredPassage] | None


@dataclass(frozen=True, slots=True)
class Contents:
    """Which passages can be returned, or None, and how many; without a count, they are counted one by one.

    `filtered` says whether a filter leaves these of an index.
    """

    passages: Callable[[], Passages]
    count: Callable[[], int] | None = None
    filtered: bool = False

    def listed(self) -> list[StoredPassage] | None:
        return None if (found := self.passages()) is None else list(found)

    def size(self) -> int | None:
        if self.count is not None:
            return int(self.count())
        return None if (listed := self.listed()) is None else len(listed)


Reader = Callable[[Any, Any], Contents | None]


def reader_of(index: Any, readers: Mapping[str, Reader]) -> Reader:
    """The reader of the class of an object, or of one that it is derived from: `package.Class`; else one of nothing."""
    made = (f"{cls.__module__.split('.')[0]}.{cls.__name__}" for cls in type(index).__mro__)
    return next((readers[name] for name in made if name in readers), lambda index, filter: None)


def of_store(index: Any, filter: Any = None) -> Contents | None:
    """The contents of a store, or of a store or retriever of LangChain; None for anything else."""
    return reader_of(index, _READERS)(index, filter)


def filter_not_counted(index: Any) -> InputError:
    """The error if it is not known how many passages a filter leaves."""
    doubt = "it is unknown how many passages the filter leaves: give this number as corpus_size="
    return InputError(f"the retriever filters what {type(index).__name__} returns, and {doubt}")


def _chroma(collection: Any, filter: Any) -> Contents:
    """A collection of Chroma; a filter is a `where`."""

    def passages() -> Iterator[StoredPassage]:
        for offset in range(0, collection.count(), _BATCH):
            page = collection.get(where=filter, include=["metadatas", "documents"], limit=_BATCH, offset=offset)
            for name, metadata, text in zip(page["ids"], page["metadatas"], page["documents"], strict=True):
                yield StoredPassage({"id": name}, metadata or {}, text)

    return Contents(passages, collection.count if filter is None else None)


def qdrant(client: Any, name: str, filter: Any = None) -> Contents:
    """The points of a collection of Qdrant, with their payload as metadata; a filter is a `count_filter`."""

    def points() -> Iterator[StoredPassage]:
        offset, begun = None, False
        while offset is not None or not begun:
            page, offset = client.scroll(name, scroll_filter=filter, limit=_BATCH, offset=offset)
            begun = True
            yield from (StoredPassage({"id": point.id}, point.payload or {}) for point in page)

    return Contents(points, lambda: client.count(name, count_filter=filter, exact=True).count)


def _only_collection(client: Any, filter: Any) -> Contents | None:
    """The points of a client of Qdrant that has one collection."""
    collections = client.get_collections().collections
    return qdrant(client, collections[0].name, filter) if len(collections) == 1 else None


def _lance(table: Any, filter: Any) -> Contents:
    """A table of LanceDB; a filter is a condition in SQL."""

    def passages() -> Iterator[StoredPassage]:
        columns = [name for name in ("id", "text", "metadata") if name in table.schema.names]
        query = table.search().select(columns).limit(max(table.count_rows(filter), 1))
        for row in (query if filter is None else query.where(filter)).to_arrow().to_pylist():
            yield StoredPassage({"id": row.get("id")}, row.get("metadata") or {}, row.get("text"))

    return Contents(passages, lambda: table.count_rows(filter))


# -- LangChain --------------------------------------------------------------------------------------------


def _store_retriever(index: Any, filter: Any) -> Contents | None:
    options = index.search_kwargs
    found = None if any(map(options.get, _OTHER_RESTRICTIONS)) else of_store(index.vectorstore, options.get("filter"))
    if found is None and options.keys() & {"filter", *_OTHER_RESTRICTIONS}:
        raise filter_not_counted(index.vectorstore)
    return found and replace(found, filtered=bool(options.get("filter")))


def _parents(index: Any, filter: Any) -> Contents:
    """A retriever that finds by the vectors of children and returns their parents: N counts the parents."""
    if any(map(index.search_kwargs.get, ("filter", *_OTHER_RESTRICTIONS))):
        raise filter_not_counted(index)
    return Contents(lambda: None, lambda: sum(1 for _ in index.docstore.yield_keys()))


def _qdrant_store(index: Any, filter: Any) -> Contents:
    points = qdrant(index.client, index.collection_name, filter)

    def documents() -> Iterator[StoredPassage]:
        for point in points.passages() or ():
            # Its own documents have no id, but that of the point among their metadata.
            metadata = {**(point.metadata.get(index.metadata_payload_key) or {}), "_id": point.ids["id"]}
            yield StoredPassage(point.ids, metadata, point.metadata.get(index.content_payload_key))

    return Contents(documents, points.count)


def _faiss_store(index: Any, filter: Any) -> Contents:
    keeps = index._create_filter_func(filter or {})
    every = index.index_to_docstore_id.values()
    return Contents(lambda: _listed(map(index.docstore.search, every), lambda each: keeps(each.metadata)))


def _memory_store(index: Any, filter: Any) -> Contents:
    return Contents(lambda: _listed(index.get_by_ids(list(index.store)), filter or (lambda document: True)))


def _listed(documents: Iterable[Any], keeps: Callable[[Any], bool]) -> list[StoredPassage]:
    return [StoredPassage({"id": each.id}, each.metadata, each.page_content) for each in documents if keeps(each)]


_READERS: dict[str, Reader] = {
    "chromadb.Collection": _chroma,
    # It holds vectors alone.
    "faiss.Index": lambda index, filter: Contents(lambda: None, lambda: index.ntotal),
    "qdrant_client.QdrantClient": _only_collection,
    "lancedb.Table": _lance,
    "langchain_core.VectorStoreRetriever": _store_retriever,
    "langchain_core.InMemoryVectorStore": _memory_store,
    "langchain_classic.MultiVectorRetriever": _parents,
    # It passes on what another one returns, perhaps reranked or compressed.
    "langchain_core.BaseRetriever": lambda index, filter: of_store(getattr(index, "base_retriever", None)),
    "langchain_chroma.Chroma": lambda index, filter: _chroma(index._collection, filter),
    "langchain_qdrant.QdrantVectorStore": _qdrant_store,
    "langchain_community.FAISS": _faiss_store,
    "langchain_community.LanceDB": lambda index, filter: _lance(index.get_table(), filter),
}
