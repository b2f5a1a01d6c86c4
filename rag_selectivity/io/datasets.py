"""Rows of runs and judgments from datasets of any size, block by block: Parquet files and folders of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.cells import id_fault, query_text
from rag_selectivity.data.ids import IdColumn
from rag_selectivity.data.remarks import NO_REMARKS, counted
from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.io.blocks import Block
from rag_selectivity.tables.exact import folder_keys
from rag_selectivity.tables.names import (
    PASSAGE_NAMES,
    QUERY_NAMES,
    RANK_NAMES,
    SCORE_NAMES,
    find_column,
    grade_column,
    optional_column,
    ranking_columns,
)

#: Rows that are read first to see how wide their ids are.
_FIRST_ROWS = 1024
_BUFFER = 1 << 17


def size_of(files: Sequence[Path]) -> tuple[int, float]:
    """How many rows the files say that they have, and the mean width of the passage ids at their beginning."""
    parquets = [_opened(file) for file in files]
    widths = []
    for file, parquet in zip(files, parquets, strict=True):
        passage = optional_column(parquet.schema_arrow.names, PASSAGE_NAMES)
        if parquet.num_row_groups and passage is not None:
            widths.append(_width(file, parquet, [passage]))
            break
    return sum(parquet.metadata.num_rows for parquet in parquets), widths[0] if widths else 0.0


def run_blocks(files: Sequence[Path], rows: Callable[[float], int]) -> Iterator[Block]:
    """Rows of a run: query, passage and score, or rank, or neither where the order of the rows is the ranking.

    `rows` tells how many a block may have, from the mean width of their ids in bytes.
    """
    last = None
    for file in files:
        parquet = _opened(file)
        names, keys = parquet.schema_arrow.names, dict(folder_keys(file))
        query, passage = _columns(file, [*names, *keys])
        score, rank = optional_column(names, SCORE_NAMES), optional_column(names, RANK_NAMES)
        extra = score or rank
        seen = 0
        columns = [column for column in (query, passage, score, rank) if column is not None]
        for group, batch in _batches(file, parquet, columns, keys, rows):
            if extra is None:
                # Rows in their order: what comes first has the highest score.
                figures = -np.arange(seen, seen + batch.num_rows, dtype=np.float64)
            else:
                figures = _numbers(batch, extra, file, group).astype(np.float64)
                figures = figures if score else -figures
            seen += batch.num_rows
            if np.isnan(figures).any():
                raise InputError(f"{file}: row group {group}: a {extra} is not a number")
            block = _block(file, group, batch, query, passage, figures)
            if score is not None and rank is not None:
                block = replace(block, ranks=whole_numbers(batch.column(rank))).against_rank(last)
            yield block
            last = block


def whole_numbers(column: Any) -> Any:
    """The numbers of a column; None if one is missing or is none."""
    import pyarrow

    try:
        return None if column.null_count else _values(column.cast(pyarrow.int64()), np.int64)
    except pyarrow.ArrowException:
        return None


def qrels_blocks(files: Sequence[Path], rows: Callable[[float], int]) -> Iterator[Block]:
    """Rows of judgments: query, passage and grade, which stands where a run has its score; `rows` as for runs."""
    for file in files:
        parquet = _opened(file)
        names, keys = parquet.schema_arrow.names, dict(folder_keys(file))
        query, passage = _columns(file, [*names, *keys])
        grade = grade_column(names, str(file))
        remarks = counted(ranking_columns_in_labels=len(ranking_columns(names, grade)))
        for group, batch in _batches(file, parquet, [query, passage, grade], keys, rows):
            grades = _numbers(batch, grade, file, group).astype(np.float64)
            if (np.isnan(grades) | (grades != np.floor(grades))).any():
                raise InputError(
                    f"{file}: row group {group}: a {grade} is not a whole number: is this a run? The labels come first"
                )
            yield replace(_block(file, group, batch, query, passage, grades), remarks=remarks)
            remarks = NO_REMARKS


def _opened(file: Path) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "files", f"reading {file.name}") from None
    try:
        # Buffered: without, the columns of a whole row group are read at once.
        return parquet.ParquetFile(file, buffer_size=_BUFFER)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{file}: not a Parquet file that can be read ({str(error)[:200]})") from None


def _columns(file: Path, names: Sequence[str]) -> tuple[str, str]:
    return (
        find_column(names, QUERY_NAMES, "query", str(file)),
        find_column(names, PASSAGE_NAMES, "passage", str(file)),
    )


def _batches(
    file: Path, parquet: Any, columns: Sequence[str], keys: dict[str, str], rows: Callable[[float], int]
) -> Iterator[tuple[int, Any]]:
    """(row group, record batch) with the columns, those of the folders included."""
    stored = [name for name in dict.fromkeys(columns) if name not in keys]
    size = rows(_width(file, parquet, stored)) if parquet.num_row_groups else 1
    for group in range(parquet.num_row_groups):
        for batch in _read(file, parquet, group, stored, size):
            for name in set(columns) - set(stored):
                batch = batch.append_column(name, _repeated(keys[name], batch.num_rows))
            yield group, batch


def _read(file: Path, parquet: Any, group: int, columns: Sequence[str], size: int) -> Iterator[Any]:
    import pyarrow

    # Each thread would have a heap of its own, which keeps what was freed in it.
    batches = parquet.iter_batches(size, row_groups=[group], columns=columns, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except (pyarrow.ArrowException, KeyError, OSError, ValueError) as error:
            # A KeyError stands for a column of nested values.
            raise InputError(f"{file}: row group {group} is damaged ({str(error)[:200]})") from None
        if batch is None:
            return
        yield batch


def _width(file: Path, parquet: Any, columns: Sequence[str]) -> float:
    """The mean bytes of a row's values, at the beginning of the first row group."""
    for batch in _read(file, parquet, 0, columns, _FIRST_ROWS):
        return sum(map(_width_of, batch.columns))
    return 0.0


