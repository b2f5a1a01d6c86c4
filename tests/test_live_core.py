"""What hangs on the monitor: alarms, the trace and back, and grades in the background. No framework needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import rag_selectivity as rs
from rag_selectivity.live import monitor as monitor_module
from rag_selectivity.live.alerts import Alarm
from rag_selectivity.live.calls import CallTree, Kind, Passages
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from tests.judge_server import KEY, JudgeServer, Reply, texts

pytestmark = pytest.mark.inside

LABELS = {"good?": {"a": 5, "b": 4, "j": 1}, "bad?": {"a": 5, "j": 1}}


@pytest.fixture(autouse=True)
def _measure_at_once(monkeypatch) -> None:
    monkeypatch.setattr(monitor_module, "_BATCH", 1)
    monkeypatch.setattr(Monitor, "_measure_later", lambda monitor, batch: monitor._measuring.measure(batch))


# -- alarms ----------------------------------------------------------------------------------------


def test_an_alarm_when_it_begins_and_when_it_ends(caplog, monkeypatch) -> None:
    monkeypatch.setattr(monitor_module, "_BATCH", 50)
    heard: list[Alarm] = []
    conditions = {"Harm > .4", "BoR < 3", "tokens > 50", "p95(tokens) >= 90"}
    monitor = Monitor(LABELS, scale="utility", corpus_size=100, alerts=sorted(conditions), on_alert=heard.append)

    def good() -> None:
        for _ in range(400):
            monitor.record(Retrieval("good?", ["a"], tokens=10))

    good()
    assert heard == []
    for _ in range(150):
        monitor.record(Retrieval("bad?", ["j", "x"], tokens=100))
    assert {alarm.condition for alarm in heard if alarm.raised} == conditions
    assert len(heard) == len(conditions)
    for alarm in heard:
        assert 2 < alarm.n <= 150, alarm
        assert alarm.evidence >= 100_000
        assert alarm.since > 1e9
    harm = next(alarm for alarm in heard if alarm.condition == "Harm > .4")
    assert harm.value == 0.5
    assert "Harm > .4: now" in caplog.text
    good()
    ended = heard[len(conditions) :]
    assert {alarm.condition for alarm in ended} == conditions
    assert not any(alarm.raised for alarm in ended)


def test_the_window_s_figures_are_those_of_a_report_over_it() -> None:
    monitor = Monitor(
        LABELS, scale="utility", corpus_size=100, alerts=["BoR < -9", "lambda > 99", "RA-nWG@1 < -1"], window=6
    )
    for i in range(20):
        monitor.record(Retrieval("good?" if i % 3 else "bad?", ["a", "b", "x"][: 1 + i % 3]))
    last = Monitor(LABELS, scale="utility", corpus_size=100)
    for i in range(14, 20):
        last.record(Retrieval("good?" if i % 3 else "bad?", ["a", "b", "x"][: 1 + i % 3]))
    report = last.report()
    for name, value in monitor._alerts.values().items():
        assert value == pytest.approx(report[name].value), name


def test_a_listener_that_fails_costs_nothing(caplog) -> None:
    def fails(alarm: Alarm) -> None:
        raise ValueError("the pager is off")

    monitor = Monitor(LABELS, scale="utility", alerts=["failed > 0"], window=1, on_alert=fails)
    monitor.record(Retrieval("good?", [], failed=True))
    monitor.record(Retrieval("good?", ["a"]))
    assert monitor.traffic.retrievals == 2
    assert "on_alert failed" in caplog.text


def test_open_telemetry_sees_the_window_and_the_alarms() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    metrics.set_meter_provider(sdk.MeterProvider([reader]))
    monitor = Monitor(LABELS, scale="utility", alerts=["Harm > .4"], window=2, name="mine")
    for _ in range(50):
        monitor.record(Retrieval("bad?", ["j"]))
    found = {
        metric.name: [
            (point.value, dict(point.attributes))
            for point in metric.data.data_points
            if point.attributes["monitor"] == "mine"
        ]
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert found["rag_selectivity.window"] == [(1.0, {"figure": "Harm", "monitor": "mine"})]
    assert found["rag_selectivity.alarms"] == [(1, {"condition": "Harm > .4", "monitor": "mine"})]


# -- trace -----------------------------------------------------------------------------------------


def traced(path, **options) -> Monitor:
    monitor = Monitor(LABELS, scale="utility", corpus_size=100, trace=path, **options)
    rows = [
        Retrieval("good?", ["a", "j"], pool=["j", "a", "b"], texts={"a": "A", "b": "B", "j": "J"}, seconds=0.25),
        Retrieval("how bad?", ["j"], query_id="bad?", tokens=9, texts={"j": "J"}),
        Retrieval("good?", ["b", "x", "a"], texts={"b": "B", "x": "X", "a": "A"}),
        Retrieval("unknown", ["a"]),
    ]
    for row in rows:
        monitor.record(row)
    monitor.close()
    return monitor


def cli(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rag_selectivity", *map(str, words)], capture_output=True, text=True, check=False
    )


def test_a_trace_read_back_gives_the_figures_of_the_monitor(tmp_path) -> None:
    live = traced(tmp_path / "t.jsonl").report()
    (tmp_path / "qrels.trec").write_text(
        "".join(f"{q} 0 {d} {g}\n" for q, row in LABELS.items() for d, g in row.items())
    )
    measures = [word for name in ("BoR", "RA-nWG", "PROC", "%PROC", "Harm") for word in ("--measure", name)]
    done = cli(
        *("evaluate", "--qrels", tmp_path / "qrels.trec", "--trace", tmp_path / "t.jsonl", "--scale", "utility"),
        *("--corpus-size", 100, "--format", "json", *measures),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["runs"]["t"]
    assert found["queries"]["evaluated"] == 3
    assert set(live.depths) == {1, 2}
    for key, cell in live.runs["live"].estimates.items():
        name, _, depth = key.partition("@")
        stored = found["measures"].get(key if depth else f"{name}@3")
        if stored is not None and name != "Judged":
            expected = cell.to_dict()
            for part in ("value", "low", "high"):
                assert stored[part] == pytest.approx(expected[part]), key


def test_grading_a_trace(tmp_path) -> None:
    traced(tmp_path / "t.jsonl", trace_texts=True)
    with JudgeServer(lambda request, n: Reply(json.dumps({"reason": "r", "grade": 3}))) as server:
        words = ("grade", "--trace", tmp_path / "t.jsonl", "--store", tmp_path / "s.db", "--model", "m")
        done = subprocess.run(
            [sys.executable, "-m", "rag_selectivity", *map(str, words), "--base-url", server.url],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "OPENAI_API_KEY": KEY},
        )
        asked = {(texts(request)["question"], texts(request)["passage"]) for request in server.bodies}
    assert done.returncode == 0, done.stderr
    assert asked == {("good?", text) for text in "ABJX"} | {("how bad?", "J"), ("unknown", "A")}
    assert rs.read_qrels(tmp_path / "s.db").to_dict() == {
        "good?": dict.fromkeys("abjx", 3),
        "bad?": {"j": 3},
        "unknown": {"a": 3},
    }
    traced(tmp_path / "bare.jsonl")
    done = cli("grade", "--trace", tmp_path / "bare.jsonl", "--store", tmp_path / "s.db", "--model", "m", "--dry-run")
    assert done.returncode == 2
    assert "was traced without texts" in done.stderr


def test_a_full_disk_ends_the_trace_and_nothing_else(tmp_path, caplog) -> None:
    monitor = Monitor(LABELS, scale="utility", trace=tmp_path / "t.jsonl")

    (tmp_path / "t.jsonl").unlink()
    (tmp_path / "t.jsonl").symlink_to("/dev/full")
    for _ in range(3):
        monitor.record(Retrieval("good?", ["a"]))
    assert monitor.report()["Success@1"].n == 3
    assert caplog.text.count("No space left") == 1
    with pytest.raises(rs.InputError, match="cannot be written"):
        Monitor(LABELS, scale="utility", trace=tmp_path / "missing" / "t.jsonl")


# -- retrievals that fail --------------------------------------------------------------------------


def recorded(*steps: tuple) -> list[tuple[str, tuple[str, ...], bool]]:
    found: list[Retrieval] = []
    calls = CallTree(found.append, at_once=True)
    for name, *arguments in steps:
        getattr(calls, name)(*arguments[:3], **({"query": arguments[3]} if len(arguments) > 3 else {}))
    assert len(calls) == 0
    return [(each.query, tuple(each.shown), each.failed) for each in found]


def test_a_retrieval_under_way_when_the_call_around_it_fails_was_cancelled() -> None:
    steps = [
        ("begin", "chain", None, Kind.OTHER),
        ("begin", "step", "chain", Kind.OTHER),
        ("begin", "outer", "step", Kind.RETRIEVE, "q"),
        ("begin", "inner", "outer", Kind.RETRIEVE, "q"),
    ]
    assert recorded(*steps, ("fail", "chain")) == [("q", (), True)]
    assert recorded(*steps, ("fail", "step"), ("end", "inner"), ("end", "chain")) == [("q", (), True)]
    # A retriever that does without a part of it has not failed.
    assert recorded(
        *steps, ("fail", "inner"), ("end", "outer", Passages(("d",))), ("end", "step"), ("end", "chain")
    ) == [("q", ("d",), False)]


def test_empty_passages_and_nan_scores_are_counted_and_named() -> None:
    monitor = Monitor({"q1": {"d1": 5, "junk": 1}}, scale="utility")
    found: list[Retrieval] = []
    calls = CallTree(found.append)
    calls.begin("r", None, Kind.RETRIEVE, query="q1")
    calls.end("r", Passages.of(["d1", "x", "y"], ["text", "", "  \n"], scores=[0.5, float("nan"), None]))
    monitor.record(found[0])
    assert (monitor.traffic.empty_passages, monitor.traffic.nan_scores) == (2, 1)
    notes = str(monitor.report().runs["live"].notes)
    assert "2 of the passages shown have no text" in notes
    assert "1 of the passages shown have NaN as their score" in notes
    assert "no corpus size N" in monitor.report().absent["BoR"]
