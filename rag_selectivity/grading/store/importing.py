"""Labels of a file on their way into a store: checked against what it holds, and written all or none."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter

from rag_selectivity.errors import InputError
from rag_selectivity.grading.store.draws import draw_number, number_of, write_origins
from rag_selectivity.grading.store.problems import StoreConnection
from rag_selectivity.grading.store.records import HumanLabel, Label, Origin, Settings
from rag_selectivity.grading.store.schema import transaction
from rag_selectivity.grading.store.writer import put_label, server_number
from rag_selectivity.results.estimate import plain_fields

_of_person = attrgetter("query", "passage", "annotator", "sample", "grade", "reason", "query_hash", "passage_hash")
_PUT_HUMAN = "INSERT OR REPLACE INTO human VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


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


def settings_number(connection: sqlite3.Connection, settings: Settings) -> int:
    """The number of these settings in the store; new settings get one."""
    values = {**plain_fields(settings), "parameters": settings.parameters_text}
    return number_of(connection, "settings", {"fingerprint": settings.fingerprint, **values})


def write_people(connection: sqlite3.Connection, labels: Iterable[HumanLabel]) -> None:
    """Write the labels of people within a transaction; see `Store.put_human_labels`."""
    now = time.time()
    # The draws get their numbers before the first row is written, not while a statement runs.
    connection.executemany(
        _PUT_HUMAN,
        [
            (*_of_person(label), None if label.draw is None else draw_number(connection, label.draw), now)
            for label in labels
        ],
    )


def put_all(connection: StoreConnection, incoming: Incoming, *, replace_labels: bool, other_texts: bool) -> None:
    """Write everything or nothing; `other_texts` takes labels of other texts too.

    A person's label that the store has stays as it is if the file says nothing but the same grade: it keeps its texts,
    note, draw and date.

    Raises
    ------
    InputError
        If the store knows a pair with other texts, or holds another grade of the same person (unless it is to be
        replaced), with an example.
    """
    now = time.time()
    with transaction(connection):
        if not other_texts:
            _refuse_other_texts(connection, incoming)
        if not replace_labels:
            _refuse_other_grades(connection, incoming.people)
        connection.executemany("INSERT OR IGNORE INTO pairs VALUES (?, ?, ?, ?)", incoming.pairs)
        write_origins(connection, incoming.origins)
        numbers: dict[bytes, int] = {}
        servers: dict[tuple[str | None, str | None], int] = {}
        for settings, label in incoming.labels:
            mark = settings.fingerprint
            if mark not in numbers:
                numbers[mark] = settings_number(connection, settings)
            asked = label.served_model, label.way
            if asked not in servers:
                servers[asked] = server_number(connection, *asked)
            put_label(connection, replace(label, key=(numbers[mark], *label.key[1:])), servers[asked], now)
        write_people(connection, [label for label in incoming.people if not _says_nothing_new(connection, label)])


def _refuse_other_texts(connection: sqlite3.Connection, incoming: Incoming) -> None:
    read_by_people = [
        (label.query, label.passage, label.query_hash, label.passage_hash)
        for label in incoming.people
        if label.query_hash and label.passage_hash
    ]
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
            f"passage {passage!r} has changed (nothing was imported). Import into a new store, or "
            f"label these texts again"
        )


def _stored_grade(connection: sqlite3.Connection, label: HumanLabel) -> tuple[int | None] | None:
    """The grade that the store has in the place of a label; None if it has no label there."""
    found: tuple[int | None] | None = connection.execute(
        "SELECT grade FROM human WHERE query_id = ? AND passage_id = ? AND annotator = ? AND sample = ?",
        (label.query, label.passage, label.annotator, label.sample),
    ).fetchone()
    return found


def _says_nothing_new(connection: sqlite3.Connection, label: HumanLabel) -> bool:
    more = (label.reason, label.query_hash, label.passage_hash, label.draw)
    return more == (None,) * len(more) and _stored_grade(connection, label) == (label.grade,)


def _refuse_other_grades(connection: sqlite3.Connection, labels: Iterable[HumanLabel]) -> None:
    for label in labels:
        known = _stored_grade(connection, label)
        if known is not None and None not in (known[0], label.grade) and known[0] != label.grade:
            raise InputError(
                f"query {label.query!r}, passage {label.passage!r}: {label.annotator} graded it {known[0]} in the "
                f"store and {label.grade} in the file (nothing was imported). Give --replace (replace=True) to take "
                f"the new grades, or another --annotator"
            )
