"""Reports and means from the results of an evaluation by LlamaIndex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.evaluation.retrieval.base import RetrievalEvalResult

from rag_selectivity import Report
from rag_selectivity.hosted import Retrieved, measure_hosted
from rag_selectivity.single import Steps, numbered_queries

#: How the reports of this package word their next steps.
STEPS = Steps("grade_retriever")


def report_from_results(
    results: Sequence[RetrievalEvalResult], labels: Any = None, *, name: str = "retriever", **options: Any
) -> Report:
    """The core's report from what an evaluation of LlamaIndex already produced.

    Where no labels are given, `expected_ids` are the relevant passages. A question that was asked twice is measured
    twice. Options are those of `rag_selectivity.hosted.measure_hosted`: `corpus_size`, `measures`, `depths`, `scale`,
    `grade_map`, `human`, `bootstrap` and policies.
    """
    by_key = dict(zip(numbered_queries(result.query for result in results), results, strict=True))
    return measure_hosted(
        {name: {key: Retrieved.by_id(result.retrieved_ids) for key, result in by_key.items()}},
        labels,
        {key: result.query for key, result in by_key.items()},
        expected={key: result.expected_ids for key, result in by_key.items()},
        steps=STEPS,
        identity=None,
        **options,
    ).report


def add_caveats(results: Sequence[RetrievalEvalResult], report: Report, run: str) -> None:
    """Put the caveats of each figure in a report into the metadata of the results' metrics of its name."""
    estimates = report.runs[run].estimates
    for result in results:
        for metric, figure in result.metric_dict.items():
            estimate = estimates.get(metric)
            if estimate is not None and estimate.caveats:
                figure.metadata["caveats"] = [caveat.text for caveat in estimate.caveats]
