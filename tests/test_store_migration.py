"""Stores of format 1: brought to the present format once, completely or not at all, with a copy beside."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import warnings
from contextlib import closing
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.store import Store, digest, opening
from tests.former_store import FAILURES, GRADES, write_former_store

pytestmark = pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")


def table(path: Path, statement: str) -> list[tuple]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute(statement).fetchall()


def version(path: Path) -> int:
    return table(path, "PRAGMA user_version")[0][0]


@pytest.fixture
def former(tmp_path) -> Path:
    path = tmp_path / "labels.db"
    write_former_store(path)
    return path


def test_everything_is_there_afterwards(former) -> None:
    kept = (
        "SELECT settings, query_hash, passage_hash, sample, grade, reason, relevant_span, misleading, prompt_tokens,"
        " completion_tokens, cost, seconds, attempts, created FROM labels ORDER BY created"
    )
    before = table(former, kept)
    with pytest.warns(rs.SelectivityWarning, match=r"brought to the present format.*kept as labels.db.v1-backup"):
        Store(former).close()
    assert version(former) == 2
    assert table(former, kept) == before
    assert rs.read_qrels(former).to_dict() == GRADES
    with Store(former) as store:
        rows = {row["passage_id"]: row for row in store.rows() if row["source"] == "judge"}
        assert [(name, rows[name]["failure"], rows[name]["error"]) for name, *_ in FAILURES] == [
            (name, kind, message) for name, _, kind, message in FAILURES
        ]
        assert {row["origins"] for row in rows.values()} == {None}
        assert store.judges()[0]["origins"] == {"unknown": 3}
        (person,) = (row for row in store.rows() if row["source"] == "human")
        assert (person["judge"], person["grade"], person["reason"], person["created"]) == ("ada", 1, "a note", 106.0)
        assert (person["query_hash"], store.outdated_human_labels()) == (None, [])
        assert store.answer(4, b"one") == {"claims": ["é"]}
        (claims,) = store.failures(["mini#4"])
        assert (claims["kind"], claims["failure"], claims["error"]) == (
            "claims",
            "server_error",
            "no answer within 60 s",
        )
        leased = (1, digest("text of q"), digest("leased"), 0)
        assert store.lease([leased], 60) == set()


def test_the_copy_is_the_store_as_it_was_and_private_and_never_overwritten(former) -> None:
    before = dump(former)
    (former.parent / "labels.db.v1-backup").write_text("something of the user's")
    (former.parent / "labels.db.v1-backup.partial").write_text("left by a process that was killed")
    Store(former).close()
    assert (former.parent / "labels.db.v1-backup").read_text() == "something of the user's"
    backup = former.parent / "labels.db.v1-backup-2"
    assert dump(backup) == before
    assert version(backup) == 1
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    Store(former).close()
    assert sorted(path.name for path in former.parent.iterdir()) == [
        "labels.db",
        "labels.db.v1-backup",
        "labels.db.v1-backup-2",
    ]


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as file:
        return list(file.iterdump())


def test_a_kill_at_any_statement_leaves_the_store_as_it_was(former) -> None:
    pristine = former.parent / "pristine.db"
    shutil.copyfile(former, pristine)
    before = dump(pristine)
    migrate = opening.migrate
    statement, killed = 0, 0
    while True:
        child = os.fork()
        if child == 0:
            count = iter(range(sys.maxsize))

            def kill_at_one(path, connection, *, backup=True, number=statement, count=count) -> None:
                connection.set_trace_callback(
                    lambda sql: os.kill(os.getpid(), signal.SIGKILL) if next(count) == number else None
                )
                migrate(path, connection, backup=backup)
                connection.set_trace_callback(None)

            opening.migrate = kill_at_one
            warnings.simplefilter("ignore")
            Store(former).close()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        killed += 1
        assert version(former) == 1
        assert dump(former) == before
        statement += 1
    assert killed > 25
    assert rs.read_qrels(former).to_dict() == GRADES
    # Copies of a process that was killed are used again: there is one, not one for each kill.
    assert [path.name for path in former.parent.glob("*backup*")] == ["labels.db.v1-backup"]


def test_several_processes_migrate_once(tmp_path) -> None:
    path = tmp_path / "labels.db"
    write_former_store(path, copies=20_000)
    code = "import sys; from rag_selectivity.grading.store import Store; Store(sys.argv[1]).close()"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    told = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], told
    assert sum("brought to the present format" in text for text in told) == 1
    assert version(path) == 2
    assert table(path, "SELECT count(*) FROM labels") == [(20_000 + 5 + len(FAILURES),)]
    assert [file.name for file in tmp_path.glob("*backup*")] == ["labels.db.v1-backup"]


def test_without_room_for_the_copy_nothing_is_changed(tmp_path) -> None:
    former = tmp_path / "labels.db"
    write_former_store(former, copies=1000)
    before = dump(former)
    child = os.fork()
    if child == 0:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            Store(former)
        except rs.InputError as error:
            os._exit(7 if "the copy that is made before could not be written" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert (version(former), dump(former)) == (1, before)
    assert list(former.parent.glob("*backup*")) == []


def test_reading_changes_nothing(former) -> None:
    before = former.read_bytes()
    assert rs.read_qrels(former).to_dict() == GRADES
    with Store(former, read_only=True) as store:
        assert len(store.failures()) > 3
        with pytest.raises(rs.InputError, match="opened for reading alone"):
            store.put_human([("q", "a", 2, None)], "ben")
    done = subprocess.run(
        [sys.executable, "-m", "rag_selectivity", "store", "failures", str(former), "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {row["failure"] for row in json.loads(done.stdout)} == {kind for *_, kind, _ in FAILURES}
    assert former.read_bytes() == before
    assert [path.name for path in former.parent.iterdir()] == ["labels.db"]


def test_a_store_that_was_being_created_is_completed(tmp_path) -> None:
    path = tmp_path / "labels.db"
    with closing(sqlite3.connect(path)) as file:
        file.executescript("PRAGMA application_id = 1381190722; PRAGMA user_version = 1;")
        file.execute(
            "CREATE TABLE settings (id INTEGER PRIMARY KEY, fingerprint BLOB, kind TEXT, model TEXT, parameters TEXT,"
            " rubric TEXT, rubric_version TEXT, prompt_version TEXT, created REAL)"
        )
    with Store(path) as store:
        assert store.judges() == []
    assert version(path) == 2


def test_a_newer_format_is_refused(former) -> None:
    with closing(sqlite3.connect(former)) as file:
        file.execute("PRAGMA user_version = 3")
    for read_only in (False, True):
        with pytest.raises(rs.InputError, match="made by a newer rag-selectivity; update rag-selectivity"):
            Store(former, read_only=read_only)
