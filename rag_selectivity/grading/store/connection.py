"""The tables of a label store; opening its file, and saying in words for people who grade what is wrong with it."""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rag_selectivity.errors import InputError

APPLICATION = 0x52534C42  # "RSLB"
VERSION = 2
_MARKS = f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}"

# A row of `labels` is a grade, or any other answer as JSON in `value`: then the hash of its question stands in the
# place of the query's. Rows are long, and their keys are hashes: rows are appended, and only a small index is written
# at random places. A row of `origins` without a passage is a query for which nothing was retrieved.
TABLES = (
    """CREATE TABLE settings (
        id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, model TEXT NOT NULL,
        parameters TEXT NOT NULL, rubric TEXT NOT NULL, rubric_version TEXT NOT NULL, prompt_version TEXT NOT NULL,
        created REAL NOT NULL
    )""",
    """CREATE TABLE servers (
        id INTEGER PRIMARY KEY, served_model TEXT NOT NULL, way TEXT NOT NULL, UNIQUE (served_model, way)
    )""",
    """CREATE TABLE pairs (
        query_id TEXT NOT NULL, passage_id TEXT NOT NULL, query_hash BLOB NOT NULL, passage_hash BLOB NOT NULL,
        PRIMARY KEY (query_id, passage_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX pairs_by_text ON pairs (query_hash, passage_hash)",
    """CREATE TABLE labels (
        id INTEGER PRIMARY KEY, settings INTEGER NOT NULL REFERENCES settings, query_hash BLOB NOT NULL,
        passage_hash BLOB NOT NULL, sample INTEGER NOT NULL, grade INTEGER, reason TEXT, relevant_span TEXT,
        misleading INTEGER, prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, seconds REAL,
        attempts INTEGER, failure TEXT, error TEXT, last_answer TEXT, value TEXT,
        server INTEGER REFERENCES servers, created REAL NOT NULL,
        UNIQUE (settings, query_hash, passage_hash, sample)
    )""",
    """CREATE TABLE draws (
        id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, source TEXT NOT NULL,
        depth INTEGER, how TEXT NOT NULL, created REAL NOT NULL
    )""",
    """CREATE TABLE origins (
        query_id TEXT NOT NULL, passage_id TEXT NOT NULL, draw INTEGER NOT NULL REFERENCES draws, rank INTEGER,
        detail TEXT,
        PRIMARY KEY (query_id, passage_id, draw)
    ) WITHOUT ROWID""",
    """CREATE TABLE human (
        query_id TEXT NOT NULL, passage_id TEXT NOT NULL, annotator TEXT NOT NULL, sample INTEGER NOT NULL,
        grade INTEGER, reason TEXT, query_hash BLOB, passage_hash BLOB, draw INTEGER REFERENCES draws,
        created REAL NOT NULL,
        PRIMARY KEY (query_id, passage_id, annotator, sample)
    ) WITHOUT ROWID""",
)


#: What a judge graded of texts that nobody knew (`unread`) goes along with its pair, once these are known.
_ONCE_READ = (
    "CREATE TEMP TRIGGER once_read AFTER UPDATE ON main.pairs WHEN length(old.query_hash) != 16 BEGIN"
    " UPDATE OR IGNORE labels SET query_hash = new.query_hash, passage_hash = new.passage_hash"
    " WHERE settings IN (SELECT id FROM settings) AND query_hash = old.query_hash AND passage_hash = old.passage_hash;"
    " END"
)


@cache
def _statements() -> dict[tuple[str, str], list[str]]:
    """{(type, name): statement} of all that a store holds, in words."""
    with closing(sqlite3.connect(":memory:")) as empty:
        for statement in TABLES:
            empty.execute(statement)
        return _words(empty)


def _words(connection: sqlite3.Connection) -> dict[tuple[str, str], list[str]]:
    # Without the indexes of keys and of UNIQUE, which SQLite makes itself.
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE type != 'index' OR sql NOTNULL")
    return {(kind, name): str(sql).split() for kind, name, sql in rows}


#: What SQLite raises; only this package speaks SQL.
DatabaseError = sqlite3.Error
BUSY_SECONDS = 60.0
_PRIVATE = 0o600
_CACHE_KIB = 16_384
_LOG_PAGES, _LOG_BYTES = 12_000, 64_000_000

_GO_ON = "Every label that was reported as stored is in the file, and the same command goes on from there"
_LOCKS = "its file system cannot lock files (some network file systems cannot); move the store to a local disk"
_DAMAGED = (
    "cannot be used as a label store: the file is damaged or cut short. Restore it from a copy, or save what SQLite's "
    "own program can read of it: sqlite3 {name} .recover | sqlite3 NEW.db"
)
#: The first entry that SQLite's name of the error begins with decides, so the particular names come first.
_PROBLEMS = {
    "SQLITE_FULL": f"the disk is full. Free some space. {_GO_ON}",
    "SQLITE_IOERR_WRITE": f"the file cannot grow (a limit of the system or a quota). Raise it. {_GO_ON}",
    # Of the file beside the store that its processes share.
    "SQLITE_IOERR_SHMSIZE": "the disk is full, or a limit of the system or a quota keeps the file from growing. Free "
    f"some space, or raise it. {_GO_ON}",
    **dict.fromkeys([f"SQLITE_IOERR_{what}" for what in ("LOCK", "UNLOCK", "RDLOCK", "SHM")], _LOCKS),
    **dict.fromkeys(("SQLITE_NOLFS", "SQLITE_PROTOCOL"), _LOCKS),
    "SQLITE_IOERR": f"reading or writing the file failed. Check that its disk is still connected. {_GO_ON}",
    "SQLITE_READONLY": "the file or its folder is read-only; copy the file to a folder that you can write to",
    "SQLITE_PERM": "you have no permission to open the file; ask its owner for it",
    "SQLITE_CANTOPEN": "the file cannot be opened or created; give a file in a folder that you can write to",
    **dict.fromkeys(
        ("SQLITE_BUSY", "SQLITE_LOCKED"),
        "another process has kept the store locked for too long. Wait until it is done, or end it",
    ),
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_NOTADB": "cannot be used as a label store: it is none, or its beginning is damaged. Name the file that "
    "`grade` made, or restore it from a copy",
}
#: What SQLite says of a text that is no UTF-8, and of tables and columns that were there when the store was made.
_OF_DAMAGE = (
    "Could not decode to UTF-8",
    "no such column: ",
    *(f"no such table: {statement.split()[2]}" for statement in TABLES),
)


# -- problems ---------------------------------------------------------------------------------------------


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Raise SQLite's errors within the block as an InputError that says what is wrong with the file and what to do."""
    try:
        yield
    except (UnicodeDecodeError, sqlite3.Error) as error:
        # The schema or an error of SQLite's own may quote bytes that are no text.
        if isinstance(error, UnicodeDecodeError) or str(error).startswith(_OF_DAMAGE):
            raise damaged(path, str(error)) from error
        for prefix, problem in _PROBLEMS.items():
            if _name_of(error).startswith(prefix):
                raise InputError(f"{path}: {problem.format(name=path.name)} ({error})") from error
        raise


def damaged(path: Path, detail: str) -> InputError:
    """The error for a store that is damaged, or whose rows contradict each other."""
    return InputError(f"{path}: {_DAMAGED.format(name=path.name)} ({detail})")


def _name_of(error: BaseException | None) -> str:
    return getattr(error, "sqlite_errorname", None) or ""


# -- connections ------------------------------------------------------------------------------------------


class Connection(sqlite3.Connection):
    """A connection to the file `path`, whose statements raise errors in words."""

    path: Path

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """`sqlite3.Connection.execute`."""
        with explaining(self.path):
            return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        """`sqlite3.Connection.executemany`."""
        with explaining(self.path):
            return super().executemany(sql, parameters)

    def row(self, names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
        """A row by its names; bytes in the place of a text, which only another program writes, are damage."""
        row = dict(zip(names, values, strict=True))
        for name, value in row.items():
            if isinstance(value, bytes):
                pair = f"query {row.get('query_id')!r}, passage {row.get('passage_id')!r}"
                raise damaged(self.path, f"{pair}: `{name}` is no text")
        return row

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything in the block, or nothing. It begins as soon as no other process is in one.

        SQLite itself would try again only every 100 ms, so that two busy processes could make a third wait for seconds.
        """
        until = time.monotonic() + BUSY_SECONDS
        self.execute("PRAGMA busy_timeout = 0")
        try:
            _repeated(lambda: self.execute("BEGIN IMMEDIATE"), until)
        finally:
            self.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
        with self._all_or_nothing():
            yield

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Let all reads of the block see the file as it is at the first of them; also for temporary tables.

        No other process waits for it.
        """
        self.execute("BEGIN DEFERRED")
        with self._all_or_nothing():
            yield

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            # After some errors, such as a full disk, SQLite has rolled back already.
            if self.in_transaction:
                self.execute("ROLLBACK")
            raise


def _repeated(statement: Callable[[], object], until: float) -> None:
    """Execute a statement as soon as no other process holds a lock."""
    while True:
        try:
            statement()
            return
        except InputError as error:
            if not _name_of(error.__cause__).startswith("SQLITE_BUSY") or time.monotonic() > until:
                raise
        time.sleep(random.uniform(0.0005, 0.003))


def connect(path: Path) -> Connection:
    """Open a label store for writing. A missing file is created, so that only its owner may read it.

    Raises
    ------
    InputError
        If the file is not a label store, is of another format, or cannot be written.
    """
    try:
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, _PRIVATE))
    except FileExistsError:
        pass
    except OSError as error:
        raise InputError(
            f"{path}: the file cannot be opened or created ({error.strerror or error}); give a file in a folder that "
            f"you can write to"
        ) from error
    connection = _connection_to(path, "rw")
    try:
        _check(connection)
        # Readers and a writer do not wait for each other. SQLite tries this only once.
        _repeated(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone(), time.monotonic() + BUSY_SECONDS)
        # When a commit returns, the operating system has it, so a commit survives the end of the process.
        # A power failure can undo the last commits, but each of them completely.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        if not _words(connection):
            with connection.transaction():
                if not _words(connection):
                    for statement in (*TABLES, *_MARKS):
                        connection.execute(statement)
        # This first: it drops what is temporary.
        connection.execute("PRAGMA temp_store = FILE")
        connection.execute(_ONCE_READ)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path) -> Connection:
    """A connection that changes nothing, to a store of which another process may be the writer.

    Raises
    ------
    InputError
        If the file is not a label store, or is of another format.
    """
    try:
        return _checked(path, "rw")
    except InputError as error:
        if not _name_of(error.__cause__).startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR_SHM")):
            raise
    # With an empty log the file is complete, and this process could not write to it anyway.
    log = Path(f"{os.path.realpath(path)}-wal")
    if log.exists() and log.stat().st_size:
        why = f"its folder is read-only, and its latest labels are in {log.name} alone"
        raise InputError(f"{path}: {why}; copy both to a folder that you can write to")
    return _checked(path, "ro&immutable=1")


