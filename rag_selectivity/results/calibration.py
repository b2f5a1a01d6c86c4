"""Calibration: the α at which a recall-free measure follows the quality of answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_selectivity.results.estimate import finite
from rag_selectivity.results.result import Result

SCHEMA = "rag-selectivity/calibration/1"


@dataclass(frozen=True, repr=False)
class Calibration(Result):
    """The α with the highest rank correlation with answer quality, and that correlation.

    Attributes
    ----------
    alpha : float or None
        None if α cannot change the order of queries, or if the scores are constant.
    correlation, low, high : float
        Spearman's rho at `alpha` on all queries, with its bootstrap interval. α is chosen again in every resample.
    out_of_fold : float
        Spearman's rho of values whose α was chosen on the other queries. Unlike `correlation` it is not raised by the
        choice of α on the same queries.
    n : int
        Queries with a value and a quality score.
    regime : float
        K / mean number of relevant passages. A value below 1 favours T, a value from 1 on favours nDCG.
    advice : str
        One or two sentences.
    """

    alpha: float | None
    correlation: float
    low: float
    high: float
    out_of_fold: float
    n: int
    regime: float
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; an undefined number is None."""
        return {"schema": SCHEMA, **self._numbers(), "advice": self.advice}

    def to_rows(self) -> list[dict[str, Any]]:
        """One row."""
        return [self._numbers()]

    def _numbers(self) -> dict[str, Any]:
        return {
            "alpha": self.alpha,
            "correlation": finite(self.correlation),
            "low": finite(self.low),
            "high": finite(self.high),
            "out_of_fold": finite(self.out_of_fold),
            "n": self.n,
            "regime": finite(self.regime),
        }
