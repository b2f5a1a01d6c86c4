"""The thread that writes labels and answers to a store."""

from __future__ import annotations

import json
import queue
import sqlite3
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path

from rag_selectivity.grading.store.records import Label, StoredAnswer
from rag_selectivity.grading.store.schema import connect, transaction

Records = Sequence[Label | StoredAnswer]


class Writer:
    """Writes records in a thread of its own. All records that wait are written in one transaction.

    Parameters
    ----------
    path : Path
        The store's file.
    owner : str
        The process whose leases end when a label is written.
    """

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        self._owner = owner
        self._queue: queue.SimpleQueue[tuple[Records, Future[None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="label-store", daemon=True)
        self._thread.start()

    def put(self, records: Records) -> Future[None]:
        """Write the records; the future is done when they are committed."""
        committed: Future[None] = Future()
        self._queue.put((records, committed))
        return committed

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        connection = connect(self._path)
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
                with transaction(connection):
                    for records, _ in waiting:
                        for record in records:
                            self._write(connection, record)
            except BaseException as error:
                for _, committed in waiting:
                    committed.set_exception(error)
            else:
                for _, committed in waiting:
                    committed.set_result(None)
        connection.close()

    def _write(self, connection: sqlite3.Connection, record: Label | StoredAnswer) -> None:
        if isinstance(record, StoredAnswer):
            _write_answer(connection, record)
            return
        data = asdict(record)
        key = data.pop("key")
        columns = list(data)
        # A grade in the store is never overwritten: only a failure is replaced.
        connection.execute(
            f"INSERT INTO labels (settings, query_hash, passage_hash, sample, created, {', '.join(columns)})"
            f" VALUES ({', '.join('?' * (5 + len(columns)))}) ON CONFLICT DO UPDATE SET"
            f" {', '.join(f'{name} = excluded.{name}' for name in (*columns, 'created'))} WHERE labels.grade IS NULL",
            (*key, time.time(), *data.values()),
        )
        connection.execute(
            "DELETE FROM leases WHERE settings = ? AND query_hash = ? AND passage_hash = ? AND sample = ?"
            " AND owner = ?",
            (*key, self._owner),
        )


def _write_answer(connection: sqlite3.Connection, answer: StoredAnswer) -> None:
    connection.execute(
        "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " value = excluded.value, failure = excluded.failure, error = excluded.error,"
        " last_answer = excluded.last_answer, attempts = excluded.attempts,"
        " created = excluded.created WHERE answers.value IS NULL",
        (
            answer.settings,
            answer.content,
            None if answer.value is None else json.dumps(answer.value, ensure_ascii=False),
            answer.prompt_tokens,
            answer.completion_tokens,
            answer.cost,
            answer.seconds,
            answer.attempts,
            answer.failure,
            answer.error,
            answer.last_answer,
            answer.served_model,
            answer.way,
            time.time(),
        ),
    )
