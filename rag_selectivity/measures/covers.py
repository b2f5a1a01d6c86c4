"""The smallest number of sets that together hold all that any of them holds: set cover, exact or greedy."""

from itertools import combinations

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
    rows = table[table.any(axis=1)]
    # What no other column holds is in every cover.
    forced = [column for column in columns if (rows[:, column] & (rows.sum(axis=1) == 1)).any()]
    left = rows[~rows[:, forced].any(axis=1)]
    others = [column for column in columns if column not in forced]
    covers = (
        further
        for size in range(len(others) + 1)
        for further in combinations(others, size)
        if left[:, list(further)].any(axis=1).all()
    )
    return tuple(sorted([*forced, *next(covers)]))


def _greedy(table: NDArray[np.bool_], columns: list[int]) -> tuple[int, ...]:
    left, chosen = table.any(axis=1), []
    while left.any():
        best = max(columns, key=lambda column: int((table[:, column] & left).sum()))
        chosen.append(best)
        left = left & ~table[:, best]
    return tuple(sorted(chosen))
