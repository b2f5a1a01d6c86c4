"""Opens the file of a label store, for writing or for reading only."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from rag_selectivity.errors import InputError
from rag_selectivity.grading.store.problems import StoreConnection, damaged, explained, is_busy
from rag_selectivity.grading.store.schema import (
    APPLICATION,
    VERSION,
    create_tables,
    missing_tables,
    one_moment,
    transaction,
    what_is_foreign,
)

BUSY_SECONDS = 60.0
_PRIVATE = 0o600
_CACHE_KIB = 16_384
_WAL_BYTES = 64_000_000


def connect(path: Path) -> StoreConnection:
    """Open a label store for writing. A missing file is created.

    Raises
    ------
    InputError
        If the file is not a label store, is of another format, or cannot be written.
    """
    new, connection = False, None
    try:
        new = _create_private(path)
        connection = connection_to(path, "rw")
        _check(path, connection)
        _use_write_ahead_log(connection)
        # When a commit returns, the operating system has it, so a commit survives the end of the process.
        # A power failure can undo the last commits, but each of them completely.
        connection.execute("PRAGMA synchronous = NORMAL")
        # The writer moves the log into the file between its transactions, so that no transaction waits for that.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        if _tables(connection) == 0:
            with transaction(connection):
                if _tables(connection) == 0:
                    create_tables(connection)
    except (sqlite3.Error, OSError, InputError) as error:
        if connection is not None:
            connection.close()
        if new:
            _remove_if_empty(path)
        # Of a new store there are no labels to go on from, which the errors of statements speak of.
        cause = error.__cause__ if new and isinstance(error, InputError) else error
        if not isinstance(cause, (sqlite3.Error, OSError)):
            raise
        raise _refused(path, cause, new=new) from cause
    return connection


def reading_connection(path: Path, mode: str) -> StoreConnection:
    """A connection that changes nothing."""
    try:
        connection = connection_to(path, mode)
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise _refused(path, error) from error
    return connection


def mode_to_read(path: Path) -> str:
    """How to read a label store without changing it: `rw` or `immutable`.

    Another process may write to it at the same time.

    Raises
    ------
    InputError
        If the file is not a label store, or is of another format.
    """
    try:
        try:
            _check_readable(path, "rw")
            return "rw"
        except (InputError, sqlite3.Error) as error:
            cause = error.__cause__ if isinstance(error, InputError) else error
            name = getattr(cause, "sqlite_errorname", None) or ""
            if not name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR_SHM")):
                raise
        # With an empty log the file is complete, and this process could not write to it anyway.
        log = log_of(path)
        if log.exists() and log.stat().st_size:
            raise InputError(
                f"{path}: its folder is read-only, and its latest labels are in {log.name} alone; copy both to a "
                f"folder that you can write to"
            )
        _check_readable(path, "immutable")
    except (sqlite3.Error, OSError) as error:
        raise _refused(path, error) from error
    return "immutable"


def _check_readable(path: Path, mode: str) -> None:
    connection = reading_connection(path, mode)
    try:
        _check(path, connection)
        if _tables(connection) == 0:
            raise InputError(f"{path}: the file is empty; fill a label store with `rag-selectivity grade`")
    finally:
        connection.close()


def connection_to(path: Path, mode: str) -> StoreConnection:
    """A connection to a file of SQLite; `mode` is one of SQLite's, or `immutable`."""
    how = "immutable=1&mode=ro" if mode == "immutable" else f"mode={mode}"
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?{how}",
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=StoreConnection,
        uri=True,
    )
    connection.path = path
    connection.busy_seconds = BUSY_SECONDS
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _create_private(path: Path) -> bool:
    """Create a file that only its owner may read, unless there is one; whether this process created it.

    SQLite gives its log the same permissions.
    """
    try:
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, _PRIVATE))
    except FileExistsError:
        return False
    return True


def _remove_if_empty(path: Path) -> None:
    """Remove a store that this process has created, unless another process uses it or has made its tables."""
    file = Path(os.path.realpath(path))
    with suppress(sqlite3.Error, OSError), closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as alone:
        # Before anything is read: memory that processes share needs space, which a full disk does not have.
        alone.execute("PRAGMA locking_mode = EXCLUSIVE")
        if file.stat().st_size:
            alone.execute("BEGIN EXCLUSIVE")
            if _tables(alone):
                return
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{file}{suffix}").unlink(missing_ok=True)


def _use_write_ahead_log(connection: StoreConnection) -> None:
    """Let readers and a writer not wait for each other. SQLite tries this only once, so it is repeated here."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except InputError as error:
            if not is_busy(error.__cause__) or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _check(path: Path, connection: StoreConnection) -> None:
    # Another process may create the tables meanwhile: the old version with the new tables would look foreign.
    with one_moment(connection):
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if _tables(connection) and application != APPLICATION:
            raise InputError(f"{path}: an SQLite file, but not a label store; give the path of a label store")
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if _tables(connection) and version != VERSION:
            raise InputError(
                f"{path}: a label store of format {version}, and this version of rag-selectivity has format {VERSION}; "
                f"export it as .jsonl with the version that made it, and import that into a new store"
            )
        foreign = what_is_foreign(connection)
        missing = missing_tables(connection) if _tables(connection) else []
    if missing:
        raise damaged(path, f"it lacks the {'table' if len(missing) == 1 else 'tables'} {', '.join(missing)}")
    if foreign is not None:
        raise InputError(
            f"{path}: holds the {foreign[0]} {foreign[1]!r}, which is no part of a label store and could run "
            f"statements of its own; remove it with SQLite's own program, or restore the store from a copy"
        )


def _tables(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def log_of(path: Path) -> Path:
    """The write-ahead log of a store: beside the file itself, where the path is a symbolic link to it."""
    return Path(f"{os.path.realpath(path)}-wal")


def _refused(path: Path, error: sqlite3.Error | OSError, *, new: bool = False) -> Exception:
    if isinstance(error, OSError):
        return InputError(
            f"{path}: the file cannot be opened or created ({error.strerror or error}); give a file in a folder that "
            f"you can write to"
        )
    found = explained(path, error, new=new)
    return found if found is not error else InputError(f"{path}: cannot be used as a label store ({error})")
