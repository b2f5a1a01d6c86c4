"""Keeps the errors of an adapter from the application."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rag_selectivity.log import LOG

__all__ = ["Faults", "Shared"]


class Shared:
    """What has no copies: it holds the locks, files and figures of a process. A copy of what uses it shares it."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self


class Faults:
    """Keeps what goes wrong in an adapter from the application: each fault is counted and logged.

    Parameters
    ----------
    what_is_lost : str
        What the log says of each: "a retrieval was not recorded". The first comes with its traceback.

    Examples
    --------
    >>> faults = Faults("a retrieval was not recorded")
    >>> with faults:
    ...     raise KeyError("url")
    >>> faults.count
    1

    Attributes
    ----------
    count : int
    last : str or None
        The message of the last fault.
    """

    def __init__(self, what_is_lost: str) -> None:
        self.what_is_lost = what_is_lost
        self.count = 0
        self.last: str | None = None

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.count += 1
        self.last = str(error) or type(error).__name__
        LOG.warning("%s: %s", self.what_is_lost, error, exc_info=error if self.count == 1 else None)
        return True
