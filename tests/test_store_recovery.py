"""Label stores that are damaged, or hold what is not theirs: refused with the mend, and saved as far as they can be."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.exchange import export_labels
from rag_selectivity.grading.store import Draw, HumanLabel, Label, Origin, Store, StoredAnswer, digest, locks, recovery
from rag_selectivity.grading.store.locks import file_system_of
from rag_selectivity.grading.store.recovery import recover
from tests.former_store import GRADES, write_former_store
from tests.test_store import put

pytestmark = pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
_PAGE = 4096
_LABELS = 2000


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A store with labels, people, answers and origins, without a log."""
    path = tmp_path_factory.mktemp("store") / "labels.db"
    with Store(path) as store:
        number = put(store, "m", {("q0", "a"): 3})
        names = [(f"q{i % 50}", f"d{i}") for i in range(_LABELS)]
        store.add_texts((query, name, digest(query), digest(name)) for query, name in names)
        store.put([Label((number, digest(q), digest(d), 0), 4, reason="r" * 60) for q, d in names]).result()
        store.put([StoredAnswer(number, bytes([i % 256, i // 256]), {"n": i}) for i in range(600)]).result()
        draw = Draw("pool", "run", 10)
        store.put_origins((query, name, Origin(draw, 1)) for query, name in names)
        store.put_human_labels(HumanLabel(query, name, "ada", 5) for query, name in names)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode = DELETE")
    return path


def copy_of(path: Path, folder: Path) -> Path:
    copy = folder / "labels.db"
    copy.write_bytes(path.read_bytes())
    return copy


def labels(path: Path) -> dict[str, int]:
    with Store(path, read_only=True) as store:
        return {row["passage_id"]: row["grade"] for row in store.rows() if row["source"] == "judge"}


def pages_of(path: Path, table: str) -> list[int]:
    """The numbers of the leaves of a table, from 1."""
    with closing(sqlite3.connect(path)) as file:
        try:
            return [
                row[0]
                for row in file.execute("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (table,))
            ]
        except sqlite3.OperationalError:
            pytest.skip("SQLite was built without dbstat")


def overwrite(path: Path, page: int) -> None:
    content = bytearray(path.read_bytes())
    content[(page - 1) * _PAGE : page * _PAGE] = b"\xa5" * _PAGE
    path.write_bytes(content)


def test_a_store_without_damage_is_saved_whole(whole, tmp_path) -> None:
    saved = tmp_path / "saved.db"
    recovered = recover(whole, saved)
    assert recovered.lines()[-1] == "every row could be read"
    with closing(sqlite3.connect(whole)) as before, closing(sqlite3.connect(saved)) as after:
        assert list(before.iterdump()) == list(after.iterdump())


@pytest.mark.parametrize("table", ["labels", "human", "origins", "answers", "pairs"])
def test_a_page_that_is_overwritten_costs_what_stood_on_it(whole, tmp_path, table) -> None:
    path = copy_of(whole, tmp_path)
    leaves = pages_of(path, table)
    overwrite(path, leaves[len(leaves) // 2])
    with closing(sqlite3.connect(whole)) as file:
        count = file.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    before = path.read_bytes()
    recovered = recover(path, tmp_path / "saved.db")
    assert path.read_bytes() == before
    assert recovered.unreadable == (table,)
    on_a_page = -(-count // len(leaves)) * 2
    # Answers have no other way in than their two ends.
    least = count // 3 if table == "answers" else count - on_a_page
    assert least <= recovered.rows[table] <= count
    if table == "pairs":
        assert recovered.rows[table] == count
    if table == "labels":
        assert labels(tmp_path / "saved.db").items() <= labels(whole).items()
    with Store(tmp_path / "saved.db") as store:
        put(store, "m", {("q0", "later"): 4})


def test_a_store_that_is_cut_short_is_refused_and_saved(whole, tmp_path) -> None:
    path = copy_of(whole, tmp_path)
    os.truncate(path, path.stat().st_size * 3 // 4)
    with pytest.raises(rs.InputError, match=r"damaged or cut short.*rag-selectivity store recover labels\.db NEW\.db"):
        rs.read_qrels(path)
    recovered = recover(path, tmp_path / "saved.db")
    assert recovered.rows["labels"] > 100
    found = labels(tmp_path / "saved.db")
    assert found.items() <= labels(whole).items()


def test_the_first_error_says_what_a_check_finds(whole, tmp_path) -> None:
    path = copy_of(whole, tmp_path)
    overwrite(path, pages_of(path, "labels")[3])
    with pytest.raises(rs.InputError, match=r"malformed; .*(page|Page|Tree|btree)"):
        rs.read_qrels(path)


def test_a_text_that_is_no_utf8_is_damage(whole, tmp_path) -> None:
    path = copy_of(whole, tmp_path)
    path.write_bytes(path.read_bytes().replace(b"utility", b"util\xff\xfey"))
    with pytest.raises(rs.InputError, match=r"damaged or cut short.*store recover"), Store(path) as store:
        store.judges()


def test_a_store_of_an_older_format_is_saved_in_the_present_one(tmp_path) -> None:
    former = tmp_path / "former.db"
    write_former_store(former, copies=2000)
    os.truncate(former, former.stat().st_size - 4 * _PAGE)
    recover(former, tmp_path / "saved.db")
    with closing(sqlite3.connect(tmp_path / "saved.db")) as file:
        assert file.execute("PRAGMA user_version").fetchone()[0] == 2
    found = rs.read_qrels(tmp_path / "saved.db").to_dict()
    assert {query: passages.items() <= GRADES[query].items() for query, passages in found.items()} == dict.fromkeys(
        found, True
    )


@pytest.mark.parametrize("content", [b"", b"no store", b"SQLite format 3\0" + b"\xff" * 4000])
def test_what_holds_nothing_is_refused_and_nothing_is_written(tmp_path, content) -> None:
    (tmp_path / "labels.db").write_bytes(content)
    with pytest.raises(rs.InputError, match=r"labels\.db: (nothing of this label store can be read|an SQLite file)"):
        recover(tmp_path / "labels.db", tmp_path / "saved.db")
    assert not (tmp_path / "saved.db").exists()


def test_a_file_that_exists_is_never_the_target(whole, tmp_path) -> None:
    (tmp_path / "mine.db").write_text("mine")
    with pytest.raises(rs.InputError, match=r"mine\.db: exists already"):
        recover(whole, tmp_path / "mine.db")
    assert (tmp_path / "mine.db").read_text() == "mine"


FOREIGN = {
    "trigger": "CREATE TRIGGER spy AFTER INSERT ON labels BEGIN DELETE FROM human; END",
    "view": "CREATE VIEW spy AS SELECT * FROM labels",
    "table": "CREATE TABLE spy (a)",
    "index": "CREATE INDEX spy ON labels (lower(reason))",
    "virtual table": "CREATE VIRTUAL TABLE spy USING fts5(a)",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_not_ours_is_refused_and_left_behind(whole, tmp_path, kind) -> None:
    path = copy_of(whole, tmp_path)
    with closing(sqlite3.connect(path)) as file:
        try:
            file.execute(FOREIGN[kind])
        except sqlite3.OperationalError:
            pytest.skip("SQLite was built without fts5")
        file.commit()
    for open_it in (lambda: Store(path), lambda: rs.read_qrels(path)):
        with pytest.raises(rs.InputError, match=rf"labels\.db: holds the {kind} 'spy', .*store recover labels\.db"):
            open_it()
    recover(path, tmp_path / "saved.db")
    assert labels(tmp_path / "saved.db") == labels(whole)


def test_a_table_of_ours_with_other_columns_is_refused(whole, tmp_path) -> None:
    path = copy_of(whole, tmp_path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("ALTER TABLE labels ADD COLUMN spy GENERATED ALWAYS AS (length(reason))")
        file.commit()
    with pytest.raises(rs.InputError, match="holds the table 'labels'"):
        Store(path)


def test_without_locks_there_is_no_write_ahead_log_and_a_store_works_all_the_same(tmp_path, monkeypatch) -> None:
    assert file_system_of(tmp_path) not in ("", "nfs")
    monkeypatch.setattr(locks, "file_system_of", lambda folder: "nfs4")
    locks._has_locks.cache_clear()
    try:
        path = tmp_path / "labels.db"
        with Store(path) as store:
            put(store, "m", {("q", "a"): 3})
            assert len(list(store.rows())) == 1
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert sorted(each.name for each in tmp_path.iterdir()) == ["labels.db"]
    finally:
        locks._has_locks.cache_clear()


def test_the_mount_of_a_folder_is_the_innermost_one(tmp_path, monkeypatch) -> None:
    mounts = tmp_path / "mountinfo"
    place = tmp_path / "far away é" / "stores"
    place.mkdir(parents=True)
    at = str(tmp_path / "far away é").replace(" ", "\\040")
    mounts.write_text(f"1 0 8:1 / / rw shared:1 - ext4 /dev/a rw\n2 1 0:5 / {at} rw - nfs4 host:/x rw\n", "utf-8")
    monkeypatch.setattr(locks, "_MOUNTS", mounts)
    assert [file_system_of(place), file_system_of(tmp_path)] == ["nfs4", "ext4"]


def test_ctrl_c_leaves_no_part_of_a_new_store(whole, tmp_path, monkeypatch) -> None:
    def interrupted(source: IO[bytes], target: IO[bytes]) -> None:
        target.write(b"a part")
        raise KeyboardInterrupt

    monkeypatch.setattr(recovery.shutil, "copyfileobj", interrupted)
    with pytest.raises(KeyboardInterrupt):
        recover(copy_of(whole, tmp_path), tmp_path / "saved.db")
    assert not list(tmp_path.glob("*saved*"))


@pytest.mark.parametrize("table", ["labels", "pairs", "human", "settings", "servers", "leases"])
def test_a_table_that_is_gone_is_named_wherever_the_store_is_opened(whole, tmp_path, table) -> None:
    path = copy_of(whole, tmp_path)
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"DROP TABLE {table}")
    (tmp_path / "ada.qrels").write_text("q1 0 d1 4\n")
    command = [sys.executable, "-m", "rag_selectivity", "store", "import", "labels.db", "ada.qrels"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"recover labels.db NEW.db (it lacks the table {table})" in done.stderr
    with pytest.raises(rs.InputError, match=rf"it lacks the table {table}\)"), Store(path, read_only=True) as store:
        store.judges()
    recovered = recover(path, tmp_path / "saved.db")
    # A lease is of a process that is no more.
    lacking = table != "leases"
    assert recovered.missing == ((table,) if lacking else ())
    assert (f"tables that the file lacks, with all that was in them: {table}" in recovered.lines()) is lacking
    assert ("every row could be read" in recovered.lines()) is not lacking
    with Store(tmp_path / "saved.db") as store:
        store.put_human_labels([HumanLabel("q1", "d1", "ben", 4)])


def test_the_command_says_what_it_saved(whole, tmp_path) -> None:
    path = copy_of(whole, tmp_path)
    overwrite(path, pages_of(path, "labels")[3])
    command = [sys.executable, "-m", "rag_selectivity", "store", "recover", "labels.db", "saved.db"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert told[0].startswith("saved rows: settings 1, ")
    assert told[1] == "could not be read whole: labels"


@pytest.mark.parametrize("table", ["pairs", "human"])
@pytest.mark.parametrize("target", ["out.qrels", "out.jsonl", "out.csv"])
def test_a_row_whose_id_is_none_is_neither_exported_nor_saved(whole, tmp_path, table, target) -> None:
    path = copy_of(whole, tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute(f"UPDATE {table} SET passage_id = 'd' || char(0) || '7' WHERE passage_id = 'd7'")
    with (
        Store(path, read_only=True) as store,
        pytest.raises(rs.InputError, match=r"labels\.db: .*recover labels\.db .*the passage id 'd\\x007' holds a NUL"),
    ):
        export_labels(store, tmp_path / target)
    recovered = recover(path, tmp_path / "saved.db")
    assert recovered.unusable == 1
    with Store(tmp_path / "saved.db", read_only=True) as store:
        export_labels(store, tmp_path / target)
    assert "d6" in rs.read_qrels(tmp_path / target).to_dict()["q6"]