def _checked(path: Path, mode: str) -> Connection:
    connection = _connection_to(path, mode)
    try:
        connection.execute("PRAGMA query_only = ON")
        _check(connection)
        if not _words(connection):
            raise InputError(f"{path}: the file is empty; fill a label store with `rag-selectivity grade`")
    except BaseException:
        connection.close()
        raise
    return connection


def _connection_to(path: Path, mode: str) -> Connection:
    with explaining(path):
        connection = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={mode}",
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
            uri=True,
        )
    connection.path = path
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _check(connection: Connection) -> None:
    """Refuse a file that is no label store of this format, or holds more or less."""
    path = connection.path
    # Another process may create the tables meanwhile: the old version with the new tables would look foreign.
    with connection.moment():
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        found = _words(connection)
    if not found:
        return
    if application != APPLICATION:
        raise InputError(f"{path}: an SQLite file, but not a label store; give the path of a label store")
    if version != VERSION:
        raise InputError(
            f"{path}: a label store of format {version}, and this version of rag-selectivity has format {VERSION}; "
            f"export it as .jsonl with the version that made it, and import that into a new store"
        )
    known = _statements()
    if missing := [name for kind, name in known if kind == "table" and (kind, name) not in found]:
        raise damaged(path, f"it lacks the {'table' if len(missing) == 1 else 'tables'} {', '.join(missing)}")
    for (kind, name), words in found.items():
        if known.get((kind, name)) != words:
            kind = "virtual table" if words[:2] == ["CREATE", "VIRTUAL"] else kind
            # SQLite runs the statements of triggers and views itself: a file could do things when it is only used.
            raise InputError(
                f"{path}: holds the {kind} {name!r}, which is no part of a label store and could run statements of "
                f"its own; remove it with SQLite's own program, or restore the store from a copy"
            )
