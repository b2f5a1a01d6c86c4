"""The pairs of a grading run with their texts, in temporary tables, and the labels that the store lacks for them."""

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.store.connection import Connection
from rag_selectivity.grading.store.records import OR_READ, READ, Draw, Key, digest, draw_number
from rag_selectivity.tables.small import read_texts
from rag_selectivity.wording import counted

#: The parts of a pool: the top ranks of its runs, what was drawn from the ranks below, and from the rest of the corpus.
TOP, TAIL, CONTROL = 0, 1, 2
#: Query id, passage id, rank, place in the order of asking among the query's other pairs, and `detail` as in `Origin`.
PoolRow = tuple[str, str, int | None, float, Mapping[str, Any]]

_WITH_LABELS = (
    "FROM asked a JOIN samples n LEFT JOIN labels l ON l.settings = ? AND l.query_hash = a.query_hash"
    " AND l.passage_hash = a.passage_hash AND l.sample = n.number"
)
#: What `str.strip` takes off.
_BLANK = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


@dataclass(frozen=True, slots=True)
class Gap:
    """A missing label, with the texts to ask about.

    Attributes
    ----------
    place : int
        Position in the order of asking, from 1.
    key : Key
    group : tuple
        Gaps that follow each other and have the same group may share a call.
    query, passage : str
        Texts.
    """

    place: int
    key: Key
    group: tuple[int, int, int]
    query: str
    passage: str


