"""Which chunks belong to which document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.tables.exact import as_frame, column_names, column_values, is_frame
from rag_selectivity.tables.forms import AS_THEY_ARE
from rag_selectivity.tables.names import CHUNK_NAMES, DOCUMENT_NAMES, find_column


def chunks_by_document(documents: Any) -> dict[str, list[str]]:
    """{document: its chunks}, from {chunk: document}, a frame, or rows of (chunk, document).

    >>> chunks_by_document({"d1#0": "d1", "d1#1": "d1", "d2#0": "d2"})
    {'d1': ['d1#0', 'd1#1'], 'd2': ['d2#0']}

    Raises
    ------
    InputError
        If a chunk has two documents.
    """
    document_of: dict[str, str] = {}
    for of_chunk, of_document in _rows(documents):
        chunk = AS_THEY_ARE.of_cell(of_chunk, "documents", "chunk")
        document = AS_THEY_ARE.of_cell(of_document, "documents", "document")
        if document_of.setdefault(chunk, document) != document:
            raise InputError(
                f"chunk {chunk!r} belongs to the documents {document_of[chunk]!r} and {document!r}: "
                f"give each chunk one document"
            )
    chunks_of: dict[str, list[str]] = {}
    for name, document in document_of.items():
        chunks_of.setdefault(document, []).append(name)
    return chunks_of


def _rows(documents: Any) -> Iterable[tuple[Any, Any]]:
    """(chunk, document) of a mapping, a frame or rows."""
    if is_frame(documents):
        documents = as_frame(documents, "documents frame")
        names = column_names(documents)
        chunk = find_column(names, CHUNK_NAMES, "chunk", "documents frame")
        document = find_column([each for each in names if each != chunk], DOCUMENT_NAMES, "document", "documents frame")
        return list(zip(column_values(documents, chunk), column_values(documents, document), strict=True))
    rows = []
    for row in documents.items() if isinstance(documents, Mapping) else documents:
        if isinstance(row, str) or len(row) != 2:
            raise InputError(f"documents: expected (chunk, document), got {row!r}")
        rows.append((row[0], row[1]))
    return rows
