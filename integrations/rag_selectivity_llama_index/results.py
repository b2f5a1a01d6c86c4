"""Reports and means from the results of an evaluation by LlamaIndex."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from llama_index.core.evaluation.retrieval.base import RetrievalEvalResult

from rag_selectivity import Bootstrap, InputError, Report, evaluate
from rag_selectivity.calibrated import labels_to_calibrate, peoples_grades
from rag_selectivity.measures import default_measures
from rag_selectivity.single import Labels, numbered_queries
from rag_selectivity.single import defined_mean as mean_of_defined


def report_from_results(
    results: Sequence[RetrievalEvalResult],
    labels: Any = None,
    *,
    corpus_size: int | None = None,
    measures: Sequence[str] | None = None,
    depths: Sequence[int] | None = None,
    scale: str | None = None,
    grade_map: Any = None,
    bootstrap: Bootstrap | None = Bootstrap(),
    name: str = "retriever",
    human: Any = None,
) -> Report:
    """The core's report from what an evaluation of LlamaIndex already produced.

    Where no labels are given, `expected_ids` are the relevant passages. A question that was asked twice is
    measured twice. `human` holds labels by people, with the ids of `labels`: they calibrate the figures, as in
    `rag_selectivity.evaluate`.
    """
    if human is not None:
        labels, _ = labels_to_calibrate(labels)
    given = Labels.of(labels, grade_map=grade_map, scale=scale)
    by_key = dict(zip(numbered_queries(result.query for result in results), results, strict=True))
    grades = {
        key: of_query
        for key, result in by_key.items()
        if (of_query := given.of_query(result.query, relevant=result.expected_ids)) is not None
    }
    if not grades:
        raise InputError("there are no results with labels or expected ids")
    people = None
    if human is not None:
        by_people = Labels.of(peoples_grades(human, grade_map), scale=given.scale)
        people = {key: row for key, result in by_key.items() if (row := by_people.of_query(result.query))}
    return evaluate(
        given.judgments(grades),
        {name: {key: list(result.retrieved_ids) for key, result in by_key.items()}},
        corpus_size=corpus_size,
        scale=given.scale,
        measures=measures or default_measures(given.scale, sized=corpus_size is not None, classic=True),
        depths=depths,
        bootstrap=bootstrap,
        human=people,
    )


def defined_mean(results: Sequence[RetrievalEvalResult], metric: str) -> tuple[float, int, int]:
    """Mean of a metric over the results where it is defined, how many those are, and how many results there are."""
    return mean_of_defined(result.metric_vals_dict.get(metric, math.nan) for result in results)
