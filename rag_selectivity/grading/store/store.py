"""An open label store."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from rag_selectivity.errors import InputError
from rag_selectivity.grading.store import records
from rag_selectivity.grading.store.connection import Connection, connect, connect_to_read, explaining
from rag_selectivity.grading.store.pool import Pool
from rag_selectivity.grading.store.records import Draw, HumanLabel, Incoming, Label, Origin, Pair, Settings
from rag_selectivity.tables.files import STANDARD_INPUT

#: Rows in a transaction, and labels of a judge, for which other processes wait some 20 ms.
_ROWS_AT_ONCE, _LABELS_AT_ONCE, _READ_AT_ONCE = 2000, 500, 20_000
#: From the labels to the pairs that have these texts, by an index.
_PAIRS_OF_LABELS = "CROSS JOIN pairs p ON p.query_hash = l.query_hash AND p.passage_hash = l.passage_hash"
#: A failure may have been stored without its kind.
_FAILURE = "coalesce(failure, 'unknown')"
_JUNK_APART = "CASE WHEN l.misleading IS NULL OR l.grade > 2 THEN l.grade WHEN l.misleading THEN 1 ELSE 2 END"
_T = TypeVar("_T")


class Store:
    """An open label store. Use it as a context manager, or close it.

    One thread writes the labels. A label whose future is done survives the end of the process. Several processes may
    share a file, and several threads a store; a pool belongs to one thread. Every reading has a connection of its own
    and sees the file as it is when it begins, so that it holds up nobody.

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
        if self.path == STANDARD_INPUT or (self.path.exists() and not self.path.is_file()):
            what = "a folder" if self.path.is_dir() else "a pipe"
            raise InputError(f"{self.path}: a label store is an SQLite file and cannot be {what}; name its file")
        if (read_only or not create) and not self.path.exists():
            make = "make one: `grade` fills it with a judge's labels, `labels import` with those of a file"
            raise InputError(f"{self.path}: there is no such label store; check the path, or {make}")
        if not self.path.parent.is_dir():
            raise InputError(f"{self.path}: the folder does not exist; make it first")
        self.read_only = read_only
        self._lock = threading.RLock()
        self._connections: list[Connection] = []
        self._writer: ThreadPoolExecutor | None = None
        self._of_writer: Connection | None = None
        if read_only:
            connect_to_read(self.path).close()
        else:
            self._changed = self._opened()

    @classmethod
    @contextmanager
    def of_run(cls, path: str | Path, *, dry_run: bool) -> Iterator[Store]:
        """The store of a run; a dry run leaves nothing behind.

        In the place of a file that does not exist it has an empty one elsewhere, and what it writes is not committed.
        """
        with TemporaryDirectory() as elsewhere:
            is_new = Path(path) != STANDARD_INPUT and not Path(path).exists() and Path(path).parent.is_dir()
            with cls(Path(elsewhere, "empty.db") if dry_run and is_new else path) as store:
                if dry_run:
                    # It is never committed, so that closing the connection rolls it back.
                    store._changed.execute("BEGIN")
                yield store

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish writing."""
        with self._lock:
            if self._writer is not None:
                self._writer.shutdown()
            for connection in self._connections:
                connection.close()
            self._writer, self._of_writer, self._connections = None, None, []

    # -- writing ---------------------------------------------------------------------------------

    def settings_id(self, settings: Settings) -> int:
        """The number of these settings in the store; new settings get one."""
        with self._changing() as connection:
            return records.settings_number(connection, settings)

    def judge_named(self, settings: Settings) -> str:
        """The name of the judge with these settings."""
        number = self.settings_id(settings)
        with self._reading() as connection:
            return records.names_of(connection)[number]

    def put(self, labels: Sequence[Label]) -> Future[None]:
        """Write what judges answered; the future is done when they are committed.

        The end of the process may leave the first of them written and the others not, but never half of one.
        """
        committed: Future[None] = Future()
        # A caller that stops waiting must not be able to cancel what is being written.
        committed.set_running_or_notify_cancel()

        def write() -> None:
            try:
                self._of_writer = self._of_writer or self._opened()
                for start in range(0, len(labels), _LABELS_AT_ONCE):
                    with self._of_writer.transaction():
                        records.write_labels(self._of_writer, labels[start : start + _LABELS_AT_ONCE])
            except BaseException as error:
                committed.set_exception(error)
            else:
                committed.set_result(None)

        with self._changing():
            self._writer = self._writer or ThreadPoolExecutor(1, "label-store")
            self._writer.submit(write)
        return committed

    def add_texts(self, pairs: Iterable[tuple[str, str, bytes, bytes]]) -> None:
        """Add (query id, passage id, query hash, passage hash) rows; a pair that the store has keeps its texts."""
        self._write(pairs, records.write_texts)

    def put_human_labels(self, labels: Iterable[HumanLabel]) -> None:
        """Write the labels of people.

        A label replaces an earlier one of the same annotator and sample. Where a label does not say which texts the
        person read, they are unknown: those that the store has may be others.
        """
        # Whatever is wrong with a label is found before the first one is written.
        self._write(list(labels), records.write_people)

    def put_all(self, incoming: Incoming, *, replace: bool = False) -> None:
        """Write the labels of a file, all or none; `replace` takes new grades of the same person and pair.

        Raises
        ------
        InputError
            If they contradict the store: other texts, or another grade of the same person.
        """
        with self._changing() as connection, connection.transaction():
            records.write_all(connection, incoming, replace_labels=replace)

    def put_origins(self, rows: Iterable[tuple[str, str, Origin]]) -> None:
        """Write (query id, passage id, origin) rows: how the pairs came into the store."""
        self._write(rows, records.write_origins)

    def new_pool(self) -> Pool:
        """An empty pool for a grading run."""
        with self._changing():
            return Pool(self._opened())

    def _write(self, rows: Iterable[_T], write: Callable[[Connection, list[_T]], object]) -> None:
        """Write rows in portions, each of which is a transaction."""
        waiting = iter(rows)
        while some := list(islice(waiting, _ROWS_AT_ONCE)):
            with self._changing() as connection, connection.transaction():
                write(connection, some)

    def _opened(self) -> Connection:
        connection = connect(self.path)
        self._connections.append(connection)
        return connection

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        """The connection for changes, for one thread at a time."""
        if self.read_only:
            raise InputError(f"{self.path}: opened for reading alone; open it without read_only to change it")
        with self._lock:
            yield self._changed

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A new connection that changes nothing, and sees the file as it is at its first question."""
        with explaining(self.path), closing(connect_to_read(self.path)) as connection, connection.moment():
            yield connection

    # -- judges and their answers -----------------------------------------------------------------

    def judges(self) -> list[dict[str, Any]]:
        """A row for each judge: its settings, its labels, what they cost, and where their pairs come from."""
        sums = ("graded", "failed", "prompt_tokens", "completion_tokens", "cost", "priced")
        of_server = "count(*) FROM labels l CROSS JOIN servers v ON v.id = l.server WHERE"
        tallies = {
            "served_models": f"SELECT l.settings, served_model, {of_server} served_model != '' GROUP BY 1, 2",
            "ways": f"SELECT l.settings, way, {of_server} way != '' GROUP BY 1, 2",
            # A pair that has several origins is counted once, under all of them.
            "origins": "SELECT settings, kinds, count(*) FROM (SELECT settings, group_concat(kind, ' and ') AS kinds"
            " FROM (SELECT DISTINCT l.settings, p.query_id, p.passage_id, coalesce(replace(d.kind, 'person',"
            f" 'drawn for people'), 'unknown') AS kind FROM labels l {_PAIRS_OF_LABELS} LEFT JOIN origins o"
            " ON o.query_id = p.query_id AND o.passage_id = p.passage_id LEFT JOIN draws d ON d.id = o.draw"
            " WHERE l.grade IS NOT NULL ORDER BY 1, 2, 3, 4) GROUP BY settings, query_id, passage_id) GROUP BY 1, 2",
        }
        with self._reading() as connection:
            names = records.names_of(connection)
            rows: dict[int, dict[str, Any]] = {}
            for number, *values in connection.execute(
                f"SELECT s.id, {', '.join(f's.{name}' for name in records.SETTINGS)}, count(l.grade),"
                " count(l.id) - count(l.grade), CAST(total(l.prompt_tokens) AS INTEGER),"
                " CAST(total(l.completion_tokens) AS INTEGER), sum(l.cost), count(l.cost) FROM settings s"
                " LEFT JOIN labels l ON l.settings = s.id WHERE s.kind = 'grade' GROUP BY s.id"
            ):
                row = connection.row((*records.SETTINGS, *sums), values)
                rows[number] = {"judge": names[number], **row, **{name: {} for name in tallies}}
            for name, statement in tallies.items():
                for number, value, count in connection.execute(statement):
                    if number in rows:
                        rows[number][name][value] = count
            return list(rows.values())

    def failures(self) -> list[dict[str, Any]]:
        """The failed labels by judge and reason, the most frequent first.

        Each row has the `judge`, the `kind` of its work (grade, claims), the `failure`, the `count`, and of the latest
        one `query_id` and `passage_id` (None for claims), `attempts`, `error` and `last_answer`.
        """
        of_texts = f"FROM labels l {_PAIRS_OF_LABELS} WHERE l.id = labels.id LIMIT 1"
        # Beside max(), SQLite takes the other columns from the row of the maximum.
        statement = (
            f"SELECT settings, s.kind, {_FAILURE}, count(*), (SELECT query_id {of_texts}),"
            f" (SELECT passage_id {of_texts}), attempts, error, last_answer, max(labels.id) FROM labels"
            f" LEFT JOIN settings s ON s.id = settings WHERE {records.UNANSWERED} GROUP BY settings, {_FAILURE}"
        )
        columns = ("kind", "failure", "count", "query_id", "passage_id", "attempts", "error", "last_answer")
        with self._reading() as connection:
            names = records.names_of(connection, None)
            rows = [
                {"judge": names[number], **connection.row(columns, values)}
                for number, *values, _ in connection.execute(statement)
            ]
        return sorted(rows, key=lambda row: (-row["count"], row["judge"], row["failure"]))

    def answer_and_server(self, settings: int, content: bytes) -> tuple[Any, str | None] | None:
        """The stored answer to a question by its hash, and the model that the server named (None: none); or None."""
        rows = self._looked_up(
            "SELECT l.value, v.served_model FROM labels l LEFT JOIN servers v ON v.id = l.server"
            " WHERE l.settings = ? AND l.query_hash = ? AND l.passage_hash = x'' AND l.sample = 0"
            " AND l.value IS NOT NULL",
            (settings, content),
        )
        return (json.loads(rows[0][0]), rows[0][1] or None) if rows else None

    def labels_of_query(self, query: str, settings: int) -> list[tuple[str, int | None, str | None, str | None]]:
        """(passage id, grade, reason, error) rows: the first sample of each passage of a query."""
        return self._looked_up(
            "SELECT p.passage_id, l.grade, CAST(l.reason AS TEXT), CAST(l.error AS TEXT) FROM pairs p"
            " CROSS JOIN labels l ON l.query_hash = p.query_hash AND l.passage_hash = p.passage_hash"
            " WHERE p.query_id = ? AND l.settings = ? AND l.sample = 0",
            (query, settings),
        )

    def _looked_up(self, statement: str, values: Sequence[Any]) -> list[Any]:
        """The rows of a short question, by the connection that is open anyway."""
        with self._reading() if self.read_only else self._changing() as connection:
            return connection.execute(statement, values).fetchall()

    def cost_of_a_grade(self) -> float | None:
        """The mean cost of the grades whose cost is known; None if there are none."""
        cost = self._looked_up("SELECT avg(cost) FROM labels WHERE grade IS NOT NULL", ())[0][0]
        return None if cost is None else float(cost)

    def found_nothing(self) -> list[str]:
        """The queries for which nothing was retrieved, so that there was nothing to grade."""
        return [row[0] for row in self._looked_up("SELECT query_id FROM origins WHERE passage_id = ''", ())]

    def open_pairs(self) -> int:
        """How many pairs that were chosen, but not for people, have no answer and no failure that lasts."""
        pair, passing = "SELECT query_id, passage_id FROM", records.PASSING
        answered = f"USING (query_hash, passage_hash) WHERE coalesce(failure, '') NOT IN ({_places(passing)})"
        graded = f"{pair} origins WHERE passage_id != '' EXCEPT {pair} pairs JOIN labels {answered} EXCEPT {pair} human"
        for_people = f"{pair} origins WHERE draw IN (SELECT id FROM draws WHERE kind = 'person')"
        return int(self._looked_up(f"SELECT count(*) FROM ({graded} EXCEPT {for_people})", passing)[0][0])

    # -- labels -----------------------------------------------------------------------------------

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every label with everything that the store knows of it, those of people last."""
        columns = records.LABEL_COLUMNS
        after = ("served_model", "way", "sample", "created", *records.SETTINGS, "query_hash", "passage_hash")
        with self._reading() as connection:
            names, draws = records.names_of(connection, None), records.draws_of(connection)
            labels = connection.execute(
                f"SELECT p.query_id, p.passage_id, l.settings, {', '.join(f'l.{name}' for name in columns)},"
                " nullif(v.served_model, ''), nullif(v.way, ''), l.sample, l.created, s.model, s.parameters, s.rubric,"
                " s.rubric_version, s.prompt_version, iif(length(p.query_hash) = 16, lower(hex(p.query_hash)), NULL),"
                " iif(length(p.query_hash) = 16, lower(hex(p.passage_hash)), NULL),"
                " (SELECT json_group_array(json_array(o.draw, o.rank, o.detail)) FROM origins o"
                " WHERE o.query_id = p.query_id AND o.passage_id = p.passage_id)"
                f" FROM labels l {_PAIRS_OF_LABELS} JOIN settings s ON s.id = l.settings"
                " LEFT JOIN servers v ON v.id = l.server WHERE s.kind = 'grade'"
                " ORDER BY l.settings, p.query_id, p.passage_id, l.sample"
            )
            for query, passage, number, *values, text in labels:
                whose = {"query_id": query, "passage_id": passage, "source": "judge", "judge": names[number]}
                row = connection.row((*whose, *columns, *after), (*whose.values(), *values))
                origins = [Origin(draws[n], rank, json.loads(detail or "{}")) for n, rank, detail in json.loads(text)]
                yield {**row, "origins": _origins_text(origins)}
            people = connection.execute(
                f"SELECT query_id, passage_id, iif(annotator = '{records.NOT_KNOWN}', 'unknown', 'human'), annotator,"
                " grade, reason, sample, created, nullif(lower(hex(query_hash)), ''), "
                "nullif(lower(hex(passage_hash)), ''), draw FROM human ORDER BY annotator, query_id, passage_id, sample"
            )
            said = ("query_id", "passage_id", "source", "judge", "grade", "reason", "sample", "created", *after[-2:])
            for *values, number in people:
                origins = [] if number is None else [Origin(draws[number])]
                yield {**connection.row(said, values), "origins": _origins_text(origins)}

    def grades_by_pair(
        self, judges: Sequence[str] | None = None, *, as_given: bool = False, repeats: bool = False
    ) -> Iterator[tuple[str, str, dict[str, list[int]]]]:
        """(query id, passage id, {judge: grades of its samples}) rows of the judges (default: all), by the ids.

        Some judges also say whether a passage misleads. A grade of 1 or 2 then becomes 1 if the passage misleads and
        2 if it does not, so that `Harm(max_grade=1)` counts distractors alone. `as_given` leaves the grades as they
        are. `repeats` adds what people who are named among the judges graded again.
        """
        grade = "l.grade" if as_given else _JUNK_APART
        with self._reading() as connection:
            names, people = self._chosen(connection, judges), self.annotators_among(judges)
            total = connection.execute("SELECT count(*) FROM settings").fetchone()[0]
            # A store's only judge is read in the order of the file; one of several by the index on the settings.
            chosen = () if len(names) == total else tuple(names)
            of_chosen = f"AND l.settings IN ({_places(chosen)})" if len(names) != total else ""
            of_people = (
                " UNION ALL SELECT query_id, passage_id, annotator, sample, grade FROM human"
                f" WHERE grade NOTNULL AND annotator IN ({_places(people)}){'' if repeats else ' AND sample = 0'}"
            )
            rows = connection.execute(
                f"SELECT p.query_id, p.passage_id, l.settings, l.sample, {grade} FROM labels l {_PAIRS_OF_LABELS}"
                f" WHERE l.grade NOTNULL {of_chosen}{of_people if people else ''} ORDER BY 1, 2, 3, 4",
                (*chosen, *people),
            )
            pair: Pair | None = None
            grades: dict[str, list[int]] = {}
            # Not by groupby: a store may hold millions of pairs.
            for query, passage, judge, _, grade in rows:
                if pair is None or passage != pair[1] or query != pair[0]:
                    if pair is not None:
                        yield *pair, grades
                    pair, grades = (query, passage), {}
                grades.setdefault(judge if isinstance(judge, str) else names[judge], []).append(grade)
            if pair is not None:
                yield *pair, grades

    def _chosen(self, connection: Connection, judges: Sequence[str] | None) -> dict[int, str]:
        """The settings of some judges, by name or model: {number: name of the judge}."""
        names = records.names_of(connection)
        if judges is None:
            return names
        models, people = records.models_of(connection, None), self.people()
        chosen: dict[int, str] = {}
        for judge in judges:
            matches = {number: name for number, name in names.items() if name == judge}
            matches = matches or {number: name for number, name in names.items() if models[number] == judge}
            if not matches and judge not in people:
                known = ", ".join([*names.values(), *(f"{name} (a person)" for name in people)])
                raise InputError(f"{self.path} has no judge {judge!r}; it has {known or 'no judge at all'}")
            chosen |= matches
        return chosen

    # -- labels of people -------------------------------------------------------------------------

    def human_labels(self) -> list[HumanLabel]:
        """Every label of a person, in the order of the annotators and ids."""
        names = ("query_id", "passage_id", "annotator", "grade", "reason")
        with self._reading() as connection:
            draws = records.draws_of(connection)
            rows = connection.execute(
                f"SELECT {', '.join(names)}, h.query_hash, h.passage_hash, sample, draw, length(p.query_hash) = 16 AND"
                " (h.query_hash != p.query_hash OR h.passage_hash != p.passage_hash) FROM human h LEFT JOIN pairs p"
                " USING (query_id, passage_id) ORDER BY annotator, query_id, passage_id, sample"
            )
            labels = []
            for *said, of_query, of_passage, sample, number, is_outdated in rows:
                query, passage, annotator, grade, reason = connection.row(names, said).values()
                more = None if number is None else draws[number], bool(is_outdated)
                labels.append(HumanLabel(query, passage, annotator, grade, reason, of_query, of_passage, sample, *more))
            return labels

    def graded_by_people(self, *, current: bool = False) -> list[HumanLabel]:
        """The grades of people that count: none that were skipped, and none that were given a second time.

        With `current`, those alone whose texts have not changed since.
        """
        labels = (label for label in self.human_labels() if label.sample == 0 and label.grade is not None)
        return [label for label in labels if not (current and label.is_outdated)]

    def people(self) -> dict[str, int]:
        """{annotator: pairs that they graded}."""
        return dict(Counter(label.annotator for label in self.graded_by_people()))

    def annotators_among(self, judges: Sequence[str] | None) -> list[str]:
        """The names among those of `judges` that are people's: those that no judge has."""
        if not judges:
            return []
        people = self.people()
        with self._reading() as connection:
            of_judges = {*records.models_of(connection, None).values(), *records.names_of(connection, None).values()}
        return [name for name in dict.fromkeys(judges) if name in people and name not in of_judges]

    def grades_of_people(self, *, current: bool = False) -> dict[Pair, list[int]]:
        """{(query id, passage id): grades} by the ids: one grade of each annotator of a pair, or the one that decides.

        The grade of an adjudication takes the place of the grades that it was about, which stay in the store.
        """
        graded = self.graded_by_people(current=current)
        decided = {label.pair for label in graded if label.is_adjudication}
        grades: dict[Pair, list[int]] = {}
        for label in sorted(graded, key=lambda label: label.pair):
            if label.grade is not None and (label.is_adjudication or label.pair not in decided):
                grades.setdefault(label.pair, []).append(label.grade)
        return grades

    def targeted_pairs(self) -> dict[Pair, str]:
        """{(query id, passage id): design} of the pairs that people graded because of what was known of their labels.

        A pair that another draw chose for some annotator too, at random or unknown how, is not one of them.
        """
        graded = self.graded_by_people()
        by_others = {x.pair for x in graded if not x.is_targeted and not x.is_adjudication}
        return {x.pair: x.design for x in graded if x.is_targeted and x.pair not in by_others}

    def drawn_for_people(self) -> dict[str, int]:
        """{name of the draw: pairs that people graded}; the name is empty where it is not known.

        `skipped`: pairs that were drawn at random, and that an annotator skipped and none graded.
        """
        graded = {(label.pair, label.design) for label in self.graded_by_people()}
        drawn = {x.pair for x in self.human_labels() if x.draw and not (x.grade or x.is_targeted or x.is_adjudication)}
        skipped = len(drawn - {pair for pair, _ in graded})
        return dict(Counter(design for _, design in graded) + Counter(skipped=skipped))

    # -- pairs and where they come from -----------------------------------------------------------

    def text_hashes(self) -> Iterator[tuple[str, str, bytes, bytes]]:
        """(query id, passage id, query hash, passage hash) rows: which texts the ids have now."""
        with self._reading() as connection:
            texts = "query_id, passage_id, query_hash, passage_hash"
            yield from connection.execute(f"SELECT {texts} FROM pairs WHERE {records.READ}")

    def draws(self) -> dict[int, Draw]:
        """The draws of the store."""
        with self._reading() as connection:
            return records.draws_of(connection)

    def origins(self, kind: str | None = None) -> Iterator[tuple[str, str, Origin]]:
        """(query id, passage id, origin) rows, by the ids; a pair of several draws (of a kind) occurs several times."""
        with self._reading() as connection:
            draws = {number: draw for number, draw in records.draws_of(connection).items() if kind in (None, draw.kind)}
            rows = connection.execute(
                "SELECT query_id, passage_id, draw, rank, detail FROM origins"
                f" WHERE draw IN ({_places(draws)}) ORDER BY query_id, passage_id, draw",
                [*draws],
            )
            for query, passage, number, rank, detail in rows:
                yield query, passage, Origin(draws[number], rank, json.loads(detail) if detail else {})

    def origin_numbers(self) -> Iterator[list[tuple[str, str, int, int]]]:
        """(query id, passage id, number of the draw, size of the tail) rows in lists, those of a pair by their draws.

        They are those of `origins`, and the pairs of people's grades whose draw is known. The size of the tail is 0 for
        what is not drawn from one, or if it is not known.
        """
        with self._reading() as connection:
            tails = [str(number) for number, draw in records.draws_of(connection).items() if draw.kind == "tail"]
            size = f"CASE WHEN draw IN ({', '.join(tails)}) THEN coalesce(json_extract(detail, '$.of'), 0) ELSE 0 END"
            for statement in (
                # In the order of the table's key, so that nothing is sorted and nothing is held.
                f"SELECT query_id, passage_id, draw, {size if tails else 0} FROM origins"
                " ORDER BY query_id, passage_id, draw",
                "SELECT query_id, passage_id, draw, 0 FROM human WHERE draw NOTNULL AND sample = 0 AND grade NOTNULL",
            ):
                rows = connection.execute(statement)
                while some := rows.fetchmany(_READ_AT_ONCE):
                    yield some


def _origins_text(origins: Sequence[Origin]) -> str | None:
    """Origins as JSON; None if none is known."""
    return json.dumps([origin.to_dict() for origin in origins], ensure_ascii=False) if origins else None


def _places(values: Collection[Any]) -> str:
    """The places of values in a statement."""
    return ", ".join("?" * len(values))
