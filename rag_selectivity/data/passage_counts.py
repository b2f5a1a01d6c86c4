"""How many passages (chunks) each document of a corpus has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.data.ids import IdColumn, IntArray, mix


class PassageCounts:
    """The number of passages of every document, in columns.

    >>> counts = PassageCounts.of({"d1": 3, "d2": 1})
    >>> counts.total, counts.lookup(IdColumn.from_strings(["d2", "d9"])).tolist()
    (4, [1, 0])

    Attributes
    ----------
    documents : IdColumn
    passages : int64[documents]
    complete : bool
        Whether a document that is not here has no passages, as if all were counted in an index. Otherwise the number of
        its passages is unknown.
    """

    #: The form of the ids.
    form: IdForm = AS_THEY_ARE

    def __init__(self, documents: IdColumn, passages: NDArray[np.integer[Any]], *, complete: bool = False) -> None:
        self.complete = complete
        self.documents = documents
        self.passages: IntArray = passages.astype(np.int64)
        hashes = documents.hashes()
        self._by_hash = np.argsort(hashes, kind="stable")
        self._sorted_hashes = hashes[self._by_hash]

    @classmethod
    def of(cls, passages_of: Mapping[str, int], *, complete: bool = False) -> PassageCounts:
        """From {document: number of its passages}, which `rag_selectivity.tables.small.passage_counts_of` checks."""
        numbers = np.fromiter(passages_of.values(), np.int64, len(passages_of))
        return cls(IdColumn.from_strings(list(passages_of)), numbers, complete=complete)

    def in_form(self, form: IdForm) -> PassageCounts:
        """The same numbers by ids in a form; documents that become one have the passages of all.

        >>> PassageCounts.of({"d1#0": 1, "d1#1": 1}).in_form(IdForm.of("name")).lookup(IdColumn.from_strings(["d1"]))
        array([2])
        """
        if not form.changes_ids or form == self.form:
            return self
        passages_of: dict[str, int] = {}
        for document, passages in zip(self.documents, self.passages.tolist(), strict=True):
            passages_of[form(document)] = passages_of.get(form(document), 0) + passages
        result = PassageCounts.of(passages_of, complete=self.complete)
        result.form = form
        return result

    @cached_property
    def total(self) -> int:
        """The passages of all documents."""
        return int(self.passages.sum())

    @cached_property
    def fingerprint(self) -> int:
        """A 64-bit hash of the documents and their numbers, in any order."""
        return int(mix(self.documents.hashes(), self.passages.astype(np.uint64)).sum(dtype=np.uint64))

    def lookup(self, documents: IdColumn) -> IntArray:
        """The number of passages of each document; 0 if it is unknown."""
        hashes = documents.hashes()
        place = np.minimum(np.searchsorted(self._sorted_hashes, hashes), len(self._sorted_hashes) - 1)
        rows = np.flatnonzero(self._sorted_hashes[place] == hashes)
        known = self._by_hash[place[rows]]
        same = documents.equal(rows, self.documents, known)
        numbers = np.zeros(len(documents), np.int64)
        numbers[rows[same]] = self.passages[known[same]]
        return numbers
