"""Disks that are full and stores that are locked: an error that says what to do, nothing lost."""

import os
import sqlite3
import sys
from contextlib import closing

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.origins import label_rows
from rag_selectivity.grading.store import Label, Store, connection, digest
from tests.test_store import put
from tests.test_store_writing import keys

pytestmark = pytest.mark.inside


def in_a_child(action) -> str:
    """What an action of a process of its own returns or raises, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = str(action())
        except rs.InputError as error:
            told = f"InputError: {error}"
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writing, told.encode()[:4000])
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as told:
        return told.read()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX")
def test_a_file_that_cannot_grow_keeps_what_was_reported_as_stored(tmp_path) -> None:
    import resource

    path = tmp_path / "s.db"
    with Store(path) as store:
        number = put(store, "m", {("q", "first"): 5})

    def fill() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        stored = 0
        try:
            with Store(path) as store:
                for i in range(10_000):
                    store.add_texts([("q", f"d{i}", digest("q"), digest(str(i)))])
                    store.put([Label((number, digest("q"), digest(str(i)), 0), 3, reason="r" * 500)]).result()
                    stored += 1
        except rs.InputError as error:
            return f"{stored} {error}"
        return "nothing was raised"

    stored, told = in_a_child(fill).split(" ", 1)
    assert int(stored) > 10
    assert told.startswith(f"{path}: the file cannot grow (a limit of the system or a quota). Raise it. Every label")
    with Store(path) as store:
        found = {passage: grade for _, passage, grade in label_rows(store)}
        assert found == {"first": 5, **{f"d{i}": 3 for i in range(int(stored))}}
        put(store, "m", {("q", "later"): 4})
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_full_disk_is_named(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store, store._changing() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(rs.InputError, match=r"s\.db: the disk is full.*Free some space.*the same command goes on"):
            store.add_texts(("q", f"d{i}", digest("q"), digest(str(i))) for i in range(10_000))
        assert not connection.in_transaction
        connection.execute("PRAGMA max_page_count = 100000")
        store.add_texts([("q", "d", digest("q"), digest("d"))])


def test_a_store_that_somebody_keeps_locked_is_named(tmp_path, monkeypatch) -> None:
    path = tmp_path / "s.db"
    Store(path).close()
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.1)
    with Store(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        put(store, "m", {("q", "a"): 3})
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(rs.InputError, match="another process has kept the store locked for too long"):
            store.put([Label(keys(1)[0], 3)]).result()
        assert len(list(label_rows(store))) == 1
        other.execute("ROLLBACK")
        store.put([Label(keys(1)[0], 3)]).result()
