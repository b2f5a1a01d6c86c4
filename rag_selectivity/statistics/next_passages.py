"""What the next passages alone add: ranks a+1 to b compared with a random draw from the corpus left after rank a."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_selectivity.data.ids import IntArray
from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.measures.chance import refusal_of
from rag_selectivity.measures.next_passages import bracket_edges, bracket_outcomes
from rag_selectivity.statistics.bootstrap import Bootstrap


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

    With `passages_of`, m must be 1. The draw is from the passages left after rank a, R counts the passages of relevant
    documents, and relevant passages are documents that were not found before: a draw of one of their passages.

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
        Empty if lists repeat passages and it is unknown whether these are chunks, so that there is no comparison.

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
    return next_passages_of_runs({"run": judged}, rel=rel, m=m, bootstrap=bootstrap)["run"]


def next_passages_of_runs(
    judged: Mapping[str, JudgedRun], *, rel: int | None = None, m: int = 1, bootstrap: Bootstrap | None = None
) -> dict[str, tuple[NextPassages, ...]]:
    """As `next_passages`, for each of several runs; runs over the same queries are resampled in one pass."""
    edges: dict[str, IntArray] = {}
    of_queries: dict[tuple[str, ...], dict[str, tuple[Outcome, Outcome]]] = {}
    for name, run in judged.items():
        size = run.require_corpus_size("what the next passages add")
        run.refuse_weights("what the next passages add")
        last = max(1, min(int(run.returned.max(initial=1)), int(size.max(initial=1))))
        refused = refusal_of(run, np.array([last]))
        if refused is not None and refused.refused[0]:
            continue
        edges[name] = bracket_edges(last)
        of_queries.setdefault(run.queries, {})[name] = bracket_outcomes(run, size, edges[name], rel, m)
    found: dict[str, tuple[NextPassages, ...]] = dict.fromkeys(judged, ())
    for queries, outcomes in of_queries.items():
        ends = _intervals([outcome for pair in outcomes.values() for outcome in pair], queries, bootstrap)
        for i, (name, pair) in enumerate(outcomes.items()):
            found[name] = _ranges(edges[name], pair, ends[2 * i : 2 * i + 2])
    return found


def _ranges(
    edges: IntArray, outcomes: tuple[Outcome, Outcome], ends: Sequence[tuple[FloatArray, FloatArray]]
) -> tuple[NextPassages, ...]:
    by_query, by_passage = outcomes
    widths = np.diff(edges)
    totals = [[np.nan_to_num(part).sum(axis=0) for part in outcome.parts[:2]] for outcome in outcomes]
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


def _intervals(
    outcomes: Sequence[Outcome], queries: tuple[str, ...], bootstrap: Bootstrap | None
) -> list[tuple[FloatArray, FloatArray]]:
    """Low and high of each bracket, for each outcome; NaN if no query is left."""
    ends = [(np.full(each.parts[0].shape[1], np.nan), np.full(each.parts[0].shape[1], np.nan)) for each in outcomes]
    some = [outcome.defined.any(axis=0) for outcome in outcomes]
    asked = [i for i, columns in enumerate(some) if bootstrap is not None and columns.any()]
    if bootstrap is not None and asked:
        defined = [
            Outcome(tuple(part[:, some[i]] for part in each.parts), each.undefined, each.aggregate, each.bounds)
            for i, each in ((i, outcomes[i]) for i in asked)
        ]
        for i, (low, high) in zip(asked, bootstrap.intervals(defined, queries), strict=True):
            ends[i][0][some[i]], ends[i][1][some[i]] = low, high
    return ends
