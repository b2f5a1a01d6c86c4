"""Scores of answers from the results of LlamaIndex's evaluators, by the queries of `report_from_results`."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.evaluation import EvaluationResult

from rag_selectivity import InputError
from rag_selectivity.single import numbered_queries


def answer_scores(results: Sequence[EvaluationResult]) -> dict[str, float | None]:
    """{query: score} of an evaluator of responses, for `rag_selectivity.validate`.

    Parameters
    ----------
    results : sequence of EvaluationResult
        Of one evaluator, such as `(await BatchEvalRunner(…).aevaluate_queries(…))["correctness"]`, in the order in
        which the queries were asked. A result that is invalid has no score.

    Raises
    ------
    InputError
        If a result does not name its query.
    """
    for number, result in enumerate(results, 1):
        if not result.query:
            raise InputError(f"result {number} does not name its query: evaluate with the query")
    keys = numbered_queries(str(result.query) for result in results)
    return {key: None if result.invalid_result else result.score for key, result in zip(keys, results, strict=True)}
