"""The queries of a run in groups, each with one K, for measures at a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.tables.ids import IntArray


def by_cutoff(judged: JudgedRun, budget: TokenBudget) -> Iterator[tuple[NDArray[np.bool_], JudgedRun, IntArray]]:
    """(which queries, the run restricted to them, their K as int64[1]) for each K at a budget, from the lowest.

    Where the first passage does not fit, nothing is shown: an empty list at K = 1, which fails.

    Raises
    ------
    InputError
        If the join does not know how many passages fit in the budget.
    """
    cutoffs = judged.cutoffs(budget)
    for k in np.unique(cutoffs).tolist():
        rows = cutoffs == k
        some = judged.over(rows)
        yield rows, some if k else some.within(budget), np.array([max(1, k)])
    if not len(cutoffs):
        yield np.zeros(0, bool), judged, np.array([1])
