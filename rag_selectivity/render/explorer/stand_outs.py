"""The retrieved passages behind a report, and what stands out among them: hard negatives and magnets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.render.explorer.facts import Terms
from rag_selectivity.results.report import Report
from rag_selectivity.tables.forms import IdForm

#: {run: {query: [passage, …]}} and {query: {passage: grade}}.
Lists = Mapping[str, Mapping[str, list[str]]]
Grades = Mapping[str, Mapping[str, int]]

#: How many queries make a passage a magnet, and an unlabelled passage one that many queries retrieve.
MAGNET_QUERIES = 2
UNLABELLED_QUERIES = 3


def read_lists(runs: Mapping[str, Any], report: Report, queries: Collection[str], depth: int, form: IdForm) -> Lists:
    """The top passages of some queries, in the order that the report measured."""
    lists: dict[str, dict[str, list[str]]] = {}
    for name, run in runs.items():
        if name not in report.runs:
            continue
        judged = report.runs[name].judged
        policy = Policy() if judged is None else judged.policy
        of_run: dict[str, list[str]] = {}
        for query, passages in Run.of(run, policy).ordered(policy).lists(depth):
            if (asked := form(query)) in queries:
                of_run[asked] = [form(passage) for passage in passages] if form.changes_ids else passages
        lists[name] = of_run
    return lists


def read_grades(report: Report, qrels: Any, queries: Collection[str], form: IdForm) -> Grades:
    """The labels that the report measured, or else those that are given."""
    measured = (run.judged.qrels for run in report.runs.values() if run.judged is not None)
    labels = next((each for each in measured if each is not None), None)
    if labels is None:
        labels = None if qrels is None else Qrels.of(qrels).in_form(form)
    known = {} if labels is None else labels.to_dict()
    return {query: known[query] for query in queries if query in known}


def hard_negatives(lists: Lists, grades: Grades, depth: int) -> list[tuple[str, str, list[int | None], float]]:
    """(query, passage, its rank in each run, mean of 1 / rank): passages without a label, the best first.

    They are in the top K of at least two runs, or of the only run. A rank is None outside the top K, and counts 0.
    """
    found = []
    for query in dict.fromkeys(query for of_run in lists.values() for query in of_run):
        tops = [of_run.get(query, [])[:depth] for of_run in lists.values()]
        for passage in dict.fromkeys(passage for top in tops for passage in top):
            ranks = [top.index(passage) + 1 if passage in top else None for top in tops]
            known = [1 / rank for rank in ranks if rank is not None]
            if passage not in grades.get(query, {}) and len(known) >= min(2, len(lists)):
                found.append((query, passage, ranks, sum(known) / len(ranks)))
    # Sorting is stable: of equals, the first query's first passage stays in front.
    return sorted(found, key=lambda each: -each[3])


def magnets(
    lists: Lists, grades: Grades, depth: int, terms: Terms
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """(passage, queries, junk, relevant, unlabelled): passages that many queries retrieve, and how they are labelled.

    First those that are labelled as junk for two or more of these queries, then those that three or more queries
    retrieve and none has a label for; most such queries first.
    """
    queries, junk, relevant, unlabelled = (Counter[str]() for _ in range(4))
    for query in dict.fromkeys(query for of_run in lists.values() for query in of_run):
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
    drawing = sorted((row for row in rows if row[2] >= MAGNET_QUERIES), key=lambda row: (-row[2], -row[1]))
    crowd = sorted((row for row in rows if row[4] == row[1] >= UNLABELLED_QUERIES), key=lambda row: -row[1])
    return drawing, crowd
