"""A labelled question without a retrieval: a failure where it was asked, named where it was not."""

import json

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app

pytestmark = pytest.mark.contract

LABELS = {f"question {n}?": {f"d{n}": 1} for n in range(10)}
LISTS = {question: [f"x{n}", f"d{n}", "y"] for n, question in enumerate(LABELS)}


def test_a_question_that_was_asked_without_a_retrieval_is_a_failure() -> None:
    monitor = rs.Monitor(LABELS, corpus_size=100)
    for number, question in enumerate(LABELS):
        with monitor.request(query_id=question):
            if number < 6:
                monitor.record(rs.Retrieval(question, LISTS[question]))
    monitor.asked("nobody labelled this")
    report = monitor.report()
    runs = {"agent": {question: LISTS[question] for question in list(LABELS)[:6]}}
    whole = rs.evaluate(LABELS, runs, corpus_size=100, depths=[3])
    assert report["Success@3"].value == whole["Success@3"].value == 0.6
    assert (report["Success@3"].n, report["Success"].value) == (10, 0.6)
    says = "4 labelled questions were asked and nothing was shown for them (question 6?, question 7?, question 8?, …)"
    text = " ".join(str(report).split())
    assert f"{says}: counted as empty lists" in text
    assert "4 of 10 retrievals failed, came back empty or were not made" in text
    assert len(monitor.retrievals) == 10
    assert (monitor.traffic.retrievals, monitor.traffic.empty) == (6, 0)


def test_a_question_that_nobody_asked_is_named_and_does_not_count() -> None:
    monitor = rs.Monitor(LABELS, corpus_size=100)
    for question in list(LABELS)[:8]:
        monitor.record(rs.Retrieval(question, LISTS[question]))
    report = monitor.report()
    assert (report["Success@3"].value, report["Success@3"].n) == (1.0, 8)
    note = "no retrieval was seen for 2 labelled queries (question 8?, question 9?): not counted"
    assert note in " ".join(str(report).split())


def test_a_later_retrieval_answers_a_question() -> None:
    monitor = rs.Monitor(LABELS, corpus_size=100)
    first, second = list(LABELS)[:2]
    for question in (first, second):
        monitor.asked(question)
    message = r"2 labelled questions were asked \(question 0\?, question 1\?\), and no retr"
    with pytest.raises(rs.InputError, match=message):
        monitor.report()
    monitor.record(rs.Retrieval(first, LISTS[first]))
    monitor.asked(first)
    assert monitor.report()["Success"].value == 0.5


def test_a_trace_holds_what_was_asked_in_vain(tmp_path) -> None:
    monitor = rs.Monitor(LABELS, corpus_size=100, trace=tmp_path / "trace.jsonl", trace_texts=True)
    first, second = list(LABELS)[:2]
    monitor.record(rs.Retrieval(first, LISTS[first]))
    monitor.asked(second)
    monitor.close()
    monitor.close()
    lines = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["query"], line["shown"]) for line in lines] == [(first, LISTS[first]), (second, [])]
    rows = "".join(f'{{"query_id": "{q}", "passage_id": "{d}", "grade": 1}}\n' for q, of in LABELS.items() for d in of)
    (tmp_path / "labels.jsonl").write_text(rows, encoding="utf-8")
    words = [str(tmp_path / "labels.jsonl"), str(tmp_path / "trace.jsonl"), "--corpus-size", "100"]
    screen = " ".join(CliRunner().invoke(app, ["evaluate", *words]).stdout.split())
    assert "At K = 3" in screen  # as the report of the monitor
    assert "Success@3 0.500" in screen
    unseen = "no retrieval was seen for 8 labelled queries (question 2?, question 3?, question 4?, …): not counted"
    assert unseen in screen


def _span(number: int, name: str, **attributes: object) -> dict[str, object]:
    value = [{"key": key.replace("__", "."), "value": {"stringValue": str(each)}} for key, each in attributes.items()]
    return {"traceId": f"{number + 1:032x}", "spanId": f"{number + 1:016x}", "name": name, "attributes": value}


def test_a_trace_of_spans_without_a_retriever_is_a_failed_question(tmp_path) -> None:
    spans = []
    for number, question in enumerate(list(LABELS)[:5]):
        found = {"openinference__span__kind": "RETRIEVER", "retrieval__documents__0__document__id": f"d{number}"}
        spans.append(_span(number, "agent", input__value=question, **(found if number else {})))
    (tmp_path / "spans.json").write_text(json.dumps(spans), encoding="utf-8")
    from rag_selectivity.live.trace import Trace

    trace = Trace.read(tmp_path / "spans.json", rs.Qrels.of(LABELS))
    assert [len(each.shown) for each in trace.retrievals.values()] == [1, 1, 1, 1, 0]
    assert any("1 labelled question was asked and nothing was shown for it (question 0?)" in n for n in trace.notes)


def test_a_model_that_is_shown_no_tools_for_a_labelled_question_fails_it() -> None:
    monitor = rs.ToolMonitor({"weather?": ["forecast"], "mail?": ["send"], "time?": ["now"]}, catalogue=10)
    monitor.call("weather?", {"forecast": 90}, ["forecast"])
    monitor.called_without("bind_tools", None, "mail?")
    report = monitor.report()
    assert (report.selection["Success"].value, report.selection["Success"].n) == (0.5, 2)
    assert (report.choice.calls, report.choice.right.value, report.choice.none.value) == (2, 0.5, 0.5)
    text = " ".join(str(report).split())
    assert "1 labelled question was asked and nothing was shown for it (mail?)" in text
    assert "no model call was seen for 1 labelled query (time?): not counted" in text
