"""Tests of whether labelled pairs can have been drawn in the way that the user states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IntArray
from rag_selectivity.errors import InputError, examples
from rag_selectivity.measures.base import FloatArray

#: A stated draw is refused if at most one random draw in a thousand differs as much.
REFUSED_AT = 0.001
_DRAWS = 3999
_MEND = "leave it out (there are then no corrected means), or draw pairs at random and let people label those"

BoolArray = NDArray[np.bool_]


def check_random(query: IntArray, grade: IntArray, labelled: BoolArray, *, seed: int = 7) -> None:
    """Refuse labelled pairs that cannot be a random draw from all pairs.

    In a random draw, the judge's grades are distributed as in all pairs, and the number of labelled pairs varies
    between queries: they are neither equal, nor all from a few queries. Both are tested against 3,999 random draws
    (permutation tests), each at a level of .001.

    Parameters
    ----------
    query, grade : int64[pairs]
        The number of the query, and the judge's grade.
    labelled : bool[pairs]
    seed : int

    Raises
    ------
    InputError
        If a test rejects; the message says what differs.
    """
    _, query = np.unique(query, return_inverse=True)
    levels, of_level = np.unique(grade, return_inverse=True)
    share = labelled.mean()
    by_level, by_query = share * np.bincount(of_level), share * np.bincount(query)

    def statistics(rows: IntArray) -> FloatArray:
        grades = np.bincount(of_level[rows], minlength=len(levels))
        counts = np.bincount(query[rows], minlength=len(by_query))
        spread = float(((counts - by_query) ** 2 / by_query).sum())
        chi_squared = float(((grades - by_level) ** 2 / by_level).sum())
        return np.array([abs(levels @ (grades - by_level)), chi_squared, spread, -spread])

    rarity = _rarity(statistics, np.flatnonzero(labelled), len(labelled), seed)
    if rarity[:2].min() <= REFUSED_AT / 2:
        raise InputError(
            f'drawn="random": the labelled pairs are not a random draw from the graded pairs: the judge\'s mean '
            f"grade is {grade[labelled].mean():.2f} on them and {grade[~labelled].mean():.2f} on the others "
            f"(p {_p(rarity[:2])}); {_MEND}"
        )
    if rarity[2:].min() <= REFUSED_AT / 2:
        counts = np.bincount(query[labelled], minlength=len(by_query))
        even = rarity[3] < rarity[2]
        raise InputError(
            f'drawn="random": the labelled pairs are not a random draw from the graded pairs: they are spread over '
            f"the queries {'more' if even else 'less'} evenly than a random draw, {counts.min()} to {counts.max()} for "
            f"each query (p {_p(rarity[2:])}); "
            + (
                "if pairs were drawn at random within each query, give `weights`"
                if even
                else 'if whole queries were drawn, give drawn="by query"'
            )
            + f"; otherwise {_MEND}"
        )


def check_by_query(query: IntArray, grade: IntArray, labelled: BoolArray, names: list[str], *, seed: int = 7) -> None:
    """Refuse labelled pairs that cannot be those of whole queries drawn at random.

    Parameters
    ----------
    query, grade : int64[pairs]
        The number of the query (its position in `names`), and the judge's grade.
    labelled : bool[pairs]
    names : list of str
    seed : int

    Raises
    ------
    InputError
        If a query is labelled in part; or if the judge's grades of the labelled queries, or their numbers of pairs,
        differ from those of the other queries more than in all but one of a thousand random draws (permutation test).
    """
    pairs, known = np.bincount(query), np.bincount(query, labelled)
    part = np.flatnonzero((known > 0) & (known < pairs))
    if len(part):
        first = part[0]
        raise InputError(
            f'drawn="by query": {len(part)} queries are labelled in part ({examples(names[i] for i in part)}; of '
            f"{names[first]!r} {known[first]:.0f} of {pairs[first]} pairs that the judge graded); label the rest of "
            f'them, or drawn="random" if single pairs were drawn'
        )
    total = np.bincount(query, grade)
    excess = total - pairs * total.sum() / pairs.sum()
    surplus = pairs - pairs.mean()

    def statistics(rows: IntArray) -> FloatArray:
        return np.array([abs(excess[rows].sum()), abs(surplus[rows].sum())])

    rarity = _rarity(statistics, np.flatnonzero(known > 0), len(pairs), seed)
    if rarity.min() <= REFUSED_AT / 2:
        means = [total[kind].sum() / pairs[kind].sum() for kind in (known > 0, known == 0)]
        sizes = [pairs[kind].mean() for kind in (known > 0, known == 0)]
        raise InputError(
            f'drawn="by query": the labelled queries are not a random draw: the judge\'s mean grade is {means[0]:.2f} '
            f"on them and {means[1]:.2f} on the others, with {sizes[0]:.1f} and {sizes[1]:.1f} pairs for each query "
            f"(p {_p(rarity)}); leave it out (there are then no corrected means), or draw queries at random"
        )


def check_weights(query: IntArray, grade: IntArray, labelled: BoolArray, inclusion: FloatArray) -> None:
    """Refuse inclusion probabilities with which the labelled pairs cannot have been drawn.

    Weighted by 1/probability, the labelled pairs estimate the number of all pairs and the judge's mean grade over all
    pairs. Both estimates are tested at a level of .001 (Student's t over queries).

    Parameters
    ----------
    query, grade : int64[pairs]
        The number of the query, and the judge's grade.
    labelled : bool[pairs]
    inclusion : float64[pairs]
        Only the values of labelled pairs are used.

    Raises
    ------
    InputError
        If a test rejects; the message says what differs.
    """
    from scipy.special import stdtrit

    _, place = np.unique(query[labelled], return_inverse=True)
    weights = 1 / inclusion[labelled]
    counts = np.bincount(place, weights)
    n, total = len(counts), counts.sum()
    # The pairs may have been drawn one by one or query by query: use the larger standard error.
    apart = np.sqrt(((1 - inclusion[labelled]) * weights**2).sum())
    bound = -float(stdtrit(max(n - 1, 1), REFUSED_AT / 2))
    if abs(total - len(query)) > bound * max(apart, 1e-9 * total, np.sqrt(n) * counts.std(ddof=1) * (apart > 0)):
        raise InputError(
            f"weights: 1/probability adds up to {total:,.0f} over the labelled pairs, but the judge graded "
            f"{len(query):,} pairs: give the probabilities with which the pairs were drawn"
        )
    residual = np.bincount(place, weights * (grade[labelled] - grade.mean()))
    off = residual.sum() / total
    if abs(residual.sum()) > bound * np.sqrt(n) * residual.std(ddof=1):
        raise InputError(
            f"weights: weighted by 1/probability, the judge's mean grade of the labelled pairs is "
            f"{grade.mean() + off:.2f}, but that of all pairs is {grade.mean():.2f}: give the probabilities with "
            f"which the pairs were drawn"
        )


def _rarity(statistics: Callable[[IntArray], FloatArray], chosen: IntArray, count: int, seed: int) -> FloatArray:
    """For each statistic the share of random draws, including this one, that are at least as extreme."""
    rng = np.random.default_rng(seed)
    observed = statistics(chosen) - 1e-9
    reached = np.ones(len(observed))
    for _ in range(_DRAWS):
        reached += statistics(rng.choice(count, len(chosen), replace=False, shuffle=False)) >= observed
    result: FloatArray = reached / (_DRAWS + 1)
    return result


def _p(rarity: FloatArray) -> str:
    """The p-value of two tests together, as text: twice the smaller share."""
    return f"≤ {2 * rarity.min():.1g}"
