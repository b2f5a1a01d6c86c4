"""Scans by Polars of frames and files, as the join takes them."""

from __future__ import annotations

import gzip

import pytest

from rag_selectivity.tables.fast import Odd, scan

pytestmark = pytest.mark.inside

polars = pytest.importorskip("polars")
ROWS = [("q1", "007", 2.5), ("q1", "é", 1.0), ("q2", "1.0", -3.0)]
NAMES = ["query_id", "doc_id", "score"]


def frames():
    import pandas
    import pyarrow

    table = {name: list(column) for name, column in zip(NAMES, zip(*ROWS, strict=True), strict=True)}
    return {
        "polars": polars.DataFrame(table),
        "lazy": polars.LazyFrame(table),
        "pandas": pandas.DataFrame(table),
        "arrow": pyarrow.table(table),
        "batches": pyarrow.table(table).to_reader(),
        "categories": pandas.DataFrame(table).astype({"query_id": "category"}),
    }


def assert_odd(source) -> None:
    """The exact reader has to read it."""
    found = scan(source, "run")
    if found is not None:
        with pytest.raises(Odd):
            polars.concat(found.rows())


@pytest.mark.parametrize("kind", list(frames()))
def test_frames(kind):
    found = scan(frames()[kind], "run")
    rows = polars.concat(found.rows())
    assert rows.rows() == ROWS
    assert dict(rows.schema) == {"query": polars.String, "passage": polars.String, "score": polars.Float64}


@pytest.mark.parametrize("keyed", [True, False])
def test_a_folder_of_parquet(tmp_path, keyed):
    frame = polars.DataFrame(ROWS, schema=NAMES, orient="row")
    for i, query in enumerate(("q1", "q2")):
        part = frame.filter(polars.col("query_id") == query)
        folder = tmp_path / (f"query_id={query}" if keyed else f"part-{i}")
        folder.mkdir()
        (part.drop("query_id") if keyed else part).write_parquet(folder / "0.parquet")
    rows = polars.concat(scan(tmp_path, "run").rows())
    assert rows.select("query", "passage", "score").rows() == ROWS


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_texts(tmp_path, pack):
    trec = "".join(f"{q} Q0 {d} 1 {s} t\n" for q, d, s in ROWS)
    labels = "".join(f"{q}\t0\t{d}\t{int(s)}\n" for q, d, s in ROWS)
    csv = ",".join(NAMES) + "\n" + "".join(f"{q},{d},{s}\n" for q, d, s in ROWS)
    lines = "".join(f'{{"query_id": "{q}", "doc_id": "{d}", "score": {s}}}\n' for q, d, s in ROWS)
    for name, text in {"a.trec": trec, "a.csv": csv, "a.jsonl": lines}.items():
        (tmp_path / name).write_bytes(pack(text.encode()))
        rows = polars.concat(scan(tmp_path / name, "run").rows())
        assert rows.select("query", "passage", "score").rows() == ROWS
    (tmp_path / "qrels").write_bytes(pack(labels.encode()))
    rows = polars.concat(scan(tmp_path / "qrels", "labels").rows())
    assert rows.rows() == [("q1", "007", 2), ("q1", "é", 1), ("q2", "1.0", -3)]


@pytest.mark.parametrize("cell", [None, float("nan"), float("inf"), ""])
def test_an_odd_cell_is_left_to_the_exact_reader(cell):
    rows = [*ROWS, ("q3", "d", cell)] if cell != "" else [*ROWS, ("q3", "", 1.0)]
    assert_odd(polars.DataFrame(rows, schema=NAMES, orient="row"))


@pytest.mark.parametrize("line", ['{"query_id": "q", "doc_id": "d", "score": 1, "score": 2}', '{"query_id": "q"}'])
def test_a_key_that_stands_twice_or_not_at_all_is_left_to_the_exact_reader(tmp_path, line):
    path = tmp_path / "run.jsonl"
    path.write_text(f'{{"query_id": "q", "doc_id": "d", "score": 1}}\n{line}\n')
    assert_odd(path)


def test_a_run_without_numbers_is_looked_through_at_once():
    rows = [(query, passage) for query, passage, _ in ROWS]
    assert polars.concat(scan(polars.DataFrame(rows, schema=NAMES[:2], orient="row"), "run").rows()).rows() == rows
    assert_odd(polars.DataFrame([*rows, ("q", None)], schema=NAMES[:2], orient="row"))


@pytest.mark.parametrize(
    "text",
    [
        "q Q0 d 1 1.0 t\nq Q0 e 1 x t\n",
        "q Q0 d 1 1.0 t\nq Q0  e 1 1.0 t\n",
        "q Q0 d 1 1.0 t\nq Q0\te 1 1.0 t\n",
        "q Q0 d 1 1.0 t\n# a comment of six words\n",
        "q Q0 d 1 1.0 t\n#q Q0 d 1 1.0 t\n",
        "q Q0 d 1 1.0 t\n\n",
        "q Q0 d 1 1.0 t\r\n",
        "q Q0 d 1 1.0 a b\n",
        "q Q0 d 1 1.0\n",
    ],
)
def test_what_is_irregular_is_no_scan(tmp_path, text):
    path = tmp_path / "run"
    path.write_text(text, newline="")
    assert_odd(path)
