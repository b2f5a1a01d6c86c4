"""The bytes of gzipped files, up to a limit.

Python's own reader unpacks 8 KB at a time; larger pieces take a quarter less time, and leave the interpreter to others.
"""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import IO, Any

from rag_selectivity.errors import InputError

#: A compressed file may grow to so many bytes.
MOST_UNPACKED = 64 * 10**9
#: What every gzipped file begins with.
GZIP_MARK = b"\x1f\x8b"
_PACKED_AT_ONCE = 1 << 18
_LOOKED_THROUGH_AT_ONCE = 1 << 20
#: zlib's number for a gzip header and check sums.
_GZIP = 31


class Unpacked(io.RawIOBase):
    """The bytes of a gzipped file, up to `MOST_UNPACKED`; several gzip members are read one after the other."""

    def __init__(self, path: Path, packed: IO[bytes]) -> None:
        self._path, self._packed = path, packed
        self._start()

    def _start(self) -> None:
        self._packed.seek(0)
        self._rest = b""
        self._place = 0
        self._member = zlib.decompressobj(_GZIP)

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is: what is before a place is unpacked anew, or looked through."""
        return True

    def tell(self) -> int:
        """The place in the unpacked bytes."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in the unpacked bytes, at most to their end."""
        if whence == io.SEEK_END:
            while self.read(_LOOKED_THROUGH_AT_ONCE):
                pass
        place = offset + (self._place if whence != io.SEEK_SET else 0)
        if place < self._place:
            self._start()
        while self._place < place and self.read(min(_LOOKED_THROUGH_AT_ONCE, place - self._place)):
            pass
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Unpack some bytes.

        Raises
        ------
        InputError
            If the file has grown above the limit.
        zlib.error, EOFError
            If it is damaged, or ends too early.
        """
        view = memoryview(buffer)
        data = self._next(len(view)) if len(view) else b""
        view[: len(data)] = data
        self._place += len(data)
        if self._place > MOST_UNPACKED:
            raise InputError(
                f"{self._path}: the compressed file grows above {MOST_UNPACKED:,} bytes; unpack it first if it really "
                f"is so large"
            )
        return len(data)

    def _next(self, most: int) -> bytes:
        while True:
            if self._member.eof:
                self._rest = (self._member.unused_data or self._packed.read(_PACKED_AT_ONCE)).lstrip(b"\0")
                while not self._rest and (more := self._packed.read(_PACKED_AT_ONCE)):
                    self._rest = more.lstrip(b"\0")
                if not self._rest:
                    return b""
                self._member = zlib.decompressobj(_GZIP)
            self._rest = self._rest or self._packed.read(_PACKED_AT_ONCE)
            ended = not self._rest
            data = self._member.decompress(self._rest, most)
            self._rest = self._member.unconsumed_tail
            if data:
                return data
            if ended and not self._member.eof:
                raise EOFError("it ends before its end-of-stream marker")
