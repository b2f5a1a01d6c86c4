"""Arrow data, and what reading Parquet leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars
import pyarrow
import pytest
from pyarrow import parquet as arrow_parquet

from rag_selectivity import InputError, Qrels, Run, evaluate, read_run

pytestmark = pytest.mark.contract
Q, A = ["q1", "q1", "q2"], ["a", "b", "a"]


def test_reading_parquet_leaves_the_memory_pool_of_others(tmp_path) -> None:
    arrow_parquet.write_table(pyarrow.table({"query_id": Q, "doc_id": A, "score": [2.5, 1.5, 1]}), tmp_path / "run.pq")
    pools = {pool.backend_name: pool for pool in (pyarrow.default_memory_pool(), pyarrow.system_memory_pool())}
    usual = pyarrow.default_memory_pool()
    try:
        for name, pool in pools.items():
            pyarrow.set_memory_pool(pool)
            read_run(tmp_path / "run.pq")
            assert pyarrow.default_memory_pool().backend_name == name
    finally:
        pyarrow.set_memory_pool(usual)


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
