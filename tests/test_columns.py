"""Tables as columns: files and frames give what they give cell by cell, or the same error."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet as arrow_parquet

from rag_selectivity import InputError, Qrels, Run, evaluate
from rag_selectivity.data import frames
from rag_selectivity.data.columns import as_frame, column_names, column_values, label_columns, run_columns
from rag_selectivity.io import opening, parquet
from rag_selectivity.io.parquet import ParquetChunk
from rag_selectivity.io.reading import run_parts
from rag_selectivity.io.separated import SeparatedChunk
from rag_selectivity.io.tables import CommaSeparated, Parquet
from tests.cell_by_cell import FORMATS, assert_alike, outcome, refuse, whole

RUN_HEADER = "query_id,doc_id,score\n"


@pytest.fixture(params=[40, 1 << 19])
def block(request, monkeypatch) -> None:
    """Blocks of a line or two, and of the whole file."""
    monkeypatch.setattr(opening, "_BLOCK", request.param)
    monkeypatch.setattr(parquet, "_BLOCK", max(1, request.param // 20))


AWKWARD_LINES = {
    "plain": "q1,a,2.5\nq1,b,1.5\nq2,a,1\n",
    "no line end": "q1,a,2.5\nq1,b,1.5",
    "line ends of Windows": "q1,a,2.5\r\nq1,b,1.5\r\nq2,a,1\r\n",
    "both line ends": "q1,a,2.5\r\nq1,b,1.5\nq2,a,1\r\n",
    "a lone carriage return": "q1,a,2.5\rq1,b,1.5\n",
    "a carriage return in a cell": "q1,a\rb,2.5\n",
    "a carriage return at the end": "q1,a,2.5\r",
    "blank lines": "q1,a,2.5\n\n\nq1,b,1.5\n  \nq2,a,1\n",
    "lines of blank cells": "q1,a,2.5\n , ,\n",
    "scattered": "q1,a,2.5\nq2,a,1\nq1,b,3\nq3,c,1\nq2,b,7\n",
    "quoted cells": '"q1","a","2.5"\n"q1","b","1.5"\n',
    "some quoted cells": 'q1,"a",2.5\nq1,b,"1.5"\n',
    "quoted separators": 'q1,"a,b",2.5\n"q,2","c",1\n',
    "quoted line ends": 'q1,"a\nb",2.5\nq1,c,1\n',
    "quoted quotation marks": 'q1,"a ""b""",2.5\nq1,"""",1\n',
    "quotation marks within a cell": 'q1,a"b,2.5\nq1,c",1\n',
    "text after a quoted cell": 'q1,"a"b,2.5\nq1,c,1\n',
    "an open quotation mark": 'q1,"a,2.5\nq1,c,1\n',
    "empty quoted cells": 'q1,"",2.5\n',
    "spaces around cells": " q1 , a , 2.5 \n q1 , b ,1\n",
    "an empty query": "q1,a,2.5\n,b,1\n",
    "an empty passage": "q1,a,2.5\nq1,,1\n",
    "an empty score": "q1,a,2.5\nq1,b,\n",
    "too few fields": "q1,a,2.5\nq1,b\n",
    "too many fields": "q1,a,2.5\nq1,b,1,7\n",
    "ids like numbers": "012,12.0,2.5\n12,012,1\n12.0,1e3,3\n0x1F,+5,1\n",
    "words for missing values": "NA,null,2.5\nNaN,None,1\nN/A,nan,1\n",
    "words for truth values": "true,false,1\nTrue,FALSE,2\n",
    "scores that are not numbers": "q1,a,2.5\nq1,b,high\n",
    "NaN scores": "q1,a,2.5\nq1,b,nan\n",
    "negative NaN": "q1,a,-nan\n",
    "NaN with a payload": "q1,a,nan(3)\n",
    "infinite scores": "q1,a,inf\nq1,b,-Infinity\nq1,c,+inf\n",
    "odd numbers": "q1,a,1_000\nq1,b,1e5\nq1,c,.5\nq1,d,5.\nq1,e,+7\nq1,f,1E-3\nq1,g,-0\n",
    "hexadecimal numbers": "q1,a,0x10\n",
    "numbers with many digits": "q1,a,0.1000000000000000055511151231257827\nq1,b,9007199254740993\n",
    "numbers without a float": "q1,c,1e400\nq1,d,4e-324\nq1,e,1e-400\n",
    "numbers in other scripts": "q1,a,١٢\nq1,b,１.５\n",
    "decimal commas": 'q1,a,"1,5"\n',
    "ids in other scripts": "q漢,é,2.5\nqé,漢,1\n",
    "control characters": "q1,a\x01b,2.5\nq1,c\x1fd,1\n",
    "NUL": "q1,a\0b,2.5\nq1,c,1\n",
    "NUL in a query": "q\x001,a,2.5\nq1,c,1\n",
    "grades": "q1,a,3\nq1,b,0\nq2,a,-1\n",
    "grades written oddly": "q1,a,+3\nq1,b, 2\nq2,a,1_0\nq2,b,007\n",
    "the same judgment twice": "q1,a,3\nq1,b,0\nq1,a,3\n",
    "two grades for a pair": "q1,a,3\nq1,b,0\nq1,a,2\n",
    "large grades": "q1,a,2147483648\n",
    "grades with a point": "q1,a,3.0\n",
}


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("lines", AWKWARD_LINES.values(), ids=AWKWARD_LINES.keys())
@pytest.mark.parametrize(
    "header", ["query_id,doc_id,score\n", "\ufeffquery_id,doc_id,grade\r\n", '"qid","docid",rank\n']
)
def test_separated_values_as_columns_are_those_of_the_cells(tmp_path, block, suffix, lines, header) -> None:
    text = header + lines
    path = tmp_path / f"table{suffix}"
    path.write_bytes((text.replace(",", "\t") if suffix == ".tsv" else text).encode())
    assert_alike(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"query_id,doc_id,score\n",
        b"\n \nquery_id,doc_id,score\nq,a,1\n",
        b"query_id,doc_id,score,score\nq,a,1,2\nq,b,3,1\n",
        b" query_id , doc_id ,score\nq,a,1\n",
        b'"query\n_id",doc_id,score\nq,a,1\n',
        b'query_id,doc_id,"score\nq,a,1\n',
        b"doc_id,score\na,1\n",
        b"query_id,doc_id,score\nq,a,1\nq,\xff,2\n",
        b"query_id,doc_id,score,text\nq,a,1,x\nq,b,2,\xc3\n",
        b"query_id,doc_id,score,text\nq,a,1,\xc3\xa9\nq,b,2,\n",
        b"query_id,doc_id,score,text\nq,a,1," + 70_000 * b"x" + b"\nq,b,2,y\n",
        b"query_id,doc_id,score,text\nq,a,1," + 140_000 * b"x" + b"\nq,b,2,y\n",
        b"query_id,doc_id\nq,a\nq,b\nr,a\n",
        b"query_id,doc_id,rank\nq,a,2\nq,b,1\nr,a,1\n",
        b"query_id,doc_id,rank\nq,a,2\nq,b,nan\n",
        b"query_id,doc_id,rank,score\nq,a,1,1\nq,b,2,2\nq,c,3,3\nr,a,1,9\nr,b,2,8\n",
        b"query_id,doc_id,rank,score\nq,a,1,1\nr,b,2,2\nq,c,3,3\n",
        b"query_id,doc_id,rank,score\nq,a,1,1\nq,b,,2\nq,c,3,3\n",
        b"query_id,doc_id,rank,score\nq,a,1,1\nq,b,second,2\nq,c,3,3\n",
        b"query_id,doc_id,rank,score\nq,a,nan,1\nq,b,2,2\nq,c,3,3\n",
        b"query_id,doc_id,rank,score\nq,a,1,inf\nq,b,2,inf\nq,c,3,-inf\n",
        b"query_id,doc_id,score,tokens\nq,a,1,10\nq,b,2,7.5\nr,a,1,0\n",
        b"query_id,doc_id,score,tokens\nq,a,1,10\nr,a,1,3\nq,b,2,7.5\n",
        b"query_id,doc_id,score,tokens\nq,a,1,10\nq,b,2,-1\n",
        b"query_id,doc_id,score,tokens\nq,a,1,10\nq,b,2,inf\n",
        b"query_id,doc_id,score,tokens\nq,a,1,10\nq,b,2,\n",
        b"query_id,doc_id,score,tokens\nq,a,1,10\nq,b,2,few\n",
        b"query_hash,passage_hash,origins,query_id,doc_id,grade\nx,y,z,q,a,1\n",
        b"query-id,corpus-id,score\nq,a,1\nq,b,0\n",
        b"query_id,doc_id,score,grade\nq,a,.5,1\nq,b,.3,0\n",
    ],
)
def test_awkward_csv_files_as_columns_are_those_of_the_cells(tmp_path, block, content) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    assert_alike(tmp_path / "table.csv")


def test_reading_parquet_leaves_the_memory_pool_of_others(tmp_path) -> None:
    arrow_parquet.write_table(TABLES["score: floats"], tmp_path / "table.parquet")
    pools = {pool.backend_name: pool for pool in (pyarrow.default_memory_pool(), pyarrow.system_memory_pool())}
    usual = pyarrow.default_memory_pool()
    try:
        for name, pool in pools.items():
            pyarrow.set_memory_pool(pool)
            for _ in Parquet().read_run(tmp_path / "table.parquet"):
                assert pyarrow.default_memory_pool().backend_name == name
    finally:
        pyarrow.set_memory_pool(usual)


Q, A = ["q1", "q1", "q2"], ["a", "b", "a"]
STRINGS = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]
ID_ARRAYS = {
    **{f"{type} ids": pyarrow.array(Q, type) for type in STRINGS},
    "dictionary": pyarrow.array(Q).dictionary_encode(),
    "a dictionary with repeats": pyarrow.DictionaryArray.from_arrays([0, 1, 2], ["q1", "q1", "q2"]),
    "a dictionary with nulls": pyarrow.DictionaryArray.from_arrays([0, 1, 2], ["q1", None, "q2"]),
    "a dictionary of whole numbers": pyarrow.DictionaryArray.from_arrays([0, 0, 1], [12, 7]),
    "whole numbers": pyarrow.array([12, 12, -3]),
    "unsigned numbers": pyarrow.array([12, 12, 2**64 - 1], pyarrow.uint64()),
    "small numbers": pyarrow.array([12, 12, -3], pyarrow.int8()),
    "floats": pyarrow.array([12.0, 12.0, 13.0]),
    "truth values": pyarrow.array([True, True, False]),
    "bytes": pyarrow.array([b"q1", b"q1", b"q2"]),
    "nulls": pyarrow.array(["q1", None, "q2"]),
    "no values": pyarrow.nulls(3),
    "empty": pyarrow.array(["q1", "", "q2"]),
    "NUL": pyarrow.array(["q1", "q\0", "q2"]),
    "other scripts": pyarrow.array(["é", "é", "漢"]),
    "scattered": pyarrow.array(["q1", "q2", "q1"]),
    "lists": pyarrow.array([["q1"], ["q1"], ["q2"]]),
    "dates": pyarrow.array([datetime.date(2024, 1, 1)] * 3),
    "decimals": pyarrow.array([decimal.Decimal("12")] * 3),
}
FIGURE_ARRAYS = {
    "floats": pyarrow.array([2.5, 1.5, 1.0]),
    "short floats": pyarrow.array([2.5, 0.1, 1.0], pyarrow.float32()),
    "whole numbers": pyarrow.array([3, 1, 2]),
    "unsigned": pyarrow.array([3, 0, 2], pyarrow.uint8()),
    "large numbers": pyarrow.array([2**53 + 1, -(2**63), 2**62 + 1]),
    "half floats": pyarrow.array(np.array([1.5, 2, 3], np.float16)),
    "nulls": pyarrow.array([1.0, None, 2.0]),
    "whole numbers and nulls": pyarrow.array([1, None, 2]),
    "NaN": pyarrow.array([1.0, math.nan, 2.0]),
    "infinity": pyarrow.array([math.inf, -math.inf, 2.0]),
    "texts": pyarrow.array(["1", "2.5", "0"]),
    "whole texts": pyarrow.array(["1", " 2", "+0"]),
    "other texts": pyarrow.array(["1", "high", "0"]),
    "a dictionary": pyarrow.array(["1", "2", "2"]).dictionary_encode(),
    "truth values": pyarrow.array([True, False, True]),
    "decimals": pyarrow.array([decimal.Decimal("1.5"), decimal.Decimal("2"), decimal.Decimal("0.1")]),
    "times": pyarrow.array([datetime.datetime(2024, 1, 1)] * 3),
    "negative": pyarrow.array([-1, 0, 1]),
    "a number beyond int32": pyarrow.array([1, 2**31, 2]),
    "small": pyarrow.array([1.0, 0.0, 2.0]),
}


def tables() -> dict[str, pyarrow.Table]:
    passages, scores = pyarrow.array(A), FIGURE_ARRAYS["floats"]
    found = {}
    for name, array in ID_ARRAYS.items():
        found[f"query: {name}"] = pyarrow.table({"query_id": array, "doc_id": passages, "score": scores})
        found[f"passage: {name}"] = pyarrow.table({"query_id": Q, "doc_id": array, "score": scores})
    for name, array in FIGURE_ARRAYS.items():
        for column in ("score", "rank", "tokens", "grade"):
            found[f"{column}: {name}"] = pyarrow.table({"query_id": Q, "doc_id": passages, column: array})
        ranked = {"query_id": Q, "doc_id": passages, "score": pyarrow.array([1.0, 2.0, 3.0]), "rank": array}
        found[f"rank and score: {name}"] = pyarrow.table(ranked)
    return found


TABLES = tables()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_parquet_as_columns_is_that_of_the_cells(tmp_path, block, table) -> None:
    try:
        arrow_parquet.write_table(table, tmp_path / "table.parquet")
    except pyarrow.ArrowNotImplementedError:
        return
    assert_alike(tmp_path / "table.parquet")


def test_parquet_with_text_that_is_not_utf8_is_refused_as_before(tmp_path) -> None:
    for texts in ([b"a", b"\xff", b"c"], [b"a", b"\xc3", b"\xa9"]):
        wrong = pyarrow.array(texts).view(pyarrow.string())
        table = pyarrow.table({"query_id": Q, "doc_id": wrong, "score": [1.0, 2.0, 3.0], "grade": [1, 0, 1]})
        arrow_parquet.write_table(table, tmp_path / "table.parquet")
        assert_alike(tmp_path / "table.parquet")


def frames_of(table: pyarrow.Table) -> dict[str, Any]:
    """The table as frames of every kind that can hold it."""
    of = {"arrow": lambda: table, "chunked": lambda: pyarrow.concat_tables([table[:1], table[1:]])}
    of["pandas"] = table.to_pandas
    of["pandas of objects"] = lambda: table.to_pandas().astype(object)
    of["pandas of Arrow"] = lambda: table.to_pandas(types_mapper=pandas.ArrowDtype)
    of["pandas, nullable"] = lambda: table.to_pandas().convert_dtypes()
    of["pandas of categories"] = lambda: table.to_pandas().astype({"query_id": "category", "doc_id": "category"})
    of["polars"] = lambda: polars.from_arrow(table)
    of["polars of categories"] = lambda: polars.from_arrow(table).with_columns(
        polars.col("doc_id").cast(polars.Categorical)
    )
    found = {}
    for name, make in of.items():
        try:
            found[name] = make()
        except (pyarrow.ArrowException, TypeError, ValueError, NotImplementedError, polars.exceptions.PolarsError):
            continue
    return found


FRAMES = [(what, kind, frame) for what, table in TABLES.items() for kind, frame in frames_of(table).items()]


def run_of_cells(frame: Any) -> Run:
    frame = as_frame(frame, "run frame")
    return Run._from_cells(frame, run_columns(column_names(frame), "run frame"))


def qrels_of_cells(frame: Any) -> Qrels:
    frame = as_frame(frame, "qrels frame")
    columns = label_columns(column_names(frame), "qrels frame")
    return Qrels.from_records(zip(*(column_values(frame, name) for name in columns.values()), strict=True))


def test_frames_as_columns_are_those_of_the_cells(monkeypatch) -> None:
    monkeypatch.setattr(frames, "_BLOCK", 2)
    for what, kind, frame in FRAMES:
        if what.startswith("grade"):
            assert outcome(lambda f=frame: Qrels.of(f)) == outcome(lambda f=frame: qrels_of_cells(f)), (what, kind)
            continue
        expected = outcome(lambda f=frame: run_of_cells(f))
        assert outcome(lambda f=frame: Run.of(f)) == expected, (what, kind)
        in_parts = outcome(lambda f=frame: whole(run_parts(f)))
        # The parts of a frame that is ordered by rank have its queries in the order of its rows.
        if not what.startswith("rank:") or isinstance(expected, str):
            assert in_parts == expected, (what, kind)
        else:
            assert outcome(lambda f=frame: in_order(whole(run_parts(f)))) == outcome(
                lambda f=frame: in_order(run_of_cells(f))
            ), (what, kind)


def in_order(run: Run) -> Run:
    """The run with its queries in the order of their names."""
    queries = sorted(run.queries)
    rank = np.array([queries.index(query) for query in run.queries], np.int64)
    return Run.of_rows(queries, rank[run.row_queries()], run.passages, run.scores, run.remarks, run.tokens)


REGULAR = {
    "run.csv": AWKWARD_LINES["quoted cells"]
    + AWKWARD_LINES["line ends of Windows"]
    + AWKWARD_LINES["ids like numbers"],
    "run.tsv": AWKWARD_LINES["plain"].replace(",", "\t"),
}


@pytest.mark.parametrize(("name", "text"), REGULAR.items())
def test_regular_files_are_read_as_columns(tmp_path, monkeypatch, name, text) -> None:
    path = tmp_path / name
    format = FORMATS[path.suffix]()
    header = RUN_HEADER.replace(",", "\t" if path.suffix == ".tsv" else ",")
    path.write_text(header + text, newline="")
    monkeypatch.setattr(SeparatedChunk, "rows", refuse)
    assert len(whole(format.read_run(path)).passages) == text.strip().count("\n") + 1


def test_regular_parquet_and_frames_are_read_as_columns(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ParquetChunk, "rows", refuse)
    monkeypatch.setattr(Run, "_from_cells", refuse)
    plain = ("string ids", "large_string ids", "string_view ids", "whole numbers", "floats", "small")
    for what, kind, frame in FRAMES:
        column, values = what.split(": ")
        if values not in plain or column in ("grade", "rank and score") or (column, values) == ("passage", "floats"):
            continue
        if column == "query" and values == "floats":
            continue
        assert len(Run.of(frame).passages) == 3, (what, kind)
        if kind == "arrow":
            arrow_parquet.write_table(frame, tmp_path / "run.parquet")
            assert len(whole(Parquet().read_run(tmp_path / "run.parquet")).passages) == 3


def test_arrow_data_serves_wherever_a_frame_does() -> None:
    labels = pyarrow.table({"query_id": Q, "doc_id": A, "grade": [1, 0, 1]})
    run = pyarrow.table({"query_id": Q, "doc_id": A, "score": [2.0, 3.0, 1.0]})
    sizes = pyarrow.table({"query_id": ["q1", "q2"], "corpus_size": [1000, 2000]})
    options = {"measures": ["BoR"], "depths": [1], "bootstrap": None}
    expected = evaluate(Qrels.of(labels), Run.of(run), corpus_size={"q1": 1000, "q2": 2000}, **options)[
        "run", "BoR@1"
    ].value
    forms: list[Callable[[pyarrow.Table], Any]] = [
        lambda table: table,
        lambda table: table.to_batches()[0],
        lambda table: table.to_reader(),
        lambda table: polars.from_arrow(table).lazy().collect(),
    ]
    for form in forms:
        report = evaluate(form(labels), form(run), corpus_size=form(sizes), **options)
        assert report["run", "BoR@1"].value == expected
        assert (
            evaluate(labels, {"run": form(run)}, corpus_size=form(sizes), **options)["run", "BoR@1"].value == expected
        )


def test_a_stream_that_was_read_before_is_refused() -> None:
    stream = pyarrow.table({"query_id": Q, "doc_id": A, "score": [2.0, 3.0, 1.0]}).to_reader()
    Run.of(stream)
    with pytest.raises(InputError, match="a stream can be read only once"):
        Run.of(stream)


def test_an_odd_cell_in_a_later_block_costs_its_block_only(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(opening, "_BLOCK", 100)
    lines = [f"q{i // 5},d{i},{100 - i}" for i in range(100)]
    lines[60] = 'q12,"d ""60""",40'
    (tmp_path / "run.csv").write_text(RUN_HEADER + "\n".join(lines))
    monkeypatch.setattr(
        CommaSeparated, "read_rows", lambda *_: iter([(2, {"query_id": "", "doc_id": "", "score": ""})])
    )
    run = whole(CommaSeparated().read_run(tmp_path / "run.csv"))
    assert len(run) == 20
    assert run["q12"] == ['d "60"', "d61", "d62", "d63", "d64"]


def test_a_wrong_cell_in_a_later_block_has_its_line(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(opening, "_BLOCK", 100)
    lines = [f"q{i // 5},d{i},{100 - i}" for i in range(100)]
    lines[60] = "q12,d60,high"
    (tmp_path / "run.csv").write_text(RUN_HEADER + "\n".join(lines))
    with pytest.raises(InputError, match=r"run\.csv:62: query 'q12': 'high' is not a number"):
        whole(CommaSeparated().read_run(tmp_path / "run.csv"))
