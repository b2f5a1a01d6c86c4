"""The passages and labels behind a report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reading import ranked_lists
from rag_selectivity.results.report import Report
from rag_selectivity.tables.forms import IdForm

#: {run: {query: [passage, …]}} and {query: {passage: grade}}.
Lists = Mapping[str, Mapping[str, list[str]]]
Grades = Mapping[str, Mapping[str, int]]


def read_lists(runs: Mapping[str, Any], report: Report, queries: Collection[str], depth: int, form: IdForm) -> Lists:
    """The top passages of some queries, in the order that the report measured."""
    lists: dict[str, dict[str, list[str]]] = {}
    for name, run in runs.items():
        if name not in report.runs:
            continue
        judged = report.runs[name].judged
        of_run: dict[str, list[str]] = {}
        for query, passages in ranked_lists(run, depth, Policy() if judged is None else judged.policy):
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
