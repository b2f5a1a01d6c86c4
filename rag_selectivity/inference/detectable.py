"""The smallest true difference that a paired test would have shown, with a given power at a given level."""

import math
from functools import lru_cache

from rag_selectivity.inference import mcnemar
from rag_selectivity.inference.interval import end_of
from rag_selectivity.inference.paired import Pair
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.tables.ids import IntArray

_HALVINGS = 40


# A success rate and its bits over random have the same pairs, and so the same smallest gain.
@lru_cache(maxsize=1024)
def rate_difference(n: int, discordant: float, level: float, power: float) -> float:
    """The smallest gain in success rate that McNemar's exact test shows with the given power, among n queries.

    Parameters
    ----------
    n : int
    discordant : float
        The share of queries in which only one run succeeds. For a gain larger than this, the gain takes its place.
    level : float
        The level of the test: in Holm's correction, that of the smallest p-value of the family.
    power : float

    Returns
    -------
    float
        From 0 to 1; ∞ if not even a gain in every query would be shown.

    >>> round(rate_difference(200, 0.1, 0.05, 0.8), 5)
    0.06403
    """

    def reached(gain: float) -> bool:
        spread = max(discordant, gain)
        return mcnemar.power(n, (spread + gain) / 2, (spread - gain) / 2, level) >= power

    if not reached(1.0):
        return math.inf
    return end_of(reached, 1.0, 0.0, _HALVINGS)[0]


def mean_difference(gaps: FloatArray, level: float, power: float, draws: int) -> float:
    """The smallest mean difference that a sign-flip test shows with the given power, from the units' differences.

    The power is that of Student's t test, which approximates that of the sign-flip test. NaN if all differences are
    equal, ∞ if so few units (or so few draws) can never give a p-value below the level.

    Parameters
    ----------
    gaps : float64[units]
    """
    from scipy.special import nctdtr, stdtrit

    n = len(gaps)
    spread = float(gaps.std(ddof=1)) if n > 1 else 0.0
    if not spread > 0:
        return math.nan
    if 2.0 ** (1 - min(n, 1000)) > level or (n > 16 and 1 / (draws + 1) > level):
        return math.inf
    limit = -float(stdtrit(n - 1.0, level / 2))
    gap, _ = end_of(lambda gap: 1 - float(nctdtr(n - 1.0, gap, limit)) >= power, 4 * limit + 20, 0.0, _HALVINGS)
    return gap * spread / math.sqrt(n)


def bits_of_gain(gain: float, rate: float) -> float:
    """A gain in success rate from a given rate, in bits.

    If the gain would lead to a rate above 1, it is the size of an equal loss in bits; ∞ if that is not possible either.

    >>> bits_of_gain(0.25, 0.25), round(bits_of_gain(0.25, 0.9), 3), bits_of_gain(0.6, 0.5), bits_of_gain(0.6, 0.6)
    (1.0, 0.469, inf, inf)
    """
    if rate > 0 and rate + gain <= 1:
        return math.log2((rate + gain) / rate)
    return -math.log2((rate - gain) / rate) if rate > gain else math.inf


def sensitivity(
    first: Outcome, second: Outcome, level: float, power: float, *, units: IntArray | None = None, draws: int = 10_000
) -> float:
    """The smallest difference of two outcomes at one depth that `paired_difference` would have shown."""
    pair = Pair.of(first, second, 0, units)
    if not pair.is_success_rate:
        return mean_difference(pair.steps, level, power, draws)
    gain = rate_difference(pair.n, float((pair.gaps != 0).mean()), level, power)
    return bits_of_gain(gain, float(pair.other_top.mean())) if pair.form == "bits" else gain / float(pair.bottom.mean())
