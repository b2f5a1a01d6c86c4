"""Retrievals that are over and wait until it is known what was selected from them, by the call that they are inside.

What is looked for among them (those inside a call, those that share passages with a selection) is found without looking
at all of them, so that a trace with many retrievals takes time in proportion to their number.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from rag_selectivity.live.passages import Passages

__all__ = ["Held", "Place", "Retrieved"]

#: Up to so many retrievals are looked at one by one; more are found by their passages and queries.
_FEW = 32


class Place:
    """A call as the place of retrievals: `retrievals` are those inside it, but inside no open call `within` it."""

    __slots__ = ("above", "call", "depth", "is_open", "retrievals", "within")

    def __init__(self, call: Hashable, above: Place | None) -> None:
        self.call, self.above = call, above
        self.is_open = True
        self.within: dict[Hashable, Place] | None = None
        self.retrievals: dict[int, Retrieved] | None = None
        if above is None:
            self.depth = 0
            return
        self.depth = above.depth + 1
        if above.within is None:
            above.within = {}
        above.within[call] = self

    def open_within(self) -> Iterator[Place]:
        """The call and the open calls inside it."""
        waiting = [self]
        while waiting:
            place = waiting.pop()
            yield place
            if place.within:
                waiting.extend(place.within.values())

    def path(self) -> Iterator[Place]:
        """The call and the calls around it, as far up as the first that is over."""
        place: Place | None = self
        while place is not None:
            yield place
            place = place.above if place.is_open else None


@dataclass(slots=True, eq=False)
class Retrieved:
    """A retrieval that is over, until it is known what was selected from it.

    `final` is what a fusing or compressing retriever left of its pool, until a selection (`selected`) left less.
    `around` is the call that it was part of, and `top` the depth of the outermost call around it that was known then.
    """

    query: str
    query_id: str | None
    around: Place | None
    pool: Passages
    seconds: float
    final: Passages | None
    failed: bool = False
    selected: bool = False
    top: int = 0
    number: int = 0
    stands_in: dict[int, Retrieved] | None = None

    @property
    def scope(self) -> Hashable | None:
        """The call that it was part of."""
        return None if self.around is None else self.around.call

    def path(self) -> Iterator[Place]:
        """The calls around it that were known when it ended."""
        place = self.around
        while place is not None and place.depth >= self.top:
            yield place
            place = place.above


class Held:
    """The retrievals of one tree of calls, in the order in which they ended, and those that failed.

    Calls may end in any order. While every call ends before the one around it, `in_order` is true.
    """

    __slots__ = ("_failed", "_failures", "_index", "_last", "_left", "_retrievals", "in_order")

    def __init__(self) -> None:
        self._retrievals: dict[int, Retrieved] = {}
        #: Those of them that are inside no open call.
        self._left: dict[int, Retrieved] = {}
        self._failures: dict[int, Retrieved] = {}
        #: By the call around them, and by query.
        self._failed: dict[Hashable | None, dict[str, dict[int, Retrieved]]] = {}
        self._index: _Index | None = None
        self._last = 0
        self.in_order = True

    def __len__(self) -> int:
        return len(self._retrievals) + len(self._failures)

    def __iter__(self) -> Iterator[Retrieved]:
        yield from self._retrievals.values()
        yield from self._failures.values()

    # -- retrievals ----------------------------------------------------------------------------------

    def add(self, retrieval: Retrieved) -> None:
        """Hold a retrieval that has just ended."""
        self._numbered(retrieval)
        self._put(retrieval)

    def _numbered(self, retrieval: Retrieved) -> None:
        self._last += 1
        retrieval.number = self._last
        if not self.in_order and retrieval.around is not None:
            *_, outermost = retrieval.around.path()
            retrieval.top = outermost.depth

    def _put(self, retrieval: Retrieved) -> None:
        self._retrievals[retrieval.number] = retrieval
        self._place(retrieval, retrieval.around)
        if self._index is not None:
            self._index.add(retrieval)

    def _place(self, retrieval: Retrieved, place: Place | None) -> None:
        """Note the innermost open call that a retrieval is inside."""
        while place is not None and not place.is_open:
            place = place.above
        into = self._left
        if place is not None and place.depth >= retrieval.top:
            if place.retrievals is None:
                place.retrievals = {}
            into = place.retrievals
        into[retrieval.number] = retrieval
        retrieval.stands_in = into

    def take_all(self) -> list[Retrieved]:
        """Take out everything."""
        every = list(self)
        for part in (self._retrievals, self._left, self._failures, self._failed):
            part.clear()
        self._index = None
        return every

    def remove(self, retrievals: Iterable[Retrieved]) -> None:
        """Take retrievals out."""
        for each in retrievals:
            if each.stands_in is not None:
                del each.stands_in[each.number]
            del self._retrievals[each.number]
            if self._index is not None:
                self._index.remove(each)

    def replace(self, old: Collection[Retrieved], new: Retrieved) -> None:
        """Replace retrievals by one, which stands where the last of them stood, and counts as the latest."""
        self.remove(old)
        self._last += 1
        new.number = self._last
        self._put(new)

    def take_inside(self, place: Place) -> list[Retrieved]:
        """Take out the retrievals inside a call."""
        if self.in_order:
            inside = [each for part in place.open_within() for each in (part.retrievals or {}).values()]
            inside.sort(key=_number)
        else:
            inside = [each for each in self._retrievals.values() if place in each.path()]
        self.remove(inside)
        return inside

    def take_left(self) -> list[Retrieved]:
        """Take out the retrievals and failures that are inside no open call."""
        left = sorted(self._left.values(), key=_number)
        self.remove(left)
        failed = [each for each in self._failures.values() if not any(place.is_open for place in each.path())]
        for each in failed:
            self._forget_failure(each)
        return left + failed

    def take_oldest(self) -> Retrieved:
        """Take out what ended first."""
        oldest = min((next(iter(part.values())) for part in (self._retrievals, self._failures) if part), key=_number)
        if oldest.number in self._retrievals:
            self.remove([oldest])
        else:
            self._forget_failure(oldest)
        return oldest

    def leave(self, place: Place) -> None:
        """A call ends: what is inside it is inside the calls around it."""
        place.is_open = False
        above = place.above
        if above is not None and above.within is not None:
            del above.within[place.call]
        if place.within:
            self.in_order = False
        inside, place.retrievals = place.retrievals, None
        if not inside:
            return
        if above is None or not self.in_order:
            for each in inside.values():
                self._place(each, above)
            return
        if above.retrievals is None or len(above.retrievals) < len(inside):
            # The fewer move: each moves so seldom that deep nesting takes hardly longer than none.
            above.retrievals, inside = inside, above.retrievals or {}
        for number, each in inside.items():
            above.retrievals[number] = each
            each.stands_in = above.retrievals

    # -- failures ------------------------------------------------------------------------------------

    def add_failure(self, failure: Retrieved) -> None:
        """Hold a retrieval that failed."""
        self._numbered(failure)
        self._failures[failure.number] = failure
        self._failed.setdefault(failure.scope, {}).setdefault(failure.query, {})[failure.number] = failure

    def forgive(self, query: str, scope: Hashable | None) -> None:
        """Forget the failed attempts at a query within a call: another one succeeded."""
        for each in list(self._failed.get(scope, {}).get(query, {}).values()):
            self._forget_failure(each)

    def take_failures(self, scope: Hashable) -> list[Retrieved]:
        """Take out the failures within a call."""
        failed = [each for part in self._failed.get(scope, {}).values() for each in part.values()]
        for each in failed:
            self._forget_failure(each)
        return sorted(failed, key=_number)

    def _forget_failure(self, failure: Retrieved) -> None:
        del self._failures[failure.number]
        by_query = self._failed[failure.scope]
        del by_query[failure.query][failure.number]
        if not by_query[failure.query]:
            del by_query[failure.query]
        if not by_query:
            del self._failed[failure.scope]

    # -- selections ----------------------------------------------------------------------------------

    def worked_on(self, given: Collection[str], query: str, around: Place | None) -> list[Retrieved]:
        """The retrievals that a selection works on; the last is the one that it belongs to.

        Tools that run side by side bring some of the same passages: of the retrievals whose passages went in, those
        count that share the nearest call with the selection. Of these it belongs to one for the same query, or else to
        the one with most passages in it, or else to the last. Others take part if some of what went in is from them
        alone, or if they are for the same query or in the same call and all that they found went in.
        """
        if not self._retrievals:
            return []
        wanted = frozenset(given)
        if not self.in_order or around is None:
            return _chosen(self._nearest(wanted, around), wanted, query)
        if self._index is None and len(self._retrievals) > _FEW:
            self._index = _Index(self._retrievals.values())
        index = self._index
        if wanted and not (_overlapping(self._retrievals.values(), wanted) if index is None else index.knows(wanted)):
            scope = around.call
            last = next((each for each in reversed(self._retrievals.values()) if each.scope == scope), None)
            return [] if last is None else [last]
        for place in around.path():
            places = [part.retrievals for part in place.open_within() if part.retrievals]
            if sum(map(len, places)) > _FEW and index is not None:
                near = index.narrowed(self._retrievals, set(map(id, places)), wanted, query)
            else:
                every = sorted(chain.from_iterable(part.values() for part in places), key=_number)
                near = _overlapping(every, wanted) if wanted else every
            if near:
                return _chosen(near, wanted, query)
        return []

    def _nearest(self, given: frozenset[str], around: Place | None) -> list[Retrieved]:
        """Of the retrievals that share passages with a selection, those that share the nearest call with it."""
        candidates = list(self._retrievals.values())
        if given:
            scope = None if around is None else around.call
            candidates = _overlapping(candidates, given) or [each for each in candidates if each.scope == scope][-1:]
        above = [] if around is None else list(around.path())
        distance = {id(place): steps for steps, place in enumerate(above)}
        by_distance: dict[int, list[Retrieved]] = {}
        for each in candidates:
            steps = min((distance[id(place)] for place in each.path() if id(place) in distance), default=len(distance))
            by_distance.setdefault(steps, []).append(each)
        return by_distance[min(by_distance)] if by_distance else []


class _Index:
    """Retrievals by their passages and queries."""

    def __init__(self, retrievals: Iterable[Retrieved]) -> None:
        self._by_passage: dict[str, dict[int, Retrieved]] = {}
        self._by_query: dict[str, dict[int, Retrieved]] = {}
        #: Those that nothing was selected from yet, by their first passage; None stands for those without passages.
        self._whole: dict[str | None, dict[int, Retrieved]] = {}
        self._with_repeats = 0
        for each in retrievals:
            self.add(each)

    def _entries(self, of: Retrieved) -> Iterator[tuple[dict[str, dict[int, Retrieved]], str]]:
        for passage in set(of.pool.ids):
            yield self._by_passage, passage
        yield self._by_query, of.query

    def add(self, retrieval: Retrieved) -> None:
        for index, key in self._entries(retrieval):
            index.setdefault(key, {})[retrieval.number] = retrieval
        ids = retrieval.pool.ids
        if not retrieval.selected or not ids:
            self._whole.setdefault(ids[0] if ids else None, {})[retrieval.number] = retrieval
        self._with_repeats += len(set(ids)) < len(ids)

    def remove(self, retrieval: Retrieved) -> None:
        for index, key in self._entries(retrieval):
            del index[key][retrieval.number]
            if not index[key]:
                del index[key]
        ids = retrieval.pool.ids
        self._whole.get(ids[0] if ids else None, {}).pop(retrieval.number, None)
        self._with_repeats -= len(set(ids)) < len(ids)

    def knows(self, passages: Iterable[str]) -> bool:
        """Whether some retrieval found one of these passages."""
        return any(passage in self._by_passage for passage in passages)

    def narrowed(
        self, every: dict[int, Retrieved], places: Collection[int], given: frozenset[str], query: str
    ) -> list[Retrieved]:
        """Of the retrievals at some places, as many as decide what a selection works on, in their order."""

        def here(retrievals: Iterable[Retrieved]) -> Iterator[Retrieved]:
            return (each for each in retrievals if id(each.stands_in) in places)

        asked = self._by_query.get(query, {})
        if not given:
            empty = self._whole.get(None, {})
            only_empty = next(here(empty.values()), None) is not None
            pool = empty if only_empty else every
            first = next((each for each in here(reversed(asked.values())) if each.number in pool), None)
            first = first or next(here(reversed(pool.values())), None)
            return [] if first is None else [first]
        first = None
        alike = _overlapping(here(asked.values()), given)
        if alike:
            first = max(alike, key=lambda each: (_overlap(each, given), each.number))
        elif not self._with_repeats and all(passage in self._by_passage for passage in given):
            # Nothing overlaps more than a retrieval that found all of them, and the last of several counts.
            rarest = min((self._by_passage[passage] for passage in given), key=len)
            first = next((each for each in here(reversed(rarest.values())) if given.issubset(each.pool.ids)), None)
        if first is None:
            found = {each.number: each for passage in given for each in self._found(passage)}
        else:
            same = self._by_query.get(first.query, {}).values()
            found = {each.number: each for each in same if each.scope == first.scope}
            for passage in given:
                found.update(self._whole.get(passage, {}))
            for passage in given.difference(first.pool.ids):
                found.update({each.number: each for each in self._found(passage)})
            found.update({each.number: each for each in (*alike, first)})
        return sorted(_overlapping(here(found.values()), given), key=_number)

    def _found(self, passage: str) -> Collection[Retrieved]:
        return self._by_passage.get(passage, {}).values()


def _chosen(candidates: list[Retrieved], given: frozenset[str], query: str) -> list[Retrieved]:
    """Of retrievals at the same distance, those that a selection works on."""
    if not candidates:
        return []
    if not given:
        candidates = [each for each in candidates if not each.pool.ids] or candidates
    *others, first = sorted(candidates, key=lambda each: (each.query == query, _overlap(each, given)))
    together, covered = [], set(first.pool.ids)
    for each in reversed(others):
        alike = (each.query == first.query) + (each.scope == first.scope)
        whole = alike == 1 and not each.selected and given.issuperset(each.pool.ids)
        if given and (alike == 2 or whole or not given.intersection(each.pool.ids) <= covered):
            together.append(each)
            covered.update(each.pool.ids)
    return [*sorted(together, key=_number), first]


def _overlapping(retrievals: Iterable[Retrieved], ids: frozenset[str]) -> list[Retrieved]:
    return [each for each in retrievals if not ids.isdisjoint(each.pool.ids)]


def _overlap(retrieval: Retrieved, ids: Collection[str]) -> int:
    return sum(id_ in ids for id_ in retrieval.pool.ids)


def _number(retrieval: Retrieved) -> int:
    return retrieval.number
