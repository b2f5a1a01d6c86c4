"""The share of wins among units that differ: the exact sign test, and a form of it that may be looked at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_selectivity.inference import mcnemar
from rag_selectivity.inference.bisection import end_of
from rag_selectivity.inference.exact import clopper_pearson

#: The prior of the always-valid form, Beta(_PRIOR, _PRIOR): narrow enough for shares near 1/2, which are what is seen.
_PRIOR = 10.0


@dataclass(frozen=True, slots=True)
class SignShare:
    """A share with its p-value (of 1/2) and its interval, from one distribution.

    Attributes
    ----------
    share : float
        Wins / (wins + losses); NaN without either.
    p, low, high : float
        `p` is at most 1 − level if and only if 1/2 is outside `low` and `high`.
    """

    share: float
    p: float
    low: float
    high: float


def exact(wins: int, losses: int, level: float) -> SignShare:
    """The two-sided sign test and Clopper and Pearson's interval, for one look at a number of units fixed beforehand.

    References
    ----------
    Clopper and Pearson 1934, Biometrika 26.

    >>> found = exact(30, 10, 0.95)
    >>> round(found.p, 5), round(found.low, 4), round(found.high, 4)
    (0.00222, 0.588, 0.8731)
    """
    if not wins + losses:
        return SignShare(math.nan, 1.0, 0.0, 1.0)
    low, high = map(float, clopper_pearson(wins, wins + losses, (1 - level) / 2))
    return _agreeing(wins / (wins + losses), float(mcnemar.two_sided_p(wins, losses)), low, high, level)


def any_time(wins: int, losses: int, level: float) -> SignShare:
    """The same from an e-value, valid however often and whenever one looks.

    The e-value of a share θ is the likelihood of the wins and losses, mixed over Beta(10, 10), by their likelihood
    under θ. If θ is true, it exceeds 1/α at any time with a probability of at most α (Ville's inequality). The p-value
    of 1/2 is 1/e; the interval holds the shares whose e-value is below 1/α.

    References
    ----------
    Robbins 1970, Statistical methods related to the law of the iterated logarithm.

    >>> found = any_time(30, 10, 0.95)
    >>> round(found.p, 4), round(found.low, 3), round(found.high, 3)
    (0.055, 0.498, 0.921)
    """
    if not wins + losses:
        return SignShare(math.nan, 1.0, 0.0, 1.0)
    share = wins / (wins + losses)
    limit = -math.log1p(-level)
    inside = min(max(share, 1e-15), 1 - 1e-15)
    low = end_of(lambda x: _log_e(wins, losses, x) < limit, inside, 1e-300)[1] if wins else 0.0
    high = end_of(lambda x: _log_e(wins, losses, x) < limit, inside, 1 - 1e-16)[1] if losses else 1.0
    return _agreeing(share, min(1.0, math.exp(-_log_e(wins, losses, 0.5))), low, high, level)


def units_needed(share: float, differing: float, level: float, power: float, *, sequential: bool) -> int | None:
    """Units at which such a share of wins is shown with the power; None if that takes more than 2**40.

    Parameters
    ----------
    share : float
        Of wins among the units that differ, other than 1/2.
    differing : float
        The share of all units that differ.
    level, power : float
    sequential : bool
        For `any_time`: about the number by which it has been shown; otherwise the exact power of one look.

    >>> units_needed(0.6, 0.5, 0.95, 0.8, sequential=False), units_needed(0.6, 0.5, 0.95, 0.8, sequential=True)
    (408, 759)
    """
    from scipy.special import ndtri

    reach = float(ndtri(power))
    ahead = max(share, 1 - share)

    def is_shown(n: int) -> bool:
        if not sequential:
            return mcnemar.power(n, differing * ahead, differing * (1 - ahead), 1 - level) >= power
        votes = n * differing
        wins = min(votes, votes * ahead - reach * math.sqrt(votes * ahead * (1 - ahead)))
        return 2 * wins > votes and _log_e(wins, votes - wins, 0.5) >= -math.log1p(-level)

    most = 2
    while not is_shown(most):
        most *= 2
        if most > 1 << 40:
            return None
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if is_shown(middle) else (middle, most)
    return most


def _log_e(wins: float, losses: float, share: float) -> float:
    """The logarithm of the e-value against a share."""
    from scipy.special import betaln

    mixed = float(betaln(wins + _PRIOR, losses + _PRIOR) - betaln(_PRIOR, _PRIOR))
    return mixed - (wins * math.log(share) if wins else 0.0) - (losses * math.log1p(-share) if losses else 0.0)


def _agreeing(share: float, p: float, low: float, high: float, level: float) -> SignShare:
    """The ends, so that rounding in their last digits cannot contradict the p-value."""
    if p > 1 - level:
        low, high = min(low, 0.5), max(high, 0.5)
    elif share > 0.5:
        low = max(low, math.nextafter(0.5, 1.0))
    else:
        high = min(high, math.nextafter(0.5, 0.0))
    return SignShare(share, p, low, high)
