"""Opening plain and gzipped files, with one kind of error for all that can go wrong.

Text is UTF-8, with or without a byte order mark; what begins as UTF-16 or UTF-32 is refused by that name. The path `-`
is standard input. It is held in memory, since readers look at the beginning of a file before they read it.
"""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TextIO, cast

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.io.limits import json_value
from rag_selectivity.io.unpacking import GZIP_MARK, Unpacked

STANDARD_INPUT = Path("-")
_BLOCK = 1 << 20
_UNPACKED_AT_ONCE = 1 << 17
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; one that cannot be looked up is none, and `opened` says why."""
    try:
        return path.is_dir()
    except OSError:
        return False


@contextmanager
def opened(path: Path, *, any_content: bool = False) -> Iterator[IO[bytes]]:
    """The file's bytes, decompressed when it is gzipped, whatever its name.

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
            if head.startswith(GZIP_MARK):
                with io.BufferedReader(Unpacked(path, plain), _UNPACKED_AT_ONCE) as unpacked:
                    if not any_content:
                        _refuse_other_encodings(path, unpacked.peek(4)[:4])
                    yield cast("IO[bytes]", unpacked)
            else:
                plain.seek(0)
                if not any_content:
                    _refuse_other_encodings(path, head)
                yield plain
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (zlib.error, EOFError) as error:
        raise InputError(f"{path}: the gzip data is damaged ({error}); copy it again from where it came") from None
    except io.UnsupportedOperation:
        raise InputError(
            f"{path}: a pipe cannot be read from its beginning again; give - and pipe it into standard input, or write "
            f"it to a file first"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


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
    encoding = _OTHER_MARKS.get(head) or _OTHER_MARKS.get(head[:2]) or _WIDE.get(bytes(map(bool, head)))
    if encoding is not None:
        raise InputError(f"{path}: the file is text in {encoding}, and only UTF-8 is read; save it again as UTF-8")


_OTHER_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
#: Which of the first four bytes are not zero, where a text begins with characters of ASCII and without a mark.
_WIDE = {b"\1\0\0\0": "UTF-32", b"\0\0\0\1": "UTF-32", b"\1\0\1\0": "UTF-16", b"\0\1\0\1": "UTF-16"}


def first_bytes(path: Path, size: int = 4096) -> bytes:
    """The beginning of a file."""
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


def json_document(path: Path) -> Any:
    """The value of a file with one JSON document, which holds neither NaN nor Infinity.

    Raises
    ------
    InputError
        As `opened`.
    ValueError
        As `json_value`, or if it is not UTF-8.
    """
    return json_value(whole_text(path), stored=True)


def toml_document(path: Path) -> dict[str, Any]:
    """The table of a TOML file.

    Raises
    ------
    InputError
        As `opened`.
    ValueError
        If it is not UTF-8, is no TOML, or is nested too deep.
    """
    import tomllib

    try:
        return tomllib.loads(whole_text(path))
    except RecursionError:
        raise ValueError("it is nested too deep") from None


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines of a file: their bytes, the number of the first of them, and how many line ends they have."""

    text: bytes
    first: int
    ends: int

    def decoded(self, path: Path, *, whole: bool = False) -> Iterator[tuple[int, str]]:
        """(line number, text) of each line that is not blank; if `whole`, of every line, with its end."""
        return decoded_lines(path, io.BytesIO(self.text), self.first, whole=whole)


def line_blocks(file: IO[bytes], first: int = 1, *, blocks: int = 1) -> Generator[Lines]:
    """The lines of a file from where it stands, some blocks at a time; `first` is the number of the next line."""
    while text := file.read(blocks * _BLOCK):
        text += file.readline()
        if first == 1:
            text = text.removeprefix(_BYTE_ORDER_MARK)
        # Several times as fast as bytes.count.
        ends = int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")))
        yield Lines(text, first, ends)
        first += ends


def first_line(path: Path, file: IO[bytes]) -> tuple[int, str]:
    """(line number, text) of the first line that is not blank, or 0; the file stands behind it then."""
    number = 0
    while line := file.readline():
        number += 1
        line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        for _, text in decoded_lines(path, [line], number):
            return number, text
    return 0, ""


def text_lines(path: Path, *, whole: bool = False) -> Iterator[tuple[int, str]]:
    """(line number, text) of each line that is not blank; if `whole`, of every line, with its end."""
    with opened(path) as file:
        for lines in line_blocks(file):
            yield from lines.decoded(path, whole=whole)


def decoded_lines(
    path: Path, lines: Iterable[bytes], first: int = 1, *, whole: bool = False
) -> Iterator[tuple[int, str]]:
    """As `text_lines`, of some lines of a file; `first` is the number of the first of them."""
    for number, line in enumerate(lines, first):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise InputError(f"{path}:{number}: this line is not UTF-8 text; save the file as UTF-8") from None
        # White space of ASCII alone: other characters may be an id.
        if whole:
            yield number, text
        elif line.strip():
            yield number, text.rstrip("\r\n")
