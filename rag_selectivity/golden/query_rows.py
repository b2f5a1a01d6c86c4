"""The queries of a golden set as rows: id, text, weight, and whatever else the source says of them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.golden.query_set import QuerySet
from rag_selectivity.tables.cells import checked_id, holds_half, is_missing, number_or_nan, shown
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.names import COLUMNS, optional_column
from rag_selectivity.tables.small import rows_of
from rag_selectivity.tables.writing import json_line

_IDS = ("_id", "id", *COLUMNS["query"])
#: The columns that can only be the id of a row. The others, as `query`, may be a text beside it.
_ID_COLUMNS = ("_id", "id", "query_id")


def query_rows(source: Any) -> list[dict[str, Any]]:
    """A row with `query_id`, `text` and perhaps `weight` for each query, its other columns after them.

    Parameters
    ----------
    source : QuerySet, path of a table or of id, tab and text, DataFrame, {id: text}, or list of records
        `text` is None for a query without one.

    Raises
    ------
    InputError
        If an id stands twice with different texts, a weight is no number above 0, some queries have a weight and others
        none, a value cannot be written as JSON, or there is no query.
    """
    rows: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    for where, given in _rows(source):
        row = _row(given, where)
        first = rows.setdefault(row["query_id"], row)
        if first is not row and first["text"] != row["text"]:
            raise InputError(f"{where}: query {row['query_id']!r} has two texts; give each query an id of its own")
        at = places.setdefault(row["query_id"], where)
        for name in ("weight", "stratum"):
            if first.get(name) != row.get(name):
                raise InputError(
                    f"{where}: query {row['query_id']!r} has another {name} than in {at}; keep one row for each query"
                )
    if not rows:
        raise InputError(f"{source if is_path(source) else 'queries'}: there are no queries")
    without = [id_ for id_, row in rows.items() if "weight" not in row]
    if without and len(without) < len(rows):
        raise InputError(
            f"queries: {without[0]!r} has no weight, and others have one: give every query a weight, or none"
        )
    return list(rows.values())


def _rows(source: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(source, QuerySet):
        source = source.to_rows()
    if is_path(source):
        source = Path(source) / "queries.jsonl" if os.path.isdir(source) else source
    yield from rows_of(source, "queries", value="text")


def _row(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    of_id = optional_column(list(given), _IDS)
    others = [name for name in given if name != of_id]
    of_text = optional_column(others, COLUMNS["text"])
    if of_id is None:
        raise InputError(f"{where}: no column for the id of the query; it has {', '.join(map(str, given))}")
    if is_missing(given[of_id]):
        raise InputError(f"{where}: the id of the query is empty")
    text = None if of_text is None or is_missing(given[of_text]) else given[of_text]
    if text is not None and not isinstance(text, str):
        raise InputError(f"{where}: the query is no text, but {shown(text)}")
    if text is not None and not text.isascii() and holds_half(text):
        raise InputError(f"{where}: the query holds half of a surrogate pair, which is no character")
    for name in others:
        if str(name).lower() in _ID_COLUMNS and not is_missing(given[name]) and str(given[name]) != str(given[of_id]):
            raise InputError(
                f"{where}: the columns {of_id} and {name} hold two ids of the query ({shown(given[of_id])} and "
                f"{shown(given[name])}); remove one of them"
            )
    row: dict[str, Any] = {"query_id": checked_id(str(given[of_id]), where, "query's"), "text": text}
    of_weight = optional_column([name for name in others if name != of_text], ("weight",))
    if of_weight is not None and not is_missing(given[of_weight]):
        row["weight"] = _weight(given[of_weight], where)
    known = {*_ID_COLUMNS, "text", "weight"}
    row |= {str(name): given[name] for name in others if name != of_text and str(name).lower() not in known}
    try:
        json_line(row)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: query {row['query_id']!r} holds a value that JSON lacks ({error})") from None
    return row


def _weight(value: Any, where: str) -> float:
    """A number above 0."""
    weight = number_or_nan(value)
    if not (weight > 0 and math.isfinite(weight)):
        raise InputError(f"{where}: the weight of a query must be a number above 0, got {shown(value)}")
    return weight
