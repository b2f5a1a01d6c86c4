"""What judgments and runs have in common: both are made from whatever a program holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from rag_selectivity.errors import InputError
from rag_selectivity.tables.exact import is_frame


class Held(ABC):
    """Judgments or a run; a subclass says how it is made from each form of data."""

    #: What it is called in messages, and what the function that reads it from a file ends with.
    kind: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_dict(cls, lists: Mapping[Any, Any]) -> Self:
        """From {query: …}."""

    @classmethod
    @abstractmethod
    def from_records(cls, records: Iterable[Sequence[Any]]) -> Self:
        """From rows."""

    @classmethod
    @abstractmethod
    def from_dataframe(cls, frame: Any) -> Self:
        """From a pandas or polars frame."""

    @classmethod
    def of(cls, value: Any) -> Self:
        """From a value of the class, a dict, a frame, or rows; `rag_selectivity.read_qrels` and `read_run` read files.

        Raises
        ------
        InputError
            For anything else.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping):
            return cls.from_dict(value)
        if is_frame(value):
            return cls.from_dataframe(value)
        if isinstance(value, (str, Path)):
            raise InputError(f"{cls.kind}: {value!r} is a path: read the file with rag_selectivity.read_{cls.kind}(…)")
        if isinstance(value, Iterable):
            return cls.from_records(value)
        raise InputError(
            f"{cls.kind}: expected a dict, DataFrame, path, rows or {cls.__name__}, got {type(value).__name__}"
        )
