"""The calls of a running application as a tree: which candidates a retrieval had, and what was selected from them.

Frameworks tell when a call begins, what called it, and what came back. An adapter passes that on; what comes out
are retrievals.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from enum import Enum

from rag_selectivity.live.faults import Faults, Shared
from rag_selectivity.live.held import Held, Place, Retrieved
from rag_selectivity.live.identity import Identity
from rag_selectivity.live.passages import Passages, union
from rag_selectivity.live.retrieval import Retrieval, approximate_tokens
from rag_selectivity.wording import counted

__all__ = ["CallTree", "Faults", "Identity", "Kind", "Passages", "Retrieval", "Shared", "approximate_tokens"]

#: Calls that never end (an abandoned generator) must not fill the memory.
_MOST_CALLS = 20_000
#: Nor must retrievals inside a call that never ends.
MOST_HELD = 10_000


class Kind(Enum):
    """What a call does, as far as it matters here."""

    RETRIEVE = "retrieve"
    SELECT = "select"
    ANSWER = "answer"
    TOOL = "tool"
    OTHER = "other"


class _Open(Place):
    """A call that is under way; `retrieval` and `tool` are the nearest of their kind around it."""

    __slots__ = ("children", "given", "kind", "query", "query_id", "retrieval", "started", "tool", "tree")
    above: _Open | None

    def __init__(
        self,
        call: Hashable,
        above: _Open | None,
        tree: _Tree,
        kind: Kind,
        query: str,
        query_id: str | None,
        given: Collection[str],
        started: float,
    ) -> None:
        super().__init__(call, above)
        self.tree, self.kind, self.query, self.query_id, self.given = tree, kind, query, query_id, given
        self.started = started
        self.children: list[Passages] | None = None
        self.retrieval: Hashable | None = None
        self.tool: Hashable | None = None
        if above is not None:
            self.retrieval = above.call if above.kind is Kind.RETRIEVE else above.retrieval
            self.tool = above.call if above.kind is Kind.TOOL else above.tool
            if query_id is None:
                self.query_id = above.query_id


class _Tree:
    """The calls under way below a root, and the retrievals that happened there."""

    __slots__ = ("_held", "calls", "root")

    def __init__(self, root: Hashable) -> None:
        self.root = root
        self.calls: dict[Hashable, _Open] = {}
        self._held: Held | None = None

    @property
    def held(self) -> Held:
        """The retrievals; made when it is needed, since most trees are one retrieval."""
        if self._held is None:
            self._held = Held()
        return self._held

    @property
    def holds_nothing(self) -> bool:
        """Whether no retrieval waits."""
        return self._held is None or not self._held


class CallTree:
    """Follows calls and hands over each retrieval when it is known what became of it.

    The outermost of nested retrievals counts. A selection (a reranker, a filter) after it decides what was shown;
    so do the sources of the answer that it served, where no selection did. A retrieval is handed over when that
    answer is given, or else when the tool or the outermost call around it ends. Calls that outlive the outermost one
    are still followed.

    A tool that gives passages is one retrieval: they are what was shown, and what was retrieved inside it is the pool.
    A tool that gives none leaves the retrievals inside it as they are.

    A call without a query id of its own has that of the call around it.

    A retrieval that failed is handed over with an empty list and an empty pool when the call around it ends, unless
    another attempt at the same query within that call succeeded.

    Parameters
    ----------
    record : callable
        Takes each Retrieval.
    pool_of_children : bool
        Whether the retrievals directly inside a retrieval are its candidates, and its own result a selection from them
        (a compressing or fusing retriever); otherwise its own result is the pool.
    at_once : bool
        Hand a retrieval over when it ends, or when the tool around it ends: nothing else selects from it.
    clock : callable
        Gives the time in seconds; of calls that were recorded earlier, the time of the record.

    most_held : int or None
        The most retrievals that wait inside one outermost call. Beyond these the one that ended first is handed over as
        it stands. None: no limit, for calls that were recorded earlier.

    Attributes
    ----------
    early : int
        Retrievals that were handed over before it was known what became of them, since too many waited.
    cut : int
        Retrievals that are missing from the pool of the one around them, since it had too many inside it.
    lost : int
        Calls that were forgotten while they were under way, since there were more than 20,000.

    Every method may be called from any thread.
    """

    def __init__(
        self,
        record: Callable[[Retrieval], None],
        *,
        pool_of_children: bool = False,
        at_once: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        most_held: int | None = MOST_HELD,
    ) -> None:
        self._record = record
        self._pool_of_children = pool_of_children
        self._at_once = at_once
        self._clock = clock
        self._most_held = most_held
        self._lock = threading.Lock()
        self._calls: dict[Hashable, _Open] = {}
        self._trees: dict[Hashable, _Tree] = {}
        self.early = self.cut = self.lost = 0

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
        done: list[Retrieved] = []
        with self._lock:
            if call in self._calls:
                return
            above = self._calls.get(parent) if parent is not None else None
            if above is None:
                tree = self._trees.get(call)
                if tree is None:
                    tree = self._trees[call] = _Tree(call)
            else:
                tree = above.tree
            made = _Open(call, above, tree, kind, query, query_id, given, self._clock())
            self._calls[call] = tree.calls[call] = made
            if len(self._calls) > _MOST_CALLS:
                oldest = next(iter(self._calls.values())).tree
                self.lost += len(oldest.calls)
                done = self._forget(oldest)
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
                del self._calls[call], self._trees[open_call.tree.root]
                seconds = self._clock() - open_call.started
                done = [Retrieved(open_call.query, open_call.query_id, None, passages, seconds, None)]
            else:
                done = []
                if passages is not None:
                    done = self._finished(open_call, passages)
                else:
                    self._lose(open_call)
                done += self._close(open_call)
                done += self._too_many(open_call.tree)
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

    def alone(self, call: Hashable) -> tuple[str, str | None] | None:
        """The query and query id of a call that is under way and part of no other; None for any other."""
        known = self._calls.get(call)
        return None if known is None or known.above is not None else (known.query, known.query_id)

    def fail(self, call: Hashable) -> None:
        """A call has raised an error or returned nothing; what was retrieved before that still counts.

        A retrieval inside it that is still under way was cancelled, which a framework may not tell.
        """
        with self._lock:
            failed = self._calls.get(call)
            if failed is None:
                return
            lost = [each for each in failed.open_within() if isinstance(each, _Open) and _retrieves(each)]
            if len(lost) > 1:
                begun = {each: i for i, each in enumerate(failed.tree.calls)}
                lost.sort(key=lambda each: begun[each.call])
            done = []
            for each in lost:
                done += self._failed(each)
                if each is not failed:
                    done += self._close(each)
            done += self._close(failed, failed=True)
            done += self._too_many(failed.tree)
        self._hand_over(done)

    def kind_of(self, call: Hashable) -> Kind | None:
        """What a call that is under way does; None for any other."""
        known = self._calls.get(call)
        return None if known is None else known.kind

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each limit of the memory that was met."""
        notes = []
        if self.early:
            notes.append(
                f"{counted(self.early, 'retrieval')} waited with {self._most_held:,} others inside a call that is "
                f"under way, and {'was' if self.early == 1 else 'were'} recorded before it was known what was selected"
            )
        if self.cut:
            notes.append(
                f"{counted(self.cut, 'list')} of candidates inside a retrieval with more than {self._most_held:,} of "
                f"them {'is' if self.cut == 1 else 'are'} missing from its pool"
            )
        if self.lost:
            notes.append(
                f"more than {_MOST_CALLS:,} calls were under way at once: {counted(self.lost, 'call')} that began "
                f"first {'was' if self.lost == 1 else 'were'} given up, with the retrievals under way inside"
            )
        return tuple(notes)

    def finish(self) -> None:
        """Forget what is under way; retrievals that are over are handed over as they stand."""
        with self._lock:
            done = [each for tree in self._trees.values() for each in tree.held.take_all()]
            self._trees.clear()
            self._calls.clear()
        self._hand_over(done)

    # -- with the lock held --------------------------------------------------------------------------

    def _is_alone(self, of: _Open) -> bool:
        """Whether a call is an outermost retrieval without anything inside it that counts."""
        if of.above is not None or of.kind is not Kind.RETRIEVE or of.children:
            return False
        return len(of.tree.calls) == 1 and of.tree.holds_nothing

    def _finished(self, of: _Open, passages: Passages) -> list[Retrieved]:
        if of.retrieval is not None:
            around = self._calls.get(of.retrieval)
            if of.kind is Kind.RETRIEVE and around is not None and self._pool_of_children:
                if around.children is None:
                    around.children = []
                if self._most_held is None or len(around.children) < self._most_held:
                    around.children.append(passages)
                else:
                    self.cut += 1
            return []
        held = of.tree.held
        if of.kind is Kind.RETRIEVE:
            pool, final = passages, None
            if of.children:
                pool = union([*of.children, passages])
                # A retriever that only passes on what another one found selects nothing.
                passed_on = len(of.children) == 1 and of.children[0].ids == passages.ids
                pool, final = (passages, None) if passed_on else (pool, passages)
            retrieval = Retrieved(of.query, of.query_id, of.above, pool, self._clock() - of.started, final)
            held.forgive(of.query, retrieval.scope)
            if (self._at_once and of.tool is None) or of.above is None:
                return [retrieval]
            held.add(retrieval)
        elif of.kind is Kind.TOOL:
            return self._given_by_tool(of, held.take_inside(of), passages)
        elif of.kind is Kind.SELECT:
            _select(held, of, passages)
        elif of.kind is Kind.ANSWER:
            done = held.take_inside(of)
            if len(done) == 1 and not done[0].selected:
                returned = done[0].final or done[0].pool
                if passages.ids != returned.ids and set(passages.ids) & set(done[0].pool.ids):
                    done[0].final = passages
            return done
        return []

    def _given_by_tool(self, of: _Open, inside: list[Retrieved], passages: Passages) -> list[Retrieved]:
        if not inside:
            seconds = self._clock() - of.started
            return [Retrieved(of.query, of.query_id, of.above, passages, seconds, None)] if passages.ids else []
        last = inside[-1]
        if len(inside) == 1:
            shown = last.pool if last.final is None else last.final
            return inside if shown.ids == passages.ids else [replace(last, final=passages)]
        pool, seconds = union([each.pool for each in inside]), sum(each.seconds for each in inside)
        return [replace(last, query=of.query or last.query, pool=pool, seconds=seconds, final=passages)]

    def _lose(self, of: _Open) -> None:
        """Drop what a selection with an unknown result worked on: the whole pool was not what it left."""
        if of.kind is Kind.SELECT and of.retrieval is None:
            held = of.tree.held
            held.remove(held.worked_on(of.given, of.query, of.above))

    def _failed(self, of: _Open) -> list[Retrieved]:
        nothing, seconds = Passages(()), self._clock() - of.started
        failure = Retrieved(of.query, of.query_id, of.above, nothing, seconds, nothing, failed=True)
        if of.above is None:
            return [failure]
        of.tree.held.add_failure(failure)
        return []

    def _close(self, of: _Open, *, failed: bool = False) -> list[Retrieved]:
        tree, call = of.tree, of.call
        del self._calls[call], tree.calls[call]
        if not tree.calls or (failed and call == tree.root):
            of.is_open = False
            return self._forget(tree)
        held = tree.held
        if call == tree.root:
            held.leave(of)
            return held.take_left()
        inside = held.take_inside(of) if of.kind is Kind.TOOL else []
        held.leave(of)
        return inside + held.take_failures(call)

    def _forget(self, tree: _Tree) -> list[Retrieved]:
        self._trees.pop(tree.root, None)
        for call in tree.calls:
            self._calls.pop(call, None)
        tree.calls = {}
        return [] if tree.holds_nothing else tree.held.take_all()

    def _too_many(self, tree: _Tree) -> list[Retrieved]:
        """What has to be handed over early."""
        done = []
        while self._most_held is not None and not tree.holds_nothing and len(tree.held) > self._most_held:
            done.append(tree.held.take_oldest())
            self.early += 1
        return done

    # -- without it ----------------------------------------------------------------------------------

    def _hand_over(self, done: Sequence[Retrieved]) -> None:
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


def _retrieves(call: _Open) -> bool:
    return call.kind is Kind.RETRIEVE and call.retrieval is None


def _select(held: Held, of: _Open, left: Passages) -> None:
    """Write what a selection left to the retrievals that it worked on, which become one with one pool."""
    worked_on = held.worked_on(of.given, of.query, of.above)
    if not worked_on:
        return
    merged = replace(
        worked_on[-1],
        pool=union([each.pool for each in worked_on]),
        seconds=sum(each.seconds for each in worked_on),
        final=left,
        selected=True,
    )
    held.replace(worked_on, merged)
