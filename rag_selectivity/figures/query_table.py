"""A table of queries with type, language, customer or any other columns, by which they are sliced and filtered."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.tables.cells import is_missing
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.names import find_column
from rag_selectivity.tables.small import rows_of


@dataclass(frozen=True)
class QueryTable:
    """The columns of a table of queries, and the text in each column for each query.

    `values` holds only queries of the report; a text is empty where the table has none. `missing` counts the queries
    of the report that the table lacks, and `further` those of the table that the report lacks.
    """

    columns: tuple[str, ...]
    values: Mapping[str, tuple[str, ...]]
    missing: int
    further: int = 0


def read_query_table(by: Any, queries: Collection[str], form: IdForm = AS_THEY_ARE) -> QueryTable:
    """Read a table with a column of query ids and further columns.

    Parameters
    ----------
    by : path to JSONL, TSV, CSV or Parquet, a frame, or records
    queries : collection of str
        The queries of the report.

    Raises
    ------
    InputError
        If the table has no column of query ids or no other column, has a query twice with different values, or has no
        query in common with the report.
    """
    known = set(queries)
    columns: dict[str, None] = {}
    rows: dict[str, tuple[str, dict[str, str]]] = {}
    for where, row in rows_of(by, "by"):
        column = find_column(tuple(row), "query", where)
        columns.update(dict.fromkeys(str(name) for name in row if name != column))
        query = form.of_cell(row[column], where, "query")
        values = {str(name): _text(value) for name, value in row.items() if name != column}
        first_where, first = rows.setdefault(query, (where, values))
        if first != values:
            raise InputError(
                f"{where}: query {query!r} has other values than in {first_where}; keep one row for each query"
            )
    if not rows:
        raise InputError(f"{_name(by)}: the table has no rows; give one row for each query")
    if not columns:
        raise InputError(f"{_name(by)}: the table has no column besides the query ids; add one to filter by")
    common = {query: values for query, (_, values) in rows.items() if query in known}
    if not common:
        raise InputError(
            f"{_name(by)}: none of the {len(rows):,} query ids is in the report (the table has "
            f"{examples(rows)}, the report {examples(list(queries))}); give the ids of the runs"
        )
    cells = {query: tuple(values.get(name, "") for name in columns) for query, values in common.items()}
    return QueryTable(tuple(columns), cells, len(known) - len(common), len(rows) - len(common))


def _name(by: Any) -> str:
    return str(by) if is_path(by) else "by"


def _text(value: Any) -> str:
    return "" if is_missing(value) else str(value)
