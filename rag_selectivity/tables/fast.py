"""Large files and frames of labels and runs, some rows at a time, as Polars parses them.

A scan is made of regular sources alone. Anything else is left to the exact reader (None, or `Odd` when its rows are
asked for), which either reads it or says what is wrong and where.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.tables.cells import LARGEST_GRADE
from rag_selectivity.tables.exact import (
    as_frame,
    column_names,
    first_bytes,
    folder_keys,
    is_frame,
    kind_of,
    opened,
    parquet_files,
)
from rag_selectivity.tables.names import label_columns, run_columns

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["labels", "run"]
#: Bytes of a text and rows of a table that are parsed at a time.
_BLOCK, _ROWS = 1 << 22, 1 << 18
_LINE_END, _BLANK = 10, 32
#: The fields of a line without a header, by the kind of the file and their number; MS MARCO's runs have three.
FIELDS: Mapping[tuple[str, int], Sequence[str]] = {
    ("labels", 4): ("query", "iteration", "passage", "grade"),
    ("run", 6): ("query", "Q0", "passage", "rank", "score", "tag"),
    ("run", 3): ("query", "passage", "rank"),
}


_NUMBERS = ("grade", "score", "rank", "tokens")
ROLES = ("query", "passage", *_NUMBERS)


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
    names : tuple of str
        All names of the table's columns.
    """

    batches: Callable[[], Iterator[pl.DataFrame]]
    source: str
    lines: int | None = None
    names: tuple[str, ...] = ()

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
        if not isinstance(source, (str, Path)):
            frame = source.collect() if isinstance(source, pl.LazyFrame) else source
            return _scan_of_frame(frame, kind) if is_frame(frame) else None
        path, name = Path(source), kind_of(Path(source), format)
        if name == "parquet":
            return _scan_of_parquet(path, kind)
        return _scan_of_text(path, kind, name) if name in ("csv", "tsv", "jsonl", "trec") else None
    except (InputError, Odd, TypeError, ValueError, RecursionError, pl.exceptions.PolarsError):
        return None


def _scan_of_text(path: Path, kind: Kind, name: str) -> Scan | None:
    """The scan of a text whose lines are all written as the first one is."""
    import polars as pl

    head = first_bytes(path)
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[0].removesuffix(b"\r")
    marks: list[bytes] = []
    if name == "jsonl":
        row, separator = json.loads(first), ""
        names = list(row)
        columns = _columns_of(names, kind, str(path))
        types = {key: _type(role, row[key]) for role, key in columns.items()}
        # Of a key that stands twice, one reader takes the first value and the other one the last.
        for key in columns.values():
            start = json.dumps(key).encode() + b":"
            blank = b" " * (first.partition(start)[2][:1] == b" ")
            marks.append(start + blank + b'"' * isinstance(row[key], str))
    else:
        separator = {"csv": ",", "tsv": "\t"}.get(name) or ("\t" if b"\t" in first else " ")
        names = [field.strip() for field in first.decode().split(separator)]
        if name == "trec":
            names = list(FIELDS[kind, len(names)]) if (kind, len(names)) in FIELDS else []
        columns = _columns_of(names, kind, str(path)) if names else {}
        if not columns or len(set(names)) < len(names):
            return None
        types = dict.fromkeys(names, pl.String) | {key: _type(role, "") for role, key in columns.items()}
    header = name in ("csv", "tsv")

    def odd(id_: pl.Expr) -> pl.Expr:
        # Empty cells of TREC and CSV are null.
        return id_.str.starts_with("#") if name == "trec" else id_.str.len_bytes() == 0

    def batches() -> Iterator[pl.DataFrame]:
        last = _LINE_END
        for number, block in enumerate(_blocks(path)):
            last = _check_block(block, separator, 0 if name == "jsonl" else len(names), marks, last, name == "trec")
            if name == "jsonl":
                frame = pl.read_ndjson(block, schema=types)
            else:
                frame = pl.read_csv(
                    block, separator=separator, has_header=header and not number, quote_char=None, schema=types
                )
            yield _checked(frame.lazy(), columns, odd).collect()

    return Scan(batches, str(path), 1 + header, () if name == "trec" else tuple(names))


def _check_block(block: bytes, separator: str, width: int, marks: Sequence[bytes], last: int, is_trec: bool) -> int:
    """See that whole lines have `width` fields each, or all of the marks; their last byte, for the next ones.

    Raises
    ------
    Odd
        If they have not, if a line or field is empty in TREC, or a character is odd.
    """
    odd = [b"\0", *({",": [b'"'], "": [b"\\"]}.get(separator, []))]
    if is_trec:
        odd += [white for white in (b" ", b"\t", b"\v", b"\f", b"\r") if white != separator.encode()]
    if any(mark in block for mark in odd):
        raise Odd
    letters = np.frombuffer(block, np.uint8)
    if is_trec:
        white = letters <= _BLANK
        if (white[1:] & white[:-1]).any() or (white[0] and last <= _BLANK):
            raise Odd
    elif b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        raise Odd
    lines = int(np.count_nonzero(letters == _LINE_END)) + (letters[-1] != _LINE_END)
    if separator and np.count_nonzero(letters == ord(separator)) != lines * (width - 1):
        raise Odd
    if any(block.count(mark) != lines for mark in marks):
        raise Odd
    return int(letters[-1])


