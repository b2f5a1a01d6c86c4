"""What a monitor knows of requests: sample rates, arms, outcomes, hidden texts, and a grader's budget of a day."""

from __future__ import annotations

import asyncio
import json
import math
import random
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.live.alerts import Alarm
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace import Trace
from rag_selectivity.tables.ids import text_id

pytestmark = pytest.mark.inside

LABELS = {f"question {i}?": {f"d{i}": 5, f"e{i}": 4, f"j{i}": 1} for i in range(40)}


# -- the share that is measured ---------------------------------------------------------------------


def test_a_sample_rate_measures_a_random_share_and_counts_all(tmp_path: Path) -> None:
    monitor = Monitor(
        LABELS, scale="utility", corpus_size=100, sample_rate=0.2, depths=[1, 2, 3], trace=tmp_path / "t.jsonl"
    )
    rng = random.Random(1)
    for _ in range(2000):
        i = rng.randrange(40)
        monitor.record(Retrieval(f"question {i}?", [f"d{i}"] if rng.random() < 0.7 else ["x"], tokens=10))
    monitor.close()
    report, traffic = monitor.report(), monitor.traffic
    assert (traffic.retrievals, traffic.labelled, traffic.tokens) == (2000, 2000, 10)
    assert abs(traffic.sampled - 400) < 5 * math.sqrt(2000 * 0.2 * 0.8)
    assert report["Success@1"].n_total == traffic.sampled == len((tmp_path / "t.jsonl").read_text().splitlines())
    assert report["Success@1"].low < 0.7 < report["Success@1"].high
    assert f"({traffic.sampled:,}) was taken for the figures" in " ".join(report.details().split())


# -- arms and outcomes ------------------------------------------------------------------------------


def test_outcomes_at_once_late_and_changed(tmp_path: Path) -> None:
    monitor = Monitor(LABELS, scale="utility", trace=tmp_path / "t.jsonl")
    monitor.record(Retrieval("question 0?", ["d0"], arm="a", outcome=True))
    monitor.record(Retrieval("question 1?", ["x"], id="r1", arm="b"))
    monitor.record(Retrieval("question 2?", ["d2"], id="r1"))
    assert monitor.outcome("r1", 0.25)
    assert monitor.outcome("r1", 0.75)
    assert not monitor.outcome("of another process", False)
    monitor.close()
    traffic = monitor.traffic
    assert (traffic.outcomes, traffic.outcome, traffic.lost_outcomes) == (2, 0.875, 1)
    assert 0 <= traffic.outcome_low < 0.875 < traffic.outcome_high <= 1
    assert {arm: (each.outcomes, each.outcome) for arm, each in traffic.arms.items()} == {"a": (1, 1.0), "b": (1, 0.75)}
    assert "outcome 0.875" in " ".join(monitor.report().details().split())
    trace = Trace.read(tmp_path / "t.jsonl")
    assert list(trace.outcomes.values()) == [1.0, 0.75, 0.75]
    assert list(trace.arms.values()) == ["a", "b"]


def test_a_request_names_what_the_framework_does_not() -> None:
    monitor = Monitor(LABELS, scale="utility")

    async def serve(i: int) -> None:
        with monitor.request(f"r{i}", arm="a" if i % 2 else "b", query_id=f"question {i}?"):
            await asyncio.sleep(0.001 * (i % 3))
            await asyncio.to_thread(monitor.record, Retrieval("worded anew", [f"d{i}"]))

    async def all_of_them() -> None:
        await asyncio.gather(*map(serve, range(40)))

    asyncio.run(all_of_them())
    monitor.record(Retrieval("outside", ["x"]))
    report = monitor.report(by_arm=True)
    assert [report[arm, "Success@1"].n_total for arm in ("a", "b")] == [20, 20]
    assert report["a", "Success@1"].value == report["b", "Success@1"].value == 1.0
    assert all(monitor.outcome(f"r{i}", i % 2) for i in range(40))
    assert [monitor.traffic.arms[arm].outcome for arm in ("a", "b")] == [1.0, 0.0]
    with pytest.raises(rs.InputError, match="arm must be a text, got 3"):
        monitor.request(arm=3)


def test_a_request_reaches_the_retrievals_of_langchain() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableParallel
    from rag_selectivity_langchain import SelectivityCallback

    class Search(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
            return [Document(id="d0", page_content="text")]

    callback = SelectivityCallback(LABELS, scale="utility", identity="id")
    chain, config = RunnableParallel(one=Search(), two=Search()), {"callbacks": [callback]}

    async def serve(i: int) -> None:
        with callback.monitor.request(f"r{i}", arm=f"arm {i}", query_id="question 0?"):
            await chain.ainvoke("worded anew", config=config)

    async def two_at_once() -> None:
        await asyncio.gather(serve(0), serve(1))

    asyncio.run(two_at_once())
    with callback.monitor.request(arm="batch", query_id="question 0?"):
        chain.batch(["one way", "or another"], config=config)
    arms = callback.traffic.arms
    assert {arm: (each.retrievals, each.labelled) for arm, each in arms.items()} == {
        "arm 0": (2, 2),
        "arm 1": (2, 2),
        "batch": (4, 4),
    }
    assert callback.monitor.outcome("r1", True)


def test_a_lower_rate_of_outcomes_raises_an_alarm() -> None:
    heard: list[Alarm] = []
    monitor = Monitor(alerts=["outcome < .5"], on_alert=heard.append)
    for i in range(200):
        monitor.record(Retrieval("q", ["x"], id=str(i)))
        monitor.outcome(str(i), i % 10 == 0)
    monitor.flush()
    assert [(alarm.condition, alarm.raised) for alarm in heard] == [("outcome < .5", True)]


# -- texts ------------------------------------------------------------------------------------------


SECRET = "does Ms Ada Lovelace owe us money?"
PASSAGE = "Ada Lovelace owes 300 pounds."


def test_a_trace_hides_texts_and_still_finds_its_labels(tmp_path: Path) -> None:
    labels = {SECRET: {"d1": 5, "j1": 1}}
    for texts in (False, True):
        path = tmp_path / f"{texts}.jsonl"
        monitor = Monitor(labels, scale="utility", trace=path, trace_texts=texts)
        monitor.record(Retrieval(SECRET, ["d1", "j1"], texts={"d1": PASSAGE, "j1": "Junk mail."}))
        monitor.record(Retrieval(SECRET, ["x"], query_id="q7"))
        monitor.close()
        assert (SECRET in path.read_text(), PASSAGE in path.read_text()) == (texts, texts)
        trace = Trace.read(path)
        found = trace.labels_from(rs.Qrels.of(labels))
        assert set(found.to_dict()) == {SECRET if texts else text_id(SECRET), "q7"}
    rows = [json.loads(line) for line in (tmp_path / "False.jsonl").read_text().splitlines()]
    assert [row["query_hash"] for row in rows] == [text_id(SECRET)] * 2
    assert (rows[1]["query_id"], "query" in rows[0]) == ("q7", False)
    with pytest.raises(rs.InputError, match=r"trace with Monitor\(trace_texts=True\).* 2 of 2 retrievals"):
        Trace.read(tmp_path / "False.jsonl").to_grade()
