"""Which passages (chunks) each document of a corpus has, and how many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.tables.exact import as_frame, column_names, column_values, is_frame
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.ids import IntArray, id_hashes, mix
from rag_selectivity.tables.names import CHUNK_NAMES, DOCUMENT_NAMES, find_column


class PassageCounts:
    """The number of passages of every document.

    >>> counts = PassageCounts.of({"d1": 3, "d2": 1})
    >>> counts.total, counts.of_document("d2"), counts.of_document("d9")
    (4, 1, 0)

    Attributes
    ----------
    passages : {document: its passages}
    complete : bool
        Whether a document that is not here has no passages, as if all were counted in an index. Otherwise the number of
        its passages is unknown.
    """

    #: The form of the ids.
    form: IdForm = AS_THEY_ARE

    def __init__(self, passages: Mapping[str, int], *, complete: bool = False) -> None:
        self.complete = complete
        self.passages = passages

    @classmethod
    def of(cls, passages_of: Mapping[str, int], *, complete: bool = False) -> PassageCounts:
        """From {document: number of its passages}, which `rag_selectivity.tables.small.passage_counts_of` checks."""
        return cls(dict(passages_of), complete=complete)

    def in_form(self, form: IdForm) -> PassageCounts:
        """The same numbers by ids in a form; documents that become one have the passages of all.

        >>> PassageCounts.of({"d1#0": 1, "d1#1": 1}).in_form(IdForm.of("name")).of_document("d1")
        2
        """
        if not form.changes_ids or form == self.form:
            return self
        passages_of: dict[str, int] = {}
        for document, passages in self.passages.items():
            passages_of[form(document)] = passages_of.get(form(document), 0) + passages
        result = PassageCounts.of(passages_of, complete=self.complete)
        result.form = form
        return result

    @cached_property
    def total(self) -> int:
        """The passages of all documents."""
        return sum(self.passages.values())

    @cached_property
    def fingerprint(self) -> int:
        """A 64-bit hash of the documents and their numbers, in any order."""
        numbers = np.array(list(self.passages.values()), np.uint64)
        return int(mix(id_hashes(self.passages), numbers).sum(dtype=np.uint64))

    def of_document(self, document: str) -> int:
        """The number of passages of a document; 0 if it is unknown."""
        return self.passages.get(document, 0)

    def lookup(self, documents: Iterable[str]) -> IntArray:
        """The number of passages of each document; 0 if it is unknown."""
        return np.array(list(map(self.of_document, documents)), np.int64)


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
    rows = list(documents.items() if isinstance(documents, Mapping) else documents)
    for row in rows:
        if isinstance(row, str) or len(row) != 2:
            raise InputError(f"documents: expected (chunk, document), got {row!r}")
    return rows
