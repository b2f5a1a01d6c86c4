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
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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
from rag_selectivity.data.policy import resolve_policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.estimates import estimates_with
from rag_selectivity.join.joining import join
from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.measures import BoR, Measure, Outcome, parse_measure
from rag_selectivity.measures.base import joint_refusal
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.labels import Labels
from rag_selectivity.results.steps import Steps
from rag_selectivity.statistics.bootstrap import Bootstrap

__all__ = [
    "ChosenIdentity",
    "Labels",
    "PassageCounts",
    "QueryFigure",
    "Steps",
    "aggregate",
    "as_text_id",
    "bits_over_random",
    "candidates",
    "choose_identity",
    "defined_mean",
    "evaluate_query",
    "join_query",
    "load_on_first_use",
    "measure_with_depth",
    "numbered_queries",
    "passage_identity",
    "per_query_measure",
    "query_figure",
    "text_id",
    "whole_count",
    "whole_grade",
]

NO_LABELS = "nobody judged this query"


# -- measures --------------------------------------------------------------------------------------


def measure_with_depth(measure: str | Measure) -> Measure:
    """A measure that is one figure: at a depth, or of the whole list.

    >>> measure_with_depth("bor@10"), measure_with_depth("RR")
    (BoR@10, RR)

    Raises
    ------
    InputError
        If the depth is missing, or there is no such measure.
    """
    parsed = parse_measure(measure)
    if parsed.at is None and not parsed.takes_whole_lists:
        raise InputError(f"{parsed}: name the depth, as in {parsed}@10")
    return parsed


def per_query_measure(measure: str | Measure, *, needs_depth: bool = True) -> Measure:
    """A measure that has a figure for one query; a ratio of means has none.

    `needs_depth=False` admits a measure without its depth, for a host that measures lists as long as they are.

    Raises
    ------
    InputError
        If the measure is a ratio of means, or its depth is missing.
    """
    parsed = measure_with_depth(measure) if needs_depth else parse_measure(measure)
    if not parsed.per_query:
        raise InputError(f"{parsed} is a ratio of means and has no figure for one query; it stands in a report")
    return parsed


# -- one query -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryFigure:
    """A measure's figure for one query.

    Attributes
    ----------
    measure : Measure
        With its depth.
    value : float
        In the range of the measure; NaN if it is undefined for this query, as a ratio of means always is.
    reason : str or None
        Why the value is NaN.
    outcome : Outcome or None
        What `aggregate` makes the estimate of; None if nobody judged the query.
    details : {name: number}
        What the figure was made of: `judged` and `returned` passages in the top K, `relevant` ones that are known,
        and the measure's own quantities.
    """

    measure: Measure
    value: float
    reason: str | None = None
    outcome: Outcome | None = None
    details: Mapping[str, float] = field(default_factory=dict)


def join_query(
    grades: Mapping[str, int],
    passages: Sequence[str],
    *,
    pool: Sequence[str] | None = None,
    corpus_size: int | None = None,
    passages_of: Any = None,
    scale: str | None = None,
    levels: Iterable[int] = (),
    **policies: Any,
) -> JudgedRun:
    """The join of one query's list with its labels.

    Parameters
    ----------
    grades : {passage: grade}
    passages : sequence of str
        Ids in rank order.
    pool : sequence of str, optional
        The candidates before reranking or selection, for PROC and %PROC.
    corpus_size : int, optional
        N, for the chance-corrected measures.
    passages_of : {document: number of its passages} or PassageCounts, optional
        As in `rag_selectivity.evaluate`, if grades and passages name documents. `PassageCounts.of` reads a large
        mapping once for many queries.
    scale : {"trec", "utility"}, optional
        As in `rag_selectivity.evaluate`.
    levels : iterable of int
        The grades that the labels hold for any query (`Labels.levels`). They decide whether there is junk to be found,
        which Harm needs to know.
    policies
        As in `rag_selectivity.evaluate`: `unjudged="worst"`.

    Raises
    ------
    InputError
        If a grade is off the scale, there are more relevant passages than the corpus has, or a policy is unknown.
    """
    with warnings.catch_warnings():
        # That no judged passage was retrieved is a warning for a dataset, not for one query.
        warnings.simplefilter("ignore", SelectivityWarning)
        return join(
            Qrels.from_records((("query", *row) for row in grades.items()), queries=["query"], levels=levels),
            Run.from_dict({"query": list(passages)}),
            pool=None if pool is None else Run.from_dict({"query": list(pool)}),
            corpus_size=corpus_size,
            passages_of=passages_of,
            scale=scale,
            policy=resolve_policy(None, **policies),
            ids="exact",
        )


def query_figure(measure: str | Measure, joined: JudgedRun, *, details: bool = False) -> QueryFigure:
    """The figure of a measure for the one query of `join_query`; several measures may share the join.

    `details=True` adds what the figure was made of.

    Raises
    ------
    InputError
        If the depth is missing or larger than the corpus, or the measure needs N and there is none.
    """
    measure = measure_with_depth(measure)
    depths = np.array([measure.at]) if measure.at is not None else measure.default_depths(np.array([1]))
    if isinstance(measure.at, int):
        joined.check_depths(depths)
    outcome = measure.outcome(joined, depths)
    made_of = _details(measure, joined, depths) if details else {}
    if not measure.per_query:
        reason = f"{measure} is a ratio of means and has no figure for one query: aggregate the figures of all queries"
        return QueryFigure(measure, math.nan, reason, outcome, made_of)
    settled = outcome.settled()
    value = float(settled.parts[0][0, 0])
    return QueryFigure(measure, value, settled.undefined if math.isnan(value) else None, outcome, made_of)


def _details(measure: Measure, joined: JudgedRun, depths: Any) -> dict[str, float]:
    numbers: dict[str, float] = {
        name: float(values.ravel()[0]) for name, values in measure.details(joined, depths).items()
    }
    if isinstance(measure.at, int):
        numbers["judged"] = int(joined.judged_at(depths)[0, 0])
        numbers["returned"] = int(joined.returned_at(depths)[0, 0])
    numbers["relevant"] = int(joined.relevant()[0])
    return numbers


def evaluate_query(
    measure: str | Measure,
    grades: Mapping[str, int] | None,
    passages: Sequence[str],
    *,
    details: bool = False,
    **options: Any,
) -> QueryFigure:
    """The figure of a measure for one query, and the reason if it is NaN.

    Parameters
    ----------
    measure : str or Measure
        With its depth, `"RA-nWG@10"`. A ratio of means (`"BoR@10"`) is NaN for one query and defined in `aggregate`.
    grades : {passage: grade} or None
        None, as `Labels.of_query` has it, if nobody judged the query: the figure is NaN.
    passages, details, options
        As in `join_query` and `query_figure`.

    Raises
    ------
    InputError
        As `join_query` and `query_figure`.

    Examples
    --------
    >>> figure = evaluate_query("Harm@2", {"d1": 5, "d2": 1}, ["d1", "d2"], scale="utility")
    >>> figure.value, evaluate_query("Harm@2", None, ["d1"]).reason
    (0.5, 'nobody judged this query')
    """
    if grades is None:
        return QueryFigure(measure_with_depth(measure), math.nan, NO_LABELS)
    return query_figure(measure, join_query(grades, passages, **options), details=details)


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
