"""What stands out among the retrieved passages: hard negatives and magnets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rag_selectivity.render.explorer.query_facts import Terms
from rag_selectivity.results.lists import Grades, Lists

#: How many queries make a passage a magnet, and an unlabelled passage one that many queries retrieve.
MAGNET_QUERIES = 2
UNLABELLED_QUERIES = 3


@dataclass(frozen=True, slots=True)
class HardNegative:
    """A passage without a label in the top K of several runs.

    `ranks` holds its rank in each run, None outside the top K; `score` is the mean over all runs of 1 / rank, with 0
    for None.
    """

    query: str
    passage: str
    ranks: tuple[int | None, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Magnet:
    """A passage that many queries retrieve.

    The number of queries in whose top K at least one run has it, and for how many of them it is labelled as junk, is
    labelled as relevant, and has no label.
    """

    passage: str
    queries: int
    junk: int
    relevant: int
    unlabelled: int


def hard_negatives(lists: Lists, grades: Grades, depth: int) -> list[HardNegative]:
    """Passages without a label in the top K of at least two runs (of the run, if there is only one), best first."""
    least = min(2, len(lists))
    found = []
    for query in _queries_of(lists):
        labels = grades.get(query, {})
        for passage, ranks in _ranks(lists, query, depth).items():
            if passage in labels or len(ranks) - ranks.count(None) < least:
                continue
            score = sum([1 / rank for rank in ranks if rank is not None]) / len(ranks)
            found.append(HardNegative(query, passage, ranks, score))
    # Sorting is stable: of equals, the first query's first passage stays in front.
    return sorted(found, key=lambda each: -each.score)


def retrieved_passages(lists: Lists, grades: Grades, depth: int, terms: Terms) -> list[Magnet]:
    """Every passage that runs have in the top K of two or more queries, with the number of these queries by label."""
    queries, junk, relevant, unlabelled = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for query in _queries_of(lists):
        labels = grades.get(query, {})
        for passage in {passage: None for of_run in lists.values() for passage in of_run.get(query, ())[:depth]}:
            queries[passage] += 1
            grade = labels.get(passage)
            if grade is None:
                unlabelled[passage] += 1
            elif grade <= terms.junk:
                junk[passage] += 1
            if grade is not None and grade >= terms.rel:
                relevant[passage] += 1
    return [
        Magnet(each, n, junk[each], relevant[each], unlabelled[each])
        for each, n in queries.items()
        if n >= min(MAGNET_QUERIES, UNLABELLED_QUERIES)
    ]


def magnets(retrieved: Sequence[Magnet]) -> list[Magnet]:
    """Passages that are labelled as junk for two or more of the queries that retrieve them, most such queries first."""
    found = [each for each in retrieved if each.junk >= MAGNET_QUERIES]
    return sorted(found, key=lambda each: (-each.junk, -each.queries))


def unlabelled_magnets(retrieved: Sequence[Magnet]) -> list[Magnet]:
    """Passages that three or more queries retrieve, with a label for none of them, most queries first."""
    found = [each for each in retrieved if each.unlabelled == each.queries >= UNLABELLED_QUERIES]
    return sorted(found, key=lambda each: -each.queries)


def _queries_of(lists: Lists) -> list[str]:
    return list(dict.fromkeys(query for of_run in lists.values() for query in of_run))


def _ranks(lists: Lists, query: str, depth: int) -> dict[str, tuple[int | None, ...]]:
    """The rank of each passage of a query's top K in each run; that of the first copy, if a list has several."""
    of_runs: list[dict[str, int]] = []
    for of_run in lists.values():
        ranks: dict[str, int] = {}
        for rank, passage in enumerate(of_run.get(query, ())[:depth], 1):
            ranks.setdefault(passage, rank)
        of_runs.append(ranks)
    passages = dict.fromkeys(passage for ranks in of_runs for passage in ranks)
    return {passage: tuple(ranks.get(passage) for ranks in of_runs) for passage in passages}
