"""The pairs of a grading run and their texts, in temporary tables beside the labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from rag_selectivity.grading.store.connection import Connection
from rag_selectivity.grading.store.gaps import Gaps
from rag_selectivity.grading.store.records import Draw, digest
from rag_selectivity.grading.store.writing import draw_number

_UNKNOWN = Draw("unknown")
#: The parts of a pool: the top ranks of its runs, what was drawn from the ranks below, and from the rest of the corpus.
TOP, TAIL, CONTROL = 0, 1, 2


class DrawnPair(NamedTuple):
    """A pair that was drawn at random, its rank in the run or in the fused runs, and `detail` as in `Origin`."""

    query: str
    passage: str
    rank: int | None
    detail: Mapping[str, Any]


class Pool:
    """The pairs of a grading run and their texts.

    The tables are SQLite's temporary ones: they are on disk, and closing the connection deletes them.

    Parameters
    ----------
    connection : Connection
        A connection of its own.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._draws: list[Draw] = []
        connection.execute("PRAGMA temp_store = FILE")
        connection.execute(
            "CREATE TEMP TABLE pool (query_id TEXT NOT NULL, passage_id TEXT NOT NULL, draw INTEGER NOT NULL,"
            " rank INTEGER, position REAL NOT NULL, part INTEGER NOT NULL, detail TEXT,"
            " PRIMARY KEY (query_id, passage_id, draw)) WITHOUT ROWID"
        )

    def filling(self) -> AbstractContextManager[None]:
        """Commit everything that is added in the block, or nothing."""
        return self._connection.moment()

    def add_pairs(self, rows: Iterable[tuple[str, str, int]], draw: Draw = _UNKNOWN) -> None:
        """Add (query id, passage id, rank) rows; a pair that occurs several times has its best rank.

        `draw` says how they were chosen; the store keeps it as the origin of their labels.
        """
        number = self._number(draw)
        self._connection.executemany(
            f"INSERT INTO pool VALUES (?1, ?2, {number}, ?3, ?3, {TOP}, NULL) ON CONFLICT DO UPDATE"
            " SET rank = excluded.rank, position = excluded.position WHERE excluded.rank < rank",
            rows,
        )

    def add_drawn(
        self, pairs: Iterable[DrawnPair], draw: Draw, part: int, position: Callable[[str, str], float]
    ) -> None:
        """Add pairs that were drawn at random.

        `position` gives the place of each in the order of asking, among the ranks of the query's other pairs.
        """
        self._connection.executemany(
            f"INSERT INTO pool VALUES (?, ?, {self._number(draw)}, ?, ?, {part}, ?)",
            (
                (query, passage, rank, position(query, passage), json.dumps(dict(detail), sort_keys=True))
                for query, passage, rank, detail in pairs
            ),
        )

    def _number(self, draw: Draw) -> int:
        if draw not in self._draws:
            self._draws.append(draw)
        return self._draws.index(draw)

    def query_texts(self) -> PoolTexts:
        """The texts that the queries of the pairs need; call it once, when all pairs are in."""
        return PoolTexts(self._connection, "queries", "query_id")

    def passage_texts(self) -> PoolTexts:
        """The texts that the passages of the pairs need; call it once, when all pairs are in."""
        return PoolTexts(self._connection, "passages", "passage_id")

    def count(self) -> int:
        """How many pairs there are."""
        pairs = "SELECT DISTINCT query_id, passage_id FROM pool"
        return int(self._connection.execute(f"SELECT count(*) FROM ({pairs})").fetchone()[0])

    def gaps(self, settings: int, *, samples: int, batch: int, by_rank: bool) -> Gaps:
        """The labels that the store does not hold for these pairs, when all texts are in; a call ends the last Gaps."""
        return Gaps(self._connection, settings, samples, batch, by_rank)

    def record_texts(self) -> None:
        """Write to the store which texts the ids have now, and where the pairs come from."""
        numbers = [(i, draw_number(self._connection, d)) for i, d in enumerate(self._draws) if d.kind != "unknown"]
        self._connection.execute("CREATE TEMP TABLE draw_numbers (place INTEGER PRIMARY KEY, number INTEGER NOT NULL)")
        self._connection.executemany("INSERT INTO draw_numbers VALUES (?, ?)", numbers)
        self._connection.execute(
            "INSERT INTO pairs SELECT DISTINCT pool.query_id, pool.passage_id, q.hash, p.hash FROM pool"
            " JOIN queries q ON q.id = pool.query_id JOIN passages p ON p.id = pool.passage_id WHERE true"
            " ON CONFLICT DO UPDATE SET query_hash = excluded.query_hash, passage_hash = excluded.passage_hash"
            " WHERE query_hash != excluded.query_hash OR passage_hash != excluded.passage_hash"
        )
        self._connection.execute(
            "INSERT INTO origins SELECT pool.query_id, pool.passage_id, d.number, pool.rank, pool.detail FROM pool"
            " JOIN draw_numbers d ON d.place = pool.draw WHERE true"
            " ON CONFLICT DO UPDATE SET rank = excluded.rank, detail = excluded.detail"
            " WHERE rank IS NOT excluded.rank OR detail IS NOT excluded.detail"
        )
        self._connection.execute("DROP TABLE draw_numbers")


class PoolTexts:
    """The texts of a pool's queries, or of its passages."""

    def __init__(self, connection: Connection, table: str, column: str) -> None:
        self._connection = connection
        self._table = table
        connection.execute(f"CREATE TEMP TABLE {table} (id TEXT PRIMARY KEY, hash BLOB NOT NULL, text TEXT NOT NULL)")
        connection.execute(f"CREATE TEMP TABLE needed_{table} (id TEXT PRIMARY KEY) WITHOUT ROWID")
        connection.execute(f"INSERT INTO needed_{table} SELECT DISTINCT {column} FROM pool")

    def needed_ids(self) -> Iterator[str]:
        """The ids that need a text."""
        return (row[0] for row in self._connection.execute(f"SELECT id FROM needed_{self._table}"))

    def add(self, texts: Iterable[tuple[str, str]]) -> None:
        """Add (id, text) rows, in which an id has one text. Ids that need no text are left out."""
        self._connection.executemany(
            f"INSERT INTO {self._table} SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM needed_{self._table}"
            f" WHERE id = ?1) AND NOT EXISTS (SELECT 1 FROM {self._table} WHERE id = ?1)",
            ((id_, digest(text), text) for id_, text in texts),
        )

    def missing(self, limit: int, *, empty_too: bool = False) -> tuple[int, list[str]]:
        """How many ids have no text (or an empty one), and the first few of them."""
        filled = " WHERE trim(text, char(9, 10, 13, 32)) != ''" if empty_too else ""
        without_text = f"FROM needed_{self._table} WHERE id NOT IN (SELECT id FROM {self._table}{filled})"
        count = int(self._connection.execute(f"SELECT count(*) {without_text}").fetchone()[0])
        ids = self._connection.execute(f"SELECT id {without_text} LIMIT ?", (limit,))
        return count, [row[0] for row in ids]
