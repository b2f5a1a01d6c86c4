"""An open label store."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from rag_selectivity.errors import InputError
from rag_selectivity.grading.store import draws as of_draws
from rag_selectivity.grading.store import reading
from rag_selectivity.grading.store.importing import Incoming, put_all, settings_number, write_people
from rag_selectivity.grading.store.opening import connect, mode_to_read, reading_connection
from rag_selectivity.grading.store.pool import Pool
from rag_selectivity.grading.store.problems import StoreConnection, explaining
from rag_selectivity.grading.store.records import HumanLabel, Label, Origin, Settings, StoredAnswer
from rag_selectivity.grading.store.schema import transaction
from rag_selectivity.grading.store.writer import Writer
from rag_selectivity.tables.files import STANDARD_INPUT

_AT_ONCE = 2000
_T = TypeVar("_T")


def _listed(read: Callable[[StoreConnection], _T]) -> Callable[[Store], _T]:
    """What a function reads of a store, as a method."""

    def method(store: Store) -> _T:
        with store._reading() as connection:
            return read(connection)

    return method


def _streamed(read: Callable[[StoreConnection], Iterator[_T]]) -> Callable[[Store], Iterator[_T]]:
    """The rows that a function reads of a store, as a method; the connection is open as long as they are read."""

    def method(store: Store) -> Iterator[_T]:
        with store._reading() as connection:
            yield from read(connection)

    return method


class Store:
    """An open label store. Use it as a context manager, or close it.

    One thread writes the labels. A label whose future is done survives the end of the process. Several processes may
    share a file, and several threads a store; a pool belongs to one thread.

    Parameters
    ----------
    path : str or Path
    create : bool
        Create a file that does not exist; if false, that is an InputError. The file is made so that only its owner
        may read it (mode 0600), and so are the copies that are made of it.
    read_only : bool
        Change nothing in the file. Another process may grade into it at the same time.

    Attributes
    ----------
    path : Path

    Raises
    ------
    InputError
        If the file is not a label store, is damaged, or cannot be opened.
    """

    def __init__(self, path: str | Path, *, create: bool = True, read_only: bool = False) -> None:
        self.path = Path(path)
        if self.path == STANDARD_INPUT:
            raise InputError("-: a label store is an SQLite file and cannot be a pipe; name its file")
        if (read_only or not create) and not self.path.exists():
            raise InputError(
                f"{self.path}: there is no such label store; check the path, or make one: `grade` puts a judge's "
                f"labels into it, `store import` those of a file"
            )
        if not self.path.parent.is_dir():
            raise InputError(f"{self.path}: the folder does not exist; make it first")
        if self.path.is_dir():
            raise InputError(f"{self.path}: this is a folder; give the path of a file")
        if self.path.exists() and not self.path.is_file():
            raise InputError(
                f"{self.path}: a label store is an SQLite file and cannot be a pipe or a device; name its file"
            )
        self.read_only = read_only
        self._lock = threading.RLock()
        self._connection = None if read_only else connect(self.path)
        self._mode = mode_to_read(self.path) if read_only else "rw"
        self._pools: list[StoreConnection] = []
        self._writer: Writer | None = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish writing."""
        with self._lock:
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()
            for pool in self._pools:
                pool.close()
            self._pools = []
            if self._connection is not None:
                self._connection.close()

    # -- writing ---------------------------------------------------------------------------------

    def settings_id(self, settings: Settings) -> int:
        """The number of these settings in the store; new settings get one."""
        with self._changing() as connection:
            return settings_number(connection, settings)

    def put(self, records: Sequence[Label | StoredAnswer]) -> Future[None]:
        """Write labels and answers; the future is done when they are committed.

        The end of the process may leave the first of them written and the others not, but never half of one.
        """
        with self._changing():
            if self._writer is None:
                self._writer = Writer(self.path)
            return self._writer.put(records)

    def add_texts(self, pairs: Iterable[tuple[str, str, bytes, bytes]]) -> None:
        """Add (query id, passage id, query hash, passage hash) rows; a pair that the store has keeps its texts."""
        self._write(
            pairs,
            lambda connection, some: connection.executemany("INSERT OR IGNORE INTO pairs VALUES (?, ?, ?, ?)", some),
        )

    def put_human(self, rows: Iterable[tuple[str, str, int, str | None]], annotator: str) -> int:
        """Write human grades as (query id, passage id, grade, reason) rows; how many.

        A grade replaces an earlier one of the same annotator.
        """
        return self.put_human_labels(HumanLabel(q, p, annotator, grade, reason) for q, p, grade, reason in rows)

    def put_human_labels(self, labels: Iterable[HumanLabel]) -> int:
        """Write the labels of people; how many.

        A label replaces an earlier one of the same annotator and sample. Where a label does not say which texts the
        person read, they are unknown: those that the store has may be others.
        """
        # Whatever is wrong with a label is found before the first one is written.
        checked = list(labels)
        self._write(checked, write_people)
        return len(checked)

    def put_all(self, incoming: Incoming, *, replace: bool = False, other_texts: bool = False) -> None:
        """Write the labels of a file, all or none.

        `replace` takes new grades of the same person and pair, `other_texts` labels of other texts than the store has.

        Raises
        ------
        InputError
            If they contradict the store: other texts, or another grade of the same person.
        """
        with self._changing() as connection:
            put_all(connection, incoming, replace_labels=replace, other_texts=other_texts)

    def put_origins(self, rows: Iterable[tuple[str, str, Origin]]) -> None:
        """Write (query id, passage id, origin) rows: how the pairs came into the store."""
        self._write(rows, of_draws.write_origins)

    def _write(self, rows: Iterable[_T], write: Callable[[StoreConnection, list[_T]], object]) -> None:
        """Write rows in portions, each of which is a transaction."""
        waiting = iter(rows)
        while some := list(islice(waiting, _AT_ONCE)):
            with self._changing() as connection, transaction(connection):
                write(connection, some)

    def new_pool(self) -> Pool:
        """An empty pool for a grading run."""
        with self._changing():
            connection = connect(self.path)
            self._pools.append(connection)
            return Pool(connection)

    # -- reading ---------------------------------------------------------------------------------

    def answer(self, settings: int, content: bytes) -> Any:
        """The stored answer to a question by its hash, or None."""
        found = self.answer_and_server(settings, content)
        return None if found is None else found[0]

    def answer_and_server(self, settings: int, content: bytes) -> tuple[Any, str | None] | None:
        """The stored answer to a question, and the model that the server named (None: it named none); or None."""
        with self._looking_up() as connection:
            row = connection.execute(
                "SELECT a.value, v.served_model FROM answers a LEFT JOIN servers v ON v.id = a.server"
                " WHERE a.settings = ? AND a.content = ? AND a.value IS NOT NULL",
                (settings, content),
            ).fetchone()
        return None if row is None else (json.loads(row[0]), row[1] or None)

    judges = _listed(reading.judges)
    humans = _listed(reading.humans)
    outdated_human_labels = _listed(reading.outdated_human_labels)
    human_grades = _streamed(reading.human_grades)
    targeted_pairs = _listed(reading.targeted_pairs)

    def annotators_among(self, judges: Sequence[str] | None) -> list[str]:
        """The names among those of `judges` that are people's: those that no judge has."""
        with self._reading() as connection:
            return self._annotators_among(connection, judges)

    human_labels = _streamed(reading.human_labels)
    text_hashes = _streamed(reading.text_hashes)

    def labels_of_query(self, query: str, settings: int) -> Iterator[tuple[str, int | None, str | None, str | None]]:
        """(passage id, grade, reason, error) rows: the first sample of each passage of a query."""
        with self._looking_up() as connection:
            return iter(reading.labels_of_query(connection, query, settings))

    rows = _streamed(reading.rows)
    origins = _streamed(of_draws.read_origins)
    draws = _listed(of_draws.draws_by_number)
    origin_numbers = _streamed(of_draws.origin_numbers)

    def cost_of_a_grade(self) -> float | None:
        """The mean cost of the grades whose cost is known; None if there are none."""
        with self._reading() as connection:
            cost = connection.execute("SELECT avg(cost) FROM labels WHERE grade IS NOT NULL").fetchone()[0]
        return None if cost is None else float(cost)

    drawn_for_people = _listed(of_draws.drawn_for_people)
    people = _listed(reading.people)

    def failures(self, judges: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The failed labels and answers of some judges (default: all) by reason, the most frequent first.

        Each row has the `judge`, the `kind` of its work (grade, claims), the `failure`, the `count`, and of the latest
        one `query_id` and `passage_id` (None for claims), `attempts`, `error` and `last_answer`.
        """
        with self._reading() as connection:
            chosen = None if judges is None else self._names_of(connection, judges, kind=None)
            return [
                {name: value for name, value in row.items() if name != "settings"}
                for row in reading.failures(connection)
                if chosen is None or row["settings"] in chosen
            ]

    def judge_grades(
        self, judges: Sequence[str] | None = None, *, as_given: bool = False
    ) -> Iterator[tuple[str, str, str, list[int]]]:
        """(query id, passage id, judge, grades of its samples) rows of the judges (default: all).

        Some judges also say whether a passage misleads. A grade of 1 or 2 then becomes 1 if the passage misleads and
        2 if it does not, so that `Harm(max_grade=1)` counts distractors alone. `as_given` leaves the grades as they
        are.
        """
        with self._reading() as connection:
            names = self._names_of(connection, judges)
            for query, passage, grades in reading.grades_by_pair(connection, names, as_given=as_given):
                for settings, samples in grades.items():
                    yield query, passage, names[settings], samples
            annotators = self._annotators_among(connection, judges)
            for query, passage, by_person in reading.grades_of_people(connection, annotators, repeats=True):
                for annotator, samples in by_person.items():
                    yield query, passage, annotator, samples

    def grades_by_pair(
        self, judges: Sequence[str] | None = None, *, as_given: bool = False
    ) -> Iterator[tuple[str, str, dict[str, list[int]]]]:
        """(query id, passage id, {judge: grades of its samples}) rows; otherwise as `judge_grades`."""
        with self._reading() as connection:
            names = self._names_of(connection, judges)
            by_judges = (
                (query, passage, {names[settings]: samples for settings, samples in grades.items()})
                for query, passage, grades in reading.grades_by_pair(connection, names, as_given=as_given)
            )
            yield from self._with_people(connection, judges, by_judges)

    def _with_people(
        self,
        connection: StoreConnection,
        judges: Sequence[str] | None,
        by_judges: Iterator[tuple[str, str, dict[str, list[int]]]],
    ) -> Iterator[tuple[str, str, dict[str, list[int]]]]:
        """The rows of judges, and those of the annotators that are named among the judges, in the order of the ids."""
        annotators = self._annotators_among(connection, judges)
        if not annotators:
            yield from by_judges
            return
        by_people = reading.grades_of_people(connection, annotators)
        for (query, passage), rows in groupby(merge(by_judges, by_people, key=itemgetter(0, 1)), itemgetter(0, 1)):
            yield query, passage, {name: said for _, _, of_pair in rows for name, said in of_pair.items()}

    # -- connections -----------------------------------------------------------------------------

    @contextmanager
    def _changing(self) -> Iterator[StoreConnection]:
        """The connection for changes, for one thread at a time."""
        if self._connection is None:
            raise InputError(f"{self.path}: opened for reading alone; open it without read_only to change it")
        with self._lock:
            yield self._connection

    @contextmanager
    def _reading(self) -> Iterator[StoreConnection]:
        """A new connection that changes nothing, so that a long reading holds up nobody."""
        with explaining(self.path):
            connection = reading_connection(self.path, self._mode)
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def _looking_up(self) -> Iterator[StoreConnection]:
        """A connection for a short question."""
        if self._connection is None:
            with self._reading() as connection:
                yield connection
        else:
            with self._lock:
                yield self._connection

    def _names_of(
        self, connection: StoreConnection, judges: Sequence[str] | None, kind: str | None = "grade"
    ) -> dict[int, str]:
        """The settings of some judges, by name or model: {number: name of the judge}."""
        names = reading.judge_names(connection, kind)
        if judges is None:
            return names
        models = dict(connection.execute("SELECT id, model FROM settings").fetchall())
        chosen: dict[int, str] = {}
        people = reading.people(connection)
        for judge in judges:
            matches = {number: name for number, name in names.items() if name == judge}
            matches = matches or {number: name for number, name in names.items() if models[number] == judge}
            if not matches and judge not in people:
                known = ", ".join([*names.values(), *(f"{name} (a person)" for name in people)])
                raise InputError(f"{self.path} has no judge {judge!r}; it has {known or 'no judge at all'}")
            chosen |= matches
        return chosen

    @staticmethod
    def _annotators_among(connection: StoreConnection, judges: Sequence[str] | None) -> list[str]:
        if not judges:
            return []
        people, models = reading.people(connection), dict(connection.execute("SELECT id, model FROM settings"))
        of_judges = {*models.values(), *reading.judge_names(connection, None).values()}
        return [name for name in dict.fromkeys(judges) if name in people and name not in of_judges]
