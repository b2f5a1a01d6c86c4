"""What happens at the edges: each policy and each rule of the design, on the smallest input that shows it."""

import math

import pytest

import rag_selectivity as rs
from rag_selectivity import InputError, join
from rag_selectivity.judged.policy import resolve_policy

pytestmark = pytest.mark.inside

QRELS = {"q1": {"a": 1, "b": 0, "c": 1}, "q2": {"a": 1}, "q3": {"z": 0}}


def success(run, *, depths=(1, 2, 3), qrels=QRELS, **options) -> list[float]:
    report = rs.evaluate(qrels, {"r": run}, measures=["Success"], depths=depths, bootstrap=None, **options)
    return [report["r", f"Success@{depth}"].value for depth in depths]


def joined(run, qrels=QRELS, **options) -> rs.JudgedRun:
    return join(rs.Qrels.of(qrels), rs.Run.of(run), policy=resolve_policy(**options))


def test_a_query_missing_from_the_run_is_a_failure_and_counted() -> None:
    assert success({"q1": ["a"]}, depths=[1]) == [0.5]
    assert joined({"q1": ["a"]}).coverage.missing_from_run == 2


def test_a_query_with_an_empty_list_is_not_missing() -> None:
    run = {"q1": ["a"], "q2": []}
    assert success(run, depths=[1], missing_query="skip") == [0.5]
    assert joined(run).coverage.missing_from_run == 1


def test_queries_with_too_few_relevant_passages_leave_both_sides_of_the_ratio() -> None:
    report = rs.evaluate(
        QRELS,
        {"r": {"q1": ["a", "c"], "q2": ["a"], "q3": []}},
        corpus_size=10,
        measures=["BoR", "BoR(m=2)"],
        depths=[2],
    )
    assert (report["r", "BoR@2"].n, report["r", "BoR@2"].n_total) == (2, 3)
    assert report["r", "BoR(m=2)@2"].n == 1
    assert report["r", "BoR(m=2)@2"].value == pytest.approx(math.log2(45))
    with pytest.raises(InputError, match=r"'q3' has 0 relevant passages, but a success needs 1"):
        success({"q1": ["a"]}, no_relevant="error")


def test_no_query_with_a_relevant_passage_is_nan_with_a_reason() -> None:
    report = rs.evaluate({"q": {"d": 0}}, {"r": {"q": ["d"]}}, measures=["Success"], depths=[1])
    assert math.isnan(report["r", "Success@1"].value)
    cell = report.to_dict()["runs"]["r"]["measures"]["Success@1"]
    assert cell == {
        "value": None,
        "low": None,
        "high": None,
        "n": 0,
        "n_total": 1,
        "reason": "no query has 1 or more relevant passages",
    }


def test_a_short_list_is_compared_with_a_full_draw_unless_asked_otherwise() -> None:
    run = {"q1": ["a"]}
    qrels = {"q1": {"a": 1}}
    for short_lists, drawn in (("requested", 4), ("returned", 1)):
        report = rs.evaluate(
            qrels,
            {"r": run},
            corpus_size=8,
            measures=["RandomSuccess"],
            depths=[4],
            bootstrap=None,
            short_lists=short_lists,
        )
        assert report["r", "RandomSuccess@4"].value == pytest.approx(drawn / 8)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (([10], [11], [1], [0]), "query '1': K = 11 is more than N = 10"),
        (([10], [5], [11], [0]), "query '1': R = 11 is more than N = 10"),
        (([10, 10], [5, 5], [1, 1], [1, 2]), r"query '2': hit = 2 is more than min\(K, R\) = 1"),
        (([10], [5], [-1], [0]), "counts: R of query number 1 is -1; give a whole number"),
        (([9] * 3, [3] * 3, [1, 2.5, 0.5], [1, 0, 1]), r"counts: R of query number 2 is 2\.5; give a whole number"),
        (([9], [-1], [1], [0]), "counts: K of query number 1 is -1; give a whole number"),
        (([10], [5], ["x"], [0]), "R of query number 1 is 'x'"),
        (([10], [5, 5], [1], [0]), "differ in length"),
    ],
)
def test_impossible_counts_are_refused(counts, message) -> None:
    with pytest.raises(InputError, match=message):
        rs.JudgedRun.from_counts(*counts)
