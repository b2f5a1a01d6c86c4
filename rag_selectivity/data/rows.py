"""RunRows of a run as columns, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.ids import IdColumn, IntArray
from rag_selectivity.data.remarks import counted

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RunRows:
    """RunRows in the order given: `names[codes[i]]` is the query of row i, and no two names are equal.

    `ranks` stand beside scores and serve only to be compared with them, unless there are no scores; None if there are
    none, or one of the block is no number.
    """

    names: Sequence[str]
    codes: NDArray[np.integer]
    passages: IdColumn
    scores: FloatArray | None = None
    ranks: FloatArray | None = None
    tokens: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def between(self, start: int, stop: int) -> RunRows:
        """The rows from one position to another."""
        return RunRows(
            self.names,
            self.codes[start:stop],
            self.passages[start:stop],
            *(None if column is None else column[start:stop] for column in (self.scores, self.ranks, self.tokens)),
        )

    def take(self, order: IntArray) -> RunRows:
        """The rows at some positions."""
        return RunRows(
            self.names,
            self.codes[order],
            self.passages.take(order),
            *(None if column is None else column[order] for column in (self.scores, self.ranks, self.tokens)),
        )

    def compact(self) -> RunRows:
        """The same rows without the text that their ids were read from, so that it can go."""
        return replace(self, passages=self.passages.compact())

    def starts(self) -> IntArray:
        """The rows whose query is not that of the row before."""
        changes: IntArray = np.flatnonzero(self.codes[1:] != self.codes[:-1]) + 1
        return np.append(0, changes) if len(self) else changes

    def by_appearance(self) -> RunRows:
        """The same rows with the names in the order in which their first rows stand."""
        used, first, codes = np.unique(self.codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order))
        names = [self.names[code] for code in used[order].tolist()]
        return RunRows(names, place[codes], self.passages, self.scores, self.ranks, self.tokens)

    @classmethod
    def concatenate(cls, blocks: Sequence[RunRows]) -> RunRows:
        """All rows of some blocks, which have the same columns."""
        if len(blocks) == 1:
            return blocks[0]
        return cls(
            *_together(blocks),
            IdColumn.concatenate([block.passages for block in blocks]),
            _joined([block.scores for block in blocks]),
            _joined([block.ranks for block in blocks]),
            _joined([block.tokens for block in blocks]),
        )


@dataclass(frozen=True, slots=True)
class Labels:
    """Judgments in the order given: `names[codes[i]]` is the query of row i.

    `lines` are their lines in a file; None for what is no file.
    """

    names: Sequence[str]
    codes: NDArray[np.integer]
    passages: IdColumn
    grades: IntArray
    lines: IntArray | None = None

    @classmethod
    def concatenate(cls, blocks: Sequence[Labels]) -> Labels:
        """All rows of some blocks."""
        names, codes = _together(blocks)
        lines = [block.lines for block in blocks if block.lines is not None]
        return cls(
            names,
            codes,
            IdColumn.concatenate([block.passages for block in blocks]),
            np.concatenate([np.empty(0, np.int64), *(block.grades for block in blocks)]),
            np.concatenate(lines) if lines else None,
        )


class RankCheck:
    """Counts neighbouring rows of a query that its ranks and its scores order differently, over all blocks."""

    def __init__(self) -> None:
        self._count: int | None = 0
        self._last: RunRows | None = None

    def add(self, block: RunRows) -> None:
        """Count the rows of the next block."""
        if self._count is None or block.scores is None or not len(block):
            return
        if block.ranks is None:
            # One rank that is no number makes all ranks of the run mean something else.
            self._count = None
            return
        self._count += rows_ordered_against_ranks(block.codes[1:] == block.codes[:-1], block.ranks, block.scores)
        last = self._last
        if last is not None and last.names[last.codes[-1]] == block.names[block.codes[0]]:
            ranks, scores = (
                np.concatenate([getattr(last, column), getattr(block, column)[:1]]) for column in ("ranks", "scores")
            )
            self._count += rows_ordered_against_ranks(np.ones(1, bool), ranks, scores)
        self._last = block.between(len(block) - 1, len(block))

    def remarks(self) -> dict[str, int]:
        """The remark on them, if there are any."""
        return dict(counted(rank_against_score=self._count or 0))


def rows_ordered_against_ranks(same: NDArray[np.bool_], ranks: FloatArray, scores: FloatArray) -> int:
    """How many neighbouring rows have the better rank and the worse score; `same`: whether both have the same query.

    A better passage has a smaller rank and a larger score.
    """
    rising = (ranks[1:] > ranks[:-1]) & (scores[1:] > scores[:-1])
    falling = (ranks[1:] < ranks[:-1]) & (scores[1:] < scores[:-1])
    return int((same & (rising | falling)).sum())


def _together(blocks: Sequence[RunRows] | Sequence[Labels]) -> tuple[list[str], NDArray[np.int32]]:
    """The names of all blocks, and the number of its name for each of their rows."""
    position: dict[str, int] = {}
    codes = [np.empty(0, np.int32)]
    for block in blocks:
        known = np.array([position.setdefault(name, len(position)) for name in block.names], np.int32)
        codes.append(known[block.codes])
    return list(position), np.concatenate(codes)


def _joined(columns: Sequence[FloatArray | None]) -> FloatArray | None:
    given = [column for column in columns if column is not None]
    return np.concatenate(given) if given and len(given) == len(columns) else None
