"""Retrieval metrics for LlamaIndex: every measure that has a figure for a single query."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY
from llama_index.core.evaluation.retrieval.metrics_base import BaseRetrievalMetric, RetrievalMetricResult
from pydantic import PrivateAttr

from rag_selectivity import InputError, Measure, Qrels, Run, SelectivityWarning, judge, parse_measure
from rag_selectivity.measures import REGISTRY
from rag_selectivity_llama_index.labels import Labels


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
        chosen = parse_measure(measure)
        if chosen.at is None and not chosen.takes_whole_lists:
            raise InputError(f"{chosen}: name the depth, as in {chosen}@10")
        if not chosen.per_query:
            raise InputError(f"{chosen} is a ratio of means and has no figure for one query: see SelectivityEvaluator")
        self._measure = chosen
        self._labels = Labels.of(labels, grade_map=grade_map, scale=scale)
        self._corpus_size = corpus_size
        if chosen.beside_judged and self._labels.scale != "utility":
            raise InputError(
                f"{chosen} needs grades 1 to 5, and expected ids or these labels are binary or on TREC's scale: pass "
                f"graded labels, or carry them over with a grade map, as in grade_map='0:1,1:3,2:4,3:5'"
            )

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
        grades = self._labels.of_query(query or "", kwargs.get("query_id"), expected_ids)
        if grades is None:
            return RetrievalMetricResult(score=math.nan, metadata={"reason": "nobody judged this query"})
        with warnings.catch_warnings():
            # That nothing judged was retrieved is news of a dataset, not of a single query.
            warnings.simplefilter("ignore", SelectivityWarning)
            judged = judge(
                Qrels.from_dict({"query": grades}),
                Run.from_dict({"query": list(retrieved_ids or ())}),
                corpus_size=self._corpus_size,
                scale=self._labels.scale,
            )
        at = self._measure.at
        depths = np.array([at]) if at is not None else self._measure.default_depths(np.array([1]))
        outcome = self._measure.outcome(judged, depths)
        value = float(outcome.parts[0][0, 0])
        metadata: dict[str, Any] = {
            name: float(values.ravel()[0]) for name, values in self._measure.details(judged, depths).items()
        }
        if isinstance(at, int):
            metadata["judged"] = int(judged.judged_at(depths)[0, 0])
            metadata["returned"] = int(judged.returned_at(depths)[0, 0])
        metadata["relevant"] = int(judged.relevant()[0])
        if math.isnan(value):
            metadata["reason"] = outcome.undefined
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
