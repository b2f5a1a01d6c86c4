"""A slicing: groups of queries by the values of a column."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rag_selectivity.tables.cells import number_of
from rag_selectivity.tables.ids import IntArray

#: The slice of the queries without a value.
NO_VALUE = "(none)"
#: A column of numbers with more different values than this is cut into quartiles.
MOST_NUMBERS = 8
#: A column of texts with more different values than this is no slicing.
MOST_VALUES = 50


@dataclass(frozen=True, slots=True)
class Slicing:
    """Groups of queries.

    Attributes
    ----------
    column : str
    values : tuple of str
        The names of the slices, in the order in which they are shown.
    slice_of : {query: place in `values`}
    notes : tuple of str
        What was left out or added.
    """

    column: str
    values: tuple[str, ...]
    slice_of: Mapping[str, int]
    notes: tuple[str, ...] = ()

    def places(self, queries: Sequence[str]) -> IntArray:
        """The place of the slice of each query."""
        return np.array([self.slice_of[query] for query in queries], np.int64)


def by_value(column: str, texts: Mapping[str, str], queries: Iterable[str], notes: Sequence[str] = ()) -> Slicing:
    """Slices by the texts of a column; numbers with many different values are cut into quartiles.

    `texts` lacks the queries without a value, or has an empty text for them: they are the slice `(none)`.
    """
    known = {query: texts.get(query, "") for query in queries}
    distinct = sorted({text for text in known.values() if text})
    numbers = {text: _number(text) for text in distinct}
    if not distinct or any(math.isnan(value) for value in numbers.values()):
        names = {text: text for text in distinct}
        order = distinct
    elif len(set(numbers.values())) <= MOST_NUMBERS:
        # 1 and 1.0 are the same number.
        first = {value: text for text, value in reversed(numbers.items())}
        names = {text: first[value] for text, value in numbers.items()}
        order = [first[value] for value in sorted(first)]
    else:
        names, order = _quartiles(numbers, [text for text in known.values() if text])
    return in_order(column, {query: names.get(text, NO_VALUE) for query, text in known.items()}, order, notes)


def in_order(column: str, value_of: Mapping[str, str], order: Iterable[str], notes: Sequence[str] = ()) -> Slicing:
    """Slices by the name of each query's slice; names that no query has are left out, and `(none)` comes last."""
    present = set(value_of.values())
    values = [value for value in dict.fromkeys(order) if value in present and value != NO_VALUE]
    if NO_VALUE in present:
        values.append(NO_VALUE)
    place = {value: i for i, value in enumerate(values)}
    return Slicing(column, tuple(values), {query: place[value] for query, value in value_of.items()}, tuple(notes))


def _number(text: str) -> float:
    """The number that a text is; NaN for any other text."""
    try:
        value = number_of(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _quartiles(numbers: Mapping[str, float], texts: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The name of each number's quarter, which states its borders, and the names in order."""
    values = np.array([numbers[text] for text in texts])
    quarters = np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf").tolist()
    borders = [border for border in dict.fromkeys(quarters) if border < values.max()]
    shown = [f"{border:g}" if float(f"{border:g}") == border else repr(border) for border in borders]
    names = [
        f"≤ {shown[0]}",
        *(f"> {low} to {high}" for low, high in pairwise(shown)),
        f"> {shown[-1]}",
    ]
    return {text: names[bisect_left(borders, value)] for text, value in numbers.items()}, names
