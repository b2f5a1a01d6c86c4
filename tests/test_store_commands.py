"""`store info` and `store failures`: what a person reads about the labels of a store."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest

import rag_selectivity as rs
from rag_selectivity.grading.store import Label, Settings, Store, StoredAnswer, digest
from rag_selectivity.io.reading import read_qrels
from rag_selectivity.results.grading import other_models
from tests.test_store import put

pytestmark = pytest.mark.inside


@pytest.fixture
def folder(tmp_path):
    """A folder with a store in which two judges and a check of claims failed."""
    with Store(tmp_path / "labels.db") as store:
        number = put(store, "mini", {("q1", f"d{i}"): 3 for i in range(4)})
        store.add_texts([("q1", "bad", digest("q1"), digest("bad")), ("q1", "worse", digest("q1"), digest("worse"))])
        answer = "I am\n\x1b[31msorry" + "!" * 400
        store.put(
            [
                Label((number, digest("q1"), digest("bad"), 0), None, failure="off_schema", error="no JSON object"),
                Label(
                    (number, digest("q1"), digest("worse"), 0),
                    None,
                    failure="off_schema",
                    error="no grade in it",
                    last_answer=answer,
                    attempts=3,
                ),
                Label((number, digest("q1"), digest("of no id"), 0), None, failure="refusal", error="it will not"),
            ]
        ).result()
        other = store.settings_id(Settings("grade", "large", {}, "utility", "r1", "1"))
        store.put([Label((other, digest("q1"), digest("bad"), 0), None, failure="server_error")]).result()
        claims = store.settings_id(Settings("claims", "checker", {}))
        store.put([StoredAnswer(claims, b"c", None, failure="refusal", error="never", last_answer="No.")]).result()
    return tmp_path


def run(folder, *arguments: str) -> str:
    command = [sys.executable, "-m", "rag_selectivity", "store", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def refused(folder, *arguments: str) -> str:
    """The message of a command that must end with an error of the input."""
    command = [sys.executable, "-m", "rag_selectivity", "store", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


#: Without the second in which it was packed, which would be in the name of the test.
_PACKED_TWICE = gzip.compress(gzip.compress(b"q1 0 a 3\r", mtime=0), mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mac.csv", b"query_id,passage_id,grade\rq1,a,3\rq1,b,2\r", "mac.csv:1: a carriage return stands outside"),
        ("mac.qrels", b"q1 0 a 3\rq1 0 b 2\r", "mac.qrels: its lines end in carriage returns alone"),
        ("one.qrels", b"q1 0 a\rb 3\n", "one.qrels:1: expected 4 fields (query, 0, passage, grade), found 5"),
        ("twice.qrels.gz", _PACKED_TWICE, "twice.qrels.gz:1: this line is not UTF-8"),
    ],
)
def test_a_file_of_labels_with_carriage_returns_is_refused_as_by_its_reader(folder, name, content, message) -> None:
    (folder / name).write_bytes(content)
    assert refused(folder, "import", "new.db", name).startswith(f"error: {message}")
    with pytest.raises(rs.InputError) as read:
        read_qrels(folder / name)
    assert message in str(read.value)


def test_a_store_is_no_file_of_labels_and_its_export_is(folder) -> None:
    assert refused(folder, "import", "new.db", "labels.db") == (
        "error: labels.db is a label store: write its labels with `rag-selectivity store export labels.db "
        "labels.jsonl`, and import labels.jsonl\n"
    )
    run(folder, "export", "labels.db", "labels.jsonl")
    # Seven of the eight are of pairs whose ids the store knows.
    assert run(folder, "import", "new.db", "labels.jsonl").startswith("took 7 labels")


def test_failures_by_reason_with_an_example_of_each(folder) -> None:
    assert run(folder, "failures", "labels.db").splitlines() == [
        "mini: 2 × off_schema",
        "  for example query q1, passage worse",
        "  message: no grade in it",
        f"  last answer: I am \\x1b[31msorry{'!' * 400}",
        "checker: 1 × refusal (claims)",
        "  message: never",
        "  last answer: No.",
        "large: 1 × server_error",
        "  for example query q1, passage bad",
        "mini: 1 × refusal",
        "  message: it will not",
    ]


def test_failures_of_one_judge_as_json_in_a_file(folder) -> None:
    assert run(folder, "failures", "labels.db", "--judge", "mini", "--format", "json", "--output", "f.json") == ""
    first, second = json.loads((folder / "f.json").read_text())
    assert (first["failure"], first["count"], first["passage_id"], first["attempts"]) == ("off_schema", 2, "worse", 3)
    assert first["last_answer"].startswith("I am\n\x1b[31msorry!!")
    assert (second["judge"], second["failure"], second["query_id"]) == ("mini", "refusal", None)


def test_info_counts_failures_by_reason(folder) -> None:
    told = run(folder, "info", "labels.db").splitlines()
    assert told[0].startswith("mini: 4 grades, 3 failures, rubric utility r1")
    assert told[1:3] == ["  failures: off_schema 2, refusal 1", "  origin of the pairs: unknown 4"]
    assert told[3].startswith("large: 0 grades, 1 failure,")
    assert told[4:] == ["  failures: server_error 1"]


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("gpt-5-mini", "gpt-5-mini", True),
        ("GPT-5-mini", "gpt-5-mini-2025-08-07", True),
        ("openai/gpt-5-mini", "gpt-5-mini", True),
        ("llama3", "/models/llama3", True),
        ("gpt-5", "gpt-5-mini", False),
        ("gpt-5-mini", "gpt-5", False),
        ("gpt-4", "gpt-4.1", False),
        ("gemini-flash", "gemini-flash-001", True),
        ("m", "some-other", False),
    ],
)
def test_a_dated_name_is_the_same_model(asked, served, same) -> None:
    assert (other_models(asked, [served]) == ()) is same
