"""Two runs over different queries: Fisher's test and a score interval for rates, Hall's t for means.

Welch's t, with Hall's correction for skewness, has a p-value and an interval from one distribution for means, ratios of
means and bits alike.
"""

import math
from typing import NamedTuple

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference import bounded, score
from rag_selectivity.inference.interval import Interval, difference_ends, p_of, settled
from rag_selectivity.inference.paired import Difference, influence, skewed_ends, skewed_p, welch
from rag_selectivity.measures.base import FloatArray, Outcome

#: Two probabilities with a smaller relative difference are equal: rounding must not decide a test.
_SAME = 1e-7


def unpaired_difference(first: Outcome, second: Outcome, *, level: float = 0.95, seed: int = 7) -> Difference:
    """The difference between two outcomes (first minus second), each over its own queries.

    Parameters
    ----------
    first, second : Outcome
        Outcomes of the same measure at the same depths.
    level : float
    seed : int
        Of the weights with which arms in which few queries differ have their interval.

    Returns
    -------
    Difference

    Raises
    ------
    InputError
        If queries have unequal weights.

    References
    ----------
    Fisher 1935; Miettinen and Nurminen 1985; Koopman 1984; Welch 1947; Hall 1992, On the removal of skewness by
    transformation.
    """
    if first.counting() is not None or second.counting() is not None:
        raise InputError("an unpaired comparison cannot be weighted: leave the weights out, or compare in pairs")
    columns = [_of_column(first, second, column, level, seed) for column in range(first.parts[0].shape[1])]
    return Difference.of(columns, [math.nan] * len(columns))


def _of_column(
    first: Outcome, second: Outcome, column: int, level: float, seed: int
) -> tuple[float, float, float, float, str]:
    one, other = arms = [_arm_of(outcome, column) for outcome in (first, second)]
    with np.errstate(invalid="ignore"):
        value = float(np.subtract(*(outcome.value()[column] for outcome in (first, second))))
    if math.isnan(value) or min(len(arm.top) for arm in arms) < 2:
        return value, math.nan, math.nan, math.nan, "exact"
    form = first.aggregate.form
    bottoms, tops = (np.concatenate([getattr(arm, part) for arm in arms]) for part in ("bottom", "top"))
    of_successes = bool(((tops == 0) | (tops == 1)).all())
    if of_successes and bottoms.min() == bottoms.max():
        p, low, high = _of_rates(one, other, form, level)
        return value, *settled(value, p, low, high, level), p, "exact"
    if form == "mean" and any(bounded.few_differ(arm.top[:, None]) for arm in arms):
        known = first.ends_at(column)
        if known is None:
            return value, math.nan, math.nan, math.nan, "exact"
        return value, *_of_few(arms, known, level, seed), "exact"
    if of_successes and form == "bits":
        low, high = _of_bits(one, other, level)
        p = p_of(lambda level: _of_bits(one, other, level))
    elif math.isfinite(value):
        moments = _moments([influence(arm.top, arm.bottom, form) for arm in arms])
        if not moments[0] > 0:
            # Queries that all have the same ratio do not show that others have it.
            return value, math.nan, math.nan, math.nan, "studentized"
        low, high = skewed_ends(value, *moments, level)
        p = p_of(lambda level: _of_bits(one, other, level)) if of_successes else skewed_p(value, *moments)
    else:
        low, high, p = -math.inf, math.inf, 1.0
    return value, *settled(value, p, low, high, level), p, "studentized"


class _Arm(NamedTuple):
    """Numerators and denominators of an arm's queries; for a mean the denominators are 1."""

    top: FloatArray
    bottom: FloatArray


def _arm_of(outcome: Outcome, column: int) -> _Arm:
    top, *bottom = (part[outcome.defined[:, column], column] for part in outcome.parts)
    return _Arm(top, np.ones(len(top)) if outcome.aggregate.form == "mean" else bottom[0])


def _moments(steps: list[FloatArray]) -> tuple[float, float, float]:
    """Standard error, skewness and degrees of freedom (Welch) of the difference of two means.

    The skewness is that of influences, whose mean is 0.
    """
    error, freedom = welch([float(each.var(ddof=1)) for each in steps], [len(each) for each in steps])
    thirds = [float((each**3).mean()) / len(each) ** 2 for each in steps]
    return error, (thirds[0] - thirds[1]) / error**3 if error > 0 else 0.0, freedom


def _of_rates(one: _Arm, other: _Arm, form: str, level: float) -> tuple[float, float, float]:
    hits, n, other_hits, other_n = one.top.sum(), len(one.top), other.top.sum(), len(other.top)
    p = _fisher(int(hits), n, int(other_hits), other_n)
    of = score.unpaired_ratio if form == "bits" else score.unpaired_difference
    low, high = (float(end) for end in of(hits, n, other_hits, other_n, level))
    chance = float(one.bottom.mean()) if form == "ratio" else 1.0
    return p, low / chance, high / chance


def _of_bits(one: _Arm, other: _Arm, level: float) -> tuple[float, float]:
    """log2 of the ratio of success rates, each by a mean chance of its own: Koopman's ends and Student's t (MOVER).

    Ratios of ratios of means have the same test: enrichments differ where their bits do.
    """
    from scipy.special import stdtrit

    hits, other_hits = float(one.top.sum()), float(other.top.sum())
    low, high = map(float, score.unpaired_ratio(hits, len(one.top), other_hits, len(other.top), level))
    shift = math.log2(float(other.bottom.mean()) / float(one.bottom.mean()))
    error, _, freedom = _moments([arm.bottom / arm.bottom.mean() / math.log(2) for arm in (one, other)])
    reach = -float(stdtrit(freedom, (1 - level) / 2)) * error
    if not (hits and other_hits):
        return low + shift - reach, high + shift + reach
    value = math.log2(hits / len(one.top)) - math.log2(other_hits / len(other.top))
    return value + shift - math.hypot(value - low, reach), value + shift + math.hypot(high - value, reach)


def _fisher(hits: int, n: int, other_hits: int, other_n: int) -> float:
    """Fisher's exact p-value: the probability of all tables of the same margins that are as rare as this one."""
    from scipy.special import betaln

    total = hits + other_hits
    some = np.arange(max(0, total - other_n), min(n, total) + 1)
    logs = -betaln(some + 1, n - some + 1) - betaln(total - some + 1, other_n - total + some + 1)
    shares = np.exp(logs - logs.max())
    return float(min(1.0, shares[shares <= shares[hits - some[0]] * (1 + _SAME)].sum() / shares.sum()))


def _of_few(arms: list[_Arm], ends: tuple[float, float], level: float, seed: int) -> tuple[float, float, float]:
    """Where few queries of an arm differ: an interval from those of both arms, and the p-value that inverts it."""
    lowest, highest = (np.array([end]) for end in ends)
    means = [float(arm.top.mean()) for arm in arms]

    def interval(level: float) -> tuple[float, float]:
        sides = (bounded.ends(arm.top[:, None], lowest, highest, lambda sums: sums[:, 0], level, seed) for arm in arms)
        return difference_ends(*(Interval(mean, *side) for mean, side in zip(means, sides, strict=True)))

    return *settled(means[0] - means[1], p := p_of(interval), *interval(level), level), p
