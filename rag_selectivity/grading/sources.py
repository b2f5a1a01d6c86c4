"""Queries, passages and pools as a grading run takes them, streamed into tables of its own on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.frames import PASSAGE_NAMES, QUERY_NAMES, column_values, find_column, is_frame, optional_column
from rag_selectivity.grading.store import digest
from rag_selectivity.policy import Policy
from rag_selectivity.run import Run, ScatteredQueries

TEXT_NAMES = ("text", "contents", "content", "body", "passage_text", "query", "question")

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
                _ranked(pool, depth),
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


def _ranked(pool: Any, depth: int | None) -> Iterator[tuple[str, str, int]]:
    """(query, passage, rank) rows of a pool: a Run, a dict, a frame or a file."""
    for part in _parts(pool):
        ordered = part.ordered(Policy())
        cuts = ordered.offsets.tolist()
        for query, start, stop in zip(ordered.queries, cuts, cuts[1:], strict=False):
            last = stop if depth is None else min(stop, start + depth)
            for rank, passage in enumerate(ordered.passages[start:last], 1):
                yield query, passage, rank


def _parts(pool: Any) -> Iterable[Run]:
    if not isinstance(pool, (str, Path)):
        return [Run.of(pool)]
    from rag_selectivity.files import read_run

    def streamed() -> Iterator[Run]:
        try:
            yield from read_run(pool)
        except ScatteredQueries as scattered:
            # What has been given out comes again, with the same ranks or better ones.
            yield from scattered.again()

    return streamed()


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
        connection.executemany(insert, ((id_, digest(text), text) for id_, text in _checked(rows, what)))
    else:
        insert = (
            f"INSERT INTO {table} SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM wanted WHERE id = ?1)"
            f" AND NOT EXISTS (SELECT 1 FROM {table} WHERE id = ?1)"
        )
        connection.executemany(
            insert, ((id_, digest(text), text) for id_, text in _checked(_texts(source, what, names), what))
        )
    absent = connection.execute(f"SELECT count(*) FROM wanted WHERE id NOT IN (SELECT id FROM {table})").fetchone()[0]
    if absent:
        some = connection.execute(f"SELECT id FROM wanted WHERE id NOT IN (SELECT id FROM {table}) LIMIT 3")
        raise InputError(
            f"{what}: {absent} of the pool's ids have no text ({examples(row[0] for row in some)}); "
            f"do the {what} and the pool use the same ids?"
        )


def _checked(rows: Iterable[tuple[str, Any]], what: str) -> Iterator[tuple[str, str]]:
    for id_, record in rows:
        text = passage_text(record) if isinstance(record, Mapping) else record
        if not isinstance(text, str):
            raise InputError(f"{what}: {id_!r} has no text, but {text!r}")
        yield id_, text


def passage_text(record: Mapping[str, Any]) -> Any:
    """The text of a BEIR-like record, its title in front."""
    column = optional_column(list(record), TEXT_NAMES)
    text = record[column] if column is not None else None
    title = record.get("title")
    return f"{title}\n{text}" if title and isinstance(text, str) and text else text if text is not None else title


def _texts(source: Any, what: str, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """(id, text or record) of a frame, a file, or an iterable of records or pairs."""
    if is_frame(source):
        columns = list(source.columns)
        ids = column_values(source, find_column(columns, ("_id", "id", *names), "id", f"{what} frame"))
        values = {name: column_values(source, name) for name in columns}
        for i, id_ in enumerate(ids):
            yield str(id_), {name: column[i] for name, column in values.items()}
        return
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.is_dir():
            path = path / f"{what}.jsonl"
        yield from _file_texts(path, names)
        return
    for record in source:
        if isinstance(record, Mapping):
            yield str(record[find_column(list(record), ("_id", "id", *names), "id", what)]), record
        else:
            id_, text = record
            yield str(id_), text


def _file_texts(path: Path, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    from rag_selectivity.files import read_records
    from rag_selectivity.files.opening import first_bytes, text_lines

    first = first_bytes(path).split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r").split("\t")
    if len(first) == 2 and not first[0].startswith("{") and optional_column(first, ("_id", "id", *names)) is None:
        # MS MARCO's way: id, tab, text, and no header.
        for number, text_line in text_lines(path):
            id_, tab, text = text_line.partition("\t")
            if not tab:
                raise InputError(f"{path}:{number}: expected an id, a tab and a text")
            yield id_, text
        return
    for line, record in read_records(path):
        column = find_column(list(record), ("_id", "id", *names), "id", f"{path}:{line}")
        if record[column] in (None, ""):
            raise InputError(f"{path}:{line}: the id is empty")
        yield str(record[column]), record
