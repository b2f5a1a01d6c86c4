"""Tables read as columns and cell by cell, to be compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rag_selectivity import InputError, Qrels, Run
from rag_selectivity.data.run import ScatteredQueries
from rag_selectivity.io.formats import TableFormat
from rag_selectivity.io.tables import CommaSeparated, JsonLines, Parquet, TabSeparated

FORMATS = {".csv": CommaSeparated, ".tsv": TabSeparated, ".jsonl": JsonLines, ".parquet": Parquet}


def cell_by_cell(format: type[TableFormat]) -> TableFormat:
    """The same format without columns."""
    slow = {"read_chunks": TableFormat.read_chunks, "column_names": TableFormat.column_names}
    return type("CellByCell", (format,), slow)()


def whole(parts: Any) -> Run:
    try:
        return Run.concatenate(list(parts))
    except ScatteredQueries as scattered:
        return Run.concatenate(list(scattered.again()))


def outcome(read: Callable[[], Run | Qrels]) -> Any:
    """All that was read, or the message of the error."""
    try:
        found = read()
    except InputError as error:
        return str(error)
    if isinstance(found, Qrels):
        lines = None if found._lines is None else found._lines.tolist()
        counts = found.repeated, found.negative, dict(found.remarks)
        return found.queries, found.query.tolist(), list(found.passages), found.grade.tolist(), lines, counts
    columns = [None if column is None else column.tolist() for column in (found.scores, found.tokens)]
    return found.queries, found.offsets.tolist(), list(found.passages), columns, dict(found.remarks)


def assert_alike(path: Path) -> None:
    format = FORMATS[path.suffixes[0]]
    slow = cell_by_cell(format)
    for fast_read, slow_read in (
        (lambda: whole(format().read_run(path)), lambda: whole(slow.read_run(path))),
        (lambda: format().read_qrels(path), lambda: slow.read_qrels(path)),
    ):
        assert outcome(fast_read) == outcome(slow_read)


def refuse(*_: Any) -> Any:
    raise AssertionError("a regular table is read cell by cell")
