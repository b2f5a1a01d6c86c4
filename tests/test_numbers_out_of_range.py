"""Times and whole numbers that no column can hold are an error of this package, never a bare OverflowError."""

import pytest

import rag_selectivity as rs
from rag_selectivity.single import evaluate_query

pytestmark = pytest.mark.contract

LARGE = 9_223_372_036_854_775_808
LABELS = {"q": {"a": 2, "b": 1}}


def test_a_parquet_file_with_a_time_beyond_python(tmp_path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    far = pyarrow.array([0, 2**62], pyarrow.timestamp("us"))
    path = tmp_path / "labels.parquet"
    columns = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "grade": [1, 1], "when": far}
    parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(rs.InputError, match=r"labels\.parquet: damaged Parquet after row 0 \(date value out of range"):
        rs.read_qrels(path)


@pytest.mark.parametrize("new", [LARGE, -LARGE - 1, 2**53 + 1])
def test_a_grade_map_to_a_grade_that_no_column_holds(new) -> None:
    with pytest.raises(rs.InputError, match=rf"grade map .*: the new grade {new} is too large"):
        rs.Qrels.of({"q": {"a": 2}}).regraded(f"2:{new}")
    with pytest.raises(rs.InputError, match="is too large"):
        rs.evaluate(LABELS, {"r": {"q": ["a"]}}, grade_map={2: new, 1: 1})


def test_depths_and_corpus_sizes_of_single_queries() -> None:
    with pytest.raises(rs.InputError, match=f"depth {LARGE} is larger than any list"):
        evaluate_query(f"BoR@{LARGE}", {"a": 1}, ["a"], corpus_size=LARGE)
    with pytest.raises(rs.InputError, match="corpus_size"):
        evaluate_query("RandomSuccess@1", {"a": 1}, ["a"], corpus_size=LARGE)
