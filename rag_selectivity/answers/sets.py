"""What a model is shown: for each query and each condition, the passages in their order."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rag_selectivity.results.answers import (
    BEST_FIRST,
    SHUFFLED,
    WORST_FIRST,
    Shown,
)

#: The highest grade of a hard negative on the utility scale, as that of Harm; below it on other scales.
HARD_NEGATIVE = 2


@dataclass(frozen=True, slots=True)
class Judged:
    """What the labels say of one query's passages.

    Attributes
    ----------
    relevant : tuple of str
        The relevant passages, the highest grade first.
    negatives : tuple of str
        The passages that were judged and mislead or do not help, the best ranked first.
    """

    relevant: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()


def judged_passages(
    grades: Mapping[str, int], relevant_from: int, junk_to: int, lists: Iterable[Sequence[str]]
) -> Judged:
    """The relevant passages and the hard negatives of a query.

    Parameters
    ----------
    grades : {passage: grade}
    relevant_from, junk_to : int
        The lowest grade of a relevant passage, and the highest of a hard negative.
    lists : iterable of lists
        What the runs retrieved: a passage that ranks high and is of no use is a hard one.
    """
    best: dict[str, int] = {}
    for passages in lists:
        for rank, passage in enumerate(passages):
            best[passage] = min(rank, best.get(passage, rank))
    relevant = sorted((p for p, grade in grades.items() if grade >= relevant_from), key=lambda p: (-grades[p], p))
    junk = [p for p, grade in grades.items() if grade <= min(junk_to, relevant_from - 1)]
    return Judged(tuple(relevant), tuple(sorted(junk, key=lambda p: (best.get(p, len(best) + 1), p))))


@dataclass(frozen=True, slots=True)
class Sets:
    """The sets of all queries.

    Attributes
    ----------
    lists : {run: {query: passages in rank order}}
    judged : {query: Judged}
        Empty without labels.
    corpus : sequence of str
        The ids of all passages; empty if none are drawn.
    seed : int
    """

    lists: Mapping[str, Mapping[str, Sequence[str]]]
    judged: Mapping[str, Judged] = field(default_factory=dict)
    corpus: Sequence[str] = ()
    seed: int = 7

    def passages(self, query: str, shown: Shown) -> tuple[str, ...] | None:
        """The passages in the order in which they are shown; None where the query has no such set.

        A query without a relevant passage has no ideal set, and none with junk; a list without a relevant passage has
        none to put in the middle; a query with fewer hard negatives than asked for has no set with so many.
        """
        of_query = self.judged.get(query, Judged())
        match shown.run:
            case "closed-book":
                return ()
            case "random":
                return self._random(query, shown.k or 0)
            case "ideal":
                return of_query.relevant or None
            case "junk":
                return self._with_junk(query, of_query, shown.k or 0)
            case run:
                return self._ordered(query, tuple(self.lists[run].get(query, ())[: shown.k]), shown.order)

    def _random(self, query: str, k: int) -> tuple[str, ...]:
        """K passages drawn from the whole corpus; those of a smaller K are the first of them."""
        draw = random.Random(f"{self.seed} random {query}")
        drawn: dict[int, None] = {}
        while len(drawn) < min(k, len(self.corpus)):
            drawn[draw.randrange(len(self.corpus))] = None
        return tuple(self.corpus[i] for i in drawn)

    def _with_junk(self, query: str, of_query: Judged, count: int) -> tuple[str, ...] | None:
        """The relevant passages and the hardest negatives, mixed; more junk leaves the order of the others as it is."""
        if not of_query.relevant or len(of_query.negatives) < count:
            return None
        chosen = (*of_query.relevant, *of_query.negatives[:count])
        return tuple(sorted(chosen, key=lambda passage: self._key(query, passage)))

    def _ordered(self, query: str, passages: tuple[str, ...], order: str) -> tuple[str, ...] | None:
        if order == BEST_FIRST:
            return passages
        if order == WORST_FIRST:
            return passages[::-1]
        if order == SHUFFLED:
            return tuple(sorted(passages, key=lambda passage: self._key(query, passage)))
        return self._decisive_in_the_middle(query, passages)

    def _decisive_in_the_middle(self, query: str, passages: tuple[str, ...]) -> tuple[str, ...] | None:
        """The list with its best relevant passage moved to the middle; None without one."""
        relevant = self.judged.get(query, Judged()).relevant
        decisive = next((passage for passage in relevant if passage in passages), None)
        if decisive is None:
            return None
        place = passages.index(decisive)
        others = (*passages[:place], *passages[place + 1 :])
        middle = len(others) // 2
        return (*others[:middle], decisive, *others[middle:])

    def _key(self, query: str, passage: str) -> float:
        """A random place of a passage, the same whatever else is shown."""
        return random.Random(f"{self.seed} place {query} {passage}").random()
