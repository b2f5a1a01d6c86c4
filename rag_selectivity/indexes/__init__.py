"""How many passages an index, a vector store or a retriever can return, and which: LlamaIndex, LangChain and others."""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.indexes.llama_index import of_llama_index
from rag_selectivity.indexes.stores import Contents, of_store
from rag_selectivity.indexes.stores import StoredPassage as StoredPassage
from rag_selectivity.tables import matching
from rag_selectivity.tables.cells import shown, whole_count
from rag_selectivity.tables.small import PassageCounts

T = TypeVar("T")


def corpus_size_of_index(index: Any) -> int | None:
    """N: the number of passages that an index, a vector store or a retriever can return, with the retriever's filter.

    Parameters
    ----------
    index : object
        An index or retriever of LlamaIndex, a vector store or retriever of LangChain, a Chroma collection, a FAISS
        index, a Qdrant client with one collection, or a LanceDB table.

    Returns
    -------
    int or None
        None if the object is none of these, or cannot tell. If the index raises an error, a warning shows it.

    Raises
    ------
    InputError
        If the index cannot tell how many passages its filter leaves.
    """
    return _asked(index, Contents.size, "how many passages it can return", "corpus_size=")


def stored_passages(index: Any) -> list[StoredPassage] | None:
    """The passages that an index can return, or None if it cannot list them; as in `corpus_size_of_index`."""
    instead = "passages_of= if they are chunks of documents"
    return _asked(index, Contents.listed, "which passages it can return", instead)


def passages_of_index(index: Any, identity: str) -> dict[str, int] | None:
    """{id: number of passages that have it} over all passages that an index can return.

    If the identity is that of a document, these are the numbers of its chunks; give them to `evaluate` as
    `passages_of`.

    Parameters
    ----------
    index : object
        As in `corpus_size_of_index`.
    identity : str
        As in `rag_selectivity.single.passage_identity`. Passages without such an id are not counted.

    Returns
    -------
    dict or None
        None if the index cannot list its passages.

    Raises
    ------
    InputError
        If the index cannot tell which passages its filter leaves.
    """
    stored = stored_passages(index)
    if stored is None or (identity == "text" and any(each.text is None for each in stored)):
        return None
    return Counter(id_ for each in stored if (id_ := each.by(identity)) is not None)


def passages_under_filter(index: Any, identity: str) -> dict[str, int] | None:
    """`passages_of_index` of a retriever with a filter; None without one."""
    with suppress(InputError):  # of a filter that nobody can count
        if _asked(index, lambda found: found.filtered, "whether it filters", "corpus_size="):
            return passages_of_index(index, identity)
    return None


def chosen_identity(observed: Sequence[matching.Observed], index: Any = None) -> matching.ChosenIdentity:
    """The id that the labels choose: among what was retrieved or, where this tells too little, in the index.

    Raises
    ------
    InputError
        As `matching.choose_identity`, unless the index has half of the labels or more by one id.
    """
    first = observed[: matching.QUERIES_TO_CHOOSE_BY]
    try:
        return matching.choose_identity(first)
    except InputError:
        labels = {label for labels_of_query, _ in first for label in labels_of_query}
        with suppress(InputError):
            stored = (passage.candidates for passage in stored_passages(index) or ())
            known = [ids for ids in stored if not labels.isdisjoint(ids.values())]
            chosen = matching.choose_identity([(labels, known)])
            if 2 * chosen.found >= len(labels) and any(passages for _, passages in first):
                found = len(matching.labels_found(first).get(chosen.name, ()))
                return replace(chosen, found=found, queries=len(first), in_index=chosen.found)
        raise


def _asked(index: Any, question: Callable[[Contents], T | None], unknown: str, instead: str) -> T | None:
    """What the contents of an index answer; None, with a warning, where the index raises an error."""
    try:
        found = of_llama_index(index) or of_store(index)
        return None if found is None else question(found)
    except InputError:
        raise
    except Exception as error:
        text = f"{type(index).__name__} did not say {unknown}: {type(error).__name__}: {error}; give {instead}"
        warnings.warn(SelectivityWarning(text, "index-did-not-say"), stacklevel=3)
        return None


def given_size(corpus_size: Any) -> int | None:
    """N as a number, counted if an index was given.

    Raises
    ------
    InputError
        If it is no whole number from 1 on, or something that does not tell how many passages it can return.
    """
    if corpus_size is None:
        return None
    if isinstance(corpus_size, (str, Real)):
        if isinstance(corpus_size, (bool, str)) or (count := whole_count(corpus_size, "corpus_size")) < 1:
            raise InputError(f"corpus_size must be a whole number ≥ 1, got {shown(corpus_size)}")
        return count
    if not (size := corpus_size_of_index(corpus_size)):
        kind = type(corpus_size).__name__
        raise InputError(f"corpus_size: {kind} does not tell how many passages it can return; give the number")
    return size


def documents_in_index(index: Any, identity: str) -> PassageCounts | None:
    """The number of passages of each document in an index, if several passages share an id; else None.

    Arguments and errors as in `passages_of_index`.
    """
    counts = passages_of_index(index, identity)
    return None if counts is None or max(counts.values(), default=1) == 1 else PassageCounts(counts, complete=True)
