"""UDCG, a secondary diagnostic: relevant passages help the LLM, the others distract it.

After Trappolini et al. 2025, "Redefining Retrieval Evaluation in the Era of LLMs" (arXiv 2510.21440).
"""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import Measure, Outcome, Real, parameter, register_measure, rel_parameter
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.ids import IntArray

#: .333 as in the authors' tool, not 1/3.
DISTRACTION = 0.333


def udcg(scores: ArrayLike, relevant: ArrayLike, *, weight: float = DISTRACTION) -> float:
    """UDCG of one prompt from a score for each passage, as in the authors' tool.

    The logistic function of a mean over the passages: a relevant passage adds its score, any other
    passage adds −weight · score.

    Parameters
    ----------
    scores : array_like of float
        How likely the LLM answers from each passage: 1 − P(no response | passage).
    relevant : array_like of bool
    weight : float
        The weight of a passage that is not relevant.

    Returns
    -------
    float
        In (0, 1); .5 if help and distraction are equal; higher is better.

    Raises
    ------
    InputError
        If there is no passage, the lengths differ, or a score is not finite.

    >>> round(udcg([1.0, 1.0, 0.9], [True, True, False]), 4)
    0.638
    """
    try:
        values, helps = np.asarray(scores, np.float64), np.asarray(relevant, bool)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"udcg needs a number and a truth value for each passage ({error})") from None
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not math.isfinite(weight):
        raise InputError(f"udcg: weight must be a finite number, got {shown(weight)}")
    if values.ndim != 1 or values.shape != helps.shape or not len(values):
        raise InputError(
            f"udcg needs one score and one relevance for each passage, got shapes {values.shape} and {helps.shape}"
        )
    if not np.isfinite(values).all():
        raise InputError(f"udcg: score {int(np.flatnonzero(~np.isfinite(values))[0]) + 1} is not a finite number")
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.where(helps, values, -weight * values).mean())
        if math.isnan(mean):
            raise InputError("udcg: the scores are too large to be added; give smaller ones")
        return float(1 / (1 + np.exp(-mean)))


@register_measure
class UDCGGrades(Measure):
    """UDCG approximated from grades: every relevant passage helps by 1, every other passage distracts by .333.

    UDCG itself needs a score for each passage from the LLM that reads it (`rag_selectivity.measures.udcg.udcg`).
    Without such scores, this figure depends only on the numbers of relevant and other passages.

    Formula: logistic((n_p − weight·n_n)/K), n_p relevant and n_n other passages in the top K
    Range: 0–1, without its ends; higher is better.
    NaN: never.
    Edge cases: .5 for an empty list.
    Source: Trappolini et al. 2025, arXiv 2510.21440.
    Example: 2 of 3 relevant: (2 − .333)/3 = .5557, UDCG_grades@3 = 0.6354
    """

    name: ClassVar[str] = "UDCG_grades"
    rel: int | None = rel_parameter()
    weight: float = parameter(DISTRACTION, Real(0, 10), "how much a passage that is not relevant distracts")

    def at_ranks(self, judged: JudgedRun, depths: IntArray) -> Outcome:
        positive = judged.hits_at(depths, self.rel)
        other = judged.returned_at(depths) - positive
        slots = judged.slots_at(depths)
        mean = positive / slots - self.weight * (other / slots)
        return Outcome((1 / (1 + np.exp(-mean)),), "no query returned anything")
