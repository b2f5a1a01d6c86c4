"""What to label next: hard negatives, and magnets, which stand out among the retrieved passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rag_selectivity.render.explorer.facts import Terms

#: {run: {query: [passage, …]}} and {query: {passage: grade}}.
Lists = Mapping[str, Mapping[str, list[str]]]
Grades = Mapping[str, Mapping[str, int]]

#: So many queries for which it is labelled as junk make a passage a magnet, or so many that retrieve it unlabelled.
JUNK_QUERIES, UNLABELLED_QUERIES = 2, 3


def hard_negatives(lists: Lists, grades: Grades, depth: int) -> list[tuple[str, str, list[int | None], float]]:
    """(query, passage, its rank in each run, mean of 1 / rank): passages without a label, the best first.

    They are in the top K of at least two runs, or of the only run. A rank is None outside the top K, and counts 0.
    """
    found = []
    for query in _queries(lists):
        tops = [of_run.get(query, [])[:depth] for of_run in lists.values()]
        for passage in dict.fromkeys(passage for top in tops for passage in top):
            ranks = [top.index(passage) + 1 if passage in top else None for top in tops]
            known = [1 / rank for rank in ranks if rank is not None]
            if passage not in grades.get(query, {}) and len(known) >= min(2, len(lists)):
                found.append((query, passage, ranks, sum(known) / len(ranks)))
    # Sorting is stable: of equals, the first query's first passage stays in front.
    return sorted(found, key=lambda each: -each[3])


def magnets(lists: Lists, grades: Grades, depth: int, terms: Terms) -> list[tuple[str, int, int, int, int]]:
    """(passage, queries, junk, relevant, unlabelled): in the top K of how many queries, and how they label it.

    They are junk for two queries or more, or three queries or more retrieve them and none has a label; those that are
    junk or unlabelled for most queries come first.
    """
    queries, junk, relevant, unlabelled = (Counter[str]() for _ in range(4))
    for query in _queries(lists):
        for passage in {passage: None for of_run in lists.values() for passage in of_run.get(query, ())[:depth]}:
            queries[passage] += 1
            grade = grades.get(query, {}).get(passage)
            if grade is None:
                unlabelled[passage] += 1
            elif grade <= terms.junk:
                junk[passage] += 1
            elif grade >= terms.rel:
                relevant[passage] += 1
    rows = [(each, n, junk[each], relevant[each], unlabelled[each]) for each, n in queries.items()]
    standing_out = [row for row in rows if row[2] >= JUNK_QUERIES or row[4] == row[1] >= UNLABELLED_QUERIES]
    return sorted(standing_out, key=lambda row: (-row[2] - row[4], -row[1]))


def _queries(lists: Lists) -> dict[str, None]:
    return dict.fromkeys(query for of_run in lists.values() for query in of_run)
