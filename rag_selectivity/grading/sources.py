"""Queries, passages and pools as a grading run takes them, streamed into tables of its own on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from rag_selectivity.data.columns import PASSAGE_NAMES, QUERY_NAMES
from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.store import digest
from rag_selectivity.io.reading import ranked_rows
from rag_selectivity.io.texts import checked_texts, read_texts

_TABLES = """
CREATE TEMP TABLE pool (
    query_id TEXT NOT NULL, passage_id TEXT NOT NULL, rank INTEGER NOT NULL, PRIMARY KEY (query_id, passage_id)
) WITHOUT ROWID;
CREATE TEMP TABLE wanted (id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP TABLE queries (id TEXT PRIMARY KEY, hash BLOB NOT NULL, text TEXT NOT NULL);
CREATE TEMP TABLE passages (id TEXT PRIMARY KEY, hash BLOB NOT NULL, text TEXT NOT NULL);
"""


def load_pool(
    connection: sqlite3.Connection, queries: Any, corpus: Any, pools: Sequence[Any], depth: int | None
) -> int:
    """Fill the tables pool, queries and passages of the connection; how many pairs there are.

    The tables are SQLite's temporary ones: on disk, gone with the connection.

    Raises
    ------
    InputError
        If a pool names a query or a passage whose text is not there.
    """
    if not pools:
        raise InputError("a pool is needed: the passages to grade for each query (--pool FILE)")
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise InputError(f"pool_depth must be a whole number ≥ 1, got {depth!r}")
    connection.execute("PRAGMA temp_store = FILE")
    connection.executescript(_TABLES)
    connection.execute("BEGIN")
    try:
        for pool in pools:
            connection.executemany(
                "INSERT INTO pool VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET rank = excluded.rank"
                " WHERE excluded.rank < rank",
                ranked_rows(pool, depth),
            )
        _load_texts(connection, "queries", "query_id", queries, "queries", QUERY_NAMES)
        _load_texts(connection, "passages", "passage_id", corpus, "corpus", PASSAGE_NAMES)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    pairs = int(connection.execute("SELECT count(*) FROM pool").fetchone()[0])
    if not pairs:
        raise InputError("the pool is empty: there is nothing to grade")
    return pairs


def _load_texts(
    connection: sqlite3.Connection, table: str, column: str, source: Any, what: str, names: Sequence[str]
) -> None:
    connection.execute("DELETE FROM wanted")
    connection.execute(f"INSERT INTO wanted SELECT DISTINCT {column} FROM pool")
    if isinstance(source, Mapping):
        by_text = source if all(isinstance(key, str) for key in source) else {str(k): v for k, v in source.items()}
        wanted = connection.execute("SELECT id FROM wanted")
        rows = ((id_, by_text[id_]) for (id_,) in wanted if id_ in by_text)
        insert = f"INSERT INTO {table} VALUES (?, ?, ?)"
        connection.executemany(insert, ((id_, digest(text), text) for id_, text in checked_texts(rows, what)))
    else:
        insert = (
            f"INSERT INTO {table} SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM wanted WHERE id = ?1)"
            f" AND NOT EXISTS (SELECT 1 FROM {table} WHERE id = ?1)"
        )
        connection.executemany(insert, ((id_, digest(text), text) for id_, text in read_texts(source, what, names)))
    absent = connection.execute(f"SELECT count(*) FROM wanted WHERE id NOT IN (SELECT id FROM {table})").fetchone()[0]
    if absent:
        some = connection.execute(f"SELECT id FROM wanted WHERE id NOT IN (SELECT id FROM {table}) LIMIT 3")
        raise InputError(
            f"{what}: {absent} of the pool's ids have no text ({examples(row[0] for row in some)}); "
            f"do the {what} and the pool use the same ids?"
        )
