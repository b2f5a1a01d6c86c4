"""The registry of indexes: how many passages each can return. Other packages add theirs by an entry point."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, TypeVar

from rag_selectivity.data.cells import shown
from rag_selectivity.data.columns import whole_count
from rag_selectivity.data.identity import passage_identity
from rag_selectivity.data.passage_counts import PassageCounts
from rag_selectivity.data.registry import Registry
from rag_selectivity.errors import InputError, SelectivityWarning

__all__ = [
    "INDEXES",
    "IndexReader",
    "StoredPassage",
    "corpus_size_of_index",
    "documents_in_index",
    "filter_not_counted",
    "given_size",
    "identity_of_stored",
    "index_reader_of",
    "made_by",
    "passages_of_index",
    "register_index",
    "stored_passages",
]


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage of an index.

    Attributes
    ----------
    ids : {name: value or None}
        The ids that the framework gives it: `node_id` and `ref_doc_id` in LlamaIndex, `id` in LangChain.
    metadata : mapping
    text : str or None
        None if the index does not hold it.
    """

    ids: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None


class IndexReader(ABC):
    """A kind of index, vector store or retriever; a subclass says how many passages it can return.

    Register the subclass by `register_index`, or by an entry point of the group `rag_selectivity.indexes` that names
    the class. The adapters then use it to take the corpus size from an index.

    Attributes
    ----------
    name : str
    """

    name: ClassVar[str]

    @abstractmethod
    def recognises(self, index: Any) -> bool:
        """Whether an object is of this kind. It may be any object. Do not import the store's package to find out."""

    @abstractmethod
    def size(self, index: Any, filter: Any) -> int | None:
        """The number of passages that the index can return, or None if it cannot tell.

        `filter` is what a retriever passes to its store, in the store's own terms, or None. If the index cannot tell
        how many passages the filter leaves, raise `filter_not_counted(index)`.
        """

    def passages(self, index: Any, filter: Any) -> Iterable[StoredPassage] | None:
        """The passages that the index can return, or None if it cannot list them."""
        return None


#: Every reader class by its name.
INDEXES: Registry[type[IndexReader]] = Registry("reader of indexes", "rag_selectivity.indexes", IndexReader)

R = TypeVar("R", bound=IndexReader)


def register_index(reader: type[R]) -> type[R]:
    """Add a reader of indexes; a decorator for subclasses of IndexReader.

    If several readers recognise an object, the one that was added last is used.

    Raises
    ------
    InputError
        If another reader has the name.
    """
    INDEXES.add(reader.name, reader)
    return reader


def index_reader_of(index: Any) -> IndexReader | None:
    """The reader that recognises an object, or None."""
    for name in reversed(tuple(INDEXES)):
        reader = INDEXES[name]()
        if reader.recognises(index):
            return reader
    return None


def corpus_size_of_index(index: Any, *, filter: Any = None) -> int | None:
    """N: the number of passages that an index, a vector store or a retriever can return.

    Parameters
    ----------
    index : object
        An index or retriever of LlamaIndex, a vector store or retriever of LangChain, a Chroma collection, a FAISS
        index, a Qdrant client with one collection, a LanceDB table, or what another package has registered.
    filter : object, optional
        A filter in the terms of the store. The filter of a retriever need not be given: it is read from the retriever.

    Returns
    -------
    int or None
        None if no reader recognises the object, or if the index cannot tell. If the index raises an error, a warning
        shows it.

    Raises
    ------
    InputError
        If the index cannot tell how many passages its filter leaves.
    """
    reader = index_reader_of(index)
    if reader is None:
        return None
    try:
        return reader.size(index, filter)
    except InputError:
        raise
    except Exception as error:
        _warn_of(error, index, "how many passages it can return", "corpus_size=")
        return None


def stored_passages(index: Any, *, filter: Any = None) -> Iterable[StoredPassage] | None:
    """The passages that an index can return, or None if it cannot list them; arguments as in `corpus_size_of_index`."""
    reader = index_reader_of(index)
    return None if reader is None else reader.passages(index, filter)


def passages_of_index(index: Any, identity: str, *, filter: Any = None) -> dict[str, int] | None:
    """{id: number of passages that have it} over all passages that an index can return.

    If the identity is that of a document, these are the numbers of its chunks; give them to `evaluate` as
    `passages_of`.

    Parameters
    ----------
    index, filter
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
    try:
        passages = stored_passages(index, filter=filter)
        return None if passages is None else _counts(passages, identity)
    except InputError:
        raise
    except Exception as error:
        _warn_of(error, index, "which passages it can return", "passages_of= if they are chunks of documents")
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
        number: Any = corpus_size
        if isinstance(number, (bool, str)) or not number >= 1:
            raise InputError(f"corpus_size must be a whole number ≥ 1, got {shown(corpus_size)}")
        return whole_count(corpus_size, "corpus_size")
    size = corpus_size_of_index(corpus_size)
    if not size:
        kind = type(corpus_size).__name__
        raise InputError(f"corpus_size: {kind} does not tell how many passages it can return; give the number")
    return size


def documents_in_index(index: Any, identity: str) -> PassageCounts | None:
    """The number of passages of each document in an index, if several passages share an id; else None.

    Arguments and errors as in `passages_of_index`.
    """
    counts = passages_of_index(index, identity)
    if counts is None or max(counts.values(), default=1) == 1:
        return None
    return PassageCounts.of(counts, complete=True)


def _counts(passages: Iterable[StoredPassage], identity: str) -> dict[str, int] | None:
    counts: Counter[str] = Counter()
    for passage in passages:
        if identity == "text" and passage.text is None:
            return None
        try:
            counts[identity_of_stored(passage, identity)] += 1
        except InputError:
            continue
    return dict(counts)


def identity_of_stored(passage: StoredPassage, identity: str | None) -> str:
    """The id of a passage, as `rag_selectivity.single.passage_identity` names it; its errors."""
    return passage_identity(identity, ids=passage.ids, text=lambda: passage.text or "", metadata=passage.metadata)


def filter_not_counted(index: Any) -> InputError:
    """The error to raise if an index cannot tell how many passages a filter leaves."""
    return InputError(
        f"the retriever filters what {type(index).__name__} returns, and it is unknown how many passages the filter "
        f"leaves: give this number as corpus_size="
    )


def made_by(index: Any, *packages: str) -> bool:
    """Whether the class of an object, or a class that it is derived from, is defined in one of the packages.

    >>> from collections import Counter
    >>> made_by(Counter(), "collections"), made_by(Counter(), "chromadb")
    (True, False)
    """
    return any(cls.__module__.split(".")[0] in packages for cls in type(index).__mro__)


def _warn_of(error: Exception, index: Any, unknown: str, instead: str) -> None:
    warnings.warn(
        SelectivityWarning(
            f"{type(index).__name__} did not say {unknown}: {type(error).__name__}: {error}; give {instead}",
            "index-did-not-say",
        ),
        stacklevel=3,
    )
