"""Two arms of independent values at one look: a test and an interval from one distribution, from sums alone."""

import math
from dataclasses import dataclass, field

import numpy as np

from rag_selectivity.inference import score
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.inference.interval import Interval, Tested, difference_ends, p_of, settled
from rag_selectivity.inference.paired import skewed_ends, skewed_p, welch
from rag_selectivity.inference.sign_share import log_e
from rag_selectivity.measures.base import FloatArray

#: The prior of the share of an arm, in impressions, around the planned share.
_PRIOR = 100.0
#: Hits and misses that the smaller arm is expected to have in a score test. With fewer, it finds a difference between
#: equal arms in up to 11 % of the tests at a level of 5 %; from here on in up to 6 %.
_FEWEST_EXPECTED = 15
#: The skewness of a difference of means up to which Welch's test keeps its level.
_MOST_SKEWED = 0.25
#: A smaller skewness of values is not believed: few values in one arm do not show it, nor that their variance is known.
_LEAST_SKEWNESS = 0.75


@dataclass(slots=True)
class ArmMoments:
    """Count, means, squares and cubes of an arm's values, and of a covariate beside them.

    `squares` and `cubes` are of the deviations of values less slope times covariate, as polynomials in the slope.

    Chan, Golub and LeVeque 1983, Algorithms for computing the sample variance; Pébay 2008, for the cubes.

    >>> x, y, arm = np.array([1.0, 4, 2, 8, 5]), np.array([3.0, 1, 4, 1, 6]), ArmMoments()
    >>> arm.add(x[:3], y[:3]), arm.add(x[3:], y[3:])
    (None, None)
    >>> np.array([arm.variance(), x.var(ddof=1), arm.variance(0.5), (x - y / 2).var(ddof=1)]).round(9).tolist()
    [7.5, 7.5, 10.375, 10.375]
    >>> off = x - y / 2
    >>> math.isclose(arm.cubes(0.5), ((off - off.mean()) ** 3).sum())
    True
    """

    n: int = 0
    mean: float = 0.0
    covariate_mean: float = 0.0
    squares: np.poly1d = field(default_factory=lambda: np.poly1d([0.0]))
    cubes: np.poly1d = field(default_factory=lambda: np.poly1d([0.0]))

    def add(self, values: FloatArray, covariate: FloatArray | None = None) -> None:
        """See further values."""
        count = len(values)
        if not count:
            return
        others = np.zeros(count) if covariate is None else covariate
        mean, other_mean, total = float(values.mean()), float(others.mean()), self.n + count
        squares, cubes = (_powers(values - mean, others - other_mean, degree) for degree in (2, 3))
        step = np.poly1d([self.covariate_mean - other_mean, mean - self.mean])
        square = step * step * (self.n * count / total)
        self.cubes += cubes + step * (square * (self.n - count) + 3 * (self.n * squares - count * self.squares)) / total
        self.squares += squares + square
        self.n = total
        self.mean += (mean - self.mean) * count / total
        self.covariate_mean += (other_mean - self.covariate_mean) * count / total

    def variance(self, slope: float = 0.0) -> float:
        """Of the values less slope times the covariate; NaN with fewer than two."""
        return max(0.0, float(self.squares(slope))) / (self.n - 1) if self.n > 1 else math.nan


def _powers(x: FloatArray, y: FloatArray, degree: int) -> np.poly1d:
    """Σ(x − slope·y)^degree, as a polynomial in the slope."""
    return np.poly1d([math.comb(degree, i) * ((-y) ** i @ x ** (degree - i)) for i in range(degree, -1, -1)])


def are_few(hits: int, n: int, other_hits: int, other_n: int) -> bool:
    """Whether fewer hits or misses are expected in the smaller arm than the score test needs.

    >>> are_few(5, 40, 9, 400), are_few(200, 400, 210, 400)
    (True, False)
    """
    share = (hits + other_hits) / (n + other_n)
    return min(n, other_n) * min(share, 1 - share) < _FEWEST_EXPECTED


def rates(hits: int, n: int, other_hits: int, other_n: int, level: float) -> Tested:
    """The score test of two rates, and Miettinen and Nurminen's interval, which inverts it: second minus first.

    With few hits or misses: an interval from Clopper and Pearson's of both arms, and the p-value that inverts it.

    >>> found = rates(30, 200, 50, 200, 0.95)
    >>> round(found.p, 4), round(found.low, 4), round(found.high, 4)
    (0.0125, 0.0218, 0.1784)
    >>> found = rates(0, 1, 5, 5, 0.95)
    >>> round(found.p, 2), round(found.low, 2), found.high
    (0.16, -0.11, 1.0)
    """
    difference, p = other_hits / other_n - hits / n, rates_p(hits, n, other_hits, other_n)
    ends_of = _ends_of_few if are_few(hits, n, other_hits, other_n) else score.unpaired_difference
    low, high = map(float, ends_of(other_hits, other_n, hits, n, level))
    return Tested(difference, p, *settled(difference, p, low, high, level))


