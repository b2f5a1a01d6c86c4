"""Retrieval metrics for LlamaIndex: every measure that has a figure for a single query."""

from __future__ import annotations

import math
from typing import Any

from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY
from llama_index.core.evaluation.retrieval.metrics_base import BaseRetrievalMetric, RetrievalMetricResult
from pydantic import PrivateAttr

from rag_selectivity import InputError, Measure, parse_measure
from rag_selectivity.measures import REGISTRY
from rag_selectivity.single import Labels, depth_of, figure_of, judge_query, per_query_measure


class SelectivityMetric(BaseRetrievalMetric):  # type: ignore[misc,unused-ignore]
    """A measure with its depth, `RA-nWG@10`, as a LlamaIndex metric of that name.

    Parameters
    ----------
    measure : str or Measure
    labels : qrels, label store, {query: {passage: grade}}, or a dataset with `.relevant_docs`, optional
        Queries by their text. `expected_ids` serve as binary labels where there are none.
    corpus_size : int, optional
        N, for the chance-corrected measures.
    scale, grade_map
        As in `rag_selectivity.evaluate`; the scale follows from the labels if not given.

    A query without a figure scores NaN, with the reason in its metadata.
    """

    _measure: Measure = PrivateAttr()
    _labels: Labels = PrivateAttr()
    _corpus_size: int | None = PrivateAttr()

    def __init__(
        self,
        measure: str | Measure,
        labels: Any = None,
        *,
        corpus_size: int | None = None,
        scale: str | None = None,
        grade_map: Any = None,
    ) -> None:
        super().__init__()
        self._measure = per_query_measure(measure)
        self._labels = Labels.of(labels, grade_map=grade_map, scale=scale)
        self._corpus_size = corpus_size
        self._labels.require_for(self._measure)

    @property
    def metric_name(self) -> str:  # type: ignore[override,unused-ignore]
        """The canonical name with the depth: two depths are two metrics."""
        return str(self._measure)

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
        grades = self._labels.of_query(kwargs.get("query_id"), query)
        if grades is None and expected_ids is not None:
            grades = dict.fromkeys(expected_ids, 1)
        if grades is None:
            return RetrievalMetricResult(score=math.nan, metadata={"reason": "nobody judged this query"})
        judged = judge_query(grades, retrieved_ids or (), corpus_size=self._corpus_size, scale=self._labels.scale)
        value, reason = figure_of(self._measure, judged)
        depths = depth_of(self._measure)
        metadata: dict[str, Any] = {
            name: float(values.ravel()[0]) for name, values in self._measure.details(judged, depths).items()
        }
        if isinstance(self._measure.at, int):
            metadata["judged"] = int(judged.judged_at(depths)[0, 0])
            metadata["returned"] = int(judged.returned_at(depths)[0, 0])
        metadata["relevant"] = int(judged.relevant()[0])
        if reason is not None:
            metadata["reason"] = reason
        return RetrievalMetricResult(score=value, metadata=metadata)


#: What metrics made from names rest on: {"labels", "corpus_size", "scale", "grade_map", "k"}.
_configured: dict[str, Any] = {}


def configure(labels: Any = None, *, k: int = 10, corpus_size: int | None = None, **options: Any) -> None:
    """Say what metrics that LlamaIndex makes from names alone rest on; see `register`."""
    _configured.clear()
    _configured.update(labels=labels, k=k, corpus_size=corpus_size, **options)


def register() -> list[str]:
    """Put the measures into LlamaIndex's registry, for `from_metric_names(["ra_nwg", "harm"])`; says their names.

    Names make metrics without arguments: labels, N and K come from `configure`. LlamaIndex's own names stay.
    """
    added = []
    for name, cls in REGISTRY.items():
        spelled = registry_name(name)
        if cls.per_query and (spelled not in METRIC_REGISTRY or spelled in _made):
            METRIC_REGISTRY[spelled] = _made.setdefault(spelled, _from_configuration(name))
            added.append(spelled)
    return added


_made: dict[str, type[SelectivityMetric]] = {}


def registry_name(measure: str) -> str:
    """A measure's name in LlamaIndex's style.

    >>> registry_name("RA-nWG"), registry_name("%PROC"), registry_name("Precision4+")
    ('ra_nwg', 'percent_proc', 'precision4_plus')
    """
    return measure.replace("%", "percent_").replace("+", "_plus").replace("-", "_").casefold()


def _from_configuration(measure: str) -> type[SelectivityMetric]:
    def __init__(self: SelectivityMetric) -> None:
        if not _configured:
            raise InputError(
                f"{measure} by its name needs labels first: rag_selectivity_llama_index.configure(labels, k=10, …)"
            )
        options = {key: value for key, value in _configured.items() if key not in ("labels", "k")}
        takes_depth = not parse_measure(measure).takes_whole_lists
        spelled = f"{measure}@{_configured['k']}" if takes_depth else measure
        SelectivityMetric.__init__(self, spelled, _configured["labels"], **options)

    body = {"__init__": __init__, "__module__": __name__}
    return type(f"Configured_{registry_name(measure)}", (SelectivityMetric,), body)
