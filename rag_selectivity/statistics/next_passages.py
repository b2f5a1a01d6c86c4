"""What the next passages alone add: ranks a+1 to b compared with a random draw from the corpus left after rank a."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.data.ids import IntArray
from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.measures.base import Aggregate, FloatArray, Outcome
from rag_selectivity.measures.chance import _BITS, Success
from rag_selectivity.measures.hypergeometric import random_success
from rag_selectivity.statistics.bootstrap import Bootstrap

#: Ranks after which a bracket ends: 1, 2, 5, 10, 20, 50, …
_STEPS = (1, 2, 5)


def _log_ratio(observed: FloatArray, expected: FloatArray) -> FloatArray:
    return _log2(_ratio(observed, expected))


def _ratio(observed: FloatArray, expected: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return observed / expected


def _log2(ratio: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log2(ratio) + 0.0


_BITS_OF_COUNTS = Aggregate(value=_log_ratio, statistic=_ratio, link=_log2)


@dataclass(frozen=True, slots=True)
class NextPassages:
    """What the passages of the ranks `first` to `last` add.

    Attributes
    ----------
    first, last : int
        The bracket's ranks: a+1 and b.
    queries, successes : int
        Queries with fewer than m hits before the bracket (and at least m relevant passages), and how many of these
        reach m hits in it.
    random_successes : float
        The expected number of successes of a random draw there.
    bits, low, high : float
        log2(successes / random_successes) with its interval. −inf without a success, NaN if no query is left.
    relevant_found, relevant_expected : float
        Relevant passages in the bracket, over all queries that have any, and the expected number in a random draw.
    relevant_bits, relevant_low, relevant_high : float
        log2(relevant_found / relevant_expected) with its interval.
    """

    first: int
    last: int
    queries: int
    successes: int
    random_successes: float
    bits: float
    low: float
    high: float
    relevant_found: int
    relevant_expected: float
    relevant_bits: float
    relevant_low: float
    relevant_high: float

    def to_dict(self) -> dict[str, Any]:
        """As plain data; a number that is not finite is None."""
        return {
            name: value if isinstance(value, int) or np.isfinite(value) else None
            for name, value in ((name, getattr(self, name)) for name in self.__slots__)
        }


def next_passages(
    judged: JudgedRun, *, rel: int | None = None, m: int = 1, bootstrap: Bootstrap | None = None
) -> tuple[NextPassages, ...]:
    """What the passages of the ranks (0, 1], (1, 2], (2, 5], (5, 10], (10, 20], … add, up to the longest list.

    The comparison is with a random draw of b − a passages from the corpus without the first a of the list. With N
    passages, R of them relevant, and h_a distinct hits among the first a, the draw reaches m hits with the probability
    P[X ≥ m − h_a], X ~ Hypergeometric(N − a, R − h_a, b − a). It holds (b − a)(R − h_a)/(N − a) relevant passages on
    average. With `short_lists="returned"`, a and b are at most the length of the query's list; with an N for each
    query they are at most its N.

    Parameters
    ----------
    judged : JudgedRun
        A join with a corpus size.
    rel : int, optional
        The lowest relevant grade. Default: that of the scale.
    m : int
        Hits that make a success.
    bootstrap : Bootstrap, optional
        For the intervals. Without it they are NaN.

    Returns
    -------
    tuple of NextPassages

    Raises
    ------
    InputError
        If the join has no corpus size.

    References
    ----------
    The definition of BoR ("The 99% Success Paradox", ICLR Blogposts 2026), on the corpus left after rank a.

    >>> from rag_selectivity import Qrels, Run, join
    >>> lists = Run.from_dict({"q": ["d", "a"], "r": ["b", "e"]})
    >>> judged = join(Qrels.from_dict({"q": ["d"], "r": ["e"]}), lists, corpus_size=101)
    >>> [(each.queries, each.successes, round(each.bits, 3)) for each in next_passages(judged)]
    [(2, 1, 5.658), (1, 1, 6.644)]
    """
    size = judged.require_corpus_size("what the next passages add")
    edges = _edges(max(1, min(int(judged.returned.max(initial=1)), int(size.max(initial=1)))))
    by_query, by_passage = _outcomes(judged, size, edges, rel, m)
    ends = [_intervals(outcome, judged.queries, bootstrap) for outcome in (by_query, by_passage)]
    widths = np.diff(edges)
    totals = [[np.nan_to_num(part).sum(axis=0) for part in outcome.parts[:2]] for outcome in (by_query, by_passage)]
    queries = by_query.defined.sum(axis=0)
    return tuple(
        NextPassages(
            first=int(edges[i]) + 1,
            last=int(edges[i + 1]),
            queries=int(queries[i]),
            successes=int(totals[0][0][i]),
            random_successes=float(totals[0][1][i]),
            bits=float(by_query.value()[i]),
            low=float(ends[0][0][i]),
            high=float(ends[0][1][i]),
            relevant_found=round(float(totals[1][0][i] * widths[i])),
            relevant_expected=float(totals[1][1][i] * widths[i]),
            relevant_bits=float(by_passage.value()[i]),
            relevant_low=float(ends[1][0][i]),
            relevant_high=float(ends[1][1][i]),
        )
        for i in range(len(widths))
    )


def _edges(reach: int) -> IntArray:
    """0, 1, 2, 5, 10, … and the length of the longest list."""
    edges, scale = [0], 1
    while edges[-1] < reach:
        edges += [min(step * scale, reach) for step in _STEPS]
        scale *= 10
    return np.unique(edges)


def _outcomes(judged: JudgedRun, size: IntArray, edges: IntArray, rel: int | None, m: int) -> tuple[Outcome, Outcome]:
    """Success in queries without one before the bracket, and relevant passages as a share of its slots."""
    taken = np.where(edges > 0, judged.drawn_at(np.maximum(edges, 1)), 0)
    hits = np.where(edges > 0, judged.hits_at(np.maximum(edges, 1), rel), 0)
    before, after = hits[:, :-1], hits[:, 1:]
    left = size[:, None] - taken[:, :-1]
    # A list with copies has drawn fewer passages than it has slots.
    relevant = np.minimum(judged.relevant(rel)[:, None] - before, left)
    drawn = np.diff(taken, axis=1)

    possible = Success(rel=rel, m=m).outcome(judged, edges[1:]).defined
    waiting = possible & (before < m)
    success = np.where(waiting, after >= m, np.nan)
    chance, miss = np.full(waiting.shape, np.nan), np.full(waiting.shape, np.nan)
    for needed in range(1, m + 1):
        cells = waiting & (m - before == needed)
        chance[cells], miss[cells] = random_success(left[cells], relevant[cells], drawn[cells], needed)

    known = (judged.relevant(rel) > 0)[:, None]
    width = np.diff(edges)
    observed = np.where(known, (after - before) / width, np.nan)
    expected = np.where(known, drawn * relevant / np.maximum(left, 1) / width, np.nan)
    return (
        Outcome((success, chance, miss), "every query succeeds before these ranks", _BITS),
        Outcome((observed, expected), "no query has a relevant passage", _BITS_OF_COUNTS),
    )


def _intervals(
    outcome: Outcome, queries: tuple[str, ...], bootstrap: Bootstrap | None
) -> tuple[FloatArray, FloatArray]:
    """Low and high of each bracket; NaN if no query is left."""
    low, high = np.full((2, outcome.parts[0].shape[1]), np.nan)
    some = outcome.defined.any(axis=0)
    if bootstrap is not None and some.any():
        defined = Outcome(
            tuple(part[:, some] for part in outcome.parts), outcome.undefined, outcome.aggregate, outcome.bounds
        )
        low[some], high[some] = bootstrap.intervals([defined], queries)[0]
    return low, high
