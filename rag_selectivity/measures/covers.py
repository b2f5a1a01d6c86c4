"""The smallest number of sets that together hold all that any of them holds: set cover, exact or greedy."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

#: Up to this many sets that hold anything, the cover is the smallest there is.
EXACT = 20


def smallest_cover(table: NDArray[np.bool_]) -> tuple[int, ...]:
    """The columns that together hold every row that any column holds; of several smallest covers the first in order.

    Exact for up to 20 columns that hold a row. With more it is the greedy cover, which takes the column that holds
    the most of the remaining rows: at most 1 + ½ + … + 1/m times as many as the smallest, where m is the most rows that
    a column holds (Chvátal 1979, A greedy heuristic for the set-covering problem).

    Parameters
    ----------
    table : bool[rows, columns]

    >>> smallest_cover(np.array([[1, 0, 1], [0, 0, 1], [0, 1, 0]], bool))
    (1, 2)
    """
    columns = np.flatnonzero(table.any(axis=0)).tolist()
    if len(columns) > EXACT:
        return _greedy(table, columns)
    held = [sum(1 << row for row in np.flatnonzero(table[:, column]).tolist()) for column in columns]
    #: What the columns from one on hold together.
    rest = [0] * (len(held) + 1)
    for place in range(len(held) - 1, -1, -1):
        rest[place] = rest[place + 1] | held[place]

    @cache
    def first_cover(start: int, wanted: int, size: int) -> tuple[int, ...] | None:
        """The first cover of so many columns from `start` on."""
        if not wanted:
            return ()
        for place in range(start, len(held) if size else start):
            if wanted & ~rest[place]:
                return None
            if held[place] & wanted:
                further = first_cover(place + 1, wanted & ~held[place], size - 1)
                if further is not None:
                    return (place, *further)
        return None

    covers = (first_cover(0, rest[0], size) for size in range(len(held) + 1))
    return tuple(columns[place] for place in next(cover for cover in covers if cover is not None))


def _greedy(table: NDArray[np.bool_], columns: list[int]) -> tuple[int, ...]:
    left, chosen = table.any(axis=1), []
    while left.any():
        best = max(columns, key=lambda column: int((table[:, column] & left).sum()))
        chosen.append(best)
        left = left & ~table[:, best]
    return tuple(sorted(chosen))
