"""Pairs drawn at random for grading: from the ranks below the pool (its tail), and from the corpus (controls).

Draws depend on nothing but the seed, the lists and the corpus. So a command that is repeated draws the same pairs, a
larger draw contains the smaller one, and the order of a file does not matter.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.store import Draw
from rag_selectivity.grading.store.pool import CONTROL, TAIL, DrawnPair, Pool
from rag_selectivity.results.grading import DrawnPart
from rag_selectivity.tables.cells import id_text
from rag_selectivity.tables.ids import HashArray, id_hashes
from rag_selectivity.tables.small import read_texts
from rag_selectivity.wording import counted


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
            raise InputError(
                f"tail (--tail) must be the last rank and the passages to draw, as in 200:10, got {text!r}"
            )
        if pool_depth is None:
            raise InputError(
                "a tail (--tail) begins below the pool, so the pool needs a depth: give pool_depth (--pool-depth), "
                "such as the largest K that you will measure"
            )
        if int(last) <= pool_depth:
            raise InputError(
                f"tail (--tail) {text} ends at rank {int(last)}, but the pool goes down to rank {pool_depth}: give a "
                f"deeper tail, or a smaller pool_depth (--pool-depth)"
            )
        return cls(pool_depth + 1, int(last), int(drawn))


def check_controls(controls: Any) -> int:
    """The number of controls, if it is one; else an InputError."""
    if isinstance(controls, bool) or not isinstance(controls, int) or controls < 0:
        raise InputError(f"controls (--controls) must be a whole number of passages ≥ 0, got {controls!r}")
    return controls


def draw_tail(pool: Pool, tail: Tail, runs: Sequence[str], seed: int) -> DrawnPart:
    """Draw passages of a pool's tail into it. A query whose tail is short or empty gives what it has.

    The ranks are those of the run, or of several runs fused. The tail holds what these have down to its last rank and
    no run has in its top ranks, which are graded. Fused, such a passage can come before some of the graded ones. The
    store keeps which of several runs lists a drawn passage, and at which rank.
    """
    fused = len(runs) > 1
    depths = pool.depths()
    sizes: dict[str, int] = {}

    def drawn() -> Iterator[DrawnPair]:
        with closing(pool.below(tail.last)) as listed:
            for query, rows in groupby(listed, key=itemgetter(0)):
                ordered = sorted(
                    (pair_number(seed, "tail", query, passage), passage, rank) for _, passage, rank in rows
                )
                sizes[query] = len(ordered)
                detail = {"of": len(ordered), "drawn": min(tail.drawn, len(ordered))}
                for _, passage, rank in ordered[: tail.drawn]:
                    runs_of = {"runs": pool.ranks_of(query, passage)} if fused else {}
                    position = _position(seed, query, passage, depths)
                    yield DrawnPair(query, passage, rank, position, {**detail, **runs_of})

    how = how_of_tail(tail, fused=fused, seed=seed)
    pairs = pool.add_drawn(drawn(), Draw("tail", "+".join(runs), tail.last, how), TAIL)
    short = sum(size < tail.drawn for size in sizes.values())
    counts = {"pairs": pairs, "queries": len(depths), "without": len(depths) - len(sizes), "short": short}
    return DrawnPart(**counts, each=tail.drawn, ranks=(tail.first, tail.last), fused=fused)


def how_of_tail(tail: Tail, *, fused: bool, seed: int) -> dict[str, Any]:
    """How a tail is drawn, as a store keeps it. Without an order, the ranks are those of one run.

    In stores from before there was an order, those of several runs are the best in any of them.
    """
    how = {"first": tail.first, "last": tail.last, "drawn": tail.drawn, "seed": seed}
    return {**how, "order": "reciprocal rank fusion"} if fused else how


def draw_controls(pool: Pool, corpus: Any, controls: int, seed: int, last: int | None) -> DrawnPart:
    """Draw passages of the corpus into a pool: any but those that are graded anyway, or in the tail down to `last`.

    So every passage of the corpus is graded, drawn from, or stands behind the controls.

    Raises
    ------
    InputError
        If the corpus can be read only once, or holds too few passages outside the lists of a query.
    """
    depths = pool.depths()
    passages = CorpusOrder.of(corpus)

    def drawn() -> Iterator[DrawnPair]:
        with closing(pool.down_to(last)) as lists:
            for query, rows in groupby(lists, key=itemgetter(0)):
                listed = {passage for _, passage in rows}
                passages.check(query, listed, controls)
                for passage in islice(passages.others(query, listed, seed), controls):
                    position = _position(seed, query, passage, depths)
                    yield DrawnPair(query, passage, None, position, {"drawn": controls})

    how = {"drawn": controls, "corpus_size": len(passages), "seed": seed, "below": last}
    pairs = pool.add_drawn(drawn(), Draw("control", how=how), CONTROL)
    return DrawnPart(pairs=pairs, queries=len(depths), each=controls, corpus_size=len(passages))


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
            raise InputError(
                "corpus: controls are drawn from all of its ids, and their texts are read afterwards, but this corpus "
                "can be read only once; give a list, a mapping or a file"
            )
        if isinstance(corpus, Mapping):
            return cls([id_text(key, "corpus", "passage") for key in corpus])
        return cls([id_ for id_, _ in read_texts(corpus, "corpus")])

    def __len__(self) -> int:
        return len(self._hashes)

    def check(self, query: str, listed: set[str], controls: int, number: str = "controls (--controls)") -> None:
        """Refuse a corpus that holds too few passages outside the pool of a query; `number` names what to lower."""
        if len(self) >= len(listed) + controls:
            return
        others = self.outside(listed)
        if others < controls:
            raise InputError(
                f"corpus: {counted(controls, 'control')} cannot be drawn for query {examples([query])}: the corpus has "
                f"{counted(len(self), 'passage')}, and {others:,} of them are outside the query's pool; lower "
                f"{number}, or give the whole corpus"
            )

    def outside(self, listed: set[str]) -> int:
        """How many passages of the corpus are outside the lists of a query."""
        return len(self) - int(np.isin(id_hashes(listed), self._hashes).sum())

    def others(self, query: str, listed: set[str], seed: int) -> Iterator[str]:
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


def _position(seed: int, query: str, passage: str, depths: Mapping[str, int]) -> float:
    """A random place among the ranks of the query's pool, so that a judge cannot tell drawn pairs by their order."""
    return 0.5 + depths[query] * (pair_number(seed, "position", query, passage) / 2**64)
