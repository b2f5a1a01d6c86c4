"""The bytes and texts of files, with one kind of error for what cannot be read.

Text is UTF-8, with or without a byte order mark; what begins as UTF-16 or UTF-32 is refused by that name. The path `-`
is standard input. It is held in memory, since readers look at the beginning of a file before they read it.
"""

import gzip
import io
import json
import math
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, TextIO

from rag_selectivity.errors import InputError, did_you_mean, needing

STANDARD_INPUT = Path("-")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: A file from this size on is read faster by a scan, whose library takes a while to load.
_LARGE = 4 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def is_path(value: Any) -> bool:
    """Whether a value names a file or folder."""
    return isinstance(value, (str, Path))


def is_large(path: Path) -> bool:
    """Whether a file is so large that a scan is quicker, as a folder of Parquet may be."""
    if path == STANDARD_INPUT:
        return len(_content(sys.stdin)) >= _LARGE
    return os.path.isdir(path) or (os.path.isfile(path) and path.stat().st_size >= _LARGE)


@contextmanager
def opened(path: Path, *, any_content: bool = False) -> Iterator[IO[bytes]]:
    """The file's bytes, decompressed when it is gzipped or of zstd, whatever its name.

    Raises
    ------
    InputError
        If it cannot be read, or is text in UTF-16 or UTF-32, unless it may have `any_content`.
    """
    try:
        with _opened(path) as plain, _unpacked(path, plain) as file:
            if not any_content:
                _refuse_other_encodings(path, file.peek(4)[:4])
            yield file
    except FileNotFoundError:
        near = ""
        with suppress(OSError):
            near = did_you_mean(path.name, os.listdir(path.parent), least=0.8)
        raise InputError(f"{path}: there is no such file{near}") from None
    except io.UnsupportedOperation:
        raise InputError(
            f"{path}: a pipe cannot be read from its beginning again; give - and pipe it into standard input, or write "
            f"it to a file first"
        ) from None
    except Exception as error:
        kind = "zstd" if type(error).__name__ == "ZstdError" else "gzip"
        if kind == "zstd" or isinstance(error, (zlib.error, EOFError, gzip.BadGzipFile)):
            mend = "copy it again from where it came"
            raise InputError(f"{path}: the {kind} data is damaged ({error}); {mend}") from None
        if isinstance(error, OSError):
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
        raise


def _opened(path: Path) -> Any:
    if path == STANDARD_INPUT:
        return io.BufferedReader(io.BytesIO(_content(sys.stdin)))
    try:
        return path.open("rb")
    except ValueError:
        raise InputError(f"{str(path)!r} cannot be the path of a file; give another one") from None


@lru_cache(maxsize=1)
def _content(stream: TextIO) -> bytes:
    """All that a stream holds; kept, since a stream can be read only once."""
    return stream.buffer.read()


def _unpacked(path: Path, plain: Any) -> Any:
    head = plain.read(4)
    plain.seek(0)
    if head.startswith(_GZIP):
        # Python's reader asks for 8 kB at a time, and after each waits for other threads: it gets more.
        read = lambda size: plain.read(1 << 18 if size == io.DEFAULT_BUFFER_SIZE else size)  # noqa: E731
        return gzip.GzipFile(fileobj=SimpleNamespace(read=read, seek=plain.seek))
    if head != _ZSTD:
        return plain
    with needing("zstandard", "files", f"reading {path}"):
        import zstandard
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(plain, read_across_frames=True))


def _refuse_other_encodings(path: Path, head: bytes) -> None:
    """An InputError for the first four bytes of text in UTF-16 or UTF-32, with or without a byte order mark."""
    wide = head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")) or head.count(0) == 3
    if wide or head.startswith((b"\xff\xfe", b"\xfe\xff")) or (head.count(0) == 2 and head[:2].count(0) == 1):
        encoding = "UTF-32" if wide else "UTF-16"
        raise InputError(f"{path}: the file is text in {encoding}, and only UTF-8 is read; save it again as UTF-8")


@contextmanager
def damage_first(path: Path) -> Iterator[None]:
    """A fault in the text of a packed file is told as the damage of the file, where it is damaged."""
    try:
        yield
    except InputError:
        if not os.path.isdir(path):
            with opened(path, any_content=True) as file:
                while file.read(_LARGE):
                    pass
        raise


def first_bytes(path: Path, size: int = 4096) -> bytes:
    """The beginning of a file, unpacked."""
    with opened(path, any_content=True) as file:
        return file.read(size)


def first_line(path: Path) -> str:
    """The first line of a file."""
    return first_bytes(path, 1 << 16).split(b"\n", 1)[0].decode("utf-8-sig", "replace").rstrip("\r")


def byte_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(line number, bytes) of each line, with its end."""
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def text_lines(path: Path, *, whole: bool = False) -> Iterator[tuple[int, str]]:
    """(line number, text) of each line that is not blank; if `whole`, of every line, with its end."""
    for number, line in byte_lines(path):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise not_utf8(path, number) from None
        if whole:
            yield number, text
        elif line.strip():
            yield number, text.rstrip("\r\n")


def not_utf8(path: str | Path, line: int) -> InputError:
    """The error for a line of other bytes."""
    return InputError(f"{path}:{line}: this line is not UTF-8 text; save the file as UTF-8")


# -- documents --------------------------------------------------------------------------------------------


def json_value(text: str, *, stored: bool = False) -> Any:
    """The value of a JSON text.

    Python reads NaN, Infinity and 1e999 too: people's tables may hold them, and what this package has `stored` does
    not.

    Raises
    ------
    ValueError
        If it is not JSON or is nested too deep, or if it is `stored` and holds a number that is not finite.
    """
    try:
        return _STORED.decode(text) if stored else json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"it holds {text[:80]}, which is no finite number")
    return value


_STORED = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def document(path: Path, wrong: str, mend: str = "", *, toml: bool = False) -> Any:
    """The value of a file with one JSON document, which holds neither NaN nor Infinity, or the table of a TOML file.

    Raises
    ------
    InputError
        If the file cannot be read, or is none: `wrong`, why, and `mend`.
    """
    import tomllib

    with opened(path) as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
        return tomllib.loads(text) if toml else json_value(text, stored=True)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {wrong} ({error}){mend}") from None
