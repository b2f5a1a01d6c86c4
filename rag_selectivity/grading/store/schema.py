"""The tables of a label store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache

from rag_selectivity.grading.store.problems import StoreConnection

#: What SQLite raises; only this package speaks SQL.
DatabaseError = sqlite3.Error
APPLICATION = 0x52534C42  # "RSLB"
VERSION = 1

# Labels are long, and their keys are hashes: rows are appended, and only a small index is written at random places.
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
        attempts INTEGER, failure TEXT, error TEXT, last_answer TEXT,
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
    """CREATE TABLE answers (
        settings INTEGER NOT NULL REFERENCES settings, content BLOB NOT NULL, value TEXT, prompt_tokens INTEGER,
        completion_tokens INTEGER, cost REAL, seconds REAL, attempts INTEGER, failure TEXT, error TEXT,
        last_answer TEXT, server INTEGER REFERENCES servers, created REAL NOT NULL,
        PRIMARY KEY (settings, content)
    ) WITHOUT ROWID""",
)


@cache
def _statements() -> dict[str, tuple[str, str]]:
    """(type, statement) of all that a store of the present version holds, by name, as SQLite keeps them."""
    with closing(sqlite3.connect(":memory:")) as empty:
        for statement in TABLES:
            empty.execute(statement)
        rows = empty.execute("SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {name: (kind, sql) for name, kind, sql in rows}


def what_is_foreign(connection: sqlite3.Connection) -> tuple[str, str] | None:
    """(type, name) of the first thing that is no part of a store.

    SQLite runs the statements of triggers and views itself, so that a file could do things when it is only used.
    """
    known = _statements()
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        if kind == "index" and sql is None:
            continue  # of a key or of UNIQUE
        found = known.get(name)
        is_virtual = str(sql).upper().startswith("CREATE VIRTUAL")
        if found is None or found[0] != kind or is_virtual or found[1].split() != str(sql).split():
            return ("virtual table" if is_virtual else kind), name
    return None


def missing_tables(connection: sqlite3.Connection) -> list[str]:
    """The tables that a store lacks."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return [name for name, (kind, _) in _statements().items() if kind == "table" and name not in there]


def create_tables(connection: sqlite3.Connection) -> None:
    """Make all tables of the present version; to be called within a transaction."""
    for statement in TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def transaction(connection: StoreConnection) -> Iterator[None]:
    """Commit everything in the block, or nothing. Writers wait for each other before they begin."""
    connection.begin()
    with _all_or_nothing(connection):
        yield


@contextmanager
def one_moment(connection: StoreConnection) -> Iterator[None]:
    """Let all reads of the block see the file as it is at the first of them; also for temporary tables.

    No other process waits for it.
    """
    connection.execute("BEGIN DEFERRED")
    with _all_or_nothing(connection):
        yield


@contextmanager
def _all_or_nothing(connection: StoreConnection) -> Iterator[None]:
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, such as a full disk, SQLite has rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
