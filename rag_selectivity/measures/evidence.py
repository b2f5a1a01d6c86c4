"""How much decisive evidence the top K holds: what the advised K follows from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import (
    FloatArray,
    Measure,
    Outcome,
    Real,
    Whole,
    parameter,
    register_measure,
)
from rag_selectivity.tables.ids import IntArray


@register_measure
@dataclass(frozen=True, repr=False)
class Evidence(Measure):
    """Decisive passages in the top K, up to as many as are enough: what one more passage adds to.

    On the utility scale a passage of grade 5 is worth 1, of grade 4 `base4`, and of grade 3 `base3`. On the trec
    scale, and where `rel` is given, each passage of at least `rel` is worth 1.

    Formula: worth of the passages in the top K, at most enough
    Range: 0–`enough`; higher is better.
    NaN: for a query whose labels hold no passage of any worth.
    Edge cases: An unjudged passage and a second copy are worth nothing. 0 for a query missing from the run.
    Source: the base utilities are those of "Redefining RAG Evaluation: A Set-Based Approach".
    Example: top 4 = 5,4,3,1: Evidence@4 = 1 + .5 + .1 = 1.6; with top 4 = 5,5,5,5: Evidence@4 = 3
    """

    ends: ClassVar[tuple[float, float]] = (0.0, np.inf)
    unjudged_is_a_miss: ClassVar[bool] = True
    rel: int | None = parameter(
        None, Whole(0), "lowest grade that is worth 1 (default 1 on trec; on utility worth follows the grade)"
    )
    enough: int = parameter(3, Whole(1), "decisive passages beyond which more add nothing")
    base4: float = parameter(0.5, Real(0, 1), "worth of a grade 4")
    base3: float = parameter(0.1, Real(0, 1), "worth of a grade 3")

    def worth(self, judged: JudgedRun) -> FloatArray:
        """The worth of a passage of each grade of the join: float64[levels]."""
        if judged.scale.name == "utility" and self.rel is None:
            worth_of = {5: 1.0, 4: self.base4, 3: self.base3}
            return np.array([worth_of.get(grade, 0.0) for grade in judged.grades.tolist()])
        result: FloatArray = np.where(judged.grades >= judged.threshold(self.rel), 1.0, 0.0)
        return result

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        worth = self.worth(judged)
        known = judged.labels[:, worth > 0].sum(axis=1) > 0
        levels = np.searchsorted(judged.grades, judged.distinct.grade)
        held = judged.count_distinct(depths, weights=worth[levels])
        figures = np.where(known[:, None], np.minimum(held, self.enough), np.nan)
        return Outcome((figures,), "no labelled passage of any query is worth anything", bounds=(0.0, self.enough))
