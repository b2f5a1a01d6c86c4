"""The figures of one retrieval as attributes of its span."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry import trace

from rag_selectivity import Measure
from rag_selectivity.single import figures_of_query


def write_figures(
    measures: Sequence[str | Measure],
    grades: Mapping[str, int] | None,
    passages: Sequence[str],
    *,
    span: Any = None,
    **options: Any,
) -> dict[str, float]:
    """Write figures of one retrieval into its span, as `rag_selectivity.success@10`.

    Only numbers are written, no text. A figure that is undefined for the query is left out.

    Parameters
    ----------
    measures : sequence of str or Measure
        With their depths, and with a figure for one query: `"Success@10"`, `"RandomSuccess@10"`, `"Harm@5"`.
    grades : {passage: grade} or None
        Labels of the query; None, as `Labels.of_query` has it, if nobody judged it: nothing is written then.
    passages : sequence of str
        Ids in rank order.
    span : opentelemetry.trace.Span, optional
        Default: the current span.
    options
        As in `rag_selectivity.single.evaluate_query`: `corpus_size`, `scale`, `passages_of` …

    Returns
    -------
    {attribute: figure}
        What was written.

    Raises
    ------
    InputError
        As `evaluate_query`.

    Examples
    --------
    >>> write_figures(["Success@2", "P@2"], {"d1": 1}, ["d7", "d1"])
    {'rag_selectivity.success@2': 1.0, 'rag_selectivity.p@2': 0.5}
    """
    figures = figures_of_query(measures, grades, passages, **options)
    written = {
        f"rag_selectivity.{figure.measure}".lower(): figure.value for figure in figures if math.isfinite(figure.value)
    }
    target = trace.get_current_span() if span is None else span
    target.set_attributes(written)
    return written
