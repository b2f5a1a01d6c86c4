"""Writes a trace of live retrievals: a file that may be full, moved or removed while a service runs."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rag_selectivity.data.ids import text_id
from rag_selectivity.errors import InputError
from rag_selectivity.io.log import LOG
from rag_selectivity.io.replacing import append_whole, opened_to_append
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.wording import counted

__all__ = ["SCHEMA", "LineWriter", "TraceWriter", "is_cut_off", "unfinished_line"]

#: The name and the version that each line carries; lines of a time before have none.
SCHEMA = "rag-selectivity/trace/1"
#: Made once, since `json.dumps` makes another one for each line.
_encode = json.JSONEncoder(ensure_ascii=False, default=lambda value: _plain(value)).encode
#: A file that could not be written is tried again after so many seconds: what fails takes time from the application.
_SECONDS_UNTIL_RETRY = 0.1
#: Whether the file was renamed is looked up after so many seconds, since it takes as long as half a line.
_SECONDS_UNTIL_LOOK = 0.1
#: A line that was cut off is looked for in so many bytes at the end of a file.
_LONGEST_LINE = 1 << 24


class LineWriter:
    """Appends objects to a file, a line of JSON each, at once. A new file can be read and written by its owner alone.

    A file that is removed, as when logs are rotated, is made anew with the next line; one that is renamed within a
    tenth of a second, and the lines before are in the renamed file. A file that cannot be written, as on a full disk,
    does not end what is being watched: the log says it once, the lines are left out and counted, and the writer tries
    again ten times a second.

    Raises
    ------
    InputError
        If the file cannot be written at the beginning.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._lost = self._lost_before = 0
        self._fails = self._is_closed = False
        self._retry_at = self._look_at = 0.0
        self._file: BinaryIO | None = None
        self._place: tuple[int, int] | None = None
        self._open()

    @property
    def lost(self) -> int:
        """How many lines could not be written."""
        return self._lost

    def append(self, row: Mapping[str, Any]) -> None:
        """Append an object; what cannot be written is counted in `lost`."""
        try:
            line = _line(row)
        except (TypeError, ValueError) as error:
            with self._lock:
                self._lost += 1
            LOG.error("%s: lacks a line that cannot be written as JSON (%s)", self.path, error)
            return
        with self._lock:
            if self._is_closed or (self._fails and time.monotonic() < self._retry_at):
                self._lost += 1
                return
            try:
                self._append(line)
            except (OSError, InputError) as error:
                self._failed(error)
            else:
                if self._fails:
                    self._recovered()

    def close(self) -> None:
        """Close the file; what comes later is counted as lost."""
        with self._lock:
            self._is_closed = True
            self._close_file()

    # -- the file, with the lock held ----------------------------------------------------------------

    def _open(self) -> BinaryIO:
        file = opened_to_append(self.path)
        try:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode):
                self._end_last_line(file)
        except BaseException:
            file.close()
            raise
        self._file, self._place = file, (status.st_dev, status.st_ino)
        return file

    def _close_file(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = self._place = None

    def _append(self, line: bytes) -> None:
        file = self._file
        if file is None or self._was_renamed():
            self._close_file()
            file = self._open()
        append_whole(file, line)
        if not os.fstat(file.fileno()).st_nlink and self._is_elsewhere():
            # The file was removed between the look at its path and the writing.
            self._close_file()
            append_whole(self._open(), line)

    def _was_renamed(self) -> bool:
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + _SECONDS_UNTIL_LOOK
        return self._is_elsewhere()

    def _is_elsewhere(self) -> bool:
        """Whether the path no longer stands for the file that is open."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return True
        return (status.st_dev, status.st_ino) != self._place

    def _failed(self, error: Exception) -> None:
        self._lost += 1
        self._retry_at = time.monotonic() + _SECONDS_UNTIL_RETRY
        if not self._fails:
            self._fails, self._lost_before = True, self._lost - 1
            why = f"{self.path}: cannot be written ({error.strerror or error})" if isinstance(error, OSError) else error
            LOG.error("%s. Until it can be written, lines are left out, and counted", why)

    def _recovered(self) -> None:
        self._fails = False
        lost = counted(self._lost - self._lost_before, "line")
        LOG.warning("%s: can be written again; it lacks %s", self.path, lost)

    def _end_last_line(self, file: BinaryIO) -> None:
        """End the last line of a file to which a killed process wrote; one of which only a part is there goes."""
        alone = _share_lock(file)
        line = unfinished_line(self.path)
        if alone and is_cut_off(line):
            os.ftruncate(file.fileno(), os.fstat(file.fileno()).st_size - len(line))
            LOG.warning("%s: the last line was cut off, as when its process is killed; it was removed", self.path)
        elif line:
            append_whole(file, b"\n")


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
        row = {
            "schema": SCHEMA,
            "time": round(at, 3),
            "id": retrieval.id,
            "query_id": retrieval.query_id,
            **({"query": retrieval.query} if self.texts else {"query_hash": text_id(retrieval.query)}),
            "shown": list(retrieval.shown),
            # Whether retrievals have pools is not known from one that failed.
            "pool": None if retrieval.pool is None or retrieval.failed else list(retrieval.pool),
            "corpus_size": retrieval.corpus_size,
            "tokens": retrieval.tokens,
            "seconds": None if retrieval.seconds is None else round(retrieval.seconds, 6),
            "failed": True if retrieval.failed else None,
            "arm": retrieval.arm,
            "outcome": None if retrieval.outcome is None else float(retrieval.outcome),
            "texts": dict(retrieval.texts) if self.texts and retrieval.texts is not None else None,
        }
        self.append({key: value for key, value in row.items() if value is not None})

    def write_outcome(self, id_: str, outcome: float, at: float) -> None:
        """Append an outcome that became known after its retrievals."""
        self.append({"schema": SCHEMA, "time": round(at, 3), "outcome_of": id_, "outcome": outcome})


def _line(row: Mapping[str, Any]) -> bytes:
    try:
        return f"{_encode(row)}\n".encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which only an escape can write.
        return f"{json.dumps(row, default=_plain)}\n".encode()


def _plain(value: Any) -> Any:
    """What JSON has for a number of numpy's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no text, number or list")


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


def _share_lock(file: BinaryIO) -> bool:
    """Show other processes, as long as the file is open, that one writes to it; whether no other does."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = True
    except OSError:
        alone = False
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return alone
