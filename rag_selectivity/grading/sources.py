"""Queries, passages and pools, streamed from whatever holds them into the pool of a grading run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.drawing import (
    CorpusOrder,
    Lists,
    Tail,
    check_controls,
    drawn_tail,
    how_of_tail,
    ordered,
    pair_number,
)
from rag_selectivity.grading.store import Draw, Store
from rag_selectivity.grading.store.pool import CONTROL, TAIL, DrawnPair, Pool, PoolTexts
from rag_selectivity.judged.reading import pool_names, ranked_lists, ranked_rows
from rag_selectivity.judged.run import Run
from rag_selectivity.results.grading import DrawnPart
from rag_selectivity.tables.small import read_texts
from rag_selectivity.wording import counted


@dataclass(frozen=True, slots=True)
class Loaded:
    """The pairs to grade, and what of them was drawn at random: `tail` and `controls` are None if nothing was."""

    pool: Pool
    tail: DrawnPart | None = None
    controls: DrawnPart | None = None


def load_pool(
    store: Store,
    queries: Any,
    corpus: Any,
    pools: Sequence[Any],
    depth: int | None,
    tail: str | None,
    controls: int,
    seed: int,
) -> Loaded:
    """The pairs of some pools, down to a depth, and those drawn from below and from the corpus, with their texts.

    The store keeps as the origin of each pair the pool (a file by its name, a run by its own), the rank and the depth,
    or how it was drawn.

    Raises
    ------
    InputError
        If there are no pairs, a query or passage has no text, or a draw is impossible.
    """
    if not pools:
        raise InputError("a pool is needed: the passages to grade for each query (--pool FILE)")
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise InputError(f"pool_depth must be a whole number ≥ 1, got {depth!r}")
    below = None if tail is None else Tail.parse(tail, depth)
    check_controls(controls)
    loaded = store.new_pool()
    tail_part = control_part = None
    with loaded.filling():
        names = pool_names(pools)
        lists = pools if below is None and not controls else [Run.of(pool) for pool in pools]
        for name, pool in zip(names, lists, strict=True):
            loaded.add_pairs(ranked_rows(pool, depth), Draw("pool", name, depth))
        if below is not None or controls:
            graded = _Graded(list(zip(names, lists, strict=True)), depth)
        if below is not None:
            tail_part = _draw_tail(loaded, graded, below, seed)
        if controls:
            control_part = _draw_controls(loaded, graded, corpus, controls, below, seed)
        _load_texts(loaded.query_texts(), queries, "queries")
        _load_texts(loaded.passage_texts(), corpus, "corpus")
    if not loaded.count():
        raise InputError("the pool is empty: there is nothing to grade")
    return Loaded(loaded, tail_part, control_part)


class _Graded:
    """What of some lists is graded anyway: their top ranks.

    Attributes
    ----------
    lists : [(name, Run)]
    depth : int or None
    passages : {query: passages}
    deepest : {query: its deepest rank}
    """

    def __init__(self, lists: Lists, depth: int | None) -> None:
        self.lists, self.depth = lists, depth
        self.passages: dict[str, set[str]] = {}
        self.deepest: dict[str, int] = {}
        for _, run in lists:
            for query, row in ranked_lists(run, depth):
                self.passages.setdefault(query, set()).update(row)
                # A passage that comes again has its best rank.
                deepest = row.index([*dict.fromkeys(row)][-1]) + 1 if row else 0
                self.deepest[query] = max(deepest, self.deepest.get(query, 0))

    def position(self, seed: int) -> Callable[[str, str], float]:
        """Random places among the ranks of a query, so that a judge cannot tell drawn pairs by their order."""
        return lambda query, passage: (
            0.5 + self.deepest[query] * (pair_number(seed, "position", query, passage) / 2**64)
        )


def _draw_tail(pool: Pool, graded: _Graded, tail: Tail, seed: int) -> DrawnPart:
    fused = len(graded.lists) > 1
    drawn = drawn_tail(graded.lists, tail, graded.passages, seed)
    rows = [pair for pairs in drawn.values() for pair in pairs]
    names = "+".join(name for name, _ in graded.lists)
    draw = Draw("tail", names, tail.last, how_of_tail(tail, fused=fused, seed=seed))
    pool.add_drawn(rows, draw, TAIL, graded.position(seed))
    short = sum(0 < len(pairs) < tail.drawn for pairs in drawn.values())
    without = len(graded.passages) - sum(map(bool, drawn.values()))
    return DrawnPart(
        pairs=len(rows),
        queries=len(graded.passages),
        each=tail.drawn,
        ranks=(tail.first, tail.last),
        fused=fused,
        without=without,
        short=short,
    )


def _draw_controls(pool: Pool, graded: _Graded, corpus: Any, controls: int, tail: Tail | None, seed: int) -> DrawnPart:
    """Draw passages of the corpus into a pool: any but those that are graded anyway, or in the tail.

    So every passage of the corpus is graded, drawn from, or stands behind the controls.
    """
    order = CorpusOrder.of(corpus)
    listed = {query: set(passages) for query, passages in graded.passages.items()}
    if tail is not None:
        for query, row in ranked_lists(ordered(graded.lists), tail.last):
            listed.setdefault(query, set()).update(row)
    rows = [
        DrawnPair(query, passage, None, {"drawn": controls})
        for query in sorted(listed)
        for passage in order.drawn(query, listed[query], controls, seed, "controls (--controls)")
    ]
    below = graded.depth if tail is None else tail.last
    how = {"drawn": controls, "corpus_size": len(order), "seed": seed, "below": below}
    pool.add_drawn(rows, Draw("control", how=how), CONTROL, graded.position(seed))
    return DrawnPart(pairs=len(rows), queries=len(graded.passages), each=controls, corpus_size=len(order))


def _load_texts(texts: PoolTexts, source: Any, what: str) -> None:
    texts.add(read_texts(source, what, only=set(texts.needed_ids())))
    # An empty passage helps nobody and can be graded so; of an empty question nothing can be said.
    count, some = texts.missing(limit=3, empty_too=what == "queries")
    if count:
        raise InputError(
            f"{what}: {counted(count, 'id')} of the pool without a text ({examples(some)}); add the texts, or check "
            f"that the {what} and the pool use the same ids"
        )
