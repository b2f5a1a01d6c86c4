"""Recall-free measures: measures that need no count of all relevant passages.

After arXiv 2512.20854. The paper's F is the classic `F` with the weight alpha, `F(alpha=…)`.
"""

from typing import ClassVar

import numpy as np

from rag_selectivity.judged.judged_run import JudgedRun, count_at
from rag_selectivity.measures.base import (
    Choice,
    FloatArray,
    Measure,
    Outcome,
    Real,
    parameter,
    register_measure,
    rel_parameter,
)
from rag_selectivity.tables.ids import IntArray


@register_measure
class T(Measure):
    """Reward for relevant passages minus a penalty for the others: ((1−α)·n_p − α·n_n)/K, as published.

    n_p relevant and n_n other passages are in the top K. If K passages are returned it is P@K − α, so α cannot change
    the order of systems. `form=code` is the formula of the authors' code, which divides the second term only:
    (1−alpha)·n_p − alpha·n_n/(n_p+n_n).

    Formula: ((1−alpha)·n_p − alpha·n_n)/K, n_p relevant and n_n other passages in the top K
    Range: −α to 1−α (`form=code`: −α to (1−α)·K); higher is better.
    NaN: never.
    Edge cases: Unjudged passages count as others. 0 for an empty list.
    Source: arXiv 2512.20854.
    Example: 3 of 5 relevant, α = .5: T@5 = (1.5 − 1)/5 = 0.1, T(form=code)@5 = 1.5 − .2 = 1.3
    """

    read_with_judged: ClassVar[bool] = True
    ends: ClassVar[tuple[float, float]] = (-1.0, np.inf)
    rel: int | None = rel_parameter()
    alpha: float = parameter(0.5, Real(0, 1), "weight of passages that are not relevant")
    form: str = parameter("paper", Choice(("paper", "code")), "as printed in the paper, or as in the authors' code")
    unjudged_is_a_miss: ClassVar[bool] = True

    @property
    def formula(self) -> str:
        if self.form == "code":
            return "(1−alpha)·n_p − alpha·n_n/(n_p+n_n), n_p relevant and n_n other passages in the top K"
        return super().formula

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        positive = judged.hits_at(depths, self.rel)
        values = t_score(
            positive, judged.returned_at(depths) - positive, judged.slots_at(depths), self.alpha, self.form
        )
        deepest = np.atleast_2d(depths).max(axis=0, initial=1)
        highest = (1 - self.alpha) * (deepest if self.form == "code" else 1)
        return Outcome((values,), "no query returned anything", bounds=(-self.alpha, highest))


@register_measure
class Fe(Measure):
    """F with the number of relevant passages estimated by those in the top 2K of the pool.

    Formula: n_p/(alpha·K + (1−alpha)·R̂), n_p relevant in the top K and R̂ in the top 2K of the pool
    Range: 0–1; higher is better.
    NaN: for a query whose pool has fewer than 2K passages.
    Edge cases: 0 without a hit. Without a pool, the run's own full list is the pool. R̂ is at least what the list shows.
    Source: arXiv 2512.20854.
    Example: 3 relevant in the top 5, 4 in the top 10, α = .5: Fe@5 = 3/(2.5 + 2) = 0.6667
    """

    uses_pool: ClassVar[bool] = True
    rel: int | None = rel_parameter()
    alpha: float = parameter(0.5, Real(0, 1), "weight of precision")

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        pool = judged.candidates
        positives = pool.take((pool.grade >= judged.threshold(self.rel)) & ~pool.repeated)
        found = judged.hits_at(depths, self.rel)
        estimated = np.maximum(count_at(positives, len(judged), 2 * depths), found)
        values = f_score(found, judged.slots_at(depths), estimated, self.alpha)
        values[judged.candidates_returned[:, None] < 2 * depths] = np.nan
        return Outcome((values,), "no pool has 2K passages")


def t_score(
    positive: IntArray, negative: IntArray, slots: IntArray, alpha: float | FloatArray, form: str = "paper"
) -> FloatArray:
    """T from counts; the measure `T` defines it."""
    with np.errstate(invalid="ignore", divide="ignore"):
        if form == "paper":
            result: FloatArray = ((1 - alpha) * positive - alpha * negative) / slots
        else:
            result = (1 - alpha) * positive - alpha * negative / np.maximum(positive + negative, 1)
    return result


def f_score(positive: IntArray, slots: IntArray, relevant: IntArray, alpha: float | FloatArray) -> FloatArray:
    """F from counts: n_p/(α·K + (1−α)·R), 0 without a hit.

    >>> float(f_score(np.array(3), np.array(5), np.array(6), 0.5)).__round__(4)
    0.5455
    """
    weight = alpha * slots + (1 - alpha) * relevant
    shape = np.broadcast_shapes(np.shape(positive), np.shape(weight))
    return np.divide(positive, weight, out=np.zeros(shape), where=np.broadcast_to(positive > 0, shape))
