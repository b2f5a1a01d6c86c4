"""A corpus that is read once, beside `read_texts`, over files that are awkward to read."""

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import rag_selectivity as rs
from rag_selectivity.golden import build
from rag_selectivity.golden.golden_set import printed
from rag_selectivity.tables import fast, files
from rag_selectivity.tables.small import read_ids, read_texts
from tests.forked_cli import run_command

pytestmark = pytest.mark.inside


@pytest.fixture(autouse=True, params=["small", "large"])
def read_in_blocks(request, monkeypatch) -> None:
    """A small file is read as a large one is, line by line: what is odd stands behind what was read."""
    if request.param == "large":
        monkeypatch.setattr(files, "_LARGE", 0)
        monkeypatch.setattr(fast, "_BLOCK", 1)


def as_source(form: str, rows: list[tuple[str, str]], place: Path) -> Any:
    """The rows as a source of texts; of a file its path."""
    records = [{"_id": id_, "text": text} for id_, text in rows]
    if form == "tsv":
        (place / "corpus.tsv").write_text("".join(f"{id_}\t{text}\n" for id_, text in rows), encoding="utf-8")
        return place / "corpus.tsv"
    if form in ("jsonl", "folder"):
        (place / "corpus.jsonl").write_text("\n\n".join(map(json.dumps, records)), encoding="utf-8")
        return place / "corpus.jsonl" if form == "jsonl" else place
    return {"records": records, "pairs": rows, "once": iter(rows), "frame": pd.DataFrame(records)}[form]


@pytest.mark.parametrize("form", ["tsv", "jsonl", "folder", "records", "pairs", "once", "frame"])
@pytest.mark.parametrize("seed", range(3))
def test_an_id_with_two_texts_is_named_with_both_places(form, seed, tmp_path) -> None:
    generator = random.Random(seed)
    rows = [(f"d{generator.randrange(40)}", f"text {generator.randrange(2)}") for _ in range(60)]
    # By hand: the first row that gives an id another text than the first row with that id.
    last: dict[str, int] = {}
    for second, (id_, text) in enumerate(rows):
        if id_ in last and rows[last[id_]][1] != text:
            break
        last.setdefault(id_, second)
    first = last[id_]
    source = as_source(form, rows, tmp_path)
    file = tmp_path / "corpus.jsonl" if form == "folder" else source
    # Every other line of JSONL is blank.
    line = {"tsv": "{file}:{tsv}", "jsonl": "{file}:{jsonl}", "folder": "{file}:{jsonl}"}.get(form, "corpus, row {tsv}")
    places = [line.format(file=file, tsv=row + 1, jsonl=2 * row + 1) for row in (first, second)]
    places[0] = "an earlier row" if form == "once" else places[0]
    message = f"{places[1]}: {id_!r} has another text than in {places[0]}: give each text an id of its own, or"
    with pytest.raises(rs.InputError, match=message):
        list(read_texts(source, "corpus"))
    if form in ("jsonl", "folder"):
        with pytest.raises(rs.InputError, match=message):
            list(read_ids(source))


@pytest.mark.parametrize("form", ["tsv", "jsonl", "folder", "records", "pairs", "once", "frame"])
def test_an_id_with_the_same_text_twice_counts_once(form, tmp_path) -> None:
    rows = [("d1", "one"), ("d2", "two"), ("d1", "one")]
    assert list(read_texts(as_source(form, rows, tmp_path), "corpus")) == rows
    found, _ = printed(as_source(form, rows, tmp_path))
    assert found == printed(dict(rows))[0]
    assert found["passages"] == 2


def test_ids_alone_may_come_several_times(tmp_path) -> None:
    (tmp_path / "ids.csv").write_text("_id,year\nd1,2023\nd1,2024\n", encoding="utf-8")
    assert list(read_ids(tmp_path / "ids.csv")) == ["d1", "d1"]


@pytest.mark.parametrize("command", ["build", "check", "grade", "evaluate"])
def test_commands_refuse_a_corpus_with_two_texts_of_an_id(command, tmp_path) -> None:
    texts = [("d1", "one"), ("d2", "two"), ("d1", "another one")]
    as_source("jsonl", texts, tmp_path)
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "Which one?"}\n', encoding="utf-8")
    (tmp_path / "labels.qrels").write_text("q1 0 d1 5\n", encoding="utf-8")
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 1.0 run\n", encoding="utf-8")
    build(tmp_path / "set", labels={"q1": {"d1": 5}}, queries={"q1": "Which one?"}, corpus={"d1": "one"})
    words = {
        "build": ["golden", "build", "other", "--qrels", "labels.qrels", "--queries", "queries.jsonl"],
        "check": ["golden", "check", "set"],
        "grade": ["grade", "--queries", "queries.jsonl", "--pool", "run.trec", "--store", "new.db", "--dry-run"],
        "evaluate": ["evaluate", "labels.qrels", "run.trec"],
    }[command]
    if command == "grade":
        words += ["--model", "m", "--base-url", "http://localhost:1/v1"]
    done = run_command(*words, "--corpus", "corpus.jsonl", cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert "corpus.jsonl:5: 'd1' has another text than in corpus.jsonl:1" in done.stderr
    assert not (tmp_path / "other").exists()


def test_tables_and_folders(tmp_path) -> None:
    (tmp_path / "corpus.csv").write_text('_id,title,text\nd1,T,"one, two"\nd2,,x\n', encoding="utf-8")
    assert list(read_texts(tmp_path / "corpus.csv", "corpus")) == [("d1", "T\none, two"), ("d2", "x")]
    odd = b'{"_id": "d1", "text": "a"}\n{"_id": "d3", "text": 3, "text": "b"}\n{"_id": 4, "text": "f", "title": "T"}\n'
    (tmp_path / "corpus.jsonl").write_bytes(odd)
    assert list(read_texts(tmp_path, "corpus")) == [("d1", "a"), ("d3", "b"), ("4", "T\nf")]
