"""The calls of a running application as a tree, and the retrievals that come of them.

A framework tells when a call begins, what called it, and what came back. An adapter passes that on to a `CallTree`. The
code below has these rules, in this order:

1. Retrieval. The outermost of nested retrievers is one retrieval. What it returned is shown.
2. Compression. If one list was found inside it and it returned some of that, it has selected from that list. What
   several lists give (a fusion) is no selection.
3. Failure. A retrieval that fails waits in the call that its error has reached last: whoever catches it.
4. Attempts. If that call then asks for the same query again, itself or inside calls that begin after the error, the new
   retrieval takes the place of the failed one: a retry, a fallback. After the error of a tool only the same tool does,
   or any under a call with fallbacks. What nobody asks again was an empty list.
5. Selection (a reranker, a filter). It works on retrievals that wait in the nearest call around it, or else in one
   beside it, of which a passage went in; if none did, on the last one of the call around it. What it leaves is shown.
6. It belongs to one of these: to one that found nothing if nothing went in, or else to one for the same query, to the
   one of which most went in, or to the last. Another takes part if something went in that it alone has found, if it is
   for the same query in the same call, or if one of both is so, nothing has selected from it, and all of it went in.
7. A selection that fails has failed its retrievals, if the error reaches a call that they are part of. Whoever catches
   it before, and goes on, may show their passages. One that returned nothing has shown nothing.
8. Answer. What an answer names as its sources is shown, if it is some of the only list inside it, from which nothing
   but its own retriever has selected.
9. Tool. A tool that gives passages is one retrieval: it has selected from those inside it, and what failed there was
   mended. One that gives none leaves them as they are.
10. Pool. It is what went into the first selection, which cannot lose what it never saw. Without one there is no pool.
11. Handing over. A retrieval is handed over when the answer is given, or else when the tool or the outermost call
    around it ends. Calls that outlive the outermost one are still followed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from rag_selectivity.live.retrieval import Passages, Retrieval, union
from rag_selectivity.live.watching import shared_lock

#: Calls that never end (an abandoned generator) must not fill the memory.
_MOST_CALLS = 20_000
#: Nor must retrievals inside a call that never ends.
MOST_WAITING = 2_000


class Kind(Enum):
    """What a call does, as far as it matters here."""

    RETRIEVE = "retrieve"
    SELECT = "select"
    ANSWER = "answer"
    TOOL = "tool"
    #: Calls another one after an error.
    FALLBACKS = "fallbacks"
    OTHER = "other"


@dataclass(slots=True, eq=False)
class _Call:
    """A call; `retrieval` is the nearest retriever around it, and `root` the outermost call."""

    id: Hashable
    caller: _Call | None
    kind: Kind
    query: str
    query_id: str | None
    given: Collection[str]
    name: str
    started: float
    ended: float = math.inf
    #: Retrievals inside it that are over; when it ends, most of them wait in the call around it.
    waiting: list[_Retrieved] = field(default_factory=list)
    #: Retrievals from which a selection has failed, whose error has come so far.
    doubtful: list[_Retrieved] = field(default_factory=list)
    #: Of a retriever: lists that were found directly inside it.
    lists: list[Passages] = field(default_factory=list)
    #: Of the outermost call: whether a retriever was asked inside it, and the calls under way in it, with itself.
    has_retrieved: bool = False
    under_way: dict[Hashable, _Call] = field(default_factory=dict)
    retrieval: _Call | None = None
    root: _Call = field(init=False)

    def __post_init__(self) -> None:
        caller = self.caller
        self.root = self if caller is None else caller.root
        self.root.under_way[self.id] = self
        if caller is not None:
            self.retrieval = caller if caller.kind is Kind.RETRIEVE else caller.retrieval
            if self.query_id is None:
                self.query_id = caller.query_id

    def path(self) -> Iterator[_Call]:
        """The call and the calls around it."""
        call: _Call | None = self
        while call is not None:
            yield call
            call = call.caller


@dataclass(slots=True, eq=False)
class _Retrieved:
    """A retrieval that is over.

    `pool` is what went into the first selection, or will, and `left` what the last one has left of it; it is compressed
    if none but its own retriever has selected. Of a retrieval that failed, `error_of` is the last call that its error
    has ended.
    """

    query: str
    query_id: str | None
    caller: _Call | None
    pool: Passages
    seconds: float
    left: Passages | None = None
    compressed: bool = False
    error_of: _Call | None = None

    @property
    def failed(self) -> bool:
        return self.error_of is not None

    @property
    def shown(self) -> Passages:
        return self.pool if self.left is None else self.left


class CallTree:
    """Follows calls and hands over each retrieval when it is known what became of it.

    The rules stand at the head of this module.

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
    most_waiting : int
        The most retrievals that wait inside one call. Beyond these the one that ended first is handed over as it
        stands. Infinity for calls that were recorded earlier.

    Every method may be called from any thread.
    """

    def __init__(
        self,
        record: Callable[[Retrieval], None],
        *,
        asked: Callable[[str | None, str], None] | None = None,
        at_once: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        most_waiting: float = MOST_WAITING,
    ) -> None:
        self._asked = asked
        self._record, self._at_once, self._clock, self._most_waiting = record, at_once, clock, most_waiting
        self._lock = shared_lock()
        self._calls: dict[Hashable, _Call] = {}

    def begin(
        self,
        call: Hashable,
        caller: Hashable | None,
        kind: Kind,
        *,
        query: str = "",
        query_id: str | None = None,
        given: Collection[str] = (),
        name: str = "",
    ) -> None:
        """A call begins. `given` are the ids of the passages that a selection gets, `query` is what it selects for.

        Without a query id of its own it has that of the call around it. By its `name` a tool is known that is called
        again.

        A call that is under way already does not begin anew: a framework may tell of it twice.
        """
        done: list[_Retrieved] = []
        with self._lock:
            if call in self._calls:
                return
            around = self._calls.get(caller) if caller is not None else None
            begun = self._calls[call] = _Call(call, around, kind, query, query_id, given, name, self._clock())
            if around is not None:
                # It goes on, so that it has caught the error of a selection.
                around.doubtful = []
            if kind is Kind.RETRIEVE:
                begun.root.has_retrieved = True
                if begun.retrieval is None:
                    _take_place_of_failed(begun)
            if len(self._calls) > _MOST_CALLS:
                done = self._forget(next(iter(self._calls.values())).root)
        self._hand_over(done)

    def end(self, call: Hashable, passages: Passages | None = None) -> None:
        """A call ends, with the passages that it retrieved, selected or answered from.

        Without passages, a retrieval is not handed over, nor is one from which something was selected that is unknown.
        """
        with self._lock:
            if (ended := self._calls.get(call)) is None:
                return
            done: list[_Retrieved] = []
            if ended.retrieval is not None:
                if ended.kind is Kind.RETRIEVE and passages is not None and len(ended.retrieval.lists) < 2:
                    ended.retrieval.lists.append(passages)
            elif ended.kind is Kind.SELECT:
                _select(ended, passages)
            elif passages is not None and ended.kind is Kind.RETRIEVE:
                done = self._retrieve(ended, passages)
            elif passages is not None and ended.kind is Kind.ANSWER:
                done = _answer(ended, passages)
            elif passages is not None and ended.kind is Kind.TOOL:
                done = self._give(ended, passages)
            done += self._close(ended)
        self._hand_over(done, over=ended)

    def fail(self, call: Hashable, *, returned: bool = False) -> None:
        """A call has raised an error or returned nothing; what was retrieved before that still counts.

        Of a selection that `returned` nothing there is no error to be caught.

        A retrieval inside it that is still under way was cancelled, which a framework may not tell.
        """
        with self._lock:
            if (failed := self._calls.get(call)) is None:
                return
            for each in [*failed.root.under_way.values()]:
                if each.kind is Kind.RETRIEVE and each.retrieval is None and failed in each.path():
                    failed.waiting.append(replace(self._retrieved(each, Passages(())), error_of=failed))
                    if each is not failed:
                        self._close(each)
            _fail_selections(failed, returned)
            done = self._close(failed, failed=True)
        self._hand_over(done, over=failed)

    def needs_ids(self, call: Hashable, wanted: Callable[[str, str | None], bool]) -> bool:
        """Whether the ids of what a call finds matter; without, they cost most of the time.

        They do where something selects by them, or a query is `wanted` that was asked by the call, around it, or inside
        it.
        """
        known = self._calls.get(call)
        if known is None or not (self._at_once or (known.caller is None and known.kind is Kind.RETRIEVE)):
            return True
        asked: list[_Call | _Retrieved] = [*known.path(), *known.waiting]
        return any(wanted(each.query, each.query_id) for each in asked)

    def lacks_retrieval(self, selection: Hashable) -> bool:
        """Whether nothing was retrieved that a selection, which is under way, can work on."""
        known = self._calls[selection]
        return known.retrieval is None and not _worked_on(known)[1]

    def is_inside(self, call: Hashable, around: Hashable) -> bool:
        """Whether a call is under way inside another one."""
        known = self._calls.get(call)
        return known is not None and any(each.id == around for each in known.path())

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

    def _retrieved(self, call: _Call, passages: Passages) -> _Retrieved:
        return _Retrieved(call.query, call.query_id, call.caller, passages, self._clock() - call.started)

    def _retrieve(self, call: _Call, passages: Passages) -> list[_Retrieved]:
        """Rules 1 and 2; what is handed over."""
        found = self._retrieved(call, passages)
        if len(call.lists) == 1 and passages.ids != call.lists[0].ids and set(passages.ids) <= set(call.lists[0].ids):
            found.pool, found.left, found.compressed = call.lists[0], passages, True
        if call.caller is None or (self._at_once and all(each.kind is not Kind.TOOL for each in call.path())):
            return [found]
        call.waiting.append(found)
        return []

    def _give(self, tool: _Call, passages: Passages) -> list[_Retrieved]:
        """Rule 9."""
        inside = [each for each in tool.waiting if not each.failed]
        tool.waiting = [each for each in tool.waiting if each.failed and not passages.ids]
        if not inside:
            return [self._retrieved(tool, passages)] if passages.ids else []
        if len(inside) == 1 and inside[0].shown.ids == passages.ids:
            return inside
        return [_as_one(inside, passages, tool.query if len(inside) > 1 else "")]

    def _close(self, call: _Call, *, failed: bool = False) -> list[_Retrieved]:
        """Rules 3 and 11: what waits in a call that is over waits in the call around it, or is handed over."""
        if failed and call is call.root:
            return self._forget(call)
        call.ended = self._clock()
        del self._calls[call.id], call.root.under_way[call.id]
        around = next((each for each in call.path() if each.ended == math.inf), None)
        if around is None:
            return call.waiting
        done: list[_Retrieved] = []
        for each in call.waiting:
            # What failed goes on with the error; what a tool found has been shown.
            goes_on = failed if each.failed else call.kind is not Kind.TOOL
            (around.waiting if goes_on else done).append(each)
            each.error_of = call if each.failed else None
        while len(around.waiting) > self._most_waiting:
            done.append(around.waiting.pop(0))
        return done

    def _forget(self, root: _Call) -> list[_Retrieved]:
        calls, root.under_way = list(root.under_way.values()), {}
        for call in calls:
            del self._calls[call.id]
        return [each for call in calls for each in call.waiting]

    # -- without it ----------------------------------------------------------------------------------

    def _hand_over(self, done: Sequence[_Retrieved], *, over: _Call | None = None) -> None:
        """Record retrievals; `over` is a call that has ended, which may have asked no retriever."""
        for each in done:
            known = union([each.pool, each.shown])
            self._record(
                Retrieval(
                    each.query,
                    each.shown.ids,
                    # Rule 10.
                    pool=None if each.left is None else each.pool.ids,
                    query_id=each.query_id,
                    tokens=each.shown.tokens,
                    seconds=each.seconds,
                    failed=each.failed,
                    empty_passages=each.shown.empty,
                    nan_scores=each.shown.nan_scores,
                    texts=None if known.texts is None else dict(zip(known.ids, known.texts, strict=True)),
                )
            )
        if over is not None and over.caller is None and not over.has_retrieved and self._asked is not None:
            self._asked(over.query_id, over.query)


def _take_place_of_failed(begun: _Call) -> None:
    """Rule 4, as a retrieval begins."""
    for step in begun.path():
        if step.caller is not None:
            waiting = step.caller.waiting
            step.caller.waiting = [past for past in waiting if past.query != begun.query or not _follows(step, past)]


def _follows(step: _Call, past: _Retrieved) -> bool:
    """Whether a call that leads to another attempt began after an error had come to the call around it."""
    by = past.error_of
    if by is None or step.started < by.ended:
        return False
    has_fallbacks = step.caller is not None and step.caller.kind is Kind.FALLBACKS
    return by.kind is not Kind.TOOL or has_fallbacks or (step.kind is Kind.TOOL and step.name == by.name)


def _worked_on(selection: _Call) -> tuple[_Call, list[_Retrieved]]:
    """Rules 5 and 6: the retrievals that a selection works on, of which it belongs to the last, and where they wait."""
    given = frozenset(selection.given)

    def went_in(call: _Call) -> list[_Retrieved]:
        working = [each for each in call.waiting if not each.failed]
        return [each for each in working if not given or not given.isdisjoint(each.pool.ids)]

    def fit(each: _Retrieved) -> tuple[bool, bool, int]:
        return not given and not each.pool.ids, each.query == selection.query, len(given.intersection(each.pool.ids))

    beside = selection.root.under_way.values() if given else ()
    holder = next(filter(went_in, [*selection.path(), *beside]), selection.caller or selection)
    last = [each for each in holder.waiting if each.caller is holder and not each.failed][-1:]
    if not (near := went_in(holder) or last):
        return holder, []
    *others, owner = sorted(near, key=fit)
    known, taking_part = set(owner.pool.ids), {owner}
    for each in reversed(others):
        same = (each.query == owner.query) + (each.caller is owner.caller)
        is_whole = same == 1 and each.left is None and given.issuperset(each.pool.ids)
        brings_more = not given.intersection(each.pool.ids) <= known
        if given and (brings_more or same == 2 or is_whole):
            taking_part.add(each)
            known.update(each.pool.ids)
    return holder, [*(each for each in near if each in taking_part and each is not owner), owner]


def _select(selection: _Call, left: Passages | None) -> None:
    """Rule 5; if what it left is unknown, its retrievals are dropped, since their lists were not shown."""
    holder, worked_on = _worked_on(selection)
    holder.waiting = [each for each in holder.waiting if each not in worked_on]
    if worked_on and left is not None:
        holder.waiting.append(_as_one(worked_on, left))


def _fail_selections(failed: _Call, returned: bool) -> None:
    """Rule 7."""
    if failed.kind is Kind.SELECT and failed.retrieval is None:
        failed.doubtful += _worked_on(failed)[1]
    for lost in failed.doubtful:
        if returned or lost in failed.waiting:
            lost.error_of, lost.left = failed, Passages(())
    if failed.caller is not None:
        failed.caller.doubtful += [each for each in failed.doubtful if not each.failed]


def _answer(answer: _Call, sources: Passages) -> list[_Retrieved]:
    """Rule 8; what is handed over."""
    inside = [each for each in answer.waiting if not each.failed]
    answer.waiting = [each for each in answer.waiting if each.failed]
    if len(inside) == 1 and (inside[0].left is None or inside[0].compressed) and sources.ids != inside[0].shown.ids:
        inside[0].left = sources if {*sources.ids} & {*inside[0].shown.ids} else inside[0].left
    return inside


def _as_one(parts: Sequence[_Retrieved], left: Passages, query: str = "") -> _Retrieved:
    """Retrievals as one with one pool, of which something was left; for the last one's query, if no other is given."""
    pool, seconds = union([each.pool for each in parts]), sum(each.seconds for each in parts)
    return replace(parts[-1], query=query or parts[-1].query, pool=pool, seconds=seconds, left=left)
