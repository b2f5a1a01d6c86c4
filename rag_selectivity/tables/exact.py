"""Files line by line and tables row by row, by the standard library alone, with one kind of error for what is wrong.

Text is UTF-8, with or without a byte order mark; what begins as UTF-16 or UTF-32 is refused by that name. The path `-`
is standard input. It is held in memory, since readers look at the beginning of a file before they read it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, Any, TextIO
from urllib.parse import unquote

from rag_selectivity.errors import InputError, MissingExtraError, did_you_mean
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.names import QUERY_NAMES, optional_column

#: A row of a table by its column names.
Row = dict[str, Any]
STANDARD_INPUT = Path("-")
#: A compressed file may grow to so many bytes.
MOST_UNPACKED = 64 * 10**9
#: A file from this size on is read faster by a scan, whose library takes a while to load.
_LARGE = 4 << 20
_BLOCK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: White space of ASCII: other characters may belong to an id.
_BLANK = " \t\r\n\v\f"
#: Formats of label stores, and the modules above this one that read them: `recognised` and `read_labels`.
STORES = {
    "store": "rag_selectivity.grading.labels_format",
    "exported": "rag_selectivity.grading.labels_format",
    "golden": "rag_selectivity.golden.golden_set",
}
TABLES = ("parquet", "csv", "jsonl", "tsv")
FORMATS = ("trec", "beir", *reversed(TABLES), *STORES)


# -- files ------------------------------------------------------------------------------------------------


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; one that cannot be looked up is none, and `opened` says why."""
    try:
        return path.is_dir()
    except OSError:
        return False


