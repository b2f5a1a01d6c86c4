"""rag-selectivity for DeepEval: measures as metrics of test cases, and BoR from their results.

Needs the extra `rag-selectivity[deepeval]`.
"""

from typing import Any

from rag_selectivity.errors import MissingExtraError

try:
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase
except ImportError as error:
    raise MissingExtraError("deepeval", "deepeval", "rag_selectivity_deepeval") from error

from rag_selectivity import Bootstrap, Estimate, InputError
from rag_selectivity.single import QueryScorer, as_text_id, bits_over_random_of_rows, per_query_measure

__all__ = ["SelectivityMetric", "bor_from_result"]


class SelectivityMetric(BaseMetric):  # type: ignore[misc,unused-ignore]
    """A measure of one query as a DeepEval metric.

    A test case's query is the first of `metadata["query_id"]`, its name and its input that the labels know. What was
    retrieved for it is `metadata["retrieved_ids"]`, in rank order; without them, each `source` in `retrieval_context`
    or, where that holds plain texts, the `text_id` of each: then the labels must name passages by `text_id`, too.

    Parameters
    ----------
    name : str
        The measure with its depth, `"Harm@10"`; for BoR use `Success@10` and `RandomSuccess@10`.
    labels : as in `rag_selectivity.single.Labels.of`
    threshold : float, optional
        The lowest score that passes; if lower scores are better, as for Harm, the highest. Without it nothing fails.
    corpus_size, passages_of, scale, grade_map
        As in `rag_selectivity.evaluate`.

    Raises
    ------
    InputError
        If the measure has no depth or no figure for one query, or the labels cannot be read. `measure` raises it for a
        test case without a retrieval, or with plain texts where the labels name other ids.

    Notes
    -----
    A query without a figure, since nobody judged it, has score None and a `reason`; it fails if there is a threshold.
    """

    def __init__(
        self,
        name: str,
        labels: Any,
        *,
        threshold: float | None = None,
        corpus_size: Any = None,
        passages_of: Any = None,
        scale: str | None = None,
        grade_map: Any = None,
    ) -> None:
        options = {"corpus_size": corpus_size, "passages_of": passages_of, "scale": scale, "grade_map": grade_map}
        self._scorer = QueryScorer(per_query_measure(name), labels=labels, place="metadata['retrieved_ids']", **options)
        # DeepEval copies a metric by calling its class with the attributes that are named like the parameters.
        self.name, self.threshold, self.labels = name, threshold, self._scorer.labels
        self.corpus_size, self.passages_of = self._scorer.corpus_size, self._scorer.passages_of

    @property
    def __name__(self) -> str:
        return str(self._scorer.measures[0])

    def measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float | None:
        """The figure of a test case, or None with a `reason`."""
        known_by = test_case.metadata or {}
        ids, contexts = known_by.get("retrieved_ids"), test_case.retrieval_context
        if ids is None and contexts is not None:
            ids = [as_text_id(each) if isinstance(each, str) else each.source for each in contexts]
        (figure,) = self._scorer.figures(ids, known_by.get("query_id"), test_case.name, test_case.input)
        self.error, self.score = None, figure.score
        self.reason = figure.reason or ", ".join(f"{number} {name}" for name, number in figure.counts.items())
        self.is_successful()
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float | None:
        """As `measure`."""
        return self.measure(test_case)

    def is_successful(self) -> bool | None:
        """Whether the score passes; None without a threshold."""
        sign = -1 if self._scorer.measures[0].higher_is_better is False else 1
        score = self.score if self.error is None else None
        passes = score is not None and self.threshold is not None and sign * score >= sign * self.threshold
        self.success = None if self.threshold is None else passes
        return self.success


def bor_from_result(
    result: Any, *, k: int = 10, total: int | None = None, bootstrap: Bootstrap = Bootstrap()
) -> Estimate:
    """Bits over Random from a result that holds the scores of `Success@K` and `RandomSuccess@K`.

    Parameters
    ----------
    result : EvaluationResult, or a list of TestResult
    k : int
    total : int, optional
        Test cases that were meant to be measured, if the result leaves some out.

    Returns
    -------
    Estimate
        As in `rag_selectivity.evaluate`. `n` of `n_total` test cases have both scores.

    Raises
    ------
    InputError
        If no test case has both metrics.
    """
    cases = getattr(result, "test_results", result)
    pair = (f"Success@{k}", f"RandomSuccess@{k}")
    try:
        rows = [{each.name: each.score for each in case.metrics_data or () if each.name in pair} for case in cases]
    except (AttributeError, TypeError):
        mend = "give what deepeval.evaluate returns, or a list of TestResult"
        raise InputError(f"bor_from_result: {mend}, got {result!r:.80}") from None
    return bits_over_random_of_rows(rows, total=total, bootstrap=bootstrap)[f"BoR@{k}"]
