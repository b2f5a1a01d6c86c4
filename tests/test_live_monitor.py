"""The live monitor: equal to `evaluate` on the same retrievals, whatever the batches; bounded; deaf to bad input."""

import asyncio
import math
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from fractions import Fraction
from math import comb, isnan, log2
from typing import Any

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity import Monitor, Retrieval
from rag_selectivity.live.trace import Trace
from rag_selectivity.results.stored import read_report

pytestmark = pytest.mark.contract

MEASURES = ["Success", "BoR", "BoR_max", "lambda", "RA-nWG", "PROC", "%PROC", "Harm", "Judged"]
GRADES = {"good?": {"a": 5, "b": 4, "j": 1}, "bad?": {"a": 5, "j": 1}}
QUESTIONS = {f"question {i}?": {f"d{i}": 5, f"e{i}": 4, f"j{i}": 1} for i in range(40)}


def test_a_report_is_about_what_was_shown(tmp_path):
    """The last depth is the longest list of the window, and the first screen is about it."""
    monitor = Monitor({f"q{n}": {f"d{n}": 1} for n in range(12)}, corpus_size=1024)
    monitor.record(Retrieval("nobody labelled this", [f"x{n}" for n in range(9)]))
    for n in range(12):
        monitor.record(Retrieval(f"q{n}", [f"x{n}", f"y{n}", f"d{n}"]))
    report = monitor.report()
    assert report.depths == (1, 2, 3)
    assert report["Success@3"].value == report["Success"].value == 1.0
    assert report["BoR@3"].value == report["BoR"].value == pytest.approx(log2(1024 / 3))
    screen = str(report)
    assert "At K = 3\n" in screen
    assert "K: 3 as shown; 3 or more is advised" in screen
    assert "Success@3 1.000" in screen
    report.save(tmp_path / "live.json")
    assert "At K = 3, 12 queries\n" in str(read_report(tmp_path / "live.json"))
    chosen = Monitor({"q": {"d": 1}}, corpus_size=1024, depths=[2], measures=["BoR", "Success@1"])
    chosen.record(Retrieval("q", ["x", "d", "y"]))
    assert chosen.report().depths == (1, 2)


def world(queries: int, seed: int = 0):
    """Labels, final lists and pools of a made-up retriever with a reranker."""
    rng = np.random.default_rng(seed)
    labels, finals, pools = {}, {}, {}
    for q in range(queries):
        judged = rng.choice(200, size=12, replace=False).tolist()
        labels[f"q{q}"] = {f"d{d}": int(grade) for d, grade in zip(judged, rng.integers(1, 6, 12), strict=True)}
        others = rng.integers(0, 200, 12).tolist()
        pool = list(dict.fromkeys(f"d{d}" for d in rng.permutation([*judged[:8], *others])))
        pools[f"q{q}"], finals[f"q{q}"] = pool, pool[: int(rng.integers(1, 11))]
    return labels, finals, pools


def watched(labels, finals, pools=None, batch: int = 0, **options: Any) -> Monitor:
    """A monitor of these lists that measures so many at once."""
    monitor = Monitor(labels, scale="utility", corpus_size=200, depths=[1, 2, 5, 10], **options)
    for number, (query, shown) in enumerate(finals.items(), 1):
        monitor.record(Retrieval(query, shown, pool=pools[query] if pools else None))
        if batch and number % batch == 0:
            monitor.flush()
    return monitor


def evaluated(labels, finals, pools=None) -> rs.Report:
    return rs.evaluate(
        labels,
        {"live": finals},
        pool=pools,
        corpus_size=200,
        scale="utility",
        measures=MEASURES,
        depths=[1, 2, 5, 10],
        policy=rs.Policy(short_lists="returned"),
    )


