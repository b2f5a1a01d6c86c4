"""Parquet files in chunks."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.arrow import IrregularCells
from rag_selectivity.data.columns import BEYOND_PYTHON, first_beyond_python
from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.io.chunks import Chunk, Row
from rag_selectivity.io.limits import most_growth, refuse_growth
from rag_selectivity.io.opening import opened
from rag_selectivity.io.separated import refuse_doubled

_BLOCK = 1 << 15
_BUFFER = 1 << 18
#: So many bytes hold the first two numbers of a page's header: its kind, and its size when it is unpacked.
_HEADER = 16
#: The kind of a page that is a dictionary.
_DICTIONARY = 2
#: Bytes that the texts of a batch may take; where they are longer, a batch has fewer rows.
_BYTES_OF_BATCH = 1 << 26
#: The length that texts are taken to have where only reading them shows it.
_UNKNOWN = 1 << 16
#: What a file calls a column of texts, and the way to write them in which one may repeat the one before it.
_TEXT, _REPEATS_THE_LAST = "BYTE_ARRAY", "DELTA_BYTE_ARRAY"
#: The least that a cell takes when it is read: a number, or the place where a text ends.
_BYTES_OF_CELL = 8


@dataclass(frozen=True, slots=True)
class ParquetChunk(Chunk):
    """A record batch with the needed columns; rows count from 1."""

    batch: Any
    columns: Mapping[str, str]
    first_line: int

    def arrays(self) -> dict[str, Any]:
        """The columns of the batch."""
        return {role: self.batch.column(name) for role, name in self.columns.items()}

    def rows(self) -> Iterator[tuple[int, Row]]:
        """The rows of the batch."""
        try:
            return iter(list(enumerate(self.batch.to_pylist(), self.first_line)))
        except (LookupError, ValueError, OverflowError):
            raise IrregularCells from None


def parquet_names(path: Path) -> list[str] | None:
    """The columns of a file; None if it has no rows, or cannot be read.

    Raises
    ------
    InputError
        If two columns have one name.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return None
    try:
        with opened(path) as stream, parquet.ParquetFile(stream) as file:
            names = list(file.schema_arrow.names)
            refuse_doubled(names, str(path))
            return names if file.metadata.num_rows else None
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError):
        return None


