"""What is written to a label store; each function within a transaction."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.grading.store.connection import Connection
from rag_selectivity.grading.store.records import (
    ASKED_COLUMNS,
    LABEL_COLUMNS,
    Draw,
    HumanLabel,
    Label,
    Origin,
    Settings,
    StoredAnswer,
)
from rag_selectivity.results.plain import plain_fields


def _upsert(table: str, keys: Sequence[str], columns: Sequence[str], done: str) -> str:
    """Insert a row, or replace one without a result: a grade in the store is never overwritten."""
    names, values = (*keys, *columns), ", ".join("?" * (len(keys) + len(columns)))
    server = "(SELECT id FROM servers WHERE served_model = ? AND way = ?)"
    changed = ", ".join(f"{name} = excluded.{name}" for name in (*columns, "server", "created"))
    return (
        f"INSERT INTO {table} ({', '.join(names)}, server, created) VALUES ({values}, {server}, ?)"
        f" ON CONFLICT DO UPDATE SET {changed} WHERE {table}.{done} IS NULL"
    )


_PUT_LABEL = _upsert("labels", ("settings", "query_hash", "passage_hash", "sample"), LABEL_COLUMNS, "grade")
_PUT_ANSWER = _upsert("answers", ("settings", "content"), ("value", *ASKED_COLUMNS), "value")
_of_label, _of_asked = attrgetter(*LABEL_COLUMNS), attrgetter(*ASKED_COLUMNS)
_of_person = attrgetter("query", "passage", "annotator", "sample", "grade", "reason", "query_hash", "passage_hash")


@dataclass(slots=True)
class Incoming:
    """What a file brings into a store.

    Attributes
    ----------
    labels : list of (Settings, Label)
        The number of the settings in the label's key does not count.
    pairs : list of (query id, passage id, query hash, passage hash)
    origins : list of (query id, passage id, Origin)
    people : list of HumanLabel
    """

    labels: list[tuple[Settings, Label]] = field(default_factory=list)
    pairs: list[tuple[str, str, bytes, bytes]] = field(default_factory=list)
    origins: list[tuple[str, str, Origin]] = field(default_factory=list)
    people: list[HumanLabel] = field(default_factory=list)


def write_records(connection: Connection, records: Iterable[Label | StoredAnswer]) -> None:
    """Write labels and answers of judges, unless the store holds a grade or a value in their place."""
    now = time.time()
    for record in records:
        server = record.served_model or "", record.way or ""
        if any(server):
            connection.execute("INSERT OR IGNORE INTO servers (served_model, way) VALUES (?, ?)", server)
        if isinstance(record, Label):
            connection.execute(_PUT_LABEL, (*record.key, *_of_label(record), *server, now))
        else:
            value = None if record.value is None else json.dumps(record.value, ensure_ascii=False)
            key = (record.settings, record.content)
            connection.execute(_PUT_ANSWER, (*key, value, *_of_asked(record), *server, now))


def settings_number(connection: Connection, settings: Settings) -> int:
    """The number of these settings in the store; new settings get one."""
    values = {**plain_fields(settings), "parameters": settings.parameters_text}
    return _number_of(connection, "settings", {"fingerprint": settings.fingerprint, **values})


def draw_number(connection: Connection, draw: Draw) -> int:
    """The number of a draw in the store; a new draw gets one."""
    values = {"kind": draw.kind, "source": draw.source, "depth": draw.depth, "how": draw.how_text}
    return _number_of(connection, "draws", {"fingerprint": draw.fingerprint, **values})


def _number_of(connection: Connection, table: str, values: Mapping[str, Any]) -> int:
    """The number of the row of a table that has the fingerprint of these values; a new one gets one."""
    names = (*values, "created")
    connection.execute(
        f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
        (*values.values(), time.time()),
    )
    row = connection.execute(f"SELECT id FROM {table} WHERE fingerprint = ?", (values["fingerprint"],)).fetchone()
    return int(row[0])


def write_texts(connection: Connection, pairs: Iterable[tuple[str, str, bytes, bytes]]) -> None:
    """Write (query id, passage id, query hash, passage hash) rows; a pair that the store has keeps its texts."""
    connection.executemany("INSERT OR IGNORE INTO pairs VALUES (?, ?, ?, ?)", pairs)


def write_origins(connection: Connection, rows: Sequence[tuple[str, str, Origin]]) -> None:
    """Write (query id, passage id, origin) rows; one of the same pair and draw is replaced."""
    # The draws get their numbers before the first row is written, not while a statement runs.
    draws = {origin.draw.fingerprint: origin.draw for _, _, origin in rows}
    numbers = {mark: draw_number(connection, draw) for mark, draw in draws.items()}
    connection.executemany(
        "INSERT OR REPLACE INTO origins VALUES (?, ?, ?, ?, ?)",
        [
            (query, passage, numbers[origin.draw.fingerprint], origin.rank, origin.detail_text)
            for query, passage, origin in rows
        ],
    )


def write_people(connection: Connection, labels: Iterable[HumanLabel]) -> None:
    """Write the labels of people; one of the same annotator, pair and sample is replaced."""
    now = time.time()
    for label in labels:
        draw = None if label.draw is None else draw_number(connection, label.draw)
        connection.execute(
            "INSERT OR REPLACE INTO human VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*_of_person(label), draw, now)
        )


def write_all(connection: Connection, incoming: Incoming, *, replace_labels: bool, other_texts: bool) -> None:
    """Write what a file brings; `other_texts` takes labels of other texts too.

    A person's label that the store has stays as it is if the file says nothing but the same grade: it keeps its texts,
    note, draw and date.

    Raises
    ------
    InputError
        If the store knows a pair with other texts, or holds another grade of the same person (unless it is to be
        replaced), with an example.
    """
    if not other_texts:
        _refuse_other_texts(connection, incoming)
    people = []
    for label in incoming.people:
        known = connection.execute(
            "SELECT grade FROM human WHERE query_id = ? AND passage_id = ? AND annotator = ? AND sample = ?",
            (label.query, label.passage, label.annotator, label.sample),
        ).fetchone()
        if known is not None and not replace_labels and None not in (*known, label.grade) and known[0] != label.grade:
            raise InputError(
                f"query {label.query!r}, passage {label.passage!r}: {label.annotator} graded it {known[0]} in the "
                f"store and {label.grade} in the file (nothing was imported). Give --replace (replace=True) to take "
                f"the new grades, or another --annotator"
            )
        says_more = any(each is not None for each in (label.reason, label.query_hash, label.passage_hash, label.draw))
        if says_more or known != (label.grade,):
            people.append(label)
    write_texts(connection, incoming.pairs)
    write_origins(connection, incoming.origins)
    numbers: dict[bytes, int] = {}
    for settings, of_judge in incoming.labels:
        mark = settings.fingerprint
        if mark not in numbers:
            numbers[mark] = settings_number(connection, settings)
        write_records(connection, [replace(of_judge, key=(numbers[mark], *of_judge.key[1:]))])
    write_people(connection, people)


def _refuse_other_texts(connection: Connection, incoming: Incoming) -> None:
    read_by_people = (
        (label.query, label.passage, label.query_hash, label.passage_hash)
        for label in incoming.people
        if label.query_hash and label.passage_hash
    )
    wrong = []
    for query, passage, *hashes in (*incoming.pairs, *read_by_people):
        known = connection.execute(
            "SELECT query_hash, passage_hash FROM pairs WHERE query_id = ? AND passage_id = ?", (query, passage)
        ).fetchone()
        if known is not None and list(known) != hashes:
            wrong.append((query, passage, "query" if known[0] != hashes[0] else "passage"))
    if wrong:
        query, passage, what = wrong[0]
        raise InputError(
            f"{len(wrong):,} of the labels are of other texts than the store has: the {what} of query {query!r}, "
            f"passage {passage!r} has changed (nothing was imported). Import into a new store, or label these texts "
            f"again"
        )
