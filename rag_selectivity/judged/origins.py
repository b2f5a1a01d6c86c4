"""Where labels come from: how each pair was chosen, and who graded it, as columns beside the judgments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_selectivity.judged.rows import Rows
from rag_selectivity.tables.ids import IntArray

#: Stands in `LabelOrigins.judge_grade` for a pair that no judge graded.
NO_GRADE = -1


class Chosen(IntFlag):
    """How a pair was chosen for grading; a pair that was chosen in two ways has both. 0: nobody wrote it down."""

    POOL = 1
    TAIL = 2
    CONTROL = 4
    PERSON = 8
    TARGETED = 16


@dataclass(frozen=True, slots=True)
class LabelOrigins(Rows):
    """The origin of every judgment, by its row.

    Attributes
    ----------
    chosen : uint8[judgments]
        Flags of `Chosen`: the top ranks of a run (POOL), drawn from the ranks below (TAIL), drawn from the rest of the
        corpus (CONTROL), drawn for a person (PERSON), graded by people only because of what was known of its labels
        (TARGETED, such as pairs on which judges differ); 0 if unknown.
    by_person : bool[judgments]
        Whether the grade is a person's. Otherwise it is a judge's.
    judge_grade : int64[judgments]
        The grade that the judge gave to the pair; −1 if none did. It differs from the judgment's grade only where a
        person's grade took its place.
    person_grade : int64[judgments] or None
        The grade that people gave to the pair; −1 if none did. It is the judgment's grade where that is a person's;
        elsewhere it checks the judge. None: only the grades that are a person's are known.
    stand_for : float64[judgments] or float
        How many graded pairs a pair that people graded stands for by the draw that chose it; NaN if it is not known.
    tail_size : int64[judgments]
        For a pair drawn from a tail: the number of passages that its query's tail has, drawn or not; else 0.
    tail_ranks : (first, last) or None
        The ranks that tails were drawn from, from 1, both included: of one run, or of several fused. Of several, what
        the fused order has above the first rank and no run has there is a part of the tail.
    depth : int or None
        The greatest depth down to which lists were graded; None if whole lists were, or it is not known.
    judges, annotators : {name: number of its grades}
    drawn_for_people : {name of the draw: number of pairs}
        How the pairs that people graded were drawn, such as `calibrate:200`; empty name: not by this tool.
    outdated : int
        Labels of an older text of their query or passage.
    cost_of_a_grade : float or None
        The mean cost of a judge's grade; None if it is not known.
    open : int
        Pairs that are to be graded and that nobody has graded yet.
    """

    chosen: NDArray[np.uint8]
    by_person: NDArray[np.bool_]
    judge_grade: IntArray
    tail_size: IntArray
    person_grade: IntArray | None = None
    stand_for: NDArray[np.float64] | float = np.nan
    tail_ranks: tuple[int, int] | None = None
    depth: int | None = None
    judges: Mapping[str, int] = field(default_factory=dict)
    annotators: Mapping[str, int] = field(default_factory=dict)
    drawn_for_people: Mapping[str, int] = field(default_factory=dict)
    outdated: int = 0
    cost_of_a_grade: float | None = None
    open: int = 0

    @classmethod
    def unknown(cls, count: int, chosen: int = 0) -> LabelOrigins:
        """The origins of judgments of which only the flags are known."""
        nobody, none, unknown = (np.full(count, value) for value in (NO_GRADE, 0, np.nan))
        return cls(np.full(count, int(chosen), np.uint8), np.zeros(count, bool), nobody, none, nobody, unknown)

    def of_people(self, grade: IntArray) -> IntArray:
        """The grades that people gave, −1 where none did; `grade` is that of each judgment."""
        return np.where(self.by_person, grade, NO_GRADE if self.person_grade is None else self.person_grade)

    def are(self, how: Chosen) -> NDArray[np.bool_]:
        """The rows that were chosen in this way: bool[judgments]."""
        return np.asarray((self.chosen & int(how)) != 0)

    def tails(self, query: IntArray, queries: int, lost: ArrayLike = ()) -> tuple[NDArray[np.bool_], IntArray]:
        """The labels of tails, bool[judgments], and how many passages each query's tail has, int64[queries].

        What a later run has in its top ranks is a part of the tail no more, drawn or not. How much that is, the drawn
        passages tell: the tail has shrunk as they have.

        Parameters
        ----------
        query : int64[judgments]
            The query of each judgment, from 0 to `queries` − 1.
        queries : int
        lost : judgments, optional
            Of passages that a filter leaves out, whose share of a tail the drawn ones tell too.
        """
        drawn = self.are(Chosen.TAIL)
        left = drawn & ~self.are(Chosen.POOL)
        left[np.asarray(lost, np.int64)] = False
        size = np.zeros(queries, np.int64)
        np.maximum.at(size, query[drawn], self.tail_size[drawn])
        all_drawn, still = (np.bincount(query[rows], minlength=queries) for rows in (drawn, left))
        estimated = np.rint(size * still / np.maximum(all_drawn, 1)).astype(np.int64)
        return left, np.where(still > 0, np.maximum(estimated, still), 0)
