"""The limits of what is held of the calls of an application."""

from __future__ import annotations

import pytest

from rag_selectivity.live.calls import CallTree, Kind, Passages
from rag_selectivity.live.retrieval import Retrieval

pytestmark = pytest.mark.inside


def test_retrievals_in_a_call_that_never_ends_do_not_fill_the_memory() -> None:
    found: list[Retrieval] = []
    calls = CallTree(found.append, most_held=10)
    calls.begin("server", None, Kind.OTHER)
    for i in range(100):
        calls.begin(i, "server", Kind.RETRIEVE, query=f"q{i}")
        if i % 2:
            calls.end(i, Passages((f"d{i}",)))
        else:
            calls.fail(i)
    assert [each.query for each in found] == [f"q{i}" for i in range(90)]
    assert calls.early == 90
    assert calls.notes == (
        "90 retrievals waited with 10 others inside a call that is under way, and were recorded before it was known "
        "what was selected",
    )
    calls.end("server")
    assert sorted(each.query for each in found) == sorted(f"q{i}" for i in range(100))


def test_lists_inside_a_retrieval_that_never_ends_do_not_fill_the_memory() -> None:
    found: list[Retrieval] = []
    calls = CallTree(found.append, pool_of_children=True, most_held=10)
    calls.begin("outer", None, Kind.RETRIEVE, query="q")
    for i in range(100):
        calls.begin(i, "outer", Kind.RETRIEVE)
        calls.end(i, Passages((f"d{i}",)))
    calls.end("outer", Passages(("d1",)))
    assert found[0].pool == tuple(f"d{i}" for i in range(10))
    assert calls.notes == (
        "90 lists of candidates inside a retrieval with more than 10 of them are missing from its pool",
    )
