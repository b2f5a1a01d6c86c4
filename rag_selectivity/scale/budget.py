"""How a limit of memory is shared out when data are read part by part."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rag_selectivity.data.qrels import Qrels
from rag_selectivity.errors import InputError
from rag_selectivity.scale.tally import Tally

LEAST = 200
_MB = 1_000_000
#: Python with NumPy, SciPy, pyarrow and this package, measured with the command line's libraries.
_PROCESS = 120 * _MB
#: What a part takes at its highest point while it is joined and measured, measured for rows in the worst order: for a
#: row, for a byte of its passage id, and for a query at one depth of one measure.
_A_ROW, AN_ID_BYTE, _A_QUERY_AND_DEPTH = 50, 26, 180
#: What a row and a byte of its ids take while a block is read and divided.
_A_ROW_READ, _AN_ID_BYTE_READ = 150, 32
#: What a judgment file's byte takes while it is read, at the highest point, and what it leaves.
_A_LABEL_FILE_BYTE = 30
_SMALLEST_PART = 10 * _MB
_MOST_ROWS_A_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True)
class Budget:
    """`free` bytes are left for rows, be it while they are divided or while a part is measured."""

    memory: int
    free: int
    columns: int

    @classmethod
    def of(cls, memory: int, tally: Tally, runs: int, held: Qrels | None) -> Budget:
        """What is left of `memory` megabytes once libraries, sums and held judgments have theirs.

        Raises
        ------
        InputError
            If less is left than a part needs.
        """
        sums, columns = sums_of(tally)
        # The sums of all runs, and those of the part that is measured.
        fixed = _PROCESS + (runs + 1) * sums
        labels = 0 if held is None else _bytes_of(held)
        free = memory * _MB - fixed - labels
        if free < _SMALLEST_PART:
            need = -(-(fixed + labels + _SMALLEST_PART) // _MB)
            takers = [f"the libraries take {_PROCESS // _MB} MB"]
            if (runs + 1) * sums > _MB:
                takers.append(f"the sums of {tally.resamples} resamples {-(-(runs + 1) * sums // _MB)} MB")
            if labels > _MB:
                takers.append(f"the judgments, which are held in memory, {-(-labels // _MB)} MB")
            less = "fewer resamples or depths" if labels < runs * sums else "the judgments as Parquet, which is divided"
            raise InputError(
                f"memory {memory} is too little: {', '.join(takers)}; give memory={need} (--memory {need}), or {less}"
            )
        return cls(memory, free, columns)

    def cost(self, rows: int, id_bytes: int, queries: int) -> int:
        """The bytes that a part takes while it is measured."""
        return rows * _A_ROW + id_bytes * AN_ID_BYTE + queries * self.columns * _A_QUERY_AND_DEPTH

    @property
    def block(self) -> int:
        """The bytes that a block may take while it is divided."""
        return min(self.free // 2, 64 * _MB)

    @property
    def gathered(self) -> int:
        """The bytes of rows that are divided at once: small blocks would leave a few rows in each of many parts."""
        return self.block // 4

    def rows_of_width(self, id_bytes: float) -> int:
        """How many rows a block may have whose ids have so many bytes."""
        rows = self.block / (_A_ROW_READ + id_bytes * _AN_ID_BYTE_READ)
        return int(min(_MOST_ROWS_A_BLOCK, max(64, rows)))

    def refuse_query(self, query: str, rows: int, cost: int) -> InputError:
        """The error for a query that does not fit, and cannot be divided."""
        need = -(-(self.memory * _MB - self.free + cost) // _MB)
        return InputError(
            f"query {query!r} has {rows} rows, which take about {cost // _MB} MB while they are measured, and memory "
            f"{self.memory} leaves {self.free // _MB} MB: the rows of a query cannot be divided; give memory={need} "
            f"(--memory {need}), or shorten its list to the depths that are measured"
        )


def check_held_file(path: str | Path, memory: int, what: str) -> None:
    """Refuse a file that is held in memory and would not fit, before it is read."""
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    need = -(-(_PROCESS + size * _A_LABEL_FILE_BYTE + 3 * _SMALLEST_PART) // _MB)
    if size > _MB and need > memory:
        raise InputError(
            f"{path}: {what} in this format are held in memory, which takes up to {need} MB, and memory is {memory}: "
            f"give memory={need} (--memory {need}), or write them as Parquet, which is divided"
        )


def sums_of(tally: Tally) -> tuple[int, int]:
    """The bytes of a tally's sums when it is full, and the number of (measure, depth) that it has for a query."""
    widths = tally.widths()
    limbs = sum((width + 1) * depths * (tally.resamples + width + 1) for width, depths in widths)
    return 64 * limbs, sum(depths for _, depths in widths)


def _bytes_of(labels: Qrels) -> int:
    """What judgments take in memory, with the copy that is made when their scale is settled."""
    offsets, letters = labels.passages.buffers()
    arrays = labels.query.nbytes + labels.grade.nbytes + offsets.nbytes + letters.nbytes
    return 2 * arrays + 40 * len(labels.query) + 250 * len(labels.queries)


@contextmanager
def returned_memory() -> Iterator[None]:
    """Let Arrow use the system's memory meanwhile: its own pool keeps what it has had."""
    try:
        import pyarrow
    except ImportError:
        yield
        return
    before = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        yield
    finally:
        pyarrow.set_memory_pool(before)


def return_memory() -> None:
    """Give memory that was freed back to the system, where the C library keeps it for later."""
    if (trim := _trim()) is not None:
        trim(0)


@cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
