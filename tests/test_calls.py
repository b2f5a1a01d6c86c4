"""The rules at the head of `rag_selectivity.live.calls`: trees of calls, and the retrievals that come of them.

A call is written as what it does (a tool with its name), its query, in brackets the ids that a selection gets, its end,
and in parentheses the calls inside it. Its end is `>` with what it gave, `!` for an error, `none` for a selection that
returned nothing, or tells nothing. Calls with `&` begin together; one with `~` ends last, and one with `?` never. A
retrieval is written as `query: what was shown of its pool`.
"""

import re
from collections.abc import Iterator
from itertools import count, groupby
from typing import Any

import pytest

from rag_selectivity.live.calls import CallTree, Kind
from rag_selectivity.live.retrieval import Passages, Retrieval

pytestmark = pytest.mark.inside

KINDS = {"search": Kind.RETRIEVE, "rerank": Kind.SELECT, "chain": Kind.OTHER}
CALL = re.compile(r"([&~?]?)(\w+)(?:\.(\w+))? ?((?!none)\w*) ?(?:\[(.*)\])? ?(>.*|!|none|)")


class Calls:
    """Tells a tree of calls what a text says."""

    def __init__(self, text: str, **options: Any) -> None:
        self.found: list[str] = []
        self.begun, self.last = 0, list[tuple[int, str]]()
        self.tree = CallTree(self.record, clock=count(1.0).__next__, **options)
        self.run(calls_in(iter(re.findall(r"[^();]+|[();]", text))), None)
        for each in self.last:
            self.end(*each)

    def record(self, each: Retrieval) -> None:
        shown = ["failed"] if each.failed else each.shown
        self.seconds = each.seconds
        self.found.append(" ".join([f"{each.query}:", *shown, *([] if each.pool is None else ["of", *each.pool])]))

    def run(self, calls: list[Any], caller: int | None) -> None:
        for _, group in groupby(calls, lambda call: call[0][0] == "&" or id(call)):
            begun = [(self.begin(text, caller), text, inside) for text, inside in group]
            for number, text, inside in begun:
                self.run(inside, number)
                if text[0] == "~":
                    self.last.append((number, text))
                elif text[0] != "?":
                    self.end(number, text)

    def begin(self, text: str, caller: int | None) -> int:
        self.begun += 1
        _, what, name, query, given, _ = CALL.fullmatch(text).groups("")  # type: ignore[union-attr]
        kind = KINDS.get(what) or Kind(what)
        self.tree.begin(self.begun, caller, kind, query=query, given=given.split(), name=name)
        return self.begun

    def end(self, call: int, text: str) -> None:
        result = CALL.fullmatch(text)[6]  # type: ignore[index]
        if result in ("!", "none"):
            self.tree.fail(call, returned=result == "none")
        else:
            self.tree.end(call, Passages(tuple(result[1:].split())) if result else None)


def calls_in(tokens: Iterator[str]) -> list[Any]:
    """Each call with the calls inside it."""
    calls: list[Any] = []
    for token in tokens:
        if token == "(":
            calls[-1] = (calls[-1][0], calls_in(tokens))
        elif token == ")":
            break
        elif token.strip(" ;"):
            calls.append((token.strip(), []))
    return calls


