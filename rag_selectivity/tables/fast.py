"""Large files and frames of labels and runs, some rows at a time, as Polars parses them.

A scan is made of regular sources alone. Anything else is left to the exact reader (None, or `Odd` when its rows are
asked for), which either reads it or says what is wrong and where.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.tables import exact
from rag_selectivity.tables.cells import RULES
from rag_selectivity.tables.files import first_line, is_path, opened
from rag_selectivity.tables.names import Kind, columns_of

if TYPE_CHECKING:
    import polars as pl

#: Bytes of a text and rows of a table that are parsed at a time.
_BLOCK, _ROWS = 1 << 22, 1 << 18
_IDS = ("query", "passage")


class Odd(Exception):
    """A source that the exact reader has to read."""


@dataclass(frozen=True)
class Scan:
    """The rows of labels or of a run in their order.

    Attributes
    ----------
    batches : callable
        Gives frames of some rows each, from the first one each time: columns query and passage (String), and those of
        grade (Int64), score, rank and tokens (Float64) that there are. `rows` gives the same with one kind of error.
    source : str
        Its name in messages.
    lines : int or None
        The line of the first row in the file; None for what is no file. The others follow line by line.
    """

    batches: Callable[[], Iterator[pl.DataFrame]]
    source: str
    lines: int | None = None

    def rows(self) -> Iterator[pl.DataFrame]:
        """Frames of some rows each.

        Raises
        ------
        Odd
            If a cell is missing, empty or no finite number, or the file is no such file as it seemed to be.
        """
        import polars as pl

        try:
            # While a frame is used, a thread parses the next one.
            with ThreadPoolExecutor(1) as pool:
                batches = self.batches()
                coming = pool.submit(next, batches, None)
                while (frame := coming.result()) is not None:
                    coming = pool.submit(next, batches, None)
                    yield frame
        except (pl.exceptions.PolarsError, OSError, ValueError):
            raise Odd from None


def scan(source: Any, kind: Kind, *, format: str | None = None) -> Scan | None:
    """A scan of a frame, or of a file in text or Parquet; None where it has to be read exactly, or Polars is absent."""
    try:
        import polars as pl
    except ImportError:
        return None
    try:
        if not is_path(source):
            frame = exact.as_frame(source, "")
            if not isinstance(frame, pl.DataFrame):
                chosen = list(columns_of(exact.column_names(frame), kind, "").values())
                frame = pl.DataFrame(frame.select(chosen) if hasattr(frame, "select") else frame[chosen])
            return _scan_of_columns(frame.lazy(), kind, "qrels" if kind == "labels" else "run")
        path, name = Path(source), exact.kind_of(Path(source), format)
        if name != "parquet":
            return _scan_of_text(path, kind, name)
        files = exact.parquet_files(path)
        found = pl.scan_parquet(files, glob=False, hive_partitioning=False)
        return _scan_of_columns(found, kind, str(path), 1 if path.is_file() else None)
    except (InputError, AttributeError, KeyError, TypeError, ValueError, RecursionError, pl.exceptions.PolarsError):
        return None


def _scan_of_text(path: Path, kind: Kind, name: str) -> Scan | None:
    """The scan of a text whose lines are all written as the first one is."""
    import polars as pl

    first = first_line(path)
    row: dict[str, Any] = json.loads(first) if name == "jsonl" else {}
    header = name in exact.SEPARATORS
    separator = exact.SEPARATORS.get(name, " ")
    names = list(row) or [field.strip() for field in first.split(separator)]
    if name == "trec":
        names = list(exact.FIELDS[kind, len(first.encode().split())])
    if len(set(names)) < len(names):
        return None
    columns = columns_of(names, kind, str(path))
    types: dict[str, Any] = dict.fromkeys(columns.values() if row else names, pl.String)
    for role, key in columns.items():
        if role == "grade" or (role in _IDS and isinstance(row.get(key), int)):
            types[key] = pl.Int64
        elif role not in _IDS:
            types[key] = pl.Float64
    quote = '"' if name == "csv" else None
    # A key that stands twice, or an id without quotation marks where the others have some, is odd.
    blank = " " if '": ' in first else ""
    starts = {key: '"' if isinstance(row[key], str) else "" for key in columns.values() if row}
    marks = [f"{json.dumps(key)}:{blank}{start}".encode() for key, start in starts.items()]

    def parsed(block: bytes, with_header: bool) -> pl.DataFrame:
        # A line end within a quoted cell is odd in any case.
        block = block.replace(b"\r\n", b"\n")
        if row:
            frame = pl.read_ndjson(block, schema=types)
        else:
            frame = pl.read_csv(
                block,
                has_header=with_header,
                separator=separator,
                quote_char=quote,
                schema=types,
                columns=[names.index(each) for each in columns.values()],
            )
        lines = block.count(b"\n") + (not block.endswith(b"\n")) - with_header
        is_odd = frame.height != lines or any(block.count(mark) != lines for mark in marks)
        if name == "trec":
            is_odd |= not _has_fields(block, lines, len(names))
        else:
            is_odd |= any(sign in block for sign in (b"\0", b"\r", b"\\u0000"))
        if is_odd:
            raise Odd
        return _checked(frame, columns, is_text=True)

    def batches() -> Iterator[pl.DataFrame]:
        for number, block in enumerate(_blocks(path)):
            try:
                yield parsed(block, header and not number)
            except (Odd, pl.exceptions.PolarsError):
                if name != "trec":
                    raise
                yield parsed(_with_single_blanks(block), False)

    return Scan(batches, str(path), 1 + header)


def _has_fields(block: bytes, lines: int, fields: int) -> bool:
    """Whether single blanks divide each line into so many fields, none of which is empty.

    Polars fills missing fields with nothing, and does not look at those that are not read.
    """
    signs = np.frombuffer(block, np.uint8) <= ord(" ")
    blanks = lines * (fields - 1)
    if block.count(b" ") != blanks or np.count_nonzero(signs) != blanks + block.count(b"\n"):
        return False
    return not (signs[1:] & signs[:-1]).any()


def _with_single_blanks(block: bytes) -> bytes:
    """The lines of TREC with one blank between fields."""
    block = block.translate(bytes.maketrans(b"\t\v\f\r", b"    "))
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")


def _blocks(path: Path) -> Iterator[bytes]:
    """A file in blocks of whole lines."""
    with opened(path) as file:
        while block := file.read(_BLOCK):
            yield block + file.readline()


def _scan_of_columns(frame: pl.LazyFrame, kind: Kind, where: str, lines: int | None = None) -> Scan | None:
    """The scan of typed columns: ids that are texts or whole numbers, and numbers, which may be written as texts."""
    import polars as pl

    schema = frame.collect_schema()
    columns = columns_of(schema.names(), kind, where)
    for role, name in columns.items():
        texts = schema[name] in (pl.String, pl.Categorical, pl.Enum)
        if not (texts or schema[name].is_integer() or (schema[name].is_float() and role not in _IDS)):
            return None

    def batches() -> Iterator[pl.DataFrame]:
        needed = frame.select(*columns.values())
        rows = needed.select(pl.len()).collect(engine="streaming").item()
        for start in range(0, max(rows, 1), _ROWS):
            yield _checked(needed.slice(start, _ROWS).collect(), columns)

    return Scan(batches, where, lines)


def _checked(frame: pl.DataFrame, columns: Mapping[str, str], is_text: bool = False) -> pl.DataFrame:
    """The columns by what they hold; `Odd` where a cell is missing, or is not what it must be."""
    import polars as pl

    types = {role: pl.String if role in _IDS else pl.Float64 for role in columns}
    found = frame.select(pl.col(name).cast(types[role]).alias(role) for role, name in columns.items())
    for role, kind in types.items():
        cells = found[role]
        if kind == pl.String:
            has_nul = not is_text and cells.str.contains("\0", literal=True).any()
            is_odd = has_nul or (cells.str.len_bytes() == 0).any()
        else:
            numbers = cells.to_numpy()
            is_odd = not (RULES[role][0](numbers) & np.isfinite(numbers)).all()
        if is_odd or cells.null_count():
            raise Odd
    return found.cast({"grade": pl.Int64}) if "grade" in columns else found
