"""What speaks against taking figures at face value, worked out in one place for every path that makes a report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rag_selectivity.measures import Judged, Measure, parse_measure
from rag_selectivity.results.report import Caveat, Estimate

CONCENTRATED, PARTLY_JUDGED = "concentrated-chance", "partly-judged"
#: Below these, an interval that rests on a mean of chances holds the truth too rarely (docs/numbers.md).
LEAST_QUERIES, LEAST_SHARE, LEAST_EFFECTIVE = 30, 2 / 3, 100.0


def concentration(effective: float, n: int) -> tuple[Caveat, ...]:
    """Whether few queries carry the random baseline, so that its interval is rough; `effective` of `n` queries.

    >>> [caveat.code for caveat in concentration(3.2, 200)], concentration(150.0, 200), concentration(math.inf, 10)
    (['concentrated-chance'], (), ())
    """
    if math.isinf(effective) or n < 2:
        return ()
    if n >= LEAST_QUERIES and effective >= min(LEAST_EFFECTIVE, LEAST_SHARE * n):
        return ()
    return (
        Caveat(
            CONCENTRATED,
            f"Rough: few queries carry the random baseline (their effective number is {effective:.1f} of {n}), so that "
            f"the interval is likely too narrow.",
        ),
    )


def with_caveats(
    estimates: Mapping[str, Estimate], measures: Iterable[Measure], *, exhaustive: bool = False
) -> dict[str, Estimate]:
    """The estimates of one run, with what unjudged passages could change about them.

    `measures` are those that the report shows. Other estimates only say how far those could rise; they go into
    `Estimate.possible`. `exhaustive` says that whatever has no label was declared to be of the lowest grade.
    """
    shown = {replace(measure, at=None) for measure in measures}
    found = {}
    for key, estimate in estimates.items():
        measure = parse_measure(key)
        if replace(measure, at=None) not in shown:
            continue
        if measure.upper_end is not None or (measure.unjudged_is_a_miss and not exhaustive):
            estimate = _judged_in_part(measure, estimate, estimates)
        found[key] = estimate
    return found


def _judged_in_part(measure: Measure, estimate: Estimate, estimates: Mapping[str, Estimate]) -> Estimate:
    """The estimate with what its unjudged passages leave open, if there are any."""
    judged = estimates.get(str(Judged(at=measure.at)))
    most = estimates.get(str(measure.upper_end)) if measure.upper_end is not None else None
    if judged is None or not judged.value < 1 or (most is not None and not most.value > estimate.value):
        return estimate
    rest = (
        "The figure counts the rest as not relevant."
        if most is None
        else "The figure counts the rest as harmless; the upper end of its range counts them as harmful."
    )
    listed = "retrieved passages" if measure.at is None else f"top {measure.at}"
    caveat = Caveat(PARTLY_JUDGED, f"Only {judged.value:.1%} of the {listed} have a label. {rest}")
    possible = None if most is None else (estimate.value, most.value)
    return replace(estimate, possible=possible, caveats=(*estimate.caveats, caveat))
