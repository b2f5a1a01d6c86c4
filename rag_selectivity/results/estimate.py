"""Estimate: a figure over queries with its interval, its counts and its caveats."""

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from rag_selectivity.results.plain import Ends, Known, Number, Plain

#: What a figure rests on: the labels as they are; the judge's labels with random controls, or completed from those of a
#: tail; or people's labels too.
AS_JUDGED, WITH_CONTROLS, WITH_TAIL, CALIBRATED = "as judged", "with controls", "with a tail", "calibrated"


#: The fields of every estimate.
NUMBERS = ("value", "low", "high", "n", "n_total")
#: Codes of caveats that follow from a figure alone.
CONCENTRATED, CONCENTRATED_CONTROLS = "concentrated-chance", "concentrated-controls"
PARTLY_JUDGED = "partly-judged"
#: In the figures of a caveat: the run that labels favour, since they follow its list and not that of the other.
FAVOURS = "favours"
#: The levels of caveats, from the mildest on; `caveats >= soft` names one.
NOTE, SOFT, STRONG = "note", "soft", "strong"
LEVELS = (NOTE, SOFT, STRONG)
#: The reasons of numbers that JSON lacks: a part of that of a value of −∞, and that of an infinite end.
NO_SUCCESS, INFINITE_END = "log2 of 0", "some resamples have no success, so an end of the interval is infinite"
#: What JSON says of a figure that has no interval, where nothing else is its reason.
_NO_INTERVAL = "no interval was computed"


class Caveat(Plain):
    """A reason not to take a figure at face value.

    Attributes
    ----------
    code : str
        For programs; `rag-selectivity explain CODE` explains it.
    text : str
        For people.
    level : {"note", "soft", "strong"}
        `strong`: the figure does not show what its name says. `soft`: it shows less than its name says. `note`:
        something to know.
    figures : {name: number}
        The numbers that the rule looked at.
    """

    code: str
    text: str
    level: str = SOFT
    figures: Mapping[str, Any] = field(default_factory=dict)


class Estimate(Plain):
    """The figure of one measure at one depth, over the queries of one run.

    Attributes
    ----------
    value, low, high : float
        The figure and the ends of its interval; NaN if undefined, −inf for BoR without a success.
    n, n_total : int
        The number of queries with a figure, and the number of all queries.
    reason : str or None
        Why the value is not a finite number, or has no interval.
    possible : (low, high) or None
        The possible range of the figure, if lists are judged in part.
    caveats : tuple of Caveat
        Reasons not to take the figure at face value.
    basis : {"as judged", "with controls", "with a tail", "calibrated"}
        What the value and its interval rest on: the labels as they are; the same judge's labels of random passages too;
        the judge's labels completed from those that were drawn from the ranks below the pool; or people's labels too.
    as_judged : float or None
        The figure with the labels as they are, if the value rests on more; else None.
    as_judged_interval : (low, high) or None
        The interval of that figure over queries.
    shown : float or None
        The bits that are shown without a model of the judge's errors, if random controls were graded.
    rough : bool
        Whether the value of a calibrated figure is known to be less sure than its interval says.
    placebo : float or None
        The expected figure (with a tail or labels by people: of the figure as judged) if the same grades were
        shuffled; None if it is not known.
    above_placebo : (low, high) or None
        The paired interval of the figure − placebo, as judged with a tail or labels by people.
    effective : float or None
        With weights of queries, the effective number of the n queries, (Σw)²/Σw² (Kish); None without weights.
    """

    sparse = True

    value: Number
    low: Number
    high: Number
    n: int
    n_total: int
    reason: str | None = None
    possible: Ends | None = None
    caveats: tuple[Caveat, ...] = ()
    basis: str = AS_JUDGED
    as_judged: Known = None
    as_judged_interval: Ends | None = None
    shown: Known = None
    rough: bool = False
    placebo: Known = None
    above_placebo: Ends | None = None
    effective: float | None = None

    @property
    def numbers(self) -> dict[str, float]:
        """`value`, `low`, `high`, `n` and `n_total`, without those that are not finite."""
        return {name: float(number) for name in NUMBERS if math.isfinite(number := getattr(self, name))}

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; a number that is not finite is None, and the reason is given."""
        reason = self.reason
        if reason is None and (math.isinf(self.low) or math.isinf(self.high)):
            reason = INFINITE_END
        elif reason is None and math.isnan(self.low):
            reason = _NO_INTERVAL
        return Plain.to_dict(self if reason is None else replace(self, reason=reason))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(_with_infinities, handler(source))


def _with_infinities(stored: Estimate) -> Estimate:
    """A stored estimate as it was: −∞ and ∞ where its reason or its other numbers say that a missing one is one."""
    value, shown, judged, reason = stored.value, stored.shown, stored.as_judged, stored.reason
    low, high = _ends(stored.low, stored.high)
    above, of_judged = (ends and _ends(*ends) for ends in (stored.above_placebo, stored.as_judged_interval))
    value = -math.inf if math.isnan(value) and NO_SUCCESS in (reason or "") else value
    shown = -math.inf if shown is not None and math.isnan(shown) else shown
    # Without a success as judged, that interval begins at −∞; without a figure there is no interval.
    if judged is not None and math.isnan(judged) and of_judged and of_judged[0] == -math.inf:
        judged = -math.inf
    if reason == INFINITE_END and math.isnan(low):
        low, high = -math.inf, math.inf
    elif math.isnan(value) and math.isnan(low) and shown == -math.inf:
        low = high = judged = -math.inf
    known = replace(stored, value=value, low=low, high=high, above_placebo=above, as_judged_interval=of_judged)
    reason = None if reason in (INFINITE_END, _NO_INTERVAL) else reason
    return replace(known, shown=shown, as_judged=judged, reason=reason)


def _ends(low: float, high: float) -> tuple[float, float]:
    """The ends of an interval: where one alone is missing, it is infinite."""
    if math.isnan(low) and not math.isnan(high):
        return -math.inf, high
    return low, math.inf if math.isnan(high) and not math.isnan(low) else high
