"""Arrow columns as ours, without a Python object for each cell; columns of a reader of ours stay as they are.

Columns are irregular that hold a missing, empty or odd value, or a type for which Python has rules of its own. Their
cells have to be read one by one, which either works or says what is wrong with which of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.cells import label_grade
from rag_selectivity.data.ids import IdColumn, IntArray
from rag_selectivity.data.rows import FloatArray, Labels, RunRows
from rag_selectivity.errors import InputError

_INTEGERS: dict[str, np.dtype[Any]] = {
    f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_NUMBERS: dict[str, np.dtype[Any]] = {**_INTEGERS, "float": np.dtype("float32"), "double": np.dtype("float64")}
_TEXTS: dict[str, np.dtype[Any]] = {"string": np.dtype("int32"), "large_string": np.dtype("int64")}
# Bytes of UTF-8 that do not begin a character.
_LEADING_BITS, _CONTINUATION = 0b1100_0000, 0b1000_0000


class IrregularCells(Exception):
    """Columns hold what has to be read cell by cell."""


def run_rows(
    query: Any, passage: Any, score: Any = None, rank: Any = None, tokens: Any = None, *, ranked: bool = False
) -> RunRows:
    """The rows of the Arrow columns of a run; `ranked`: without scores, the negative of a rank is the score.

    Raises
    ------
    IrregularCells
    """
    scores, ranks, lengths = (None if column is None else _numbers(column) for column in (score, rank, tokens))
    order = ranks if scores is None else scores
    if order is not None and np.isnan(order).any():
        raise IrregularCells
    if lengths is not None and not ((lengths >= 0) & (lengths < np.inf)).all():
        raise IrregularCells
    if ranked and scores is None and ranks is not None:
        scores, ranks = -ranks, None
    return RunRows(*_coded(query), _ids(passage), scores, ranks, lengths)


def label_rows(query: Any, passage: Any, grade: Any, *, lines: IntArray | None = None) -> Labels:
    """The judgments of the Arrow columns of labels.

    Raises
    ------
    IrregularCells
    """
    return Labels(*_coded(query), _ids(passage).compact(), _grades(grade), lines)


def _numbers(column: Any) -> FloatArray:
    """The numbers of a column of integers or floats; NaN is one of them."""
    if isinstance(column, np.ndarray):
        return column
    if str(column.type) not in _NUMBERS:
        raise IrregularCells
    return _buffer(column).astype(np.float64, copy=False)


def _grades(column: Any) -> IntArray:
    """Whole grades, also those that are written as text."""
    if isinstance(column, np.ndarray):
        return column
    if str(column.type) in _NUMBERS:
        values = _buffer(column)
        if not ((values < 1 << 31) & (values > -(1 << 31))).all() or (values != np.floor(values)).any():
            raise IrregularCells
        whole: IntArray = values.astype(np.int64)
        return whole
    texts = _encoded(column)
    if str(texts.type.value_type) not in _TEXTS:
        raise IrregularCells
    codes = _indices(texts)
    try:
        of_text = [label_grade(text, "") for text in texts.dictionary.to_pylist()]
    except (InputError, UnicodeDecodeError):
        raise IrregularCells from None
    grades: IntArray = np.array(of_text, np.int64)[codes]
    return grades


def _ids(column: Any) -> IdColumn:
    """Ids that are non-empty strings or integers."""
    if isinstance(column, IdColumn):
        return column
    offsets, data = texts_of(column.dictionary_decode() if str(column.type).startswith("dictionary<") else column)
    letters = data[int(offsets[0]) : int(offsets[-1])]
    if (offsets[1:] == offsets[:-1]).any() or np.count_nonzero(letters) < len(letters):
        raise IrregularCells
    if not are_whole_texts(letters, offsets):
        raise IrregularCells
    return IdColumn.from_buffer(data, offsets)


def are_whole_texts(letters: NDArray[np.uint8], offsets: NDArray[np.signedinteger]) -> bool:
    """Whether non-empty texts that stand one after the other are UTF-8 each; nobody has checked those of Parquet."""
    if (text := letters.tobytes()).isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return not ((letters[offsets[:-1] - offsets[0]] & _LEADING_BITS) == _CONTINUATION).any()


def _coded(column: Any) -> tuple[list[str], NDArray[np.int32]]:
    """The query ids of a column, each named once, and the number of its name for each row."""
    if isinstance(column, IdColumn):
        starts = column.changes()
        different, of_starts = column.take(starts).factorized()
        return different, np.repeat(of_starts, np.diff(starts, append=len(column)))
    encoded = _encoded(column)
    codes = _indices(encoded)
    if not len(codes):
        return [], np.empty(0, np.int32)
    # Grouped rows name a query once; a dictionary may have far more entries than a block uses.
    changes = codes[1:] != codes[:-1]
    used, first, place = np.unique(
        codes[np.append(0, np.flatnonzero(changes) + 1)], return_index=True, return_inverse=True
    )
    # Queries are named in the order in which they appear.
    order = np.argsort(first)
    names = _ids(_chosen(encoded.dictionary, used[order]))
    position: dict[str, int] = {}
    known = np.empty(len(order), np.int32)
    known[order] = [position.setdefault(name, len(position)) for name in names]
    return list(position), known[place][np.cumsum(np.append(0, changes))]


def _indices(encoded: Any) -> NDArray[Any]:
    """Which of its distinct values a column has in each row; those of a damaged file may name none."""
    codes = _buffer(encoded.indices)
    if len(codes) and (codes.min() < 0 or codes.max() >= len(encoded.dictionary)):
        raise IrregularCells
    return codes


def _chosen(array: Any, positions: NDArray[Any]) -> Any:
    """The values of an Arrow array at some positions."""
    import pyarrow

    wanted = pyarrow.py_buffer(np.ascontiguousarray(positions, np.int64))
    return array.take(pyarrow.Array.from_buffers(pyarrow.int64(), len(positions), [None, wanted]))


def _buffer(column: Any) -> NDArray[Any]:
    """A column of integers or floats as NumPy has them."""
    if column.null_count:
        raise IrregularCells
    dtype: np.dtype[Any] = _NUMBERS[str(column.type)]
    if not len(column):
        return np.empty(0, dtype)
    # pyarrow's own conversion imports pandas where it is installed, for 40 MB.
    values: NDArray[Any] = np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)
    return values


def _encoded(column: Any) -> Any:
    """A column of strings or integers by its distinct values."""
    kind = str(column.type)
    if kind.startswith("dictionary<"):
        if str(column.type.value_type) in _TEXTS or str(column.type.value_type) in _INTEGERS:
            return column
    elif kind == "string_view":
        return _without_views(column).dictionary_encode()
    elif kind in _TEXTS or kind in _INTEGERS:
        return column.dictionary_encode()
    raise IrregularCells


def texts_of(column: Any) -> tuple[NDArray[np.signedinteger], NDArray[np.uint8]]:
    """(offsets, data) of a column of strings or integers, as text; raises IrregularCells for other types and nulls."""
    import pyarrow

    if column.null_count:
        raise IrregularCells
    kind = str(column.type)
    if kind in _INTEGERS:
        column, kind = column.cast(pyarrow.string()), "string"
    elif kind == "string_view":
        column, kind = _without_views(column), "large_string"
    if kind not in _TEXTS:
        raise IrregularCells
    if not len(column):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    _, offsets, data = column.buffers()
    cuts = np.frombuffer(offsets, _TEXTS[kind])[column.offset : column.offset + len(column) + 1]
    return cuts, np.frombuffer(data or b"", np.uint8)


def _without_views(column: Any) -> Any:
    import pyarrow

    return column.cast(pyarrow.large_string())
