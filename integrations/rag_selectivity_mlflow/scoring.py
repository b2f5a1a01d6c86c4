"""The scorer: each row's retrieved passages, from its outputs or from the trace of the application."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mlflow.entities import AssessmentError, Feedback, SpanType
from mlflow.genai.scorers import Scorer, scorer

from rag_selectivity import InputError, parse_measure
from rag_selectivity.single import (
    Labels,
    PassageCounts,
    candidates,
    choose_identity,
    evaluate_query,
    passage_identity,
    per_query_measure,
)
from rag_selectivity_mlflow.runs import metric_name


def selectivity_scorer(
    *measures: str,
    labels: Any = None,
    corpus_size: int | None = None,
    passages_of: Any = None,
    identity: str | None = None,
    retrieved: str = "documents",
    relevant: str = "relevant",
    scale: str | None = None,
    grade_map: Any = None,
) -> Scorer:
    """A scorer for `mlflow.genai.evaluate(scorers=[…])` that gives one feedback for each measure.

    Parameters
    ----------
    measures : str
        With their depths, `"Harm@10"`. `"BoR@10"` gives `Success_at_10` and `RandomSuccess_at_10`, since BoR is a ratio
        of means; `log_bor` makes it of them.
    labels : as in `rag_selectivity.single.Labels.of`, optional
        A row's query is the first of its input values that the labels know. For other queries, and without labels,
        `expectations[relevant]` counts: {id: grade}, or a list of relevant ids.
    corpus_size : int, optional
        N, the number of passages that could have been retrieved; BoR needs it.
    passages_of, scale, grade_map
        As in `rag_selectivity.evaluate`.
    identity : str, optional
        The id by which the labels know a document: `id`, `text`, or a metadata key. None takes `id`, or the hash of
        the text if there is none. Ids that are given as plain strings or numbers stay as they are.
    retrieved : str
        The key of the outputs that holds ids or documents, in rank order. Without it, the trace counts: the documents
        of its last RERANKER span, or of its outermost RETRIEVER spans.

    Raises
    ------
    InputError
        If a measure has no depth or no figure for one query, or the labels cannot be read. A row without a retrieval,
        or with documents that have neither id nor text, has an error as feedback.
    """
    texts = [text for measure in measures or ("BoR@10",) for text in _pair(measure)]
    chosen = [per_query_measure(text) for text in dict.fromkeys(texts)]
    known = Labels.of(labels, grade_map=grade_map, scale=scale)
    counts = None if passages_of is None else PassageCounts.of(passages_of)

    @scorer(name="selectivity")  # type: ignore[untyped-decorator,unused-ignore]
    def selectivity(inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None) -> list[Any]:
        names = [str(value) for value in (inputs or {}).values() if isinstance(value, (str, int))]
        grades = known.of_query(*names)
        if grades is None and (expected := (expectations or {}).get(relevant)) is not None:
            grades = Labels.of({"row": expected}, grade_map=grade_map, scale=scale).of_query("row")
        ids = _ids(_passages(outputs, trace, retrieved), grades, identity)
        options = {"corpus_size": corpus_size, "passages_of": counts, "scale": known.scale, "levels": known.levels}
        figures = [evaluate_query(measure, grades, ids, details=True, **options) for measure in chosen]
        return [_feedback(metric_name(figure.measure), figure) for figure in figures]

    return selectivity


def _pair(measure: str) -> list[str]:
    parsed = parse_measure(measure)
    if parsed.name != "BoR":
        return [str(parsed)]
    return [str(parsed).replace("BoR", name, 1) for name in ("Success", "RandomSuccess")]


def _feedback(name: str, figure: Any) -> Feedback:
    if math.isnan(figure.value):
        return Feedback(name=name, error=AssessmentError("UNDEFINED", figure.reason))
    numbers = {key: f"{value:g}" for key, value in figure.details.items() if key in ("judged", "returned", "relevant")}
    return Feedback(name=name, value=figure.value, metadata=numbers)


def _passages(outputs: Any, trace: Any, retrieved: str) -> Sequence[Any]:
    found = outputs.get(retrieved) if isinstance(outputs, Mapping) else outputs
    if not isinstance(found, list):
        found = None if trace is None else _traced(trace)
    if found is None:
        raise InputError(f"the row holds no retrieval: no list of {retrieved!r} in its outputs, none in its trace")
    return found


def _traced(trace: Any) -> list[Any] | None:
    rerankers = sorted(trace.search_spans(span_type=SpanType.RERANKER), key=lambda span: span.start_time_ns)[-1:]
    spans = list(rerankers or trace.search_spans(span_type=SpanType.RETRIEVER))
    parents, chosen = {span.span_id: span.parent_id for span in trace.data.spans}, {span.span_id for span in spans}

    def is_inner(span: str | None) -> bool:
        parent = parents.get(span)
        return parent is not None and (parent in chosen or is_inner(parent))

    lists = [span.outputs for span in spans if isinstance(span.outputs, list) and not is_inner(span.span_id)]
    return [passage for each in lists for passage in each] if lists else None


def _ids(passages: Sequence[Any], grades: Mapping[str, int] | None, identity: str | None) -> list[str]:
    documents = [_document(each) for each in passages if not isinstance(each, (str, int))]
    ids = [
        str(each) if isinstance(each, (str, int)) else passage_identity(identity, name="document", **_document(each))
        for each in passages
    ]
    if identity is None and documents and grades and not set(ids) & set(grades):
        try:
            other = choose_identity([(grades, [candidates(**each) for each in documents])])
        except InputError:
            return ids  # no id finds a label: nothing relevant was retrieved
        raise InputError(f'the labels know the documents by {other.name}, not by their id: say identity="{other.name}"')
    return ids


def _document(passage: Any) -> dict[str, Any]:
    fields = passage if isinstance(passage, Mapping) else vars(passage)
    text = fields.get("page_content")
    if fields.get("id") is None and not text and not fields.get("metadata"):
        raise InputError("a retrieved document has no id, no text and no metadata")
    return {"ids": {"id": fields.get("id")}, "text": lambda: text or "", "metadata": fields.get("metadata") or {}}
