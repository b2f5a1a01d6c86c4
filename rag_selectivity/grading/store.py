"""The label store: one SQLite file, the single home of judges' and humans' labels.

A label belongs to texts, not to ids: its key is what was asked (model, parameters, rubric, prompt
version) and the hashes of query and passage. `pairs` says which texts an id has now. So a text
that changed is graded anew, and an id that changed is not.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.files.opening import STANDARD_INPUT

MAGIC = b"SQLite format 3\0"
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
    prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, seconds REAL, attempts INTEGER, error TEXT,
    created REAL NOT NULL,
    PRIMARY KEY (settings, query_hash, passage_hash, sample)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS human (
    query_id TEXT NOT NULL, passage_id TEXT NOT NULL, annotator TEXT NOT NULL, grade INTEGER NOT NULL, reason TEXT,
    created REAL NOT NULL,
    PRIMARY KEY (query_id, passage_id, annotator)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    settings INTEGER NOT NULL REFERENCES settings, content BLOB NOT NULL, value TEXT, prompt_tokens INTEGER,
    completion_tokens INTEGER, cost REAL, seconds REAL, attempts INTEGER, error TEXT, created REAL NOT NULL,
    PRIMARY KEY (settings, content)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
    settings INTEGER NOT NULL, query_hash BLOB NOT NULL, passage_hash BLOB NOT NULL, sample INTEGER NOT NULL,
    owner TEXT NOT NULL, expires REAL NOT NULL,
    PRIMARY KEY (settings, query_hash, passage_hash, sample)
) WITHOUT ROWID;
"""

Key = tuple[int, bytes, bytes, int]


