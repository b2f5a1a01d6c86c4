"""A stored report of many queries: its figures by query stand in a Parquet file beside the JSON."""

import json
from pathlib import Path

import pytest

import rag_selectivity as rs
from tests.forked_cli import run_command

pytest.importorskip("polars")
pytestmark = pytest.mark.contract

N = 12_000
COMMON = ("evaluate", "qrels.trec", "--depths", "1", "--resamples", "50", "--measure", "Success", "--measure", "BoR")
AGAINST = ("--corpus-size", "50000", "--against", "r.json", "--fail-if", "drop(BoR@1) > 0.1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels.trec").write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(N)))
    for name, found in (("run", lambda i: i % 3), ("worse", lambda i: i % 4 == 1)):
        lines = (f"q{i} Q0 {f'd{i}' if found(i) else 'x'} 1 1.0 t\n" for i in range(N))
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    stored = run_command(*COMMON, "run.trec", "--corpus-size", "50000", "-o", "r.json", cwd=tmp_path)
    assert stored.returncode == 0, stored.stderr
    return tmp_path


def test_a_report_of_many_queries_names_the_file_of_its_figures_and_a_gate_reads_it(folder: Path) -> None:
    (beside,) = folder.glob("r.*.parquet")
    run = json.loads((folder / "r.json").read_text())["runs"]["run"]
    assert run["figures"] == {"file": beside.name, "digest": beside.name.split(".")[1]}
    assert run["per_query"] is None
    assert (folder / "r.json").stat().st_size < 20_000
    for name, code in (("run", 0), ("worse", 1)):
        done = run_command(*COMMON, f"{name}.trec", *AGAINST, cwd=folder)
        assert done.returncode == code, done.stderr
    assert "12,000" in done.stdout + done.stderr


def test_a_file_that_is_missing_or_has_changed_is_named_with_the_mend(folder: Path) -> None:
    (beside,) = folder.glob("r.*.parquet")
    content = beside.read_bytes()
    beside.write_bytes(content[:-1] + b"?")
    changed = run_command(*COMMON, "run.trec", *AGAINST, cwd=folder)
    beside.unlink()
    missing = run_command(*COMMON, "run.trec", *AGAINST, cwd=folder)
    assert (changed.returncode, missing.returncode) == (2, 2)
    assert f"{beside.name}: changed since the report was written" in " ".join(changed.stderr.split())
    assert f"{beside.name}: the figures by query cannot be read (No such file" in " ".join(missing.stderr.split())
    for each in (changed, missing):
        assert "or write the report again with -o report.json" in " ".join(each.stderr.split())


def test_the_file_of_the_figures_stands_in_the_folder_of_the_report(folder: Path) -> None:
    data = json.loads((folder / "r.json").read_text())
    data["runs"]["run"]["figures"]["file"] = "../elsewhere.parquet"
    (folder / "r.json").write_text(json.dumps(data))
    done = run_command(*COMMON, "run.trec", *AGAINST, cwd=folder)
    assert done.returncode == 2
    assert "figures.file must be the name of a file" in " ".join(done.stderr.split())


def test_the_json_holds_the_figures_of_10_000_queries(tmp_path: Path) -> None:
    labels = {f"q{i}": {"d": 1} for i in range(10_000)}
    run = {query: ["d"] for query in labels}
    rs.evaluate(labels, run, measures=["Success@1"], bootstrap=None).save(tmp_path / "r.json")
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"]
