"""The one way to write: rows as CSV, JSONL and Parquet, data as JSON, and files whole or not at all."""

import csv
import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

from rag_selectivity.errors import InputError, needing

#: What stands in a file: a text in UTF-8, bytes, or a function that writes bytes.
Content = str | bytes | Callable[[BinaryIO], object]
Row = dict[str, Any]
#: So many characters of a name stand in that of its partial file, since the length of names is limited.
_NAMED = 40
#: How a cell begins that programs for sheets take for a formula, some of them in full width too, or one made harmless.
_FORMULA = re.compile(r"'*(?:[=+@\t\r\n＝＋－＠]|-(?!(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z))")
#: What JSON may hold as it is, but a terminal would obey, and halves of pairs of surrogates, which UTF-8 lacks.
_TO_ESCAPE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


# -- files ------------------------------------------------------------------------------------------------


def write_whole(path: str | Path, content: Content) -> None:
    """Write one file, as `write_files` does."""
    write_files({path: content})


def write_files(contents: Mapping[str | Path, Content] | Mapping[Path, Content]) -> None:
    """Write files: all contents are written beside their targets, which are replaced only when all are complete.

    A symbolic link is followed. A pipe or a device (`/dev/stdout`) is written into. An error, a full disk or Ctrl-C
    leaves the old files as they were, and no other file.

    Raises
    ------
    InputError
        If a file cannot be written, or a text cannot be encoded.
    BrokenPipeError
        If nobody reads a pipe any more.
    """
    files: dict[str | Path, Any] = {}
    with ExitStack() as stack:
        for path, content in contents.items():
            with named(path):
                file = files[path] = stack.enter_context(_target(path))
                if callable(content):
                    content(file)
                else:
                    file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                if not isinstance(file, BytesIO):
                    os.fsync(file.fileno())
        for path, file in sorted(files.items(), key=lambda item: isinstance(item[1], BytesIO)):
            with named(path):
                if isinstance(file, BytesIO):
                    with open(path, "ab", buffering=0) as device:
                        device.write(file.getvalue())
                else:
                    file.close()
                    os.replace(file.name, os.path.realpath(path))


def refuse_unwritable(path: str | Path) -> None:
    """Raise now, before any work, the InputError that `write_files` would raise after it for this file."""
    with named(path), _target(path):
        pass


def refuse_unwritable_folder(path: str | Path) -> None:
    """As `refuse_unwritable`, for files in a folder that is there or will be made."""
    with named(path):
        place = next(each for each in (Path(path), *Path(path).parents) if each.exists())
        with _target(place / os.urandom(6).hex()):
            pass


def is_written_into(path: str | Path) -> bool:
    """Whether a path is a pipe, a device or an open file (`/dev/stdout`): what is written there replaces no file."""
    with suppress(FileNotFoundError, NotADirectoryError):
        is_regular = stat.S_ISREG(os.stat(path).st_mode)
        return not is_regular or os.path.abspath(path).startswith(("/dev/", "/proc/"))
    return False


def mend_of(path: str | Path, error: OSError) -> str:
    """The end of a message: what can be done about an error of the system."""
    mends = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space there, or name another file")
    mends[errno.ENOENT] = f"make the folder {os.path.dirname(os.path.realpath(path))} first"
    mends[errno.ENOTDIR] = f"{os.path.dirname(path)} is a file: name another place"
    mends[errno.EBADF] = "no file is open there: open one in the shell, as in >results.txt, or name a file"
    return f"; {mends.get(error.errno or 0, 'name another file')}"


@contextmanager
def named(path: str | Path) -> Iterator[None]:
    """What an error within says of the file; an error of another file that a content reads is left."""
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise InputError(f"{str(path)!r}: cannot be written (no file can have this name): name a file")
    try:
        yield
    except BrokenPipeError:
        raise
    except UnicodeEncodeError as error:
        sign = error.object[error.start : error.start + 1]
        raise InputError(
            f"{str(path)!r}: cannot be written (it or its text holds {sign!r}, half of a pair of surrogates, which "
            f"UTF-8 lacks); remove it from the id or the text that holds it"
        ) from None
    except OSError as error:
        other = str(error.filename or path)
        if other != os.fspath(path) and not other.endswith(".partial"):
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror or error}){mend_of(path, error)}") from None


