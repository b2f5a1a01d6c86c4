"""How many passages (chunks) each document of a corpus has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.ids import IntArray, id_hashes, mix
from rag_selectivity.tables.names import COLUMNS
from rag_selectivity.tables.small import per


@dataclass(frozen=True)
class PassageCounts:
    """The number of passages of every document.

    >>> counts = PassageCounts({"d1": 3, "d2": 1})
    >>> counts.total, counts.of_document("d2"), counts.of_document("d9")
    (4, 1, 0)

    Attributes
    ----------
    passages : {document: number of its passages}
    complete : bool
        Whether a document that is not here has no passages, as if all were counted in an index. Otherwise the number of
        its passages is unknown.
    form : IdForm
        The form of the ids.
    """

    passages: Mapping[str, int]
    complete: bool = False
    form: IdForm = AS_THEY_ARE

    def in_form(self, form: IdForm) -> PassageCounts:
        """The same numbers by ids in a form; documents that become one have the passages of all.

        >>> PassageCounts({"d1#0": 1, "d1#1": 1}).in_form(IdForm.of("name")).of_document("d1")
        2
        """
        if not form.changes_ids or form == self.form:
            return self
        counts = Counter[str]()
        for document, passages in self.passages.items():
            counts[form(document)] += passages
        return replace(self, passages=counts, form=form)

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


def passage_counts_of(given: Any, form: IdForm = AS_THEY_ARE) -> PassageCounts | None:
    """The number of passages of each document, by its id in a form, from {document: number}, a frame, rows or a file.

    Raises
    ------
    InputError
        If a number is not a whole number of at least 1, or a document has two numbers.
    """
    if given is None or isinstance(given, PassageCounts):
        return None if given is None else given.in_form(form)
    counts = per("document", COLUMNS["document"], given, "number of passages", int, "passages_of")
    if not counts:
        raise InputError("passages_of has no documents: give the number of passages of each document")
    for document, number in counts.items():
        if not number:
            raise InputError(f"passages_of: document {document!r} has 0 passages; leave out documents without passages")
    return PassageCounts(counts).in_form(form)
