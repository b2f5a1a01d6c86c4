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
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.evaluation.estimates import ends_of, estimates_of
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.lazy import load_on_first_use
from rag_selectivity.measures import BoR, Outcome
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.of_query import (
    NO_LABELS,
    QueryFigure,
    at_depths,
    evaluate_queries,
    evaluate_query,
    figures_of_query,
    measure_with_depth,
    per_query_measure,
    query_figures,
)
from rag_selectivity.measures.refusal import Refusal, joint_refusal
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.labels import Labels
from rag_selectivity.results.query_scorer import QueryScorer, kept_measures
from rag_selectivity.results.steps import Steps
from rag_selectivity.tables.cells import is_missing, iterated, shown, text_or_number, whole_count, whole_grade
from rag_selectivity.tables.identity import (
    as_text_id,
    candidates,
    document_ids,
    numbered_queries,
    passage_identity,
)
from rag_selectivity.tables.ids import text_id
from rag_selectivity.tables.matching import ChosenIdentity, choose_identity
from rag_selectivity.tables.small import PassageCounts, passage_counts_of

__all__ = [
    "ChosenIdentity",
    "Labels",
    "OfRepeats",
    "PassageCounts",
    "QueryFigure",
    "QueryScorer",
    "Steps",
    "SummedFigure",
    "aggregate",
    "as_text_id",
    "at_depths",
    "bits_over_random",
    "bits_over_random_of_rows",
    "candidates",
    "choose_identity",
    "document_ids",
    "evaluate_queries",
    "evaluate_query",
    "figures_of_query",
    "is_missing",
    "kept_measures",
    "load_on_first_use",
    "measure_with_depth",
    "none_judged",
    "numbered_queries",
    "passage_counts_of",
    "passage_identity",
    "per_query_measure",
    "query_figures",
    "text_id",
    "text_or_number",
    "whole_count",
    "whole_grade",
]


# -- all queries -----------------------------------------------------------------------------------


def aggregate(
    figures: Iterable[QueryFigure], *, total: int | None = None, bootstrap: Bootstrap | None = Bootstrap()
) -> Estimate:
    """The estimate that the figures of many queries make: a mean, or the ratio of means that the measure is.

    Equal to what `rag_selectivity.evaluate` gives for the same queries, except for the caveats about unjudged passages.

    Parameters
    ----------
    figures : iterable of QueryFigure
        Of one measure at one depth.
    total : int, optional
        Queries that were meant to be measured, if the host left some of them out; default: all figures.
    bootstrap : Bootstrap or None
        None leaves the interval out.

    Returns
    -------
    Estimate
        `n` of `n_total` queries have a figure. The value is NaN if none has, −inf for BoR without a success.

    Raises
    ------
    InputError
        If there are no figures, or they are of several measures or depths; if there are fewer in total.
    """
    given = list(figures)
    measures = list(dict.fromkeys(figure.measure for figure in given))
    if len(measures) != 1:
        listed = ", ".join(map(str, measures)) or "no figures"
        raise InputError(f"figures of one measure at one depth are needed, got {listed}")
    judged = [figure.outcome for figure in given if figure.outcome is not None]
    number = _meant(total, len(given))
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
    bootstrap: Bootstrap | None = Bootstrap(),
    repeating: int = 0,
) -> Estimate:
    """BoR from the figures that a host kept as plain numbers: log2(mean Success / mean RandomSuccess).

    Parameters
    ----------
    success, random_success : iterable of float
        `Success@K` and `RandomSuccess@K` of the same queries in the same order; NaN if undefined.
    total, bootstrap
        As in `aggregate`.
    repeating : int
        How many of the lists repeat a passage within their top K, where no rule says what that means.

    Returns
    -------
    Estimate
        In bits. A query counts if both figures are defined. NaN if no query counts, or if more than a tenth of the
        lists repeat a passage; −inf without a success.

    Raises
    ------
    InputError
        If the two have different lengths, or are empty; if one is not between 0 and 1; if there are fewer in total.

    Examples
    --------
    >>> bits_over_random([1.0, 0.0, 1.0, 1.0], [0.125, 0.125, 0.25, 0.25]).value
    2.0
    """
    given = {"success": success, "random_success": random_success}
    hits, chances = (_rates(name, column)[:, None] for name, column in given.items())
    if len(hits) != len(chances) or not len(hits):
        raise InputError(
            f"success has {len(hits)} figures and random_success {len(chances)}: one of each is needed for each query"
        )
    known = ~np.isnan(hits) & ~np.isnan(chances)
    parts = tuple(np.where(known, column, np.nan) for column in (hits, chances, 1 - chances))
    refused = Refusal((repeating,), int(known.sum()))
    outcome = Outcome(parts, "no query has both figures", BoR.aggregate, baseline=1, refused=refused)
    return _estimate_of(outcome.settled(), _meant(total, len(hits)), bootstrap)


