"""The files that commands write: refused before the work if they could not be written after it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.cli.output import STANDARD_OUTPUT
from rag_selectivity.errors import InputError


class _Writable(str):
    """The metavar of a parameter that names a file to write, by which it is known."""


class _WritableTable(_Writable):
    """As `_Writable`, for a table whose suffix says its format."""


#: What the help shows of a file to write, and of a table.
OF_OUTPUT, OF_TABLE = _Writable("FILE"), _WritableTable("FILE")


def refuse_unwritable_files(parameters: Sequence[Any], values: Mapping[str, Any]) -> None:
    """An InputError if a file could not be written after the work, or if two results would go to the same place."""
    places: dict[str, str] = {}
    for parameter in parameters:
        value = values.get(parameter.name)
        if not isinstance(parameter.metavar, _Writable) or (value is None and parameter.name != "output"):
            continue
        path = STANDARD_OUTPUT if value is None else Path(value)
        place = str(path) if path == STANDARD_OUTPUT else os.path.realpath(path)
        first = places.setdefault(place, parameter.opts[0])
        if first != parameter.opts[0]:
            where = "standard output" if path == STANDARD_OUTPUT else str(path)
            mend = "name a file with --output" if value is None or path == STANDARD_OUTPUT else "name another file"
            raise InputError(f"two results cannot both go to {where}: {mend}")
        if path != STANDARD_OUTPUT:
            _refuse(path, is_table=isinstance(parameter.metavar, _WritableTable))
    if values.get("csv_safe") and not _writes_csv(values, places):
        raise InputError("--csv-safe is about CSV, and this command writes none: add --format csv, or leave it out")


def _writes_csv(values: Mapping[str, Any], places: Iterable[str]) -> bool:
    is_csv = values.get("format") == "csv" or values.get("per_query") == STANDARD_OUTPUT
    return is_csv or any(place.lower().endswith(".csv") for place in places)


def _refuse(path: Path, *, is_table: bool) -> None:
    from rag_selectivity.io.replacing import refuse_unwritable
    from rag_selectivity.io.writing import refuse_suffix

    if is_table:
        refuse_suffix(path)
    refuse_unwritable(path)
