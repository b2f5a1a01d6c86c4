"""Retrieval metrics for LlamaIndex: every measure that has a figure for a single query."""

from __future__ import annotations

from typing import Any

from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY
from llama_index.core.evaluation.retrieval.metrics_base import BaseRetrievalMetric, RetrievalMetricResult
from pydantic import PrivateAttr

from rag_selectivity import InputError, Measure, parse_measure
from rag_selectivity.measures import REGISTRY
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

    def __init__(
        self,
        measure: str | Measure,
        labels: Any = None,
        *,
        corpus_size: Any = None,
        passages_of: Any = None,
        scale: str | None = None,
        grade_map: Any = None,
    ) -> None:
        super().__init__()
        options = {"corpus_size": corpus_size, "passages_of": passages_of, "scale": scale, "grade_map": grade_map}
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


#: What metrics made from names rest on: {"labels", "corpus_size", "scale", "grade_map", "k"}.
_configured: dict[str, Any] = {}


def configure(labels: Any = None, *, k: int = 10, corpus_size: Any = None, **options: Any) -> None:
    """Say what metrics that LlamaIndex makes from names alone rest on; see `register`."""
    _configured.clear()
    _configured.update(labels=labels, k=k, corpus_size=corpus_size, **options)


def register() -> list[str]:
    """Put the measures into LlamaIndex's registry, for `from_metric_names(["ra_nwg", "harm"])`; says their names.

    Names make metrics without arguments: labels, N and K come from `configure`. LlamaIndex's own names stay.
    """
    added = []
    for measure, cls in REGISTRY.items():
        name = registry_name(measure)
        if cls.per_query and not cls.needs_groups and (name not in METRIC_REGISTRY or name in _registered):
            METRIC_REGISTRY[name] = _registered.setdefault(name, _from_configuration(measure))
            added.append(name)
    return added


_registered: dict[str, type[SelectivityMetric]] = {}


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
        with_depth = f"{measure}@{_configured['k']}" if takes_depth else measure
        SelectivityMetric.__init__(self, with_depth, _configured["labels"], **options)

    body = {"__init__": __init__, "__module__": __name__}
    return type(f"Configured_{registry_name(measure)}", (SelectivityMetric,), body)
