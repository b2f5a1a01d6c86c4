"""The calls of an application, beside the plain way to follow them, and the limits of what is held."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rag_selectivity.live import held
from rag_selectivity.live.calls import CallTree, Kind, Passages
from rag_selectivity.live.retrieval import Retrieval
from tests.former_calls import FormerCallTree

Operation = tuple[Any, ...]


def any_order(draw: random.Random, count: int) -> list[Operation]:
    """Calls of every kind that begin inside each other and end in any order, or never."""
    corpus = [f"d{i}" for i in range(draw.choice([5, 12, 40]))]
    queries = [*(f"q{i}" for i in range(draw.choice([1, 3, 8]))), ""]
    kinds = draw.choice([list(Kind), [Kind.RETRIEVE, Kind.SELECT, Kind.OTHER], [Kind.RETRIEVE, Kind.OTHER]])
    depth, in_order, repeats = draw.random(), draw.random() < 0.6, draw.random() < 0.2
    done: list[Operation] = []
    under_way: list[int] = []
    for call in range(count):
        if not under_way or (draw.random() < 0.5 and len(under_way) < 12):
            parent = draw.choice([*under_way, None, -1]) if draw.random() < 0.05 else None
            if under_way and parent is None:
                parent = under_way[-1] if draw.random() < depth else draw.choice(under_way)
            kind = draw.choice(kinds) if done else Kind.OTHER
            given = draw.sample(corpus, draw.randint(0, 4)) if kind is Kind.SELECT else ()
            done.append(("begin", call, parent, kind, draw.choice(queries), draw.choice([None, None, "i"]), given))
            under_way.append(call)
            continue
        last = in_order and draw.random() < 0.97
        ended = under_way.pop(-1 if last else draw.randrange(len(under_way)))
        ids = tuple(draw.choices(corpus, k=3) if repeats else draw.sample(corpus, draw.randint(0, 4)))
        done.append(("fail", ended) if draw.random() < 0.1 else ("end", ended, draw.choice([ids, ids, ids, None])))
    return done


def side_by_side(draw: random.Random, count: int) -> list[Operation]:
    """Many retrievals and selections in the same few calls."""
    corpus = [f"d{i}" for i in range(draw.choice([6, 20, 60]))]
    queries = [*(f"q{i}" for i in range(draw.choice([2, 10, 40]))), ""]
    scopes = ["root", "step", "tool"]
    done: list[Operation] = [("begin", "root", None, Kind.OTHER, "", None, ())]
    done += [("begin", "step", "root", Kind.OTHER, "", None, ()), ("begin", "tool", "step", Kind.TOOL, "", None, ())]
    named, fewest, last = draw.random() < 0.5, draw.choice([0, 1]), ()
    for call in range(count):
        ids, scope = tuple(draw.sample(corpus, draw.randint(fewest, 4))), draw.choice(scopes)
        if draw.random() < 0.5:
            done += [("begin", call, scope, Kind.RETRIEVE, draw.choice(queries), None, ()), ("end", call, ids)]
            last = ids
        else:
            given = draw.choice([last, last, ids, *([] if fewest else [()])])
            query = draw.choice(queries) if named else ""
            done += [("begin", call, scope, Kind.SELECT, query, None, given), ("end", call, given[:2])]
    return [*done, *(("end", call, None) for call in reversed(scopes))]


def handed_over(tree: Any, found: list[Retrieval], operations: list[Operation]) -> list[Any]:
    """What each operation handed over."""
    by_step = []
    for operation in operations:
        match operation:
            case ("begin", call, parent, kind, query, query_id, given):
                tree.begin(call, parent, kind, query=query, query_id=query_id, given=given)
            case ("end", call, ids):
                tree.end(call, None if ids is None else Passages(ids, tokens=len(ids)))
            case ("fail", call):
                tree.fail(call)
        by_step.append((list(found), len(tree), tree.around(operation[1])))
        found.clear()
    tree.finish()
    return [*by_step, list(found)]


@pytest.mark.parametrize("few", [0, 32])
@pytest.mark.parametrize("make", [any_order, side_by_side])
def test_the_same_retrievals_as_by_looking_at_all_of_them(make, few, monkeypatch) -> None:
    monkeypatch.setattr(held, "_FEW", few)
    count = 0
    for seed in range(40):
        draw = random.Random(seed)
        operations = make(draw, draw.choice([20, 60, 150]))
        options: dict[str, Any] = {"pool_of_children": draw.random() < 0.5, "at_once": draw.random() < 0.1}
        results = []
        for tree_class in (CallTree, FormerCallTree):
            found: list[Retrieval] = []
            time = iter(range(10**6))
            tree = tree_class(found.append, clock=lambda time=time: float(next(time)), **options)
            results.append(handed_over(tree, found, operations))
        assert results[0] == results[1], seed
        count += sum(len(step[0]) for step in results[0][:-1])
    assert count > 100


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
