"""A monitor, a store and files outlive what happens to a service: rotation, full disks, kills."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace import Trace

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="open files can be moved on POSIX only"), pytest.mark.inside]
LABELS = {"q": {"a": 1}}


def ids(*files: Path) -> list[str]:
    return [json.loads(line).get("id", "late") for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def monitor(tmp_path):
    monitor = Monitor(LABELS, trace=tmp_path / "trace.jsonl")
    yield monitor
    monitor.close()


def test_a_trace_that_is_renamed_or_removed_is_made_anew(tmp_path, monitor) -> None:
    trace = tmp_path / "trace.jsonl"
    monitor.record(Retrieval("q", ["a"], id="1"))
    trace.rename(tmp_path / "old.jsonl")
    monitor.record(Retrieval("q", ["a"], id="2"))
    trace.unlink()
    monitor.record(Retrieval("q", ["a"], id="3"))
    monitor.outcome("3", 1)
    assert (ids(tmp_path / "old.jsonl"), ids(trace)) == (["1"], ["3", "late"])
    assert monitor.traffic.not_traced == 0


def test_lines_that_could_not_be_written_are_counted_and_the_trace_goes_on(tmp_path, monitor, caplog) -> None:
    away = tmp_path.with_name("away")
    monitor.record(Retrieval("q", ["a"], id="1"))
    tmp_path.rename(away)
    for number in (2, 3):
        monitor.record(Retrieval("q", ["a"], id=str(number)))
    monitor.outcome("2", 1)
    away.rename(tmp_path)
    monitor.record(Retrieval("q", ["a"], id="4"))
    assert ids(tmp_path / "trace.jsonl") == ["1", "4"]
    trace = f"{tmp_path}/trace.jsonl"
    assert [record.message for record in caplog.records] == [
        f"{trace}: cannot be written (No such file or directory); make the folder {tmp_path} first. Until it can be "
        "written, lines are left out, and counted",
        f"{trace}: can be written again; it lacks 3 lines",
    ]
    assert monitor.traffic.not_traced == 3
    notes = monitor.report().runs["live"].notes
    assert "the trace lacks 3 retrievals and outcomes, since it could not be written" in notes
    monitor.close()
    monitor.record(Retrieval("q", ["a"], id="5"))
    assert monitor.traffic.not_traced == 4


@pytest.mark.parametrize(
    ("end", "found"),
    [('{"query": "q", "sho', ["1", "2"]), ('{"query": "q", "shown": ["a"], "id": "cut"}', ["1", "cut", "2"])],
    ids=["a part", "all but its end"],
)
def test_a_line_of_a_killed_process_spoils_no_other(tmp_path, end, found, caplog) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"query": "q", "shown": ["a"], "id": "1"}\n' + end)
    if len(found) == 2:
        with pytest.warns(rs.SelectivityWarning, match=r"trace.jsonl:2: the last line was cut off.* left out"):
            assert len(Trace.read(trace).names) == 1
    else:
        assert len(Trace.read(trace).names) == 2
    monitor = Monitor(LABELS, trace=trace)
    monitor.record(Retrieval("q", ["a"], id="2"))
    monitor.close()
    assert ids(trace) == found
    assert len(caplog.records) == (len(found) == 2)
