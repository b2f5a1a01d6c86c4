"""Large files and frames of labels, runs and texts, some rows at a time, as Polars parses them.

A scan is made of regular sources alone. Anything else is left to the exact reader (None, or `Odd` when its rows are
asked for), which either reads it or says what is wrong and where.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.tables import exact
from rag_selectivity.tables.cells import RULES
from rag_selectivity.tables.files import BYTE_ORDER_MARK, first_line, is_path, opened
from rag_selectivity.tables.names import COLUMNS, IDS, Kind, columns_of, late_order

if TYPE_CHECKING:
    import polars as pl

#: Bytes of a text and rows of a table that are parsed at a time.
_BLOCK, _ROWS = 1 << 23, 1 << 18
_IDS, _TEXTS = {"query", "passage", "id"}, {"text", "title"}
#: So many blocks are parsed at once, while one is read and one is used.
_AT_ONCE = 2


#: What reading or converting an odd source may raise, besides the errors of Polars.
_UNREAD = (InputError, ImportError, OSError, AttributeError, KeyError, TypeError, ValueError, RecursionError)


class Odd(Exception):
    """A source that the exact reader has to read."""


@dataclass(frozen=True)
class Scan:
    """The rows of labels, of a run or of texts in their order.

    Attributes
    ----------
    blocks : callable
        Gives the source in pieces, in its order and from its beginning each time.
    frame : callable
        Makes a frame of a piece: columns query and passage (String), and those of grade (Int64), score, rank and tokens
        (Float64) that there are; of texts the columns id and text, which begins with the title (String).
    lines : int or None
        The line of the first row in the file; None for what is no file. The others follow line by line.
    """

    blocks: Callable[[], Iterator[Any]]
    frame: Callable[[Any], pl.DataFrame]
    lines: int | None

    def rows(self) -> Iterator[pl.DataFrame]:
        """Frames of some rows each.

        Raises
        ------
        Odd
            If there is no row, a cell is missing, empty or no finite number, or the file is not as it seemed to be.
        """
        import polars as pl

        frame = None
        try:
            for frame in each_made(self.frame, self.blocks()):
                yield frame
        except (*_UNREAD, pl.exceptions.PolarsError):
            raise Odd from None
        if frame is None:
            raise Odd


def each_made(make: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
    """What is made of each item, in their order: some are made at once, while the next item is fetched."""
    with ThreadPoolExecutor(_AT_ONCE + 1) as workers:
        fetched = workers.submit(next, items, None)
        coming: deque[Future[Any]] = deque()
        while (item := fetched.result()) is not None:
            fetched = workers.submit(next, items, None)
            coming.append(workers.submit(make, item))
            if len(coming) > _AT_ONCE:
                yield coming.popleft().result()
        for each in coming:
            yield each.result()


def scan(source: Any, kind: Kind, *, format: str | None = None) -> Scan | None:
    """A scan of a frame, or of a file in text or Parquet; None where it has to be read exactly, or Polars is absent."""
    try:
        import polars as pl
    except ImportError:
        return None
    try:
        if not is_path(source):
            return _scan_of_table(exact.as_frame(source, ""), kind, None)
        path, name = Path(source), exact.kind_of(Path(source), format)
        if name != "parquet":
            return _scan_of_text(path, kind, name)
        frame = pl.scan_parquet(exact.parquet_files(path), glob=False, hive_partitioning=False)
        return _scan_of_table(frame, kind, 1 if path.is_file() else None)
    except (*_UNREAD, pl.exceptions.PolarsError):
        return None


def _scan_of_table(frame: Any, kind: Kind, lines: int | None) -> Scan:
    """The scan of a frame of any library, which is taken slice by slice."""
    import polars as pl

    is_lazy = isinstance(frame, pl.LazyFrame)
    columns = columns_of(frame.collect_schema().names() if is_lazy else exact.column_names(frame), kind, "")
    if hasattr(frame, "iloc"):
        # Pandas holds texts as Arrow does: only Polars' own form of them is made slice by slice.
        import pyarrow

        frame = pyarrow.Table.from_pandas(frame, columns=[*columns.values()], preserve_index=False)
    needed = frame.select([*columns.values()])
    height = frame.select(pl.len()).collect(engine="streaming").item() if is_lazy else len(frame)

    def rows(start: int) -> pl.DataFrame:
        part = needed.slice(start, _ROWS)
        if not isinstance(part, pl.DataFrame):
            part = part.collect() if is_lazy else pl.from_arrow(part, rechunk=False)
        return _checked(part, columns)

    return Scan(lambda: iter(range(0, height, _ROWS)), rows, lines)


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
    columns = columns_of(names, kind, "")
    types: dict[str, Any] = dict.fromkeys(columns.values() if row else names, pl.String)
    for role, key in columns.items():
        if role == "grade" or (role in _IDS and isinstance(row.get(key), (int, float))):
            types[key] = pl.Int64
        elif role not in _IDS | _TEXTS:
            types[key] = pl.Float64
    # A key that stands twice, or an id without quotation marks where the others have some, is odd.
    blank = " " if '": ' in first else ""
    quoted = {key: role in _TEXTS or not isinstance(row[key], (int, float)) for role, key in columns.items() if row}
    starts = {f"{json.dumps(key)}:{blank}".encode(): is_quoted for key, is_quoted in quoted.items()}
    marks = [*starts, *(start + b'"' for start, is_quoted in starts.items() if is_quoted)]
    # So is a row of texts with one of these keys, which then has its id or text there, or a title, and a first score.
    of_texts = {*IDS["query"], *IDS["passage"], *COLUMNS["text"], "title"}
    keys = of_texts if "text" in columns else late_order(columns, kind)
    others = [f'"{key}"'.encode() for key in keys if columns_of([*names, key], kind, "") != columns]
    # Where all keys are read, the number of these signs in a line tells it as well, and is counted faster.
    signs_of_all = {'"': 2 * (len(quoted) + sum(quoted.values())), ":": len(quoted)} if len(row) == len(quoted) else {}
    # Polars fills missing fields with nothing, so that the last one tells of them. Of lines with more fields it tells
    # only where all are read: those of TREC, which take long to read, are counted.
    read = [*range(len(names))] if name != "trec" else sorted({*map(names.index, columns.values()), len(names) - 1})

    def parsed(block: bytes) -> pl.DataFrame:
        # A line end within a quoted cell is odd in any case.
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        signs = np.frombuffer(block, np.uint8)
        lines = _count(signs, "\n") + (not block.endswith(b"\n"))
        is_plain = b"\\" not in block
        if row:
            frame = pl.read_ndjson(block, schema=types)
            is_simple = signs_of_all and is_plain and b"[" not in block
            as_first = is_simple and all(_count(signs, each) == n * lines for each, n in signs_of_all.items())
            is_odd = not as_first and any(block.count(mark) != lines for mark in marks)
            is_odd |= any(key in block for key in others)
        else:
            quote = '"' if name == "csv" and b'"' in block else None
            frame = pl.read_csv(
                block, has_header=False, separator=separator, quote_char=quote, schema=types, columns=read
            )
            # An empty cell is nothing too. Where no line has more fields, the number of separators tells it apart.
            has_all = header and quote is None and _count(signs, separator) == lines * (len(names) - 1)
            is_odd = not has_all and frame[names[-1]].has_nulls()
        clean = _has_fields(signs, lines, len(names)) if name == "trec" else not (b"\0" in block or b"\r" in block)
        # Polars takes a mark of the byte order away from each block.
        if is_odd or not clean or block.startswith(BYTE_ORDER_MARK) or frame.height != lines:
            raise Odd
        return _checked(frame, columns, may_hold_nul=name == "jsonl" and not is_plain)

    def regular(block: bytes) -> pl.DataFrame:
        try:
            return parsed(block)
        except (Odd, pl.exceptions.PolarsError):
            if name != "trec":
                raise
            return parsed(_with_single_blanks(block))

    return Scan(partial(_blocks, path, header), regular, 1 + header)


def _count(signs: NDArray[np.uint8], sign: str) -> int:
    """How often a character of ASCII stands in a text."""
    return int(np.count_nonzero(signs == ord(sign)))


def _has_fields(signs: NDArray[np.uint8], lines: int, fields: int) -> bool:
    """Whether lines have so many fields on average, with single blanks between them, and none is empty."""
    # No array as long as the text is held beside another one: threads that ask for memory wait for each other.
    blanks = np.count_nonzero(signs <= ord(" ")) - lines + int(signs[-1] != ord("\n"))
    as_many = _count(signs, " ") == blanks == lines * (fields - 1)
    return as_many and bool(np.maximum(signs[1:], signs[:-1]).min(initial=255) > ord(" "))


def _with_single_blanks(block: bytes) -> bytes:
    """The lines of TREC with one blank between fields."""
    block = block.translate(bytes.maketrans(b"\t\v\f\r", b"    "))
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")


def _blocks(path: Path, header: bool) -> Iterator[bytes]:
    """A file in blocks of whole lines, without its header."""
    with opened(path) as file:
        if header:
            file.readline()
        while block := file.read(_BLOCK):
            yield block + file.readline()


def _checked(frame: pl.DataFrame, columns: Mapping[str, str], may_hold_nul: bool = True) -> pl.DataFrame:
    """The columns by what they hold; `Odd` where a cell is missing, or is not what it must be."""
    import polars as pl

    types = {role: pl.String if role in _IDS | _TEXTS else pl.Float64 for role in columns}
    for role, name in columns.items():
        kind = frame.schema[name]
        is_whole, is_float = kind.is_integer() and role not in _TEXTS, kind.is_float() and types[role] == pl.Float64
        if not (kind in (pl.String, pl.Categorical, pl.Enum) or is_whole or is_float):
            raise Odd
    found = frame.select(pl.col(name).cast(types[role]).alias(role) for role, name in columns.items())
    for role, cells in found.to_dict().items():
        if types[role] == pl.Float64:
            numbers = cells.to_numpy()  # NaN for a missing one
            is_odd = not (np.isfinite(numbers) & RULES[role][0](numbers)).all()
        else:
            # Half of a surrogate pair becomes NUL.
            has_nul = may_hold_nul and "\0" in cells.str.join("").item()
            is_odd = has_nul or cells.null_count() > 0 or (role in _IDS and not (cells != "").all())
        if is_odd:
            raise Odd
    if "title" in columns:
        is_whole = (found["title"] != "") & (found["text"] != "")
        found = found.with_columns(text=pl.when(is_whole).then(pl.format("{}\n{}", "title", "text")).otherwise("text"))
    return found.cast({"grade": pl.Int64}) if "grade" in columns else found
