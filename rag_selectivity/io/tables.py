"""Formats of tables: JSONL, CSV, TSV, Parquet, and the folders of BEIR, which hold TSV files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from rag_selectivity.data.columns import QUERY_NAMES, optional_column
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.io.chunks import Chunk, Row
from rag_selectivity.io.formats import Format, TableFormat, suffix_of
from rag_selectivity.io.json_lines import json_chunks
from rag_selectivity.io.json_objects import json_objects
from rag_selectivity.io.opening import text_lines
from rag_selectivity.io.parquet import parquet_chunks, parquet_names, parquet_rows
from rag_selectivity.io.separated import separated_chunks, separated_rows


class JsonLines(TableFormat):
    """A JSON object a line."""

    name = "jsonl"
    columns_ahead = False

    def recognises(self, path: Path, head: bytes) -> bool:
        """By its suffix, or a first line that begins as an object does."""
        return suffix_of(path) in (".jsonl", ".ndjson") or _first_line(head).lstrip().startswith(b"{")

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """The objects."""
        return _not_empty(path, json_objects(path))

    def read_chunks(self, path: Path, columns: Mapping[str, str]) -> Iterator[Chunk]:
        """The lines, where all are written as the first one is."""
        return json_chunks(path, columns)


class CommaSeparated(TableFormat):
    """CSV with a header."""

    name = "csv"

    def recognises(self, path: Path, head: bytes) -> bool:
        """By its suffix, or a header that names a query column."""
        return suffix_of(path) == ".csv" or names_a_query(head, ",")

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """The lines below the header."""
        return _not_empty(path, separated_rows(path, ",", text_lines(path, whole=True)))

    def read_chunks(self, path: Path, columns: Mapping[str, str]) -> Iterator[Chunk]:
        """The lines below the header."""
        return separated_chunks(path, ",", columns)


class TabSeparated(TableFormat):
    """Values separated by tabs, with a header; nothing is quoted."""

    name = "tsv"

    def recognises(self, path: Path, head: bytes) -> bool:
        """By a header that names a query column."""
        return names_a_query(head, "\t")

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """The lines below the header."""
        return _not_empty(path, separated_rows(path, "\t", text_lines(path)))

    def read_chunks(self, path: Path, columns: Mapping[str, str]) -> Iterator[Chunk]:
        """The lines below the header."""
        return separated_chunks(path, "\t", columns)


class Parquet(TableFormat):
    """A Parquet file."""

    name = "parquet"

    def recognises(self, path: Path, head: bytes) -> bool:
        """By its first four bytes, or its suffix."""
        return head.startswith(b"PAR1") or suffix_of(path) in (".parquet", ".pq")

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """The rows; their lines count from 1."""
        return _not_empty(path, parquet_rows(path))

    def column_names(self, path: Path) -> list[str]:
        """By the schema."""
        return parquet_names(path) or super().column_names(path)

    def read_chunks(self, path: Path, columns: Mapping[str, str]) -> Iterator[Chunk]:
        """The record batches."""
        return parquet_chunks(path, columns)


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


class NoRowsError(InputError):
    """A table has no rows: for some tables that is all there is to say."""


def header(head: bytes, separator: str) -> list[str]:
    """The fields of a file's first line."""
    return [name.strip(' "\r') for name in _first_line(head).decode("utf-8-sig", "replace").split(separator)]


def _first_line(head: bytes) -> bytes:
    return head.split(b"\n", 1)[0]


def _not_empty(path: Path, rows: Iterator[tuple[int, Row]]) -> Iterator[tuple[int, Row]]:
    first = next(rows, None)
    if first is None:
        raise NoRowsError(f"{path}: the file has no rows")
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
