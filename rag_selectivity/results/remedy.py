"""What to look at next, by the two factors of RA-nWG: a sentence on PROC, and one on %PROC."""

from __future__ import annotations

import math

from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.trust import CLOSED, EQUALS_PLACEBO
from rag_selectivity.wording import ends_text, number

#: As `rag_selectivity.measures.utility.diagnosis` has it.
THRESHOLD = 0.8

_POOL = "what reaches the pool: hybrid retrieval, query rewriting, chunking, the recall of an approximate index"
_SELECTION = "the selection from the pool: a cross-encoder as reranker, filters, duplicates that take slots"


def remedy(proc: Estimate, share: Estimate, K: int | None) -> str:
    """Which factors are shown to be below the threshold, and what to look at.

    It names what can be looked at, and no cause: that a factor is low does not say why. Empty if PROC is undefined.

    Parameters
    ----------
    proc, share : Estimate
        PROC and %PROC at the same depth.
    K : int or None
        None for everything that was shown.

    >>> low, high = Estimate(0.5, 0.4, 0.6, 90, 90), Estimate(0.9, 0.85, 0.95, 90, 90)
    >>> remedy(high, low, 5).partition(": look at")[0]
    '%PROC@5 0.500 [0.400, 0.600] is below 0.8'
    """
    if math.isnan(proc.value):
        return ""
    at = "" if K is None else f"@{K}"
    lacks = any(caveat.code == CLOSED for caveat in proc.caveats)
    factors = [_of_factor(f"PROC{at}", proc, _POOL, lacks=lacks), _of_factor(f"%PROC{at}", share, _SELECTION)]
    # What is shown comes first.
    return " ".join(sorted(factors, key=lambda sentence: " is below " not in sentence))


def _of_factor(name: str, estimate: Estimate, look: str, *, lacks: bool = False) -> str:
    """On which side of the threshold the whole interval is; the labels of a pool may lack what no run retrieved."""
    if math.isnan(estimate.value):
        return f"{name} is undefined: {estimate.reason}."
    named = f"{name} {number(estimate.value)}{ends_text(estimate.low, estimate.high)}"
    if math.isnan(estimate.low):
        return f"Without an interval it is not shown on which side of {THRESHOLD:g} {named} is."
    if any(caveat.code == EQUALS_PLACEBO for caveat in estimate.caveats):
        return f"{named} shows nothing, since it is not shown to differ from what shuffled grades give."
    if estimate.high < THRESHOLD:
        return f"{named} is below {THRESHOLD:g}: look at {look}."
    if estimate.low < THRESHOLD:
        return f"It is not shown on which side of {THRESHOLD:g} {named} is."
    if lacks:
        return f"Whether {named} is so high is not known: the labels lack what no run retrieved."
    return f"{named} is not below {THRESHOLD:g}."
