"""Scores of answers from the results of LangSmith's `evaluate`, without importing it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rag_selectivity import InputError
from rag_selectivity.errors import did_you_mean
from rag_selectivity.hosted import scores_by_name
from rag_selectivity.single import numbered_queries


def answer_scores(results: Iterable[Any], key: str, *, question: str | None = "question") -> dict[str, float | None]:
    """{query: score} of an evaluator of answers, for `rag_selectivity.validate`.

    Parameters
    ----------
    results : ExperimentResults, or rows with "run", "example" and "evaluation_results"
        What `evaluate` returns.
    key : str
        The key of the evaluator's result, such as `correctness`.
    question : str or None
        The key of the examples' inputs that holds the query. A question that was asked again is numbered. With None the
        query is the id of the run.

    Raises
    ------
    InputError
        If an example has no such input, or if no row has a result of the key.
    """
    rows = list(results)
    queries = [_query(row, question, number) for number, row in enumerate(rows, 1)]
    scores = [{each.key: each.score for each in row["evaluation_results"]["results"]} for row in rows]
    return scores_by_name(numbered_queries(queries), scores, key)


def _query(row: Any, question: str | None, number: int) -> str:
    if question is None:
        return str(row["run"].id)
    inputs = getattr(row["example"], "inputs", None) or {}
    if question not in inputs:
        raise InputError(
            f"row {number}: the inputs of its example have no {question!r}{did_you_mean(question, inputs)}: name the "
            f"key as question=…, or give question=None to go by the ids of the runs"
        )
    return str(inputs[question])
