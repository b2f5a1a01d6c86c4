"""A stored report of many queries: its figures by query stand in a Parquet file beside the JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.gates import check
from rag_selectivity.results.stored import read_report
from tests.forked_cli import run_command

pytest.importorskip("polars")
pytestmark = pytest.mark.inside

N = 12_000
LABELS = {f"q{i}": {f"d{i}": 1} for i in range(N)}
RUN = {f"q{i}": [f"d{i}" if i % 3 else "x"] for i in range(N)}
WORSE = {f"q{i}": [f"d{i}" if i % 4 == 1 else "x"] for i in range(N)}
OPTIONS = {"corpus_size": 50_000, "measures": ["Success@1", "BoR@1"], "bootstrap": rs.Bootstrap(resamples=50)}


@pytest.fixture(scope="module")
def report() -> rs.Report:
    return rs.evaluate(LABELS, {"run": RUN}, **OPTIONS)


def test_the_figures_stand_beside_the_report_and_a_gate_reads_them(tmp_path: Path, report) -> None:
    report.save(tmp_path / "before.json")
    (beside,) = tmp_path.glob("before.*.parquet")
    assert len((tmp_path / "before.json").read_bytes()) < 20_000
    for run, line in ((RUN, 0), (WORSE, 1)):
        now = rs.evaluate(LABELS, {"run": run}, **OPTIONS)
        (result,) = check(now, ["drop(BoR@1) > 0.1"], tmp_path / "before.json")
        assert result.passed == (line == 0)
        before = read_report(tmp_path / "before.json").runs["run"].figures.columns["Success@1"][0]
        assert np.array_equal(before, report.runs["run"].per_query["Success@1"])
    assert beside.exists()


def test_a_file_that_is_missing_or_has_changed_is_named(tmp_path: Path, report) -> None:
    report.save(tmp_path / "before.json")
    (beside,) = tmp_path.glob("*.parquet")
    content = beside.read_bytes()
    beside.write_bytes(content[:-1])
    with pytest.raises(rs.InputError, match=rf"{beside.name}: these are not the figures of the report"):
        read_report(tmp_path / "before.json")
    beside.unlink()
    with pytest.raises(rs.InputError, match=rf"{beside.name}: the figures of the queries cannot be read .*keep it"):
        read_report(tmp_path / "before.json")
    data = json.loads((tmp_path / "before.json").read_text())
    data["runs"]["run"]["figures"]["file"] = "../elsewhere.parquet"
    (tmp_path / "before.json").write_text(json.dumps(data))
    with pytest.raises(rs.InputError, match=r"figures\.file must be the name of a file"):
        read_report(tmp_path / "before.json")


def test_the_command_writes_both_files_and_compares_with_them(tmp_path: Path) -> None:
    (tmp_path / "qrels.trec").write_text("".join(f"{q} 0 {p} 1\n" for q, row in LABELS.items() for p in row))
    for name, run in (("run", RUN), ("worse", WORSE)):
        (tmp_path / f"{name}.trec").write_text("".join(f"{q} Q0 {p} 1 1.0 t\n" for q, row in run.items() for p in row))
    common = ("evaluate", "qrels.trec", "--depths", "1", "--resamples", "0", "--measure", "Success")
    assert run_command(*common, "run.trec", "-o", "r.json", cwd=tmp_path).returncode == 0
    assert len(list(tmp_path.glob("r.*.parquet"))) == 1
    gate = ("--against", "r.json", "--fail-if", "drop(Success@1) > 0.1")
    assert run_command(*common, "run.trec", *gate, cwd=tmp_path).returncode == 0
    assert run_command(*common, "worse.trec", *gate, cwd=tmp_path).returncode == 1


def test_more_than_100_000_queries_have_fewer_resamples_and_the_settings_say_how_many() -> None:
    n = 125_000
    counts = rs.JudgedRun.from_counts(np.full(n, 1000), np.full(n, 5), np.full(n, 2), np.arange(n) % 2)
    report = rs.evaluate_joined({"log": counts}, measures=["Success"], depths=[5])
    assert report.settings["resamples"] == 4000
    assert report["Success@5"].low < 0.5 < report["Success@5"].high
