"""Whether the difference between two runs is the same in all slices: a test of interaction by random signs.

The difference in a slice is θ = Σa/Σb over its units: for a mean, a is a unit's difference and b its number of queries;
for a ratio of means, b is its random baseline; for a difference in bits, a and b are the figures of both runs, so that
θ is the ratio whose log2 is the difference. If θ is the same in all slices, the residuals a − θb of each slice add up
to about 0. The statistic adds the squares of these sums, each divided by the sum of the squared residuals, with the θ
that makes it the smallest. In its distribution each unit's residual gets a random sign, as a swap of both runs gives
its difference one. So each slice keeps its own spread: slices may differ in size, in level and in spread.

Hemerik, Goeman and Finos 2020, Robust testing in generalized linear models by sign flipping score contributions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.measures.base import FloatArray, Outcome
from rag_selectivity.statistics.paired import ALL_SWAPS, Pair, all_signs, drawn_signs
from rag_selectivity.tables.ids import IntArray

_SAME = 1e-11


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """The test of one measure at one depth.

    Attributes
    ----------
    p : float
        NaN if there is no test.
    slices : int
        The number of slices with a figure.
    test : {"exact", "randomised", ""}
        Whether all signs were tried, or a random part of them.
    reason : str or None
        Why there is no test.
    """

    p: float
    slices: int
    test: str = ""
    reason: str | None = None


def heterogeneity(
    first: Outcome,
    second: Outcome,
    places: IntArray,
    *,
    draws: int = 10_000,
    seed: int = 7,
    units: IntArray | None = None,
) -> list[Heterogeneity]:
    """The test at each depth: does the difference between two outcomes change between slices?

    Parameters
    ----------
    first, second : Outcome
        Outcomes of the same measure at the same depths, over the same queries.
    places : int64[queries]
        The number of each query's slice.
    draws : int
        The number of random signs of each unit, if there are too many to try all.
    units : int64[queries], optional
        The number of each query's cluster. A cluster has one sign, also if it has queries in several slices.
    """
    tests = [_test_of(first, second, column, places, units) for column in range(first.parts[0].shape[1])]
    by_units: dict[int, list[_Test]] = {}
    for test in tests:
        if isinstance(test, _Test):
            by_units.setdefault(test.units, []).append(test)
    found: dict[int, Heterogeneity] = {}
    for count, some in by_units.items():
        for test, result in zip(some, _tested(some, count, draws, seed), strict=True):
            found[id(test)] = result
    return [found[id(test)] if isinstance(test, _Test) else test for test in tests]


@dataclass(frozen=True, slots=True)
class _Test:
    """One depth.

    Attributes
    ----------
    units : int
    sums : float64[units, slices]
        The residuals, each in the column of its slice; 0 elsewhere.
    totals : float64[slices]
        Σb of each slice.
    """

    units: int
    sums: FloatArray
    totals: FloatArray

    def statistic(self, sums: FloatArray) -> FloatArray:
        """The statistic of sums of residuals, float64[draws, slices]: float64[draws]."""
        squares = (self.sums**2).sum(axis=0)
        weights = np.where(squares > 0, 1 / np.where(squares > 0, squares, 1.0), 0.0)
        scale = float((weights * self.totals**2).sum())
        shared = (sums @ (weights * self.totals)) ** 2 / scale if scale else 0.0
        return np.asarray(sums**2 @ weights - shared)


def _test_of(
    first: Outcome, second: Outcome, column: int, places: IntArray, units: IntArray | None
) -> _Test | Heterogeneity:
    both = (first.defined & second.defined)[:, column]
    own = np.unique(places[both], return_inverse=True)[1]
    slices = int(own.max(initial=-1)) + 1
    if slices < 2:
        return Heterogeneity(math.nan, slices, reason="fewer than two slices have a figure")
    # Each query by itself, since a cluster may have queries in several slices.
    pair = Pair.of(first, second, column, None)
    if not pair.same_bottom:
        return Heterogeneity(math.nan, slices, reason="the runs have different random baselines")
    a, b = pair.alike_columns().T
    number = np.arange(len(own)) if units is None else np.unique(units[both], return_inverse=True)[1]
    total = float(b.sum())
    if not total and not a.any():
        return Heterogeneity(math.nan, slices, reason="no run has a success")
    theta = float(a.sum()) / total if total else 0.0
    rest = a - theta * b
    rest = np.where(np.abs(rest) <= _SAME * np.maximum(np.abs(a), np.abs(theta * b)), 0.0, rest)
    sums = np.zeros((int(number.max()) + 1, slices))
    np.add.at(sums, (number, own), rest)
    totals = np.bincount(own, b, minlength=slices).astype(np.float64)
    return _Test(len(sums), sums, totals)


def _tested(tests: Sequence[_Test], units: int, draws: int, seed: int) -> Iterator[Heterogeneity]:
    """Tests of equally many units, from the same signs."""
    every = units <= ALL_SWAPS
    columns = np.concatenate([test.sums for test in tests], axis=1)
    ends = np.cumsum([test.sums.shape[1] for test in tests])[:-1]
    observed = [float(test.statistic(test.sums.sum(axis=0)[None])[0]) for test in tests]
    reached = np.zeros(len(tests), np.int64)
    total = 0
    for signs in [all_signs(units)] if every else drawn_signs(units, draws, seed):
        total += len(signs)
        for i, (test, sums) in enumerate(zip(tests, np.split(signs @ columns, ends, axis=1), strict=True)):
            reached[i] += int((test.statistic(sums) >= observed[i] - _SAME * max(1.0, observed[i])).sum())
    for test, count in zip(tests, reached.tolist(), strict=True):
        p = count / total if every else (count + 1) / (total + 1)
        yield Heterogeneity(p, test.sums.shape[1], "exact" if every else "randomised")
