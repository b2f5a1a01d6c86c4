"""Blocks of rows of runs or judgments, and whether their ranks and scores agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IdColumn, IntArray
from rag_selectivity.data.remarks import counted, together


@dataclass(frozen=True, slots=True)
class Block:
    """Parsed lines: `names[codes[i]]` is the query of row i.

    `ranks` is None if a rank of the block is no number; `remarks` are those on the whole block.
    """

    names: list[str]
    codes: NDArray[np.int32]
    passages: IdColumn
    scores: NDArray[np.float64]
    ranks: NDArray[np.int64] | None = None
    remarks: Mapping[str, int] = field(default_factory=dict)

    def against_rank(self, last: Block | None) -> Block:
        """The block with a remark on the rows that rank and score order differently; `last` is the one before it."""
        if self.ranks is None:
            return self
        before = None
        if last is not None and last.ranks is not None and last.names[last.codes[-1]] == self.names[self.codes[0]]:
            before = last.ranks[-1:], last.scores[-1:]
        further = rank_remarks(self.codes, self.ranks, self.scores, before)
        return replace(self, remarks=together([self.remarks, further]))


#: The rank and the score of a row, as arrays of one.
RankAndScore = tuple[IntArray, NDArray[np.float64]]


def rank_remarks(
    codes: NDArray[Any],
    ranks: IntArray,
    scores: NDArray[np.float64],
    before: RankAndScore | None,
) -> Mapping[str, int]:
    """How often ranks and scores differ; `before` are rank and score of the row before, if it is of the same query."""
    count = rows_ordered_differently(codes, ranks, scores)
    if before is not None:
        pairs = (np.concatenate([one, column[:1]]) for one, column in zip(before, (ranks, scores), strict=True))
        count += rows_ordered_differently(np.zeros(2, np.int32), *pairs)
    return counted(rank_against_score=count)


def rows_ordered_differently(codes: NDArray[Any], ranks: NDArray[Any], scores: NDArray[Any]) -> int:
    """How many neighbouring rows of a query have the better rank and the worse score."""
    same = codes[1:] == codes[:-1]
    rising = (ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])
    falling = (ranks[1:] < ranks[:-1]) & (scores[1:] < scores[:-1])
    return int((same & (rising | falling)).sum())
