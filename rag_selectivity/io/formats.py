"""The registry of file formats: how each is recognised and read. Other packages add theirs by an entry point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

from rag_selectivity.data.arrow import IrregularCells
from rag_selectivity.data.columns import label_columns, ranking_columns, run_columns
from rag_selectivity.data.parts import parts
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.registry import Registry
from rag_selectivity.data.remarks import counted
from rag_selectivity.data.rows import RunRows
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError
from rag_selectivity.io.cells import label_block, row_cells, run_block, run_of_cells
from rag_selectivity.io.chunks import Chunk, Row, ahead
from rag_selectivity.io.opening import first_bytes, is_folder, opened

__all__ = ["FORMATS", "Format", "Row", "TableFormat", "format_names", "format_of", "register_format", "suffix_of"]


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

    def read_labels(self, path: Path, judges: Sequence[str] | None, humans: bool = True) -> Qrels:
        """The judgments of chosen judges; refused by formats that do not tell judges apart.

        Such formats do not tell people from judges either: without `humans`, all their judgments are a judge's.
        """
        if judges:
            raise InputError(f"{path} is no label store: its labels have no judges to choose from")
        return self.read_qrels(path)

    def read_run(self, path: Path) -> Iterable[Run]:
        """The run of a file, in parts over different queries; a single part is as good."""
        raise InputError(f"{path}: a file of format {self.name} holds no run")

    def read_rows(self, path: Path) -> Iterator[tuple[int, Row]]:
        """(line, row) of a table."""
        if path.is_file() and path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty; write it again")
        with opened(path):
            pass  # text in another encoding than UTF-8 is refused by its name
        raise InputError(f"{path}: expected JSONL, CSV or Parquet rows")


F = TypeVar("F", bound=Format)
T = TypeVar("T")


class TableFormat(Format):
    """A format whose files are rows with named columns: `read_rows` is all that it has to say.

    A format whose files can be read as columns has `read_chunks` too.

    Attributes
    ----------
    columns_ahead : bool
        Whether the columns of the next chunks are made in a thread while the caller works on one. That is quicker only
        where a library makes them that seldom needs the interpreter's lock.
    """

    columns_ahead: ClassVar[bool] = True

    def column_names(self, path: Path) -> list[str]:
        """The names of the columns: those of the first row."""
        first = next(self.read_rows(path), None)
        if first is None:
            raise InputError(f"{path}: the file has no rows")
        return list(first[1])

    def read_chunks(self, path: Path, columns: Mapping[str, str]) -> Iterable[Chunk]:
        """The rows in chunks; `columns` names the columns of interest by what they hold.

        Raises
        ------
        IrregularCells
            If the file has to be read row by row.
        """
        raise IrregularCells

    def read_qrels(self, path: Path) -> Qrels:
        """From the columns for the query, the passage and the grade."""
        names = self.column_names(path)
        if {"query_hash", "passage_hash", "origins"} <= set(names):
            raise InputError(
                f"{path} is an export of a label store, with every label of a pair and random controls: import it into "
                f"a store (rag-selectivity store import labels.db {path.name}) and give the store"
            )
        columns = label_columns(names, str(path))
        remarks = counted(ranking_columns_in_labels=len(ranking_columns(names, columns["grade"])))
        try:
            blocks = self._made(label_block(chunk, columns, path) for chunk in self.read_chunks(path, columns))
            return Qrels.from_blocks(blocks, source=str(path), remarks=remarks)
        except IrregularCells:
            records, lines = row_cells(self.read_rows(path), list(columns.values()), path)
            return Qrels.from_records(records, source=str(path), lines=lines, remarks=remarks)

    def read_run(self, path: Path) -> Iterator[Run]:
        """From the columns for the query and the passage, and for the score or rank and the tokens if there are any."""
        columns = run_columns(self.column_names(path), str(path))

        def blocks() -> Iterator[RunRows]:
            return self._made(run_block(chunk, columns, path) for chunk in self.read_chunks(path, columns))

        with_ranks = "score" in columns and "rank" in columns
        yield from parts(blocks, lambda: [run_of_cells(self.read_rows(path), columns, path)], with_ranks)

    def _made(self, blocks: Generator[T]) -> Iterator[T]:
        return ahead(blocks) if self.columns_ahead else blocks


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
    head = b"" if is_folder(path) else first_bytes(path)
    for name in reversed(format_names()):
        format = FORMATS[name]()
        if format.recognises(path, head):
            return format
    raise InputError(f"{path}: the format is not recognised; name it (known: {', '.join(FORMATS)})")


def suffix_of(path: Path) -> str:
    """The last suffix of a file in lower case, .gz left out."""
    return next((suffix.lower() for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), "")
