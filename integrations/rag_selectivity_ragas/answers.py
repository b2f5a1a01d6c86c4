"""Scores of answers that an evaluation or experiment of Ragas already has, by the query ids of `selectivity`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_selectivity import InputError
from rag_selectivity.errors import did_you_mean
from rag_selectivity_ragas.samples import rows_of


def answer_scores(result: Any, metric: str, *, id_column: str | None = None) -> dict[str, float | None]:
    """{query: score} of a metric of the answers, row by row, for `rag_selectivity.validate`.

    Parameters
    ----------
    result : EvaluationResult, Experiment, Dataset, HF Dataset, or list of dicts
        The rows that `selectivity` measured.
    metric : str
        The column, such as `answer_correctness`.
    id_column : str, optional
        As in `selectivity`.

    Raises
    ------
    InputError
        If no row has the metric.
    """
    rows = rows_of(result, id_column=id_column)
    # An evaluation has the scores beside its samples; the rows of an experiment hold them.
    scores = getattr(result, "scores", None)
    columns: list[Mapping[str, Any]] = scores if isinstance(scores, list) else [row.fields for row in rows]
    if not any(metric in column for column in columns):
        known = list(dict.fromkeys(name for column in columns for name in column))
        raise InputError(
            f"no row has the metric {metric!r}{did_you_mean(metric, known)} (there are {', '.join(known)})"
        )
    return {row.key: column.get(metric) for row, column in zip(rows, columns, strict=True)}