@contextmanager
def opened(path: Path, *, any_content: bool = False) -> Iterator[IO[bytes]]:
    """The file's bytes, decompressed when it is gzipped or of zstd, whatever its name.

    Raises
    ------
    InputError
        If it cannot be read, grows above the limit when it is unpacked, or is text in UTF-16 or UTF-32, unless it may
        have `any_content`.
    """
    if not _can_be_a_path(path):
        raise InputError(f"{str(path)!r} cannot be the path of a file; give another one")
    try:
        with io.BytesIO(_content(sys.stdin)) if path == STANDARD_INPUT else path.open("rb") as plain:
            head = plain.read(4)
            plain.seek(0)
            packed = head.startswith(_GZIP) or head == _ZSTD
            file: Any = io.BufferedReader(_Unpacked(path, plain, head != _ZSTD), _BLOCK) if packed else plain
            with file:
                if not any_content:
                    _refuse_other_encodings(path, file.peek(4)[:4] if packed else head)
                yield file
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the gzip data is damaged ({error}); copy it again from where it came") from None
    except io.UnsupportedOperation:
        raise InputError(
            f"{path}: a pipe cannot be read from its beginning again; give - and pipe it into standard input, or write "
            f"it to a file first"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a file of gzip or zstd, up to the limit."""

    def __init__(self, path: Path, packed: IO[bytes], is_gzip: bool) -> None:
        self._path, self._size = path, 0
        self._stream: Any = gzip.GzipFile(fileobj=packed) if is_gzip else _zstandard(path, packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count: int = self._stream.readinto(buffer)
        except Exception as error:
            if type(error).__name__ == "ZstdError":
                raise InputError(f"{self._path}: the zstd data is damaged ({error}); copy it again") from None
            raise
        self._size += count
        if self._size > MOST_UNPACKED:
            raise InputError(
                f"{self._path}: the compressed file grows above {MOST_UNPACKED:,} bytes; unpack it first if it really "
                f"is so large"
            )
        return count


def _zstandard(path: Path, packed: IO[bytes]) -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("zstandard", "files", f"reading {path}") from None
    return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)


def _can_be_a_path(path: Path) -> bool:
    """Whether the system can look the path up: it has no NUL, and its text can be encoded."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


@lru_cache(maxsize=1)
def _content(stream: TextIO) -> bytes:
    """All that a stream holds; kept, since a stream can be read only once."""
    return stream.buffer.read()


def _refuse_other_encodings(path: Path, head: bytes) -> None:
    """An InputError for the first four bytes of text in UTF-16 or UTF-32, with or without a byte order mark."""
    wide = head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")) or head.count(0) == 3
    if wide or head.startswith((b"\xff\xfe", b"\xfe\xff")) or (head.count(0) == 2 and head[:2].count(0) == 1):
        encoding = "UTF-32" if wide else "UTF-16"
        raise InputError(f"{path}: the file is text in {encoding}, and only UTF-8 is read; save it again as UTF-8")


def first_bytes(path: Path, size: int = 4096) -> bytes:
    """The beginning of a file, unpacked."""
    with opened(path, any_content=True) as file:
        return file.read(size)


def whole_text(path: Path) -> str:
    """All of a file, without its byte order mark.

    Raises
    ------
    InputError
        As `opened`.
    ValueError
        If it is not UTF-8.
    """
    with opened(path) as file:
        return file.read().decode("utf-8-sig")


def is_large(path: Path) -> bool:
    """Whether a file is so large that a scan is quicker, as a folder of Parquet may be."""
    if path == STANDARD_INPUT:
        return len(_content(sys.stdin)) >= _LARGE
    return path.is_dir() or (path.is_file() and path.stat().st_size >= _LARGE)


def text_lines(path: Path, *, whole: bool = False) -> Iterator[tuple[int, str]]:
    """(line number, text) of each line that is not blank; if `whole`, of every line, with its end."""
    for number, line in _byte_lines(path):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise not_utf8(path, number) from None
        if whole:
            yield number, text
        elif line.strip():
            yield number, text.rstrip("\r\n")


def not_utf8(path: Path, line: int) -> InputError:
    """The error for a line of other bytes."""
    return InputError(f"{path}:{line}: this line is not UTF-8 text; save the file as UTF-8")


def _byte_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            yield number, line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line


# -- formats ----------------------------------------------------------------------------------------------


def kind_of(path: Path, given: str | None = None) -> str:
    """The format that was given, or the one that the file's content or suffix shows; trec if none does.

    Raises
    ------
    InputError
        If the given one is not known, or the file cannot be read.
    """
    if given is not None:
        if given not in FORMATS:
            raise InputError(f"unknown format {given!r}{did_you_mean(given, FORMATS)} (known: {', '.join(FORMATS)})")
        return given
    folder = is_folder(path)
    head = b"" if folder else first_bytes(path)
    store: str | None = import_module(STORES["golden" if folder else "store"]).recognised(path, head)
    if store is not None or folder:
        return store or ("parquet" if holds_parquet(path) else "beir")
    suffix, first = suffix_of(path), head.split(b"\n", 1)[0]
    if head.startswith(b"PAR1") or suffix in (".parquet", ".pq"):
        return "parquet"
    if suffix == ".csv" or _names_a_query(first, ","):
        return "csv"
    if suffix in (".jsonl", ".ndjson") or first.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith(b"{"):
        return "jsonl"
    return "tsv" if _names_a_query(first, "\t") else "trec"


def suffix_of(path: Path) -> str:
    """The last suffix of a file in lower case, those of packed files left out."""
    return next((each.lower() for each in reversed(path.suffixes) if each.lower() not in (".gz", ".zst")), "")


def _header(first: bytes, separator: str) -> list[str]:
    return [name.strip(' "\r') for name in first.decode("utf-8-sig", "replace").split(separator)]


def _names_a_query(first: bytes, separator: str) -> bool:
    """Whether the first line of a file is a header with a query column."""
    names = _header(first, separator)
    return len(names) > 1 and optional_column(names, QUERY_NAMES) is not None


def beir_labels(folder: Path) -> Path:
    """The judgments of a BEIR folder: `qrels/test.tsv`, or the only file there."""
    place = folder / "qrels" if (folder / "qrels").is_dir() else folder
    files = sorted(place.glob("*.tsv"))
    if not files:
        raise InputError(f"{folder}: no qrels/*.tsv in this folder")
    chosen = next((file for file in files if file.name == "test.tsv" or len(files) == 1), None)
    if chosen is None:
        raise InputError(f"{place}: several qrels ({', '.join(file.name for file in files)}); name one of them")
    return chosen


# -- rows -------------------------------------------------------------------------------------------------


class NoRowsError(InputError):
    """A table has no rows: for some tables that is all there is to say."""


def trec_rows(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """(line, fields) of each line that is not blank; only white space of ASCII separates fields."""
    for number, line in _byte_lines(path):
        if number == 1 and b"\r" in line.rstrip() and not line.endswith(b"\n"):
            raise InputError(f"{path}: its lines end in carriage returns alone; write it again with line feeds")
        if fields := line.split():
            yield number, fields


def is_path(value: Any) -> bool:
    """Whether a value names a file or folder."""
    return isinstance(value, (str, Path))


def is_table(path: str | Path) -> bool:
    """Whether a file is recognised as a table: rows with named columns."""
    return kind_of(Path(path)) in (*TABLES, "exported")


def read_records(source: str | Path) -> Iterator[tuple[int, Row]]:
    """(line, row) of a table; without a suffix, the separator in its first line shows its format."""
    path = Path(source)
    kind = kind_of(path)
    if kind == "trec" and not path.suffix:
        first = first_bytes(path).split(b"\n", 1)[0]
        kind = next((name for name, mark in (("tsv", "\t"), ("csv", ",")) if len(_header(first, mark)) > 1), kind)
    return table_rows(path, kind)


def table_rows(path: Path, kind: str) -> Iterator[tuple[int, Row]]:
    """(line, row) of a table with named columns, by its format; rows of Parquet count from 1.

    Raises
    ------
    InputError
        If it has no rows or is no table; while it is read, for a line that is wrong.
    """
    found: Iterator[tuple[int, Row]]
    match kind:
        case "parquet":
            found = chain.from_iterable(map(_parquet_rows, parquet_files(path)))
        case "csv":
            found = separated_rows(path, ",", text_lines(path, whole=True))
        case "tsv":
            found = separated_rows(path, "\t", text_lines(path))
        case "jsonl":
            found = _json_rows(path)
        case "exported":
            found = table_rows(path, suffix_of(path)[1:])
        case _:
            if path.is_file() and path.stat().st_size == 0:
                raise InputError(f"{path}: the file is empty; write it again")
            with opened(path):
                pass  # text in another encoding than UTF-8 is refused by its name
            raise InputError(f"{path}: expected JSONL, CSV or Parquet rows")
    first = next(found, None)
    if first is None:
        raise NoRowsError(f"{path}: the file has no rows")
    return chain([first], found)


def _json_rows(path: Path) -> Iterator[tuple[int, Row]]:
    read = json.JSONDecoder().decode
    for number, line in text_lines(path):
        try:
            row = read(line)
        except (ValueError, RecursionError) as error:
            what = "it is nested too deep" if isinstance(error, RecursionError) else error
            raise InputError(f"{path}:{number}: not a JSON object ({what})") from None
        if type(row) is not dict:
            raise InputError(f"{path}:{number}: expected a JSON object, got {type(row).__name__}")
        yield number, row


def separated_rows(path: Path, separator: str, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Row]]:
    """(line, row) of lines, the first of which is the header; in TSV, a quotation mark is a character.

    Lines of CSV have their ends, and blank ones are among them: they may be within quotation marks.
    """
    number = 1

    def feed() -> Iterator[str]:
        nonlocal number
        given = False
        for place, line in lines:
            number = place
            given = given or bool(line.strip(_BLANK))
            if given:
                yield line if line.endswith("\n") else line + "\n"

    quoting: Any = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    reader = csv.reader(feed(), delimiter=separator, quoting=quoting, strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        refuse_doubled(names, f"{path}:{number}")
        for cells in reader:
            if len(cells) < 2 and not "".join(cells).strip(_BLANK):
                continue
            if len(cells) != len(names):
                raise InputError(
                    f"{path}:{number}: {len(cells)} fields, but the header has {len(names)} ({', '.join(names)})"
                )
            yield number, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise InputError(f"{path}:{number}: {fault_of_csv(error)}") from None


def refuse_doubled(names: Sequence[str], where: str) -> None:
    """An InputError if two columns have one name, since nothing says which counts; columns without a name are none."""
    doubled = next((name for place, name in enumerate(names) if name and name in names[:place]), None)
    if doubled is not None:
        raise InputError(f"{where}: two columns are called {shown(doubled)}; remove one of them, or rename it")


def fault_of_csv(error: csv.Error) -> str:
    """What the reader of CSV found wrong, and the mend; the reader's own words if they are not known."""
    return next((ours for theirs, ours in _FAULTS.items() if theirs in str(error)), str(error))


_FAULTS = {
    "new-line character": "a carriage return stands outside quotation marks; end lines in line feeds",
    "unexpected end": "a quotation mark is not closed; write the file again with a program for CSV",
    "expected after": "text stands behind a closing quotation mark; write the file again with a program for CSV",
    "field limit": f"a cell has more than {csv.field_size_limit():,} characters; write it as JSONL",
}


# -- Parquet and frames -----------------------------------------------------------------------------------


def holds_parquet(path: Path) -> bool:
    """Whether a path is a Parquet file, or a folder that holds some."""
    if path.is_dir():
        return any(file.suffix in (".parquet", ".pq") for file in path.rglob("*.p*q*"))
    return path.suffix in (".parquet", ".pq")


def parquet_files(path: Path) -> list[Path]:
    """A Parquet file, or those of a folder and its subfolders in the order of their names."""
    if not is_folder(path):
        return [path]
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix in (".parquet", ".pq") and not any(part[0] in "._" for part in file.relative_to(path).parts)
    )
    if not files:
        raise InputError(f"{path}: there is no Parquet file in this folder")
    return files


def folder_keys(file: Path) -> list[tuple[str, str]]:
    """The values that the folders of a partitioned dataset give: `…/query_id=17/part-0.parquet`."""
    return [(key, unquote(value)) for key, _, value in (part.partition("=") for part in file.parts[:-1]) if value]


def _parquet_rows(path: Path) -> Iterator[tuple[int, Row]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "files", f"reading {path}") from None
    keys, line = dict(folder_keys(path)), 0
    with opened(path, any_content=True) as stream:
        try:
            with parquet.ParquetFile(stream) as file:
                refuse_doubled(file.schema_arrow.names, str(path))
                for batch in file.iter_batches(1 << 11):
                    columns = {name: column_values(batch, name) for name in batch.schema.names}
                    for cells in zip(*columns.values(), strict=True):
                        line += 1
                        yield line, keys | dict(zip(columns, cells, strict=True))
        except InputError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError, LookupError) as error:
            raise InputError(f"{path}: damaged Parquet after row {line} ({str(error).splitlines()[0]})") from None


