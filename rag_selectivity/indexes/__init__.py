"""How many passages an index, a vector store or a retriever can return, and which: LlamaIndex, LangChain and others."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

from rag_selectivity.errors import InputError, warn
from rag_selectivity.indexes.llama_index import of_llama_index
from rag_selectivity.indexes.stores import Contents, of_store
from rag_selectivity.indexes.stores import StoredPassage as StoredPassage
from rag_selectivity.tables import matching
from rag_selectivity.tables.cells import shown, whole_count
from rag_selectivity.tables.small import PassageCounts, UnderFilter, per

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
    return _asked(index, Contents.listed, "which passages it can return", "passages_of= for chunks of documents")


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
    if (stored := stored_passages(index)) is None or (identity == "text" and any(each.text is None for each in stored)):
        return None
    return Counter(id_ for each in stored if (id_ := each.by(identity)) is not None)


def passages_under_filter(indexes: Sequence[Any], labels: Mapping[str, Collection[str]]) -> UnderFilter | None:
    """The ids of all passages that retrievers with filters can return, and the hashes of their texts.

    The id, or the text itself, is the one that finds most labels; without labels, these are all. None without a filter;
    and with a warning, if it is not known what the filters leave, if that differs, or if it has no label.
    """
    labelled = {label for row in labels.values() for label in row}
    with suppress(InputError):  # of a filter that nobody can count
        if not any(_asked(each, lambda it: it.filtered, "whether it filters", "corpus_size=") for each in indexes):
            return None
        first, *others = (_ids_by_labels(each, labelled) for each in {id(each): each for each in indexes}.values())
        if all(each == first for each in others) and not (labelled and first.isdisjoint(labelled)):
            return first
    warn("R of a random draw counts labels outside a filter: it is not known which", "index-did-not-say", stacklevel=3)
    return None


def _ids_by_labels(index: Any, labelled: Collection[str]) -> UnderFilter:
    passages = [{**each.candidates, "": each.text or ""} for each in stored_passages(index) or ()]
    found = matching.labels_found([(labelled, passages)])
    chosen = max(found, key=lambda name: len(found[name]), default=None)
    return UnderFilter(id_ for ids in passages for name, id_ in ids.items() if name in (chosen, "text") or not labelled)


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
        return None if (found := of_llama_index(index) or of_store(index)) is None else question(found)
    except InputError:
        raise
    except Exception as error:
        text = f"{type(index).__name__} did not say {unknown}: {type(error).__name__}: {error}; give {instead}"
        warn(text, "index-did-not-say", stacklevel=4)
        return None


def given_size(corpus_size: Any) -> Any:
    """N as a number, counted if an index was given, or {query: N} of a mapping or a frame.

    Raises
    ------
    InputError
        If it is no whole number from 1 on, or something that does not tell how many passages it can return.
    """
    if isinstance(corpus_size, Mapping) or hasattr(corpus_size, "columns"):
        return per("query", corpus_size, "corpus size", int, name="corpus_size")
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
