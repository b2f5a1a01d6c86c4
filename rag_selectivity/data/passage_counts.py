"""How many passages (chunks) each document of a corpus has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from rag_selectivity.data.cells import whole_count
from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.data.ids import IntArray, id_hashes, mix
from rag_selectivity.errors import InputError
from rag_selectivity.tables.exact import as_frame, column_names, column_values, is_frame
from rag_selectivity.tables.names import COUNT_NAMES, DOCUMENT_NAMES, find_column


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
    def of(cls, counts: Any) -> PassageCounts:
        """From {document: passages} or a frame with a document and a passages column.

        Raises
        ------
        InputError
            If a number is not a whole number of at least 1, or a document has two numbers.
        """
        if isinstance(counts, PassageCounts):
            return counts
        if is_frame(counts):
            counts = as_frame(counts, "passages_of frame")
            names = column_names(counts)
            documents = column_values(counts, find_column(names, DOCUMENT_NAMES, "document", "passages_of frame"))
            numbers = column_values(counts, find_column(names, COUNT_NAMES, "number of passages", "passages_of frame"))
            return cls.from_rows(("passages_of", *row) for row in zip(documents, numbers, strict=True))
        if isinstance(counts, Mapping):
            return cls.from_rows(("passages_of", *row) for row in counts.items())
        raise InputError(
            f"passages_of is a {type(counts).__name__}: give {{document: number of its passages}}, a DataFrame, "
            f"or the path of a table"
        )

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, Any, Any]]) -> PassageCounts:
        """From rows of where it stands, the document, and the number of its passages."""
        passages_of: dict[str, int] = {}
        for where, document, number in rows:
            name = AS_THEY_ARE.of_cell(document, where, "document")
            count = whole_count(number, f"{where}: the number of passages of document {document!r}")
            if not count:
                raise InputError(f"{where}: document {document!r} has 0 passages; leave out documents without passages")
            if passages_of.setdefault(name, count) != count:
                raise InputError(f"{where}: document {document!r} has two numbers of passages; remove one")
        if not passages_of:
            raise InputError("passages_of has no documents: give the number of passages of each document")
        return cls(passages_of)

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
        result = PassageCounts.of(passages_of)
        result.form, result.complete = form, self.complete
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
