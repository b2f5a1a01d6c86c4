"""How much of what was retrieved says what stands above it already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rag_selectivity.judged.judged_run import JudgedRun, count_at
from rag_selectivity.measures.base import Measure, Outcome, register_measure
from rag_selectivity.tables.ids import IntArray


@register_measure
@dataclass(frozen=True, repr=False)
class Redundancy(Measure):
    """Share of the top K whose passage says the same as one above it.

    Which passages say the same is given as groups (`groups=`, `data.groups`). It needs no labels.

    Formula: passages of the top K whose group stands above them / min(K, returned)
    Range: 0–1; lower is better.
    NaN: for an empty or missing list.
    Edge cases: The first passage of a group is no repetition. The same id twice is one. A passage without a group is
    like none but itself.
    Source: the share of near-duplicates among results, as in Bernstein and Zobel (CIKM 2005), who find by it that
    redundant relevant documents mislead evaluation.
    Example: top 4 = a, b, a copy of a, another copy of a: Redundancy@4 = 2/4
    """

    higher_is_better: ClassVar[bool | None] = False
    needs_groups: ClassVar[bool] = True

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        returned = judged.returned_at(depths)
        copies = 0 if judged.copies is None else count_at(judged.copies, len(judged), depths)
        with np.errstate(invalid="ignore"):
            share = np.where(returned > 0, copies / np.maximum(returned, 1), np.nan)
        return Outcome((share,), "no query returned anything")
