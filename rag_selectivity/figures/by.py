"""Slices of queries: what users give as `by`, a table, a mapping, or a count of labels."""

from __future__ import annotations

import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.figures.query_table import QueryTable, read_query_table
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.tables.cells import number_of
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.names import COLUMNS
from rag_selectivity.wording import counted

#: Slicings that need no table.
N5, R = NAMES = "n5", "R"
#: The lowest number of each bin.
_FIRST_OF_BINS = {N5: (0, 1, 2, 3), R: (0, 1, 2, 4, 10)}
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


def slicings_of(
    by: Any, judged: Mapping[str, JudgedRun], *, ids: str | None = None, needed: bool = True
) -> list[Slicing]:
    """The slicings of what a user gives as `by`.

    Parameters
    ----------
    by : path, frame, records, mapping, {"n5", "R"}, or a list of these
        As in `evaluate`.
    judged : {run: join}
        Their queries are sliced.
    ids : str, optional
        The form of ids, as in `evaluate`.
    needed : bool
        False to pass over a table whose columns all have too many values.

    Raises
    ------
    InputError
        If there is no such file, column or name; if no query of a table is measured; if two slicings have one name.
    """
    form, found = IdForm.of(ids), dict[str, Slicing]()
    known = list(dict.fromkeys(query for run in judged.values() for query in run.queries))
    for each in [] if by is None else _each(by):
        if isinstance(each, str) and each in NAMES:
            slicings = [_of_labels(each, judged, known)]
        else:
            slicings = [
                slicing
                for table, where in _tables(each, known, form)
                for slicing in _of_table(table, known, where, needed)
            ]
        for slicing in slicings:
            if slicing.column in found:
                raise InputError(f"by: two slicings are called {slicing.column!r}; rename one of the columns")
            found[slicing.column] = slicing
    return list(found.values())


def by_value(column: str, texts: Mapping[str, str], queries: Iterable[str], notes: Sequence[str] = ()) -> Slicing:
    """Slices by the texts of a column; numbers with many different values are cut into quartiles.

    `texts` lacks the queries without a value, or has an empty text for them: they are the slice `(none)`.
    """
    known = {query: texts.get(query, "") for query in queries}
    order = sorted({text for text in known.values() if text})
    names, numbers = {text: text for text in order}, {text: _number(text) for text in order}
    if order and not any(math.isnan(value) for value in numbers.values()):
        # 1 and 1.0 are the same number.
        first = {value: text for text, value in reversed(numbers.items())}
        names, order = {text: first[value] for text, value in numbers.items()}, [first[each] for each in sorted(first)]
        if len(first) > MOST_NUMBERS:
            names, order = _quartiles(numbers, [text for text in known.values() if text])
    return _in_order(column, {query: names.get(text, NO_VALUE) for query, text in known.items()}, order, notes)


def _in_order(column: str, value_of: Mapping[str, str], order: Iterable[str], notes: Sequence[str]) -> Slicing:
    """Slices by the name of each query's slice; names that no query has are left out, and `(none)` comes last."""
    present = set(value_of.values())
    values = [value for value in dict.fromkeys((*order, NO_VALUE)) if value in present]
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
    names = [f"≤ {shown[0]}", *(f"> {low} to {high}" for low, high in pairwise(shown)), f"> {shown[-1]}"]
    return {text: names[bisect_left(borders, value)] for text, value in numbers.items()}, names


# -- tables -----------------------------------------------------------------------------------------------


def _each(by: Any) -> list[Any]:
    """What is given, one by one: a list of records is one table."""
    if not isinstance(by, (list, tuple)):
        return [by]
    if not by:
        raise InputError(f"by: the list is empty; give a table, a mapping, or one of {', '.join(NAMES)}")
    records = all(
        isinstance(row, Mapping)
        and not any(isinstance(value, Mapping) for value in row.values())
        and any(name in COLUMNS["query"] for name in row)
        for row in by
    )
    return [by] if records else list(by)


def _tables(by: Any, queries: Sequence[str], form: IdForm) -> Iterator[tuple[QueryTable, str]]:
    """(table, where it is from): one of a file or frame, one for each nested mapping."""
    if is_path(by):
        if str(by) != "-" and not os.path.exists(by):
            raise InputError(
                f"by: there is no file {str(by)!r}; give a table of query_id and columns, or one of {', '.join(NAMES)}"
            )
        yield read_query_table(by, queries, form), str(by)
        return
    nested = [isinstance(value, Mapping) for value in by.values()] if isinstance(by, Mapping) else [False]
    if not nested or any(nested) != all(nested):
        problem = "some values are mappings and some are not" if nested else "the mapping is empty"
        raise InputError(f"by: {problem}; give {{query: value}}, or {{column: {{query: value}}}}")
    if not any(nested):
        yield read_query_table(by, queries, form), "by"
        return
    for name, values in by.items():
        where = f"by[{name!r}]"
        yield read_query_table(values, queries, form, name=where, value=str(name)), where


def _of_table(table: QueryTable, queries: Sequence[str], where: str, needed: bool) -> list[Slicing]:
    """A slicing for each column."""
    found, left_out = [], []
    for place, name in enumerate(table.columns):
        texts, remarks = {query: values[place] for query, values in table.values.items()}, []
        if table.further:
            remarks.append(f"{counted(table.further, 'query', 'queries')} of {where} are not measured")
        if without := sum(not texts.get(query) for query in queries):
            remarks.append(f"{counted(without, 'query', 'queries')} without a value are the slice {NO_VALUE}")
        slicing = by_value(name, texts, queries, [f"by {name}: {'; '.join(remarks)}"] if remarks else [])
        if len(slicing.values) > MOST_VALUES:
            left_out.append(f"{name!r} with {len(slicing.values):,}")
        else:
            found.append(slicing)
    if not found and needed:
        raise InputError(
            f"{where}: too many different values for slices (column {', '.join(left_out)}; at most {MOST_VALUES}): "
            f"group them in a column of their own"
        )
    if found and left_out:
        note = f"{where}: no slices by columns with more than {MOST_VALUES} different values: {', '.join(left_out)}"
        found[0] = replace(found[0], notes=(*found[0].notes, note))
    return found


# -- labels -----------------------------------------------------------------------------------------------


def _of_labels(name: str, judged: Mapping[str, JudgedRun], queries: Sequence[str]) -> Slicing:
    """Slices by the number of relevant passages, or of those with the grade 5, among all labels of a query."""
    numbers: dict[str, int] = {}
    for run in judged.values():
        if name == N5 and run.scale.name != "utility":
            raise InputError(
                f"by n5 counts decisive passages, grade 5 of the utility scale, and the labels are on the "
                f"{run.scale.name} scale: use by R, the number of relevant passages, or give scale='utility' "
                f"(--scale utility)"
            )
        counts = run.labels[:, run.grades == 5].sum(axis=1) if name == N5 else run.relevant()
        numbers.update(zip(run.queries, counts.tolist(), strict=True))
    firsts = _FIRST_OF_BINS[name]
    names = [f"{low}" if after == low + 1 else f"{low}-{after - 1}" for low, after in pairwise(firsts)]
    names.append(f"{firsts[-1]}+")
    return _in_order(name, {query: names[bisect_right(firsts, numbers[query]) - 1] for query in queries}, names, [])
