"""Reports and means from the results of an evaluation by LlamaIndex."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.evaluation.retrieval.base import RetrievalEvalResult

from rag_selectivity import Bootstrap, InputError, Report, evaluate
from rag_selectivity.calibrated import labels_to_calibrate, people_under
from rag_selectivity.indexes import given_size
from rag_selectivity.measures import default_measures
from rag_selectivity.single import Labels, Steps, numbered_queries
from rag_selectivity.single import defined_mean as mean_of_defined

#: How the reports of this package word their next steps.
STEPS = Steps("grade_retriever")


def report_from_results(
    results: Sequence[RetrievalEvalResult],
    labels: Any = None,
    *,
    corpus_size: Any = None,
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
    corpus_size = given_size(corpus_size)
    given = Labels.of(labels, grade_map=grade_map, scale=scale, controls=True, measures=measures)
    by_key = dict(zip(numbered_queries(result.query for result in results), results, strict=True))
    grades = {
        key: of_query
        for key, result in by_key.items()
        if (of_query := given.of_query(result.query, relevant=result.expected_ids)) is not None
    }
    if not grades:
        raise InputError("there are no results with labels or expected ids")
    names = {key: given.name_of(by_key[key].query) for key in grades}
    return evaluate(
        given.judgments(grades, names),
        {name: {key: list(result.retrieved_ids) for key, result in by_key.items()}},
        corpus_size=corpus_size,
        scale=given.scale,
        measures=measures or default_measures(given.scale, sized=corpus_size is not None, classic=True),
        depths=depths,
        bootstrap=bootstrap,
        human=None if human is None else people_under(human, named(names), grade_map),
    ).with_steps(STEPS)


def named(names: Mapping[str, str | None]) -> dict[str, str]:
    """Those of {key: name} that have a name."""
    return {key: name for key, name in names.items() if name is not None}


def add_caveats(results: Sequence[RetrievalEvalResult], report: Report, run: str) -> None:
    """Put the caveats of each figure in a report into the metadata of the results' metrics of its name."""
    estimates = report.runs[run].estimates
    for result in results:
        for metric, figure in result.metric_dict.items():
            estimate = estimates.get(metric)
            if estimate is not None and estimate.caveats:
                figure.metadata["caveats"] = [caveat.text for caveat in estimate.caveats]


def defined_mean(results: Sequence[RetrievalEvalResult], metric: str) -> tuple[float, int, int]:
    """Mean of a metric over the results where it is defined, how many those are, and how many results there are."""
    return mean_of_defined(result.metric_vals_dict.get(metric, math.nan) for result in results)
