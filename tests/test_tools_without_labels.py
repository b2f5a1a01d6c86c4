"""Without labels and an assumption it is not known how many tools apply to a query."""

from math import isnan

import pytest

from rag_selectivity.live.tools import ToolMonitor

pytestmark = pytest.mark.contract

TOOLS = {f"tool{i}": 50 for i in range(40)}


def watched(heard, shown: int = 40, **options):
    heard.clear()
    monitor = ToolMonitor(catalogue=list(TOOLS), **options)
    for i in range(60):
        monitor.call(f"q{i}", dict.fromkeys(list(TOOLS)[:shown], 50), [f"tool{i % 22}"])
    return monitor.report(), heard.messages


def test_all_tools_are_always_shown(caplog) -> None:
    report, said = watched(caplog)
    assert said == ["All 40 tools are shown, so there is no selection to measure [too-many-tools]"]
    assert "All 40 tools are always shown, so there is no selection to measure" in str(report)
    assert report.basis == {"labels": 0, "assumed": 0}
    assert all(map(isnan, (report.relevant, report.lam, report.BoR_max)))
    assert (report.healthy_K, report.regime) == (None, None)


def test_a_selection_of_which_r_is_not_known(caplog) -> None:
    report, said = watched(caplog, 10)
    assert said == []
    assert "How many tools apply to a query is not known: give labels, or relevant=… as an assumption" in str(report)
    _, said = watched(caplog, 39)
    assert len(said) == 1
    assert said[0].startswith("39 of 40 tools shown, and as many at random would serve in 97.5% of such calls")


def test_an_assumption_tells_r(caplog) -> None:
    report, said = watched(caplog, 39, relevant=4)
    assert (report.relevant, report.basis["assumed"], len(said)) == (4, 60, 1)
    assert said[0].endswith("Show at most 8 tools: as many at random serve in less than 63.2% [too-many-tools]")
