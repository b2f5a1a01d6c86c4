"""The vector stores themselves: Chroma, FAISS, Qdrant, LanceDB. None is imported here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag_selectivity.indexes.contents import Contents, StoredPassage, filter_not_counted, has, reader

#: How many points or rows are read at once.
BATCH = 1000


@reader("chromadb", of=has("count", "get"))
def chroma(collection: Any, filter: Any) -> Contents:
    """A collection of Chroma; a filter is a `where`."""

    def passages() -> Iterator[StoredPassage]:
        offset = 0
        while True:
            page = collection.get(where=filter, include=["metadatas", "documents"], limit=BATCH, offset=offset)
            yield from of_chroma(page)
            if len(page["ids"]) < BATCH:
                return
            offset += BATCH

    if filter is None:
        return Contents(lambda: int(collection.count()), passages)
    return Contents(lambda: len(collection.get(where=filter, include=[])["ids"]), passages)


def of_chroma(page: Any) -> Iterator[StoredPassage]:
    """The passages of what Chroma's `get` returns."""
    rows = zip(page["ids"], page["metadatas"], page["documents"], strict=True)
    return (StoredPassage({"id": name}, metadata or {}, text) for name, metadata, text in rows)


@reader("faiss", of=lambda index: hasattr(index, "ntotal"))
def faiss(index: Any, filter: Any) -> Contents:
    """An index of FAISS, which holds vectors alone."""
    if filter is not None:
        raise filter_not_counted(index)
    return Contents(lambda: int(index.ntotal))


@reader("qdrant_client", of=has("count", "scroll", "get_collections"))
def qdrant(client: Any, filter: Any) -> Contents | None:
    """A client of Qdrant that has a single collection; a filter is a `count_filter`."""
    collections = client.get_collections().collections
    return qdrant_collection(client, collections[0].name, filter) if len(collections) == 1 else None


def qdrant_collection(client: Any, name: str, filter: Any) -> Contents:
    """The points of a collection, with their payload as metadata."""

    def points() -> Iterator[StoredPassage]:
        offset = None
        while True:
            page, offset = client.scroll(name, scroll_filter=filter, limit=BATCH, offset=offset)
            yield from (StoredPassage({"id": point.id}, point.payload or {}) for point in page)
            if offset is None:
                return

    return Contents(lambda: int(client.count(name, count_filter=filter, exact=True).count), points)


@reader("lancedb", of=has("count_rows"))
def lance(table: Any, filter: Any) -> Contents:
    """A table of LanceDB; a filter is a condition in SQL."""

    def size() -> int:
        return int(table.count_rows(filter))

    def passages() -> Iterator[StoredPassage]:
        columns = [name for name in ("id", "text", "metadata") if name in table.schema.names]
        query = table.search().select(columns).limit(max(size(), 1))
        for row in (query if filter is None else query.where(filter)).to_arrow().to_pylist():
            yield StoredPassage({"id": row.get("id")}, row.get("metadata") or {}, row.get("text"))

    return Contents(size, passages)
