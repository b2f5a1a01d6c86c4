"""Queries, passages and pools, streamed from whatever holds them into the pool of a grading run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.drawing import Tail, check_controls, draw_controls, draw_tail
from rag_selectivity.grading.store import Draw, Store
from rag_selectivity.grading.store.pool import Pool, PoolTexts
from rag_selectivity.judged.reading import pool_names, ranked_rows
from rag_selectivity.judged.run import Run
from rag_selectivity.results.grading import DrawnPart
from rag_selectivity.tables.small import of_these, read_texts
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
        draws = [Draw("pool", name, depth) for name in names]
        if below is None:
            for draw, pool in zip(draws, pools, strict=True):
                loaded.add_pairs(ranked_rows(pool, depth), draw)
        else:
            # Several pools are fused with all of their lists in memory.
            lists = pools if len(pools) == 1 else [Run.of(pool) for pool in pools]
            for draw, pool in zip(draws, lists, strict=True):
                loaded.add_list(ranked_rows(pool), draw)
            if len(lists) > 1:
                loaded.add_fused(ranked_rows(Run.fused(lists).without_scores()))
            tail_part = draw_tail(loaded, below, names, seed)
        if controls:
            control_part = draw_controls(loaded, corpus, controls, seed, depth if below is None else below.last)
        _load_texts(loaded.query_texts(), queries, "queries")
        _load_texts(loaded.passage_texts(), corpus, "corpus")
    if not loaded.count():
        raise InputError("the pool is empty: there is nothing to grade")
    return Loaded(loaded, tail_part, control_part)


def _load_texts(texts: PoolTexts, source: Any, what: str) -> None:
    texts.add(read_texts(of_these(source, texts.needed_ids()), what))
    # An empty passage helps nobody and can be graded so; of an empty question nothing can be said.
    count, some = texts.missing(limit=3, empty_too=what == "queries")
    if count:
        raise InputError(
            f"{what}: {counted(count, 'id')} of the pool without a text ({examples(some)}); add the texts, or check "
            f"that the {what} and the pool use the same ids"
        )
