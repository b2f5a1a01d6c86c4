"""Evaluators for LangSmith's `evaluate`, without importing it: plain functions of outputs and reference outputs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from rag_selectivity import (
    Bootstrap,
    InputError,
    Measure,
    Qrels,
    Run,
    SelectivityWarning,
    evaluate_joined,
    join,
    parse_measure,
)
from rag_selectivity.single import figure_of, judge_query, per_query_measure
from rag_selectivity_langchain.identity import identity_of

#: In a run's outputs and an example's reference outputs, where nothing else is said.
RETRIEVED, RELEVANT = "documents", "relevant"


def summary_evaluator(
    *measures: str | Measure,
    corpus_size: int | None = None,
    retrieved: str = RETRIEVED,
    relevant: str = RELEVANT,
    identity: str | None = None,
    scale: str = "trec",
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
    chosen = [_at_a_depth(measure) for measure in measures or ("BoR@10",)]

    def selectivity(outputs: Sequence[Any], reference_outputs: Sequence[Any]) -> dict[str, Any]:
        lists = {str(i): _ids(row, retrieved, identity) for i, row in enumerate(outputs, 1)}
        grades = {str(i): _grades(row, relevant) for i, row in enumerate(reference_outputs, 1)}
        known = {query: row for query, row in grades.items() if row is not None}
        if not known:
            raise InputError(f"no example has reference outputs under {relevant!r}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectivityWarning)
            judged = join(
                Qrels.from_dict(known).regraded(grade_map),
                Run.from_dict(lists),
                corpus_size=corpus_size,
                scale=scale,
                name="experiment",
            )
        report = evaluate_joined({"experiment": judged}, measures=chosen, bootstrap=bootstrap)
        results = []
        for measure in chosen:
            cell = report["experiment", measure]
            comment = f"[{cell.low:.4g}, {cell.high:.4g}], {cell.n} of {cell.n_total} examples"
            said = [cell.reason or comment, *(caveat.text for caveat in cell.caveats)]
            results.append(_result(measure, cell.value, " ".join(said)))
        return results[0] if len(results) == 1 else {"results": results}

    return selectivity


def run_evaluator(
    measure: str | Measure,
    *,
    corpus_size: int | None = None,
    retrieved: str = RETRIEVED,
    relevant: str = RELEVANT,
    identity: str | None = None,
    scale: str = "trec",
    grade_map: Any = None,
) -> Callable[..., dict[str, Any]]:
    """For `evaluate(…, evaluators=[…])`: the figure of each run, `RA-nWG@10` or `Harm@10`.

    Parameters as in `summary_evaluator`. A ratio of means has no figure for one run: an InputError.
    """
    chosen = per_query_measure(measure)

    def selectivity(outputs: Mapping[str, Any], reference_outputs: Mapping[str, Any]) -> dict[str, Any]:
        grades = _grades(reference_outputs, relevant)
        if grades is None:
            return _result(chosen, math.nan, f"the example has no reference outputs under {relevant!r}")
        regraded = Qrels.from_dict({"q": grades}).regraded(grade_map).to_dict().get("q", {})
        judged = judge_query(regraded, _ids(outputs, retrieved, identity), corpus_size=corpus_size, scale=scale)
        value, reason = figure_of(chosen, judged)
        return _result(chosen, value, reason)

    selectivity.__name__ = str(chosen)
    return selectivity


def _at_a_depth(measure: str | Measure) -> Measure:
    chosen = parse_measure(measure)
    if chosen.at is None and not chosen.takes_whole_lists:
        raise InputError(f"{chosen}: name the depth, as in {chosen}@10")
    return chosen


def _result(measure: Measure, value: float, comment: str | None) -> dict[str, Any]:
    return {"key": str(measure), "score": value if math.isfinite(value) else None, "comment": comment}


def _ids(outputs: Any, key: str, identity: str | None) -> list[str]:
    """Ids in rank order. A run that failed has no outputs: it retrieved nothing."""
    found = outputs.get(key) if isinstance(outputs, Mapping) else None
    if outputs and found is None:
        raise InputError(
            f"the target's outputs have no {key!r} (they have {', '.join(map(str, outputs))}): retrieved=…"
        )
    return [_id(each, identity) for each in found or ()]


def _id(found: Any, identity: str | None) -> str:
    if isinstance(found, (str, int)):
        return str(found)
    if isinstance(found, Mapping):
        # As LangSmith's own serialisation leaves a document.
        inner = found.get("kwargs", found)
        found = Document(
            id=inner.get("id"), page_content=inner.get("page_content") or "", metadata=inner.get("metadata") or {}
        )
    return identity_of(found, identity)


def _grades(reference: Any, key: str) -> dict[str, int] | None:
    found = reference.get(key) if isinstance(reference, Mapping) else None
    if found is None:
        return None
    if isinstance(found, Mapping):
        return {str(passage): grade for passage, grade in found.items()}
    return dict.fromkeys(map(str, found), 1)
