"""Where a run loses: what its pool lacks, and what its pool holds and the selection leaves out."""

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray, Measure, Outcome
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.utility import PROC, diagnosis

SELECTION, RETRIEVER, QUERIES = "selection", "retriever", "queries"


@dataclass(frozen=True, slots=True)
class Losses:
    """How much of the measure each step of a run loses.

    With P the share of the best evidence that the pool holds (for Success: 1 if the pool holds enough for a success,
    else 0) and S the share of that which is selected, the figure of a query is P·S. A perfect selection from the same
    pool would gain P(1 − S); a perfect pool with the same share selected would gain S(1 − P). Where the pool holds
    nothing, S is unknown and the mean S of the other queries takes its place.

    Attributes
    ----------
    pool : float
        The mean of P.
    selected : float
        The mean of S, over the queries whose pool holds evidence.
    rerank, widen : float
        The means of P(1 − S) and of S(1 − P): the most that a better selection can gain, and what candidates that lack
        nothing gain if the same share of them is selected.
    more : {"selection", "retriever", ""}
        Which step loses more, if the bounds of the two gains' difference exclude 0.
    limits : {diagnosis: number of queries}
        The queries by the step that limits them, as `rag_selectivity.measures.utility.diagnosis` says it of P and S.
        None where the shares are of completed labels: these counts would be as judged.
    given : bool
        Whether a pool was given: else the lists stand for it, and may be a selection already.
    of : str
        What the shares are of: "queries" for Success, else the evidence that the labels know.
    """

    pool: float
    selected: float
    rerank: float
    widen: float
    more: str
    limits: dict[str | None, int]
    given: bool
    of: str


def losses_of(judged: JudgedRun, measure: Measure, bootstrap: Bootstrap | None) -> Losses | None:
    """The losses of a run under RA-nWG or Success at a depth; None if no list is longer than K and no pool is known.

    A query without a pool has its own list as the pool, as in PROC: a list that ends at K then keeps all of it.

    The difference of the two gains has the bounds of any bounded mean: a swap of the two would test that they are
    distributed alike, and resamples of little lost everywhere do not hold the rare query that loses all.
    """
    depth = int(measure.at or 1)
    kept, ceiling = _figures(judged, measure, depth), _ceilings(judged, measure, depth)
    used = ~np.isnan(kept) & ~np.isnan(ceiling)
    if not (used & (~judged.own_pool | (judged.returned > depth))).any():
        return None
    pool, kept = ceiling[used], kept[used]
    weights, held = (np.ones(len(judged)) if judged.weights is None else judged.weights.values)[used], pool > 0
    share = np.divide(kept, pool, out=np.full(len(pool), np.nan), where=held)
    selected = float(np.average(share[held], weights=weights[held])) if held.any() else math.nan
    rerank = pool - kept
    widen = np.where(np.isnan(share), 1.0 if math.isnan(selected) else selected, share) * (1 - pool)
    more = ""
    if bootstrap is not None and not math.isnan(selected):
        # A last part that is the same for all asks for the interval of bounded values, as where few queries differ.
        behind = Outcome(((widen - rerank)[:, None], np.ones((len(pool), 1))), "", bounds=(-1.0, 1.0), weights=weights)
        ((low, high),) = bootstrap.intervals([behind], np.array(judged.queries, object)[used].tolist())
        more = SELECTION if high[0] < 0 else RETRIEVER if low[0] > 0 else ""
    limits = Counter(diagnosis(*factors) for factors in zip(pool.tolist(), share.tolist(), strict=True))
    held_by_pool, rerank_gain, widen_gain = (float(np.average(x, weights=weights)) for x in (pool, rerank, widen))
    given, of = not judged.own_pool.all(), QUERIES if isinstance(measure, Success) else "evidence"
    return Losses(held_by_pool, selected, rerank_gain, widen_gain, more, limits, given, of)


def _figures(judged: JudgedRun, measure: Measure, depth: int) -> FloatArray:
    return np.asarray(replace(measure, at=None).outcome(judged, np.array([depth])).settled().parts[0][:, 0])


def _ceilings(judged: JudgedRun, measure: Measure, depth: int) -> FloatArray:
    """The best figure that any selection from the pool could have: float64[queries]."""
    if not isinstance(measure, Success):
        return _figures(judged, PROC(), depth)
    return _figures(replace(judged, hits=judged.pooled), measure, WHOLE_LIST) * (depth >= measure.m)
