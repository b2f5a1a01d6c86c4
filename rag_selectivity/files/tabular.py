"""Rows of JSONL, CSV, TSV and Parquet files as dicts, with the line each came from."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.files.opening import opened, text_lines

Row = dict[str, Any]


class Rows:
    """(line, row) pairs to go through once, and the column names of the first row."""

    def __init__(self, path: Path, rows: Iterator[tuple[int, Row]]) -> None:
        first = next(rows, None)
        if first is None:
            raise InputError(f"{path}: the file has no rows")
        self.names = list(first[1])
        self._rows = chain([first], rows)

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        return self._rows


def rows_of(path: Path, format: str) -> Rows:
    """Open a table in one of the formats `jsonl`, `csv`, `tsv`, `parquet`."""
    if format == "parquet":
        return Rows(path, _parquet(path))
    if format == "jsonl":
        return Rows(path, _jsonl(path))
    return Rows(path, _separated(path, "\t" if format == "tsv" else ","))


def _jsonl(path: Path) -> Iterator[tuple[int, Row]]:
    for number, line in text_lines(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}:{number}: not a JSON object ({error})") from None
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: expected a JSON object, got {type(row).__name__}")
        yield number, row


def _separated(path: Path, separator: str) -> Iterator[tuple[int, Row]]:
    lines = text_lines(path)
    numbers: list[int] = []

    def feed() -> Iterator[str]:
        for number, line in lines:
            numbers.append(number)
            yield line + "\n"

    if separator == "\t":
        # Quotes nothing: a quotation mark in it is a character.
        reader = csv.reader(feed(), delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
    else:
        reader = csv.reader(feed(), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        for cells in reader:
            if len(cells) != len(header):
                raise InputError(
                    f"{path}:{numbers[-1]}: {len(cells)} fields, but the header has {len(header)} ({', '.join(header)})"
                )
            yield numbers[-1], dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise InputError(f"{path}:{numbers[-1] if numbers else 1}: {error}") from None


def _parquet(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "files", f"reading {path}") from None
    line = 0
    with opened(path) as stream:
        try:
            with parquet.ParquetFile(stream) as file:
                for batch in file.iter_batches():
                    for row in batch.to_pylist():
                        line += 1
                        yield line, row
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{path}: damaged Parquet after row {line} ({str(error).splitlines()[0]})") from None


def write_rows(path: str | Path, rows: list[Row]) -> None:
    """Write rows as .csv, .jsonl or .parquet, whole or not at all."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    names = list(dict.fromkeys(name for row in rows for name in row))
    try:
        match target.suffix.lower():
            case ".csv":
                with partial.open("w", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, names)
                    writer.writeheader()
                    writer.writerows(rows)
            case ".jsonl":
                with partial.open("w", encoding="utf-8") as file:
                    file.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
            case ".parquet":
                try:
                    import pyarrow
                    from pyarrow import parquet
                except ImportError:
                    raise MissingExtraError("pyarrow", "files", f"writing {target}") from None
                parquet.write_table(pyarrow.Table.from_pylist(rows), partial)
            case suffix:
                raise InputError(
                    f"{target}: cannot write {suffix or 'a file without suffix'}; use .csv, .jsonl or .parquet"
                )
        partial.replace(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror})") from None
    finally:
        partial.unlink(missing_ok=True)
