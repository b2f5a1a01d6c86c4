"""Files whose header names a column twice, and numbers with underscores: refused by every reader."""

from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.advice.costs import measured_costs
from rag_selectivity.tables.exact import read_records
from tests.forked_cli import run_command

pytestmark = pytest.mark.inside

QRELS, RUN = {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": ["a", "b"], "q2": ["b", "a"]}


def evaluated(**options: Any) -> rs.Report:
    return rs.evaluate(QRELS, {"r": RUN}, measures=["P@2"], bootstrap=None, **options)


def write(folder: Path, header: str, *lines: str, separator: str = ",") -> Path:
    path = folder / ("table.csv" if separator == "," else "table.tsv")
    path.write_text("\n".join([header, *lines, ""]).replace(",", separator), encoding="utf-8")
    return path


READERS = [
    ("query_id,passage_id,grade,grade", "q1,a,1,2", rs.read_qrels),
    ("query_id,query_id,passage_id,score", "q1,q2,a,1", rs.read_run),
    ("query_id,weight,weight", "q1,1,2", lambda path: evaluated(weights=path)),
    ("name,other,name", "1,2,3", lambda path: list(read_records(path))),
]


@pytest.mark.parametrize("separator", [",", "\t"], ids=["csv", "tsv"])
@pytest.mark.parametrize(("header", "line", "read"), READERS, ids=[header for header, _, _ in READERS])
def test_a_header_that_names_a_column_twice_is_refused(header, line, read, separator, tmp_path) -> None:
    path = write(tmp_path, header, line, separator=separator)
    if separator == "\t" and "query_id" not in header:
        pytest.skip("such a table is not read with tabs")
    names = header.split(",")
    twice = next(name for name in names if names.count(name) > 1)
    with pytest.raises(rs.InputError, match=rf"{path.name}:1: two columns are called '{twice}'; remove one of them"):
        read(path)


def test_columns_without_a_name_are_left(tmp_path) -> None:
    """As programs for sheets write them behind the last column."""
    assert rs.read_qrels(write(tmp_path, "query_id,passage_id,grade,,", "q1,a,1,,")).to_dict() == {"q1": {"a": 1}}


def test_a_parquet_file_that_names_a_column_twice_is_refused(tmp_path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = [pyarrow.array(each) for each in (["q1"], ["a"], [1], [2])]
    table = pyarrow.Table.from_arrays(columns, names=["query_id", "passage_id", "grade", "grade"])
    parquet.write_table(table, tmp_path / "qrels.parquet")
    for read in (rs.read_qrels, lambda path: list(read_records(path))):
        with pytest.raises(rs.InputError, match=r"qrels\.parquet: two columns are called 'grade'"):
            read(tmp_path / "qrels.parquet")
    with pytest.raises(rs.InputError, match="qrels: two columns are called 'grade'"):
        rs.Qrels.of(table)


NUMBERS = [
    ("query_id,passage_id,grade", "q2,b,1", "q1,a,1_0", rs.read_qrels, "table.csv:3: .*grade '1_0' is not a whole"),
    ("query_id,passage_id,score", "q2,b,2", "q1,a,1_0", rs.read_run, "table.csv:3: .*the score '1_0' is not a number"),
    ("query_id,price", "q2,1", "q1,1_0", lambda path: measured_costs(path, ["r"]), "table.csv:3: price is '1_0'; give"),
    ("query_id,k,score", "q2,1,1", "q1,1_0,1", lambda path: rs.validate(evaluated(), path), "k is '1_0'; give a whole"),
]


@pytest.mark.parametrize(("header", "first", "line", "read", "message"), NUMBERS)
def test_a_number_with_an_underscore_is_none(header, first, line, read, message, tmp_path) -> None:
    with pytest.raises(rs.InputError, match=message):
        read(write(tmp_path, header, first, line))


def test_corpus_sizes_of_a_table_have_no_underscore(tmp_path) -> None:
    """The option itself takes 8_841_823, as people write it."""
    (tmp_path / "qrels.trec").write_text("q1 0 a 1\nq2 0 b 1\n")
    (tmp_path / "run.trec").write_text("q1 Q0 a 1 2 r\nq2 Q0 b 1 2 r\n")
    path = write(tmp_path, "query_id,corpus_size", "q1,100", "q2,1_0")
    words = ("evaluate", "qrels.trec", "run.trec", "--measure", "BoR@1", "--corpus-size")
    done = run_command(*words, path.name, cwd=tmp_path)
    assert done.returncode == 2
    assert "the corpus size of query 'q2' is '1_0'; give a whole number" in done.stderr
    assert run_command(*words, "8_841_823", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_arms_and_experiments_have_no_underscore(suffix, tmp_path) -> None:
    cell = "1_0"
    lines = {"csv": f"arm,cited\na,{cell}\n", "jsonl": f'{{"arm": "a", "cited": "{cell}"}}\n'}
    (tmp_path / f"arms.{suffix}").write_text(lines[suffix])
    done = run_command("online", "compare", f"arms.{suffix}", "--metric", "cited", cwd=tmp_path)
    assert (done.returncode, "cited must be a number, got '1_0'" in done.stderr) == (2, True), done.stderr
