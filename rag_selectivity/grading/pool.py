"""The pairs of a grading run: the top ranks of runs, what is drawn at random beside them, and their texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.drawing import (
    CorpusOrder,
    DrawnPair,
    Lists,
    Tail,
    check_controls,
    drawn_tail,
    how_of_tail,
    ordered,
    pair_number,
)
from rag_selectivity.grading.store import Draw, Origin, digest
from rag_selectivity.judged.reading import pool_names, ranked_lists, ranked_rows
from rag_selectivity.judged.run import Run
from rag_selectivity.results.grading import DrawnPart
from rag_selectivity.tables.small import read_texts
from rag_selectivity.wording import counted

#: The parts of a pool: the top ranks of its runs, what was drawn from the ranks below, and from the rest of the corpus.
TOP, TAIL, CONTROL = "pool", "tail", "controls"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about two texts; `key` is the hash of the query and that of the passage."""

    key: tuple[bytes, bytes]
    query: str
    passage: str
    part: str


@dataclass(slots=True)
class Pool:
    """The pairs to grade, with their texts.

    Attributes
    ----------
    pairs : {(query id, passage id): (part, position)}
        The position is the place in the order of asking, among the query's other pairs.
    origins : {(query id, passage id, draw): Origin}
    queries, passages : {id: text}
    tail, controls : DrawnPart or None
        What of the pairs was drawn at random; None if nothing was.
    """

    pairs: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)
    origins: dict[tuple[str, str, int], Origin] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    passages: dict[str, str] = field(default_factory=dict)
    tail: DrawnPart | None = None
    controls: DrawnPart | None = None

    @classmethod
    def load(
        cls,
        queries: Any,
        corpus: Any,
        pools: Sequence[Any],
        depth: int | None,
        tail: str | None,
        controls: int,
        seed: int,
    ) -> Pool:
        """The pairs of some pools, down to a depth, and those drawn from below and from the corpus, with their texts.

        The origin of each pair names the pool (a file by its name, a run by its own), the rank and the depth, or how
        the pair was drawn.

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
        loaded, lists = cls(), [*zip(pool_names(pools), map(Run.of, pools), strict=True)]
        for number, (name, run) in enumerate(lists):
            draw = Draw("pool", name, depth)
            for query, passage, rank in ranked_rows(run, depth):
                loaded._add(query, passage, number, Origin(draw, rank), TOP, rank)
        if below is not None or controls:
            graded = _Graded(lists, depth)
            if below is not None:
                loaded._draw_tail(graded, below, seed)
            if controls:
                loaded._draw_controls(graded, corpus, controls, below, seed)
        if not loaded.pairs:
            raise InputError("the pool is empty: there is nothing to grade")
        loaded.queries = _texts(queries, "queries", {query for query, _ in loaded.pairs})
        loaded.passages = _texts(corpus, "corpus", {passage for _, passage in loaded.pairs})
        return loaded

    def asked(self) -> list[Asked]:
        """The questions about the pairs, the top ranks of all queries first; two ids with the same texts are one."""
        hashes = {text: digest(text) for text in (*self.queries.values(), *self.passages.values())}
        query_places, passage_places = (
            {id_: i for i, id_ in enumerate(each)} for each in (self.queries, self.passages)
        )
        by_query: dict[bytes, dict[tuple[bytes, bytes], Asked]] = {}
        in_order = sorted(self.pairs.items(), key=lambda item: (item[1][1], passage_places[item[0][1]]))
        for (query, passage), (part, _) in sorted(in_order, key=lambda item: query_places[item[0][0]]):
            texts = self.queries[query], self.passages[passage]
            key = hashes[texts[0]], hashes[texts[1]]
            by_query.setdefault(key[0], {}).setdefault(key, Asked(key, *texts, part))
        ranked = [(rank, asked) for each in by_query.values() for rank, asked in enumerate(each.values())]
        return [asked for _, asked in sorted(ranked, key=lambda item: item[0])]

    def text_rows(self) -> list[tuple[str, str, bytes, bytes]]:
        """(query id, passage id, query hash, passage hash) rows."""
        return [
            (query, passage, digest(self.queries[query]), digest(self.passages[passage]))
            for query, passage in self.pairs
        ]

    def _add(self, query: str, passage: str, draw: int, origin: Origin, part: str, position: float) -> None:
        known = self.origins.get((query, passage, draw))
        if known is None or (known.rank or 0) > (origin.rank or 0):
            self.origins[query, passage, draw] = origin
        held = self.pairs.get((query, passage))
        if held is None or position < held[1]:
            self.pairs[query, passage] = (part if held is None else held[0]), position

    def _add_drawn(self, rows: Sequence[DrawnPair], draw: Draw, part: str, place: Callable[[str, str], float]) -> None:
        number = -1 if part == TAIL else -2
        for query, passage, rank, detail in rows:
            self._add(query, passage, number, Origin(draw, rank, detail), part, place(query, passage))

    def _draw_tail(self, graded: _Graded, tail: Tail, seed: int) -> None:
        fused = len(graded.lists) > 1
        drawn = drawn_tail(graded.lists, tail, graded.passages, seed)
        rows = [pair for pairs in drawn.values() for pair in pairs]
        names = "+".join(name for name, _ in graded.lists)
        draw = Draw("tail", names, tail.last, how_of_tail(tail, fused=fused, seed=seed))
        self._add_drawn(rows, draw, TAIL, graded.position(seed))
        self.tail = DrawnPart(
            pairs=len(rows),
            queries=len(graded.passages),
            each=tail.drawn,
            ranks=(tail.first, tail.last),
            fused=fused,
            without=len(graded.passages) - sum(map(bool, drawn.values())),
            short=sum(0 < len(pairs) < tail.drawn for pairs in drawn.values()),
        )

    def _draw_controls(self, graded: _Graded, corpus: Any, controls: int, tail: Tail | None, seed: int) -> None:
        """Draw passages of the corpus: any but those that are graded anyway, or in the tail.

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
        self._add_drawn(rows, Draw("control", how=how), CONTROL, graded.position(seed))
        self.controls = DrawnPart(pairs=len(rows), queries=len(graded.passages), each=controls, corpus_size=len(order))


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


def _texts(source: Any, what: str, needed: set[str]) -> dict[str, str]:
    """The texts of some ids; the first one where an id comes twice."""
    found: dict[str, str] = {}
    for id_, text in read_texts(source, what, only=needed):
        if id_ in needed:
            found.setdefault(id_, text)
    # An empty passage helps nobody and can be graded so; of an empty question nothing can be said.
    without = sorted(id_ for id_ in needed if id_ not in found or (what == "queries" and not found[id_].strip()))
    if without:
        raise InputError(
            f"{what}: {counted(len(without), 'id')} of the pool without a text ({examples(without[:3])}); add the "
            f"texts, or check that the {what} and the pool use the same ids"
        )
    return found
