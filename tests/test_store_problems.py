"""Disks that are full, files that are damaged, locks that do not work: an error that says what to do, nothing lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.store import Label, Store, digest, label_rows, opening, problems
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


def made(path: Path) -> str:
    with Store(path):
        return "made"


def left_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX")
@pytest.mark.parametrize("size", [0, 4096, 16_384, 30_000, 40_000])
def test_a_store_that_cannot_grow_while_it_is_made_leaves_nothing(tmp_path, size) -> None:
    import resource
    import signal

    def make() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return made(tmp_path / "new.db")

    told = in_a_child(make)
    assert "new.db: the " in told
    assert "limit of the system or a quota" in told
    assert "The store was not made" in told
    assert "lock" not in told
    assert left_in(tmp_path) == []
    assert made(tmp_path / "new.db") == "made"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can make a small file system")
@pytest.mark.parametrize("size", ["4k", "16k", "36k", "64k"])
def test_a_disk_that_is_full_while_a_store_is_made_is_named_and_left_empty(tmp_path, size) -> None:
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mount.returncode:
        pytest.skip(f"no file system can be mounted here: {mount.stderr.decode().strip()}")
    try:
        told = in_a_child(lambda: made(tmp_path / "new.db"))
        assert "new.db: the disk is full" in told
        assert left_in(tmp_path) == []
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX")
def test_what_another_process_has_made_or_opened_is_not_removed(tmp_path) -> None:
    empty, used, whole = (tmp_path / name for name in ("empty.db", "used.db", "whole.db"))
    for path in (empty, used):
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA journal_mode = WAL")
    made(whole)
    with closing(sqlite3.connect(used)) as reader:
        reader.execute("SELECT count(*) FROM sqlite_master").fetchall()
        # Locks within one process say nothing.
        in_a_child(lambda: [opening._remove_if_empty(path) for path in (empty, used, whole)])
    assert (empty.exists(), used.exists(), whole.exists()) == (False, True, True)


def test_a_full_disk_is_named(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store, store._changing() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(rs.InputError, match=r"s\.db: the disk is full.*Free some space.*the same command goes on"):
            store.add_texts(("q", f"d{i}", digest("q"), digest(str(i))) for i in range(10_000))
        assert not connection.in_transaction
        connection.execute("PRAGMA max_page_count = 100000")
        store.add_texts([("q", "d", digest("q"), digest("d"))])


def damaged(path: Path, how: str) -> None:
    with Store(path) as store:
        number = put(store, "m", {("q", "a"): 3})
        store.add_texts(("q", f"d{i}", digest("q"), digest(str(i))) for i in range(3000))
        store.put([Label((number, digest("q"), digest(str(i)), 0), 3, reason="r" * 99) for i in range(3000)]).result()
    content = bytearray(path.read_bytes())
    if how == "cut short":
        content = content[: len(content) // 2]
    elif how == "cut within a page":
        content = content[: len(content) // 2 + 100]
    elif how == "only its head":
        content = content[:100]
    else:
        content[8192:] = os.urandom(len(content) - 8192)
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["cut short", "cut within a page", "only its head", "overwritten"])
def test_a_damaged_file_is_named(tmp_path, how) -> None:
    path = tmp_path / "s.db"
    damaged(path, how)
    with pytest.raises(
        rs.InputError, match=r"s\.db: cannot be used as a label store: the file is damaged or cut short"
    ):
        rs.read_qrels(path)
    with pytest.raises(rs.InputError, match=r"damaged or cut short. Restore it from a copy, or save what"):
        write_and_read(path)


def write_and_read(path: Path) -> None:
    with Store(path) as store:
        store.put([Label(key, 3) for key in keys(3000)]).result()
        list(label_rows(store))


def test_a_store_that_somebody_keeps_locked_is_named(tmp_path, monkeypatch) -> None:
    path = tmp_path / "s.db"
    Store(path).close()
    monkeypatch.setattr(opening, "BUSY_SECONDS", 0.1)
    with Store(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        put(store, "m", {("q", "a"): 3})
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(rs.InputError, match="another process has kept the store locked for too long"):
            store.put([Label(keys(1)[0], 3)]).result()
        assert len(list(label_rows(store))) == 1
        other.execute("ROLLBACK")
        store.put([Label(keys(1)[0], 3)]).result()


def test_a_writer_that_cannot_open_the_file_says_so(tmp_path) -> None:
    with Store(tmp_path / "s.db") as store:
        (tmp_path / "s.db").unlink()
        (tmp_path / "s.db").mkdir()
        for _ in range(2):
            with pytest.raises(rs.InputError, match=r"s\.db: the file cannot be opened or created"):
                store.put([Label(keys(1)[0], 3)]).result(timeout=20)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SQLITE_PROTOCOL", "its file system cannot lock files"),
        ("SQLITE_IOERR_LOCK", "its file system cannot lock files"),
        ("SQLITE_IOERR_SHMMAP", "its file system cannot lock files"),
        ("SQLITE_IOERR_SHMSIZE", "the disk is full, or a limit of the system or a quota"),
        ("SQLITE_BUSY_RECOVERY", "another process has kept the store locked"),
        ("SQLITE_IOERR_READ", "reading or writing the file failed"),
        ("SQLITE_READONLY_DBMOVED", "the file or its folder is read-only"),
        ("SQLITE_PERM", "you have no permission to open the file"),
    ],
)
def test_what_sqlite_reports_is_explained(name, message) -> None:
    error = sqlite3.OperationalError("as SQLite says it")
    error.sqlite_errorname = name
    told = problems.explained(Path("labels.db"), error)
    assert isinstance(told, rs.InputError)
    assert str(told).startswith(f"labels.db: {message}")
    assert str(told).endswith("(as SQLite says it)")


def test_a_mistake_in_a_statement_is_not_blamed_on_the_file(tmp_path) -> None:
    with (
        Store(tmp_path / "s.db") as store,
        store._changing() as connection,
        pytest.raises(sqlite3.OperationalError, match="no such table"),
    ):
        connection.execute("SELECT * FROM absent")