def rates_p(hits: int, n: int, other_hits: int, other_n: int) -> float:
    """The p-value alone, which costs a hundredth of the interval of the score test."""
    from scipy.special import ndtr

    if are_few(hits, n, other_hits, other_n):
        return p_of(lambda level: _ends_of_few(other_hits, other_n, hits, n, level))
    total = n + other_n
    pooled = (hits + other_hits) / total
    variance = pooled * (1 - pooled) * (1 / n + 1 / other_n) * total / (total - 1)
    return float(2 * ndtr(-abs(other_hits / other_n - hits / n) / math.sqrt(variance)))


def _ends_of_few(hits: int, n: int, other_hits: int, other_n: int, level: float) -> tuple[float, float]:
    lows, highs = clopper_pearson(np.array([hits, other_hits]), np.array([n, other_n]), (1 - level) / 2)
    return difference_ends(Interval(hits / n, lows[0], highs[0]), Interval(other_hits / other_n, lows[1], highs[1]))


def means(first: ArmMoments, second: ArmMoments, level: float, slope: float = 0.0) -> Tested:
    """Welch's t-test and its interval: second minus first, each less slope times its covariate.

    NaN for the p-value and the interval if an arm has fewer than two values, neither has any spread, or the arms are
    `too_skewed`.

    >>> first, second = ArmMoments(), ArmMoments()
    >>> first.add(np.array([1.0, 2.0, 3.0, 4.0])), second.add(np.array([3.0, 4.0, 5.0, 8.0]))
    (None, None)
    >>> found = means(first, second, 0.95)
    >>> found.value, round(found.p, 4), round(found.low, 3), round(found.high, 3)
    (2.5, 0.1048, -0.754, 5.754)
    """
    difference = second.mean - first.mean - slope * (second.covariate_mean - first.covariate_mean)
    error, freedom = welch([arm.variance(slope) for arm in (first, second)], [first.n, second.n])
    if not error > 0 or too_skewed(first, second, slope):
        return Tested(difference, math.nan, math.nan, math.nan)
    p, ends = skewed_p(difference, error, 0.0, freedom), skewed_ends(difference, error, 0.0, freedom, level)
    return Tested(difference, p, *settled(difference, p, *ends, level))


def too_skewed(first: ArmMoments, second: ArmMoments, slope: float = 0.0) -> bool:
    """Whether arms are too unequal for Welch's test of values so skewed.

    In arms of one size, the skewness of both means cancels. In others it would not, if both arms had the skewness of
    all values; with twenty values, each nearly always 0, against 180, Welch's test tells equal arms apart in .30 of
    the tests. Hall's correction does not help, since few values do not show their skewness.
    """
    n, other_n = first.n, second.n
    squares, cubes = (first.squares + second.squares)(slope), (first.cubes + second.cubes)(slope)
    scale = max(0.0, squares) ** 1.5
    skewness = max(_LEAST_SKEWNESS * scale, abs(cubes) * math.sqrt(n + other_n))
    return bool(skewness * abs(1 / n**2 - 1 / other_n**2) > _MOST_SKEWED * scale * (1 / n + 1 / other_n) ** 1.5)


def slope_of(first: ArmMoments, second: ArmMoments) -> float:
    """The slope of values over the covariate within the arms; 0 for a covariate without spread."""
    squares = first.squares + second.squares
    return float(-squares[1] / 2 / squares[2]) if squares[2] > 0 else 0.0


def sample_ratio_p(n: int, other_n: int, share: float) -> float:
    """The p-value of the hypothesis that the first arm's share of the traffic is as planned, at any time.

    From the likelihood mixed over Beta(100·share, 100·(1 − share)) (Lindon and Malek 2022, Anytime-valid inference for
    multinomial count data).

    >>> sample_ratio_p(6000, 4000, 0.5) < 1e-80, sample_ratio_p(5050, 4950, 0.5)
    (True, 1.0)
    """
    return min(1.0, math.exp(-log_e(n, other_n, share, (_PRIOR * share, _PRIOR * (1 - share)))))
