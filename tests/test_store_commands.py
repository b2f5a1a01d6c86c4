"""`labels info`: what a person reads about the labels of a store."""

import pytest

from rag_selectivity.grading.store import Label, Settings, Store, digest
from tests.forked_cli import run_command
from tests.test_store import put

pytestmark = pytest.mark.inside


@pytest.fixture
def folder(tmp_path):
    """A folder with a store in which two judges and a check of claims failed."""
    with Store(tmp_path / "labels.db") as store:
        number = put(store, "mini", {("q1", f"d{i}"): 3 for i in range(4)})
        store.add_texts([("q1", "bad", digest("q1"), digest("bad")), ("q1", "worse", digest("q1"), digest("worse"))])
        worse = (number, digest("q1"), digest("worse"), 0)
        answer = "I am\n\x1b[31msorry" + "!" * 400
        store.put(
            [
                Label((number, digest("q1"), digest("bad"), 0), None, failure="off_schema", error="no JSON object"),
                Label(worse, None, failure="off_schema", error="no grade in it", last_answer=answer, attempts=3),
                Label((number, digest("q1"), digest("of no id"), 0), None, failure="refusal", error="it will not"),
            ]
        ).result()
        other = store.settings_id(Settings("grade", "large", {}, "utility", "r1", "1"))
        store.put([Label((other, digest("q1"), digest("bad"), 0), None, failure="server_error")]).result()
        claims = store.settings_id(Settings("claims", "checker", {}))
        store.put([Label((claims, b"c", b"", 0), failure="refusal", error="never", last_answer="No.")]).result()
    return tmp_path


def run(folder, *arguments: str) -> str:
    done = run_command("labels", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_labels_with_a_fault_make_no_store(tmp_path) -> None:
    (tmp_path / "bad.qrels").write_text("q 0 a 9\n")
    assert "grade 9 is off the scale of label stores, 1 to 5" in refused(tmp_path, "import", "new.db", "bad.qrels")
    for name, text, fault in (
        ("empty.trec", "", "empty.trec: the file of labels is empty"),
        ("half.qrels", "q 0 a 7.5\n", "half.qrels:1: query 'q', passage 'a': grade '7.5' is not a whole number; give"),
        ("none.csv", "qid,docid,grade\nq,a,\n", "none.csv:2: query 'q', passage 'a': grade '' is not a whole number"),
    ):
        (tmp_path / name).write_text(text)
        assert fault in refused(tmp_path, "import", "new.db", name)
    assert not (tmp_path / "new.db").exists()


def refused(folder, *arguments: str) -> str:
    """The message of a command that must end with an error of the input."""
    done = run_command("labels", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def test_a_store_is_no_file_of_labels_and_its_export_is(folder) -> None:
    assert refused(folder, "import", "new.db", "labels.db") == (
        "error: labels.db is a label store: write its labels with `rag-selectivity labels export labels.db "
        "labels.jsonl`, and import labels.jsonl\n"
    )
    run(folder, "export", "labels.db", "labels.jsonl")
    # Seven of the eight are of pairs whose ids the store knows.
    assert run(folder, "import", "new.db", "labels.jsonl").startswith("took 7 labels")


def test_failures_by_reason_with_an_example_of_each(folder) -> None:
    assert run(folder, "info", "labels.db").splitlines()[-11:] == [
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


def test_failures_are_no_labels_of_an_export(folder) -> None:
    done = run_command("labels", "export", "labels.db", "labels.jsonl", cwd=folder)
    assert "wrote 4 labels to labels.jsonl" in done.stderr
