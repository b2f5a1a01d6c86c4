"""A table of queries with type, language, customer or any other columns, by which they are sliced and filtered."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.tables.cells import is_missing
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.small import rows_by_id


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
    known = set(queries)
    columns: dict[str, None] = {}
    rows: dict[str, tuple[str, dict[str, str]]] = {}
    for where, query, row, of_id in rows_by_id(by, name, value=value, form=form):
        values = {each: "" if is_missing(cell) else str(cell) for each, cell in row.items() if each != of_id}
        columns.update(dict.fromkeys(values))
        first_where, first = rows.setdefault(query, (where, values))
        if first != values:
            raise InputError(
                f"{where}: query {query!r} has other values than in {first_where}; keep one row for each query"
            )
    source = str(by) if is_path(by) else name
    if not rows:
        raise InputError(f"{source}: the table has no rows; give one row for each query")
    if not columns:
        raise InputError(f"{source}: the table has no column besides the query ids; add one to filter by")
    common = {query: values for query, (_, values) in rows.items() if query in known}
    if not common:
        raise InputError(
            f"{source}: none of the {len(rows):,} query ids is in the report (the table has "
            f"{examples(rows)}, the report {examples(list(queries))}); give the ids of the runs"
        )
    cells = {query: tuple(values.get(name, "") for name in columns) for query, values in common.items()}
    return QueryTable(tuple(columns), cells, len(known) - len(common), len(rows) - len(common))
