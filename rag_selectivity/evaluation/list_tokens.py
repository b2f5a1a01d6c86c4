"""The tokens of the lists of a run, of which each K costs a part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, examples
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.run import Run
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.wording import counted


@dataclass(frozen=True, slots=True)
class ListTokens:
    """The lengths of the passages in the lists of the evaluated queries, best first.

    A query is evaluated if both the judgments and the run have it.

    Attributes
    ----------
    total : int
        The number of queries of the judgments.
    position : int64[lists]
        The query of each list, as a position in `JudgedRun.queries`.
    lengths : int64[lists]
        The number of passages of each list.
    passages : list of str
        The lists one after another.
    tokens : float64[passages] or None
        The lengths of the passages; None if they are not known.
    """

    total: int
    position: IntArray
    lengths: IntArray
    passages: list[str]
    tokens: Any

    @classmethod
    def of_run(cls, run: Run, judged: JudgedRun) -> ListTokens:
        """The lists with the run's own lengths of their passages, if it has these."""
        ordered = run.ordered(judged.policy)
        position = judged.positions(ordered.queries)
        inside = position >= 0
        rows = np.flatnonzero(np.repeat(inside, ordered.lengths))
        tokens = None if ordered.tokens is None else ordered.tokens[rows]
        passages = list(map(ordered.passages.__getitem__, rows.tolist()))
        return cls(len(judged), position[inside], ordered.lengths[inside], passages, tokens)

    @classmethod
    def of(cls, run: Run, judged: JudgedRun, lengths: Mapping[str, float] | None, name: str) -> ListTokens | None:
        """The tokens of a run by the lengths of its passages, else by its own; None if neither is known.

        Raises
        ------
        InputError
            If an evaluated list holds passages without a length.
        """
        lists = cls.of_run(run, judged)
        if lengths is None:
            return None if lists.tokens is None else lists
        tokens = tokens_of(lists.passages, lengths)
        absent = dict.fromkeys(lists.passages[row] for row in np.flatnonzero(np.isnan(tokens)).tolist())
        if absent:
            raise InputError(f"{name}: {len(absent)} passages have no length in tokens ({examples(absent)})")
        return replace(lists, tokens=tokens)

    def fitting(self, budget: TokenBudget) -> IntArray:
        """How many passages of each list, from the first on, have at most so many tokens together.

        Returns int64[queries of the judgments], 0 where a query is not evaluated. What does not fit ends the list.
        """
        ends = np.cumsum(self.lengths)
        # Each list by itself, so that rounding of one does not reach the next.
        fits = [
            int(np.searchsorted(np.cumsum(self.tokens[end - length : end]), budget.tokens, "right"))
            for end, length in zip(ends.tolist(), self.lengths.tolist(), strict=True)
        ]
        result = np.zeros(self.total, np.int64)
        result[self.position] = fits
        return result

    @property
    def ranks(self) -> IntArray:
        """The rank of each passage, from 1."""
        ends = np.cumsum(self.lengths)
        return np.arange(1, len(self.tokens) + 1) - np.repeat(ends - self.lengths, self.lengths)

    def means(self) -> NDArray[np.float64]:
        """Mean tokens of the top K for K = 1, 2, … to the longest list; a shorter list costs what it has."""
        by_rank = np.bincount(self.ranks - 1, self.tokens, minlength=1)
        result: NDArray[np.float64] = np.cumsum(by_rank) / max(1, len(self.position))
        return result

    def at(self, depth: int) -> NDArray[np.float64]:
        """Tokens of the top K of each query: float64[queries of the judgments], NaN where a query is not evaluated."""
        result = np.full(self.total, np.nan)
        top = self.ranks <= depth
        row_list = np.repeat(np.arange(len(self.position)), self.lengths)
        result[self.position] = np.bincount(row_list[top], self.tokens[top], minlength=len(self.position))
        return result


def with_fitting(
    judged: JudgedRun, run: Run, lengths: Mapping[str, float] | None, budgets: Iterable[TokenBudget], name: str
) -> tuple[JudgedRun, list[str]]:
    """The join with how many passages of each list of its run fit in each budget, and notes on lists of which none do.

    `lengths` are {passage: tokens}; by default, the run's own.

    Raises
    ------
    InputError
        If lengths are not known, or if the policy leaves passages out of the lists, which would be free then.
    """
    judged.policy.refuse_leaving_out("a budget of tokens needs", ", or a depth K")
    listed = ListTokens.of(run, judged, lengths, name)
    if listed is None:
        raise InputError(
            f"{name}: a budget of tokens needs the lengths of the passages: give tokens={{passage: tokens}} "
            f"(--tokens FILE), or a run with a tokens column"
        )
    fitting = {budget: listed.fitting(budget) for budget in budgets}
    return replace(judged, fitting=fitting), list(_notes_on_nothing(listed, fitting))


def _notes_on_nothing(listed: ListTokens, fitting: Mapping[TokenBudget, IntArray]) -> Iterator[str]:
    """For how many queries not even the first passage fits."""
    filled = listed.position[listed.lengths > 0]
    for budget, counts in fitting.items():
        empty = int((counts[filled] == 0).sum())
        if empty:
            all_of_them = counted(len(filled), "query", "queries")
            which = f"all {all_of_them}" if empty == len(filled) else f"{empty:,} of {all_of_them}"
            yield f"@{budget}: for {which} not even the first passage fits: nothing is shown, and the query fails"


def tokens_of(passages: Sequence[str], lengths: Mapping[str, float]) -> NDArray[np.float64]:
    """The length of each passage; NaN where it is not known."""
    return np.array([lengths.get(passage, np.nan) for passage in passages], np.float64)
