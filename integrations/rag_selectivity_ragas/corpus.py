"""N and the passages of each document, from a number, an index, a vector store or a retriever."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from itertools import chain, islice
from typing import Any

from rag_selectivity import InputError
from rag_selectivity.errors import SelectivityWarning, examples
from rag_selectivity.indexes import documents_in_index, given_size, stored_passages
from rag_selectivity.single import as_text_id, choose_identity, passage_counts_of, whole_count


def corpus_of(corpus_size: Any, passages_of: Any, labelled: Collection[str]) -> tuple[Any, Any, list[str]]:
    """N for all queries or for each, the passages of each document, and what an index was asked for.

    Parameters
    ----------
    corpus_size : int, {query: int}, index, vector store or retriever, optional
    passages_of : {document: number of its passages}, optional
        From the index if not given, where the labels name documents that have several passages in it.
    labelled : collection of str
        The ids by which the labels know passages; empty to take the passages of no document from the index.

    Raises
    ------
    InputError
        If `corpus_size` is none of these, or the index cannot tell its size.
    """
    counts = passage_counts_of(passages_of)
    if isinstance(corpus_size, Mapping) and isinstance(next(iter(corpus_size.values()), None), str):
        raise InputError("corpus_size is a dict of texts; a dict gives N for each query: give len(corpus)")
    if corpus_size is None or isinstance(corpus_size, Mapping) or hasattr(corpus_size, "columns"):
        return corpus_size, counts, []
    if isinstance(corpus_size, (str, bytes, float)) or hasattr(corpus_size, "__index__"):
        return whole_count(corpus_size, "corpus_size"), counts, []
    size, index = given_size(corpus_size), type(corpus_size).__name__
    identity = None if counts is not None else _identity_in(corpus_size, labelled)
    found = None if identity is None else documents_in_index(corpus_size, identity)
    if found is None:
        return size, counts, [f"N = {size:,} is the number of passages in {index}."]
    note = f"The passages of each document were counted in {index}; labels know its passages by {identity}."
    return size, found, [note]


def _identity_in(index: Any, labelled: Collection[str]) -> str | None:
    """By which of their ids the labels know the passages of an index; None if it cannot list them or none is known."""
    passages = stored_passages(index) if labelled else None
    if passages is None:
        return None
    given = set(labelled)
    by_hash = {as_text_id(passage): passage for passage in given}
    each_by_name = (passage.candidates for passage in passages)
    all_ids = ({**ids, "text": by_hash.get(ids["text"], ids["text"])} for ids in each_by_name)
    first = list(islice(all_ids, 3))
    known = [ids for ids in chain(first, all_ids) if not given.isdisjoint(ids.values())]
    if known:
        return choose_identity([(given, known)]).name
    doubt = (
        f"not one labelled passage is in the index: the labels name {examples(sorted(given))}, the index has "
        f"{examples(next(iter(ids.values())) for ids in first)}; is it the index that the labels belong to?"
    )
    warnings.warn(SelectivityWarning(doubt, "ids-do-not-match"), stacklevel=4)
    return None
