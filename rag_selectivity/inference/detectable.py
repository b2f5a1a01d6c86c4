"""The smallest true difference that a paired test would have shown, with a given power at a given level."""

import math
from bisect import bisect_left
from functools import lru_cache

from rag_selectivity.inference import mcnemar
from rag_selectivity.inference.interval import end_of
from rag_selectivity.inference.paired import Pair
from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.tables.ids import IntArray

_HALVINGS = 40
#: With more pairs that differ the needed queries follow from the root of n, within a few per cent and at once.
_FEW_DIFFER = 100


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

    return end_of(reached, 1.0, 0.0, _HALVINGS)[0] if reached(1.0) else math.inf


@lru_cache(maxsize=1024)
def times_needed(n: int, won: float, lost: float, level: float, power: float) -> float:
    """How many times n queries McNemar's exact test needs to show these shares of gains and losses; 32 stands for more.

    The root of n does not tell: n queries may hold too few gains for the test, and the gap that they would show takes
    more queries that differ than there are.

    >>> times_needed(12, 4 / 12, 0.0, 0.05, 0.8) * 12
    23.0
    """
    return bisect_left(range(32 * n), power, key=lambda queries: mcnemar.power(queries, won, lost, level)) / n


def mean_difference(gaps: FloatArray, level: float, power: float, draws: int, freedom: float) -> float:
    """The smallest mean difference that a sign-flip test shows with the given power, from the units' differences.

    The power is that of Student's t test, which approximates that of the sign-flip test. NaN if all differences are
    equal, ∞ if so few units (or so few draws) can never give a p-value below the level.

    Parameters
    ----------
    gaps : float64[units]
    freedom : float
        Degrees of freedom: with weights, less than the number of units suggests.
    """
    from scipy.special import nctdtr, stdtrit

    n, spread = len(gaps), float(gaps.std(ddof=1)) if len(gaps) > 1 else 0.0
    if not spread > 0:
        return math.nan
    if 2.0 ** (1 - min(n, 1000)) > level or (n > 16 and 1 / (draws + 1) > level):
        return math.inf
    limit = -float(stdtrit(freedom, level / 2))
    gap, _ = end_of(lambda gap: 1 - float(nctdtr(freedom, gap, limit)) >= power, 4 * limit + 20, 0.0, _HALVINGS)
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
) -> tuple[float, float]:
    """The smallest difference of two outcomes at one depth that `paired_difference` would have shown.

    The second number says how many times their queries would show the difference that they have.
    """
    pair = Pair.of(first, second, 0, units)
    size, freedom = float(pair.sizes.sum()), max(pair.effective - 1, 1.0)
    if not pair.same_bottom or pair.ends is None:
        least = mean_difference(pair.steps, level, power, draws, freedom)
        return least, (least / pair.value) ** 2 if pair.value else math.inf
    won, lost, gap = *(float((sign * pair.gaps > 0).mean()) for sign in (1, -1)), float(pair.gaps.sum()) / size
    if pair.is_success_rate:
        gain = rate_difference(pair.n, won + lost, level, power)
    else:
        steps, span = (pair.gaps - gap * pair.sizes) / pair.sizes.mean(), pair.ends[1] - pair.ends[0]
        gain = mean_difference(steps, level, power, draws, freedom)
        # What one further query could turn is not shown, and no difference is beyond the ends.
        gain = math.inf if gain > span else max(gain, span / pair.effective)
    rate, chance = (float(column.sum()) / size for column in (pair.other_top, pair.bottom))
    least = bits_of_gain(gain, rate) if pair.form == "bits" else gain / chance
    if pair.is_success_rate and pair.n * (won + lost) < _FEW_DIFFER:
        return least, times_needed(pair.n, won, lost, level, power)
    return least, (gain / gap) ** 2 if gap else math.inf
