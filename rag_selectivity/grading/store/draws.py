"""Where pairs come from: the draws of a store, and the pairs that each of them chose."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rag_selectivity.grading.store.records import Draw, Origin

_READ_AT_ONCE = 20_000


def number_of(connection: sqlite3.Connection, table: str, values: Mapping[str, Any]) -> int:
    """The number of the row of a table that has the fingerprint of these values; a new one gets one."""
    known, mark = f"SELECT id FROM {table} WHERE fingerprint = ?", (values["fingerprint"],)
    row = connection.execute(known, mark).fetchone()
    if row is None:
        new = {**values, "created": time.time()}
        connection.execute(
            f"INSERT OR IGNORE INTO {table} ({', '.join(new)}) VALUES ({', '.join('?' * len(new))})", (*new.values(),)
        )
        row = connection.execute(known, mark).fetchone()
    return int(row[0])


def draw_number(connection: sqlite3.Connection, draw: Draw) -> int:
    """The number of a draw in the store; a new draw gets one."""
    values = {"kind": draw.kind, "source": draw.source, "depth": draw.depth, "how": draw.how_text}
    return number_of(connection, "draws", {"fingerprint": draw.fingerprint, **values})


def write_origins(connection: sqlite3.Connection, rows: Iterable[tuple[str, str, Origin]]) -> None:
    """Write (query id, passage id, origin) rows within a transaction; one of the same pair and draw is replaced."""
    numbers: dict[bytes, int] = {}

    def values() -> Iterator[tuple[str, str, int, int | None, str | None]]:
        for query, passage, origin in rows:
            mark = origin.draw.fingerprint
            if mark not in numbers:
                numbers[mark] = draw_number(connection, origin.draw)
            detail = json.dumps(dict(origin.detail), sort_keys=True, ensure_ascii=False) if origin.detail else None
            yield query, passage, numbers[mark], origin.rank, detail

    # The draws get their numbers before the first row is written, not while a statement runs.
    connection.executemany("INSERT OR REPLACE INTO origins VALUES (?, ?, ?, ?, ?)", list(values()))


def draws_by_number(connection: sqlite3.Connection) -> dict[int, Draw]:
    """The draws of a store."""
    rows = connection.execute("SELECT id, kind, source, depth, how FROM draws").fetchall()
    return {number: Draw(kind, source, depth, json.loads(how)) for number, kind, source, depth, how in rows}


def read_origins(connection: sqlite3.Connection) -> Iterator[tuple[str, str, Origin]]:
    """(query id, passage id, origin) rows, in the order of the ids; a pair of several draws occurs several times."""
    draws = draws_by_number(connection)
    rows = connection.execute(
        "SELECT query_id, passage_id, draw, rank, detail FROM origins ORDER BY query_id, passage_id, draw"
    )
    for query, passage, draw, rank, detail in rows:
        yield query, passage, Origin(draws[draw], rank, json.loads(detail) if detail else {})


def origin_numbers(connection: sqlite3.Connection) -> Iterator[list[tuple[str, str, int, int]]]:
    """(query id, passage id, number of the draw, size of the tail) rows in lists, those of a pair by their draws.

    They are those of `read_origins`, and the pairs of people's grades whose draw is known. The size of the tail is 0
    for what is not drawn from one, or if it is not known.
    """
    tails = [row[0] for row in connection.execute("SELECT id FROM draws WHERE kind = 'tail'")]
    size = f"CASE WHEN draw IN ({', '.join(map(str, tails))}) THEN coalesce(json_extract(detail, '$.of'), 0) ELSE 0 END"
    for statement in (
        # In the order of the table's key, so that nothing is sorted and nothing is held.
        f"SELECT query_id, passage_id, draw, {size if tails else 0} FROM origins ORDER BY query_id, passage_id, draw",
        "SELECT query_id, passage_id, draw, 0 FROM human WHERE draw NOTNULL AND sample = 0 AND grade NOTNULL",
    ):
        rows = connection.execute(statement)
        while some := rows.fetchmany(_READ_AT_ONCE):
            yield some


def drawn_for_people(connection: sqlite3.Connection) -> dict[str, int]:
    """{name of the draw: pairs that people graded}; the name is empty where it is not known."""
    counts: dict[str, int] = {}
    draws = draws_by_number(connection)
    rows = connection.execute(
        "SELECT draw, count(*) FROM (SELECT DISTINCT query_id, passage_id, draw FROM human"
        " WHERE sample = 0 AND grade NOTNULL) GROUP BY draw"
    )
    for number, count in rows:
        name = "" if number is None else str(draws[number].how.get("design", ""))
        counts[name] = counts.get(name, 0) + count
    return counts
