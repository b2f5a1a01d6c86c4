"""Where a run loses: what its pool lacks, and what its pool holds and the selection leaves out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.inference.betting import highest_mean
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.hits import Hits
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray, Measure, Outcome
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.utility import PROC, RANWG, diagnosis
from rag_selectivity.tables.ids import IntArray

SELECTION, RETRIEVER = "selection", "retriever"


@dataclass(frozen=True, slots=True)
class Gain:
    """The most that mending one step can gain in the measure, with its interval over queries; NaN if unknown."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class Losses:
    """How much of the measure each step of a run loses.

    With P the share of the best evidence that the pool holds (for Success: 1 if the pool holds enough for a success,
    else 0) and S the share of that which is selected, the figure of a query is P·S. A perfect selection from the same
    pool would gain P(1 − S); a perfect pool with the same share selected would gain S(1 − P). Where the pool holds
    nothing, S is unknown and the mean S of the other queries takes its place.

    Attributes
    ----------
    queries, split : int
        The queries with a figure, and those of them in which something was selected from a pool larger than K.
    pool : float
        The mean of P.
    selected : float
        The mean of S, over the queries whose pool holds evidence.
    rerank, widen : Gain
        Means of P(1 − S) and of S(1 − P).
    more : {"selection", "retriever", ""}
        Which step loses more, if the bounds of the two gains' difference exclude 0.
    by_selection, by_retriever, by_both : int
        The queries by the step that limits them, as `rag_selectivity.measures.utility.diagnosis` says it of P and S.
    """

    queries: int
    split: int
    pool: float
    selected: float
    rerank: Gain
    widen: Gain
    more: str
    by_selection: int
    by_retriever: int
    by_both: int


def losses_of(judged: JudgedRun, measure: Measure, bootstrap: Bootstrap | None) -> Losses | None:
    """The losses of a run under RA-nWG or Success at a depth; None if no list is longer than K and no pool is known."""
    kept = figures(judged, measure)
    ceiling = ceilings(judged, measure)
    depth = int(measure.at or 1)
    splittable = judged.selected_from | (judged.returned > depth) | (judged.candidates_returned > depth)
    known = ~np.isnan(kept) & ~np.isnan(ceiling)
    used = known & splittable
    if not used.any():
        return None
    p, figure = ceiling[used], kept[used]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(p > 0, figure / p, np.nan)
    selected = float(np.nanmean(share)) if (p > 0).any() else math.nan
    rerank = p - figure
    widen = np.where(np.isnan(share), selected, share) * (1 - p)
    ends, more = tested_gains(judged.queries, used, rerank, widen, bootstrap)
    limits = Counter(diagnosis(*factors) for factors in zip(p.tolist(), share.tolist(), strict=True))
    return Losses(
        queries=int(known.sum()),
        split=int(used.sum()),
        pool=float(p.mean()),
        selected=selected,
        rerank=Gain(float(rerank.mean()), *ends[0]),
        widen=Gain(float(widen.mean()) if not math.isnan(selected) else float((1 - p).mean()), *ends[1]),
        more=more,
        by_selection=limits["selection-limited"],
        by_retriever=limits["retriever-limited"],
        by_both=limits["limited by both"],
    )


def figures(judged: JudgedRun, measure: Measure) -> FloatArray:
    """The figure of every query: float64[queries], NaN where it is undefined."""
    return _figures_at(judged, measure, int(measure.at or 1))


def ceilings(
    judged: JudgedRun, measure: Measure, pool: Hits | None = None, sizes: IntArray | None = None
) -> FloatArray:
    """The best figure that any selection from the pool could have: float64[queries]; NaN where it is undefined.

    `pool` and its `sizes` take the place of the run's own pool.
    """
    depth = int(measure.at or 1)
    candidates = judged if pool is None else replace(judged, pool=pool, pool_returned=sizes, own_pool=None)
    if isinstance(measure, RANWG):
        of_weights = {each.name: getattr(measure, each.name) for each in measure.parameters()}
        return _figures_at(candidates, PROC(**of_weights), depth)
    if isinstance(measure, Success):
        in_pool = replace(candidates, hits=joined_hits([candidates.candidates, candidates.hits_outside_pool()]))
        held = _figures_at(in_pool, measure, WHOLE_LIST)
        return held if depth >= measure.m else np.where(np.isnan(held), np.nan, 0.0)
    raise TypeError(f"the ceiling of {measure} is not known")


def _figures_at(judged: JudgedRun, measure: Measure, depth: int) -> FloatArray:
    outcome = replace(measure, at=None).outcome(judged, np.array([depth])).settled()
    result: FloatArray = outcome.parts[0][:, 0]
    return result


def joined_hits(parts: Sequence[Hits]) -> Hits:
    """The distinct passages of several lists, each at its best rank."""
    together = Hits.together(parts)
    order = np.lexsort((together.rank, together.judgment, together.query))
    together = together.chosen(order)
    first = np.ones(len(order), bool)
    first[1:] = (together.query[1:] != together.query[:-1]) | (together.judgment[1:] != together.judgment[:-1])
    return replace(together.chosen(first), repeated=np.zeros(int(first.sum()), bool))


def tested_gains(
    queries: Sequence[str],
    used: NDArray[np.bool_],
    rerank: FloatArray,
    widen: FloatArray,
    bootstrap: Bootstrap | None,
) -> tuple[list[tuple[float, float]], str]:
    """The intervals of both gains, and which of them is shown to be larger: `selection`, `retriever` or empty.

    The gains are those of the queries that are `used`. Their difference is bounded by betting, which holds for means of
    any distribution: a swap of the two gains would test that they are distributed alike, and not that their means are
    the same, which differ where one step loses much in a few queries and the other a little in all of them.
    """
    if bootstrap is None or np.isnan(widen).any():
        return [(math.nan, math.nan)] * 2, ""
    sides = []
    for gaps in (rerank, widen):
        column = np.full((len(used), 1), np.nan)
        column[used, 0] = gaps
        sides.append(Outcome((column,), "", bounds=(0.0, 1.0)))
    ends = [(float(low[0]), float(high[0])) for low, high in bootstrap.intervals(sides, queries)]
    gap, tail = (sides[0].parts[0] - sides[1].parts[0])[:, 0], (1 - bootstrap.level) / 2
    units = bootstrap.units(queries)
    if highest_mean(-gap, -1.0, 1.0, tail, units) < 0:
        return ends, SELECTION
    return ends, RETRIEVER if highest_mean(gap, -1.0, 1.0, tail, units) < 0 else ""
