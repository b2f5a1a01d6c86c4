"""Writing files, whole or not at all; and data as JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, MissingExtraError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A file to write beside the target, which takes its place at the end: a reader finds the old one or the new one.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        yield partial
        partial.replace(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror})") from None
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: str | Path, text: str) -> None:
    """Write a text file."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_rows(path: str | Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as .csv, .jsonl or .parquet."""
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise InputError(f"{path}: cannot write {suffix or 'a file without suffix'}; use .csv, .jsonl or .parquet")
    with replacing(path) as partial:
        _WRITERS[suffix](partial, rows)


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)


def _write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "files", f"writing {path.name.removesuffix('.partial')}") from None
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


_WRITERS = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}


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
        return json.dumps(data, ensure_ascii=False, allow_nan=False)
    return "".join(_json_pieces(data, " " * indent, "\n"))


def _json_pieces(data: Any, step: str, newline: str) -> Iterator[str]:
    """The text of the data piece by piece; `newline` ends a line and indents the next."""
    nested = isinstance(data, dict) or (
        isinstance(data, (list, tuple)) and any(isinstance(item, (dict, list, tuple)) for item in data)
    )
    if not nested or not data:
        yield json.dumps(data, ensure_ascii=False, allow_nan=False)
        return
    opening, closing = "{}" if isinstance(data, dict) else "[]"
    if isinstance(data, dict):
        items = [(json.dumps(str(key), ensure_ascii=False) + ": ", item) for key, item in data.items()]
    else:
        items = [("", item) for item in data]
    before = opening
    for label, item in items:
        yield before + newline + step + label
        yield from _json_pieces(item, step, newline + step)
        before = ","
    yield newline + closing
