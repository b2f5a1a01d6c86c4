"""Retrieval metrics for LlamaIndex: every measure that has a figure for a single query."""

from __future__ import annotations

from typing import Any

from llama_index.core.evaluation.retrieval.metrics_base import BaseRetrievalMetric, RetrievalMetricResult
from pydantic import PrivateAttr

from rag_selectivity import Measure
from rag_selectivity.single import QueryScorer, per_query_measure


class SelectivityMetric(BaseRetrievalMetric):  # type: ignore[misc,unused-ignore]
    """A measure with its depth, `RA-nWG@10`, as a LlamaIndex metric of that name.

    Parameters
    ----------
    measure : str or Measure
    labels : qrels, label store, {query: {passage: grade}}, or a dataset with `.relevant_docs`, optional
        Queries by their text. Where there are none, `expected_ids` are the relevant passages.
    corpus_size : int, index, vector store or retriever, optional
        N, for the chance-corrected measures.
    passages_of : {document: number of its nodes}, optional
        As in `rag_selectivity.evaluate`, if labels name documents and nodes are their chunks.
    scale, grade_map
        As in `rag_selectivity.evaluate`.

    A query without a figure scores NaN, with the reason in its metadata.
    """

    _scorer: QueryScorer = PrivateAttr()

    def __init__(self, measure: str | Measure, labels: Any = None, **options: Any) -> None:
        super().__init__()
        self._scorer = QueryScorer(per_query_measure(measure), labels=labels, **options)

    @property
    def metric_name(self) -> str:  # type: ignore[override,unused-ignore]
        """The canonical name with the depth: two depths are two metrics."""
        return str(self._scorer.measures[0])

    def compute(
        self,
        query: str | None = None,
        expected_ids: list[str] | None = None,
        retrieved_ids: list[str] | None = None,
        expected_texts: list[str] | None = None,
        retrieved_texts: list[str] | None = None,
        **kwargs: Any,
    ) -> RetrievalMetricResult:
        """The figure of one query; an empty retrieval is a failed query, not an error."""
        found = () if retrieved_ids is None else retrieved_ids
        (figure,) = self._scorer.figures(found, kwargs.get("query_id"), query, relevant=expected_ids)
        reason = {} if figure.reason is None else {"reason": figure.reason}
        return RetrievalMetricResult(score=figure.value, metadata={**figure.details, **reason})
