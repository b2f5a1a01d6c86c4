"""The tokens of the lists of a run, of which each K costs a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.run import Run
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.wording import counted


@dataclass(frozen=True, slots=True)
class ListTokens:
    """The lengths of the passages in the lists of the evaluated queries, best first.

    Attributes
    ----------
    position : int64[lists]
        The query of each list, as a position in `JudgedRun.queries`.
    lists : list of float64[passages]
    """

    position: IntArray
    lists: list[FloatArray]

    @classmethod
    def of(cls, run: Run, judged: JudgedRun, lengths: Mapping[str, float] | None, name: str) -> ListTokens | None:
        """The tokens of a run by the lengths of its passages, else by its own; None if neither is known.

        Raises
        ------
        InputError
            If an evaluated list holds passages without a length.
        """
        ordered = run.ordered(judged.policy)
        tokens = ordered.tokens if lengths is None else np.array([lengths.get(p, np.nan) for p in ordered.passages])
        if tokens is None:
            return None
        position = judged.positions(ordered.queries)
        unknown = np.isnan(tokens) & (position >= 0)[ordered.query]
        if lengths is not None and unknown.any():
            absent = dict.fromkeys(ordered.passages[row] for row in np.flatnonzero(unknown).tolist())
            raise InputError(f"{name}: {len(absent)} passages have no length in tokens ({examples(absent)})")
        lists = np.split(tokens, ordered.offsets[1:-1])
        return cls(position[position >= 0], [lists[row] for row in np.flatnonzero(position >= 0).tolist()])

    def means(self) -> FloatArray:
        """Mean tokens of the top K for K = 1, 2, … to the longest list; a shorter list costs what it has."""
        by_rank = np.zeros(max([1, *map(len, self.lists)]))
        for tokens in self.lists:
            by_rank[: len(tokens)] += tokens
        return np.cumsum(by_rank) / max(1, len(self.lists))


def with_fitting(
    judged: JudgedRun, run: Run, lengths: Mapping[str, float] | None, budgets: Sequence[TokenBudget], name: str
) -> tuple[JudgedRun, list[str]]:
    """The join with how many passages of each list of its run fit in each budget, and notes on lists of which none do.

    `lengths` are {passage: tokens}; by default, the run's own.

    Raises
    ------
    InputError
        If lengths are not known, or if the policy leaves passages out of the lists, which would be free then.
    """
    judged.policy.refuse_leaving_out("a budget of tokens needs", ", or a depth K")
    if (listed := ListTokens.of(run, judged, lengths, name)) is None:
        mend = "give tokens={passage: tokens} (--tokens FILE), or a run with a tokens column"
        raise InputError(f"{name}: a budget of tokens needs the lengths of the passages: {mend}")
    fitting, notes = dict[TokenBudget, IntArray](), list[str]()
    queries = counted(sum(len(tokens) > 0 for tokens in listed.lists), "query", "queries")
    for budget in budgets:
        fitting[budget] = np.zeros(len(judged), np.int64)
        fits = [int(np.searchsorted(np.cumsum(tokens), budget.tokens, "right")) for tokens in listed.lists]
        fitting[budget][listed.position] = fits
        if empty := sum(len(tokens) > 0 and not count for tokens, count in zip(listed.lists, fits, strict=True)):
            notes.append(f"@{budget}: not even the first passage fits for {empty:,} of {queries}, which fail")
    return replace(judged, fitting=fitting), notes
