"""A report of what has no labels says that there are none, and what is known without them."""

import pytest

import rag_selectivity as rs

pytestmark = pytest.mark.contract


def test_monitor_without_labels() -> None:
    monitor = rs.Monitor(corpus_size=64)
    for ids, failed in ((["d1"], False), ([], False), ([], True)):
        monitor.record(rs.Retrieval("who?", ids, failed=failed))
    with pytest.raises(rs.InputError, match=r"there are no labels.*give labels=.*3 retrievals, 1 failed, 1 empty"):
        monitor.report()
    assert (monitor.traffic.retrievals, monitor.traffic.failed, monitor.traffic.empty) == (3, 1, 1)


def test_labels_of_other_queries() -> None:
    monitor = rs.Monitor({"when?": {"d1": 1}}, corpus_size=64)
    monitor.record(rs.Retrieval("who?", ["d1"]))
    with pytest.raises(rs.InputError, match=r"1 retrieval so far, none of them with labels.*\"query_id\": …"):
        monitor.report()
