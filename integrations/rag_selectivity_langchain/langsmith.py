"""Evaluators for LangSmith's `evaluate`, without importing it: plain functions of outputs and reference outputs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from rag_selectivity import Bootstrap, InputError, Measure, SelectivityWarning, evaluate
from rag_selectivity.single import Labels, evaluate_query, measure_with_depth, per_query_measure
from rag_selectivity_langchain.documents import identity_of

#: In a run's outputs and an example's reference outputs, where nothing else is said.
RETRIEVED, RELEVANT = "documents", "relevant"


def summary_evaluator(
    *measures: str | Measure,
    corpus_size: int | None = None,
    retrieved: str = RETRIEVED,
    relevant: str = RELEVANT,
    identity: str | None = None,
    scale: str | None = None,
    grade_map: Any = None,
    bootstrap: Bootstrap = Bootstrap(),
) -> Callable[..., dict[str, Any]]:
    """For `evaluate(…, summary_evaluators=[…])`: the figures of the whole experiment, where BoR belongs.

    Parameters
    ----------
    measures : str or Measure
        With their depths, `"BoR@10"`.
    corpus_size : int, optional
    retrieved : str
        The key of the target's outputs that holds documents, dicts with an `id`, or ids, in rank order.
    relevant : str
        The key of the examples' outputs that holds {id: grade} or a list of relevant ids.
    identity
        As in `SelectivityCallback`.
    scale, grade_map, bootstrap
        As in `rag_selectivity.evaluate`.

    Returns
    -------
    function of `outputs` and `reference_outputs`
        Gives {"key", "score", "comment"}, or {"results": [...]} for several measures; a figure that is undefined or
        infinite has score None and a comment that says why. The comment holds the interval and the counts.
    """
    chosen = [measure_with_depth(measure) for measure in measures or ("BoR@10",)]

    def selectivity(outputs: Sequence[Any], reference_outputs: Sequence[Any]) -> dict[str, Any]:
        lists = {str(i): _ids(row, retrieved, identity) for i, row in enumerate(outputs, 1)}
        rows = {str(i): _labels_in(row, relevant) for i, row in enumerate(reference_outputs, 1)}
        labels = {query: row for query, row in rows.items() if row is not None}
        if not labels:
            raise InputError(f"no example has reference outputs under {relevant!r}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectivityWarning)
            report = evaluate(
                labels,
                {"experiment": lists},
                measures=chosen,
                corpus_size=corpus_size,
                scale=scale,
                grade_map=grade_map,
                bootstrap=bootstrap,
            )
        results = []
        for measure in chosen:
            estimate = report["experiment", measure]
            comment = f"[{estimate.low:.4g}, {estimate.high:.4g}], {estimate.n} of {estimate.n_total} examples"
            sentences = [estimate.reason or comment, *(caveat.text for caveat in estimate.caveats)]
            results.append(_result(measure, estimate.value, " ".join(sentences)))
        return results[0] if len(results) == 1 else {"results": results}

    return selectivity


def run_evaluator(
    measure: str | Measure,
    *,
    corpus_size: int | None = None,
    retrieved: str = RETRIEVED,
    relevant: str = RELEVANT,
    identity: str | None = None,
    scale: str | None = None,
    grade_map: Any = None,
) -> Callable[..., dict[str, Any]]:
    """For `evaluate(…, evaluators=[…])`: the figure of each run, `RA-nWG@10` or `Harm@10`.

    Parameters as in `summary_evaluator`. A ratio of means has no figure for one run: an InputError.
    """
    chosen = per_query_measure(measure)

    def selectivity(outputs: Mapping[str, Any], reference_outputs: Mapping[str, Any]) -> dict[str, Any]:
        row = _labels_in(reference_outputs, relevant)
        if row is None:
            return _result(chosen, math.nan, f"the example has no reference outputs under {relevant!r}")
        labels = Labels.of({"query": row}, grade_map=grade_map, scale=scale)
        passages = _ids(outputs, retrieved, identity)
        figure = evaluate_query(chosen, labels.of_query("query"), passages, corpus_size=corpus_size, scale=labels.scale)
        return _result(chosen, figure.value, figure.reason)

    selectivity.__name__ = str(chosen)
    return selectivity


def _labels_in(reference: Any, key: str) -> Any:
    return reference.get(key) if isinstance(reference, Mapping) else None


def _result(measure: Measure, value: float, comment: str | None) -> dict[str, Any]:
    return {"key": str(measure), "score": value if math.isfinite(value) else None, "comment": comment}


def _ids(outputs: Any, key: str, identity: str | None) -> list[str]:
    """Ids in rank order. A run that failed has no outputs: it retrieved nothing."""
    passages = outputs.get(key) if isinstance(outputs, Mapping) else None
    if outputs and passages is None:
        raise InputError(
            f"the target's outputs have no {key!r} (they have {', '.join(map(str, outputs))}): retrieved=…"
        )
    return [_id(passage, identity) for passage in passages or ()]


def _id(passage: Any, identity: str | None) -> str:
    if isinstance(passage, (str, int)):
        return str(passage)
    if isinstance(passage, Mapping):
        # As LangSmith's own serialisation leaves a document.
        fields = passage.get("kwargs", passage)
        passage = Document(
            id=fields.get("id"), page_content=fields.get("page_content") or "", metadata=fields.get("metadata") or {}
        )
    return identity_of(passage, identity)