def parquet_chunks(path: Path, columns: Mapping[str, str]) -> Iterator[ParquetChunk]:
    """The rows of a file.

    Raises
    ------
    IrregularCells
        If pyarrow cannot read it.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        raise IrregularCells from None
    line = 1
    try:
        with opened(path) as stream, _reader(stream, columns["query"]) as file:
            growth = Growth(path, stream, file.metadata, list(columns.values()))
            for batch in file.iter_batches(
                growth.rows_at_once(_BLOCK), columns=list(columns.values()), use_threads=False
            ):
                # The names of the queries stay in a dictionary.
                growth.add(batch.column(name) for name in columns.values() if name != columns["query"])
                yield ParquetChunk(batch, columns, line)
                line += batch.num_rows
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, KeyError):
        # A KeyError stands for a column of nested values.
        raise IrregularCells from None


class Growth:
    """How far the columns of a file grow when they are read, up to the limits of a compressed file.

    In the file, a cell that is repeated takes next to none: it is a number in a dictionary, or part of a run of them.
    What the footer tells is refused at once, and the rest when it is read. It is not asked what a footer conceals.
    Without `columns`, all of them are read.
    """

    def __init__(self, path: Path, stream: IO[bytes], metadata: Any, columns: Sequence[str] | None = None) -> None:
        self._path, self._size, self._read = path, stream.seek(0, io.SEEK_END), 0
        leaves = [(i, metadata.schema.column(i)) for i in range(metadata.num_columns)]
        is_read = [(i, leaf) for i, leaf in leaves if columns is None or _is_read(leaf, columns)]
        texts = [leaf.path for _, leaf in is_read if leaf.physical_type == _TEXT]
        longest = _LongestTexts(stream, self._size, texts)
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        if sum(group.total_byte_size for group in groups) <= most_growth(self._size):
            _refuse_damaged(stream, metadata, [leaf for _, leaf in is_read])
        self._row, unpacked = 0, 0
        for group, row_group in enumerate(groups):
            chunks = [(leaf, row_group.column(i)) for i, leaf in is_read]
            cells = [longest.of(group, leaf, chunk) for leaf, chunk in chunks]
            self._row = max(self._row, sum(cells))
            unpacked += sum(_least_size(*each, cell) for each, cell in zip(chunks, cells, strict=True))
        self._refuse(unpacked)

    def rows_at_once(self, most: int) -> int:
        """The rows of a batch, so that memory holds their texts."""
        return max(1, min(most, _BYTES_OF_BATCH // max(1, self._row)))

    def add(self, columns: Iterable[Any]) -> None:
        """Count the columns of a batch that was read; an InputError if the file has grown above a limit."""
        self._read += sum(map(_size_when_read, columns))
        self._refuse(self._read)

    def _refuse(self, unpacked: int) -> None:
        if unpacked > self._size:
            refuse_growth(self._path, self._size, unpacked, "write it without compression and dictionaries")


def _is_read(column: Any, columns: Sequence[str]) -> bool:
    """Whether a column is one of these, or stands within a nested one of them."""
    return any(column.path == name or column.path.startswith(f"{name}.") for name in columns)


def _refuse_damaged(stream: IO[bytes], metadata: Any, leaves: Sequence[Any]) -> None:
    """An error of pyarrow for a footer whose columns are damaged or encrypted.

    pyarrow ends the process where it is asked for such a column itself. Where it plans the reading of a file it raises
    an error: one row is read. A list in it can be large, but for one of texts, which are numbers of a dictionary there.
    """
    import pyarrow
    from pyarrow import parquet

    lists = [leaf.path for leaf in leaves if leaf.max_repetition_level and leaf.physical_type == _TEXT]
    paths = [leaf.path for leaf in leaves if not leaf.max_repetition_level] + lists
    if not paths or not metadata.num_row_groups:
        return
    file = parquet.ParquetFile(stream, metadata=metadata, read_dictionary=lists, pre_buffer=True)
    # All is planned before a text is met that has no dictionary.
    with suppress(pyarrow.ArrowNotImplementedError):
        next(file.iter_batches(1, columns=paths, use_threads=False), None)


def _least_size(column: Any, chunk: Any, longest: int) -> int:
    """The least bytes that the cells of a column take when they are read; of texts in lists, the most.

    A row may have any number of texts in a list, so that reading few rows at once would not keep them small.
    """
    cell = max(_BYTES_OF_CELL, column.length, longest if column.max_repetition_level else 0)
    return int(max(chunk.total_uncompressed_size, chunk.num_values * cell))


def _size_when_read(column: Any) -> int:
    import pyarrow

    if not pyarrow.types.is_dictionary(column.type):
        return int(column.nbytes)
    # A batch has the dictionary of its whole row group.
    used = column.indices.drop_null().cast(pyarrow.int32())
    codes = np.frombuffer(used.buffers()[1] or b"", np.int32)[used.offset : used.offset + len(used)]
    return _BYTES_OF_CELL * len(column) + int(_lengths(column.dictionary)[codes].sum())


def _lengths(values: Any) -> NDArray[np.int64]:
    """The bytes of each text; values of another type have none."""
    import pyarrow

    try:
        texts = values.cast(pyarrow.large_binary())
    except pyarrow.ArrowException:
        return np.zeros(len(values), np.int64)
    offsets = np.frombuffer(texts.buffers()[1] or b"", np.int64)
    return np.diff(offsets[texts.offset : texts.offset + len(texts) + 1])


class _LongestTexts:
    """The lengths of the longest texts in columns, of which the file may hold one and repeat it."""

    def __init__(self, stream: IO[bytes], size: int, paths: Sequence[str]) -> None:
        self._stream, self._paths = stream, paths
        self._allowed = most_growth(size)

    def of(self, group: int, column: Any, chunk: Any) -> int:
        """Of a row group; 0 if they keep within the limits in any case."""
        if column.physical_type != _TEXT:
            return 0
        at_once = chunk.num_values if column.max_repetition_level else min(chunk.num_values, _BLOCK)
        if _REPEATS_THE_LAST in chunk.encodings and at_once * chunk.total_uncompressed_size > self._allowed:
            return _UNKNOWN
        # Reading a dictionary takes a hundred times as long as reading its size.
        is_safe = at_once * _dictionary_size(self._stream, chunk) <= self._allowed
        return 0 if is_safe else self._in_dictionary(group, column.path)

    def _in_dictionary(self, group: int, path: str) -> int:
        import pyarrow

        try:
            # The first rows may be missing values, or empty lists, which are read without the dictionary.
            for batch in self._file.iter_batches(1 << 6, row_groups=[group], columns=[path], use_threads=False):
                values = batch.column(0)
                while values.type.num_fields:
                    values = values.field(0) if pyarrow.types.is_struct(values.type) else values.flatten()
                if not pyarrow.types.is_dictionary(values.type):
                    return _UNKNOWN
                if len(values.dictionary):
                    return int(_lengths(values.dictionary).max())
        except (pyarrow.ArrowException, LookupError, OSError, ValueError):
            # It is damaged, as will be said when it is read, or of a kind that is read without dictionaries alone.
            return _UNKNOWN
        return 0

    @cached_property
    def _file(self) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(self._stream, read_dictionary=self._paths, pre_buffer=False, buffer_size=_BUFFER)


def _dictionary_size(stream: IO[bytes], chunk: Any) -> int:
    """The bytes of the dictionary of a column, as the header of its first page says; 0 without one."""
    stream.seek(min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)), default=0))
    header = iter(stream.read(_HEADER))
    kind, size = _next_number(header), _next_number(header)
    return size if kind == _DICTIONARY else 0


def _next_number(header: Iterator[int]) -> int:
    """The next field of a header in Thrift's compact protocol, a number: its sign is the lowest bit."""
    next(header, None)  # the name and the type of the field
    value = 0
    for place, byte in enumerate(header):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return value >> 1


