"""Label stores that are damaged, or hold what is not theirs: refused with the mend wherever they are opened."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import rag_selectivity as rs
from tests.forked_cli import run_command

pytestmark = pytest.mark.contract
FOREIGN = {
    "trigger": "CREATE TRIGGER spy AFTER INSERT ON labels BEGIN DELETE FROM human; END",
    "view": "CREATE VIEW spy AS SELECT * FROM labels",
    "table": "CREATE TABLE spy (a)",
    "index": "CREATE INDEX spy ON labels (lower(reason))",
    "virtual table": "CREATE VIRTUAL TABLE spy USING fts5(a)",
}


async def judge(messages, schema):
    return {"reason": "so", "grade": 4}


@pytest.fixture
def path(tmp_path) -> Path:
    """A store with many labels, without a log."""
    queries = {f"q{i}": f"question {i}" for i in range(20)}
    corpus = {f"d{i}": f"text {i}" for i in range(40)}
    pool = {query: list(corpus) for query in queries}
    rs.grade(queries, corpus, pool, store=tmp_path / "labels.db", judge=judge, pool_depth=40, progress=False)
    changed(tmp_path / "labels.db", "PRAGMA journal_mode = DELETE")
    return tmp_path / "labels.db"


def changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute(statement).fetchall()


def refused(path: Path, message: str) -> None:
    """Refused by reading, by the command line, and by grading into it; and the file stays as it was."""
    before = path.read_bytes()
    with pytest.raises(rs.InputError, match=message):
        rs.read_qrels(path)
    done = run_command("labels", "info", path.name, cwd=path.parent)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    with pytest.raises(rs.InputError, match=message):
        rs.grade({"q": "a"}, {"d": "b"}, {"q": ["d"]}, store=path, judge=judge, progress=False)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_is_not_ours_is_refused(path, kind) -> None:
    try:
        changed(path, FOREIGN[kind])
    except sqlite3.OperationalError:
        pytest.skip("SQLite was built without fts5")
    refused(path, rf"labels\.db: holds the {kind} 'spy', .*remove it")


OLD = r"labels\.db: a label store of format {}, and this .* has format 2; export it as \.jsonl"
COLUMN = "ALTER TABLE labels ADD COLUMN spy GENERATED ALWAYS AS (length(reason))"
CHANGED = {f"PRAGMA user_version = {version}": OLD.format(version) for version in (0, 1, 9)}
CHANGED |= {COLUMN: "holds the table 'labels'"}
CHANGED |= {f"DROP TABLE {t}": rf"it lacks the table {t}" for t in ("labels", "pairs", "human", "settings", "servers")}


@pytest.mark.parametrize("statement", CHANGED)
def test_a_store_of_another_format_or_without_our_tables_is_refused(path, statement) -> None:
    changed(path, statement)
    refused(path, CHANGED[statement])


def test_a_store_that_is_cut_short_is_damaged(path) -> None:
    os.truncate(path, path.stat().st_size * 3 // 4)
    with pytest.raises(rs.InputError, match=r"damaged or cut short. Restore it from a copy, or .*labels\.db \.recover"):
        rs.read_qrels(path)


def test_a_text_that_is_no_utf8_is_damage(path) -> None:
    path.write_bytes(path.read_bytes().replace(b"utility", b"util\xff\xfey"))
    done = run_command("labels", "info", path.name, cwd=path.parent)
    assert done.returncode == 2
    assert "damaged or cut short" in " ".join(done.stderr.split())


@pytest.mark.parametrize("target", ["out.qrels", "out.jsonl", "out.csv"])
def test_a_row_whose_id_is_none_is_not_exported(path, target) -> None:
    changed(path, "UPDATE pairs SET passage_id = 'd' || char(0) || '7' WHERE passage_id = 'd7'")
    done = run_command("labels", "export", path.name, target, cwd=path.parent)
    assert done.returncode == 2
    assert "the passage id 'd\\x007' holds a NUL" in " ".join(done.stderr.split())
    assert not (path.parent / target).exists()
