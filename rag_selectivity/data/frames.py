"""DataFrames and Arrow tables as columns, block by block, without a Python object for each cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from rag_selectivity.data.arrow import IrregularCells, label_rows, run_rows
from rag_selectivity.data.rows import Labels, RunRows

#: RunRows of a block.
_BLOCK = 1 << 16


def run_blocks(frame: Any, columns: Mapping[str, str]) -> Iterator[RunRows]:
    """The rows of a run by blocks; `columns` names the column of each argument of `run_rows`.

    Raises
    ------
    IrregularCells
        If cells have to be read one by one.
    """
    for arrays in array_blocks(frame, columns):
        yield run_rows(**arrays)


def label_blocks(frame: Any, columns: Mapping[str, str]) -> Iterator[Labels]:
    """The judgments of a frame by blocks, as `run_blocks` gives rows."""
    for arrays in array_blocks(frame, columns):
        yield label_rows(**arrays)


def array_blocks(frame: Any, columns: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The Arrow arrays of some columns by blocks.

    Raises
    ------
    IrregularCells
        If Arrow has no type for one of them, or pyarrow is missing.
    """
    try:
        import pyarrow
    except ImportError:
        raise IrregularCells from None
    try:
        sliced = {role: _slices(frame[name]) for role, name in columns.items()}
        for start in range(0, len(frame), _BLOCK):
            yield {role: column(start, start + _BLOCK) for role, column in sliced.items()}
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError):
        raise IrregularCells from None


def _slices(column: Any) -> Callable[[int, int], Any]:
    """A function that gives the rows of a column from one position to another as an Arrow array."""
    import pyarrow

    library = type(column).__module__.split(".")[0]
    if library == "polars":
        if str(column.dtype).startswith(("Categorical", "Enum")):
            return _slices(pyarrow.chunked_array([column.to_arrow()]))
        return lambda start, stop: _one(column.slice(start, stop - start).to_arrow())
    if library == "pandas" and column.ndim == 1:
        if isinstance(column.dtype, np.dtype):
            values = column.to_numpy()
            # None and NaN among objects are missing values; NaN among floats is a number.
            missing = column.dtype.kind == "O"
            return lambda start, stop: _one(pyarrow.array(values[start:stop], from_pandas=missing))
        if column.dtype.name == "category":
            return _slices(pyarrow.chunked_array([pyarrow.array(column)]))
        return lambda start, stop: _one(pyarrow.array(column.iloc[start:stop]))
    if isinstance(column, pyarrow.ChunkedArray):
        return lambda start, stop: _one(column.slice(start, stop - start))
    raise TypeError(f"{library} has no columns that Arrow can read")


def _one(array: Any) -> Any:
    """The array of a column that may be in chunks."""
    import pyarrow

    if not isinstance(array, pyarrow.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else pyarrow.concat_arrays(array.chunks)
