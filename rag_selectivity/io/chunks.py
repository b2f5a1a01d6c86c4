"""Tables of any length in chunks: as Arrow columns where these mean what the rows mean, or row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

#: A row of a table by its column names.
Row = dict[str, Any]
T = TypeVar("T")

_AHEAD = 2


class Chunk(ABC):
    """Some rows of a table."""

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """The Arrow array of each column that was asked for, by what it holds.

        Raises
        ------
        IrregularCells
            If the rows have to be read one by one.
        """

    @property
    @abstractmethod
    def first_line(self) -> int:
        """The line of the first row. The others follow line by line where the rows come as arrays."""

    @abstractmethod
    def rows(self) -> Iterator[tuple[int, Row]]:
        """(line, row)."""


def keep_freed_memory() -> None:
    """Let the C library reuse the memory of a block's columns for those of the next block.

    glibc returns each array of more than 128 kB to the system at once, whose empty pages then cost more than the
    parsing, until an array of this size was freed.
    """
    np.empty(1 << 24, np.uint8)


def ahead(values: Generator[T]) -> Iterator[T]:
    """The same values; the next ones are made in a thread while the caller works on one."""
    end: Any = object()
    with ThreadPoolExecutor(1) as pool:
        pending: deque[Future[T]] = deque()
        try:
            while True:
                while len(pending) < _AHEAD:
                    pending.append(pool.submit(next, values, end))
                value = pending.popleft().result()
                if value is end:
                    return
                yield value
        finally:
            for future in pending:
                future.cancel()
            pool.shutdown()
            values.close()
