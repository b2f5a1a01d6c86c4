"""Calibration: the α at which a recall-free measure follows the quality of answers."""

from __future__ import annotations

from dataclasses import dataclass

from rag_selectivity.results.result import Result


@dataclass(frozen=True, repr=False)
class Calibration(Result):
    """The α with the highest rank correlation with answer quality, and that correlation.

    Attributes
    ----------
    alpha : float or None
        None if α cannot change the order of queries, or if the scores are constant.
    correlation : float
        Spearman's rho at `alpha` on all queries, which the choice of α on the same queries raises.
    out_of_fold : float
        Spearman's rho of values whose α was chosen on the other queries. Unlike `correlation` it is not raised by the
        choice of α on the same queries. It has no interval here; `validate` has one, which takes the choice as fixed.
    n : int
        Queries with a value and a quality score.
    regime : float
        K/N_p: K / mean number of relevant passages. The recall-free paper (arXiv 2512.20854) advises T below 1, and
        nDCG from 1 on.
    advice : str
        Two or three sentences: what was chosen, and what the paper advises at this K/N_p, which is not tested here.
    """

    schema = "rag-selectivity/calibration/1"

    alpha: float | None
    correlation: float
    out_of_fold: float
    n: int
    regime: float
    advice: str
