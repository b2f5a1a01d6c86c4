"""JSON from models and traces that is nested deeper than Python's own reader can follow."""

import pytest

import rag_selectivity as rs
from rag_selectivity.live.tools import misfit

pytestmark = pytest.mark.inside

DEEP = "[" * 200_000


def test_arguments_of_a_tool_do_not_fit() -> None:
    assert misfit(DEEP, {"type": "object"}) == "no JSON object"


def test_a_trace_is_gone_on_with(tmp_path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text(DEEP)
    monitor = rs.Monitor({"q": {"a": 1}}, trace=trace)
    monitor.record(rs.Retrieval("q", ["a"], id="1"))
    monitor.close()
    assert trace.read_text().count("\n") == 1
    assert '"1"' in trace.read_text()


def test_lists_of_ragas_are_refused() -> None:
    ragas = pytest.importorskip("rag_selectivity_ragas")
    with pytest.raises(rs.InputError, match="local/csv turns lists into texts"):
        ragas.selectivity([{"user_input": "who?", "retrieved_context_ids": DEEP}], {"who?": {"a": 1}})
