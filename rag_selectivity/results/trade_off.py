"""What quality costs: the cost of a query of each run beside its quality, and the cheapest run that loses little."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rag_selectivity.measures.base import Measure
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.plain import finite, plain, plain_fields

_A_THOUSAND = 1000


@dataclass(frozen=True, slots=True)
class QueryCost:
    """What a query costs.

    Attributes
    ----------
    mean : Estimate
        With its interval. `n` is the number of queries whose cost is known.
    p50, p95 : float
        The smallest cost of a query that at least 50 or 95 % of these queries do not exceed. They are of the queries
        that were measured, without an interval.
    """

    mean: Estimate
    p50: float
    p95: float

    @property
    def of_a_thousand(self) -> float:
        """The cost of a thousand queries: a thousand times the mean."""
        return _A_THOUSAND * self.mean.value

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {**plain_fields(self), "of_a_thousand": finite(self.of_a_thousand)}


@dataclass(frozen=True, slots=True)
class TradePoint:
    """A run at a K: what a query costs, and how good it is.

    Attributes
    ----------
    run : str
    K : int
    cost : QueryCost
    quality : Estimate
    front : bool
        Whether no other point is as cheap and as good, and better in one of the two (by the means of these queries).
    most_lost : float
        The most by which its true quality can be below the best of all runs and K that are compared, by a bound that
        holds for all points at once. NaN where nothing is tested.
    """

    run: str
    K: int
    cost: QueryCost
    quality: Estimate
    front: bool
    most_lost: float = math.nan


@dataclass(frozen=True, slots=True)
class TradeOff:
    """One kind of cost against quality.

    Attributes
    ----------
    kind : {"tokens", "milliseconds", "price"}
    measure : Measure
        What quality is, without depth.
    max_loss : float
        The loss that is allowed, in units of the measure.
    points : tuple of TradePoint
        The cheapest first. A run whose cost is not known is compared in quality, but has no point.
    best : (run, K) or None
        The highest figure of all that were compared, with known cost or not.
    cheapest : (run, K) or None
        The cheapest point that is shown to lose no more than `max_loss` against the best; None if none is.
    text : str
        The same in a sentence, with what was tested; empty for a single point.
    confidence : float or None
        The probability with which all `most_lost` hold together; None without intervals.
    """

    kind: str
    measure: Measure
    max_loss: float
    points: tuple[TradePoint, ...]
    best: tuple[str, int] | None = None
    cheapest: tuple[str, int] | None = None
    text: str = ""
    confidence: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        named = {"best": _named(self.best), "cheapest": _named(self.cheapest)}
        return {**plain_fields(self, "kind", "points"), **named, "points": plain(self.points)}


def _named(place: tuple[str, int] | None) -> dict[str, Any] | None:
    return None if place is None else {"run": place[0], "K": place[1]}
