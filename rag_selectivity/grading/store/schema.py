"""The tables of a label store, and how its file is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_selectivity.errors import InputError

#: What SQLite raises; only this package speaks SQL.
DatabaseError = sqlite3.Error
_APPLICATION = 0x52534C42  # "RSLB"
_VERSION = 1
_BUSY_SECONDS = 60.0

_TABLES = """
CREATE TABLE IF NOT EXISTS settings (
    id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, model TEXT NOT NULL,
    parameters TEXT NOT NULL, rubric TEXT NOT NULL, rubric_version TEXT NOT NULL, prompt_version TEXT NOT NULL,
    created REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS pairs (
    query_id TEXT NOT NULL, passage_id TEXT NOT NULL, query_hash BLOB NOT NULL, passage_hash BLOB NOT NULL,
    PRIMARY KEY (query_id, passage_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS labels (
    settings INTEGER NOT NULL REFERENCES settings, query_hash BLOB NOT NULL, passage_hash BLOB NOT NULL,
    sample INTEGER NOT NULL, grade INTEGER, reason TEXT, relevant_span TEXT, misleading INTEGER, flagged INTEGER,
    prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, seconds REAL, attempts INTEGER, expected REAL,
    failure TEXT, error TEXT, last_answer TEXT, served_model TEXT, way TEXT, created REAL NOT NULL,
    PRIMARY KEY (settings, query_hash, passage_hash, sample)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS human (
    query_id TEXT NOT NULL, passage_id TEXT NOT NULL, annotator TEXT NOT NULL, grade INTEGER NOT NULL, reason TEXT,
    created REAL NOT NULL,
    PRIMARY KEY (query_id, passage_id, annotator)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    settings INTEGER NOT NULL REFERENCES settings, content BLOB NOT NULL, value TEXT, prompt_tokens INTEGER,
    completion_tokens INTEGER, cost REAL, seconds REAL, attempts INTEGER, failure TEXT, error TEXT, last_answer TEXT,
    served_model TEXT, way TEXT, created REAL NOT NULL,
    PRIMARY KEY (settings, content)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
    settings INTEGER NOT NULL, query_hash BLOB NOT NULL, passage_hash BLOB NOT NULL, sample INTEGER NOT NULL,
    owner TEXT NOT NULL, expires REAL NOT NULL,
    PRIMARY KEY (settings, query_hash, passage_hash, sample)
) WITHOUT ROWID;
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open a label store; a file that does not exist is created.

    Raises
    ------
    InputError
        If the file is not a label store, or a newer version made it.
    """
    try:
        connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != _APPLICATION:
            raise InputError(f"{path}: an SQLite file, but not a label store")
        if version > _VERSION:
            raise InputError(f"{path}: made by a newer version of rag-selectivity; update it")
        connection.execute("PRAGMA journal_mode = WAL")
        # A commit has reached the operating system when it returns, so that it survives the end of the process.
        # A power failure can undo the last commits, but never half of one.
        connection.execute("PRAGMA synchronous = NORMAL")
        if not tables:
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.executescript(_TABLES)
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path}: cannot be used as a label store ({error})") from None
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, mode: str = "IMMEDIATE") -> Iterator[None]:
    """Commit everything in the block, or nothing. In IMMEDIATE mode, writers wait for each other before they begin."""
    connection.execute(f"BEGIN {mode}")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
