"""Writes a trace of live retrievals to a file that may be full, moved or removed while a service runs."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from pydantic import BeforeValidator, Field

from rag_selectivity.errors import InputError
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.log import LOG
from rag_selectivity.results.plain import plain
from rag_selectivity.results.shapes import Amount, Count, Id, Shape
from rag_selectivity.tables.ids import text_id
from rag_selectivity.tables.writing import json_line, named
from rag_selectivity.wording import counted

__all__ = ["SCHEMA", "Line", "LineWriter", "TraceWriter", "is_cut_off", "unfinished_line"]

#: The name and the version that each line carries; lines of a time before have none.
SCHEMA = "rag-selectivity/trace/1"
#: A line that was cut off is looked for in so many bytes at the end of a file.
_LONGEST_LINE = 1 << 24


def opened_to_append(path: str | Path) -> BinaryIO:
    """A file to append to, unbuffered; a new one can be read and written by its owner alone.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    with named(path):
        return open(path, "ab", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600))


def append_whole(file: BinaryIO, line: bytes) -> None:
    """Append a line to a file of `opened_to_append`, whole or not at all: a disk that fills up takes a part of it.

    Raises
    ------
    OSError
        If there is no room for it.
    """
    written = file.write(line)
    if written < len(line):
        os.ftruncate(file.fileno(), file.tell() - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class LineWriter:
    """Appends objects to a file, a line of JSON each, at once. A new file can be read and written by its owner alone.

    The file is opened for each line, so one that is moved or removed, as when logs are rotated, is made anew. A file
    that cannot be written, as on a full disk, does not end what is being watched: the log says it once, and the lines
    are left out and counted.

    Attributes
    ----------
    lost : int
        How many lines could not be written.

    Raises
    ------
    InputError
        If the file cannot be written at the beginning.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self.lost = 0
        self._is_closed = False
        #: How many lines were lost before those that cannot be written at present.
        self._lost_before: int | None = None
        with opened_to_append(self.path) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                self._end_last_line(file)

    def append(self, row: Mapping[str, Any]) -> None:
        """Append an object; what cannot be written is counted in `lost`."""
        with self._lock:
            try:
                if self._is_closed:
                    self.lost += 1
                    return
                line = f"{json_line(row)}\n".encode()
                with opened_to_append(self.path) as file, named(self.path):
                    append_whole(file, line)
            except (InputError, TypeError, ValueError) as error:
                self.lost += 1
                if not isinstance(error, InputError):
                    LOG.error("%s: lacks a line that cannot be written as JSON (%s)", self.path, error)
                elif self._lost_before is None:
                    self._lost_before = self.lost - 1
                    LOG.error("%s. Until it can be written, lines are left out, and counted", error)
                return
            if self._lost_before is not None:
                lost, self._lost_before = counted(self.lost - self._lost_before, "line"), None
                LOG.warning("%s: can be written again; it lacks %s", self.path, lost)

    def close(self) -> None:
        """Write no more; what comes later is counted as lost."""
        with self._lock:
            self._is_closed = True

    def _end_last_line(self, file: BinaryIO) -> None:
        """End the last line of a file to which a killed process wrote; one of which only a part is there goes."""
        line = unfinished_line(self.path)
        if is_cut_off(line):
            os.ftruncate(file.fileno(), file.tell() - len(line))
            LOG.warning("%s: the last line was cut off, as when its process is killed; it was removed", self.path)
        elif line:
            append_whole(file, b"\n")


_Name = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) in (int, float) else value)]
_Share = Annotated[float, Field(ge=0, le=1)]


class Line(Shape):
    """A line of a trace: a retrieval, with what `Retrieval` has of it."""

    query: str | None = None
    query_hash: str | None = None
    shown: list[Id]
    pool: list[Id] | None = None
    query_id: str | None = None
    corpus_size: Count | None = None
    tokens: Count | None = None
    seconds: Amount | None = None
    failed: bool | None = None
    texts: dict[str, str] | None = None
    id: _Name | None = None
    arm: _Name | None = None
    outcome: _Share | None = None


class OutcomeLine(Shape):
    """A line of a trace: the outcome of a request that became known after its retrievals."""

    outcome_of: _Name
    outcome: _Share


class TraceWriter(LineWriter):
    """Appends retrievals to a file, as `LineWriter` does.

    Without `texts`, a hash takes the place of a query's text. The same text always has the same hash, so that labels by
    the text still find it. A hash hides a text from readers, not from somebody who guesses the text and compares.
    """

    def __init__(self, path: str | Path, *, texts: bool) -> None:
        super().__init__(path)
        self.texts = texts

    def write(self, retrieval: Retrieval, at: float) -> None:
        """Append a retrieval that happened at a time, in seconds since 1970."""
        pool, seconds, outcome = retrieval.pool, retrieval.seconds, retrieval.outcome
        row = {
            **({"query": retrieval.query} if self.texts else {"query_hash": text_id(retrieval.query)}),
            **{name: plain(getattr(retrieval, name)) for name in ("query_id", "corpus_size", "tokens", "id", "arm")},
            "shown": list(map(str, retrieval.shown)),
            # Whether retrievals have pools is not known from one that failed.
            "pool": None if pool is None or retrieval.failed else list(map(str, pool)),
            "seconds": None if seconds is None else plain(round(float(seconds), 6)),
            "failed": bool(retrieval.failed) or None,
            "outcome": None if outcome is None else float(outcome),
            "texts": dict(retrieval.texts) if self.texts and retrieval.texts is not None else None,
        }
        known = {name: value for name, value in row.items() if value is not None}
        self.append({"schema": SCHEMA, "time": round(at, 3), **known})

    def write_outcome(self, id_: str, outcome: float, at: float) -> None:
        """Append an outcome that became known after its retrievals."""
        self.append({"schema": SCHEMA, "time": round(at, 3), "outcome_of": id_, "outcome": outcome})


def unfinished_line(path: str | Path) -> bytes:
    """What stands after the last line feed of a file."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return b""
        file.seek(-1, os.SEEK_END)
        if file.read() == b"\n":
            return b""
        file.seek(max(0, size - _LONGEST_LINE))
        return file.read().rpartition(b"\n")[2]


def is_cut_off(line: bytes) -> bool:
    """Whether only a part of a line of JSON is there."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return bool(line)
    return False