# -- figures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad_from", [0, 30, 60])
def test_placebos_are_those_of_evaluate_whichever_universe_counts_at_the_end(bad_from: int) -> None:
    labels, finals, _ = world(60)
    # Labels of the lowest grade outside of the lists decide that grades are shuffled among the labels.
    labels = {
        query: {passage: grade if i >= bad_from else max(2, grade) for passage, grade in row.items()}
        for i, (query, row) in enumerate(labels.items())
    }
    live, whole = watched(labels, finals, batch=7, measures=MEASURES).report(), evaluated(labels, finals)
    for key in ("BoR@5", "RA-nWG@5", "PROC@10"):
        assert live[key].placebo == pytest.approx(whole[key].placebo), key
        assert live[key].above_placebo == pytest.approx(whole[key].above_placebo), key
    # In the corpus, shuffling is what BoR compares with.
    assert (abs(live["BoR@5"].placebo) < 1e-9) == (bad_from == 60)


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("batch", [1, 7, 256])
def test_the_figures_are_those_of_evaluate(pooled: bool, batch: int) -> None:
    labels, finals, pools = world(60)
    live = watched(labels, finals, pools if pooled else None, batch, measures=MEASURES).report()
    whole = evaluated(labels, finals, pools if pooled else None)
    for key, expected in whole.runs["live"].estimates.items():
        found = live[key]
        wanted = pytest.approx((expected.value, expected.low, expected.high), rel=1e-12, nan_ok=True)
        assert (found.value, found.low, found.high) == wanted, key
        assert (found.n, found.n_total) == (expected.n, expected.n_total)
    ours, theirs = ({row["query"]: row for row in report.per_query()} for report in (live, whole))
    assert ours["q7"]["RA-nWG@5"] == theirs["q7"]["RA-nWG@5"]


def test_without_a_depth_it_is_what_was_shown() -> None:
    monitor = Monitor({"a": {"x": 1, "y": 1}, "b": {"z": 1}, "c": {"w": 1}}, corpus_size=50)
    monitor.record(Retrieval("a", ["x", "1", "2"], tokens=30, seconds=0.5))
    monitor.record(Retrieval("b", [str(i) for i in range(10)], tokens=100, seconds=1.5))
    monitor.record(Retrieval("c", []))
    chance = (1 - Fraction(comb(48, 3), comb(50, 3)) + Fraction(10, 50) + Fraction(6, 50)) / 3
    assert monitor.report()["BoR"].value == pytest.approx(log2(Fraction(1, 3) / chance), rel=1e-13)
    assert monitor.report()["lambda"].value == pytest.approx((3 * 2 + 10 + 6) / 50 / 3)
    traffic = monitor.traffic
    assert (traffic.retrievals, traffic.empty, traffic.tokens, traffic.seconds) == (3, 1, 65, 1)
    assert "BoR@20" not in monitor.report().runs["live"].estimates
    assert '(short_lists="returned"), those without a depth of all of it' in monitor.report().runs["live"].notes[0]
    assert "1 retrieval returned nothing" in monitor.report().details()


def test_utility_as_shown_compares_with_the_best_set_of_that_size() -> None:
    monitor = Monitor({"q": dict(zip("abcdefgh", [5, 4, 4, 3, 3, 3, 2, 1], strict=True))}, scale="utility")
    monitor.record(Retrieval("q", ["b", "g"]))
    report = monitor.report()
    assert report["RA-nWG"].value == pytest.approx(0.25 / 1.25)
    assert report["Harm"].value == 0.5


def test_the_report_is_of_the_last_retrievals_that_are_kept() -> None:
    labels, finals, pools = world(300, seed=4)
    monitor = watched(labels, finals, pools, kept=100)
    last = watched(labels, dict(list(finals.items())[-100:]), pools)
    assert [each.query for each in monitor.retrievals] == list(finals)[-100:]
    report, alone = monitor.report(), last.report()
    assert repr(report.runs["live"].estimates) == repr(alone.runs["live"].estimates)
    assert "figures over the last 100 retrievals that were measured" in report.runs["live"].notes
    assert monitor.traffic.retrievals == 300


def test_a_query_that_is_called_like_a_repeated_one_counts() -> None:
    monitor, passages = Monitor({"q": {"d": 1}, "q (2)": {"d": 1}}), [""]
    for query, passages[0] in (("q", "d"), ("q", "x"), ("q (2)", "d")):
        # The application's own list, which it goes on to use.
        monitor.record(Retrieval(query, passages))
    assert (monitor.report()["Success"].value, monitor.report()["Success"].n_total) == (2 / 3, 3)


def test_retrievals_of_one_query_are_one_cluster() -> None:
    labels = {f"q{i}": {"d": 1} for i in range(30)}
    lists = {query: ["d"] if i % 3 else ["x"] for i, query in enumerate(labels)}
    options = {"corpus_size": 100, "measures": ["Success", "BoR"], "depths": [1]}
    once, often = Monitor(labels, **options), Monitor(labels, **options)
    for times, monitor in ((1, once), (20, often)):
        for query, passages in list(lists.items()) * times:
            monitor.record(Retrieval(query, passages))
    one, other = once.report(), often.report()
    assert (other["Success@1"].n, other.runs["live"].evaluated) == (600, 30)
    assert other.settings["clusters"] == 30
    # Asking again tells nothing about other queries: the interval is about as wide.
    widths = [each["Success@1"].high - each["Success@1"].low for each in (one, other)]
    assert widths[1] == pytest.approx(widths[0], rel=0.15)


