"""Rows of whatever holds a table, each with where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rag_selectivity.data.cells import iterated, shown
from rag_selectivity.errors import InputError
from rag_selectivity.io.reading import is_path, read_records
from rag_selectivity.tables.exact import as_frame, column_names, column_values, is_frame


def records_of(source: Any, what: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(place, row) of a file, a frame or dicts.

    Raises
    ------
    InputError
        If it is none of these, or a row is no dict.
    """
    if is_path(source):
        yield from ((f"{source}:{line}", row) for line, row in read_records(source))
        return
    if is_frame(source):
        frame = as_frame(source, f"{what} frame")
        columns = {str(name): column_values(frame, name) for name in column_names(frame)}
        count = len(next(iter(columns.values()), ()))
        source = ({name: column[i] for name, column in columns.items()} for i in range(count))
    rows = iterated(source, f"{what}: give a file, a frame or a list of dicts")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise InputError(f"{what}: row {number}: expected a dict, got {shown(row)}")
        yield f"{what}: row {number}", row
