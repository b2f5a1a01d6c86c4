"""Datasets larger than memory: the digits of `evaluate`, whatever their form and order; broken ones are named."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.data.origins import Chosen, LabelOrigins
from rag_selectivity.scale import out_of_core
from rag_selectivity.scale.budget import Budget
from rag_selectivity.scale.out_of_core import evaluate_out_of_core

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = [pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning"), pytest.mark.inside]

MEASURES = ["Success", "BoR", "BoR_max", "RA-nWG", "%PROC", "Harm", "nDCG", "AP"]


@pytest.fixture(params=["one part", "many parts", "divided again"])
def parted(request, monkeypatch) -> None:
    monkeypatch.setattr(out_of_core, "_BYTES_A_ROW", {"many parts": 3_000_000}.get(request.param, 0))
    if request.param == "divided again":
        leave(monkeypatch, 100_000)


def leave(monkeypatch, free: int) -> None:
    """Let the budget be as small as that, in bytes."""
    of = Budget.of
    monkeypatch.setattr(Budget, "of", staticmethod(lambda *given: replace(of(*given), free=free)))


def world(seed: int = 0):
    rng = np.random.default_rng(seed)
    labels, runs = {}, {}
    for q in range(60):
        judged = rng.choice(300, 10, replace=False)
        labels[f"q{q}"] = {f"d{d}": int(g) for d, g in zip(judged, rng.integers(1, 6, 10), strict=True)}
        if q % 7:  # some queries are missing from the run, and some of the run are not judged
            ids = rng.permutation(np.unique([*judged[:5], *rng.integers(0, 300, 20)]))
            runs[f"q{q}"] = {f"d{d}": float(s) for d, s in zip(ids, rng.random(len(ids)), strict=True)}
    runs["unjudged"] = {"d1": 1.0}
    return labels, runs


def rows_of(runs) -> list[tuple[str, str, float]]:
    return [(q, d, s) for q, row in runs.items() for d, s in row.items()]


def write(path: Path, rows, names=("query_id", "passage_id", "score"), **options) -> None:
    columns = list(zip(*rows, strict=True))
    parquet.write_table(pyarrow.table(dict(zip(names, map(list, columns), strict=True))), path, **options)


def expected(labels, runs) -> rs.Report:
    return rs.evaluate(
        labels,
        {"run": runs},
        corpus_size=300,
        scale="utility",
        measures=MEASURES,
        bootstrap=rs.Bootstrap(method="poisson", resamples=100),
    )


def found(qrels, run, **options) -> rs.Report:
    return evaluate_out_of_core(
        qrels, {"run": run}, corpus_size=300, scale="utility", measures=MEASURES, resamples=100, **options
    )


def same(one: rs.Report, other: rs.Report) -> None:
    first, second = one.runs["run"], other.runs["run"]
    assert set(first.estimates) == set(second.estimates)
    for key, cell in first.estimates.items():
        assert repr(second.estimates[key]) == repr(cell), key
    assert (first.evaluated, first.coverage.not_in_qrels) == (second.evaluated, second.coverage.not_in_qrels)
    assert first.coverage.missing_from_run == second.coverage.missing_from_run
    assert (one.depths, one.corpus_size) == (other.depths, other.corpus_size)


def judgments(labels) -> list[tuple[str, str, int]]:
    return [(q, d, g) for q, row in labels.items() for d, g in row.items()]


GRADE = ("query_id", "passage_id", "grade")


@pytest.mark.parametrize("order", ["grouped", "shuffled"])
@pytest.mark.parametrize("form", ["file", "folder", "partitioned", "trec"])
def test_the_digits_are_those_of_evaluate(tmp_path, parted, form, order) -> None:
    labels, runs = world()
    rows, graded = rows_of(runs), judgments(labels)
    if order == "shuffled":
        rng = np.random.default_rng(3)
        rows, graded = [rows[i] for i in rng.permutation(len(rows))], [graded[i] for i in rng.permutation(len(graded))]
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    if form == "trec":
        qrels, run = tmp_path / "qrels.trec", tmp_path / "run.trec"
        qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in graded))
        run.write_text("".join(f"{q} Q0 {d} 1 {s!r} x\n" for q, d, s in rows))
    elif form == "file":
        qrels, run = tmp_path / "qrels.parquet", tmp_path / "run.parquet"
        write(qrels, graded, GRADE, row_group_size=50)
        write(run, rows, row_group_size=77)
    elif form == "folder":
        for folder, all_rows, names in ((qrels, graded, GRADE), (run, rows, ("qid", "docno", "score"))):
            folder.mkdir()
            for i in range(3):
                write(folder / f"part-{i}.parquet", all_rows[i::3], names)
        (run / "_SUCCESS").write_text("")
    else:
        for folder, all_rows, names in ((qrels, graded, GRADE[1:]), (run, rows, ("passage_id", "score"))):
            for query in dict.fromkeys(row[0] for row in all_rows):
                (folder / f"query_id={query}").mkdir(parents=True)
                write(
                    folder / f"query_id={query}" / "0.parquet", [row[1:] for row in all_rows if row[0] == query], names
                )
    same(expected(labels, runs), found(qrels, run))


def test_ranks_and_rows_in_their_order_serve_for_scores(tmp_path) -> None:
    labels, runs = world(1)
    ordered = {q: sorted(row, key=row.get, reverse=True) for q, row in runs.items()}
    write(tmp_path / "qrels.parquet", judgments(labels), GRADE)
    ranked = [(q, d, r) for q, ids in ordered.items() for r, d in enumerate(ids, 1)][::-1]
    write(tmp_path / "ranks.parquet", ranked, ("query_id", "passage_id", "rank"))
    plain = [(q, d) for q, ids in ordered.items() for d in ids]
    write(tmp_path / "plain.parquet", plain, ("query_id", "passage_id"))
    whole = expected(labels, runs)
    for name in ("ranks", "plain"):
        same(whole, found(tmp_path / "qrels.parquet", tmp_path / f"{name}.parquet"))


def test_integers_for_ids_grades_to_map_and_sizes_of_each_query(tmp_path) -> None:
    labels = {1: {11: 3, 12: 0}, 2: {12: 2}}
    write(tmp_path / "qrels.parquet", judgments(labels), GRADE)
    write(tmp_path / "run.parquet", [(1, 11, 2.0), (1, 12, 1.0), (2, 9, 1.0)])
    options = {"scale": "utility", "grade_map": "0:1,2:4,3:5", "measures": ["BoR", "RA-nWG"], "depths": [1]}
    sizes = {"1": 50, "2": 20}
    part = evaluate_out_of_core(
        tmp_path / "qrels.parquet", {"run": tmp_path / "run.parquet"}, corpus_size=sizes, resamples=50, **options
    )
    texts = {str(q): {str(d): g for d, g in row.items()} for q, row in labels.items()}
    whole = rs.evaluate(
        texts,
        {"run": {"1": ["11", "12"], "2": ["9"]}},
        corpus_size=sizes,
        bootstrap=rs.Bootstrap(method="poisson", resamples=50),
        **options,
    )
    same(whole, part)


def cli(*words: object, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rag_selectivity", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.slow
def test_the_command_takes_folders_and_files(tmp_path) -> None:
    labels, runs = world()
    for folder, rows, names in (("qrels", judgments(labels), GRADE), ("run", rows_of(runs), (*GRADE[:2], "score"))):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "0.parquet", rows, names)
    words = ["evaluate", "--scale", "utility", "--corpus-size", 300, "--measure", "BoR", "--resamples", 100]
    words += ["--format", "json", "--qrels", tmp_path / "qrels", "--run", tmp_path / "run"]
    done = cli(*words)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["settings"]["method"] == "poisson"
    assert said["runs"]["run"]["queries"]["evaluated"] == 60
    assert said["runs"]["run"]["measures"]["BoR@5"]["value"] == expected(labels, runs)["BoR@5"].value
    single = cli(
        *words[:-4], "--qrels", tmp_path / "qrels/0.parquet", "--run", tmp_path / "run/0.parquet", "--out-of-core"
    )
    assert json.loads(single.stdout)["runs"]["0"]["measures"] == said["runs"]["run"]["measures"]
    refused = cli(*words, "--per-query", "x.csv")
    assert refused.returncode == 2
    assert "--per-query cannot be combined with reading out of core" in refused.stderr


def damaged(path: Path, at: float = 0.4) -> None:
    data = bytearray(path.read_bytes())
    start = int(len(data) * at)
    data[start : start + 3000] = b"\xff" * 3000
    path.write_bytes(bytes(data))


def test_a_broken_file_is_named_with_its_row_group(tmp_path) -> None:
    labels, runs = world()
    write(tmp_path / "qrels.parquet", judgments(labels), GRADE)
    (tmp_path / "run").mkdir()
    rows = rows_of(runs)
    write(tmp_path / "run" / "a.parquet", rows[:500], row_group_size=100, compression="zstd")
    write(tmp_path / "run" / "b.parquet", rows[500:], row_group_size=100, compression="zstd")
    damaged(tmp_path / "run" / "b.parquet")
    with pytest.raises(rs.InputError, match=r"b\.parquet: row group \d+ is damaged"):
        found(tmp_path / "qrels.parquet", tmp_path / "run")
    (tmp_path / "run" / "b.parquet").write_bytes(b"PAR1 but nothing else PAR1")
    with pytest.raises(rs.InputError, match=r"b\.parquet: not a Parquet file that can be read"):
        found(tmp_path / "qrels.parquet", tmp_path / "run")


def test_wrong_columns_and_values_are_named(tmp_path) -> None:
    labels, runs = world()
    qrels, run = tmp_path / "qrels.parquet", tmp_path / "run.parquet"
    write(qrels, judgments(labels), GRADE)
    write(run, [("q1", "d1", 1.0), ("q1", None, 0.5)])
    with pytest.raises(rs.InputError, match=r"run\.parquet: row group 0: a passage_id is missing"):
        found(qrels, run)
    write(run, [("q1", "d1", float("nan"))])
    with pytest.raises(rs.InputError, match=r"row group 0: a score is not a number"):
        found(qrels, run)
    write(run, [("q1", 1.0)], ("query_id", "score"))
    with pytest.raises(rs.InputError, match=r"run\.parquet.*passage"):
        found(qrels, run)
    write(run, rows_of(runs))
    write(qrels, [("q1", "d1", 2.5)], GRADE)
    with pytest.raises(rs.InputError, match="a grade is not a whole number"):
        found(qrels, run)
    write(qrels, [("elsewhere", "d1", 5)], GRADE)
    with pytest.raises(rs.InputError, match=r"no query id of run is in the qrels: run has 'q1'.*have 'elsewhere'"):
        found(qrels, run)
    (tmp_path / "none").mkdir()
    with pytest.raises(rs.InputError, match="memory must be a whole number of megabytes ≥ 200"):
        found(qrels, run, memory=1)


def test_labels_keep_their_origins(tmp_path, parted) -> None:
    """Caveats and what the labels are worth are those of memory; tails that are graded whole need no completion."""
    labels, runs = world()
    rows = [(query, passage, grade) for query, row in labels.items() for passage, grade in row.items()]
    in_tail = np.arange(len(rows)) % 10 >= 8
    origins = LabelOrigins(
        np.where(in_tail, int(Chosen.TAIL), int(Chosen.POOL)).astype(np.uint8),
        np.zeros(len(rows), bool),
        np.array([grade for _, _, grade in rows]),
        np.where(in_tail, 1, 0),
        tail_ranks=(9, 48),
        judges={"a judge": len(rows)},
    )
    whole = expected(rs.Qrels.from_records(rows, scale="utility", origins=origins), runs)
    write(tmp_path / "run.parquet", rows_of(runs))
    apart = found(rs.Qrels.from_records(rows, scale="utility", origins=origins), tmp_path / "run.parquet")
    same(apart, whole)
    assert apart.runs["run"].caveats == whole.runs["run"].caveats
    assert {"down-to-rank", "agreement-unknown"} <= {caveat.code for caveat in whole.runs["run"].caveats}
    assert apart.trust == whole.trust
    origins = replace(origins, tail_size=np.where(in_tail, 40, 0))
    open_tails = found(rs.Qrels.from_records(rows, scale="utility", origins=origins), tmp_path / "run.parquet")
    assert ("down-to-rank", "soft") in {(each.code, each.level) for each in open_tails.runs["run"].caveats}
    plain = found(rs.Qrels.from_records(rows, scale="utility"), tmp_path / "run.parquet")
    assert "down-to-rank" not in {caveat.code for caveat in plain.runs["run"].caveats}


def test_a_query_that_does_not_fit_is_named_with_the_memory_that_it_needs(tmp_path, monkeypatch) -> None:
    labels, runs = world()
    runs["q1"] = {f"d{d}": 1.0 / (d + 1) for d in range(3000)}
    write(tmp_path / "qrels.parquet", judgments(labels), GRADE)
    write(tmp_path / "run.parquet", rows_of(runs))
    leave(monkeypatch, 100_000)
    with pytest.raises(
        rs.InputError, match=r"query 'q1' has 3010 rows, .*cannot be divided; give memory=\d+ \(--memory"
    ):
        found(tmp_path / "qrels.parquet", tmp_path / "run.parquet")


def test_too_little_memory_is_said_before_anything_is_read(tmp_path) -> None:
    none = tmp_path / "there is no such file.parquet"
    with pytest.raises(rs.InputError, match=r"the sums of 300000 resamples \d+ MB; give memory=(\d+)") as raised:
        evaluate_out_of_core(none, {"run": none}, corpus_size=300, memory=200, resamples=300_000)
    needed = int(re.search(r"memory=(\d+)", str(raised.value))[1])
    assert needed > 2000
    with pytest.raises(rs.InputError, match="no such file"):
        evaluate_out_of_core(none, {"run": none}, corpus_size=300, memory=needed, resamples=300_000)
    with (tmp_path / "qrels.trec").open("wb") as file:
        file.truncate(20_000_000)
    with pytest.raises(rs.InputError, match=r"qrels\.trec: judgments in this format are held in memory, .*as Parquet"):
        evaluate_out_of_core(tmp_path / "qrels.trec", {"run": none}, corpus_size=300, memory=200)


OF_A_CHILD = """
import sys
from rag_selectivity.scale.out_of_core import evaluate_out_of_core
report = evaluate_out_of_core(sys.argv[1], {"run": sys.argv[2]}, corpus_size=10**7, memory=200)
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak) * 1024 / 1e6, "pandas" in sys.modules, report["Success@10"].n)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the highest use of memory from /proc")
def test_three_million_scattered_rows_stay_within_the_limit(tmp_path) -> None:
    rng = np.random.default_rng(0)
    count, queries = 3_000_000, 30_000
    codes, ids = rng.integers(0, queries, count).astype(np.int32), rng.integers(0, 10**6, count).astype(np.int32)
    run, qrels = tmp_path / "run.parquet", tmp_path / "qrels.parquet"
    names, documents = [f"q{i}" for i in range(queries)], [f"document-{i:020}" for i in range(10**6)]
    judged = [(names[code], documents[id], 1) for code, id in zip(codes[:9000].tolist(), ids.tolist(), strict=False)]
    texts = [
        pyarrow.DictionaryArray.from_arrays(*both).cast(pyarrow.string()) for both in ((codes, names), (ids, documents))
    ]
    columns = dict(zip(("query_id", "passage_id"), texts, strict=True))
    parquet.write_table(pyarrow.table({**columns, "score": rng.random(count)}), run)
    write(qrels, list(dict.fromkeys(judged)), GRADE)
    done = subprocess.run(
        [sys.executable, "-c", OF_A_CHILD, qrels, run], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    peak, with_pandas, evaluated = done.stdout.split()
    assert float(peak) <= 200
    assert (with_pandas, int(evaluated)) == ("False", len({query for query, _, _ in judged}))


@pytest.mark.slow
def test_ctrl_c_stops_cleanly(tmp_path) -> None:
    """At once when the first file is there, which is while the folder is made, and later, while rows are written."""
    rng = np.random.default_rng(0)
    count = 3_000_000
    queries = pyarrow.DictionaryArray.from_arrays(
        rng.integers(0, 50_000, count).astype(np.int32), [f"q{query}" for query in range(50_000)]
    )
    (tmp_path / "run").mkdir()
    table = pyarrow.table({"query_id": queries, "passage_id": queries, "score": rng.random(count)})
    parquet.write_table(table, tmp_path / "run" / "0.parquet")
    write(tmp_path / "qrels.parquet", [("q1", "q1", 1)], GRADE)
    words = ["evaluate", "--qrels", tmp_path / "qrels.parquet", "--run", tmp_path / "run", "-o", tmp_path / "r.json"]
    for number, seconds in enumerate((0, 0, 0.05, 0.3)):
        parts = tmp_path / f"parts-{number}"
        parts.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_selectivity", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(parts)},
        )
        while process.poll() is None and not os.listdir(parts):
            pass
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "interrupted: nothing was written" in said
        assert "Traceback" not in said
        assert not list(parts.iterdir()), seconds
        assert not (tmp_path / "r.json").exists()