RULES = {
    "retrieval": [
        ("chain (search q > a (tool.t r > b (search r > b); answer q > b; rerank q [b] > b))", ["q: a"]),
    ],
    "compression": [
        ("search q > b a (search q > a b)", ["q: b a of a b"]),
        ("search q > a b (search q > a b)", ["q: a b"]),
        ("search q > a (search q > a b; answer q > a b)", ["q: a of a b"]),
        ("search q > a (search q > a b; search r > a b)", ["q: a"]),
        ("chain (search q > b c (search q > a b c); rerank q [b c] > c)", ["q: c of a b c"]),
        ("chain (search q > b c (search q > a b; search r > c d); rerank q [b c] > c)", ["q: c of b c"]),
    ],
    "failure": [
        ("chain (search q > a (search r !))", ["q: a"]),
        ("chain (&chain ! (~search q > a); &search r > b)", ["q: failed", "r: b"]),
    ],
    "attempts": [
        ("chain (search q !; search q > a)", ["q: a"]),
        ("chain (search q > a; search q !)", ["q: a", "q: failed"]),
        ("chain (search q !; search r > a)", ["q: failed", "r: a"]),
        ("chain (search q !; search r > b (search q > a))", ["q: failed", "r: b"]),
        ("chain (&chain ! (search q !); &chain (search q > a))", ["q: failed", "q: a"]),
        ("chain (chain (search q !); chain (search q > a))", ["q: failed", "q: a"]),
        ("chain (tool.t q ! (search q !); tool.t q > a (search q > a))", ["q: a"]),
        ("chain (tool.t q ! (search q !); tool.u q > a (search q > a))", ["q: failed", "q: a"]),
        ("chain (tool.t q ! (search q !); chain.t (search q > a))", ["q: failed", "q: a"]),
        ("fallbacks (tool.t q ! (search q !); tool.u q > a (search q > a))", ["q: a"]),
    ],
    "selection": [
        ("chain (search q > a b; rerank q [a b] > b)", ["q: b of a b"]),
        ("chain (search q > a b; rerank q [a b])", []),
        ("chain (search r > c; search q > a b; rerank r [x] > x)", ["r: c", "q: x of a b"]),
        ("chain (chain (search q > a b); rerank q [x] > x)", ["q: a b"]),
        ("chain (search q > a b; search q !; rerank q [x] > x)", ["q: x of a b", "q: failed"]),
        ("chain (search q > a; search r !; rerank r > a)", ["q: a of a", "r: failed"]),
        ("chain (search q > a b; chain (search r > b c; rerank r [b c] > b))", ["q: a b", "r: b of b c"]),
        ("chain (~chain (search q > a b); rerank q [a b] > b)", ["q: b of a b"]),
        ("chain (~chain (search q > a b); rerank q > b)", ["q: a b"]),
    ],
    "owner": [
        ("chain (search r >; search q > a; rerank q [] >)", ["q: a", "r: of"]),
        ("chain (search q > a b c d; search r > a x y; rerank s [a b] > a)", ["r: a x y", "q: a of a b c d"]),
    ],
    "taking part": [
        ("chain (search q > a; search r > b; rerank q [a b] > b)", ["q: b of b a"]),
        ("chain (search q > a x; search q > a b; rerank q [a b] > b)", ["q: b of a x b"]),
        ("chain (search r > a; search q > a b; rerank q [a b] > b)", ["q: b of a b"]),
        ("chain (chain (search r > a); search q > a b; rerank q [a b] > b)", ["r: a", "q: b of a b"]),
        ("chain (search r > a; rerank r [a] > a; search q > a b; rerank q [a b] > b)", ["r: a of a", "q: b of a b"]),
        ("chain (search q > a; search q > b; rerank q > b)", ["q: a", "q: b of b"]),
        ("chain (search r > c x; search s > c y; search q > a b; rerank q [a b c] > b)", ["r: c x", "q: b of c y a b"]),
    ],
    "selections that fail": [
        ("chain (search q > a b; rerank q [a b] none)", ["q: failed of a b"]),
        ("chain ! (search q > a b; rerank q [a b] !; chain)", ["q: a b"]),
        ("chain (chain ! (search q > a; rerank q [a] !); search q > a)", ["q: a"]),
        ("chain ! (search q > a b; search r ! (rerank q [a b] !))", ["q: a b", "r: failed"]),
    ],
    "answer": [
        ("answer q > a (search q > a b (search q > a b c))", ["q: a of a b c"]),
        ("answer q > a b (search q > a b)", ["q: a b"]),
        ("answer q > x (search q > a b)", ["q: a b"]),
        ("answer q > b (search q > a b; rerank q [a b] > a)", ["q: a of a b"]),
        ("answer q > b (search q > a b; search r > b)", ["q: a b", "r: b"]),
        ("answer q > a (search q > a b; search r !)", ["q: a of a b", "r: failed"]),
    ],
    "tool": [
        ("tool.t q > (search r > a b)", ["r: of a b"]),
        ("tool.t q > a b (search r > a b; search s > b c)", ["q: a b of a b c"]),
        ("tool.t q > a (search q !)", ["q: a"]),
        ("tool.t q > (search q !)", ["q: failed"]),
        ("chain (tool.t q (search q > a b); rerank q [a b] > b)", ["q: a b"]),
    ],
    "pool, handing over": [
        ("chain (search q > a b c; rerank q [a b c] > b c; rerank q [b c] > c)", ["q: c of a b c"]),
        ("chain ! (?chain (search q > a))", ["q: a"]),
    ],
}


@pytest.mark.parametrize(("calls", "found"), [case for rule in RULES.values() for case in rule])
def test_the_retrievals_of_a_tree_of_calls(calls: str, found: list[str]) -> None:
    assert sorted(Calls(calls).found) == sorted(found)


def test_what_is_handed_over_at_once_or_as_the_first_of_too_many() -> None:
    assert Calls("chain (search q > a b; rerank q [a b] > b)", at_once=True).found == ["q: a b"]
    assert Calls("chain (tool.t q > b (search r > a b))", at_once=True).found == ["r: b of a b"]
    many = "chain (search q > a; search r > b; search s > c; rerank q [a] > a)"
    assert Calls(many, most_waiting=2).found == ["q: a", "r: b", "s: a of c"]
    both = Calls("chain (search q > a; search r > b c d; rerank q [a b] > a)")
    assert (both.found, both.seconds) == (["q: a of b c d a"], 2.0)
    assert Calls("; ".join(["?chain (search q > a)"] * 20_000)).found == ["q: a"]
