"""Complete a judge's labels by what people said about a few of them: draws of the grades that people would give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

#: The spreads of the query effect, equally likely: a few hundred labels cannot tell it, and it differs by collection.
SPREADS = (0.1, 0.7, 1.3, 2.0)
#: Pseudo-labels a grade where the labels are dense, and in all where they are few.
LISTED_PRIOR, SPARSE_PRIOR = 0.1, 2.0
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_TILT_ROUNDS, _RAKE_ROUNDS, _NEWTON_ROUNDS = 8, 3, 6
#: Keeps a gamma draw that underflows from becoming a share of exactly 0, by which nothing can be divided.
_LEAST_SHARE = 1e-12


@dataclass(frozen=True)
class Completion:
    """Labels that are partly known, in strata within which the known ones were drawn at random.

    Attributes
    ----------
    query : int64[pairs]
        From 0 to `queries` − 1.
    stratum : int64[pairs]
    label : int64[pairs]
        The position of the person's grade among the levels; −1 where nobody labelled the pair.
    stands_for : float64[pairs]
        How many unlabelled passages each known label stands for, times how much its query counts.
    prior : float64[strata, levels]
        Pseudo-labels.
    steps : float64[levels]
        How far a level is above not relevant, in the units of the query effect.
    queries : int
    counting : float64[queries], optional
        How much each query counts. The shares of a stratum are then weighted, so that a weighted mean is right also
        where heavy queries have other grades than light ones.
    """

    query: IntArray
    stratum: IntArray
    label: IntArray
    stands_for: FloatArray
    prior: FloatArray
    steps: FloatArray
    queries: int
    counting: FloatArray | None = None

    @cached_property
    def counts(self) -> FloatArray:
        """The known labels: float64[strata, levels].

        Their shares are weighted by `stands_for`, and a stratum has as many as equal labels that vary as much:
        (Σw)²/Σw² (Kish 1965).
        """
        strata, levels = self.prior.shape
        known = self.label >= 0
        stratum = self.stratum[known]
        weight = self.stands_for[known]
        total, squares = np.bincount(stratum, weight, strata), np.bincount(stratum, weight**2, strata)
        weight = weight * (total / np.where(squares > 0, squares, 1.0))[stratum]
        cell = stratum * levels + self.label[known]
        return np.bincount(cell, weight, strata * levels).reshape(strata, levels).astype(np.float64)

    @cached_property
    def _given(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """The query, the stratum and the number of known labels of each cell that has some; each query's steps."""
        known = self.label >= 0
        cell = self.query[known] * len(self.prior) + self.stratum[known]
        cells, number = np.unique(cell, return_counts=True)
        steps = np.zeros(self.queries)
        np.add.at(steps, self.query[known], self.steps[self.label[known]])
        return cells // len(self.prior), cells % len(self.prior), number, steps

    @cached_property
    def _open(self) -> tuple[IntArray, IntArray, IntArray]:
        """The pairs without a label; the query × stratum cells with one, stratum first; the cell of each."""
        rows = np.flatnonzero(self.label < 0)
        cells, back = np.unique(self.stratum[rows] * self.queries + self.query[rows], return_inverse=True)
        return rows, cells, back

    def draw(self, random: np.random.Generator, extra: IntArray) -> tuple[IntArray, IntArray]:
        """One draw: the level of every pair, and how many of the extra passages of each query have each level.

        Each known label stays. Where strata have unknown labels but no known one, the draw follows the prior alone.

        Parameters
        ----------
        random : Generator
        extra : int64[queries, strata]
            Further passages without a label, of which only the number is known.

        Returns
        -------
        levels : int64[pairs]
        extra_levels : int64[queries, levels]
        """
        shares = random.standard_gamma(self.counts + self.prior) + _LEAST_SHARE
        shares /= shares.sum(axis=1, keepdims=True)
        spread = SPREADS[int(random.integers(len(SPREADS)))]
        base = _with_mean(shares, spread, self.steps)
        mode, deviation = self._query_effects(base, spread)
        effect = mode + deviation * random.standard_normal(self.queries)

        rows, cells, back = self._open
        more = extra.T.ravel()
        every = np.union1d(cells, np.flatnonzero(more))
        back = np.searchsorted(every, cells)[back]
        counted = more[every].astype(np.float64)
        np.add.at(counted, back, 1.0)
        query = every % self.queries
        if self.counting is not None:
            counted = counted * np.maximum(self.counting[query], _LEAST_SHARE)
        chances = _raked(base, shares, every // self.queries, effect[query], self.steps, counted)

        levels = self.label.copy()
        if len(rows):
            cumulative = np.cumsum(chances[:, :-1], axis=1)[back]
            levels[rows] = (random.random(len(back))[:, None] > cumulative).sum(axis=1)
        extra_levels = np.zeros((self.queries, self.prior.shape[1]), np.int64)
        if more.any():
            np.add.at(extra_levels, query, random.multinomial(more[every], chances))
        return levels, extra_levels

    def _query_effects(self, base: FloatArray, spread: float) -> tuple[FloatArray, FloatArray]:
        """The mode of each query's effect given its known labels, and the deviation of its normal approximation."""
        query, stratum, number, given = self._given
        precision = 1.0 / spread**2
        mode = np.zeros(self.queries)
        curvature = np.full(self.queries, precision)
        if len(query):
            shares = base[stratum]
            for _ in range(_NEWTON_ROUNDS):
                tilted = shares * np.exp(mode[query][:, None] * self.steps)
                tilted /= tilted.sum(axis=1, keepdims=True)
                mean = tilted @ self.steps
                variance = tilted @ self.steps**2 - mean**2
                curvature = precision + np.bincount(query, number * variance, minlength=self.queries)
                slope = given - np.bincount(query, number * mean, minlength=self.queries) - precision * mode
                # A full step can overshoot where one label of a rare grade pulls; half the range is always enough.
                mode = mode + np.clip(slope / curvature, -1.5, 1.5)
        return mode, 1.0 / np.sqrt(curvature)


def _with_mean(shares: FloatArray, spread: float, steps: FloatArray) -> FloatArray:
    """Base shares whose mean over the query effects is `shares`: float64[strata, levels]."""
    factors = np.exp(spread * _NODES[:, None] * steps)
    base = shares.copy()
    for _ in range(_TILT_ROUNDS):
        tilted = base * factors[:, None, :]
        tilted /= tilted.sum(axis=2, keepdims=True)
        mean = np.tensordot(_NODE_WEIGHTS, tilted, axes=1)
        base = base * (shares / np.maximum(mean, _LEAST_SHARE))
        base /= base.sum(axis=1, keepdims=True)
    return base


def _raked(
    base: FloatArray, shares: FloatArray, stratum: IntArray, effect: FloatArray, steps: FloatArray, counted: FloatArray
) -> FloatArray:
    """The chances of each level in each cell, whose mean over a stratum's cells is its shares: float64[cells, levels].

    `stratum` is sorted.
    """
    chances = base[stratum] * np.exp(effect[:, None] * steps)
    chances /= chances.sum(axis=1, keepdims=True)
    if not len(stratum):
        return chances
    starts = np.flatnonzero(np.diff(stratum, prepend=-1))
    total = np.add.reduceat(counted, starts)[:, None]
    wanted = shares[stratum[starts]]
    lengths = np.diff(np.append(starts, len(stratum)))
    for _ in range(_RAKE_ROUNDS):
        mean = np.add.reduceat(chances * counted[:, None], starts, axis=0) / total
        chances *= np.repeat(wanted / np.maximum(mean, _LEAST_SHARE), lengths, axis=0)
        chances /= chances.sum(axis=1, keepdims=True)
    return chances


def stratified_prior(counts: FloatArray, stands_for: FloatArray, listed: NDArray[np.bool_]) -> FloatArray:
    """Pseudo-labels for each stratum: .1 a grade in the lists; elsewhere two, spread as all labels elsewhere are.

    Parameters
    ----------
    counts : float64[strata, levels]
        The known labels.
    stands_for : float64[strata]
        How many passages each stratum stands for.
    listed : bool[strata]
        Whether it is a part of the lists that the figure measures.
    """
    prior = np.full(counts.shape, LISTED_PRIOR)
    if (~listed).any():
        levels = counts.shape[1]
        labelled = counts.sum(axis=1)
        weight = np.where(~listed & (labelled > 0), stands_for / np.maximum(labelled, 1.0), 0.0)
        number = counts[~listed].sum()
        pooled = weight @ counts
        pooled = pooled / pooled.sum() if pooled.sum() > 0 else np.full(levels, 1.0 / levels)
        prior[~listed] = SPARSE_PRIOR * (number * pooled + 1.0) / (number + levels)
    return prior


def prior_of_a_part(counts: FloatArray, prior: FloatArray) -> FloatArray:
    """Pseudo-labels for the strata of some queries: two each, spread as people's grades are expected in all queries.

    Parameters
    ----------
    counts, prior : float64[strata, levels]
        The known labels of all queries, and the pseudo-labels for all queries.

    Examples
    --------
    >>> prior_of_a_part(np.array([[5.9, 1.9], [0.0, 0.0]]), np.full((2, 2), 0.1)).tolist()
    [[1.5, 0.5], [1.0, 1.0]]
    """
    expected = counts + prior
    result: FloatArray = SPARSE_PRIOR * expected / expected.sum(axis=1, keepdims=True)
    return result


def steps_of(levels: IntArray, lowest: int, relevant_from: int) -> FloatArray:
    """How far each grade is above not relevant: 0 for the lower half of the grades below relevance, then 1, 2, …

    On grades 1 to 5 that are relevant from 4: 0, 0, 1, 2, 3. On grades from 0 that are relevant from 1: 0, 1, 2, …

    >>> steps_of(np.array([1, 2, 3, 4, 5]), 1, 4).tolist(), steps_of(np.array([0, 1, 2]), 0, 1).tolist()
    ([0.0, 0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    """
    zero = lowest + (relevant_from - lowest) // 2
    return np.maximum(0, levels - zero).astype(np.float64)
