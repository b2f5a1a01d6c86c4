"""Formats of tables: JSONL, CSV, TSV, Parquet, and the folders of BEIR, which hold TSV files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from rag_selectivity.data.columns import QUERY_NAMES, optional_column
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.io.formats import Format, Row, TableFormat, suffix_of
from rag_selectivity.io.opening import opened, text_lines


class JsonLines(TableFormat):
    """A JSON object a line."""

    name = "jsonl"

    def recognises(self, path: Path, head: bytes) -> bool:
        """By its suffix, or a first line that begins as an object does."""
        return suffix_of(path) in (".jsonl", ".ndjson") or _first_line(head).lstrip().startswith(b"{")

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """The objects."""
        return _not_empty(path, _jsonl(path))


class CommaSeparated(TableFormat):
    """CSV with a header."""

    name = "csv"

    def recognises(self, path: Path, head: bytes) -> bool:
        """By its suffix, or a header that names a query column."""
        return suffix_of(path) == ".csv" or names_a_query(head, ",")

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """The lines below the header."""
        return _not_empty(path, _separated(path, ","))


class TabSeparated(TableFormat):
    """Values separated by tabs, with a header; nothing is quoted."""

    name = "tsv"

    def recognises(self, path: Path, head: bytes) -> bool:
        """By a header that names a query column."""
        return names_a_query(head, "\t")

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """The lines below the header."""
        return _not_empty(path, _separated(path, "\t"))


class Parquet(TableFormat):
    """A Parquet file."""

    name = "parquet"

    def recognises(self, path: Path, head: bytes) -> bool:
        """By its first four bytes, or its suffix."""
        return head.startswith(b"PAR1") or suffix_of(path) in (".parquet", ".pq")

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """The rows; their lines count from 1."""
        return _not_empty(path, _parquet(path))


class Beir(Format):
    """A BEIR folder: judgments in `qrels/test.tsv`, or in the only file there."""

    name = "beir"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Every folder."""
        return path.is_dir()

    def read_qrels(self, path: Path) -> Qrels:
        """The judgments of the test split."""
        return TabSeparated().read_qrels(_beir_qrels(path))

    def read_run(self, path: Path) -> Iterable[Run]:
        """Refused: it has none."""
        raise InputError(f"{path} is a folder; a run is a file of its own")


def names_a_query(head: bytes, separator: str) -> bool:
    """Whether the first line of a file is a header with a query column."""
    names = header(head, separator)
    return len(names) > 1 and optional_column(names, QUERY_NAMES) is not None


def header(head: bytes, separator: str) -> list[str]:
    """The fields of a file's first line."""
    return [name.strip(' "\r') for name in _first_line(head).decode("utf-8-sig", "replace").split(separator)]


def _first_line(head: bytes) -> bytes:
    return head.split(b"\n", 1)[0]


def _not_empty(path: Path, rows: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: the file has no rows")
    return chain([first], rows)


def _beir_qrels(folder: Path) -> Path:
    place = folder / "qrels" if (folder / "qrels").is_dir() else folder
    files = sorted(place.glob("*.tsv"))
    if not files:
        raise InputError(f"{folder}: no qrels/*.tsv in this folder")
    for file in files:
        if file.name == "test.tsv" or len(files) == 1:
            return file
    raise InputError(f"{place}: several qrels ({', '.join(file.name for file in files)}); name one of them")


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
