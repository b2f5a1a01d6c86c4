"""Rows of files and frames, one by one, with the line of each and one kind of error for what is wrong."""

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, needing
from rag_selectivity.tables.cells import check_one_of, iterated, shown
from rag_selectivity.tables.files import byte_lines, first_bytes, first_line, json_value, not_utf8, opened, text_lines
from rag_selectivity.tables.names import COLUMNS, optional_column

#: A row of a table by its column names.
Row = dict[str, Any]
#: White space of ASCII: other characters may belong to an id.
_BLANK = " \t\r\n\v\f"
#: Formats of label stores, and the modules above this one that read them: `recognised` and `read_labels`.
STORES = {
    "store": "rag_selectivity.grading.labels_format",
    "exported": "rag_selectivity.grading.labels_format",
    "golden": "rag_selectivity.golden.golden_set",
}
SEPARATORS = {"csv": ",", "tsv": "\t"}
#: A file whose first line has none of these names has no header.
_FIRST_NAMES = ("_id", "id", *COLUMNS["query"], *COLUMNS["passage"], *COLUMNS["text"])
_PARQUET = (".parquet", ".pq")
FORMATS = ("trec", "beir", "tsv", "jsonl", "csv", "parquet", *STORES)
#: The fields of a line of TREC, by the kind of the file and their number; MS MARCO's runs have three.
FIELDS = {
    ("labels", 4): ("query", "0", "passage", "grade"),
    ("run", 6): ("query", "Q0", "passage", "rank", "score", "tag"),
    ("run", 3): ("query", "passage", "rank"),
}


class NoRowsError(InputError):
    """A table has no rows: for some tables that is all there is to say."""


# -- formats ----------------------------------------------------------------------------------------------


def kind_of(path: Path, given: str | None = None) -> str:
    """The format that was given, or the one that the file's content or suffix shows; trec if none does.

    Raises
    ------
    InputError
        If the given one is not known, or the file cannot be read.
    """
    if given is not None:
        check_one_of("format", given, FORMATS)
        return given
    folder = os.path.isdir(path)
    head = b"" if folder else first_bytes(path)
    store: str | None = import_module(STORES["golden" if folder else "store"]).recognised(path, head)
    if store is not None or folder:
        return store or ("parquet" if any(path.rglob("*.p*q*")) else "beir")
    suffix, first = suffix_of(path), first_line(path)
    if head.startswith(b"PAR1") or suffix in _PARQUET:
        return "parquet"
    if suffix in (".jsonl", ".ndjson") or first.lstrip().startswith("{"):
        return "jsonl"
    for name, sign in SEPARATORS.items():
        header = [each.strip(' "') for each in first.split(sign)] if sign in first else []
        if suffix == f".{name}" == ".csv" or optional_column(header, COLUMNS["query"]) is not None:
            return name
    return "trec"


def suffix_of(path: Path) -> str:
    """The last suffix of a file in lower case, those of packed files left out."""
    return next((each.lower() for each in reversed(path.suffixes) if each.lower() not in (".gz", ".zst")), "")


# -- text -------------------------------------------------------------------------------------------------


def read_records(source: str | Path, kind: str | None = None) -> Iterator[tuple[int, Row]]:
    """(line, row) of a table with named columns; rows of Parquet count from 1.

    Without a suffix, the separator in its first line shows the format. A file of MS MARCO has no header, but an id, a
    tab and a text on each line.

    Raises
    ------
    InputError
        If it has no rows or is no table; while it is read, for a line that is wrong.
    """
    path = Path(source)
    kind = kind or kind_of(path)
    if kind == "exported":
        kind = suffix_of(path)[1:]
    elif kind == "trec":
        first = first_line(path)
        ids = first.split("\t")
        if len(ids) == 2 and not first.startswith("{") and optional_column(ids, _FIRST_NAMES) is None:
            kind = "headless"
        elif not path.suffix:
            kind = next((name for name in ("tsv", "csv") if SEPARATORS[name] in first), kind)
    if kind not in _READERS:
        with opened(path):  # text in another encoding than UTF-8 is refused by its name
            raise InputError(f"{path}: expected JSONL, CSV or Parquet rows")
    rows = _READERS[kind](path)
    if (first_row := next(rows, None)) is None:
        raise NoRowsError(f"{path}: the file has no rows")
    return chain([first_row], rows)


