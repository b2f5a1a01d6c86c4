"""Arrow data serves wherever a frame does."""

from collections.abc import Callable
from typing import Any

import polars
import pyarrow
import pytest

from rag_selectivity import InputError, Qrels, Run, evaluate, join

pytestmark = pytest.mark.contract
Q, A = ["q1", "q1", "q2"], ["a", "b", "a"]


def test_arrow_data_serves_wherever_a_frame_does() -> None:
    labels = pyarrow.table({"query_id": Q, "doc_id": A, "grade": [1, 0, 1]})
    run = pyarrow.table({"query_id": Q, "doc_id": A, "score": [2.0, 3.0, 1.0]})
    sizes = pyarrow.table({"query_id": ["q1", "q2"], "corpus_size": [1000, 2000]})
    options = {"measures": ["BoR"], "depths": [1], "bootstrap": None}
    report = evaluate(Qrels.of(labels), Run.of(run), corpus_size={"q1": 1000, "q2": 2000}, **options)
    expected = report["run", "BoR@1"].value
    forms: list[Callable[[pyarrow.Table], Any]] = [
        lambda table: table,
        lambda table: table.to_batches()[0],
        lambda table: table.to_reader(),
        lambda table: polars.from_arrow(table).lazy(),
    ]
    for form in forms:
        report = evaluate(form(labels), form(run), corpus_size=form(sizes), **options)
        assert report["run", "BoR@1"].value == expected
        assert join(Qrels.of(labels), form(run)).returned.tolist() == [2, 1]
        report = evaluate(labels, {"run": form(run)}, corpus_size=form(sizes), **options)
        assert report["run", "BoR@1"].value == expected


def test_a_stream_that_was_read_before_is_refused() -> None:
    stream = pyarrow.table({"query_id": Q, "doc_id": A, "score": [2.0, 3.0, 1.0]}).to_reader()
    Run.of(stream)
    with pytest.raises(InputError, match="a stream can be read only once"):
        Run.of(stream)
