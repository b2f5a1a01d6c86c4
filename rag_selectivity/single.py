"""What adapters share: ids, labels in every form, the figure of one query, and the estimate over many of them.

An adapter turns a framework's objects into ids and texts, and leaves everything else to this module.

>>> labels = Labels.of({"who?": {"d1": 1}, "when?": {"d2": 1}})
>>> figures = [
...     evaluate_query("BoR@1", labels.of_query(query), passages, corpus_size=1024)
...     for query, passages in (("who?", ["d1"]), ("when?", ["d9"]))
... ]
>>> aggregate(figures).value
9.0
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rag_selectivity.data.cells import whole_grade
from rag_selectivity.data.columns import whole_count
from rag_selectivity.data.identity import (
    ChosenIdentity,
    as_text_id,
    candidates,
    choose_identity,
    numbered_queries,
    passage_identity,
)
from rag_selectivity.data.ids import text_id
from rag_selectivity.data.lazy import load_on_first_use
from rag_selectivity.data.passage_counts import PassageCounts
from rag_selectivity.errors import InputError
from rag_selectivity.estimates import estimates_with
from rag_selectivity.join.direct import QueryLists
from rag_selectivity.measures import BoR, Outcome
from rag_selectivity.measures.base import joint_refusal
from rag_selectivity.measures.one_query import (
    NO_LABELS,
    QueryFigure,
    evaluate_queries,
    evaluate_query,
    join_query,
    measure_with_depth,
    per_query_measure,
    plain_figures,
    query_figure,
)
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.labels import Labels
from rag_selectivity.results.steps import Steps
from rag_selectivity.statistics.bootstrap import Bootstrap

__all__ = [
    "ChosenIdentity",
    "Labels",
    "PassageCounts",
    "QueryFigure",
    "QueryLists",
    "Steps",
    "aggregate",
    "as_text_id",
    "bits_over_random",
    "candidates",
    "choose_identity",
    "defined_mean",
    "evaluate_queries",
    "evaluate_query",
    "join_query",
    "load_on_first_use",
    "measure_with_depth",
    "numbered_queries",
    "passage_identity",
    "per_query_measure",
    "plain_figures",
    "query_figure",
    "text_id",
    "whole_count",
    "whole_grade",
]


# -- all queries -----------------------------------------------------------------------------------


def aggregate(
    figures: Iterable[QueryFigure], *, total: int | None = None, bootstrap: Bootstrap | str | None = Bootstrap()
) -> Estimate:
    """The estimate that the figures of many queries make: a mean, or the ratio of means that the measure is.

    Equal to what `rag_selectivity.evaluate` gives for the same queries, except for the caveats about unjudged passages.

    Parameters
    ----------
    figures : iterable of QueryFigure
        Of one measure at one depth.
    total : int, optional
        Queries that were meant to be measured, if the host left some of them out; default: all figures.
    bootstrap : Bootstrap, {"bca", "percentile"} or None
        None leaves the interval out.

    Returns
    -------
    Estimate
        `n` of `n_total` queries have a figure. The value is NaN if none has, −inf for BoR without a success.

    Raises
    ------
    InputError
        If there are no figures, or they are of several measures or depths.
    """
    given = list(figures)
    measures = list(dict.fromkeys(figure.measure for figure in given))
    if len(measures) != 1:
        listed = ", ".join(map(str, measures)) or "no figures"
        raise InputError(f"figures of one measure at one depth are needed, got {listed}")
    judged = [figure.outcome for figure in given if figure.outcome is not None]
    number = len(given) if total is None else total
    if not judged:
        return Estimate(math.nan, math.nan, math.nan, 0, number, NO_LABELS)
    parts = [np.vstack([outcome.parts[i] for outcome in judged]) for i in range(len(judged[0].parts))]
    whole = replace(
        judged[0],
        parts=tuple(parts),
        premise=any(outcome.premise for outcome in judged),
        refused=joint_refusal(outcome.refused for outcome in judged),
    )
    return _estimate_of(whole.settled(), number, bootstrap)


def bits_over_random(
    success: Iterable[float],
    random_success: Iterable[float],
    *,
    total: int | None = None,
    bootstrap: Bootstrap | str | None = Bootstrap(),
) -> Estimate:
    """BoR from the figures that a host kept as plain numbers: log2(mean Success / mean RandomSuccess).

    Parameters
    ----------
    success, random_success : iterable of float
        `Success@K` and `RandomSuccess@K` of the same queries in the same order; NaN if undefined.
    total, bootstrap
        As in `aggregate`.

    Returns
    -------
    Estimate
        In bits. A query counts if both figures are defined. NaN if no query counts, −inf without a success.

    Raises
    ------
    InputError
        If the two have different lengths, or are empty.

    Examples
    --------
    >>> bits_over_random([1.0, 0.0, 1.0, 1.0], [0.125, 0.125, 0.25, 0.25]).value
    2.0
    """
    hits, chances = (np.array(list(column), np.float64)[:, None] for column in (success, random_success))
    if len(hits) != len(chances) or not len(hits):
        raise InputError(
            f"success has {len(hits)} figures and random_success {len(chances)}: one of each is needed for each query"
        )
    known = ~np.isnan(hits) & ~np.isnan(chances)
    parts = tuple(np.where(known, column, np.nan) for column in (hits, chances, 1 - chances))
    outcome = Outcome(parts, "no query has both figures", BoR.aggregate, baseline=1)
    return _estimate_of(outcome, len(hits) if total is None else total, bootstrap)


def defined_mean(values: Iterable[float]) -> tuple[float, int, int]:
    """The mean of the values that are defined, how many those are, and how many values there are; NaN without any.

    >>> defined_mean([1.0, float("nan"), 0.5])
    (0.75, 2, 3)
    """
    given = list(values)
    defined = [value for value in given if not math.isnan(value)]
    return (sum(defined) / len(defined) if defined else math.nan), len(defined), len(given)


def _estimate_of(outcome: Outcome, total: int, bootstrap: Bootstrap | str | None) -> Estimate:
    chosen = Bootstrap.of(bootstrap)
    if chosen is None:
        low = high = np.full(1, np.nan)
    else:
        ((low, high),) = chosen.intervals([outcome])
    return estimates_with(outcome, low, high, total)[0]
