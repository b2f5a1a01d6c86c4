"""The pairs to grade: the top ranks of runs, and pairs drawn at random from the ranks below and from the corpus.

Those below the pool are its tail, those of the corpus are controls. Draws depend on nothing but the seed, the lists and
the corpus. So a command that is repeated draws the same pairs, a larger draw contains the smaller one, and the order of
a file does not matter.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.store import Draw
from rag_selectivity.grading.store.pool import CONTROL, TAIL, TOP, Pool
from rag_selectivity.judged.reading import pool_names, ranked_lists, ranked_rows
from rag_selectivity.judged.run import Run
from rag_selectivity.results.grading import DrawnPart
from rag_selectivity.tables.cells import check_whole, id_text
from rag_selectivity.tables.ids import HashArray, id_hashes
from rag_selectivity.tables.small import read_texts
from rag_selectivity.wording import counted

Pair = tuple[str, str]
#: (name, list) of what was retrieved.
Lists = Sequence[tuple[str, Run]]
#: {query: passages} that are graded anyway.
Taken = Mapping[str, Collection[str]]


class DrawnPair(NamedTuple):
    """A pair that was drawn at random, its rank in the run or in the fused runs, and `detail` as in `Origin`."""

    query: str
    passage: str
    rank: int | None
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tail:
    """Passages to draw from each query's ranks `first` to `last`, as `--tail 200:10` says.

    Attributes
    ----------
    first, last : int
        Ranks, from 1, both included.
    drawn : int
        Passages of each query.
    """

    first: int
    last: int
    drawn: int

    @classmethod
    def parse(cls, text: Any, pool_depth: int | None) -> Tail:
        """The tail of `LAST:COUNT` below a pool.

        >>> Tail.parse("200:10", 20)
        Tail(first=21, last=200, drawn=10)

        Raises
        ------
        InputError
            If it is not of that form, the pool has no depth, or its depth reaches the last rank of the tail.
        """
        last, _, drawn = str(text).partition(":")
        if not isinstance(text, str) or not (last.isdecimal() and drawn.isdecimal() and int(drawn) >= 1):
            raise InputError(f"tail (--tail) must be the last rank and passages to draw, as in 200:10, got {text!r}")
        if pool_depth is None:
            raise InputError("a tail (--tail) needs a pool_depth (--pool-depth): give it, such as your largest K")
        if int(last) <= pool_depth:
            raise InputError(
                f"tail (--tail) {text} ends at rank {int(last)}, but the pool goes down to rank {pool_depth}: give a "
                f"deeper tail, or a smaller pool_depth (--pool-depth)"
            )
        return cls(pool_depth + 1, int(last), int(drawn))


def fill_pool(
    pool: Pool,
    queries: Any,
    corpus: Any,
    runs: Sequence[Any],
    depth: int | None,
    tail: str | None,
    controls: int,
    seed: int,
) -> tuple[DrawnPart | None, DrawnPart | None]:
    """Add the pairs of some runs down to a depth, those drawn from below and from the corpus, and their texts.

    The store keeps as the origin of each pair the run (a file by its name, a Run by its own), the rank and the depth,
    or how it was drawn. Returns what was drawn from the tail and what as controls; None for nothing.

    Raises
    ------
    InputError
        If there are no pairs, a query or passage has no text, or a draw is impossible.
    """
    if not runs:
        raise InputError("a pool is needed: the passages to grade for each query (--pool FILE)")
    check_whole("pool_depth", depth)
    below = None if tail is None else Tail.parse(tail, depth)
    check_whole("controls (--controls)", controls, 0)
    is_drawn = bool(controls) or below is not None
    tail_part = control_part = None
    with pool.filling():
        lists = [*zip(pool_names(runs), [Run.of(run) for run in runs] if is_drawn else runs, strict=True)]
        for name, run in lists:
            ranked = ranked_rows(run, depth)
            pool.add(Draw("pool", name, depth), TOP, ((query, passage, k, k, {}) for query, passage, k in ranked))
        if is_drawn:
            drawing = _Drawing(pool, lists, depth, below, seed)
            tail_part = None if below is None else drawing.tail(below)
            control_part = drawing.controls(corpus, controls) if controls else None
        pool.add_texts("queries", queries)
        pool.add_texts("corpus", corpus)
    if not pool.count():
        raise InputError("the pool is empty: there is nothing to grade")
    return tail_part, control_part


class _Drawing:
    """Draws pairs at random into a pool, beside the top ranks of its lists, which are graded anyway."""

    def __init__(self, pool: Pool, lists: Lists, depth: int | None, tail: Tail | None, seed: int) -> None:
        self._pool, self._lists, self._depth, self._tail, self._seed = pool, lists, depth, tail, seed
        #: The passages of the top ranks of each query, and its deepest rank.
        self._graded: dict[str, set[str]] = {}
        self._deepest: dict[str, int] = {}
        for _, run in lists:
            for query, row in ranked_lists(run, depth):
                self._graded.setdefault(query, set()).update(row)
                # A passage that comes again has its best rank.
                deepest = row.index([*dict.fromkeys(row)][-1]) + 1 if row else 0
                self._deepest[query] = max(deepest, self._deepest.get(query, 0))

    def tail(self, tail: Tail) -> DrawnPart:
        """Draw passages from the ranks below the pool."""
        fused = len(self._lists) > 1
        drawn = drawn_tail(self._lists, tail, self._graded, self._seed)
        pairs = [pair for of_query in drawn.values() for pair in of_query]
        names, how = "+".join(name for name, _ in self._lists), how_of_tail(tail, fused=fused, seed=self._seed)
        self._add(Draw("tail", names, tail.last, how), TAIL, pairs)
        return DrawnPart(
            pairs=len(pairs),
            queries=len(self._graded),
            each=tail.drawn,
            ranks=(tail.first, tail.last),
            fused=fused,
            without=len(self._graded) - sum(map(bool, drawn.values())),
            short=sum(0 < len(of_query) < tail.drawn for of_query in drawn.values()),
        )

    def controls(self, corpus: Any, controls: int) -> DrawnPart:
        """Draw passages of the corpus: any but those that are graded anyway, or in the tail.

        So every passage of the corpus is graded, drawn from, or stands behind the controls.
        """
        order, below = CorpusOrder.of(corpus), self._depth
        listed = {query: set(passages) for query, passages in self._graded.items()}
        if self._tail is not None:
            below = self._tail.last
            for query, row in ranked_lists(ordered(self._lists), below):
                listed.setdefault(query, set()).update(row)
        pairs = [
            DrawnPair(query, passage, None, {"drawn": controls})
            for query in sorted(listed)
            for passage in order.drawn(query, listed[query], controls, self._seed, "controls (--controls)")
        ]
        how = {"drawn": controls, "corpus_size": len(order), "seed": self._seed, "below": below}
        self._add(Draw("control", how=how), CONTROL, pairs)
        return DrawnPart(pairs=len(pairs), queries=len(self._graded), each=controls, corpus_size=len(order))

    def _add(self, draw: Draw, part: int, pairs: Iterable[DrawnPair]) -> None:
        """Add pairs at random places among the ranks of their query, so that a judge cannot tell them apart."""

        def place(query: str, passage: str) -> float:
            return 0.5 + self._deepest[query] * (pair_number(self._seed, "position", query, passage) / 2**64)

        self._pool.add(draw, part, ((q, p, rank, place(q, p), detail) for q, p, rank, detail in pairs))


def drawn_tail(lists: Lists, tail: Tail, taken: Taken, seed: int) -> dict[str, list[DrawnPair]]:
    """{query: pairs} drawn from each query's list down to the tail's last rank, without what is taken.

    The ranks are those of the list, or of several lists fused. Fused, a drawn passage can come before some that are
    taken. The store keeps which of several lists hold a drawn passage, and at which ranks. A query whose tail is short
    or empty gives what it has.
    """
    drawn: dict[str, list[DrawnPair]] = {}
    for query, row in sorted(ranked_lists(ordered(lists), tail.last)):
        of_tail = {p: rank for rank, p in reversed([*enumerate(row, 1)]) if p not in taken.get(query, ())}
        chosen = sorted(of_tail, key=lambda passage: (pair_number(seed, "tail", query, passage), passage))[: tail.drawn]
        detail = {"of": len(of_tail), "drawn": len(chosen)}
        drawn[query] = [DrawnPair(query, passage, of_tail[passage], detail) for passage in chosen]
    if len(lists) < 2:
        return drawn
    ranks = ranks_in_lists(lists, {each[:2] for pairs in drawn.values() for each in pairs})
    return {
        query: [each._replace(detail={**each.detail, "runs": ranks[each[:2]]}) for each in pairs]
        for query, pairs in drawn.items()
    }


def ordered(lists: Lists) -> Run:
    """The list that a tail is drawn from: the only one, or all of them fused."""
    return replace(Run.fused([run for _, run in lists]), scores=None) if len(lists) > 1 else lists[0][1]


def how_of_tail(tail: Tail, *, fused: bool, seed: int) -> dict[str, Any]:
    """How a tail is drawn, as a store keeps it. Without an order, the ranks are those of one run."""
    how = {"first": tail.first, "last": tail.last, "drawn": tail.drawn, "seed": seed}
    return {**how, "order": "reciprocal rank fusion"} if fused else how


def ranks_in_lists(lists: Iterable[tuple[str, Run]], pairs: Collection[Pair]) -> dict[Pair, dict[str, int]]:
    """The rank of each pair in the runs and pools that list it; the best one where two of them have one name."""
    queries = {query for query, _ in pairs}
    ranks: dict[Pair, dict[str, int]] = {}
    for name, run in lists:
        listed = np.array([query in queries for query in run.queries], bool)
        for query, passage, rank in ranked_rows(run.take(listed[run.query])):
            if (query, passage) in pairs:
                of_pair = ranks.setdefault((query, passage), {})
                of_pair[name] = min(rank, of_pair.get(name, rank))
    return ranks


class CorpusOrder:
    """The ids of a corpus, without texts: `ids` in any order, and the position of each in the order of their hashes."""

    def __init__(self, ids: list[str]) -> None:
        self._ids = ids
        # In the order of the hashes, so that another order of the file draws the same passages. An id that occurs
        # twice is one passage.
        self._hashes: HashArray
        self._hashes, self._places = np.unique(id_hashes(ids), return_index=True)

    @classmethod
    def of(cls, corpus: Any) -> CorpusOrder:
        """The ids of a file, a mapping or rows; an InputError if they can be read only once."""
        if isinstance(corpus, Iterator):
            raise InputError("corpus: controls read it twice, and it can be read only once; give a list or a file")
        if isinstance(corpus, Mapping):
            return cls([id_text(key, "corpus", "passage") for key in corpus])
        return cls([id_ for id_, _ in read_texts(corpus, "corpus")])

    def __len__(self) -> int:
        return len(self._hashes)

    def outside(self, listed: Collection[str]) -> int:
        """How many passages of the corpus are outside the lists of a query."""
        # Not by np.isin, which would go through the whole corpus for each query.
        hashes = id_hashes(set(listed))
        before, behind = (np.searchsorted(self._hashes, hashes, side) for side in ("left", "right"))
        return len(self) - int((behind - before).sum())

    def drawn(self, query: str, listed: Collection[str], count: int, seed: int, number: str) -> list[str]:
        """So many passages outside the lists of a query; an InputError, which names the `number` to lower, if there are
        too few.
        """
        if len(self) < len(listed) + count and (others := self.outside(listed)) < count:
            raise InputError(
                f"corpus: {counted(count, 'control')} cannot be drawn for query {examples([query])}: the corpus has "
                f"{counted(len(self), 'passage')}, and {others:,} of them are outside the query's pool; lower "
                f"{number}, or give the whole corpus"
            )
        return list(islice(self._others(query, listed, seed), count))

    def _others(self, query: str, listed: Collection[str], seed: int) -> Iterator[str]:
        """Passages outside the lists of a query in random order, without end unless none is left."""
        draw = random.Random(f"{seed} control {query}")
        taken = set(listed)
        while True:
            passage: str = self._ids[int(self._places[draw.randrange(len(self))])]
            if passage not in taken:
                taken.add(passage)
                yield passage


def pair_number(seed: int, purpose: str, query: str, passage: str) -> int:
    """A random number of 64 bits that belongs to a pair."""
    key = "\0".join((str(seed), purpose, query, passage)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest())