@contextmanager
def _target(path: str | Path) -> Iterator[BinaryIO]:
    """A new file beside the target, removed if it has not taken its place; memory for what is written into."""
    if os.fspath(path).endswith(os.sep) or os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if os.path.exists(path) and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if is_written_into(path):
        yield BytesIO()
        return
    folder, name = os.path.split(os.path.realpath(path))
    partial = os.path.join(folder, f".{name[:_NAMED]}.{os.urandom(6).hex()}.partial")
    # Permissions alone do not say whether a file can be made.
    file = open(partial, "xb")  # noqa: SIM115 - what a full disk has no room for would be written again at the end
    try:
        yield file
    finally:
        with suppress(OSError):
            file.close()
        with suppress(OSError):
            os.unlink(partial)


# -- rows -------------------------------------------------------------------------------------------------


def write_rows(path: str | Path, rows: list[Row], *, columns: Sequence[str] = ()) -> None:
    """Write rows as .csv, .jsonl or .parquet by the suffix (`columns` as in `csv_text`).

    Raises
    ------
    InputError, MissingExtraError
        If the suffix is another one, or pyarrow is missing.
    """
    suffix = refuse_suffix(path)
    if suffix == ".csv":
        write_whole(path, csv_text(rows, line_end="\r\n", columns=columns))
    elif suffix == ".jsonl":
        write_whole(path, "".join(f"{json_line(row)}\n" for row in rows))
    else:
        import pyarrow
        from pyarrow import parquet

        table = pyarrow.Table.from_pylist(rows) if rows else pyarrow.table({name: [""] for name in columns})[:0]
        write_whole(path, lambda file: parquet.write_table(table, file))


def refuse_suffix(path: str | Path) -> str:
    """The suffix of a file for rows, in lower case; an error if such files cannot be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".jsonl", ".parquet"):
        raise InputError(f"{path}: cannot write {suffix or 'a file without suffix'}; use .csv, .jsonl or .parquet")
    if suffix == ".parquet":
        with needing("pyarrow", "files", f"writing {Path(path).name}"):
            import pyarrow.parquet  # noqa: F401
    return suffix


# -- CSV --------------------------------------------------------------------------------------------------


def csv_text(rows: Sequence[Row], *, line_end: str = "\n", columns: Sequence[str] = ()) -> str:
    """Rows as CSV with a header, in which `columns` come first: they are all that a table without rows has.

    An apostrophe stands before each cell that a program for sheets takes for a formula, so that it is shown as text.
    Lists and dicts are written as JSON.
    """
    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    written: list[str] = []
    # The writer quotes line feeds and carriage returns only if both end its own lines.
    writer: Any = csv.writer(SimpleNamespace(write=written.append), lineterminator="\r\n")
    for line in [names, *([row.get(name, "") for name in names] for row in rows)]:
        cells = [json_line(cell) if isinstance(cell, (list, tuple, dict)) else cell for cell in line]
        writer.writerow([f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell for cell in cells])
    return "".join(line.removesuffix("\r\n") + line_end for line in written)


def without_apostrophe(cell: str) -> str:
    """The text that a cell of `csv_text` was made of.

    >>> print(csv_text([{"a": "=1+1", "b": -3}]), end="")
    a,b
    '=1+1,-3
    >>> without_apostrophe("'=1+1"), without_apostrophe("'a")
    ('=1+1', "'a")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


# -- JSON -------------------------------------------------------------------------------------------------


def json_line(data: Any) -> str:
    """Data as JSON on one line.

    Characters that a terminal would obey are escaped, as is what UTF-8 lacks; a reader gets the same data.

    >>> json_line({"id": "é\x9b"})
    '{"id": "é\\\\u009b"}'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    return _TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_text(data: Any, indent: int | None = 2, newline: str = "\n") -> str:
    """Plain data as JSON; a list of numbers or texts stands on one line, however long. `newline` is for parts of it.

    >>> print(json_text({"K": [1, 5, 10], "rows": [{"K": 1}]}))
    {
      "K": [1, 5, 10],
      "rows": [
        {
          "K": 1
        }
      ]
    }
    """
    is_dict = isinstance(data, dict)
    of = data.values() if is_dict else data if isinstance(data, (list, tuple)) else ()
    if indent is None or not (of if is_dict else any(isinstance(item, (dict, list, tuple)) for item in of)):
        return json_line(data)
    inner = newline + " " * indent
    items = [json_text(item, indent, inner) for item in of]
    if is_dict:
        items = [f"{json_line(str(key))}: {item}" for key, item in zip(data, items, strict=True)]
    before, closing = "{}" if is_dict else "[]"
    return f"{before}{inner}{f',{inner}'.join(items)}{newline}{closing}"
