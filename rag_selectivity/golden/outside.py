"""Random passages outside of what was retrieved, for people to label, and what their labels say of all of these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from rag_selectivity.data.grades import scale_named
from rag_selectivity.data.origins import Chosen
from rag_selectivity.errors import InputError, examples
from rag_selectivity.grading.designs import DrawnPair, Pair
from rag_selectivity.grading.drawing import CorpusOrder, pair_number
from rag_selectivity.grading.labels_format import LabelStore
from rag_selectivity.grading.store import Draw, Origin, Store
from rag_selectivity.statistics.controls import lower_rate, upper_rate
from rag_selectivity.wording import counted

_RELEVANT = scale_named("utility").relevant_from
#: {query: {passage: best rank}}.
Ranks = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class OutsideDraw:
    """Random passages outside of what was retrieved.

    Attributes
    ----------
    pairs : {(query, passage): weight}
        How many passages of the query each one stands for.
    origins : list of (query, passage, Origin)
        As the store keeps them: of kind `control`, or `tail`.
    """

    pairs: Mapping[Pair, float]
    origins: tuple[tuple[str, str, Origin], ...]

    def waiting(self, known: Iterable[Pair], stratum: str) -> list[DrawnPair]:
        """The pairs that no person has labelled."""
        labelled = set(known)
        return [DrawnPair(*pair, stratum, weight) for pair, weight in self.pairs.items() if pair not in labelled]

    def estimate(self, people: Mapping[Pair, int], level: float = 0.95) -> OutsideEstimate:
        """How many relevant passages a query has outside, from people's labels of these pairs."""
        graded = [pair for pair in self.pairs if pair in people]
        relevant = sum(people[pair] >= _RELEVANT for pair in graded)
        sizes: dict[str, float] = {}
        for (query, _), weight in self.pairs.items():
            sizes[query] = sizes.get(query, 0.0) + weight
        size = float(np.mean(list(sizes.values()))) if sizes else math.nan
        tail = (1 - level) / 2
        if not graded:
            return OutsideEstimate(len(sizes), 0, 0, size, math.nan, math.nan, math.nan)
        rates = relevant / len(graded), lower_rate(relevant, len(graded), tail), upper_rate(relevant, len(graded), tail)
        return OutsideEstimate(len(sizes), len(graded), relevant, size, *(rate * size for rate in rates))


@dataclass(frozen=True)
class OutsideEstimate:
    """How many relevant passages a query has outside of what was retrieved, on average over these queries.

    Attributes
    ----------
    queries, graded, relevant : int
        Queries, passages of the draw that people labelled, and those that they found relevant.
    size : float
        Passages outside, of a query on average.
    mean, low, high : float
        Relevant passages outside, of a query on average, with Clopper and Pearson's interval. With the same number of
        passages of each query, their relevant ones are spread no wider than by equal chances (Hoeffding 1956), so that
        the interval holds for these queries. NaN if nobody labelled a passage.
    """

    queries: int
    graded: int
    relevant: int
    size: float
    mean: float
    low: float
    high: float

    @property
    def sentence(self) -> str:
        """The estimate in one sentence."""
        if not self.graded:
            return (
                f"{counted(self.queries, 'query', 'queries')}: {self.size:,.0f} passages each are outside, and nobody "
                f"labelled any"
            )
        return (
            f"{self.relevant} of {counted(self.graded, 'labelled passage')} outside "
            f"{'is' if self.relevant == 1 else 'are'} relevant: {self.mean:.2f} relevant passages a query among "
            f"{self.size:,.0f} outside [{self.low:.2f}, {self.high:.2f}], on average over "
            f"{counted(self.queries, 'query', 'queries')}"
        )


def random_draw(each: int, ranks: Ranks, store: Store, corpus: Any, *, depth: int, seed: int) -> OutsideDraw:
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
    taken = _retrieved(store, {query: {p for p, r in row.items() if r <= depth} for query, row in ranks.items()})
    ids = CorpusOrder.of(corpus)
    draw = Draw("control", how={"drawn": each, "corpus_size": len(ids), "seed": seed, "below": depth, "by": "people"})
    pairs: dict[Pair, float] = {}
    for query, passages in sorted(taken.items()):
        ids.check(query, passages, each)
        outside = ids.outside(passages)
        for passage in islice(ids.others(query, passages, seed), each):
            pairs[query, passage] = outside / each
    return OutsideDraw(pairs, tuple((*pair, Origin(draw, None, {"drawn": each})) for pair in pairs))


def tail_draw(last: int, each: int, ranks: Ranks, store: Store, *, depth: int, seed: int) -> OutsideDraw:
    """Passages of the ranks K + 1 to `last` of each query's lists that are not labelled as retrieved, drawn at random.

    The draw depends on the seed and the ids alone: a larger draw contains a smaller one. The pairs get the origin
    `tail`.

    Raises
    ------
    InputError
        If there are no lists, or `last` is not below K.
    """
    if not ranks:
        raise InputError("--draw tail draws from the ranks below K of lists: give --run FILE")
    if last <= depth:
        raise InputError(
            f"--draw tail:{last}:{each} ends at rank {last}, and the lists count down to rank {depth} (--list-depth): "
            f"give a deeper tail"
        )
    taken = _retrieved(store, {query: {p for p, r in row.items() if r <= depth} for query, row in ranks.items()})
    how = {"first": depth + 1, "last": last, "drawn": each, "seed": seed, "by": "people"}
    draw = Draw("tail", "", last, how)
    pairs: dict[Pair, float] = {}
    origins = []
    for query, row in sorted(ranks.items()):
        of_tail = {p: r for p, r in row.items() if r <= last and p not in taken.get(query, ())}
        ordered = sorted(of_tail, key=lambda passage: (pair_number(seed, "tail", query, passage), passage))
        chosen = ordered[:each]
        for passage in chosen:
            pairs[query, passage] = len(ordered) / len(chosen)
            detail = {"of": len(ordered), "drawn": len(chosen)}
            origins.append((query, passage, Origin(draw, of_tail[passage], detail)))
    return OutsideDraw(pairs, tuple(origins))


def _retrieved(store: Store, listed: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """{query: passages} in the lists, or with a label that no random draw from outside gave it."""
    taken = {query: set(passages) for query, passages in listed.items()}
    if any(row["graded"] for row in store.judges()) or store.people():
        labels = LabelStore().read_whole(store.path)
        inside = np.ones(len(labels.query), bool)
        if labels.origins is not None:
            outside = labels.origins.are(Chosen.CONTROL | Chosen.TAIL)
            inside = ~(outside & ~labels.origins.are(Chosen.POOL))
        for query in labels.queries:
            taken.setdefault(query, set())
        for row in np.flatnonzero(inside).tolist():
            taken[labels.queries[labels.query[row]]].add(labels.passages[row])
    if not taken:
        raise InputError(
            f"there is no query to draw for: {examples([str(store.path)])} has no labels; give lists with --run FILE"
        )
    return taken
