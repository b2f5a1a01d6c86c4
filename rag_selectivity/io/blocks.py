"""Blocks of rows of runs or judgments, and whether their ranks and scores agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IdColumn
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
        count = rows_ordered_differently(self.codes, self.ranks, self.scores)
        if last is not None and last.ranks is not None and last.names[last.codes[-1]] == self.names[self.codes[0]]:
            ends = ((last.ranks[-1], self.ranks[0]), (last.scores[-1], self.scores[0]))
            count += int(_differ(*map(np.array, ends)).sum())
        return replace(self, remarks=together([self.remarks, counted(rank_against_score=count)]))


def rows_ordered_differently(codes: NDArray[Any], ranks: NDArray[Any], scores: NDArray[Any]) -> int:
    """How many neighbouring rows of a query have the better rank and the worse score."""
    return int((_differ(ranks, scores) & (codes[1:] == codes[:-1])).sum())


def _differ(ranks: NDArray[Any], scores: NDArray[Any]) -> NDArray[np.bool_]:
    rising = (ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])
    falling = (ranks[1:] < ranks[:-1]) & (scores[1:] < scores[:-1])
    differ: NDArray[np.bool_] = rising | falling
    return differ
