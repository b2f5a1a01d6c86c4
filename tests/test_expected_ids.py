"""PROC, %PROC and RA-nWG for lists of expected ids, which have no grades: every expected id is decisive."""

import asyncio
from typing import Any

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract

EXPECTED = {"who?": ["a", "b"]}
POOL = {"who?": ["a", "x", "c", "b"]}
SHOWN = {"who?": ["a", "x"]}
MEASURES = ["PROC", "%PROC", "RA-nWG"]
OPTIONS: dict[str, Any] = {"measures": MEASURES, "depths": [2], "bootstrap": None}
RIGHT = {"PROC@2": 1.0, "%PROC@2": 0.5, "RA-nWG@2": 0.5}


def check(report: rs.Report) -> None:
    assert {key: report[key].value for key in RIGHT} == RIGHT


def test_evaluate() -> None:
    check(rs.evaluate(EXPECTED, {"r": SHOWN}, pool=POOL, **OPTIONS))
    # Grades that differ are no expected ids: they have a scale of their own.
    with pytest.raises(rs.InputError, match="PROC needs grades 1 to 5"):
        rs.evaluate({"who?": {"a": 1, "b": 0}}, {"r": SHOWN}, pool=POOL, **OPTIONS)


def test_texts_say_what_is_known_of_expected_ids() -> None:
    expected = {f"q{i}": [f"d{i}"] for i in range(30)}
    lists = {query: ["x", "y", passage, "z"] for query, (passage,) in expected.items()}
    report = rs.evaluate(expected, {"r": lists}, measures=["RA-nWG", "T"], depths=[4], corpus_size=99)
    text = " ".join(f"{report} {report.details()} {report.to_html()}".split())
    assert "Only the 30 expected passages are known; all others count as not relevant." in text
    assert "Only expected passages are known: the other 75.0% of what stands in the top 4 count as not relevant" in text
    for meaningless in ("of unknown origin", "By whom the labels are", "are judged", "cover 25"):
        assert meaningless not in text, meaningless
    graded = {query: {passage: 1, "x": 0} for query, (passage,) in expected.items()}
    several = {query: {passage: 1, "y": 2} for query, (passage,) in expected.items()}
    for labels in (graded, several):
        assert "expected passage" not in rs.evaluate(labels, {"r": lists}, corpus_size=99, scale="trec").details()


def test_monitor() -> None:
    monitor = rs.Monitor(EXPECTED, measures=MEASURES, depths=[2])
    monitor.record(rs.Retrieval("who?", SHOWN["who?"], pool=POOL["who?"]))
    check(monitor.report())


def test_a_scorer_of_one_query() -> None:
    for labels, relevant in ((EXPECTED, None), (None, EXPECTED["who?"])):
        scorer = rs.single.QueryScorer("RA-nWG@2", labels=labels)
        assert scorer.figures(SHOWN["who?"], "who?", relevant=relevant)[0].value == 0.5


def test_ragas() -> None:
    pytest.importorskip("ragas")
    from rag_selectivity_ragas import RowFigures, SelectivityMetric, selectivity

    row = {"user_input": "who?", "retrieved_context_ids": SHOWN["who?"]}
    own = {**row, "reference_context_ids": EXPECTED["who?"]}
    check(selectivity([row], EXPECTED, pool=POOL, **OPTIONS))
    check(selectivity([own], pool=POOL, **OPTIONS))
    assert asyncio.run(SelectivityMetric("PROC@2", pool=POOL).ascore(**own)).value == 1
    assert asyncio.run(SelectivityMetric("PROC@2", EXPECTED, pool=POOL).ascore(**row)).value == 1
    for labels, each in ((EXPECTED, row), (None, own)):
        figures = RowFigures(labels, measures=["Success", "RA-nWG"], depths=[2]).score(**each)
        assert figures == {"Success@2": 1.0, "RA-nWG@2": 0.5}


def test_labels_that_are_all_1_behave_as_expected_ids(tmp_path) -> None:
    expected = {f"q{i}": [f"d{i}"] for i in range(6)}
    ones = {query: dict.fromkeys(ids, 1) for query, ids in expected.items()}
    (path := tmp_path / "ones.trec").write_text("".join(f"{q} 0 {d} 1\n" for q, ids in expected.items() for d in ids))
    run = {f"q{i}": [f"d{i}" if i < 3 else "x"] for i in range(6)}
    pool = {f"q{i}": ["x", f"d{i}" if i < 5 else "y"] for i in range(6)}
    reports = [
        rs.evaluate(labels, {"run": run}, pool={"run": pool}, measures=["PROC", "%PROC"], depths=[1], bootstrap=None)
        for labels in (expected, ones, path)
    ]
    assert [report["PROC@1"].value for report in reports] == [pytest.approx(5 / 6)] * 3
    assert [report.diagnosis("run", 1).counts for report in reports] == [reports[0].diagnosis("run", 1).counts] * 3
    # With the scale, a 1 is junk.
    junk = rs.evaluate(ones, {"run": run}, measures=["Harm"], scale="utility", depths=[1], bootstrap=None)
    assert junk["Harm@1"].value == 0.5
