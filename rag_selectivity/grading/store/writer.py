"""The thread that writes labels and answers to a store."""

from __future__ import annotations

import json
import queue
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from rag_selectivity.grading.store.opening import connect, log_of
from rag_selectivity.grading.store.problems import StoreConnection
from rag_selectivity.grading.store.records import ASKED_COLUMNS, LABEL_COLUMNS, Label, StoredAnswer
from rag_selectivity.grading.store.schema import transaction

Records = Sequence[Label | StoredAnswer]
_Waiting = tuple[Records, Future[None]]

#: Records in a transaction: other processes wait for it some 20 ms.
_AT_ONCE = 500
#: A transaction adds some three pages to the log, and half a page for each record. At some 50 MB it is moved.
_PAGES_OF_TRANSACTION, _PAGES_OF_RECORD, _PAGES_OF_LOG = 3.0, 0.5, 12_000
#: Size of the log from which other processes wait a moment, so that it can begin anew.
_LOG_BYTES = 128_000_000
_LOG_WAIT = 0.05


def _upsert(table: str, keys: Sequence[str], columns: Sequence[str], done: str) -> str:
    """Insert a row, or replace one without a result: a grade in the store is never overwritten."""
    names = (*keys, *columns, "server", "created")
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) ON CONFLICT DO UPDATE SET"
        f" {', '.join(f'{name} = excluded.{name}' for name in names[len(keys) :])} WHERE {table}.{done} IS NULL"
    )


_PUT_LABEL = _upsert("labels", ("settings", "query_hash", "passage_hash", "sample"), LABEL_COLUMNS, "grade")
_PUT_ANSWER = _upsert("answers", ("settings", "content"), ("value", *ASKED_COLUMNS), "value")
_label_values, _asked_values = attrgetter(*LABEL_COLUMNS), attrgetter(*ASKED_COLUMNS)


def put_label(connection: sqlite3.Connection, label: Label, server: int, created: float) -> None:
    """Write a label within a transaction, unless the store holds a grade in its place."""
    connection.execute(_PUT_LABEL, (*label.key, *_label_values(label), server, created))


def server_number(connection: sqlite3.Connection, served_model: str | None, way: str | None) -> int:
    """The number of a server in the store; a new one gets one."""
    values = (served_model or "", way or "")
    connection.execute("INSERT OR IGNORE INTO servers (served_model, way) VALUES (?, ?)", values)
    number = connection.execute("SELECT id FROM servers WHERE served_model = ? AND way = ?", values)
    return int(number.fetchone()[0])


class Writer:
    """Writes records in a thread of its own. Records that wait are written together, a few hundred in a transaction.

    Parameters
    ----------
    path : Path
        The store's file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._servers: dict[tuple[str | None, str | None], int | None] = {(None, None): None}
        self._pages_in_log = 0.0
        self._thread = threading.Thread(target=self._run, name="label-store", daemon=True)
        self._thread.start()

    def put(self, records: Records) -> Future[None]:
        """Write the records; the future is done when all of them are committed."""
        committed: Future[None] = Future()
        # A caller that stops waiting must not be able to cancel what is being written.
        committed.set_running_or_notify_cancel()
        self._queue.put((records, committed))
        return committed

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        connection: StoreConnection | None = None
        last = False
        while not last:
            batch = [self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get())
            last = None in batch
            waiting = [item for item in batch if item is not None]
            try:
                connection = connection or connect(self._path)
            except Exception as error:
                for _, committed in waiting:
                    committed.set_exception(error)
                continue
            for pieces in _transactions(waiting):
                self._commit(connection, pieces)
        if connection is not None:
            connection.close()

    def _commit(self, connection: StoreConnection, pieces: Sequence[_Piece]) -> None:
        records = [record for piece in pieces if not piece.committed.done() for record in piece.records]
        try:
            self._note_servers(connection, records)
            with transaction(connection):
                self._write(connection, records)
        except BaseException as error:
            for piece in pieces:
                if not piece.committed.done():
                    piece.committed.set_exception(error)
            return
        for piece in pieces:
            if piece.last and not piece.committed.done():
                piece.committed.set_result(None)
        self._pages_in_log += _PAGES_OF_TRANSACTION + _PAGES_OF_RECORD * len(records)
        if self._pages_in_log >= _PAGES_OF_LOG:
            self._pages_in_log = 0.0
            move_log(connection, self._path)

    def _write(self, connection: sqlite3.Connection, records: Records) -> None:
        now = time.time()
        labels = ((label, self._server_of(label)) for label in records if isinstance(label, Label))
        connection.executemany(
            _PUT_LABEL, ((*label.key, *_label_values(label), server, now) for label, server in labels)
        )
        for answer in records:
            if isinstance(answer, StoredAnswer):
                value = None if answer.value is None else json.dumps(answer.value, ensure_ascii=False)
                key, server = (answer.settings, answer.content), self._server_of(answer)
                connection.execute(_PUT_ANSWER, (*key, value, *_asked_values(answer), server, now))

    def _note_servers(self, connection: sqlite3.Connection, records: Records) -> None:
        """Give numbers to new servers, outside of the transaction: one that is rolled back would take them away."""
        for server in {(record.served_model, record.way) for record in records} - self._servers.keys():
            self._servers[server] = server_number(connection, *server)

    def _server_of(self, record: Label | StoredAnswer) -> int | None:
        return self._servers[record.served_model, record.way]


def move_log(connection: StoreConnection, path: Path) -> None:
    """Move the log into the file. It waits for nobody: what others still read is moved the next time."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    with suppress(FileNotFoundError):
        if log_of(path).stat().st_size < _LOG_BYTES:
            return
    # Processes that write by turns leave no moment at which the log is empty. Little is left to move by now.
    connection.execute(f"PRAGMA busy_timeout = {int(_LOG_WAIT * 1000)}")
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(connection.busy_seconds * 1000)}")


class _Piece(NamedTuple):
    """Some records of one `put`, and whether they are its last."""

    records: Records
    committed: Future[None]
    last: bool


def _transactions(waiting: Sequence[_Waiting]) -> Iterator[list[_Piece]]:
    """What waits, in portions for one transaction each."""
    pieces: list[_Piece] = []
    size = 0
    for records, committed in waiting:
        start = 0
        while True:
            part = records[start : start + _AT_ONCE - size]
            start += len(part)
            size += len(part)
            pieces.append(_Piece(part, committed, start >= len(records)))
            if size >= _AT_ONCE:
                yield pieces
                pieces, size = [], 0
            if start >= len(records):
                break
    if pieces:
        yield pieces
