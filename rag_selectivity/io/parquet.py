"""Parquet files in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.data.arrow import IrregularCells
from rag_selectivity.data.columns import BEYOND_PYTHON, first_beyond_python
from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.io.chunks import Chunk, Row
from rag_selectivity.io.opening import opened
from rag_selectivity.io.separated import refuse_doubled

_BLOCK = 1 << 15
_BUFFER = 1 << 18
#: Rows at once where columns of texts are read too.
_BLOCK_OF_TEXTS = 1 << 11


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
            for batch in file.iter_batches(_BLOCK, columns=list(columns.values()), use_threads=False):
                yield ParquetChunk(batch, columns, line)
                line += batch.num_rows
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, KeyError):
        # A KeyError stands for a column of nested values.
        raise IrregularCells from None


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
                for batch in file.iter_batches(_BLOCK_OF_TEXTS):
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
