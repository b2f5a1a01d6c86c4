"""How many passages (chunks) each document of a corpus has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np

from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.ids import IntArray, id_hashes, mix


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
