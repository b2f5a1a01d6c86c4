"""The one reader of small tables: rows with their places, and a value for each query, passage or document."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.tables.cells import is_missing, iterated, number_or_nan, shown, whole_count
from rag_selectivity.tables.exact import as_frame, column_names, column_values, is_frame, is_path, read_records
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.names import (
    CLUSTER_NAMES,
    COUNT_NAMES,
    DOCUMENT_NAMES,
    PASSAGE_NAMES,
    QUERY_NAMES,
    SIZE_NAMES,
    TOKEN_NAMES,
    WEIGHT_NAMES,
    find_column,
)
from rag_selectivity.tables.passage_counts import PassageCounts

V = TypeVar("V")
#: The columns that hold a value, by what it is.
_NAMES = {
    "cluster": CLUSTER_NAMES,
    "corpus size": SIZE_NAMES,
    "group": ("group", "group_id", "duplicate_of", "canonical_id"),
    "number of passages": COUNT_NAMES,
    "number of tokens": TOKEN_NAMES,
    "weight": WEIGHT_NAMES,
}


class PlacedRows(list[tuple[str, Mapping[str, Any]]]):
    """Rows that were read, each with its place: a source that can be read twice."""


def rows_of(source: Any, name: str, key: str = "query_id", value: str = "value") -> Iterator[tuple[str, Any]]:
    """(place, row) of a file, a frame, a list of rows or a mapping; `name` is that of the argument.

    A mapping is {id: row} or {id: value}: its ids are the column `key`, and its values the column `value`.

    >>> list(rows_of({"q1": 3}, "weights", value="weight"))
    [("weights['q1']", {'query_id': 'q1', 'weight': 3})]
    """
    if isinstance(source, PlacedRows):
        yield from source
    elif is_path(source):
        yield from ((f"{source}:{line}", row) for line, row in read_records(source))
    elif isinstance(source, Mapping):
        for id_, row in source.items():
            yield f"{name}[{id_!r}]", {key: id_, **(row if isinstance(row, Mapping) else {value: row})}
    else:
        if is_frame(source):
            frame = as_frame(source, f"{name} frame")
            columns = {str(column): column_values(frame, column) for column in column_names(frame)}
            source = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
        rows = iterated(source, f"{name}: give a file, a frame, a mapping or a list of rows")
        for number, row in enumerate(rows, 1):
            if not isinstance(row, Mapping):
                raise InputError(f"{name}, row {number}: expected {{column: value}}, got {shown(row)}")
            yield f"{name}, row {number}", row


def rows_with_id(source: Any, name: str, ids: Sequence[str], of: str) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """(place, row, column of the ids) of `rows_of`; the column is found once for all rows with the same names."""
    columns: dict[tuple[Any, ...], Any] = {}
    for where, row in rows_of(source, name, ids[0]):
        shape = tuple(row)
        if shape not in columns:
            columns[shape] = find_column(shape, ids, of, where)
        yield where, row, columns[shape]


def query_of(row: Mapping[str, Any], where: str, form: IdForm = AS_THEY_ARE, names: Sequence[str] = QUERY_NAMES) -> str:
    """The id of the query that a row is of, in a form."""
    return form.of_cell(row[find_column(tuple(row), names, "query", where)], where, "query")


def per_query(
    source: Any, what: str, kind: type[V], *, name: str = "", form: IdForm = AS_THEY_ARE, column: str | None = None
) -> dict[str, V]:
    """{query: value} of a mapping, a frame, rows or a file.

    Parameters
    ----------
    source : {query: value}, DataFrame, rows or path
    what : str
        What the value is, by which its column is found: `weight`, `cluster`, `corpus size`, …
    kind : type
        float for finite numbers ≥ 0, int for whole numbers ≥ 0, str for names.
    name : str
        That of the argument, for errors. Default: that of the value.
    form : IdForm
        The form of the ids.
    column : str, optional
        The column of the values.

    Raises
    ------
    InputError
        If a column is missing, an id or a value is none, or a query has two values.

    >>> per_query([{"qid": 1, "weight": "2.5"}], "weight", float)
    {'1': 2.5}
    """
    return _per("query", QUERY_NAMES, source, what, kind, name or what, form, column)


def per_passage(source: Any, what: str, kind: type[V], *, name: str = "", form: IdForm = AS_THEY_ARE) -> dict[str, V]:
    """{passage: value}, as `per_query`."""
    return _per("passage", ("_id", "id", *PASSAGE_NAMES), source, what, kind, name or what, form)


def passage_counts_of(given: Any, form: IdForm = AS_THEY_ARE) -> PassageCounts | None:
    """The number of passages of each document, by its id in a form, from {document: number}, a frame, rows or a file.

    Raises
    ------
    InputError
        If a number is not a whole number of at least 1, or a document has two numbers.
    """
    if given is None:
        return None
    if isinstance(given, PassageCounts):
        return given.in_form(form)
    counts = _per("document", DOCUMENT_NAMES, given, "number of passages", int, "passages_of", AS_THEY_ARE)
    if not counts:
        raise InputError("passages_of has no documents: give the number of passages of each document")
    for document, number in counts.items():
        if not number:
            raise InputError(f"passages_of: document {document!r} has 0 passages; leave out documents without passages")
    return PassageCounts.of(counts).in_form(form)


def _per(
    of: str,
    ids: Sequence[str],
    source: Any,
    what: str,
    kind: type[Any],
    name: str,
    form: IdForm,
    column: str | None = None,
) -> dict[str, Any]:
    names = _NAMES[what] if column is None else (column,)
    columns: dict[tuple[Any, ...], tuple[Any, Any]] = {}
    found: dict[str, Any] = {}
    for where, row in rows_of(source, name, ids[0], names[0]):
        shape = tuple(row)
        if shape not in columns:
            of_id = find_column(shape, ids, of, where)
            columns[shape] = of_id, find_column(shape, names, what, where)
        of_id, of_value = columns[shape]
        id_ = form.of_cell(row[of_id], where, of)
        value = _value(kind, row[of_value], where, what, of, id_)
        if found.setdefault(id_, value) != value:
            one, other = (f"{each:g}" if kind is float else each for each in (value, found[id_]))
            raise InputError(f"{where}: the {what} of {of} {id_!r} is {one}, and {other} before: keep one of them")
    return found


def _value(kind: type[Any], value: Any, where: str, what: str, of: str, id_: str) -> Any:
    """A cell as a name, a whole number or a finite number ≥ 0."""
    if kind is str:
        return AS_THEY_ARE.of_cell(value, where, what)
    if is_missing(value):
        raise InputError(f"{where}: {of} {id_!r} has no {what}: give a number")
    if kind is int:
        return whole_count(value, f"{where}: the {what} of {of} {id_!r}")
    number = math.nan if isinstance(value, (bool, np.bool_)) else number_or_nan(value)
    if not 0 <= number < math.inf:
        raise InputError(f"{where}: the {what} of {of} {id_!r} is {shown(value)}; give a finite number ≥ 0")
    return number


def path_and_column(text: str, name: str, otherwise: str = "") -> tuple[str, str | None]:
    """The file, and the column of `FILE:COLUMN`; `otherwise` says what else may be given.

    Raises
    ------
    InputError
        If there is no such file, or the name is empty.
    """
    if text == "-" or os.path.exists(text):
        return text, None
    file, colon, column = text.rpartition(":")
    if colon and (file == "-" or os.path.exists(file)):
        return file, column
    problem = f"there is no file {shown(text)}" if text else "the name is empty"
    mend = "give a table of query_id and columns (FILE, or FILE:COLUMN for one of them)"
    raise InputError(f"{name}: {problem}; {mend}{otherwise}")
