"""The share of wins among units that differ: the exact sign test, and a form of it that may be looked at any time."""

import math
from bisect import bisect_left

from rag_selectivity.inference import mcnemar
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.inference.interval import Tested, end_of, settled

#: The Beta distribution of the always-valid form: narrow enough for shares near 1/2, which are what is seen.
_PRIOR = (10.0, 10.0)


#: A share of wins without any.
_UNKNOWN = Tested(math.nan, 1.0, 0.0, 1.0)


def exact(wins: int, losses: int, level: float) -> Tested:
    """The two-sided sign test and Clopper and Pearson's interval, for one look at a number of units fixed beforehand.

    References
    ----------
    Clopper and Pearson 1934, Biometrika 26.

    >>> found = exact(30, 10, 0.95)
    >>> round(found.p, 5), round(found.low, 4), round(found.high, 4)
    (0.00222, 0.588, 0.8731)
    >>> exact(0, 0, 0.95)
    Tested(value=nan, p=1.0, low=0.0, high=1.0)
    """
    if not wins + losses:
        return _UNKNOWN
    low, high = map(float, clopper_pearson(wins, wins + losses, (1 - level) / 2))
    share, p = wins / (wins + losses), float(mcnemar.two_sided_p(wins, losses))
    return Tested(share, p, *settled(share, p, low, high, level, null=0.5))


def any_time(wins: int, losses: int, level: float) -> Tested:
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
        return _UNKNOWN
    share = wins / (wins + losses)
    limit = -math.log1p(-level)
    inside = min(max(share, 1e-15), 1 - 1e-15)
    low = end_of(lambda x: log_e(wins, losses, x) < limit, inside, 1e-300)[1] if wins else 0.0
    high = end_of(lambda x: log_e(wins, losses, x) < limit, inside, 1 - 1e-16)[1] if losses else 1.0
    p = min(1.0, math.exp(-log_e(wins, losses, 0.5)))
    return Tested(share, p, *settled(share, p, low, high, level, null=0.5))


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
        return 2 * wins > votes and log_e(wins, votes - wins, 0.5) >= -math.log1p(-level)

    most = next((1 << power_of_2 for power_of_2 in range(1, 41) if is_shown(1 << power_of_2)), None)
    if most is None:
        return None
    least = most // 2 + 1
    return least + bisect_left(range(least, most), True, key=is_shown)


def log_e(wins: float, losses: float, share: float, prior: tuple[float, float] = _PRIOR) -> float:
    """The logarithm of the e-value against a share, mixed over a Beta distribution."""
    from scipy.special import betaln

    mixed = float(betaln(wins + prior[0], losses + prior[1]) - betaln(*prior))
    return mixed - (wins * math.log(share) if wins else 0.0) - (losses * math.log1p(-share) if losses else 0.0)
