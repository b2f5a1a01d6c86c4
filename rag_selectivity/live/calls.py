"""The calls of a running application as a tree: which candidates a retrieval had, and what was selected from them.

Frameworks tell when a call begins, what called it, and what came back. An adapter passes that on; what comes out
are retrievals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from rag_selectivity.live.retrieval import Passages, Retrieval, union
from rag_selectivity.live.watching import shared_lock

#: Calls that never end (an abandoned generator) must not fill the memory.
_MOST_CALLS = 20_000
#: Nor must retrievals inside a call that never ends.
MOST_HELD = 2_000


class Kind(Enum):
    """What a call does, as far as it matters here."""

    RETRIEVE = "retrieve"
    SELECT = "select"
    ANSWER = "answer"
    TOOL = "tool"
    OTHER = "other"


@dataclass(slots=True, eq=False)
class _Call:
    """A call; `retrieval` and `tool` are the nearest of their kind around it.

    It holds the retrievals that ended inside it and wait, the latest last, until it is over: then the call around it
    holds them. Of those that failed it holds the ones whose error has come so far.
    """

    id: Hashable
    above: _Call | None
    kind: Kind
    query: str
    query_id: str | None
    given: Collection[str]
    name: str
    started: float
    ended: float = math.inf
    #: Of the outermost one: whether a retriever was asked inside it.
    has_retrieved: bool = False
    children: list[Passages] = field(default_factory=list)
    held: list[_Retrieved] = field(default_factory=list)
    #: Retrievals from which a selection failed, whose error has come so far.
    doubtful: list[_Retrieved] = field(default_factory=list)
    retrieval: _Call | None = None
    tool: _Call | None = None
    root: _Call = field(init=False)
    #: Of the outermost one: the calls under way in it, with itself.
    below: dict[Hashable, _Call] = field(default_factory=dict)

    def __post_init__(self) -> None:
        above = self.above
        self.root = self if above is None else above.root
        self.root.below[self.id] = self
        if above is not None:
            # It goes on, so that it has caught the error of a selection.
            above.doubtful = []
            self.retrieval = above if above.kind is Kind.RETRIEVE else above.retrieval
            self.tool = above if above.kind is Kind.TOOL else above.tool
            if self.query_id is None:
                self.query_id = above.query_id
        if self.kind is Kind.RETRIEVE:
            self.root.has_retrieved = True
            if self.retrieval is None:
                self._drop_attempts()

    def _drop_attempts(self) -> None:
        """Drop what failed of the same query, where the call that caught its error has led here after that."""
        for each in _path(self):
            if each.above is not None:
                held = each.above.held
                each.above.held = [past for past in held if past.query != self.query or not each._follows(past)]

    def _follows(self, past: _Retrieved) -> bool:
        """Whether this began after an error had come to the call around; of a tool, this must be the same tool."""
        by = past.by
        if by is None or self.started < by.ended:
            return False
        return by.kind is not Kind.TOOL or (self.kind is Kind.TOOL and self.name == by.name)


@dataclass(slots=True, eq=False)
class _Retrieved:
    """A retrieval that is over, until it is known what was selected from it.

    `pool` is what a selection after it works on, and `final` what one has left of that, or the answer, the tool or a
    compressing retriever; `selected` says whether it was a selection. `parts` is what was found inside a retriever that
    fuses: the pool, while there is no `final`. `around` is the call that it was part of. Of one that failed, `by` is
    the last call that its error has ended.
    """

    query: str
    query_id: str | None
    around: _Call | None
    pool: Passages
    seconds: float
    final: Passages | None = None
    parts: Passages | None = None
    by: _Call | None = None
    selected: bool = False

    @property
    def failed(self) -> bool:
        return self.by is not None

    @property
    def shown(self) -> Passages:
        return self.pool if self.final is None else self.final


class CallTree:
    """Follows calls and hands over each retrieval when it is known what became of it.

    The outermost of nested retrievals counts. A selection (a reranker, a filter) after it decides what was shown; so do
    the sources of the answer that it served, where no selection did. The pool is what went into the first selection,
    which cannot lose what it never saw: of a retriever that fuses others, its result. Where nothing selects after it,
    what the retrievals directly inside it found is the pool. A retriever that leaves some of the one list found inside
    it (a compressing retriever) selects as well.

    A retrieval is handed over when that answer is given, or else when the tool or the outermost call around it ends.
    Calls that outlive the outermost one are still followed.

    A tool that gives passages is one retrieval: they are what was shown, and the retrievals inside it give the pool.
    A tool that gives none leaves the retrievals inside it as they are.

    A call without a query id of its own has that of the call around it.

    A retrieval that failed waits in the call that catches its error. If that call asks for the same query again, itself
    or by a call that begins after the error, this takes the place of what failed: a retry, a fallback. After the error
    of a tool only the same tool does. Else the retrieval is handed over with an empty list when that call ends. A
    retrieval whose selection failed has failed if the error reaches a call that both are part of; who catches it, and
    goes on, may show its passages.

    Parameters
    ----------
    record : callable
        Takes each Retrieval.
    asked : callable, optional
        Takes the query id and the query of an outermost call that is over and asked no retriever.
    at_once : bool
        Hand a retrieval over when it ends, or when the tool around it ends: nothing else selects from it.
    clock : callable
        Gives the time in seconds; of calls that were recorded earlier, the time of the record.
    most_held : int
        The most retrievals that wait inside one outermost call. Beyond these the one that ended first is handed over as
        it stands. Infinity for calls that were recorded earlier.

    Every method may be called from any thread.
    """

    def __init__(
        self,
        record: Callable[[Retrieval], None],
        *,
        asked: Callable[[str | None, str], None] | None = None,
        at_once: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        most_held: float = MOST_HELD,
    ) -> None:
        self._asked = asked
        self._record, self._at_once, self._clock, self._most_held = record, at_once, clock, most_held
        self._lock = shared_lock()
        self._calls: dict[Hashable, _Call] = {}

    def begin(
        self,
        call: Hashable,
        parent: Hashable | None,
        kind: Kind,
        *,
        query: str = "",
        query_id: str | None = None,
        given: Collection[str] = (),
        name: str = "",
    ) -> None:
        """A call begins. `given` are the ids of the passages that a selection gets, `query` is what it selects for.

        By its `name` a tool is known that is called again after an error: another one is no other attempt.

        A call that is under way already does not begin anew: a framework may tell of it twice.
        """
        done: list[_Retrieved] = []
        with self._lock:
            if call in self._calls:
                return
            above = self._calls.get(parent) if parent is not None else None
            self._calls[call] = _Call(call, above, kind, query, query_id, given, name, self._clock())
            if len(self._calls) > _MOST_CALLS:
                done = self._forget(next(iter(self._calls.values())).root)
        self._hand_over(done)

    def end(self, call: Hashable, passages: Passages | None = None) -> None:
        """A call ends, with the passages that it retrieved, selected or answered from.

        Without passages, a retrieval is not handed over, nor is one from which something was selected that is unknown.
        """
        with self._lock:
            if (of := self._calls.get(call)) is None:
                return
            done = self._outcome(of, passages) + self._close(of)
        self._hand_over(done, over=of)

    def fail(self, call: Hashable, *, returned: bool = False) -> None:
        """A call has raised an error or returned nothing; what was retrieved before that still counts.

        Of a selection that `returned` nothing there is no error to be caught: nothing was shown.

        A retrieval inside it that is still under way was cancelled, which a framework may not tell.
        """
        with self._lock:
            if (failed := self._calls.get(call)) is None:
                return
            now, nothing = self._clock(), Passages(())
            for each in [*failed.root.below.values()]:
                if each.kind is Kind.RETRIEVE and each.retrieval is None and failed in _path(each):
                    past = _Retrieved(each.query, each.query_id, each.above, nothing, now - each.started, by=failed)
                    failed.held.append(past)
                    if each is not failed:
                        self._close(each)
            if failed.kind is Kind.SELECT and failed.retrieval is None:
                failed.doubtful += _worked_on(failed)[1]
            for lost in failed.doubtful:
                if returned or lost in failed.held:
                    lost.by, lost.final = failed, nothing
            if failed.above is not None:
                failed.above.doubtful += [each for each in failed.doubtful if not each.failed]
            done = self._close(failed, failed=True)
        self._hand_over(done, over=failed)

    def needs_ids(self, call: Hashable, wanted: Callable[[str, str | None], bool]) -> bool:
        """Whether the ids of what a call finds matter; without, they cost most of the time.

        They do where something selects by them, or a query is `wanted` that was asked by the call, by the retrievals
        and tools around it, or inside it.
        """
        known = each = self._calls.get(call)
        if known is None or not (self._at_once or (known.above is None and known.kind is Kind.RETRIEVE)):
            return True
        while each is not None:
            if wanted(each.query, each.query_id):
                return True
            each = each.retrieval or each.tool
        return any(wanted(inside.query, inside.query_id) for inside in known.held)

    def lacks_retrieval(self, selection: Hashable) -> bool:
        """Whether nothing was retrieved that a selection, which is under way, can work on."""
        known = self._calls[selection]
        return known.retrieval is None and not _worked_on(known)[1]

    def is_inside(self, call: Hashable, around: Hashable) -> bool:
        """Whether a call is under way inside another one."""
        return any(each.id == around for each in _path(self._calls.get(call)))

    def kind_of(self, call: Hashable) -> Kind | None:
        """What a call that is under way does; None for any other."""
        known = self._calls.get(call)
        return None if known is None else known.kind

    def finish(self) -> None:
        """Forget what is under way; retrievals that are over are handed over as they stand."""
        with self._lock:
            roots = dict.fromkeys(call.root for call in self._calls.values())
            done = [each for root in roots for each in self._forget(root)]
        self._hand_over(done)

    # -- with the lock held --------------------------------------------------------------------------

    def _outcome(self, of: _Call, passages: Passages | None) -> list[_Retrieved]:
        """What is handed over because of the result of a call; it still has to be closed."""
        if of.retrieval is not None:
            if of.kind is Kind.RETRIEVE and passages is not None and len(of.retrieval.children) < self._most_held:
                of.retrieval.children.append(passages)
            return []
        if of.kind is Kind.SELECT:
            # If what it left is unknown, its retrievals are dropped: the whole pool was not that.
            held, worked_on = _worked_on(of)
            held[:] = [each for each in held if each not in worked_on]
            if worked_on and passages is not None:
                held.append(_merged(worked_on, passages, selected=True))
        if passages is None or of.kind in (Kind.SELECT, Kind.OTHER):
            return []
        found = _Retrieved(of.query, of.query_id, of.above, passages, self._clock() - of.started)
        if of.kind is Kind.RETRIEVE:
            # A retriever that only passes on what another one found selects nothing.
            if [each.ids for each in of.children] not in ([], [passages.ids]):
                found.parts = union([*of.children, passages])
                if len(of.children) == 1 and set(passages.ids).issubset(of.children[0].ids):
                    found.pool, found.final = found.parts, passages
            if of.above is None or (self._at_once and of.tool is None):
                return [found]
            of.held.append(found)
            return []
        inside = [each for each in of.held if not each.failed]
        # A tool that gives passages has mended what failed inside it.
        mended = of.kind is Kind.TOOL and passages.ids
        of.held = [each for each in of.held if each.failed and not mended]
        if of.kind is Kind.ANSWER:
            only = inside[0] if len(inside) == 1 and not inside[0].selected else None
            if only and passages.ids != only.shown.ids and set(passages.ids) & set(only.pool.ids):
                only.final = passages
            return inside
        if not inside:
            return [found] if passages.ids else []
        if len(inside) == 1 and inside[0].shown.ids == passages.ids:
            return inside
        return [_merged(inside, passages, query=(len(inside) > 1 and of.query) or inside[-1].query)]

    def _close(self, of: _Call, *, failed: bool = False) -> list[_Retrieved]:
        if failed and of is of.root:
            return self._forget(of)
        of.ended = self._clock()
        del self._calls[of.id], of.root.below[of.id]
        if (above := next((each for each in _path(of.above) if each.ended == math.inf), None)) is None:
            return of.held
        done: list[_Retrieved] = []
        for each in of.held:
            # What failed goes on with the error; what a tool found has been shown.
            goes_on = failed if each.failed else of.kind is not Kind.TOOL
            (above.held if goes_on else done).append(each)
            each.by = of if each.failed else None
        while len(above.held) > self._most_held:
            done.append(above.held.pop(0))
        return done

    def _forget(self, root: _Call) -> list[_Retrieved]:
        calls, root.below = list(root.below.values()), {}
        for call in calls:
            call.ended = -math.inf
            del self._calls[call.id]
        return [each for call in calls for each in call.held]

    # -- without it ----------------------------------------------------------------------------------

    def _hand_over(self, done: Sequence[_Retrieved], *, over: _Call | None = None) -> None:
        """Record retrievals; `over` is a call that has ended, which may have asked no retriever."""
        for each in done:
            shown, pool = each.shown, each.parts if each.final is None else each.pool
            known = union([pool or shown, shown])
            self._record(
                Retrieval(
                    each.query,
                    shown.ids,
                    pool=None if pool is None else pool.ids,
                    query_id=each.query_id,
                    tokens=shown.tokens,
                    seconds=each.seconds,
                    failed=each.failed,
                    empty_passages=shown.empty,
                    nan_scores=shown.nan_scores,
                    texts=None if known.texts is None else dict(zip(known.ids, known.texts, strict=True)),
                )
            )
        if over is not None and over.above is None and not over.has_retrieved and self._asked is not None:
            self._asked(over.query_id, over.query)


def _path(call: _Call | None) -> Iterator[_Call]:
    """A call and the calls around it."""
    while call is not None:
        yield call
        call = call.above


def _merged(parts: Sequence[_Retrieved], final: Passages, **changes: Any) -> _Retrieved:
    """Retrievals as one with one pool, of which `final` was shown."""
    pool, seconds = union([each.pool for each in parts]), sum(each.seconds for each in parts)
    return replace(parts[-1], pool=pool, seconds=seconds, final=final, **changes)


# -- what a selection works on ---------------------------------------------------------------------------


def _worked_on(selection: _Call) -> tuple[list[_Retrieved], list[_Retrieved]]:
    """What is held where the retrievals are that a selection works on, and these; it belongs to the last of them.

    Tools that run side by side bring some of the same passages: of the retrievals whose passages went in, those count
    that the selection or the nearest call around it holds, or else one beside it. Of these it belongs to one that found
    nothing if nothing went in, or else to one for the same query, to the one with most passages in it, or to the last.
    Others take part if some of what went in is from them alone, or if they are for the same query or in the same call
    and all that they found went in.
    """
    given = frozenset(selection.given)

    def overlapping(call: _Call) -> list[_Retrieved]:
        return [each for each in call.held if not (each.failed or (given and given.isdisjoint(each.pool.ids)))]

    beside = selection.root.below.values() if given else ()
    holder = next(filter(overlapping, [*_path(selection), *beside]), selection.above or selection)
    near = overlapping(holder) or [each for each in holder.held if each.around is holder and not each.failed][-1:]
    if not near:
        return [], []

    def fit(each: _Retrieved) -> tuple[bool, bool, int]:
        return not (given or each.pool.ids), each.query == selection.query, sum(id_ in given for id_ in each.pool.ids)

    *others, first = sorted(near, key=fit)
    together, covered = [], set(first.pool.ids)
    for each in reversed(others):
        alike = (each.query == first.query) + (each.around is first.around)
        whole = alike == 1 and not each.selected and given.issuperset(each.pool.ids)
        if given and (alike == 2 or whole or not given.intersection(each.pool.ids) <= covered):
            together.append(each)
            covered.update(each.pool.ids)
    return holder.held, [*(each for each in near if each in together), first]