@dataclass(frozen=True, slots=True)
class Settings:
    """All that can change an answer, but for the texts."""

    kind: str
    model: str
    parameters: Mapping[str, Any]
    rubric: str = ""
    rubric_version: str = ""
    prompt_version: str = ""

    @property
    def parameters_text(self) -> str:
        return json.dumps(dict(self.parameters), sort_keys=True, ensure_ascii=False, default=str)

    @property
    def fingerprint(self) -> bytes:
        said = [self.kind, self.model, self.parameters_text, self.rubric_version, self.prompt_version]
        return digest(json.dumps(said, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Label:
    """One grade of one pair by one judge, or why there is none."""

    key: Key
    grade: int | None
    reason: str | None = None
    relevant_span: str | None = None
    misleading: bool | None = None
    flagged: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A judge's answer to something else than a grade, by the hash of what was asked."""

    settings: int
    content: bytes
    value: Any
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    error: str | None = None


def digest(text: str) -> bytes:
    """The hash that stands for a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Store:
    """An open label store. Use as a context manager, or close it.

    Writes go through one thread and outlive the process once their future is done; several processes
    may share a file.

    Parameters
    ----------
    path : str or Path
    create : bool
        Make the file if there is none; otherwise its absence is an InputError.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if self.path == STANDARD_INPUT:
            raise InputError("-: a label store is an SQLite file and cannot be a pipe; name its file")
        if not create and not self.path.exists():
            raise InputError(f"{self.path}: there is no such label store")
        if not self.path.parent.is_dir():
            raise InputError(f"{self.path}: the folder does not exist")
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{time.time_ns()}"
        self.connection = self._connect()
        self._writer: _Writer | None = None

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables and application != _APPLICATION:
                raise InputError(f"{self.path}: an SQLite file, but not a label store")
            if version > _VERSION:
                raise InputError(f"{self.path}: made by a newer version of rag-selectivity; update it")
            connection.execute("PRAGMA journal_mode = WAL")
            # A commit is in the operating system's hands when it returns: the process may die at any moment.
            # Only a power failure can take the last ones back, and never half of one.
            connection.execute("PRAGMA synchronous = NORMAL")
            if not tables:
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path}: cannot be used as a label store ({error})") from None
        return connection

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish writing and give back what was leased."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self.connection.execute("DELETE FROM leases WHERE owner = ?", (self.owner,))
        self.connection.close()

    # -- writing ---------------------------------------------------------------------------------

    def settings_id(self, settings: Settings) -> int:
        """The number under which labels of these settings stand; made if it is new."""
        self.connection.execute(
            "INSERT OR IGNORE INTO settings (fingerprint, kind, model, parameters, rubric, rubric_version,"
            " prompt_version, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                settings.fingerprint,
                settings.kind,
                settings.model,
                settings.parameters_text,
                settings.rubric,
                settings.rubric_version,
                settings.prompt_version,
                time.time(),
            ),
        )
        found = self.connection.execute("SELECT id FROM settings WHERE fingerprint = ?", (settings.fingerprint,))
        return int(found.fetchone()[0])

    def put(self, records: Sequence[Label | StoredAnswer]) -> Future[None]:
        """Write labels and answers; the future is done when they are committed."""
        if self._writer is None:
            self._writer = _Writer(self._connect, self.owner)
        return self._writer.put(records)

    def put_human(self, rows: Iterable[tuple[str, str, int, str | None]], annotator: str) -> int:
        """Write human grades (query id, passage id, grade, reason); a newer one of the same annotator replaces."""
        now = time.time()
        with _transaction(self.connection):
            before = self.connection.total_changes
            self.connection.executemany(
                "INSERT OR REPLACE INTO human VALUES (?, ?, ?, ?, ?, ?)",
                ((query, passage, annotator, grade, reason, now) for query, passage, grade, reason in rows),
            )
            return self.connection.total_changes - before

    def lease(self, keys: Sequence[Key], seconds: float) -> set[Key]:
        """Reserve pairs for this process; those that another living process holds are not among the result."""
        now = time.time()
        with _transaction(self.connection):
            owners = [row[0] for row in self.connection.execute("SELECT DISTINCT owner FROM leases")]
            for owner in owners:
                if owner != self.owner and _is_dead(owner):
                    self.connection.execute("DELETE FROM leases WHERE owner = ?", (owner,))
            self.connection.executemany(
                "INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET owner = excluded.owner,"
                " expires = excluded.expires WHERE expires < ? OR owner = excluded.owner",
                ((*key, self.owner, now + seconds, now) for key in keys),
            )
            held = {
                tuple(row)
                for row in self.connection.execute(
                    "SELECT settings, query_hash, passage_hash, sample FROM leases WHERE owner = ?", (self.owner,)
                )
            }
            # A label may have come from another process between the look for gaps and now.
            done = {
                key
                for key in keys
                if self.connection.execute(
                    "SELECT 1 FROM labels WHERE settings = ? AND query_hash = ? AND passage_hash = ? AND sample = ?"
                    " AND grade IS NOT NULL",
                    key,
                ).fetchone()
            }
            return {key for key in keys if key in held and key not in done}

    # -- reading ---------------------------------------------------------------------------------

    def answer(self, settings: int, content: bytes) -> Any:
        """A stored answer, or None."""
        row = self.connection.execute(
            "SELECT value FROM answers WHERE settings = ? AND content = ? AND value IS NOT NULL", (settings, content)
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def judges(self) -> list[dict[str, Any]]:
        """Who gave labels: for each setting its name, model, parameters, rubric, and counts, tokens and cost."""
        rows = self.connection.execute(
            "SELECT s.id, s.model, s.parameters, s.rubric, s.rubric_version, s.prompt_version,"
            " count(l.grade), count(l.error), sum(l.prompt_tokens), sum(l.completion_tokens), sum(l.cost),"
            " sum(l.flagged) FROM settings s LEFT JOIN labels l ON l.settings = s.id"
            " WHERE s.kind = 'grade' GROUP BY s.id ORDER BY s.id"
        ).fetchall()
        names = _names([(row[0], row[1]) for row in rows])
        asked = ("model", "parameters", "rubric", "rubric_version", "prompt_version")
        keys = (*asked, "graded", "failed", "prompt_tokens", "completion_tokens", "cost", "flagged")
        return [{"judge": names[row[0]], **dict(zip(keys, row[1:], strict=True))} for row in rows]

    def humans(self) -> list[tuple[str, int]]:
        """Annotators and how many grades each gave."""
        return self.connection.execute("SELECT annotator, count(*) FROM human GROUP BY 1 ORDER BY 1").fetchall()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every label with all that is known of it, for export; failed ones have an error in place of a grade."""
        names = _names(self.connection.execute("SELECT id, model FROM settings").fetchall())
        columns = [field.name for field in fields(Label) if field.name != "key"]
        found = self.connection.execute(
            f"SELECT p.query_id, p.passage_id, l.settings, {', '.join(f'l.{name}' for name in columns)}, l.sample,"
            " l.created, s.model, s.parameters, s.rubric, s.rubric_version, s.prompt_version,"
            " p.query_hash, p.passage_hash"
            " FROM pairs p JOIN labels l ON l.query_hash = p.query_hash AND l.passage_hash = p.passage_hash"
            " JOIN settings s ON s.id = l.settings WHERE s.kind = 'grade'"
            " ORDER BY l.settings, p.query_id, p.passage_id, l.sample"
        )
        for query, passage, settings, *rest in found:
            values, others = rest[: len(columns)], rest[len(columns) :]
            row = {"query_id": query, "passage_id": passage, "source": "judge", "judge": names[settings]}
            row |= dict(zip(columns, values, strict=True))
            last = ("sample", "created", "model", "parameters", "rubric", "rubric_version", "prompt_version")
            row |= dict(zip(last, others[:7], strict=True))
            row |= {"query_hash": others[7].hex(), "passage_hash": others[8].hex()}
            yield row
        for query, passage, annotator, grade, reason, created in self.connection.execute(
            "SELECT * FROM human ORDER BY annotator, query_id, passage_id"
        ):
            row = {"query_id": query, "passage_id": passage, "source": "human", "judge": annotator}
            yield {**row, "grade": grade, "reason": reason, "created": created}

    def judge_grades(
        self, judges: Sequence[str] | None = None, *, as_given: bool = False
    ) -> Iterator[tuple[str, str, str, list[int]]]:
        """(query id, passage id, judge, grades of its samples), of the judges named or of all.

        Where a judge said whether a passage misleads, junk that does is a 1 and junk that does not is a 2,
        so that `Harm(max_grade=1)` counts distractors and not mere noise; `as_given` leaves the grades as
        they were said.
        """
        chosen = self._chosen(judges)
        junk = "CASE WHEN l.misleading IS NULL OR l.grade > 2 THEN l.grade WHEN l.misleading THEN 1 ELSE 2 END"
        found = self.connection.execute(
            f"SELECT p.query_id, p.passage_id, l.settings, {'l.grade' if as_given else junk} FROM pairs p"
            " JOIN labels l ON l.query_hash = p.query_hash AND l.passage_hash = p.passage_hash"
            " WHERE l.grade IS NOT NULL ORDER BY p.query_id, p.passage_id, l.settings, l.sample"
        )
        current: tuple[str, str, int] | None = None
        grades: list[int] = []
        for query, passage, settings, grade in found:
            if settings not in chosen:
                continue
            if (query, passage, settings) != current:
                if current is not None:
                    yield current[0], current[1], chosen[current[2]], grades
                current, grades = (query, passage, settings), []
            grades.append(grade)
        if current is not None:
            yield current[0], current[1], chosen[current[2]], grades

    def _chosen(self, judges: Sequence[str] | None) -> dict[int, str]:
        """Settings by number, with the names of their judges."""
        rows = self.connection.execute("SELECT id, model FROM settings WHERE kind = 'grade'").fetchall()
        names = _names(rows)
        if judges is None:
            return names
        chosen: dict[int, str] = {}
        for wanted in judges:
            of_name = {number: name for number, name in names.items() if name == wanted}
            of_name = of_name or {number: names[number] for number, model in rows if model == wanted}
            if not of_name:
                raise InputError(
                    f"{self.path} has no judge {wanted!r}; it has {', '.join(names.values()) or 'no judge at all'}"
                )
            chosen |= of_name
        return chosen


def label_rows(
    store: Store,
    *,
    judges: Sequence[str] | None = None,
    rule: str | None = None,
    humans: bool = True,
    as_given: bool = False,
) -> Iterator[tuple[str, str, int]]:
    """(query id, passage id, grade): one grade a pair, as qrels have it.

    A human label wins over a judge's. Several samples of a judge, or several annotators, give their
    median, the lower one of two. Several judges for a pair need to be told apart by `judges`, or
    joined by a `rule`: `median`, `lowest` or `highest`. `as_given` as in `Store.judge_grades`.

    Raises
    ------
    InputError
        If several judges graded a pair and neither is given; it lists them.
    """
    joined = {None: None, "median": median_grade, "lowest": min, "highest": max}
    if rule not in joined:
        raise InputError(f"the rule for several judges must be median, lowest or highest, got {rule!r}")
    by_hand: dict[tuple[str, str], list[int]] = {}
    if humans:
        for query, passage, grade in store.connection.execute("SELECT query_id, passage_id, grade FROM human"):
            by_hand.setdefault((query, passage), []).append(grade)
    for labelled, grades in by_hand.items():
        yield *labelled, median_grade(grades)
    pair: tuple[str, str] | None = None
    found: dict[str, int] = {}
    for query, passage, judge, grades in store.judge_grades(judges, as_given=as_given):
        if (query, passage) != pair:
            if pair is not None and pair not in by_hand:
                yield *pair, _joined(pair, found, joined[rule], store)
            pair, found = (query, passage), {}
        found[judge] = median_grade(grades)
    if pair is not None and pair not in by_hand:
        yield *pair, _joined(pair, found, joined[rule], store)


def median_grade(grades: Sequence[int]) -> int:
    """The median, and of an even number the lower of the two in the middle.

    >>> median_grade([5, 2, 4]), median_grade([5, 2])
    (4, 2)
    """
    return sorted(grades)[(len(grades) - 1) // 2]


def _joined(
    pair: tuple[str, str], found: Mapping[str, int], rule: Callable[[list[int]], int] | None, store: Store
) -> int:
    if len(found) == 1:
        return next(iter(found.values()))
    if rule is None:
        raise InputError(
            f"{store.path}: query {pair[0]!r}, passage {pair[1]!r} was graded by several judges "
            f"({', '.join(found)}): choose one with --judge (judge=…), or join them with --judge-rule median (rule=…)"
        )
    return rule(list(found.values()))


def _names(settings: Sequence[tuple[int, str]]) -> dict[int, str]:
    """A judge's name is its model, with its number where a model stands under several settings."""
    models = [model for _, model in settings]
    return {number: model if models.count(model) == 1 else f"{model}#{number}" for number, model in settings}


def is_store(head: bytes) -> bool:
    """Whether a file that begins so is an SQLite file."""
    return head.startswith(MAGIC)


class _transaction:
    """BEGIN IMMEDIATE … COMMIT: writers wait for each other instead of failing half-way."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __enter__(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self.connection.execute("COMMIT" if kind is None else "ROLLBACK")


def _is_dead(owner: str) -> bool:
    """Whether a lease's owner was a process of this machine that runs no more."""
    host, _, rest = owner.partition(":")
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(rest.partition(":")[0]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False


class _Writer:
    """One thread that writes what has come in, a transaction for all that waits."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], owner: str) -> None:
        self._queue: queue.SimpleQueue[tuple[Sequence[Label | StoredAnswer], Future[None]] | None] = queue.SimpleQueue()
        self._connect = connect
        self._owner = owner
        self._thread = threading.Thread(target=self._run, name="label-store", daemon=True)
        self._thread.start()

    def put(self, records: Sequence[Label | StoredAnswer]) -> Future[None]:
        done: Future[None] = Future()
        self._queue.put((records, done))
        return done

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        connection = self._connect()
        last = False
        while not last:
            batch = [self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get())
            last = None in batch
            waiting = [item for item in batch if item is not None]
            if not waiting:
                continue
            try:
                with _transaction(connection):
                    for records, _ in waiting:
                        for record in records:
                            self._write(connection, record)
            except BaseException as error:
                for _, done in waiting:
                    done.set_exception(error)
            else:
                for _, done in waiting:
                    done.set_result(None)
        connection.close()

    def _write(self, connection: sqlite3.Connection, record: Label | StoredAnswer) -> None:
        now = time.time()
        if isinstance(record, StoredAnswer):
            value = None if record.value is None else json.dumps(record.value, ensure_ascii=False)
            connection.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                " value = excluded.value, error = excluded.error, attempts = excluded.attempts,"
                " created = excluded.created WHERE answers.value IS NULL",
                (
                    record.settings,
                    record.content,
                    value,
                    record.prompt_tokens,
                    record.completion_tokens,
                    record.cost,
                    record.seconds,
                    record.attempts,
                    record.error,
                    now,
                ),
            )
            return
        data = asdict(record)
        key = data.pop("key")
        # A grade that is there stays: only a failure is replaced.
        columns = list(data)
        connection.execute(
            f"INSERT INTO labels (settings, query_hash, passage_hash, sample, created, {', '.join(columns)})"
            f" VALUES ({', '.join('?' * (5 + len(columns)))}) ON CONFLICT DO UPDATE SET"
            f" {', '.join(f'{name} = excluded.{name}' for name in (*columns, 'created'))} WHERE labels.grade IS NULL",
            (*key, now, *data.values()),
        )
        connection.execute(
            "DELETE FROM leases WHERE settings = ? AND query_hash = ? AND passage_hash = ? AND sample = ?"
            " AND owner = ?",
            (*key, self._owner),
        )
