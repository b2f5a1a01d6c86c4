"""What was wrong once, each with its right value."""

import math

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

RUN = {"r": {"q1": ["d1", "d2"]}}
P_AT_1 = {"measures": ["P"], "depths": [1], "bootstrap": None}


# -- tables -----------------------------------------------------------------------------------------------


def test_grades_of_trec_may_have_a_decimal_point(tmp_path) -> None:
    path = tmp_path / "qrels.trec"
    path.write_text("q1 0 d1 1.0\nq1 0 d2 0.0\n")
    assert rs.read_qrels(path).to_dict() == {"q1": {"d1": 1, "d2": 0}}


@pytest.mark.parametrize(
    "row",
    [
        {"query-id": "q1", "corpus-id": "d1", "score": 1},
        {"query_id": "q1", "doc_id": "d1", "relevance": 1},
        {"qid": "q1", "docno": "d1", "label": 1.0},
    ],
)
def test_a_list_of_dicts_is_qrels(row) -> None:
    assert rs.Qrels.of([row]).to_dict() == {"q1": {"d1": 1}}
    assert rs.evaluate([row], RUN, **P_AT_1)["P@1"].value == 1.0


def test_a_hugging_face_dataset_is_qrels() -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([{"query-id": "q1", "corpus-id": "d1", "score": 1}])
    assert rs.evaluate(rows, RUN, **P_AT_1)["P@1"].value == 1.0


def test_ndcg_without_a_cutoff_is_of_the_whole_list() -> None:
    report = rs.evaluate({"q1": {"d2": 1, "d9": 1}}, RUN, measures=["nDCG"], bootstrap=None)
    assert report["nDCG"].value == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)), rel=1e-12)
