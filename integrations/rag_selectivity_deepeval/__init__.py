"""rag-selectivity for DeepEval: measures as metrics of test cases, and BoR from their results.

Needs the extra `rag-selectivity[deepeval]`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from rag_selectivity.errors import MissingExtraError

try:
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase
except ImportError as error:
    raise MissingExtraError("deepeval", "deepeval", "rag_selectivity_deepeval") from error

from rag_selectivity import Bootstrap, Estimate, InputError
from rag_selectivity.single import (
    Labels,
    PassageCounts,
    as_text_id,
    bits_over_random,
    evaluate_query,
    per_query_measure,
)

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
        corpus_size: int | None = None,
        passages_of: Any = None,
        scale: str | None = None,
        grade_map: Any = None,
    ) -> None:
        # DeepEval copies a metric by calling its class with the attributes that are named like the parameters.
        self.name, self.threshold, self.corpus_size, self.scale = name, threshold, corpus_size, scale
        self.labels = Labels.of(labels, grade_map=grade_map, scale=scale)
        self.passages_of = None if passages_of is None else PassageCounts.of(passages_of)
        self._figure_of = per_query_measure(name)
        self.labels.require_for(self._figure_of)

    @property
    def __name__(self) -> str:
        return str(self._figure_of)

    def measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float | None:
        """The figure of a test case, or None with a `reason`."""
        known_by = test_case.metadata or {}
        grades = self.labels.of_query(known_by.get("query_id"), test_case.name, test_case.input)
        figure = evaluate_query(
            self._figure_of,
            grades,
            _retrieved(test_case, known_by, grades),
            details=True,
            corpus_size=self.corpus_size,
            passages_of=self.passages_of,
            scale=self.labels.scale,
            levels=self.labels.levels,
        )
        self.error, self.score = None, None if math.isnan(figure.value) else figure.value
        numbers = [
            f"{figure.details[key]:g} {key}" for key in ("returned", "judged", "relevant") if key in figure.details
        ]
        self.reason = figure.reason or ", ".join(numbers)
        self.is_successful()
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float | None:
        """As `measure`."""
        return self.measure(test_case)

    def is_successful(self) -> bool | None:
        """Whether the score passes; None without a threshold."""
        if self.threshold is None:
            self.success = None
        elif self.error is not None or self.score is None:
            self.success = False
        elif self._figure_of.higher_is_better is False:
            self.success = self.score <= self.threshold
        else:
            self.success = self.score >= self.threshold
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
    rows = [{each.name: each.score for each in case.metrics_data or ()} for case in cases]
    names = (f"Success@{k}", f"RandomSuccess@{k}")
    if not any(set(names) <= row.keys() for row in rows):
        raise InputError(f"no test case has {names[0]} and {names[1]}: give a SelectivityMetric for each of the two")
    pair = ([math.nan if row.get(name) is None else row[name] for row in rows] for name in names)
    return bits_over_random(*pair, total=total, bootstrap=bootstrap)


def _retrieved(test_case: LLMTestCase, known_by: Mapping[str, Any], grades: Mapping[str, int] | None) -> list[str]:
    ids, contexts = known_by.get("retrieved_ids"), test_case.retrieval_context
    if ids is None and contexts is None:
        raise InputError(
            f"test case {test_case.input!r} holds no retrieval: give retrieval_context, or metadata['retrieved_ids']"
        )
    if isinstance(ids, (str, bytes, Mapping)) or not isinstance(ids, (Iterable, type(None))):
        raise InputError(
            f"test case {test_case.input!r}: metadata['retrieved_ids'] must be a list of ids in rank order, got {ids!r}"
        )
    if ids is not None:
        return [str(each) for each in ids]
    if grades and any(isinstance(each, str) for each in contexts) and not any(as_text_id(key) == key for key in grades):
        raise InputError(
            f"the labels of {test_case.input!r} name passages by id, and retrieval_context holds texts: give "
            f"metadata['retrieved_ids'], or label by rag_selectivity.single.text_id(text)"
        )
    return [as_text_id(each) if isinstance(each, str) else each.source for each in contexts]
