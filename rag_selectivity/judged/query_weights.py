"""Weights of queries: how much each counts in the figures over all of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class QueryWeights:
    """The weight of each query of a join, and where the weights come from.

    Attributes
    ----------
    source : str
        The file and the column, or the argument.
    values : float64[queries]
        Positive and finite. Only their ratios matter to a figure.
    left_out : int
        Queries with the weight 0, which are not measured.
    unmeasured : int
        Weighted queries that labels and runs lack.
    unmeasured_sum : float
        The sum of their weights.
    """

    source: str
    values: NDArray[np.float64]
    left_out: int = 0
    unmeasured: int = 0
    unmeasured_sum: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON: what a report says of its weights.

        >>> said = QueryWeights("weights.tsv", np.array([])).to_dict()
        >>> said["largest_share"], said["left_out"]
        (0.0, 0)
        """
        total = float(self.values.sum())
        return {
            "source": self.source,
            "queries": len(self.values),
            "sum": total,
            "effective": effective_size(self.values),
            "largest_share": float(self.values.max(initial=0.0)) / total if total else 0.0,
            "left_out": self.left_out,
            "unmeasured": self.unmeasured,
            "unmeasured_sum": self.unmeasured_sum,
        }


def effective_size(weights: NDArray[np.float64]) -> float:
    """(Σw)²/Σw²: so many queries of equal weight have a mean as exact, if weight and figure are unrelated.

    References
    ----------
    Kish 1965, Survey Sampling.

    >>> effective_size(np.ones(8)), round(effective_size(np.array([3.0, 1.0])), 9)
    (8.0, 1.6)
    """
    if not len(weights):
        return 0.0
    # Weights as large or as small as a float can be must not overflow when squared.
    relative = weights / weights.max()
    return float(relative.sum() ** 2 / (relative**2).sum())
