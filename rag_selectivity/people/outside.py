"""Random passages outside of what was retrieved, for people to label, and what their labels say of all of these."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.drawing import CorpusOrder, Lists, Tail, drawn_tail, how_of_tail
from rag_selectivity.grading.origins import labels_in, median_grade
from rag_selectivity.grading.store import Draw, Origin, Store
from rag_selectivity.inference.interval import Interval
from rag_selectivity.judged.origins import Chosen
from rag_selectivity.judged.reading import ranked_lists
from rag_selectivity.people.designs import DrawnPair, Pair, pairs_at
from rag_selectivity.people.drawing import Choice, numbers_of
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.trust.sampled_totals import sampled_total
from rag_selectivity.wording import counted

_RELEVANT = scale_named("utility").relevant_from
#: Of 95 % intervals: what lies beyond either end.
_ONE_SIDE = 0.025


@dataclass(frozen=True)
class OutsideDraw:
    """Random passages outside of what was retrieved.

    Attributes
    ----------
    pairs : {(query, passage): weight}
        How many passages of the query each one stands for.
    origins : list of (query, passage, Origin)
        As the store keeps them: of kind `control`, or `tail`.
    empty : int
        Queries that have no such passage.
    place : str
        Where the passages are, in a sentence.
    """

    pairs: Mapping[Pair, float]
    origins: tuple[tuple[str, str, Origin], ...]
    empty: int = 0
    place: str = "outside"

    def estimate(self, people: Mapping[Pair, int]) -> tuple[Interval, str]:
        """How many relevant passages a query has outside on average, by people's labels of these pairs, and in words.

        The interval is that of `sampled_total`. It is about the queries with a labelled passage of the draw, or with no
        passage to draw: these have no relevant one there.
        """
        sizes, found = defaultdict[str, float](float), dict[str, list[bool]]()
        for pair, weight in self.pairs.items():
            sizes[pair[0]] += weight
            if pair in people:
                found.setdefault(pair[0], []).append(people[pair] >= _RELEVANT)
        place, every, queries = self.place, len(sizes) + self.empty, len(found) + self.empty
        without = f", {self.empty:,} of them without any {place}" if self.empty else ""
        if not found:
            size = sum(sizes.values()) / max(1, every)
            known = f"{counted(every, 'query', 'queries')}: on average {size:,.0f} passages are {place}"
            return Interval.undefined("nobody labelled any"), f"{known}, and nobody labelled any{without}"
        of_query = [(round(sizes[query]), len(labels), sum(labels)) for query, labels in found.items()]
        drawn, labelled, relevant = np.array(of_query, np.int64).T
        value, low, high = (total / queries for total in sampled_total(drawn, labelled, relevant, _ONE_SIDE))
        unlabelled = counted(every - queries, "query without a labelled passage is", "queries without any are")
        hits = int(relevant.sum())
        return Interval(value, low, high), (
            f"{hits} of {counted(int(labelled.sum()), 'labelled passage')} {place} {'is' if hits == 1 else 'are'} "
            f"relevant: {value:.2f} relevant passages a query among {drawn.sum() / queries:,.0f} {place} "
            f"[{low:.2f}, {high:.2f}], on average over {counted(queries, 'query', 'queries')}{without}"
            f"{f'; {unlabelled} left out' if every > queries else ''}"
        )


def outside_choice(store: Store, draw: str, lists: Lists, corpus: Any, *, depth: int, seed: int) -> Choice:
    """The pairs of `random:N` and `tail:LAST:N` that no person has labelled, and what labels so far say of all."""
    *last, each = numbers_of(draw)
    if last:
        drawn = tail_draw(last[0], each, lists, store, depth=depth, seed=seed)
    else:
        drawn = random_draw(each, lists, store, corpus, depth=depth, seed=seed)
    # A label of a text that has changed since says nothing of the text of now.
    people = {pair: median_grade(grades) for pair, grades in store.grades_of_people(current=True).items()}
    stratum = "tail" if last else "outside"
    waiting = [DrawnPair(*pair, stratum, weight) for pair, weight in drawn.pairs.items() if pair not in people]
    done = () if waiting else ("nothing is left to label: people have labelled every passage of this draw",)
    return Choice(waiting, (drawn.estimate(people)[1], *done), drawn.origins)


def random_draw(each: int, lists: Lists, store: Store, corpus: Any, *, depth: int, seed: int) -> OutsideDraw:
    """Passages of the corpus that are neither labelled as retrieved nor in the top K of a list, drawn at random.

    The draw depends on the seed, the query and the ids alone: a larger draw contains a smaller one. The pairs get the
    origin `control`.

    Raises
    ------
    InputError
        If no corpus is given, or it has too few passages outside.
    """
    if corpus is None:
        raise InputError("--draw random draws from the corpus: give it with --corpus FILE")
    taken = _retrieved(store, lists, depth)
    ids = CorpusOrder.of(corpus)
    draw = Draw("control", how={"drawn": each, "corpus_size": len(ids), "seed": seed, "below": depth, "by": "people"})
    pairs: dict[Pair, float] = {}
    for query, passages in sorted(taken.items()):
        drawn = ids.drawn(query, passages, each, seed, "N of random:N")
        pairs |= dict.fromkeys([(query, passage) for passage in drawn], ids.outside(passages) / each)
    return OutsideDraw(pairs, tuple((*pair, Origin(draw, None, {"drawn": each})) for pair in pairs))


def tail_draw(last: int, each: int, lists: Lists, store: Store, *, depth: int, seed: int) -> OutsideDraw:
    """Passages of each query's lists below their first K ranks and down to `last`, drawn at random.

    Ranks are those of the list, or of several lists fused (`Run.fused`). What a list has in its first K ranks, or is
    labelled as retrieved, is left out. The store keeps which of several lists hold a drawn passage, and at which ranks.

    The draw depends on the seed and the ids alone: a larger draw contains a smaller one. The pairs get the origin
    `tail`.

    Raises
    ------
    InputError
        If there are no lists, or `last` is not below K.
    """
    if not lists:
        raise InputError("--draw tail draws from the ranks below K of lists: give runs behind the store")
    if last <= depth:
        raise InputError(
            f"--draw tail:{last}:{each} ends at rank {last}, and the lists count down to rank {depth} (--list-depth): "
            f"give a deeper tail"
        )
    tail = Tail(depth + 1, last, each)
    how = how_of_tail(tail, fused=len(lists) > 1, seed=seed)
    draw = Draw("tail", "+".join(name for name, _ in lists), last, {**how, "by": "people"})
    drawn = drawn_tail(lists, tail, _retrieved(store, lists, depth), seed)
    chosen = [each for pairs in drawn.values() for each in pairs]
    return OutsideDraw(
        {(each.query, each.passage): each.detail["of"] / each.detail["drawn"] for each in chosen},
        tuple((each.query, each.passage, Origin(draw, each.rank, each.detail)) for each in chosen),
        sum(not pairs for pairs in drawn.values()),
        "in the tail",
    )


def _retrieved(store: Store, lists: Lists, depth: int) -> dict[str, set[str]]:
    """{query: passages} in the top ranks of lists, or with a label that no random draw from outside gave it."""
    taken: dict[str, set[str]] = {}
    for _, run in lists:
        for query, passages in ranked_lists(run, depth):
            taken.setdefault(query, set()).update(passages)
    if any(row["graded"] for row in store.judges()) or store.people():
        labels = labels_in(store, None)
        inside = np.ones(len(labels.query), bool)
        if labels.origins is not None:
            inside = ~labels.origins.are(Chosen.CONTROL | Chosen.TAIL) | labels.origins.are(Chosen.POOL)
        for query in labels.queries:
            taken.setdefault(query, set())
        for query, passage in pairs_at(labels, np.flatnonzero(inside)):
            taken[query].add(passage)
    if not taken:
        raise InputError(
            f"there is no query to draw for: {examples([str(store.path)])} has no labels; give runs behind the store"
        )
    return taken
