"""The queries of a golden set as rows: id, text, weight, and whatever else the source says of them."""

import math
from collections.abc import Mapping
from os.path import isdir
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.golden.query_set import QuerySet
from rag_selectivity.golden.questions import text_in
from rag_selectivity.tables.cells import is_missing, number_or_nan, shown
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.names import COLUMNS, optional_column
from rag_selectivity.tables.small import rows_by_id
from rag_selectivity.tables.writing import json_line

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
    if isinstance(source, QuerySet):
        source = source.to_rows()
    elif is_path(source) and isdir(source):  # which no name is too long for
        source = Path(source) / "queries.jsonl"
    for where, id_, given, of_id in rows_by_id(source, "queries", value="text"):
        row = _row(given, id_, of_id, where)
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


def _row(given: Mapping[str, Any], id_: str, of_id: str, where: str) -> dict[str, Any]:
    others = [name for name in given if name != of_id]
    of_text, of_weight = (optional_column(others, names) for names in (COLUMNS["text"], ("weight",)))
    for name in others:
        if str(name).lower() in _ID_COLUMNS and not is_missing(given[name]) and str(given[name]) != id_:
            raise InputError(
                f"{where}: the columns {of_id} and {name} hold two ids of the query ({shown(id_)} and "
                f"{shown(given[name])}); remove one of them"
            )
    row: dict[str, Any] = {"query_id": id_, "text": None if of_text is None else text_in(given[of_text], where)}
    if of_weight is not None and not is_missing(given[of_weight]):
        row["weight"] = number_or_nan(given[of_weight])
        if not 0 < row["weight"] < math.inf:
            raise InputError(f"{where}: the weight of a query must be a number above 0, got {shown(given[of_weight])}")
    known = {*_ID_COLUMNS, "text", "weight"}
    row |= {str(name): given[name] for name in others if name != of_text and str(name).lower() not in known}
    try:
        json_line(row)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: query {id_!r} holds a value that JSON lacks ({error})") from None
    return row
