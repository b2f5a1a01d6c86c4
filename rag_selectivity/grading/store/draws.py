"""Where pairs come from: the draws of a store, and the pairs that each of them chose."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from itertools import islice

from rag_selectivity.grading.store.problems import StoreConnection
from rag_selectivity.grading.store.records import Draw, Origin
from rag_selectivity.grading.store.schema import transaction

_AT_ONCE = 2000
_READ_AT_ONCE = 20_000


def draw_number(connection: sqlite3.Connection, draw: Draw) -> int:
    """The number of a draw in the store; a new draw gets one."""
    known = "SELECT id FROM draws WHERE fingerprint = ?"
    row = connection.execute(known, (draw.fingerprint,)).fetchone()
    if row is None:
        connection.execute(
            "INSERT OR IGNORE INTO draws (fingerprint, kind, source, depth, how, created) VALUES (?, ?, ?, ?, ?, ?)",
            (draw.fingerprint, draw.kind, draw.source, draw.depth, draw.how_text, time.time()),
        )
        row = connection.execute(known, (draw.fingerprint,)).fetchone()
    return int(row[0])


def put_origins(connection: StoreConnection, rows: Iterable[tuple[str, str, Origin]]) -> None:
    """Write (query id, passage id, origin) rows; one of the same pair and draw is replaced."""
    numbers: dict[bytes, int] = {}
    waiting = iter(rows)
    while some := list(islice(waiting, _AT_ONCE)):
        for _, _, origin in some:
            mark = origin.draw.fingerprint
            if mark not in numbers:
                numbers[mark] = draw_number(connection, origin.draw)
        with transaction(connection):
            connection.executemany(
                "INSERT OR REPLACE INTO origins VALUES (?, ?, ?, ?, ?)",
                (
                    (
                        query,
                        passage,
                        numbers[origin.draw.fingerprint],
                        origin.rank,
                        json.dumps(dict(origin.detail), sort_keys=True, ensure_ascii=False) if origin.detail else None,
                    )
                    for query, passage, origin in some
                ),
            )


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
