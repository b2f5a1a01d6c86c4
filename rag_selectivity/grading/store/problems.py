"""Errors of SQLite in words for people who grade: what is wrong with the file of the store, and what to do."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rag_selectivity.errors import InputError

_GO_ON = "Every label that was reported as stored is in the file, and the same command goes on from there"
_NOT_MADE = "The store was not made"
# The first entry that SQLite's name of the error begins with decides, so the particular names come first.
_PROBLEMS = {
    "SQLITE_FULL": "the disk is full. Free some space. {go_on}",
    "SQLITE_IOERR_WRITE": "the file cannot grow (a limit of the system or a quota). Raise it. {go_on}",
    # Of the file beside the store that its processes share.
    "SQLITE_IOERR_SHMSIZE": "the disk is full, or a limit of the system or a quota keeps the file from growing. Free "
    "some space, or raise it. {go_on}",
    **dict.fromkeys([f"SQLITE_IOERR_{what}" for what in ("LOCK", "UNLOCK", "RDLOCK", "SHM")], "@locks"),
    **dict.fromkeys(("SQLITE_NOLFS", "SQLITE_PROTOCOL"), "@locks"),
    "SQLITE_IOERR": "reading or writing the file failed. Check that its disk is still connected. {go_on}",
    "SQLITE_READONLY": "the file or its folder is read-only; copy the file to a folder that you can write to",
    "SQLITE_PERM": "you have no permission to open the file; ask its owner for it",
    "SQLITE_CANTOPEN": "the file cannot be opened or created; give a file in a folder that you can write to",
    **dict.fromkeys(
        ("SQLITE_BUSY", "SQLITE_LOCKED"),
        "another process has kept the store locked for too long. Wait until it is done, or end it",
    ),
    "SQLITE_CORRUPT": "@damaged",
    "SQLITE_NOTADB": "cannot be used as a label store: it is none, or its beginning is damaged. Name the file that "
    "`grade` made, or restore it from a copy",
}
#: What Python says of a text that is no UTF-8.
_NO_TEXT = "Could not decode to UTF-8"
#: Every table of a store was there when it was made.
_TABLES = ("settings", "servers", "pairs", "labels", "draws", "origins", "human", "answers")
_NO_TABLE = tuple(f"no such table: {name}" for name in _TABLES)
_SHARED = {
    "@locks": "its file system cannot lock files (some network file systems cannot); move the store to a local disk",
    "@damaged": "cannot be used as a label store: the file is damaged or cut short. Restore it from a copy, or save "
    "what SQLite's own program can read of it: sqlite3 {name} .recover | sqlite3 NEW.db",
}


def explained(path: Path, error: sqlite3.Error, *, new: bool = False) -> Exception:
    """An InputError that says what is wrong with the file and what to do; an error of another kind stays as it is.

    `new` is for a store that this process was making.
    """
    name = getattr(error, "sqlite_errorname", None) or ""
    if str(error).startswith((_NO_TEXT, "no such column: ", *_NO_TABLE)):
        name = "SQLITE_CORRUPT"
    for prefix, problem in _PROBLEMS.items():
        if name.startswith(prefix):
            detail = f"{error}{_found_by_check(path)}" if problem == "@damaged" else str(error)
            text = _SHARED.get(problem, problem).format(name=path.name, go_on=_NOT_MADE if new else _GO_ON)
            return InputError(f"{path}: {text} ({detail})")
    return error


def damaged(path: Path, detail: str) -> InputError:
    """The error for a store whose rows contradict each other."""
    return InputError(f"{path}: {_SHARED['@damaged'].format(name=path.name)} ({detail})")


def _found_by_check(path: Path) -> str:
    """What SQLite's own check finds first, for the end of a message; nothing where it cannot look."""
    with (
        suppress(sqlite3.Error, OSError),
        closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as file,
    ):
        # A file that is cut short is refused without this.
        file.execute("PRAGMA writable_schema = ON")
        found = file.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            return f"; {' '.join(str(found).split())}"
    return ""


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Raise SQLite's errors within the block as `explained` words them."""
    try:
        yield
    except sqlite3.Error as error:
        problem = explained(path, error)
        if problem is error:
            raise
        raise problem from error
    except UnicodeDecodeError as error:
        # The schema or an error of SQLite's own quotes bytes that are no text.
        raise damaged(path, str(error)) from error


def is_busy(error: BaseException | None) -> bool:
    """Whether SQLite reports that another process holds a lock."""
    return (getattr(error, "sqlite_errorname", None) or "").startswith("SQLITE_BUSY")


class StoreConnection(sqlite3.Connection):
    """A connection whose statements raise errors as `explained` words them.

    Attributes
    ----------
    path : Path
        The store's file.
    busy_seconds : float
        How long a write waits for the writes of other processes.
    """

    path: Path
    busy_seconds: float

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """`sqlite3.Connection.execute`."""
        with explaining(self.path):
            return super().execute(sql, parameters)

    def begin(self) -> None:
        """Begin a transaction that writes, as soon as no other process is in one.

        SQLite itself would try again only every 100 ms, so that two busy processes could make a third wait for seconds.
        """
        until = time.monotonic() + self.busy_seconds
        self.execute("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    super().execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    if not is_busy(error) or time.monotonic() > until:
                        raise explained(self.path, error) from error
                time.sleep(random.uniform(0.0005, 0.003))
        finally:
            self.execute(f"PRAGMA busy_timeout = {int(self.busy_seconds * 1000)}")

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        """`sqlite3.Connection.executemany`."""
        with explaining(self.path):
            return super().executemany(sql, parameters)
