"""The plain way to follow calls: whatever is looked for, every retrieval of the tree is looked at.

The reference for `rag_selectivity.live.calls.CallTree`, which finds the same without that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from rag_selectivity.live.calls import Kind, Passages
from rag_selectivity.live.passages import union
from rag_selectivity.live.retrieval import Retrieval

_MOST_CALLS = 20_000
_NO_CALLS: frozenset[Hashable] = frozenset()


@dataclass(slots=True)
class _Open:
    """A call that is under way; `retrieval` and `tool` are the nearest of their kind around it."""

    parent: Hashable | None
    root: Hashable
    kind: Kind
    retrieval: Hashable | None
    tool: Hashable | None
    query: str
    query_id: str | None
    given: Collection[str]
    started: float
    children: list[Passages] | None = None


@dataclass(slots=True)
class _Retrieved:
    """A retrieval that is over, until it is known what was selected from it.

    `final` is what a fusing or compressing retriever left of its pool, until a selection (`selected`) left less.
    """

    query: str
    query_id: str | None
    scope: Hashable | None
    ancestors: frozenset[Hashable]
    pool: Passages
    seconds: float
    final: Passages | None
    failed: bool = False
    selected: bool = False


@dataclass(slots=True)
class _Tree:
    """How many calls below a root are under way, and the retrievals that happened there."""

    calls: int = 0
    retrievals: list[_Retrieved] = field(default_factory=list)
    failures: list[_Retrieved] = field(default_factory=list)


class FormerCallTree:
    """Follows calls, and looks at every retrieval of a tree whenever it looks for some."""

    def __init__(
        self,
        record: Callable[[Retrieval], None],
        *,
        pool_of_children: bool = False,
        at_once: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._record = record
        self._pool_of_children = pool_of_children
        self._at_once = at_once
        self._clock = clock
        self._lock = threading.Lock()
        self._calls: dict[Hashable, _Open] = {}
        self._trees: dict[Hashable, _Tree] = {}

    def __len__(self) -> int:
        """Calls under way."""
        return len(self._calls)

    def begin(
        self,
        call: Hashable,
        parent: Hashable | None,
        kind: Kind,
        *,
        query: str = "",
        query_id: str | None = None,
        given: Collection[str] = (),
    ) -> None:
        """A call begins. `given` are the ids of the passages that a selection gets, `query` is what it selects for.

        A call that is under way already does not begin again: a framework may tell of it twice.
        """
        done: list[_Retrieved] = []
        with self._lock:
            if call in self._calls:
                return
            above = self._calls.get(parent) if parent is not None else None
            root = call if above is None else above.root
            around = tool = None
            if above is not None:
                around = parent if above.kind is Kind.RETRIEVE else above.retrieval
                tool = parent if above.kind is Kind.TOOL else above.tool
                query_id = above.query_id if query_id is None else query_id
            within = None if above is None else parent
            self._calls[call] = _Open(within, root, kind, around, tool, query, query_id, given, self._clock())
            tree = self._trees.get(root)
            if tree is None:
                tree = self._trees[root] = _Tree()
            tree.calls += 1
            if len(self._calls) > _MOST_CALLS:
                done = self._forget(next(iter(self._calls.values())).root)
        if done:
            self._hand_over(done)

    def end(self, call: Hashable, passages: Passages | None = None) -> None:
        """A call ends, with the passages that it retrieved, selected or answered from.

        Without passages, a retrieval is not handed over, nor is one from which something was selected that is unknown.
        """
        with self._lock:
            open_call = self._calls.get(call)
            if open_call is None:
                return
            if passages is not None and self._is_alone(open_call):
                # What follows comes to the same, but takes longer, and this is the most frequent case.
                del self._calls[call], self._trees[call]
                seconds = self._clock() - open_call.started
                done = [_Retrieved(open_call.query, open_call.query_id, None, _NO_CALLS, passages, seconds, None)]
                open_call = None
            elif passages is not None:
                done = self._finished(call, open_call, passages)
            else:
                done = []
                self._lose(open_call)
            if open_call is not None:
                done += self._close(call, open_call)
        if done:
            self._hand_over(done)

    def around(self, call: Hashable) -> list[tuple[str, str | None]]:
        """The query and query id of a call that is under way, and of the retrievals and tools around it."""
        queries, calls = [], self._calls
        each = calls.get(call)
        while each is not None:
            queries.append((each.query, each.query_id))
            above = each.retrieval if each.retrieval is not None else each.tool
            each = None if above is None else calls.get(above)
        return queries

    def fail(self, call: Hashable) -> None:
        """A call has raised an error or returned nothing; what was retrieved before that still counts.

        A retrieval inside it that is still under way was cancelled, which a framework may not tell.
        """
        with self._lock:
            open_call = self._calls.get(call)
            if open_call is None:
                return
            lost = [
                (key, each)
                for key, each in self._calls.items()
                if each.kind is Kind.RETRIEVE and each.retrieval is None and call in (key, *self._ancestors(each))
            ]
            done = []
            for key, each in lost:
                done += self._failed(each)
                if key != call:
                    done += self._close(key, each)
            done += self._close(call, open_call, failed=True)
        self._hand_over(done)

    def finish(self) -> None:
        """Forget what is under way; retrievals that are over are handed over as they stand."""
        with self._lock:
            done = [each for tree in self._trees.values() for each in (*tree.retrievals, *tree.failures)]
            self._trees.clear()
            self._calls.clear()
        self._hand_over(done)

    # -- with the lock held --------------------------------------------------------------------------

    def _is_alone(self, of: _Open) -> bool:
        """Whether a call is an outermost retrieval without anything inside it that counts."""
        if of.parent is not None or of.kind is not Kind.RETRIEVE or of.children:
            return False
        tree = self._trees[of.root]
        return tree.calls == 1 and not tree.retrievals and not tree.failures

    def _finished(self, call: Hashable, of: _Open, passages: Passages) -> list[_Retrieved]:
        if of.retrieval is not None:
            around = self._calls.get(of.retrieval)
            if of.kind is Kind.RETRIEVE and around is not None and self._pool_of_children:
                around.children = [*(around.children or ()), passages]
            return []
        tree = self._trees[of.root]
        if of.kind is Kind.RETRIEVE:
            pool, final = passages, None
            if of.children:
                pool = union([*of.children, passages])
                # A retriever that only passes on what another one found selects nothing.
                passed_on = len(of.children) == 1 and of.children[0].ids == passages.ids
                pool, final = (passages, None) if passed_on else (pool, passages)
            retrieval = _Retrieved(
                of.query,
                of.query_id,
                of.parent,
                self._ancestors(of),
                pool,
                self._clock() - of.started,
                final,
            )
            if tree.failures:
                tree.failures = [each for each in tree.failures if (each.query, each.scope) != (of.query, of.parent)]
            if (self._at_once and of.tool is None) or of.parent is None:
                return [retrieval]
            tree.retrievals.append(retrieval)
        elif of.kind is Kind.TOOL:
            inside = [each for each in tree.retrievals if call in each.ancestors]
            tree.retrievals = [each for each in tree.retrievals if call not in each.ancestors]
            return self._given_by_tool(of, inside, passages)
        elif of.kind is Kind.SELECT:
            tree.retrievals = _selected(tree.retrievals, of, list(self._above(of)), passages)
        elif of.kind is Kind.ANSWER:
            done = [retrieval for retrieval in tree.retrievals if call in retrieval.ancestors]
            tree.retrievals = [retrieval for retrieval in tree.retrievals if call not in retrieval.ancestors]
            if len(done) == 1 and not done[0].selected:
                returned = done[0].final or done[0].pool
                if passages.ids != returned.ids and set(passages.ids) & set(done[0].pool.ids):
                    done[0].final = passages
            return done
        return []

    def _given_by_tool(self, of: _Open, inside: list[_Retrieved], passages: Passages) -> list[_Retrieved]:
        if not inside:
            seconds = self._clock() - of.started
            found = _Retrieved(of.query, of.query_id, of.parent, self._ancestors(of), passages, seconds, None)
            return [found] if passages.ids else []
        last = inside[-1]
        if len(inside) == 1:
            shown = last.pool if last.final is None else last.final
            return inside if shown.ids == passages.ids else [replace(last, final=passages)]
        pool, seconds = union([each.pool for each in inside]), sum(each.seconds for each in inside)
        return [replace(last, query=of.query or last.query, pool=pool, seconds=seconds, final=passages)]

    def _lose(self, of: _Open) -> None:
        """Drop what a selection with an unknown result worked on: the whole pool was not what it left."""
        if of.kind is Kind.SELECT and of.retrieval is None:
            tree = self._trees[of.root]
            lost = _worked_on(tree.retrievals, of, list(self._above(of)))
            tree.retrievals = _without(tree.retrievals, lost)

    def _failed(self, of: _Open) -> list[_Retrieved]:
        nothing, seconds = Passages(()), self._clock() - of.started
        failure = _Retrieved(
            of.query, of.query_id, of.parent, self._ancestors(of), nothing, seconds, nothing, failed=True
        )
        if of.parent is None:
            return [failure]
        self._trees[of.root].failures.append(failure)
        return []

    def _close(self, call: Hashable, of: _Open, *, failed: bool = False) -> list[_Retrieved]:
        del self._calls[call]
        tree = self._trees.get(of.root)
        if tree is None:
            return []
        tree.calls -= 1
        if tree.calls <= 0 or (failed and call == of.root):
            return self._forget(of.root)
        if call == of.root:
            done = [each for each in (*tree.retrievals, *tree.failures) if each.ancestors.isdisjoint(self._calls)]
            tree.retrievals, tree.failures = _without(tree.retrievals, done), _without(tree.failures, done)
            return done
        failures = [each for each in tree.failures if each.scope == call]
        tree.failures = [each for each in tree.failures if each.scope != call]
        if of.kind is not Kind.TOOL:
            return failures
        inside = [each for each in tree.retrievals if call in each.ancestors]
        tree.retrievals = [each for each in tree.retrievals if call not in each.ancestors]
        return inside + failures

    def _forget(self, root: Hashable) -> list[_Retrieved]:
        tree = self._trees.pop(root, None)
        if tree is None:
            return []
        if tree.calls > 0:
            self._calls = {call: each for call, each in self._calls.items() if each.root != root}
        return [*tree.retrievals, *tree.failures]

    def _ancestors(self, of: _Open) -> frozenset[Hashable]:
        return _NO_CALLS if of.parent is None else frozenset(self._above(of))

    def _above(self, of: _Open) -> Iterator[Hashable]:
        """The calls around a call, the nearest first."""
        above = of.parent
        while above is not None:
            yield above
            enclosing = self._calls.get(above)
            above = enclosing.parent if enclosing is not None else None

    # -- without it ----------------------------------------------------------------------------------

    def _hand_over(self, done: Sequence[_Retrieved]) -> None:
        for retrieval in done:
            final, texts = retrieval.final, None
            shown = final if final is not None else retrieval.pool
            if shown.texts is not None:
                texts = dict(zip(retrieval.pool.ids, retrieval.pool.texts or (), strict=False))
                texts.update(zip(shown.ids, shown.texts, strict=True))
            self._record(
                Retrieval(
                    retrieval.query,
                    shown.ids,
                    pool=retrieval.pool.ids if final is not None else None,
                    query_id=retrieval.query_id,
                    tokens=shown.tokens,
                    seconds=retrieval.seconds,
                    failed=retrieval.failed,
                    empty_passages=shown.empty,
                    nan_scores=shown.nan_scores,
                    texts=texts,
                    text_weight=shown.text_weight,
                )
            )


def _selected(retrievals: list[_Retrieved], of: _Open, above: Sequence[Hashable], left: Passages) -> list[_Retrieved]:
    """The retrievals, with what a selection left written to those that it worked on, as one retrieval with one pool."""
    worked_on = _worked_on(retrievals, of, above)
    if not worked_on:
        return retrievals
    merged = replace(
        worked_on[-1],
        pool=union([each.pool for each in worked_on]),
        seconds=sum(each.seconds for each in worked_on),
        final=left,
        selected=True,
    )
    return [*_without(retrievals, worked_on), merged]


def _worked_on(retrievals: list[_Retrieved], of: _Open, above: Sequence[Hashable]) -> list[_Retrieved]:
    """The retrievals that a selection works on; the last is the one that it belongs to.

    Tools that run side by side bring some of the same passages: of the retrievals whose passages went in, those count
    that share the nearest call with the selection. Of these it belongs to one for the same query, or else to the one
    with most passages in it, or else to the last. Others take part if some of what went in is from them alone, or if
    they are for the same query or in the same call and all that they found went in.
    """
    given = set(of.given)
    candidates = retrievals
    if given:
        candidates = [each for each in retrievals if not given.isdisjoint(each.pool.ids)]
        candidates = candidates or [each for each in retrievals if each.scope == of.parent][-1:]
    distance = {call: steps for steps, call in enumerate(above)}
    by_distance: dict[int, list[_Retrieved]] = {}
    for each in candidates:
        steps = min((distance[call] for call in each.ancestors if call in distance), default=len(distance))
        by_distance.setdefault(steps, []).append(each)
    if not by_distance:
        return []
    candidates = by_distance[min(by_distance)]
    if not given:
        candidates = [each for each in candidates if not each.pool.ids] or candidates
    *others, first = sorted(candidates, key=lambda each: (each.query == of.query, _overlap(each, given)))
    together, covered = [first], set(first.pool.ids)
    for each in reversed(others):
        alike = (each.query == first.query) + (each.scope == first.scope)
        whole = alike == 1 and not each.selected and given.issuperset(each.pool.ids)
        if given and (alike == 2 or whole or not given.intersection(each.pool.ids) <= covered):
            together.append(each)
            covered.update(each.pool.ids)
    return [*(each for each in retrievals if any(each is other for other in together[1:])), first]


def _overlap(retrieval: _Retrieved, ids: Collection[str]) -> int:
    return sum(id_ in ids for id_ in retrieval.pool.ids)


def _without(retrievals: Iterable[_Retrieved], others: Collection[_Retrieved]) -> list[_Retrieved]:
    # Two retrievals may be equal.
    return [each for each in retrievals if all(each is not other for other in others)]
