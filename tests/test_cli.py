"""The command line as a user has it: a process, its output, its exit status."""

import json
import subprocess
import sys

import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from tests.forked_cli import run_command

pytestmark = pytest.mark.inside

QRELS = "q1 0 a 5\nq1 0 b 1\nq2 0 c 4\n"
RUN = "q1 Q0 a 1 9.5 t\nq1 Q0 x 2 8.5 t\nq2 Q0 x 1 7 t\nq2 Q0 c 2 6 t\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "qrels.trec").write_text(QRELS)
    (tmp_path / "bm25.trec").write_text(RUN)
    return tmp_path


def evaluate(folder, *arguments) -> subprocess.CompletedProcess[str]:
    return run_command("evaluate", "qrels.trec", "bm25.trec", "--scale", "utility", *arguments, cwd=folder)


def test_json_equals_the_librarys(folder) -> None:
    done = evaluate(folder, "--corpus-size", "1,400", "--depths", "1,2", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    options = {"corpus_size": 1400, "scale": "utility", "depths": [1, 2]}
    expected = rs.evaluate(folder / "qrels.trec", {"bm25": folder / "bm25.trec"}, **options)
    found, expected = json.loads(done.stdout), expected.with_decision(decide(expected)).to_dict()
    # What to do next is a command here and a call there.
    said, called = (each["decision"]["answers"].pop(3) for each in (found, expected))
    assert said["question"] == called["question"] == "What next?"
    assert found == expected


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_per_query_files(folder, suffix) -> None:
    from rag_selectivity.tables.exact import read_records

    assert evaluate(folder, "--per-query", f"rows.{suffix}", "--depths", "1").returncode == 0
    rows = [row for _, row in read_records(folder / f"rows.{suffix}")]
    assert [(row["query"], float(row["Success@1"])) for row in rows] == [("q1", 1.0), ("q2", 0.0)]


def test_a_corpus_gives_n_and_a_table_gives_n_for_each_query(folder) -> None:
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"_id": i}) + "\n" for i in "abcxyz"))
    assert json.loads(evaluate(folder, "--corpus", "corpus.jsonl", "--format", "json").stdout)["corpus_size"] == 6
    (folder / "sizes.csv").write_text("query_id,corpus_size\nq1,10\nq2,20\n")
    assert json.loads(evaluate(folder, "--corpus-size", "sizes.csv", "--format", "json").stdout)["corpus_size"] is None


@pytest.mark.slow
def test_a_pool_tells_the_retrievers_losses_from_the_rerankers(folder) -> None:
    (folder / "pool.trec").write_text("q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq2 Q0 x 1 2 t\n")
    base = ["--measure", "PROC", "--measure", "%PROC", "--depths", "1", "--format", "json"]
    without = json.loads(evaluate(folder, *base).stdout)["runs"]["bm25"]
    assert without["measures"]["PROC@1"]["value"] == 1
    # The whole list counts as part of its pool: `c` is at rank 2 of the list of q2, and the pool lacks it.
    whole = json.loads(evaluate(folder, *base, "--pool", "pool.trec").stdout)["runs"]["bm25"]
    assert whole["measures"]["PROC@1"]["value"] == 1
    assert whole["diagnosis"]["1"]["counts"] == {"healthy": 1, "selection-limited": 1}
    (folder / "bm25.trec").write_text("".join(line for line in RUN.splitlines(True) if " c 2 " not in line))
    for pool in ("pool.trec", "bm25=pool.trec"):
        done = evaluate(folder, *base, "--pool", pool)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["runs"]["bm25"]
        assert found["measures"]["PROC@1"]["value"] == 0.5
        assert found["diagnosis"]["1"] == {
            "overall": "retriever-limited",
            "counts": {"healthy": 1, "retriever-limited": 1},
        }
    wrong = evaluate(folder, *base, "--pool", "bm52=pool.trec")
    assert wrong.returncode == 2
    assert "there is no run 'bm52'" in wrong.stderr


@pytest.mark.parametrize("name", list(rs.measures.REGISTRY))
def test_every_measure_says_its_direction_range_nan_and_example(name) -> None:
    text = rs.measures.explain(rs.measures.REGISTRY[name]())
    assert "Example:" in text
    assert any(words in text for words in ("Higher is better.", "Lower is better.", "A property of"))
    assert "NaN" in text
    assert "ange" in text or "Bits" in text or "log2" in text


def test_without_the_cli_extra_the_script_names_it(tmp_path) -> None:
    blocked = "import sys; sys.modules['typer'] = None; from rag_selectivity.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the command line needs typer: pip install 'rag-selectivity[cli]' (in a clone: " in done.stderr