def bits_over_random_of_rows(
    rows: Iterable[Mapping[str, float | None]],
    *,
    total: int | None = None,
    bootstrap: Bootstrap | None = Bootstrap(),
) -> dict[str, Estimate]:
    """BoR from the figures by name that a host kept of each row, for every pair of Success and RandomSuccess in them.

    Parameters
    ----------
    rows : iterable of {name: figure}
        None or no entry where a row has no figure. Names may be a host's own, if they begin as those of the measures.
    total, bootstrap
        As in `aggregate`.

    Returns
    -------
    {name: Estimate}
        The name is that of Success, with BoR in its place.

    Raises
    ------
    InputError
        If no row holds both names of a pair.

    Examples
    --------
    >>> rows = [{"Success@1": 1.0, "RandomSuccess@1": 0.125}, {"Success@1": None, "RandomSuccess@1": None}]
    >>> bor = bits_over_random_of_rows(rows)["BoR@1"]
    >>> bor.value, bor.n, bor.n_total
    (3.0, 1, 2)
    """
    given = [dict(row) for row in rows]
    pairs = [(name, f"Random{name}") for row in given for name in row if name.startswith("Success")]
    complete = sorted({pair for pair in pairs if any(set(pair) <= row.keys() for row in given)})
    if not complete:
        raise InputError(
            f"none of the {len(given)} rows has Success and RandomSuccess at one depth: evaluate both, and look at the "
            f"errors of the rows"
        )
    found = {}
    for success, chance in complete:
        hits, chances = ([_as_number(row.get(name)) for row in given] for name in (success, chance))
        repeating = sum(isinstance(value, OfRepeats) for value in chances)
        found[success.replace("Success", "BoR", 1)] = bits_over_random(
            hits, chances, total=total, bootstrap=bootstrap, repeating=repeating
        )
    return found


def none_judged(name: str, judged: Iterable[float | str]) -> int:
    """In how many lists no passage is judged, from the number of judged passages of each.

    A SelectivityWarning that names the measure is given if that is so in all of them: the ids may differ.

    >>> none_judged("BoR@10", [3, 0, 1])
    1
    """
    numbers = [float(number) for number in judged]
    count = numbers.count(0)
    if numbers and count == len(numbers):
        warnings.warn(
            SelectivityWarning(
                f"{name}: none of the {count} rows retrieved a judged passage: check that the retrieved ids are the "
                f"ids of the labels (identity=…)",
                "ids-do-not-match",
            ),
            stacklevel=3,
        )
    return count


def _as_number(value: float | None) -> float:
    return math.nan if value is None else value


class OfRepeats(float):
    """RandomSuccess of a list that repeats a passage within its top K, where no rule says what that means."""


class SummedFigure(float):
    """The figure of one query, NaN if it has none, or the sum of such figures.

    For a host that takes the mean of every measure over queries, while BoR is a ratio of means. A sum of figures
    remembers what it was made of; divided by the number of queries, it is the figure over all of them, as in
    `rag_selectivity.evaluate`. Queries without a figure are left out.

    >>> figures = [evaluate_query("BoR@1", {"d1": 1}, ids, corpus_size=1024) for ids in (["d1"], ["d9"])]
    >>> sum(map(SummedFigure.of, figures)) / 2
    9.0
    """

    parts: tuple[SummedFigure | QueryFigure, ...] = ()

    @classmethod
    def of(cls, figure: QueryFigure) -> SummedFigure:
        """The figure of one query as a number that can be summed."""
        return cls._made(figure.value, figure)

    @classmethod
    def _made(cls, value: float, *parts: SummedFigure | QueryFigure) -> SummedFigure:
        made = cls(value)
        made.parts = parts
        return made

    def __add__(self, other: float) -> SummedFigure:
        # Anything else is the zero that a sum starts with, or stands for a query without labels.
        return self._made(float(self) + float(other), self, *([other] if isinstance(other, SummedFigure) else []))

    __radd__ = __add__

    def __truediv__(self, queries: float) -> float:
        figures, left = [], [*self.parts]
        while left:
            part = left.pop()
            if isinstance(part, QueryFigure):
                figures.append(part)
            else:
                left += part.parts
        return aggregate(figures, bootstrap=None).value


def _rates(name: str, column: Iterable[float]) -> FloatArray:
    """Numbers between 0 and 1, or NaN: float64[queries]."""
    given = list(iterated(column, f"{name} must be a list of numbers"))
    try:
        rates = np.array(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must hold numbers between 0 and 1, or NaN where a query has none") from None
    wrong = np.flatnonzero((rates < 0) | (rates > 1)) if rates.ndim == 1 else np.zeros(1, np.int64)
    if len(wrong):
        raise InputError(
            f"{name} holds {shown(given[wrong[0]])} in place {wrong[0]}; give numbers between 0 and 1, or NaN where a "
            f"query has none"
        )
    return rates


def _meant(total: int | None, given: int) -> int:
    """How many queries were meant to be measured."""
    meant = given if total is None else whole_count(total, "total")
    if meant < given:
        raise InputError(
            f"total is {meant:,}, and there are {given:,} queries; give how many were meant to be measured"
        )
    return meant


def _estimate_of(outcome: Outcome, total: int, bootstrap: Bootstrap | None) -> Estimate:
    (ends,) = ends_of([outcome], (), Bootstrap.of(bootstrap))
    return estimates_of(outcome, ends, total)[0]
