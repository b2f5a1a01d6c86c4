"""The report: indexing, views, and writing whole files."""

import json

import pandas
import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

QRELS = {"q1": {"a": 5, "b": 1}, "q2": {"c": 4}, "q3": {"d": 2}}
RUNS = {"good": {"q1": ["a", "b"], "q2": ["c", "x"]}, "bad": {"q1": ["b", "x"], "q2": ["x", "y"], "zz": ["a"]}}


@pytest.fixture
def report() -> rs.Report:
    measures = ["Success", "BoR", "BoR_max", "lambda"]
    return rs.evaluate(QRELS, RUNS, corpus_size=1000, scale="utility", measures=measures, depths=[1, 2])


def test_indexing_by_run_and_measure_in_any_spelling(report) -> None:
    assert report["good", "bor@1"] is report["good", rs.parse_measure("BoR") @ 1]
    with pytest.raises(rs.InputError, match="BoR@9 was not measured: name its depth in depths=…"):
        report["good", "BoR@9"]
    with pytest.raises(rs.InputError, match="AP@2 was not measured: name it in measures=…"):
        rs.evaluate(QRELS, RUNS, scale="utility", measures=["AP"], depths=[2])["good", "AP@2"]
    with pytest.raises(rs.InputError, match="no run 'goood'; did you mean \"good\""):
        report["goood", "BoR@1"]
    with pytest.raises(rs.InputError, match="the report has several runs"):
        report["BoR@1"]


def test_json_follows_its_schema(report) -> None:
    data = json.loads(report.to_json())
    assert data["schema"] == "rag-selectivity/report/3"
    assert (data["corpus_size"], data["scale"]) == (1000, "utility")
    queries = data["runs"]["bad"]["queries"]
    counts = ("evaluated", "missing_from_run", "not_in_qrels", "duplicates")
    assert [queries[name] for name in counts] == [3, 1, 1, 0]
    cell = data["runs"]["good"]["measures"]["BoR@1"]
    assert cell["value"] == pytest.approx(report["good", "BoR@1"].value)
    assert (cell["n"], cell["n_total"]) == (2, 3)
    assert data["runs"]["bad"]["measures"]["BoR@1"]["value"] is None
    fingerprint, per_query = (data["runs"]["good"][name] for name in ("fingerprint", "per_query"))
    assert (fingerprint["scale"], fingerprint["pool"], fingerprint["passages_of"]) == ("utility", False, None)
    assert fingerprint["policy"]["missing_query"] == "fail"
    assert per_query["queries"] == ["q1", "q2", "q3"]
    assert per_query["parts"]["Success@1"] == [[1, 1, None]]
    assert per_query["parts"]["BoR@1"] == ["Success@1[0]", [0.001, 0.001, None], [0.999, 0.999, None]]
    assert per_query["parts"]["BoR_max@1"] == ["BoR@1[1]", "BoR@1[2]"]


def test_per_query_rows_show_success_and_never_a_per_query_bor(report) -> None:
    rows = report.per_query("good")
    assert rows == [
        {"run": "good", "query": "q1", "Success@1": 1.0, "Success@2": 1.0, "lambda@1": 0.001, "lambda@2": 0.002},
        {"run": "good", "query": "q2", "Success@1": 1.0, "Success@2": 1.0, "lambda@1": 0.001, "lambda@2": 0.002},
        {"run": "good", "query": "q3", "Success@1": None, "Success@2": None, "lambda@1": None, "lambda@2": None},
    ]


def test_the_dataframe_has_a_row_for_each_figure(report) -> None:
    frame = report.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 2 * 2 * 4
    picked = frame[(frame.run == "good") & (frame.measure == "Success@1")].iloc[0]
    assert picked.value == report["good", "Success@1"].value


@pytest.mark.parametrize("runs", [{"q1": ["a"], "q2": ["c"]}, {"run": {"q1": ["a"], "q2": ["c"]}}])
def test_one_run_needs_no_name(runs) -> None:
    report = rs.evaluate(QRELS, runs, scale="utility", measures=["Success"], depths=[1])
    assert report["run", "Success@1"].value == 1.0
    assert report["Success@1"].n == 2


def test_a_possible_range_within_the_last_digit_is_one_figure() -> None:
    labels = {f"q{i}": {f"d{j}": 1 for j in range(600)} for i in range(10)}
    del labels["q0"]["d5"]
    runs = {query: [f"d{j}" for j in range(500)] for query in labels}
    report = rs.evaluate(labels, runs, scale="utility", measures=["Harm@500"], bootstrap=None)
    assert report["Harm@500"].possible == pytest.approx((0.9998, 1.0))
    assert " to 1.000" not in report.to_text(details=True)
