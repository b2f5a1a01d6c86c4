"""Evidence about a mean that may be looked at any time: e-processes, and the p-values and intervals that come of them.

An e-process of the hypothesis that a mean is δ starts at 1 and exceeds 1/α at any time with a probability of at most α
if the hypothesis is true (Ville's inequality). One process here gains if the mean is above δ, another if it is below.
The two-sided p-value is 2/(the larger one); the interval holds every δ for which both are below 2/α. So both come from
the same processes: p ≤ α if and only if 0 is outside the interval.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from rag_selectivity.inference.interval import end_of
from rag_selectivity.measures.base import FloatArray

#: The variance, summed over the differences of values from 0 to 1, at which the interval of a mean is narrowest.
_TUNED_AT = 100.0
#: How far from 0 the running mean is believed, as a share of the range: a smaller reach makes the interval narrower.
_BELIEVED = 0.25
#: The parameter with which the mixture is narrowest at that spread and a level of 95 %.
_RHO = _TUNED_AT / (1 + _BELIEVED) ** 2 / (2 * math.log(40) + math.log(1 + 2 * math.log(40)))


@dataclass(slots=True)
class MeanEvidence:
    """Bounded differences, of rates too: an empirical-Bernstein confidence sequence with a gamma-exponential mixture.

    With S = Σ(D − δ) and V = Σ(D − D̂)², where D̂ is a mean of the differences before, exp(λS/c − ψ(λ)V/c²) with
    ψ(λ) = −log(1 − λ) − λ is an e-process for each λ in [0, 1); so is its mixture over λ, which has a closed form. Here
    c is the largest possible distance of D below D̂.

    Parameters
    ----------
    reach : float
        Differences are from −reach to reach.

    References
    ----------
    Howard, Ramdas, McAuliffe and Sekhon 2021, Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals
    of Statistics 49: theorem 4, and the gamma-exponential mixture.

    Examples
    --------
    >>> evidence = MeanEvidence(1.0)
    >>> evidence.add(np.random.default_rng(7).uniform(-0.4, 0.6, 3000))
    >>> round(evidence.mean, 3), evidence.p() < 1e-6, [round(end, 3) for end in evidence.interval(0.95)]
    (0.103, True, [0.085, 0.121])
    """

    reach: float
    n: int = 0
    total: float = 0.0
    spread: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else math.nan

    def add(self, differences: FloatArray) -> None:
        before = self.total + np.concatenate([[0.0], np.cumsum(differences)[:-1]])
        believed = before / (self.n + 1 + np.arange(len(differences)))
        bound = _BELIEVED * self.reach
        self.spread += float(np.sum((differences - np.clip(believed, -bound, bound)) ** 2))
        self.total += float(differences.sum())
        self.n += len(differences)

    def log_e(self, surplus: float, spread: float) -> float:
        """The logarithm of the e-value of a sum and a spread of differences."""
        c = (1 + _BELIEVED) * self.reach
        return log_gamma_mixture(surplus / c, spread / c**2, _RHO)

    def p(self) -> float:
        if not self.n:
            return 1.0
        return min(1.0, 2 * math.exp(-self.log_e(abs(self.total), self.spread)))

    def interval(self, level: float) -> tuple[float, float]:
        if not self.n:
            return -self.reach, self.reach
        limit = math.log(2) - math.log1p(-level)
        inside, outside = 0.0, (1 + _BELIEVED) * self.reach
        while self.log_e(outside, self.spread) < limit:
            inside, outside = outside, 2 * outside
        outside = end_of(lambda x: self.log_e(x, self.spread) < limit, inside, outside)[1]
        low, high = (self.total - outside) / self.n, (self.total + outside) / self.n
        return max(low, -self.reach), min(high, self.reach)


def log_gamma_mixture(surplus: float, spread: float, rho: float) -> float:
    """log ∫ exp(λ·surplus − ψ(λ)·spread) dF(λ) over λ in [0, 1), with ψ(λ) = −log(1 − λ) − λ.

    F has the density ρ^ρ e^(−ρ(1−λ)) (1−λ)^(ρ−1) / (Γ(ρ)·P(ρ, ρ)), where P is the regularized lower incomplete gamma
    function.

    >>> round(log_gamma_mixture(30.0, 100.0, 10.0), 4)
    2.8742
    """
    from scipy.special import gammainc, gammaln

    shape, rate = spread + rho, surplus + spread + rho
    prior = rho * math.log(rho) - float(gammaln(rho)) - math.log(float(gammainc(rho, rho)))
    tail = float(gammainc(shape, rate)) if rate > 0 else 0.0
    if tail <= 0:
        return -math.inf
    return prior + float(gammaln(shape)) + math.log(tail) - shape * math.log(rate) + surplus + spread


@dataclass(slots=True)
class Blocks:
    """Pairs the values of two arms in their order: blocks of so many values of the first and of the second.

    A block gives one difference, the mean of its second values minus that of its first ones. What waits for its
    partners is kept.

    Parameters
    ----------
    sizes : (int, int)
        As the traffic was planned: (1, 1) for equal shares.
    """

    sizes: tuple[int, int]
    _waiting: list[FloatArray] = field(default_factory=lambda: [np.empty(0), np.empty(0)])

    def add(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The differences of the blocks that are complete with these values."""
        joined = [np.concatenate([old, new]) for old, new in zip(self._waiting, (first, second), strict=True)]
        arms = list(zip(joined, self.sizes, strict=True))
        count = min(len(values) // size for values, size in arms)
        self._waiting = [values[count * size :].copy() for values, size in arms]
        of_first, of_second = (values[: count * size].reshape(count, size).mean(axis=1) for values, size in arms)
        return np.asarray(of_second - of_first)
