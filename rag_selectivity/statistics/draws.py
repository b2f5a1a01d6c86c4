"""Whether labelled pairs can have been drawn as somebody says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IntArray
from rag_selectivity.errors import InputError, examples
from rag_selectivity.measures.base import FloatArray

#: A draw is refused where it would look like this by luck in at most one case of a thousand.
REFUSED_AT = 0.001
_DRAWS = 3999
_MEND = "leave it out and have no corrected means, or draw pairs at random and have people label those"

BoolArray = NDArray[np.bool_]


def check_random(query: IntArray, grade: IntArray, labelled: BoolArray, *, seed: int = 7) -> None:
    """Refuse labelled pairs that cannot be a random draw from all pairs.

    Such a draw has the judge's grades of all pairs, and the queries' labelled pairs vary as luck has it: neither as
    many of each query, nor all of a few. Both are tested against 3,999 random draws (permutation tests), each at a
    level of .001.

    Parameters
    ----------
    query, grade : int64[pairs]
        Number of the query, and the judge's grade.
    labelled : bool[pairs]
    seed : int

    Raises
    ------
    InputError
        It says what differs.
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
            f'drawn="random": the labelled pairs are no random draw from what the judge graded: the judge\'s mean '
            f"grade is {grade[labelled].mean():.2f} on them and {grade[~labelled].mean():.2f} on the others "
            f"(p {_p(rarity[:2])}); {_MEND}"
        )
    if rarity[2:].min() <= REFUSED_AT / 2:
        counts = np.bincount(query[labelled], minlength=len(by_query))
        even = rarity[3] < rarity[2]
        raise InputError(
            f'drawn="random": the labelled pairs are no random draw from what the judge graded: they are spread over '
            f"the queries {'more' if even else 'less'} evenly than such a draw is, {counts.min()} to {counts.max()} a "
            f"query (p {_p(rarity[2:])}); "
            + (
                "pairs drawn at random within each query have `weights`"
                if even
                else 'whole queries are drawn="by query"'
            )
            + f"; otherwise {_MEND}"
        )


def check_by_query(query: IntArray, grade: IntArray, labelled: BoolArray, names: list[str], *, seed: int = 7) -> None:
    """Refuse labelled pairs that cannot be those of whole queries drawn at random.

    Parameters
    ----------
    query, grade : int64[pairs]
        Number of the query (its place in `names`), and the judge's grade.
    labelled : bool[pairs]
    names : list of str
    seed : int

    Raises
    ------
    InputError
        If a query is labelled in part; if the judge's grades of the labelled queries, or their number of pairs,
        differ from the others' as a random draw would in at most one case of a thousand (permutation test).
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
            f'drawn="by query": the labelled queries are no random draw: the judge\'s mean grade is {means[0]:.2f} on '
            f"them and {means[1]:.2f} on the others, with {sizes[0]:.1f} and {sizes[1]:.1f} pairs a query "
            f"(p {_p(rarity)}); leave it out and have no corrected means, or draw queries at random"
        )


def check_weights(query: IntArray, grade: IntArray, labelled: BoolArray, inclusion: FloatArray) -> None:
    """Refuse inclusion probabilities that the labelled pairs cannot have been drawn with.

    Weighted by 1/probability they stand for all pairs: for their number, and for the judge's mean grade. Both are
    tested at .001 (Student's t over queries).

    Parameters
    ----------
    query, grade : int64[pairs]
        Number of the query, and the judge's grade.
    labelled : bool[pairs]
    inclusion : float64[pairs]
        Read where `labelled`.

    Raises
    ------
    InputError
        It says what differs.
    """
    from scipy.special import stdtrit

    _, place = np.unique(query[labelled], return_inverse=True)
    weights = 1 / inclusion[labelled]
    counts = np.bincount(place, weights)
    n, total = len(counts), counts.sum()
    # Drawn one by one, or query by query: whichever tells less.
    apart = np.sqrt(((1 - inclusion[labelled]) * weights**2).sum())
    bound = -float(stdtrit(max(n - 1, 1), REFUSED_AT / 2))
    if abs(total - len(query)) > bound * max(apart, 1e-9 * total, np.sqrt(n) * counts.std(ddof=1) * (apart > 0)):
        raise InputError(
            f"weights: 1/probability adds up to {total:,.0f} over the labelled pairs, and the judge graded "
            f"{len(query):,}: these are not the probabilities with which the pairs were drawn"
        )
    residual = np.bincount(place, weights * (grade[labelled] - grade.mean()))
    off = residual.sum() / total
    if abs(residual.sum()) > bound * np.sqrt(n) * residual.std(ddof=1):
        raise InputError(
            f"weights: weighted by 1/probability, the judge's mean grade of the labelled pairs is "
            f"{grade.mean() + off:.2f}, and that of all pairs is {grade.mean():.2f}: these are not the probabilities "
            f"with which the pairs were drawn"
        )


def _rarity(statistics: Callable[[IntArray], FloatArray], chosen: IntArray, count: int, seed: int) -> FloatArray:
    """For each statistic the share of random draws, this one included, that reach as far."""
    rng = np.random.default_rng(seed)
    observed = statistics(chosen) - 1e-9
    reached = np.ones(len(observed))
    for _ in range(_DRAWS):
        reached += statistics(rng.choice(count, len(chosen), replace=False, shuffle=False)) >= observed
    result: FloatArray = reached / (_DRAWS + 1)
    return result


def _p(rarity: FloatArray) -> str:
    """Of two tests in one: twice the smaller share."""
    return f"≤ {2 * rarity.min():.1g}"
