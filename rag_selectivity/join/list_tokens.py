"""The tokens of the lists of a run, of which each K costs a part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IntArray
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, examples
from rag_selectivity.join.judged_run import JudgedRun


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
    tokens : float64[passages]
        The lists one after another.
    """

    total: int
    position: IntArray
    lengths: IntArray
    tokens: NDArray[np.float64]

    @classmethod
    def of(cls, run: Run, judged: JudgedRun, lengths: Mapping[str, float] | None, name: str) -> ListTokens | None:
        """The tokens of a run by the lengths of its passages, else by its own; None if neither is known.

        Raises
        ------
        InputError
            If an evaluated list holds passages without a length.
        """
        lists = _evaluated(run, judged)
        if lengths is None:
            if lists.run.tokens is None:
                return None
            row_tokens = lists.run.tokens[lists.rows]
        else:
            passages = list(lists.run.passages.take(np.flatnonzero(lists.rows)))
            known = [lengths.get(passage) for passage in passages]
            if None in known:
                absent = {passage for passage in passages if passage not in lengths}
                names = examples(passage for passage in passages if passage in absent)
                raise InputError(f"{name}: {len(absent)} passages have no length in tokens ({names})")
            row_tokens = np.array(known, np.float64)
        return cls(len(judged), lists.position[lists.inside], lists.run.lengths[lists.inside], row_tokens)

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


@dataclass(frozen=True, slots=True)
class _Lists:
    """A run in rank order with the places of its queries; `rows` marks the passages of the evaluated ones."""

    run: Run
    position: IntArray
    inside: NDArray[np.bool_]
    rows: NDArray[np.bool_]


def _evaluated(run: Run, judged: JudgedRun) -> _Lists:
    ordered = run.ordered(judged.policy)
    place = {query: i for i, query in enumerate(judged.queries)}
    position = np.array([place.get(query, -1) for query in ordered.queries], np.int64)
    inside = position >= 0
    return _Lists(ordered, position, inside, np.repeat(inside, ordered.lengths))


def passages_of_lists(run: Run, judged: JudgedRun) -> set[str]:
    """The passages in the lists of the evaluated queries."""
    lists = _evaluated(run, judged)
    return set(lists.run.passages.take(np.flatnonzero(lists.rows)))
