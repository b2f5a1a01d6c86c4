"""Segments of the sets by K/N_p: which measure follows the answers if there are fewer slots than relevant passages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.measures.base import Measure
from rag_selectivity.results.slices import FEWEST as FEW
from rag_selectivity.results.validation import QUERIES, Segment
from rag_selectivity.validate.choosing import choose
from rag_selectivity.validate.following import Found, Row, beaten_by, correlations_of, differences_of
from rag_selectivity.validate.measures import depth_of
from rag_selectivity.validate.sets import AnsweredRun, Sets, joined
from rag_selectivity.wording import counted, enumeration, number

#: What the recall-free paper advises on either side of K/N_p = 1.
BELOW_ONE, FROM_ONE = "T", "nDCG"


def segments_of(
    runs: Sequence[AnsweredRun],
    measures: Sequence[Measure],
    borders: Sequence[float],
    *,
    bootstrap: Bootstrap,
    folds: int,
) -> list[Segment]:
    """The segments, from the smallest K/N_p on; none if the scores do not say from how many passages answers were made.

    The sets of all K are taken together, as in the paper: a query with answers from several K has several sets, which
    are drawn together.
    """
    bases = list(dict.fromkeys(measure.without_depth for measure in measures if depth_of(measure) is not None))
    segments = []
    for low, high in pairwise([0.0, *borders, math.inf]):
        by_run = [sets for run in runs if (sets := _sets_between(run, low, high))]
        if by_run and bases:
            segments.append(_segment(by_run, bases, low, high, bootstrap, folds))
    return segments


def _sets_between(run: AnsweredRun, low: float, high: float) -> list[Sets]:
    """The scored sets of a run with such a K/N_p, by K."""
    found = []
    for k, scores in run.scores.items():
        if k is not None:
            ratios = run.ratios(k)
            rows = np.flatnonzero(~np.isnan(scores) & (ratios >= low) & (ratios < high))
            found += [Sets(run, k, rows, k)] if len(rows) else []
    return found


def _segment(
    by_run: Sequence[Sequence[Sets]],
    bases: Sequence[Measure],
    low: float,
    high: float,
    bootstrap: Bootstrap,
    folds: int,
) -> Segment:
    """The rows, the chosen parameters, and what they show."""
    units = np.concatenate([part.units for sets in by_run for part in sets])
    plan = []
    for base in bases:
        series = [joined([part.series(base) for part in sets]) for sets in by_run]
        undefined = len(units) - sum(len(each.figures) for each in series)
        plan.append(Row(base, None, None, QUERIES, series, undefined))
    tried = [choose(base, None, by_run, folds=folds, seed=bootstrap.seed) for base in bases]
    choices = [choice for choice in tried if choice is not None]
    found = correlations_of([*(row.all_series for row in plan), *(choice.all_series for choice in choices)], bootstrap)
    chosen = tuple(choice.chosen(found, bootstrap.level) for choice in choices)
    rows = tuple(row.following(found, bootstrap.level) for row in plan)
    queries = len(np.unique(units))
    of_sets = f"{counted(len(units), 'set')} of {counted(queries, 'query', 'queries')}"
    advised = BELOW_ONE if high <= 1 else FROM_ONE if low >= 1 else ""
    published = f" The recall-free paper advises {advised} for such sets." if advised else ""
    if queries < FEW and not all(row.spearman.reason for row in rows):
        published = f" Fewer than {FEW} queries say little.{published}"
    summary = _summary(plan, found, bootstrap.level, of_sets) + published
    return Segment(low, high, len(units), queries, rows, chosen, advised, summary)


def _summary(plan: Sequence[Row], found: Found, level: float, of_sets: str) -> str:
    """Which measure has the highest correlation here, and what it is shown to be better than."""
    oriented = [(row, rho) for row in plan if not (rho := row.oriented(found)).reason]
    if not oriented:
        return f"No measure has a correlation here: {plan[0].oriented(found).reason}."
    row, rho = max(oriented, key=lambda each: each[1].value)
    best, value = str(row.measure), rho.value if row.measure.higher_is_better else -rho.value
    if len(plan) == 1:
        return f"{best} has a correlation of {number(value)} in these {of_sets}."
    strongest = "strongest" if value * rho.value < 0 else "highest"
    first = f"{best} has the {strongest} correlation in these {of_sets} ({number(value)})"
    beaten = beaten_by(differences_of(plan, found, level)).get(best, [])
    if beaten:
        return f"{first}, and it is shown to follow the answers better than {enumeration(beaten)}."
    return f"{first}, but it is not shown to follow the answers better than another measure."
