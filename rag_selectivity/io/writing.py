"""Rows as CSV, JSONL and Parquet files; and data as JSON."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.io.replacing import Content, write_whole

Row = dict[str, Any]
#: How a cell begins that programs for sheets take for a formula, some of them in full width too.
_FORMULA = re.compile(r"[=+@\t\r\n＝＋－＠]|-(?!(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z)")
#: What JSON may hold as it is, but a terminal would obey, and halves of pairs of surrogates, which UTF-8 lacks.
_TO_ESCAPE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def write_rows(path: str | Path, rows: list[Row], *, columns: Sequence[str] = ()) -> None:
    """Write rows as .csv, .jsonl or .parquet (`columns` as in `csv_text`)."""
    write_whole(path, rows_content(path, rows, columns=columns))


def rows_content(path: str | Path, rows: list[Row], *, columns: Sequence[str] = ()) -> Content:
    """What `write_rows` writes, an InputError or a MissingExtraError if the suffix or an extra does not allow it."""
    match refuse_suffix(path):
        case ".csv":
            return csv_text(rows, line_end="\r\n", columns=columns)
        case ".jsonl":
            return lambda file: file.writelines(f"{json_line(row)}\n".encode() for row in rows)
        case _:
            return lambda file: _write_parquet(file, rows, columns)


def refuse_suffix(path: str | Path) -> str:
    """The suffix of a file for rows, in lower case; an error if such files cannot be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".jsonl", ".parquet"):
        raise InputError(f"{path}: cannot write {suffix or 'a file without suffix'}; use .csv, .jsonl or .parquet")
    if suffix == ".parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise MissingExtraError("pyarrow", "files", f"writing {Path(path).name}") from None
    return suffix


def _write_parquet(file: BinaryIO, rows: list[Row], columns: Sequence[str]) -> None:
    import pyarrow
    from pyarrow import parquet

    none = pyarrow.table({name: pyarrow.array([], pyarrow.string()) for name in columns})
    parquet.write_table(pyarrow.Table.from_pylist(rows) if rows else none, file)


# -- CSV -----------------------------------------------------------------------------------------------


def csv_text(rows: Sequence[Row], *, line_end: str = "\n", columns: Sequence[str] = ()) -> str:
    """Rows as CSV with a header, in which `columns` come first: they are all that a table without rows has.

    An apostrophe stands before each cell that a program for sheets takes for a formula, so that it is shown as text.
    Lists and dicts are written as JSON.
    """
    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    lines = [names, *([row.get(name, "") for name in names] for row in rows)]
    written = _Lines(line_end)
    csv.writer(written, lineterminator="\r\n").writerows([_cell(cell) for cell in line] for line in lines)
    return "".join(written.lines)


def _cell(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict)):
        return json_line(value)
    return harmless(value)


class _Lines:
    """Takes lines of CSV. Their writer quotes line feeds and carriage returns only if both end its own lines."""

    def __init__(self, end: str) -> None:
        self.lines: list[str] = []
        self._end = end

    def write(self, line: str) -> None:
        self.lines.append(line.removesuffix("\r\n") + self._end)


def is_formula(cell: Any) -> bool:
    """Whether a program for sheets would take a cell for a formula.

    >>> [is_formula(cell) for cell in ("=1+1", "-a", "@x", "-12.5", "a=1", -3)]
    [True, True, True, False, False, False]
    """
    return isinstance(cell, str) and _FORMULA.match(cell) is not None


def harmless(cell: Any) -> Any:
    """A cell that programs for sheets show as it is: with an apostrophe in front where they would compute it.

    >>> harmless("=1+1"), harmless("a"), without_apostrophe("'=1+1")
    ("'=1+1", 'a', '=1+1')
    """
    return f"'{cell}" if isinstance(cell, str) and is_formula(cell.lstrip("'")) else cell


def without_apostrophe(cell: str) -> str:
    """The text that `harmless` made a cell of."""
    return cell[1:] if cell.startswith("'") and is_formula(cell.lstrip("'")) else cell


# -- JSON ----------------------------------------------------------------------------------------------


def json_line(data: Any) -> str:
    """Data as JSON on one line.

    Characters that a terminal would obey are escaped, as is what UTF-8 lacks; a reader gets the same data.

    >>> json_line({"id": "é\x9b"})
    '{"id": "é\\\\u009b"}'
    """
    return json_with_escapes(data)


def json_with_escapes(data: Any, *, indent: int | None = None) -> str:
    """As `json.dumps`, but with escapes for what a terminal would obey and what UTF-8 lacks."""
    text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
    return _TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_text(data: Any, indent: int | None = 2) -> str:
    """Plain data as JSON; a list of numbers or texts stands on one line, however long.

    >>> print(json_text({"K": [1, 5, 10], "rows": [{"K": 1}]}))
    {
      "K": [1, 5, 10],
      "rows": [
        {
          "K": 1
        }
      ]
    }
    """
    if indent is None:
        return json_line(data)
    return "".join(_json_pieces(data, " " * indent, "\n"))


def _json_pieces(data: Any, step: str, newline: str) -> Iterator[str]:
    """The text of the data piece by piece; `newline` ends a line and indents the next."""
    nested = isinstance(data, dict) or (
        isinstance(data, (list, tuple)) and any(isinstance(item, (dict, list, tuple)) for item in data)
    )
    if not nested or not data:
        yield json_line(data)
        return
    opening, closing = "{}" if isinstance(data, dict) else "[]"
    if isinstance(data, dict):
        items = [(json_line(str(key)) + ": ", item) for key, item in data.items()]
    else:
        items = [("", item) for item in data]
    before = opening
    for label, item in items:
        yield before + newline + step + label
        yield from _json_pieces(item, step, newline + step)
        before = ","
    yield newline + closing