def _blocks(path: Path) -> Iterator[bytes]:
    """A file in blocks of whole lines."""
    with opened(path) as file:
        while block := file.read(_BLOCK):
            yield block + file.readline()


def _scan_of_parquet(path: Path, kind: Kind) -> Scan | None:
    import polars as pl

    files = parquet_files(path)
    keys = {name: pl.String for name, _ in folder_keys(files[0])}
    frame = pl.scan_parquet(files, glob=False, hive_partitioning=bool(keys), hive_schema=keys or None)
    return _scan_of_columns(frame, kind, str(path), 1 if path.is_file() else None)


def _scan_of_frame(source: Any, kind: Kind) -> Scan | None:
    import polars as pl

    where = "qrels frame" if kind == "labels" else "run frame"
    frame = as_frame(source, where)
    chosen = _columns_of(column_names(frame), kind, where)
    if not isinstance(frame, pl.DataFrame):
        frame = pl.DataFrame({name: _series(frame[name]) for name in chosen.values()})
    return _scan_of_columns(frame.lazy(), kind, where)


def _series(column: Any) -> pl.Series:
    """A column of a frame of pandas or Arrow; a TypeError or a PolarsError for one of several types."""
    import polars as pl

    if type(column).__module__.split(".")[0] == "pyarrow":
        return pl.Series(column)
    numeric = getattr(getattr(column, "dtype", None), "kind", "O") in "iuf"
    return pl.Series(column.to_numpy() if numeric else list(column))


def _scan_of_columns(frame: pl.LazyFrame, kind: Kind, where: str, lines: int | None = None) -> Scan | None:
    """The scan of typed columns: ids that are texts or whole numbers, and numbers, which may be written as texts."""
    import polars as pl

    schema = frame.collect_schema()
    columns = _columns_of(schema.names(), kind, where)
    for role, name in columns.items():
        texts = schema[name] in (pl.String, pl.Categorical, pl.Enum)
        if not (texts or schema[name].is_integer() or (schema[name].is_float() and role not in ("query", "passage"))):
            return None

    def odd(id_: pl.Expr) -> pl.Expr:
        return (id_.str.len_bytes() == 0) | id_.str.contains("\0", literal=True)

    def batches() -> Iterator[pl.DataFrame]:
        for some in _slices(frame):
            yield _checked(some, columns, odd).collect()

    return Scan(batches, where, lines, tuple(schema.names()))


def _slices(frame: pl.LazyFrame) -> Iterator[pl.LazyFrame]:
    """Some rows of a frame at a time."""
    import polars as pl

    rows = frame.select(pl.len()).collect(engine="streaming").item()
    for start in range(0, max(rows, 1), _ROWS):
        yield frame.slice(start, _ROWS)


def _checked(frame: pl.LazyFrame, columns: Mapping[str, str], odd: Callable[[pl.Expr], pl.Expr]) -> pl.LazyFrame:
    """The columns by what they hold; the first one with numbers cannot be cast where a row is odd, or an id is."""
    import polars as pl

    ids = [pl.col(columns[role]).cast(pl.String).alias(role) for role in ("query", "passage")]
    numbers = {role: pl.col(name).cast(pl.Float64) for role, name in columns.items() if role in _NUMBERS}
    wrong = odd(ids[0]) | odd(ids[1]) | ids[0].is_null() | ids[1].is_null()
    if not numbers:
        if frame.select(wrong.any()).collect().item():
            raise Odd
        return frame.select(ids)
    if "grade" in numbers:
        wrong |= (numbers["grade"].abs() >= LARGEST_GRADE) | (numbers["grade"] != numbers["grade"].floor())
    if "tokens" in numbers:
        wrong |= numbers["tokens"] < 0
    # NaN where a number is not finite, null where one is missing, else 0; NaN is no whole number.
    zero = pl.sum_horizontal([each - each for each in numbers.values()], ignore_nulls=False)
    first = next(iter(numbers))
    numbers[first] += pl.when(wrong | zero.is_null()).then(float("nan")).otherwise(zero).cast(pl.Int8)
    types = {"grade": pl.Int64}
    return frame.select(*ids, *(each.cast(types.get(role, pl.Float64)).alias(role) for role, each in numbers.items()))


def _type(role: str, value: Any) -> Any:
    """The type of a column, by what it holds and its first value."""
    import polars as pl

    whole = role == "grade" or (role in ("query", "passage") and isinstance(value, int))
    return pl.Int64 if whole else pl.String if role in ("query", "passage") else pl.Float64


def _columns_of(names: Sequence[str], kind: Kind, where: str) -> dict[str, str]:
    if set(names) in map(set, FIELDS.values()):
        return {name: name for name in names if name in ROLES}
    return label_columns(names, where) if kind == "labels" else run_columns(names, where)