class Pool:
    """The pairs of a grading run, and the labels that the store lacks for them under some settings.

    The tables are SQLite's temporary ones: they are on disk, and closing the connection deletes them. First the pairs
    are added, then their texts, then `ask_for` says which labels are wanted.

    Parameters
    ----------
    connection : Connection
        A connection of its own.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._draws: list[Draw] = []
        connection.execute(
            "CREATE TEMP TABLE pool (query_id TEXT NOT NULL, passage_id TEXT NOT NULL, draw INTEGER NOT NULL,"
            " rank INTEGER, position REAL NOT NULL, part INTEGER NOT NULL, detail TEXT,"
            " PRIMARY KEY (query_id, passage_id, draw)) WITHOUT ROWID"
        )

    # -- pairs and texts ---------------------------------------------------------------------------

    def filling(self) -> AbstractContextManager[None]:
        """Commit everything that is added in the block, or nothing."""
        return self._connection.moment()

    def add(self, draw: Draw, part: int, rows: Iterable[PoolRow]) -> None:
        """Add pairs; one that occurs several times in a draw has its best rank.

        `draw` says how they were chosen; the store keeps it as the origin of their labels.
        """
        if draw not in self._draws:
            self._draws.append(draw)
        self._connection.executemany(
            f"INSERT INTO pool VALUES (?, ?, {self._draws.index(draw)}, ?, ?, {part}, ?) ON CONFLICT DO UPDATE"
            " SET rank = excluded.rank, position = excluded.position WHERE excluded.rank < rank",
            ((*row, json.dumps(dict(detail), sort_keys=True) if detail else None) for *row, detail in rows),
        )

    def add_texts(self, what: str, source: Any) -> None:
        """Add the texts of all pairs from the `queries` or the `corpus`, as `read_texts` reads them.

        Raises
        ------
        InputError
            If an id has no text, or a query an empty one.
        """
        table, column = ("queries", "query_id") if what == "queries" else ("passages", "passage_id")
        self._connection.execute(
            f"CREATE TEMP TABLE {table} (id TEXT PRIMARY KEY, hash BLOB NOT NULL, text TEXT NOT NULL)"
        )
        needed = {row[0] for row in self._connection.execute(f"SELECT DISTINCT {column} FROM pool")}
        self._connection.executemany(
            f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?)",
            ((id_, digest(text), text) for id_, text in read_texts(source, what, only=needed)),
        )
        # An empty passage helps nobody and can be graded so; of an empty question nothing can be said.
        filled = self._connection.execute(
            f"SELECT id FROM {table} WHERE {what == 'corpus'} OR trim(text, ?) != ''", (_BLANK,)
        )
        needed.difference_update(row[0] for row in filled)
        if needed:
            raise InputError(
                f"{what}: {counted(len(needed), 'id')} of the pool without a text ({examples(sorted(needed))}); add "
                f"the texts, or check that the {what} and the pool use the same ids"
            )

    def count(self) -> int:
        """How many pairs there are."""
        return self._number("SELECT count(*) FROM (SELECT DISTINCT query_id, passage_id FROM pool)")

    def record(self) -> int:
        """Write to the store which texts the ids have now, and where the pairs come from.

        An id has one text in a store. What was graded of another one does not count any more, in whichever pairs:
        returns in how many.
        """
        self._connection.execute(
            "INSERT INTO pairs SELECT DISTINCT pool.query_id, pool.passage_id, q.hash, p.hash FROM pool JOIN queries q"
            f" ON q.id = pool.query_id JOIN passages p ON p.id = pool.passage_id WHERE true {OR_READ}"
        )
        of_query = "coalesce((SELECT hash FROM queries WHERE id = query_id), query_hash)"
        of_passage = "coalesce((SELECT hash FROM passages WHERE id = passage_id), passage_hash)"
        is_other = f"WHERE {READ} AND (query_hash != {of_query} OR passage_hash != {of_passage})"
        others = f"(query_id, passage_id) IN (SELECT query_id, passage_id FROM pairs {is_other})"
        # What was drawn for people says itself which texts they read.
        of_judges = "draw NOT IN (SELECT id FROM draws WHERE kind = 'person')"
        self._connection.execute(f"DELETE FROM origins WHERE {others} AND {of_judges}")
        now = f"query_hash = {of_query}, passage_hash = {of_passage}"
        changed = self._connection.execute(f"UPDATE pairs SET {now} {is_other}").rowcount
        for place, draw in enumerate(self._draws):
            self._connection.execute(
                "INSERT INTO origins SELECT query_id, passage_id, ?, rank, detail FROM pool WHERE draw = ?"
                " ON CONFLICT DO UPDATE SET rank = excluded.rank, detail = excluded.detail"
                " WHERE rank IS NOT excluded.rank OR detail IS NOT excluded.detail",
                (draw_number(self._connection, draw), place),
            )
        return changed

    # -- missing labels ----------------------------------------------------------------------------

    def ask_for(self, settings: int, *, samples: int, batch: int, by_rank: bool) -> None:
        """Want so many labels of each pair under some settings, when all texts are in.

        Parameters
        ----------
        settings : int
            Number of the settings in the store.
        samples : int
            Labels for each pair.
        batch : int
            Passages in a call.
        by_rank : bool
            The top ranks of all queries come first; otherwise query by query.
        """
        self._settings, self._batch = settings, batch
        self._order = "block, query" if by_rank else "query, block"
        self._connection.execute("CREATE TEMP TABLE samples (number INTEGER PRIMARY KEY)")
        self._connection.executemany("INSERT INTO samples VALUES (?)", [(number,) for number in range(samples)])
        # Two ids with the same texts are one question.
        self._connection.execute(
            "CREATE TEMP TABLE asked AS SELECT q.hash AS query_hash, p.hash AS passage_hash, min(q.rowid) AS query,"
            " min(p.rowid) AS passage, min(pool.position) AS rank, min(pool.part) AS part"
            " FROM pool JOIN queries q ON q.id = pool.query_id"
            " JOIN passages p ON p.id = pool.passage_id GROUP BY q.hash, p.hash"
        )

    def counts(self) -> tuple[int, int, int]:
        """How many of the labels are grades now, how many are failures, and how many do not exist."""
        cached, failed, total = self._connection.execute(
            f"SELECT count(l.grade), count(l.settings) - count(l.grade), count(*) {_WITH_LABELS}", (self._settings,)
        ).fetchone()
        return cached, failed, total - cached - failed

    def find(self, retried: Collection[str] | None) -> int:
        """List the labels to ask for: missing ones, and failures of the kinds to retry (None: all); how many."""
        self._connection.execute("DROP TABLE IF EXISTS pending")
        kinds = () if retried is None else tuple(retried)
        is_retried = "true" if retried is None else f"l.failure IN ({', '.join('?' * len(kinds))})"
        block = f"(row_number() OVER (PARTITION BY a.query, n.number ORDER BY a.rank, a.passage) - 1) / {self._batch}"
        self._connection.execute(
            f"CREATE TEMP TABLE pending AS SELECT a.*, n.number AS sample, {block} AS block {_WITH_LABELS}"
            f" WHERE l.settings IS NULL OR (l.grade IS NULL AND {is_retried})"
            f" ORDER BY n.number, {self._order}, a.rank, a.passage",
            (self._settings, *kinds),
        )
        return self._number("SELECT count(*) FROM pending")

    def sizes(self) -> dict[int, tuple[int, int, int, int]]:
        """{part of the pool: (listed labels, those to ask about, requests, length of their texts)}.

        Nothing is asked about empty passages. A request about several parts counts in the first of them.
        """
        rows = self._connection.execute(
            "SELECT part, count(*), total(asked), total(asked AND first), total(asked * (own + first * shared))"
            " FROM (SELECT part, length(q.text) AS shared, length(p.text) AS own, trim(p.text, ?1) != '' AS asked,"
            " row_number() OVER (PARTITION BY query, sample, block, trim(p.text, ?1) != '' ORDER BY part) = 1 AS first"
            " FROM pending JOIN queries q ON q.rowid = query JOIN passages p ON p.rowid = passage) GROUP BY part",
            (_BLANK,),
        )
        return {part: (count, int(asked), int(requests), int(size)) for part, count, asked, requests, size in rows}

    def is_graded(self, key: Key) -> bool:
        """Whether the store has a grade of this key now."""
        row = self._connection.execute(
            "SELECT 1 FROM labels WHERE settings = ? AND query_hash = ? AND passage_hash = ? AND sample = ?"
            " AND grade IS NOT NULL",
            key,
        )
        return row.fetchone() is not None

    def after(self, place: int, limit: int) -> list[Gap]:
        """The next few of the list, behind a place (0: from the start)."""
        rows = self._connection.execute(
            "SELECT pending.rowid, query_hash, passage_hash, sample, block, query, q.text, p.text FROM pending"
            " JOIN queries q ON q.rowid = query JOIN passages p ON p.rowid = passage"
            " WHERE pending.rowid > ? ORDER BY pending.rowid LIMIT ?",
            (place, limit),
        )
        return [
            Gap(number, (self._settings, query_hash, passage_hash, sample), (sample, block, query), question, passage)
            for number, query_hash, passage_hash, sample, block, query, question, passage in rows
        ]

    def _number(self, statement: str) -> int:
        return int(self._connection.execute(statement).fetchone()[0])
