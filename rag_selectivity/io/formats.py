"""The registry of file formats: how each is recognised and read. Other packages add theirs by an entry point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from rag_selectivity.data.columns import (
    PASSAGE_NAMES,
    QUERY_NAMES,
    RANK_NAMES,
    SCORE_NAMES,
    TOKEN_NAMES,
    find_column,
    grade_column,
    optional_column,
    ranking_columns,
    token_count,
)
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.registry import Registry
from rag_selectivity.data.remarks import counted
from rag_selectivity.data.run import Run, ranks_against_scores
from rag_selectivity.errors import InputError
from rag_selectivity.io.opening import first_bytes

__all__ = ["FORMATS", "Format", "Row", "TableFormat", "format_names", "format_of", "register_format", "suffix_of"]

#: A row of a table by its column names.
Row = dict[str, Any]


class Format(ABC):
    """A kind of file; a subclass says how to recognise it and reads judgments, runs or both.

    It serves wherever a path is accepted, once it is registered: by `register_format`, or by an entry point of the
    group `rag_selectivity.formats` that names the class. What is wrong with a file is raised as an InputError that
    names the file and the line.

    Attributes
    ----------
    name : str
        What users give to choose it, as in `read_qrels(path, format=name)`.
    """

    name: ClassVar[str]

    @abstractmethod
    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether a file is of this format; `head` is its beginning, unzipped, and empty for a folder."""

    def read_qrels(self, path: Path) -> Qrels:
        """The judgments of a file."""
        raise InputError(f"{path}: a file of format {self.name} holds no judgments")

    def read_labels(
        self, path: Path, judges: Sequence[str] | None, judge_rule: str | None, humans: bool = True
    ) -> Qrels:
        """The judgments of chosen judges; refused by formats that do not tell judges apart.

        Such formats do not tell people from judges either: without `humans`, all their judgments are a judge's.
        """
        if judges or judge_rule:
            raise InputError(f"{path} is no label store: its labels have no judges to choose from")
        return self.read_qrels(path)

    def read_run(self, path: Path) -> Iterable[Run]:
        """The run of a file, in parts over different queries; a single part is as good."""
        raise InputError(f"{path}: a file of format {self.name} holds no run")

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """(line, row) of a table."""
        if path.is_file() and path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty; write it again")
        raise InputError(f"{path}: expected JSONL, CSV or Parquet rows")


F = TypeVar("F", bound=Format)


class TableFormat(Format):
    """A format whose files are rows with named columns: `read_rows` is all that it has to say."""

    def read_qrels(self, path: Path) -> Qrels:
        """From the columns for the query, the passage and the grade."""
        names, rows = _with_names(self.read_rows(path), path)
        if {"query_hash", "passage_hash", "origins"} <= set(names):
            raise InputError(
                f"{path} is an export of a label store, with every label of a pair and random controls: import it into "
                f"a store (rag-selectivity store import labels.db {path.name}) and give the store"
            )
        columns = [
            find_column(names, QUERY_NAMES, "query", str(path)),
            find_column(names, PASSAGE_NAMES, "passage", str(path)),
            grade_column(names, str(path)),
        ]
        records, lines = _cells(rows, columns, path)
        ranking = ranking_columns(names, columns[-1])
        return Qrels.from_records(
            records,
            source=str(path),
            lines=lines,
            remarks=counted(ranking_columns_in_labels=len(ranking)),
        )

    def read_run(self, path: Path) -> Iterable[Run]:
        """From the columns for the query and the passage, and for the score or rank and the tokens if there are any."""
        names, rows = _with_names(self.read_rows(path), path)
        columns = [
            find_column(names, QUERY_NAMES, "query", str(path)),
            find_column(names, PASSAGE_NAMES, "passage", str(path)),
        ]
        score, rank = optional_column(names, SCORE_NAMES), optional_column(names, RANK_NAMES)
        order, length = score or rank, optional_column(names, TOKEN_NAMES)
        ranks: list[Any] = []
        if score is not None and rank is not None:
            rows = _noting(rows, rank, ranks)
        records, lines = _cells(rows, [*columns, *([order] if order else []), *([length] if length else [])], path)
        tokens = []
        if length is not None:
            tokens = [token_count(record[-1], f"{path}:{line}") for line, record in zip(lines, records, strict=True)]
            records = [record[:-1] for record in records]
        scored = list(_scored(records, lines, path, ranked=score is None and rank is not None))
        against = ranks_against_scores([row[0] for row in scored], ranks, [row[2] for row in scored]) if ranks else 0
        run = Run.from_records(scored, remarks=counted(rank_against_score=against))
        return [run if length is None else run.with_tokens([record[0] for record in records], tokens)]


#: Every format class by its name.
FORMATS: Registry[type[Format]] = Registry("format", "rag_selectivity.formats", Format)


def register_format(format: type[F]) -> type[F]:
    """Add a format; a decorator for subclasses of Format.

    Of several formats that recognise a file the one added last is taken.

    Raises
    ------
    InputError
        If another format has the name.
    """
    FORMATS.add(format.name, format)
    return format


def format_names() -> tuple[str, ...]:
    """The names of all formats, those of installed packages included."""
    return tuple(FORMATS)


def format_of(path: Path, given: str | None = None) -> Format:
    """The format that was given, or the one that recognises the file."""
    if given is not None:
        return FORMATS.find(given)()
    head = b"" if path.is_dir() else first_bytes(path)
    for name in reversed(format_names()):
        format = FORMATS[name]()
        if format.recognises(path, head):
            return format
    raise InputError(f"{path}: the format is not recognised; name it (known: {', '.join(FORMATS)})")


def suffix_of(path: Path) -> str:
    """The last suffix of a file in lower case, .gz left out."""
    return next((suffix.lower() for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), "")


def _with_names(rows: Iterator[tuple[int, Row]], path: Path) -> tuple[list[str], Iterator[tuple[int, Row]]]:
    """The column names of the first row, and all rows."""
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: the file has no rows")

    def all_rows() -> Iterator[tuple[int, Row]]:
        yield first
        yield from rows

    return list(first[1]), all_rows()


def _noting(rows: Iterable[tuple[int, Row]], column: str, values: list[Any]) -> Iterator[tuple[int, Row]]:
    """The same rows; the values of a column are added to a list."""
    for line, row in rows:
        values.append(row.get(column))
        yield line, row


def _cells(rows: Iterable[tuple[int, Row]], columns: list[str], path: Path) -> tuple[list[tuple[Any, ...]], list[int]]:
    """The cells of some columns, row by row, and the line of each row; none may be missing."""
    records, lines = [], []
    for line, row in rows:
        for column in columns:
            if row.get(column) in (None, ""):
                raise InputError(f"{path}:{line}: {column} is missing")
        records.append(tuple(row[column] for column in columns))
        lines.append(line)
    return records, lines


def _scored(records: list[tuple[Any, ...]], lines: list[int], path: Path, *, ranked: bool) -> Iterator[tuple[Any, ...]]:
    """The rows of a run with a number for its score or its rank."""
    for line, record in zip(lines, records, strict=True):
        if len(record) == 3:
            try:
                value = float(record[2])
            except (TypeError, ValueError):
                value = float("nan")
            if value != value:
                raise InputError(f"{path}:{line}: query {record[0]!r}: {record[2]!r} is not a number")
            # A rank counts upwards: its negative sorts as a score does.
            record = (record[0], record[1], -value if ranked else value)
        yield record