def _width_of(column: Any) -> float:
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        # A batch has the values of its whole row group.
        return 4 + _width_of(column.dictionary)
    return int(column.nbytes) / max(1, len(column))


def _repeated(text: str, rows: int) -> Any:
    """A column with one value. Arrow's own conversions of lists and arrays import pandas, for 40 MB."""
    import pyarrow

    letters = text.encode()
    offsets = np.array([0, len(letters)], np.int32)
    names = pyarrow.StringArray.from_buffers(1, pyarrow.py_buffer(offsets), pyarrow.py_buffer(letters))
    codes = pyarrow.Array.from_buffers(pyarrow.int32(), rows, [None, pyarrow.py_buffer(np.zeros(rows, np.int32))])
    return pyarrow.DictionaryArray.from_arrays(codes, names)


def _values(column: Any, dtype: type[np.generic]) -> Any:
    """An Arrow column of fixed width without missing values, as NumPy has it."""
    if not len(column):
        return np.empty(0, dtype)
    return np.frombuffer(column.buffers()[1], dtype)[column.offset : column.offset + len(column)]


def _numbers(batch: Any, name: str, file: Path, group: int) -> Any:
    import pyarrow

    column = batch.column(name)
    if column.null_count:
        raise InputError(f"{file}: row group {group}: a {name} is missing")
    try:
        return _values(column.cast(pyarrow.float64()), np.float64)
    except pyarrow.ArrowException:
        raise InputError(f"{file}: row group {group}: {name} holds what is no number") from None


def _block(file: Path, group: int, batch: Any, query: str, passage: str, figures: Any) -> Block:
    return block_of_arrow(batch, query, passage, figures, f"{file}: row group {group}")


def block_of_arrow(batch: Any, query: str, passage: str, figures: Any, where: str) -> Block:
    """The rows of an Arrow batch whose columns are called so; ids may be strings or integers."""
    import pyarrow

    columns_read = []
    for name in (query, passage):
        column = batch.column(name)
        if column.null_count:
            raise InputError(f"{where}: a {name} is missing")
        kind = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
        if not _holds_ids(kind):
            raise InputError(f"{where}: {name} holds values of the type {kind}; ids must be strings or integers")
        columns_read.append(column)
    by_name = (
        columns_read[0] if pyarrow.types.is_dictionary(columns_read[0].type) else columns_read[0].dictionary_encode()
    )
    names, codes = _names(by_name, query, where)
    texts = (
        columns_read[1].dictionary_decode() if pyarrow.types.is_dictionary(columns_read[1].type) else columns_read[1]
    )
    texts = texts.cast(pyarrow.large_string())
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if (np.diff(offsets) == 0).any() or "" in names:
        raise InputError(f"{where}: an id is empty")
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[int(offsets[0]) : int(offsets[-1])]
    if np.count_nonzero(data) < len(data):
        raise InputError(f"{where}: a {passage} holds a NUL character; give another id")
    if not _are_whole_texts(data, offsets):
        raise InputError(f"{where}: a {passage} is not UTF-8 text")
    return Block(names, codes, IdColumn.from_buffer(texts.buffers()[2] or b"", offsets), figures)


def _names(by_name: Any, query: str, where: str) -> tuple[list[str], NDArray[np.int32]]:
    """The names that the rows of a dictionary column have, and the number of each row's name among them.

    A column may have the names of its whole file, which are many more.
    """
    import pyarrow

    codes, names = _values(by_name.indices.cast(pyarrow.int32()), np.int32), by_name.dictionary
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(names):
        raise InputError(f"{where}: the column {query} is damaged; write the file again")
    in_use = np.zeros(len(names), bool)
    in_use[codes] = True
    if not in_use.all():
        used = np.flatnonzero(in_use)
        names = names.take(pyarrow.Array.from_buffers(pyarrow.int64(), len(used), [None, pyarrow.py_buffer(used)]))
        codes = (np.cumsum(in_use, dtype=np.int32) - np.int32(1))[codes]
    try:
        texts = [str(name) for name in names.to_pylist()]
    except UnicodeDecodeError:
        raise InputError(f"{where}: a {query} is not UTF-8 text") from None
    if id_fault("".join(["id", *texts])) is not None:
        texts = [text and query_text(text, where) for text in texts]
    return texts, codes


def _are_whole_texts(letters: NDArray[np.uint8], offsets: NDArray[np.int64]) -> bool:
    """Whether non-empty texts that stand one after the other are UTF-8 each; nobody has checked those of Parquet."""
    if (text := letters.tobytes()).isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return not ((letters[offsets[:-1] - offsets[0]] & 0b1100_0000) == 0b1000_0000).any()


def _holds_ids(kind: Any) -> bool:
    """Whether an Arrow type is one of strings or integers."""
    import pyarrow

    return str(kind) in ("string", "large_string", "string_view") or bool(pyarrow.types.is_integer(kind))
