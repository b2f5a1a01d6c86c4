"""The tables of a label store, and what of a file does not belong to one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache

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


def foreign_and_missing(connection: sqlite3.Connection) -> tuple[list[tuple[str, str]], list[str]]:
    """(type, name) of what is no part of a store, and the names of the tables that it lacks.

    SQLite runs the statements of triggers and views itself, so that a file could do things when it is only used.
    """
    known, found = _statements(), _words(connection)
    foreign = [
        ("virtual table" if words[:2] == ["CREATE", "VIRTUAL"] else kind, name)
        for (kind, name), words in found.items()
        if known.get((kind, name)) != words
    ]
    return foreign, [name for kind, name in known if kind == "table" and (kind, name) not in found]


def create_tables(connection: sqlite3.Connection) -> None:
    """Make all tables of the present version; to be called within a transaction."""
    for statement in TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