def test_junk_in_any_label_makes_harm_known_whatever_the_batches() -> None:
    monitor = Monitor({"clean": {"a": 5}, "dirty": {"b": 4, "j": 1}}, scale="utility")
    monitor.record(Retrieval("clean", ["a"]))
    assert (monitor.report()["Harm"].value, monitor.report()["Harm"].n) == (0, 1)
    monitor.record(Retrieval("dirty", ["j", "b"]))
    assert (monitor.report()["Harm"].value, monitor.report()["Harm"].n) == (0.25, 2)
    clean = Monitor({"clean": {"a": 5}}, scale="utility")
    clean.record(Retrieval("clean", ["a"]))
    assert isnan(clean.report()["Harm"].value)
    assert "no grade ≤ 2" in clean.report()["Harm"].to_dict()["reason"]


def test_one_retrieval_that_cannot_be_measured_costs_no_other() -> None:
    monitor = Monitor({"good": {"a": 1}, "full": {f"d{i}": 1 for i in range(60)}}, corpus_size=50)
    for query in ("good", "full", "good", "good"):
        monitor.record(Retrieval(query, ["a"]))
    report = monitor.report()
    assert report["Success@1"].n == 3
    assert any("1 retrieval could not be measured" in note for note in report.runs["live"].notes)
    small = Monitor({"good": {"a": 1}}, corpus_size=2)
    small.record(Retrieval("good", ["a", "b", "c"]))
    with pytest.raises(rs.InputError, match=r"3 different passages were shown, .* \(N = 2\): N counts all chunks"):
        small.report()


def test_empty_passages_and_nan_scores_are_counted_and_named() -> None:
    monitor = Monitor({"q1": {"d1": 5, "junk": 1}}, scale="utility")
    monitor.record(Retrieval("q1", ["d1", "x", "y"], empty_passages=2, nan_scores=1))
    assert (monitor.traffic.empty_passages, monitor.traffic.nan_scores) == (2, 1)
    notes = str(monitor.report().runs["live"].notes)
    assert "2 passages shown had no text" in notes
    assert "1 passage shown had NaN as the score" in notes
    assert "number of chunks in your index" in monitor.report().absent["BoR"]


# -- threads and processes -------------------------------------------------------------------------


def test_more_retrievals_than_may_wait_are_all_measured() -> None:
    monitor = Monitor({"q": {"d": 1}}, corpus_size=100, kept=10_000, measures=["Success"], depths=[1])
    for i in range(10_000):
        monitor.record(Retrieval("q", ["d" if i % 4 else "x"]))
    estimate = monitor.report()["Success@1"]
    assert (estimate.value, estimate.n_total) == (0.75, 10_000)


