"""The labels that a store does not hold for the pairs of a pool, in the order in which a judge is asked for them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rag_selectivity.grading.store.connection import Connection
from rag_selectivity.grading.store.records import Key

_WITH_LABELS = (
    "FROM asked a JOIN samples n LEFT JOIN labels l ON l.settings = ? AND l.query_hash = a.query_hash"
    " AND l.passage_hash = a.passage_hash AND l.sample = n.number"
)

#: What `str.strip` takes off.
_BLANK = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


@dataclass(frozen=True, slots=True)
class GapCounts:
    """How many of the labels are grades, how many are failures, and how many do not exist."""

    cached: int
    failed: int
    missing: int


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


class Gaps:
    """Finds the missing labels of a pool under some settings.

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

    def __init__(self, connection: Connection, settings: int, samples: int, batch: int, by_rank: bool) -> None:
        self._connection = connection
        self._settings = settings
        self._batch = batch
        self._order = "block, query" if by_rank else "query, block"
        for table in ("samples", "asked"):
            connection.execute(f"DROP TABLE IF EXISTS temp.{table}")
        connection.execute("CREATE TEMP TABLE samples (number INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO samples VALUES (?)", [(number,) for number in range(samples)])
        # Two ids with the same texts are one question.
        connection.execute(
            "CREATE TEMP TABLE asked AS SELECT q.hash AS query_hash, p.hash AS passage_hash, min(q.rowid) AS query,"
            " min(p.rowid) AS passage, min(pool.position) AS rank, min(pool.part) AS part"
            " FROM pool JOIN queries q ON q.id = pool.query_id"
            " JOIN passages p ON p.id = pool.passage_id GROUP BY q.hash, p.hash"
        )

    def counts(self) -> GapCounts:
        """The labels of the pool as the store has them now."""
        cached, failed, total = self._connection.execute(
            f"SELECT count(l.grade), count(l.settings) - count(l.grade), count(*) {_WITH_LABELS}", (self._settings,)
        ).fetchone()
        return GapCounts(cached, failed, total - cached - failed)

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
        return int(self._connection.execute("SELECT count(*) FROM pending").fetchone()[0])

    def any_left(self) -> bool:
        """Whether the last `find` listed any."""
        return self._connection.execute("SELECT 1 FROM pending").fetchone() is not None

    def sizes(self) -> dict[int, tuple[int, int, int]]:
        """{part of the pool: (listed labels, those of passages that are not empty, length of their texts)}."""
        rows = self._connection.execute(
            "SELECT part, count(*), count(CASE WHEN trim(p.text, ?) != '' THEN 1 END),"
            " total(length(q.text) + length(p.text)) FROM pending JOIN queries q"
            " ON q.rowid = query JOIN passages p ON p.rowid = passage GROUP BY part",
            (_BLANK,),
        )
        return {part: (count, asked, int(characters)) for part, count, asked, characters in rows}

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
