"""Opening plain and gzipped files, with one kind of error for all that can go wrong.

The path `-` is standard input. It is held in memory, since readers look at the beginning of a file before they read it.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TextIO, cast

from rag_selectivity.errors import InputError

STANDARD_INPUT = Path("-")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, decompressed when it is gzipped, whatever its name."""
    try:
        with io.BytesIO(_content(sys.stdin)) if path == STANDARD_INPUT else path.open("rb") as plain:
            packed = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=plain) as unpacked:
                    yield cast("IO[bytes]", unpacked)
            else:
                yield plain
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the gzip data is damaged ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


@lru_cache(maxsize=1)
def _content(stream: TextIO) -> bytes:
    """All that a stream holds; kept, since a stream can be read only once."""
    return stream.buffer.read()


def first_bytes(path: Path, size: int = 4096) -> bytes:
    """The beginning of a file."""
    with opened(path) as file:
        return file.read(size)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(line number, text) of each line that is not blank."""
    with opened(path) as file:
        yield from decoded_lines(path, file)


def decoded_lines(path: Path, lines: Iterable[bytes], first: int = 1) -> Iterator[tuple[int, str]]:
    """As `text_lines`, of some lines of a file; `first` is the number of the first of them."""
    for number, line in enumerate(lines, first):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{path}:{number}: this line is not UTF-8 text") from None
        if text.strip():
            yield number, text.rstrip("\r\n")
