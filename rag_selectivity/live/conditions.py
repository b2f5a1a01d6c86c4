"""Conditions on live figures, such as `BoR < 2` or `p95(seconds) > 2`, as means that are above or below 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.measures import Measure, Outcome, parse_measure
from rag_selectivity.measures.conditions import limit_of, parts_of

__all__ = ["Condition", "Excess", "excess_of", "excess_of_traffic", "parse_condition"]

_QUANTILES = r"p\d{1,2}"

#: What can be watched of every retrieval, labelled or not.
TRAFFIC: dict[str, Callable[[Retrieval], float | None]] = {
    "tokens": lambda retrieval: retrieval.tokens,
    "seconds": lambda retrieval: None if retrieval.failed else retrieval.seconds,
    "shown": lambda retrieval: None if retrieval.failed else len(retrieval.shown),
    "empty": lambda retrieval: not retrieval.shown and not retrieval.failed,
    "failed": lambda retrieval: retrieval.failed,
    "outcome": lambda retrieval: retrieval.outcome,
}
#: Those without an upper end. Shares are quantities that lie between 0 and 1.
_UNBOUNDED = frozenset({"tokens", "seconds", "shown"})
#: That a mean is below a limit cannot be shown of numbers without an upper end, so they are cut at this many limits.
_CUT = 10.0
#: From so many values on, no random baseline is expected to be more than twice the largest so far.
_KNOWN_AFTER = 50
#: The largest number of bits whose power of 2 is a float.
_MOST_BITS = 1000.0


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as it was given.

    Attributes
    ----------
    text : str
    quantity : str
        `BoR@10`, or `tokens`.
    above : bool
        Whether it holds above the limit, else below.
    limit : float
    measure : Measure or None
    quantile : float or None
        The .95 of p95.
    """

    text: str
    quantity: str
    above: bool
    limit: float
    measure: Measure | None = None
    quantile: float | None = None

    @property
    def name(self) -> str:
        """Of the figure: `BoR@10`, `tokens`, `p95(seconds)`."""
        return self.quantity if self.quantile is None else f"p{round(100 * self.quantile)}({self.quantity})"


def parse_condition(text: str) -> Condition:
    """Read a condition.

    >>> parse_condition("p95(seconds) > 2").quantile
    0.95

    Raises
    ------
    InputError
        If it is not a condition, names no figure, or has a limit that no figure can have.
    """
    found = parts_of(text, _QUANTILES)
    if found is None:
        raise InputError(f"alert {text!r} is not a condition such as 'BoR < 2', 'tokens > 8000' or 'p95(seconds) > 2'")
    limit, name, above, text = limit_of(found.limit, f"alert {text!r}"), found.name, found.sign[0] == ">", text.strip()
    if found.calls:
        percent = int(found.calls[0][1:])
        if name not in _UNBOUNDED:
            raise InputError(f"alert {text!r}: quantiles are known of {', '.join(sorted(_UNBOUNDED))}")
        if not percent:
            raise InputError(f"alert {text!r}: the quantile must be from p1 to p99")
        return Condition(text, name, above, limit, quantile=percent / 100)
    if name in TRAFFIC:
        return Condition(text, name, above, limit)
    try:
        measure = parse_measure(name)
    except InputError as error:
        hint = did_you_mean(name, TRAFFIC)
        raise InputError(f"alert {text!r}: {error}{hint and f', or{hint}'}; also: {', '.join(TRAFFIC)}") from None
    if abs(limit) > _MOST_BITS and measure.name.startswith("BoR"):
        raise InputError(f"alert {text!r}: the limit must be from −{_MOST_BITS:g} to {_MOST_BITS:g} bits")
    return Condition(text, str(measure), above, limit, measure)


@dataclass(slots=True)
class Excess:
    """Turns the parts of a figure into a quantity whose mean is above 0 exactly if the figure is above the limit.

    The quantity is constant + factor · first part + other · second part.

    Attributes
    ----------
    constant, factor, other : float
    low, high : float
        Between which the first part lies; `high` is infinite where it has no end. The second part is a random baseline,
        from 0 to 1.
    """

    constant: float
    factor: float = 1.0
    other: float = 0.0
    low: float = 0.0
    high: float = 1.0
    _largest: float = 0.0
    _seen: int = 0

    def of(self, parts: tuple[float, ...]) -> tuple[float, float, float, float]:
        """The quantity, the lowest and the highest that it could have been, and the quantity cut at the highest."""
        first = parts[0]
        value = self.constant + self.factor * first
        ends = (self.constant + self.factor * self.low, self.constant + self.factor * self.high)
        lowest, highest = min(ends), max(ends)
        if self.other:
            bound = self._bound_of_baseline()
            lowest, highest = lowest + min(0.0, self.other) * bound, highest + max(0.0, self.other) * bound
            self._largest, self._seen = max(self._largest, parts[1]), self._seen + 1
            value += self.other * parts[1]
        if highest == math.inf:
            # constant is minus the limit here.
            highest = max(0.0, (_CUT - 1) * -self.constant)
        return value, lowest, highest, min(value, highest)

    def _bound_of_baseline(self) -> float:
        if self._seen < _KNOWN_AFTER or not self._largest:
            return 1.0
        return min(1.0, 2 * self._largest)


def excess_of_traffic(condition: Condition) -> Excess:
    """The excess of a figure of the traffic. A quantile is above a limit if enough single values are."""
    if condition.quantile is not None:
        return Excess(condition.quantile - 1)
    high = math.inf if condition.quantity in _UNBOUNDED else 1.0
    return Excess(-condition.limit, high=high)


def excess_of(condition: Condition, outcome: Outcome, column: int) -> Excess | None:
    """The excess of a measure; None for a measure that is no mean, ratio of means, or logarithm of these."""
    form, limit = outcome.aggregate.form, condition.limit
    low, high = outcome.ends_at(column) or (0.0, math.inf if form == "mean" else 1.0)
    if form == "mean":
        return Excess(-limit, low=low, high=high)
    if form in ("ratio", "bits"):
        return Excess(0.0, other=-(2.0**limit if form == "bits" else limit), low=low, high=high)
    # −log2 of the mean is above the limit if the mean is below 2^−limit.
    return Excess(2.0**-limit, factor=-1.0) if form == "ceiling" else None