def is_frame(value: Any) -> bool:
    """Whether a value is a DataFrame or dataset, with named columns that can be taken by name, or Arrow data."""
    if isinstance(value, (dict, str)):
        return False
    by_name = hasattr(value, "__getitem__")
    has_names = hasattr(value, "columns") or hasattr(value, "column_names")
    return has_names if by_name else hasattr(value, "__arrow_c_stream__")


def as_frame(value: Any, where: str) -> Any:
    """A frame whose columns can be taken by name: the value itself, or the table of other Arrow data.

    Raises
    ------
    InputError
        For a stream of record batches without rows, such as one that was read before.
    """
    if type(value).__module__.split(".")[0] in ("pandas", "polars") or not hasattr(value, "__arrow_c_stream__"):
        return value
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("pyarrow", "files", f"{where} of Arrow data") from None
    table = pyarrow.table(value)
    if not len(table) and not hasattr(value, "__getitem__"):
        raise InputError(
            f"{where}: the stream has no rows; a stream can be read only once: give a table to use it several times"
        )
    return table


def column_names(frame: Any) -> list[Any]:
    """The names of the columns of what `as_frame` gives."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


class OutOfRange:
    """Stands in a cell for a time that Python cannot hold."""

    def __repr__(self) -> str:
        return "a time out of range"


def column_values(frame: Any, name: str) -> list[Any]:
    """A column as a list of Python values."""
    column = frame[name]
    try:
        return list(column.to_list() if hasattr(column, "to_list") else getattr(column, "to_pylist", column.__iter__)())
    except OverflowError:
        return list(map(_value, column))


def _value(scalar: Any) -> Any:
    """The Python value of a cell of Arrow."""
    try:
        return scalar.as_py()
    except OverflowError:
        return OutOfRange()