def trec_rows(path: Path, kind: str, long_tags: bool) -> Iterator[tuple[int, Row]]:
    """(line, row) of each line of TREC; only white space of ASCII separates its fields.

    With `long_tags`, all that follows the fifth field of a run is its tag.
    """
    names: Sequence[str] = ()
    for line, text in byte_lines(path):
        fields = text.split()
        if not fields:
            continue
        names = names or FIELDS.get((kind, len(fields))) or FIELDS[kind, 4 if kind == "labels" else 6]
        if len(fields) != len(names) and not (long_tags and len(fields) > len(names) == 6):
            start = b" ".join(fields)[:60].decode("utf-8", "replace")
            swapped = "the labels and the run seem to be swapped; " * (len(fields) == 6 and fields[4][-1:].isdigit())
            raise InputError(
                f"{path}:{line}: {swapped}expected {len(names)} fields ({' '.join(names)}), found {len(fields)}: "
                f"{start!r}; qrels have 4 and come first, runs have 6. If an id holds a blank, write the file as "
                f'TSV or JSONL; if the tag of a run does, give policy="trec_eval" (-c rules.policy=trec_eval)'
            )
        try:
            yield line, dict(zip(names, b"\n".join(fields).decode().split("\n"), strict=False))
        except UnicodeDecodeError:
            raise not_utf8(path, line) from None


def _headless_rows(path: Path) -> Iterator[tuple[int, Row]]:
    for number, line in text_lines(path):
        id_, tab, text = line.partition("\t")
        if not tab:
            raise InputError(f"{path}:{number}: expected an id, a tab and a text")
        yield number, {"_id": id_, "text": text}


def _json_rows(path: Path) -> Iterator[tuple[int, Row]]:
    for number, line in text_lines(path):
        try:
            row = json_value(line)
        except ValueError as error:
            raise InputError(f"{path}:{number}: not a JSON object ({error})") from None
        if type(row) is not dict:
            raise InputError(f"{path}:{number}: expected a JSON object, got {type(row).__name__}")
        yield number, row


def _separated_rows(separator: str, path: Path) -> Iterator[tuple[int, Row]]:
    """(line, row) of lines, the first of which is the header; in TSV, a quotation mark is a character."""
    quoting: Any = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    lines = map(itemgetter(1), text_lines(path, whole=True))
    reader = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
    names: list[str] = []
    try:
        for cells in reader:
            if (len(cells) < 2 or separator == "\t") and not "".join(cells).strip(_BLANK):
                continue
            where = f"{path}:{reader.line_num}"
            if not names:
                names = [name.strip() for name in cells]
                refuse_doubled(names, where)
            elif len(cells) != len(names):
                raise InputError(
                    f"{where}: {len(cells)} fields, but the header has {len(names)} ({', '.join(names)}); "
                    f"add or remove some"
                )
            else:
                yield reader.line_num, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: not CSV ({error}); write it with a program for CSV") from None


def refuse_doubled(names: Sequence[str], where: str) -> None:
    """An InputError if two columns have one name, since nothing says which counts; columns without a name are none."""
    doubled = next((name for place, name in enumerate(names) if name and name in names[:place]), None)
    if doubled is not None:
        raise InputError(f"{where}: two columns are called {shown(doubled)}; remove one of them, or rename it")


# -- Parquet and frames -----------------------------------------------------------------------------------


def parquet_files(path: Path) -> list[Path]:
    """A Parquet file, or those of a folder and its subfolders in the order of their names."""
    if not os.path.isdir(path):
        return [path]
    inside = sorted(file.relative_to(path) for file in path.rglob("*") if file.suffix in _PARQUET)
    files = [path / file for file in inside if not any(part[0] in "._" for part in file.parts)]
    if not files:
        raise InputError(f"{path}: there is no Parquet file in this folder")
    return files