def test_what_waits_at_the_exit_is_measured() -> None:
    program = (
        "from rag_selectivity import Monitor, Retrieval\n"
        "m = Monitor({'q': {'d': 1}}, corpus_size=9, alerts=['Success < .9'], ids='exact',\n"
        "            on_alert=lambda alarm: print(alarm.condition))\n"
        "for _ in range(600): m.record(Retrieval('q', ['x']))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "Success < .9\n", run


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_process_measures_its_own() -> None:
    monitor = Monitor({"q": {"d": 1}}, corpus_size=1000)
    for _ in range(639):
        monitor.record(Retrieval("q", ["d"]))
    is_recorded, may_go_on = threading.Event(), threading.Event()

    class Slow(str):
        def __hash__(self) -> int:
            is_recorded.set()
            may_go_on.wait()
            return super().__hash__()

    # A thread that the child does not have is in the middle of it.
    thread = threading.Thread(target=monitor.record, args=[Retrieval(Slow("q"), ["d"])])
    thread.start()
    is_recorded.wait()
    child = os.fork()
    if not child:
        code = 1
        signal.alarm(60)
        try:
            monitor.record(Retrieval("q", ["d"]))
            code = 0 if monitor.report()["Success"].n else 2
        finally:
            os._exit(code)
    may_go_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert monitor.report()["Success"].n == 640


# -- requests, arms and outcomes -------------------------------------------------------------------


def test_a_sample_rate_measures_a_random_share_and_counts_all(tmp_path) -> None:
    options = {"scale": "utility", "corpus_size": 100, "depths": [1, 2, 3], "trace": tmp_path / "t.jsonl"}
    monitor, rng = Monitor(QUESTIONS, sample_rate=0.2, **options), np.random.default_rng(1)
    for i in rng.integers(0, 40, 2000).tolist():
        monitor.record(Retrieval(f"question {i}?", [f"d{i}"] if rng.random() < 0.7 else ["x"], tokens=10))
    monitor.close()
    report, traffic = monitor.report(), monitor.traffic
    assert (traffic.retrievals, traffic.labelled, traffic.tokens) == (2000, 2000, 10)
    assert abs(traffic.sampled - 400) < 5 * math.sqrt(2000 * 0.2 * 0.8)
    assert report["Success@1"].n_total == traffic.sampled == len((tmp_path / "t.jsonl").read_text().splitlines())
    assert report["Success@1"].low < 0.7 < report["Success@1"].high
    assert f"({traffic.sampled:,}) was taken for the figures" in " ".join(report.details().split())


def test_outcomes_at_once_late_and_changed(tmp_path) -> None:
    monitor = Monitor(QUESTIONS, scale="utility", trace=tmp_path / "t.jsonl", alerts=["outcome < .1"])
    for _ in range(2):
        monitor.record(Retrieval("question 0?", ["d0"], id="r0", arm="a", outcome=True))
    monitor.record(Retrieval("question 1?", ["x"], id="r1", arm="b"))
    monitor.record(Retrieval("question 2?", ["d2"], id="r1"))
    assert monitor.outcome("r1", 0.25)
    assert monitor.outcome("r1", 0.75)
    assert not monitor.outcome("of another process", False)
    monitor.close()
    traffic = monitor.traffic
    assert (traffic.outcomes, traffic.outcome, traffic.lost_outcomes) == (2, 0.875, 1)
    assert monitor.window == {"outcome": 0.625}
    assert 0 <= traffic.outcome_low < 0.875 < traffic.outcome_high <= 1
    assert "outcome 0.875" in " ".join(monitor.report().details().split())
    found = [(each.arm, each.outcome) for each in Trace.read(tmp_path / "t.jsonl").retrievals.values()]
    assert found == [("a", 1.0), ("a", 1.0), ("b", 0.75), (None, 0.75)]


def test_a_request_names_what_the_framework_does_not() -> None:
    monitor = Monitor(QUESTIONS, scale="utility")

    async def serve(i: int) -> None:
        with monitor.request(f"r{i}", arm="a" if i % 2 else "b", query_id=f"question {i}?"):
            await asyncio.sleep(0.001 * (i % 3))
            await asyncio.to_thread(monitor.record, Retrieval("worded anew", [f"d{i}"]))

    async def all_of_them() -> None:
        await asyncio.gather(*map(serve, range(40)))

    asyncio.run(all_of_them())
    monitor.record(Retrieval("outside", ["x"]))
    report = monitor.report()
    assert (report["Success@1"].n_total, report["Success@1"].value) == (40, 1.0)
    assert {(each.id, each.arm) for each in monitor.retrievals} == {(f"r{i}", "a" if i % 2 else "b") for i in range(40)}
    assert all(monitor.outcome(f"r{i}", outcome) for outcome in (0.1, 0) for i in range(40))
    assert monitor.traffic.outcome == 0
    assert all(monitor.outcome(f"r{i}", i % 2) for i in range(40))
    assert monitor.traffic.outcome == 0.5
    with pytest.raises(rs.InputError, match="arm must be a text, got 3"), monitor.request(arm=3):  # type: ignore[arg-type]
        pass


def test_a_request_reaches_the_retrievals_of_langchain() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableParallel
    from rag_selectivity_langchain import SelectivityCallback

    class Search(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
            return [Document(id="d0", page_content="text")]

    callback = SelectivityCallback(QUESTIONS, scale="utility", identity="id")
    chain, config = RunnableParallel(one=Search(), two=Search()), {"callbacks": [callback]}

    async def serve(i: int) -> None:
        with callback.monitor.request(f"r{i}", arm=f"arm {i}", query_id="question 0?"):
            await chain.ainvoke("worded anew", config=config)

    async def two_at_once() -> None:
        await asyncio.gather(serve(0), serve(1))

    asyncio.run(two_at_once())
    with callback.monitor.request(arm="batch", query_id="question 0?"):
        chain.batch(["one way", "or another"], config=config)
    assert Counter(each.arm for each in callback.monitor.retrievals) == {"arm 0": 2, "arm 1": 2, "batch": 4}
    assert callback.monitor.outcome("r1", True)


# -- alarms ----------------------------------------------------------------------------------------


def test_an_alarm_when_it_begins_and_when_it_ends(caplog) -> None:
    heard: list[Any] = []
    conditions = {"Harm > .4", "BoR < 3", "tokens > 50", "p95(tokens) >= 90"}
    monitor = Monitor(GRADES, scale="utility", corpus_size=100, alerts=sorted(conditions), on_alert=heard.append)

    def record(count: int, query: str, shown: list[str], tokens: int) -> None:
        for _ in range(count):
            monitor.record(Retrieval(query, shown, tokens=tokens))
        monitor.flush()

    record(400, "good?", ["a"], 10)
    assert heard == []
    record(150, "bad?", ["j", "x"], 100)
    assert {alarm.condition for alarm in heard if alarm.raised} == conditions
    assert len(heard) == len(conditions)
    for alarm in heard:
        assert 2 < alarm.n <= 150, alarm
        assert alarm.since > 1e9
    harm = next(alarm for alarm in heard if alarm.condition == "Harm > .4")
    assert str(harm).endswith("UTC (the true figure may be nearer to the limit)")
    assert harm.value == 0.5
    assert "alert 'Harm > .4': passages without a label do not count; in Harm(unjudged=harmful)" in caplog.text
    assert f"ALARM Harm > .4: 0.5 over the last {harm.n} retrievals since" in caplog.text
    record(400, "good?", ["a"], 10)
    ended = heard[len(conditions) :]
    assert {alarm.condition for alarm in ended} == conditions
    assert not any(alarm.raised for alarm in ended)


def test_a_lower_rate_of_outcomes_raises_an_alarm() -> None:
    heard: list[Any] = []
    monitor = Monitor(alerts=["outcome < .5"], on_alert=heard.append)
    for i in range(200):
        monitor.record(Retrieval("q", ["x"], id=str(i)))
    for i in range(200):
        monitor.outcome(str(i), i % 10 == 0)
    monitor.flush()
    assert [(alarm.condition, alarm.raised) for alarm in heard] == [("outcome < .5", True)]


def test_a_quantile_at_its_limit_is_neither_below_nor_above_it() -> None:
    heard: list[Any] = []
    monitor = Monitor(alerts=[f"p50(shown) {sign} 2" for sign in ("<", "<=", ">", ">=")], on_alert=heard.append)
    for _ in range(100):
        monitor.record(Retrieval("q", ["x", "y"]))
    monitor.flush()
    assert sorted(alarm.condition for alarm in heard) == ["p50(shown) <= 2", "p50(shown) >= 2"]


def test_the_windows_figures_are_those_of_a_report_over_it() -> None:
    conditions = ["BoR < -9", "lambda > 99", "RA-nWG@1 < -1"]
    monitor = Monitor(GRADES, scale="utility", corpus_size=100, alerts=conditions, window=6)
    last = Monitor(GRADES, scale="utility", corpus_size=100)
    for i in range(20):
        retrieval = Retrieval("good?" if i % 3 else "bad?", ["a", "b", "x"][: 1 + i % 3])
        monitor.record(retrieval)
        if i >= 14:
            last.record(retrieval)
    report = last.report()
    for name, value in monitor.window.items():
        assert value == pytest.approx(report[name].value), name


def test_a_listener_that_fails_costs_nothing(caplog) -> None:
    def fails(alarm: Any) -> None:
        raise ValueError("the pager is off")

    monitor = Monitor(GRADES, scale="utility", alerts=["failed > 0"], window=1, on_alert=fails)
    monitor.record(Retrieval("good?", [], failed=True))
    monitor.record(Retrieval("good?", ["a"]))
    monitor.flush()
    assert monitor.traffic.retrievals == 2
    assert "on_alert failed" in caplog.text


def test_open_telemetry_sees_the_window_and_the_alarms() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    metrics.set_meter_provider(sdk.MeterProvider([reader]))
    monitor = Monitor(GRADES, scale="utility", alerts=["Harm > .4"], window=2, name="mine")
    for _ in range(50):
        monitor.record(Retrieval("bad?", ["j"]))
    monitor.flush()
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


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("failed > 5", "alert 'failed > 5': failed is a share from 0 to 1: 5% is .05"),
        ("empty < -1", "alert 'empty < -1': empty is a share from 0 to 1"),
        ("labelled < .5", "alert 'labelled < .5': no alert can watch it: compare traffic.labelled with"),
    ],
)
def test_a_condition_that_can_never_be_watched_is_refused(condition, said) -> None:
    with pytest.raises(rs.InputError) as caught:
        Monitor(GRADES, scale="utility", alerts=[condition])
    assert str(caught.value).startswith(said)
