"""Retrievals are measured in a thread of its own: nothing is lost, and the figures stay the same."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from rag_selectivity.live import measuring, worker
from rag_selectivity.live import monitor as monitor_module
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval

pytestmark = pytest.mark.inside

LABELS = {f"q{i}": {f"d{i}": 1, f"d{i + 1}": 1} for i in range(20)}


def watched(count: int, **options: Any) -> Monitor:
    monitor = Monitor(LABELS, corpus_size=1000, sample_size=50, **options)
    for i in range(count):
        monitor.record(Retrieval(f"q{i % 20}", [f"d{i % 23}", f"d{i % 7}x"], tokens=i, seconds=0.1, arm="ab"[i % 2]))
    return monitor


def test_the_figures_are_those_of_measuring_at_once(monkeypatch) -> None:
    monkeypatch.setattr(monitor_module, "_BATCH", 64)
    behind = watched(1000).report(by_arm=True)
    monkeypatch.setattr(Monitor, "_measure_later", lambda monitor, batch: monitor._measuring.measure(batch))
    assert behind.to_dict() == watched(1000).report(by_arm=True).to_dict()


def test_who_records_faster_than_can_be_measured_waits_for_the_worker_first(monkeypatch) -> None:
    monkeypatch.setattr(monitor_module, "_BATCH", 16)
    monkeypatch.setattr(measuring, "_MOST_WAITING", 32)
    monkeypatch.setattr(measuring, "_PATIENCE", 30.0)
    monkeypatch.setattr(worker, "_DELAY", 0.01)
    measured_by = set()
    measure = measuring.Measuring.measure

    def seen(this, batch) -> None:
        measured_by.add(threading.current_thread().name)
        measure(this, batch)

    monkeypatch.setattr(measuring.Measuring, "measure", seen)
    monitor = watched(400)
    assert measured_by == {"rag-selectivity-monitor"}
    assert monitor.report()["BoR"].n == 400


def test_what_waits_at_the_exit_is_measured_and_no_thread_starts_before_it_is_needed() -> None:
    program = (
        "import threading; from rag_selectivity import Monitor\n"
        "from rag_selectivity.live.retrieval import Retrieval\n"
        "m = Monitor({'q': {'d': 1}}, corpus_size=9, alerts=['Success < .9'], ids='exact',\n"
        "            on_alert=lambda alarm: print(alarm.condition))\n"
        "m.record(Retrieval('q', ['x'])); print(threading.active_count())\n"
        "for _ in range(600): m.record(Retrieval('q', ['x']))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert run.stdout.split("\n")[:2] == ["1", "Success < .9"], run


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_process_measures_its_own(monkeypatch) -> None:
    monkeypatch.setattr(monitor_module, "_BATCH", 64)
    monitor = watched(640)
    child = os.fork()
    if not child:
        code = 1
        try:
            for _ in range(128):
                monitor.record(Retrieval("q1", ["d1"]))
            code = 0 if monitor.report()["Success"].n >= 128 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert monitor.report()["Success"].n == 640
