"""An open label store."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import fields
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.store.pool import Pool
from rag_selectivity.grading.store.records import Key, Label, Settings, StoredAnswer
from rag_selectivity.grading.store.schema import connect, transaction
from rag_selectivity.grading.store.writer import Writer
from rag_selectivity.io.opening import STANDARD_INPUT


class Store:
    """An open label store. Use it as a context manager, or close it.

    One thread writes the labels. A label whose future is done survives the end of the process. Several processes may
    share a file.

    Parameters
    ----------
    path : str or Path
    create : bool
        Create a file that does not exist; if false, that is an InputError.

    Attributes
    ----------
    path : Path
    owner : str
        This process, as its leases name it.
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
        self._connection = connect(self.path)
        self._writer: Writer | None = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish writing and end the leases of this process."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._connection.execute("DELETE FROM leases WHERE owner = ?", (self.owner,))
        self._connection.close()

    # -- writing ---------------------------------------------------------------------------------

    def settings_id(self, settings: Settings) -> int:
        """The number of these settings in the store; new settings get one."""
        self._connection.execute(
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
        row = self._connection.execute(
            "SELECT id FROM settings WHERE fingerprint = ?", (settings.fingerprint,)
        ).fetchone()
        return int(row[0])

    def put(self, records: Sequence[Label | StoredAnswer]) -> Future[None]:
        """Write labels and answers; the future is done when they are committed."""
        if self._writer is None:
            self._writer = Writer(self.path, self.owner)
        return self._writer.put(records)

    def add_texts(self, pairs: Iterable[tuple[str, str, bytes, bytes]]) -> None:
        """Add (query id, passage id, query hash, passage hash) rows; a pair that the store has keeps its texts."""
        self._connection.executemany("INSERT OR IGNORE INTO pairs VALUES (?, ?, ?, ?)", pairs)

    def put_human(self, rows: Iterable[tuple[str, str, int, str | None]], annotator: str) -> int:
        """Write human grades as (query id, passage id, grade, reason) rows; how many.

        A grade replaces an earlier one of the same annotator.
        """
        now = time.time()
        with transaction(self._connection):
            before = self._connection.total_changes
            self._connection.executemany(
                "INSERT OR REPLACE INTO human VALUES (?, ?, ?, ?, ?, ?)",
                ((query, passage, annotator, grade, reason, now) for query, passage, grade, reason in rows),
            )
            return self._connection.total_changes - before

    def lease(self, keys: Sequence[Key], seconds: float) -> set[Key]:
        """Reserve labels for this process; those that the result leaves out belong to another process or exist."""
        now = time.time()
        with transaction(self._connection):
            owners = [row[0] for row in self._connection.execute("SELECT DISTINCT owner FROM leases")]
            for owner in owners:
                if owner != self.owner and _is_dead(owner):
                    self._connection.execute("DELETE FROM leases WHERE owner = ?", (owner,))
            self._connection.executemany(
                "INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET owner = excluded.owner,"
                " expires = excluded.expires WHERE expires < ? OR owner = excluded.owner",
                ((*key, self.owner, now + seconds, now) for key in keys),
            )
            held = {
                tuple(row)
                for row in self._connection.execute(
                    "SELECT settings, query_hash, passage_hash, sample FROM leases WHERE owner = ?", (self.owner,)
                )
            }
            # Another process may have written a label since the gaps were listed.
            graded = {
                key
                for key in keys
                if self._connection.execute(
                    "SELECT 1 FROM labels WHERE settings = ? AND query_hash = ? AND passage_hash = ? AND sample = ?"
                    " AND grade IS NOT NULL",
                    key,
                ).fetchone()
            }
            return {key for key in keys if key in held and key not in graded}

    def new_pool(self) -> Pool:
        """An empty pool for a grading run; an open store has at most one."""
        return Pool(self._connection)

    # -- reading ---------------------------------------------------------------------------------

    def answer(self, settings: int, content: bytes) -> Any:
        """The stored answer to a question by its hash, or None."""
        row = self._connection.execute(
            "SELECT value FROM answers WHERE settings = ? AND content = ? AND value IS NOT NULL", (settings, content)
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def judges(self) -> list[dict[str, Any]]:
        """A row for each judge: its name, settings, counts of labels, tokens and cost."""
        rows = self._connection.execute(
            "SELECT s.id, s.model, s.parameters, s.rubric, s.rubric_version, s.prompt_version,"
            " count(l.grade), count(l.error), sum(l.prompt_tokens), sum(l.completion_tokens), sum(l.cost),"
            " sum(l.flagged) FROM settings s LEFT JOIN labels l ON l.settings = s.id"
            " WHERE s.kind = 'grade' GROUP BY s.id ORDER BY s.id"
        ).fetchall()
        names = _judge_names([(row[0], row[1]) for row in rows])
        settings = ("model", "parameters", "rubric", "rubric_version", "prompt_version")
        keys = (*settings, "graded", "failed", "prompt_tokens", "completion_tokens", "cost", "flagged")
        return [{"judge": names[row[0]], **dict(zip(keys, row[1:], strict=True))} for row in rows]

    def humans(self) -> list[tuple[str, int]]:
        """(annotator, number of grades) rows."""
        return self._connection.execute("SELECT annotator, count(*) FROM human GROUP BY 1 ORDER BY 1").fetchall()

    def human_grades(self) -> Iterator[tuple[str, str, int]]:
        """(query id, passage id, grade) rows, one for each annotator of a pair."""
        return iter(self._connection.execute("SELECT query_id, passage_id, grade FROM human"))

    def labels_of_query(self, query: str, settings: int) -> Iterator[tuple[str, int | None, str | None, str | None]]:
        """(passage id, grade, reason, error) rows: the first sample of each passage of a query."""
        return iter(
            self._connection.execute(
                "SELECT p.passage_id, l.grade, l.reason, l.error FROM pairs p JOIN labels l"
                " ON l.query_hash = p.query_hash AND l.passage_hash = p.passage_hash"
                " WHERE p.query_id = ? AND l.settings = ? AND l.sample = 0",
                (query, settings),
            )
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every label with everything that the store knows of it; a failed one has an error in place of a grade."""
        names = _judge_names(self._connection.execute("SELECT id, model FROM settings").fetchall())
        columns = [field.name for field in fields(Label) if field.name != "key"]
        labels = self._connection.execute(
            f"SELECT p.query_id, p.passage_id, l.settings, {', '.join(f'l.{name}' for name in columns)}, l.sample,"
            " l.created, s.model, s.parameters, s.rubric, s.rubric_version, s.prompt_version,"
            " p.query_hash, p.passage_hash"
            " FROM pairs p JOIN labels l ON l.query_hash = p.query_hash AND l.passage_hash = p.passage_hash"
            " JOIN settings s ON s.id = l.settings WHERE s.kind = 'grade'"
            " ORDER BY l.settings, p.query_id, p.passage_id, l.sample"
        )
        for query, passage, settings, *rest in labels:
            values, others = rest[: len(columns)], rest[len(columns) :]
            row = {"query_id": query, "passage_id": passage, "source": "judge", "judge": names[settings]}
            row |= dict(zip(columns, values, strict=True))
            last = ("sample", "created", "model", "parameters", "rubric", "rubric_version", "prompt_version")
            row |= dict(zip(last, others[:7], strict=True))
            row |= {"query_hash": others[7].hex(), "passage_hash": others[8].hex()}
            yield row
        for query, passage, annotator, grade, reason, created in self._connection.execute(
            "SELECT * FROM human ORDER BY annotator, query_id, passage_id"
        ):
            row = {"query_id": query, "passage_id": passage, "source": "human", "judge": annotator}
            yield {**row, "grade": grade, "reason": reason, "created": created}

    def judge_grades(
        self, judges: Sequence[str] | None = None, *, as_given: bool = False
    ) -> Iterator[tuple[str, str, str, list[int]]]:
        """(query id, passage id, judge, grades of its samples) rows of the judges (default: all).

        Some judges also say whether a passage misleads. A grade of 1 or 2 then becomes 1 if the passage misleads and
        2 if it does not, so that `Harm(max_grade=1)` counts distractors alone. `as_given` leaves the grades as they
        are.
        """
        names = self._names_of(judges)
        junk = "CASE WHEN l.misleading IS NULL OR l.grade > 2 THEN l.grade WHEN l.misleading THEN 1 ELSE 2 END"
        labels = self._connection.execute(
            f"SELECT p.query_id, p.passage_id, l.settings, {'l.grade' if as_given else junk} FROM pairs p"
            " JOIN labels l ON l.query_hash = p.query_hash AND l.passage_hash = p.passage_hash"
            " WHERE l.grade IS NOT NULL ORDER BY p.query_id, p.passage_id, l.settings, l.sample"
        )
        current: tuple[str, str, int] | None = None
        grades: list[int] = []
        for query, passage, settings, grade in labels:
            if settings not in names:
                continue
            if (query, passage, settings) != current:
                if current is not None:
                    yield current[0], current[1], names[current[2]], grades
                current, grades = (query, passage, settings), []
            grades.append(grade)
        if current is not None:
            yield current[0], current[1], names[current[2]], grades

    def _names_of(self, judges: Sequence[str] | None) -> dict[int, str]:
        """The settings of some judges, by name or model: {number: name of the judge}."""
        rows = self._connection.execute("SELECT id, model FROM settings WHERE kind = 'grade'").fetchall()
        names = _judge_names(rows)
        if judges is None:
            return names
        chosen: dict[int, str] = {}
        for judge in judges:
            matches = {number: name for number, name in names.items() if name == judge}
            matches = matches or {number: names[number] for number, model in rows if model == judge}
            if not matches:
                raise InputError(
                    f"{self.path} has no judge {judge!r}; it has {', '.join(names.values()) or 'no judge at all'}"
                )
            chosen |= matches
        return chosen


def _judge_names(settings: Sequence[tuple[int, str]]) -> dict[int, str]:
    """A judge is named by its model; where a model has several settings, the number is added."""
    models = [model for _, model in settings]
    return {number: model if models.count(model) == 1 else f"{model}#{number}" for number, model in settings}


def _is_dead(owner: str) -> bool:
    """Whether the owner of a lease was a process of this machine that has ended; never known on Windows."""
    host, _, rest = owner.partition(":")
    # On Windows signal 0 is Ctrl-C: asking would interrupt the process. Its lease runs out by itself.
    if host != socket.gethostname() or sys.platform == "win32":
        return False
    try:
        os.kill(int(rest.partition(":")[0]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False
