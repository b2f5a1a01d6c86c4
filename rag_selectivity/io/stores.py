"""How many passages the vector stores themselves can return: Chroma, FAISS, Qdrant, LanceDB. None is imported here."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import iscoroutinefunction
from typing import Any

from rag_selectivity.io.indexes import IndexReader, StoredPassage, filter_not_counted, made_by

#: How many points or rows are read at once.
BATCH = 1000


class ChromaCollection(IndexReader):
    """A collection of Chroma; a filter is a `where`."""

    name = "chroma"

    def recognises(self, index: Any) -> bool:
        """By its module and its methods."""
        return made_by(index, "chromadb") and _has(index, "count", "get")

    def size(self, index: Any, filter: Any) -> int:
        """Its `count`; with a filter the number of ids that it leaves."""
        return int(index.count()) if filter is None else len(index.get(where=filter, include=[])["ids"])

    def passages(self, index: Any, filter: Any) -> Iterator[StoredPassage]:
        """All of them, with metadata and text."""
        offset = 0
        while True:
            page = index.get(where=filter, include=["metadatas", "documents"], limit=BATCH, offset=offset)
            rows = zip(page["ids"], page["metadatas"], page["documents"], strict=True)
            yield from (StoredPassage({"id": name}, metadata or {}, text) for name, metadata, text in rows)
            if len(page["ids"]) < BATCH:
                return
            offset += BATCH


class FaissIndex(IndexReader):
    """An index of FAISS, which holds vectors alone."""

    name = "faiss"

    def recognises(self, index: Any) -> bool:
        """By its module and its number of vectors."""
        return made_by(index, "faiss") and hasattr(index, "ntotal")

    def size(self, index: Any, filter: Any) -> int:
        """Its `ntotal`."""
        if filter is not None:
            raise filter_not_counted(index)
        return int(index.ntotal)


class QdrantClient(IndexReader):
    """A client of Qdrant that has a single collection; a filter is a `count_filter`."""

    name = "qdrant"

    def recognises(self, index: Any) -> bool:
        """By its module and its methods, none of which may be asynchronous."""
        return made_by(index, "qdrant_client") and _has(index, "count", "scroll", "get_collections")

    def size(self, index: Any, filter: Any) -> int | None:
        """The exact count of its collection."""
        collection = self._collection(index)
        return None if collection is None else count_of_qdrant(index, collection, filter)

    def passages(self, index: Any, filter: Any) -> Iterator[StoredPassage] | None:
        """The points of its collection, with their payload as metadata."""
        collection = self._collection(index)
        return None if collection is None else points_of_qdrant(index, collection, filter)

    def _collection(self, client: Any) -> str | None:
        collections = client.get_collections().collections
        return collections[0].name if len(collections) == 1 else None


def count_of_qdrant(client: Any, collection: str, filter: Any) -> int:
    """How many points of a collection a filter leaves."""
    return int(client.count(collection, count_filter=filter, exact=True).count)


def points_of_qdrant(client: Any, collection: str, filter: Any) -> Iterator[StoredPassage]:
    """The points of a collection that a filter leaves, without their vectors."""
    offset = None
    while True:
        points, offset = client.scroll(collection, scroll_filter=filter, limit=BATCH, offset=offset)
        yield from (StoredPassage({"id": point.id}, point.payload or {}) for point in points)
        if offset is None:
            return


class LanceTable(IndexReader):
    """A table of LanceDB; a filter is a condition in SQL."""

    name = "lancedb"

    def recognises(self, index: Any) -> bool:
        """By its module and its methods."""
        return made_by(index, "lancedb") and _has(index, "count_rows")

    def size(self, index: Any, filter: Any) -> int:
        """Its `count_rows`."""
        return int(index.count_rows(filter))

    def passages(self, index: Any, filter: Any) -> Iterator[StoredPassage]:
        """Its rows, without their vectors."""
        columns = [name for name in ("id", "text", "metadata") if name in index.schema.names]
        query = index.search().select(columns).limit(max(self.size(index, filter), 1))
        rows = (query if filter is None else query.where(filter)).to_arrow().to_pylist()
        yield from (StoredPassage({"id": row.get("id")}, row.get("metadata") or {}, row.get("text")) for row in rows)


def _has(index: Any, *methods: str) -> bool:
    """Whether an object has methods that can be called without an event loop."""
    found = [getattr(index, name, None) for name in methods]
    return all(callable(method) and not iscoroutinefunction(method) for method in found)
