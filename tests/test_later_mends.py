"""What was wrong once, each with its right value."""

import math

import pytest

import rag_selectivity as rs
from rag_selectivity.advice import which_k

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


def test_three_columns_of_ms_marco_are_a_run(tmp_path) -> None:
    path = tmp_path / "run.tsv"
    path.write_text("q1\td2\t2\nq1\td1\t1\nq2\td3\t1\n")
    assert rs.read_run(path).to_dict() == {"q1": ["d1", "d2"], "q2": ["d3"]}


def test_exclude_self_drops_a_query_s_own_passage() -> None:
    report = rs.evaluate(
        {"d1": {"d2": 1}, "d3": {"d4": 1}}, {"r": {"d1": ["d1", "d2"], "d3": ["d4", "d3"]}}, exclude_self=True, **P_AT_1
    )
    assert report["P@1"].value == 1.0


def test_ndcg_without_a_cutoff_is_of_the_whole_list() -> None:
    report = rs.evaluate({"q1": {"d2": 1, "d9": 1}}, RUN, measures=["nDCG"], bootstrap=None)
    assert report["nDCG"].value == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)), rel=1e-12)


# -- advice -----------------------------------------------------------------------------------------------


def test_what_is_called_the_smallest_k_is_the_smallest() -> None:
    grades = {"a": 5, **{f"b{i}": 4 for i in range(4)}, **{f"z{i}": 1 for i in range(5)}}
    ranked = ["a", "z0", "z1", "b0", "b1", "z2", "z3", "z4"]
    labels = {f"q{i}": grades for i in range(12)}
    advised = which_k(rs.join(rs.Qrels.of(labels), rs.Run.of(dict.fromkeys(labels, ranked)), scale="utility"))
    # Evidence of 1, 0, 0, .5, .5, 0, 0, 0 by rank: made non-increasing 1, 1/4 four times, then nothing.
    assert (advised.value, advised.low, advised.high) == (5, 5, 5)


# -- inference --------------------------------------------------------------------------------------------


def test_bor_and_success_do_not_contradict_each_other() -> None:
    relevant = [22, 23, 23, 23, 23, 24]
    labels = {f"q{i}": {f"p{j}": 1 for j in range(count)} for i, count in enumerate(relevant)}
    lists = {q: ["p0" if i < 4 else "x"] for i, q in enumerate(labels)}
    options = {"measures": ["BoR", "Success", "RandomSuccess"], "depths": [1], "corpus_size": 100}
    report = rs.evaluate(labels, {"r": lists}, **options)
    success, chance = report["Success@1"], report["RandomSuccess@1"].value
    assert success.low == pytest.approx(0.26, abs=0.005)
    assert report["BoR@1"].low >= math.log2(success.low / chance) - 0.01
