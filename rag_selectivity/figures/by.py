"""Slices of queries: what users give as `by`, a table, a mapping, or a count of labels."""

import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.tables.cells import is_missing, number_of
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.names import COLUMNS
from rag_selectivity.tables.small import rows_by_id
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


def slicings_of(by: Any, judged: Mapping[str, JudgedRun], *, ids: str | None = None) -> list[Slicing]:
    """The slicings of what a user gives as `by`.

    Parameters
    ----------
    by : path, frame, records, mapping, {"n5", "R"}, or a list of these
        As in `evaluate`.
    judged : {run: join}
        Their queries are sliced.
    ids : str, optional
        The form of ids, as in `evaluate`.

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
            slicings = [one for table, where in _tables(each, known, form) for one in _of_table(table, known, where)]
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
    # Where more than three quarters of the queries have the largest number, it is a slice of its own.
    below = float(values.max(where=values < values.max(), initial=-math.inf))
    borders = [border for border in dict.fromkeys(quarters) if border <= below] or [below]
    shown = [f"{border:g}" if float(f"{border:g}") == border else repr(border) for border in borders]
    names = [f"≤ {shown[0]}", *(f"> {low} to {high}" for low, high in pairwise(shown)), f"> {shown[-1]}"]
    return {text: names[bisect_left(borders, value)] for text, value in numbers.items()}, names


# -- tables -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QueryTable:
    """A table of queries with type, language, customer or any other columns, by which they are sliced and filtered.

    Attributes
    ----------
    columns : {column: {query: text}}
        Of the queries of the report; a query without a value is left out.
    missing, further : int
        How many queries of the report the table lacks, and how many of the table the report lacks.
    """

    columns: Mapping[str, Mapping[str, str]]
    missing: int
    further: int = 0


def read_query_table(
    by: Any, queries: Collection[str], form: IdForm = AS_THEY_ARE, *, name: str = "by", value: str = "slice"
) -> QueryTable:
    """Read a table with a column of query ids and further columns.

    Parameters
    ----------
    by : path to JSONL, TSV, CSV or Parquet, a frame, records, or {query: value}
    queries : collection of str
        The queries of the report.
    name, value : str
        Of the argument, for errors; of the column of a mapping.

    Raises
    ------
    InputError
        If the table has no column of query ids or no other column, has a query twice with different values, or has no
        query in common with the report.
    """
    known, source = set(queries), str(by) if is_path(by) else name
    columns: dict[str, dict[str, str]] = {}
    rows: dict[str, tuple[str, dict[str, str]]] = {}
    for where, query, row, of_id in rows_by_id(by, name, value=value, form=form):
        texts = {each: "" if is_missing(cell) else str(cell) for each, cell in row.items() if each != of_id}
        first_where, first = rows.setdefault(query, (where, texts))
        if first != texts:
            raise InputError(
                f"{where}: query {query!r} has other values than in {first_where}; keep one row for each query"
            )
        for column, text in texts.items():
            of_column = columns.setdefault(column, {})
            if text and query in known:
                of_column[query] = text
    if not rows:
        raise InputError(f"{source}: the table has no rows; give one row for each query")
    if not columns:
        raise InputError(f"{source}: the table has no column besides the query ids; add one to filter by")
    if not (common := len(known & rows.keys())):
        raise InputError(
            f"{source}: none of the {len(rows):,} query ids is in the report (the table has "
            f"{examples(rows)}, the report {examples(list(queries))}); give the ids of the runs"
        )
    return QueryTable(columns, len(known) - common, len(rows) - common)


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
    if is_path(by) and str(by) != "-" and not os.path.exists(by):
        raise InputError(
            f"by: there is no file {str(by)!r}; give a table of query_id and columns, or one of {', '.join(NAMES)}"
        )
    nested = [isinstance(value, Mapping) for value in by.values()] if isinstance(by, Mapping) else [False]
    if not nested or any(nested) != all(nested):
        problem = "some values are mappings and some are not" if nested else "the mapping is empty"
        raise InputError(f"by: {problem}; give {{query: value}}, or {{column: {{query: value}}}}")
    if not any(nested):
        yield read_query_table(by, queries, form), str(by) if is_path(by) else "by"
        return
    for name, values in by.items():
        where = f"by[{name!r}]"
        yield read_query_table(values, queries, form, name=where, value=str(name)), where


def _of_table(table: QueryTable, queries: Sequence[str], where: str) -> list[Slicing]:
    """A slicing for each column."""
    found, left_out = [], []
    for name, texts in table.columns.items():
        remarks = []
        if table.further:
            remarks.append(f"{counted(table.further, 'query', 'queries')} of {where} are not measured")
        if without := len(queries) - len(texts):
            remarks.append(f"{counted(without, 'query', 'queries')} without a value are the slice {NO_VALUE}")
        slicing = by_value(name, texts, queries, [f"by {name}: {'; '.join(remarks)}"] if remarks else [])
        if len(slicing.values) > MOST_VALUES:
            left_out.append(f"{name!r} with {len(slicing.values):,}")
        else:
            found.append(slicing)
    if not found:
        raise InputError(
            f"{where}: too many different values for slices (column {', '.join(left_out)}; at most {MOST_VALUES}): "
            f"group them in a column of their own"
        )
    if left_out:
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
