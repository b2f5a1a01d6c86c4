"""What an index, a vector store or a retriever can return, and the functions that find it out for each kind of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any

from rag_selectivity.errors import InputError


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


Passages = Iterable[StoredPassage] | None


@dataclass(frozen=True, slots=True)
class Contents:
    """How many passages can be returned, and which; None for what is not known."""

    size: Callable[[], int | None]
    passages: Callable[[], Passages] = lambda: None

    @classmethod
    def listed(cls, passages: Callable[[], Passages]) -> Contents:
        """Those of an index that counts by listing."""
        return cls(lambda: None if (found := passages()) is None else sum(1 for _ in found), passages)


#: From an index and a filter in its own terms, or None, to its contents; None if they are not known.
Reader = Callable[[Any, Any], Contents | None]
_READERS: list[tuple[tuple[str, ...], Callable[[Any], bool], Reader]] = []


def reader(*packages: str, of: Callable[[Any], bool]) -> Callable[[Reader], Reader]:
    """A decorator: the function reads the objects of some packages that pass a test. The first that fits is used."""

    def add(function: Reader) -> Reader:
        _READERS.append((packages, of, function))
        return function

    return add


def reader_of(index: Any) -> Reader | None:
    """The function that reads an object, or None."""
    return next((read for packages, of, read in _READERS if made_by(index, *packages) and of(index)), None)


def contents_of(index: Any, filter: Any) -> Contents | None:
    """What an object can return; None if it is not known."""
    read = reader_of(index)
    return None if read is None else read(index, filter)


def made_by(index: Any, *packages: str) -> bool:
    """Whether the class of an object, or a class that it is derived from, is defined in one of the packages."""
    return any(cls.__module__.split(".")[0] in packages for cls in type(index).__mro__)


def has(*methods: str) -> Callable[[Any], bool]:
    """A test: whether an object has methods that can be called without an event loop."""

    def test(index: Any) -> bool:
        found = [getattr(index, name, None) for name in methods]
        return all(callable(method) and not iscoroutinefunction(method) for method in found)

    return test


def is_a(name: str) -> Callable[[Any], bool]:
    """A test: whether the class of an object, or one that it is derived from, has a name."""
    return lambda index: any(cls.__name__ == name for cls in type(index).__mro__)


def filter_not_counted(index: Any) -> InputError:
    """The error if it is not known how many passages a filter leaves."""
    return InputError(
        f"the retriever filters what {type(index).__name__} returns, and it is unknown how many passages the filter "
        f"leaves: give this number as corpus_size="
    )