def _reader(stream: Any, query: str) -> Any:
    """A reader of record batches.

    It keeps the memory pool of the time when it is made. The default pool does not give back what it once had, the
    system's does.
    """
    import pyarrow
    from pyarrow import parquet

    pool = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        # By default it holds whole row groups.
        return parquet.ParquetFile(stream, read_dictionary=[query], pre_buffer=False, buffer_size=_BUFFER)
    finally:
        pyarrow.set_memory_pool(pool)


def parquet_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """(line, row) of a file."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "files", f"reading {path}") from None
    line = 0
    with opened(path) as stream:
        try:
            with parquet.ParquetFile(stream) as file:
                refuse_doubled(file.schema_arrow.names, str(path))
                growth = Growth(path, stream, file.metadata)
                for batch in file.iter_batches(growth.rows_at_once(_BLOCK)):
                    growth.add(batch.columns)
                    try:
                        rows = batch.to_pylist()
                    except OverflowError:
                        raise _beyond_python(path, batch, line) from None
                    for row in rows:
                        line += 1
                        yield line, row
        except InputError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{path}: damaged Parquet after row {line} ({str(error).splitlines()[0]})") from None


def _beyond_python(path: Path, batch: Any, line: int) -> InputError:
    """The error for a time that is beyond Python's dates, with its row; `line` is that before the batch."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        place = first_beyond_python(column)
        if place is not None:
            return InputError(f"{path}:{line + 1 + place}: {name} {BEYOND_PYTHON}")
    return InputError(f"{path}: after row {line}, a value {BEYOND_PYTHON}")
