"""What to look at next, by the two factors of RA-nWG: one sentence for each cell of PROC and %PROC, low or high."""

from __future__ import annotations

import math

from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.trust import CLOSED, EQUALS_PLACEBO
from rag_selectivity.wording import ends_text, number

#: As `rag_selectivity.measures.utility.diagnosis` has it.
THRESHOLD = 0.8
LOW, HIGH, UNKNOWN = "low", "high", "unknown"

_POOL = "what reaches the pool: hybrid retrieval, query rewriting, chunking, the recall of an approximate index"
_SELECTION = "the selection from the pool: a cross-encoder as reranker, filters, duplicates that take slots"


def side_of(estimate: Estimate, *, of_pool: bool = False) -> str:
    """On which side of the threshold a factor is shown to be: `low`, `high`, or `unknown` if neither is shown.

    Low and high need the whole interval on that side. A figure shows nothing if it is not shown to differ from what
    shuffled grades give.
    A pool (`of_pool`) is not shown to be high by closed labels, which lack what no run retrieved.
    """
    codes = {caveat.code for caveat in estimate.caveats}
    if math.isnan(estimate.low) or math.isnan(estimate.high) or EQUALS_PLACEBO in codes:
        return UNKNOWN
    if estimate.high < THRESHOLD:
        return LOW
    if estimate.low >= THRESHOLD and not (of_pool and CLOSED in codes):
        return HIGH
    return UNKNOWN


def remedy(proc: Estimate, share: Estimate, K: int | None) -> str:
    """In a sentence or two: which factors are shown to be below the threshold, and what to look at.

    It names what can be looked at, and no cause: that a factor is low does not say why. Empty if PROC is undefined.

    Parameters
    ----------
    proc, share : Estimate
        PROC and %PROC at the same depth.
    K : int or None
        None for everything that was shown.

    >>> low, high = Estimate(0.5, 0.4, 0.6, 90, 90), Estimate(0.9, 0.85, 0.95, 90, 90)
    >>> print(remedy(low, high, 5))
    PROC@5 0.500 [0.400, 0.600] is below 0.8, and %PROC@5 0.900 [0.850, 0.950] is not: look at what reaches the pool: \
hybrid retrieval, query rewriting, chunking, the recall of an approximate index.
    >>> remedy(high, low, 5).endswith("a cross-encoder as reranker, filters, duplicates that take slots.")
    True
    """
    if math.isnan(proc.value):
        return ""
    at = "" if K is None else f"@{K}"
    sides: dict[str, list[tuple[str, str, str]]] = {LOW: [], HIGH: [], UNKNOWN: []}
    for factor, estimate, look in (("PROC", proc, _POOL), ("%PROC", share, _SELECTION)):
        name = f"{factor}{at}"
        named = f"{name} {number(estimate.value)}{ends_text(estimate.low, estimate.high)}"
        sides[side_of(estimate, of_pool=estimate is proc)].append((named, look, _open(name, estimate, named)))
    match sides[LOW], sides[HIGH]:
        case [(pool, at_pool, _), (selected, at_selection, _)], []:
            return f"{pool} and {selected} are below {THRESHOLD:g}: look at {at_pool}; and at {at_selection}."
        case [], [(pool, *_), (selected, *_)]:
            return f"Neither {pool} nor {selected} is below {THRESHOLD:g}: no step of the two stands out."
        case [(low, look, _)], [(high, *_)]:
            return f"{low} is below {THRESHOLD:g}, and {high} is not: look at {look}."
    known = [f"{low} is below {THRESHOLD:g}: look at {look}." for low, look, _ in sides[LOW]]
    known += [f"{high} is not below {THRESHOLD:g}." for high, *_ in sides[HIGH]]
    return " ".join([*known, *(why for *_, why in sides[UNKNOWN])])


def _open(name: str, estimate: Estimate, named: str) -> str:
    """Why it is not shown on which side of the threshold a factor is."""
    codes = {caveat.code for caveat in estimate.caveats}
    if math.isnan(estimate.value):
        return f"{name} is undefined: {estimate.reason}."
    if math.isnan(estimate.low):
        return f"Without an interval it is not shown on which side of {THRESHOLD:g} {named} is."
    if EQUALS_PLACEBO in codes:
        return f"{named} shows nothing, since it is not shown to differ from what shuffled grades give."
    if CLOSED in codes and estimate.low >= THRESHOLD:
        return f"Whether {named} is so high is not known: the labels lack what no run retrieved."
    return f"It is not shown on which side of {THRESHOLD:g} {named} is."