def _parquet_rows(path: Path) -> Iterator[tuple[int, Row]]:
    with needing("pyarrow", "files", f"reading {path}"):
        import pyarrow
        from pyarrow import parquet
    for place in parquet_files(path):
        row = 0
        with opened(place, any_content=True) as stream:
            try:
                with parquet.ParquetFile(stream) as file:
                    for batch in file.iter_batches(1 << 11):
                        for row, cells in enumerate(frame_rows(batch, str(place)), row + 1):  # noqa: B020
                            yield row, cells
            except InputError:
                raise
            except (pyarrow.ArrowException, OSError, ValueError, ArithmeticError, LookupError) as error:
                raise InputError(f"{place}: damaged Parquet after row {row} ({str(error).splitlines()[0]})") from None


_READERS: dict[str, Callable[[Path], Iterator[tuple[int, Row]]]] = {
    "parquet": _parquet_rows,
    "jsonl": _json_rows,
    "headless": _headless_rows,
    **{name: partial(_separated_rows, separator) for name, separator in SEPARATORS.items()},
}


def is_frame(value: Any) -> bool:
    """Whether a value is a DataFrame or dataset, with named columns that can be taken by name, or Arrow data."""
    if isinstance(value, (dict, str)):
        return False
    # Of the class, since a lazy frame has to be planned before it names its columns.
    has_names = hasattr(type(value), "columns") or hasattr(value, "column_names")
    return has_names if hasattr(value, "__getitem__") else hasattr(value, "__arrow_c_stream__")


def records(source: Any, name: str, cells: Sequence[str], least: int = 2) -> Iterator[tuple[int, Row]]:
    """(number, row) of a frame, or of rows: dicts, or tuples of these cells, all of one length.

    Tuples may lack the last cells, down to `least` of them.

    Raises
    ------
    InputError
        Beginning with `name`, for anything else.
    """
    if is_frame(source):
        source = frame_rows(source, name)
    width = 0
    for number, row in enumerate(iterated(source, f"{name}: give a file, a frame, a mapping or a list of rows"), 1):
        if isinstance(row, (tuple, list)) and least <= len(row) <= len(cells):
            width = width or len(row)
            if len(row) != width:
                raise InputError(f"{name}, row {number}: expected {width} cells, as in the others, got {shown(row)}")
            row = dict(zip(cells, row, strict=False))
        if not isinstance(row, Mapping):
            form = ", ".join(cells)
            raise InputError(f"{name}, row {number}: expected {{column: value}} or ({form}), got {shown(row)}")
        yield number, {str(column): cell for column, cell in row.items()}


def frame_rows(frame: Any, where: str) -> Iterator[Row]:
    """The rows of a frame, with Python's own values."""
    frame = as_frame(frame, where)
    names = column_names(frame)
    refuse_doubled(names, where)
    columns = [each.to_pylist() if hasattr(each, "to_pylist") else list(each) for each in map(frame.__getitem__, names)]
    return (dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True))


def as_frame(value: Any, where: str) -> Any:
    """A frame whose columns can be taken by name: the value itself, or the table of other Arrow data.

    Raises
    ------
    InputError
        For a stream of record batches without rows, such as one that was read before.
    """
    if type(value).__module__.split(".")[0] in ("pandas", "polars") or not hasattr(value, "__arrow_c_stream__"):
        return value.collect() if hasattr(value, "collect") else value
    with needing("pyarrow", "files", f"{where} of Arrow data"):
        import pyarrow
    table = pyarrow.table(value)
    if not len(table) and not hasattr(value, "__getitem__"):
        raise InputError(
            f"{where}: the stream has no rows; a stream can be read only once: give a table to use it several times"
        )
    return table


def column_names(frame: Any) -> list[Any]:
    """The names of the columns of what `as_frame` gives."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
