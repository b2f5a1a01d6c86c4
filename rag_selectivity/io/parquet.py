"""Parquet files in chunks."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.data.arrow import IrregularCells
from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.io.chunks import Chunk, Row
from rag_selectivity.io.limits import refuse_growth
from rag_selectivity.io.opening import opened
from rag_selectivity.io.separated import refuse_doubled

_BLOCK = 1 << 15
_BUFFER = 1 << 18
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
        except (LookupError, ValueError):
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
            refuse_bomb(path, file.metadata, stream.seek(0, io.SEEK_END), list(columns.values()))
            for batch in file.iter_batches(_BLOCK, columns=list(columns.values()), use_threads=False):
                yield ParquetChunk(batch, columns, line)
                line += batch.num_rows
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, KeyError):
        # A KeyError stands for a column of nested values.
        raise IrregularCells from None


def refuse_bomb(path: Path, metadata: Any, size: int, columns: Sequence[str] | None = None) -> None:
    """An InputError for a file whose columns grow above the limits of a compressed file, as its footer says.

    It is not asked what a footer conceals. Without `columns`, all of them are read.
    """
    places = [i for i in range(metadata.num_columns) if columns is None or _is_read(metadata.schema.column(i), columns)]
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    unpacked = sum(_size_read(group.column(i)) for group in groups for i in places)
    if unpacked > size:
        refuse_growth(path, size, unpacked, "write it without compression and dictionaries")


def _is_read(column: Any, columns: Sequence[str]) -> bool:
    """Whether a column is one of these, or stands within a nested one of them."""
    return any(column.path == name or column.path.startswith(f"{name}.") for name in columns)


def _size_read(chunk: Any) -> int:
    """The least bytes that the cells of a column take when they are read.

    In the file, a cell that is repeated takes next to none: it is a number in a dictionary, or part of a run of them.
    """
    return max(int(chunk.total_uncompressed_size), int(chunk.num_values) * _BYTES_OF_CELL)


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
                refuse_bomb(path, file.metadata, stream.seek(0, io.SEEK_END))
                for batch in file.iter_batches():
                    for row in batch.to_pylist():
                        line += 1
                        yield line, row
        except InputError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{path}: damaged Parquet after row {line} ({str(error).splitlines()[0]})") from None
