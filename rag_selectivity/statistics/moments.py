"""Moments: sums of a measure's figures over queries, which can be merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.measures.base import Aggregate, FloatArray, Outcome, effective_number
from rag_selectivity.measures.refusal import Refusal, joint_refusal, reasons
from rag_selectivity.statistics.bounded import FEW
from rag_selectivity.statistics.exact import ends_if_all_agree, ends_of_few, mid_p_rate
from rag_selectivity.tables.ids import IntArray

#: The step for a numerical slope, as a share of the standard error: large against rounding, small against curvature.
_STEP = 1e-3
#: Products that are held at once.
_CELLS = 1 << 18


@dataclass(slots=True)
class Moments:
    """Sums over the defined queries at each depth: of an outcome's parts, and of their products.

    The size does not depend on the number of queries. `add` adds a batch of queries, `merge` the sums of another
    process. What rounding loses of a sum is kept beside it, so that order and partition change no digit that is shown.

    Attributes
    ----------
    sums : float64[2, parts, depths]
    products : float64[2, parts, parts, depths]
    lowest, highest : float64[parts, depths]
    count : int64[depths]
        The number of queries with a figure.
    total : int
        The number of all queries.
    binary : bool[depths]
        Whether the first part was 0 or 1 in every query.
    premise : bool
        See `Outcome`.
    baseline : int or None
        See `Outcome`.
    refused : Refusal or None
        See `Outcome`; of all queries together.
    """

    aggregate: Aggregate
    undefined: str
    bounds: tuple[Any, Any] | None
    sums: FloatArray
    products: FloatArray
    lowest: FloatArray
    highest: FloatArray
    count: IntArray
    binary: NDArray[np.bool_]
    total: int = 0
    premise: bool = False
    baseline: int | None = None
    refused: Refusal | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> Moments:
        """The moments of a batch of at most a million queries.

        Raises
        ------
        InputError
            If the queries have unequal weights, which these sums do not hold.
        """
        if outcome.counting() is not None:
            raise InputError("sums over queries cannot be weighted: leave the weights out")
        defined = outcome.defined
        parts = np.stack([np.where(defined, part, 0.0) for part in outcome.parts], axis=1)
        sums, products = _sums_and_products(parts)
        return cls(
            aggregate=outcome.aggregate,
            undefined=outcome.undefined,
            bounds=outcome.bounds,
            sums=sums,
            products=products,
            lowest=np.where(defined, outcome.parts, np.inf).min(axis=1, initial=np.inf),
            highest=np.where(defined, outcome.parts, -np.inf).max(axis=1, initial=-np.inf),
            count=defined.sum(axis=0),
            binary=((parts[:, 0] == 0) | (parts[:, 0] == 1)).all(axis=0),
            total=len(defined),
            premise=outcome.premise,
            baseline=outcome.baseline,
            refused=outcome.refused,
        )

    def add(self, outcome: Outcome) -> None:
        """Add a batch of queries."""
        self.merge(Moments.of(outcome))

    def merge(self, other: Moments) -> None:
        """Add the sums of other queries.

        Raises
        ------
        InputError
            If the other moments have another measure or other depths.
        """
        if self.sums.shape != other.sums.shape:
            raise InputError("moments of different measures or depths cannot be merged: use the same for both")
        if other.premise and not self.premise:
            self.undefined = other.undefined
        self.sums, self.products = _plus(self.sums, other.sums), _plus(self.products, other.products)
        if self.bounds is not None and other.bounds is not None:
            self.bounds = np.minimum(self.bounds[0], other.bounds[0]), np.maximum(self.bounds[1], other.bounds[1])
        self.lowest = np.minimum(self.lowest, other.lowest)
        self.highest = np.maximum(self.highest, other.highest)
        self.count = self.count + other.count
        self.binary = self.binary & other.binary
        self.total += other.total
        self.premise |= other.premise
        self.refused = joint_refusal((self.refused, other.refused))

    @property
    def defined(self) -> IntArray:
        """The number of queries with a figure at each depth; 0 without the premise, and where it is refused."""
        return np.where(self.has_figures, self.count, 0)

    @property
    def reasons(self) -> list[str]:
        """Why a query, or all of them, may be undefined at each depth."""
        return reasons(self.undefined, self.refused, len(self.count))

    @property
    def has_figures(self) -> NDArray[np.bool_]:
        """Whether the measure has its premise and is not refused at each depth: bool[depths]."""
        allowed = np.full(len(self.count), self.premise)
        return allowed if self.refused is None else allowed & ~self.refused.refused

    @property
    def value(self) -> FloatArray:
        """The measure's figure at each depth; NaN if no query has one."""
        return self._of(self._means())

    def without_spread(self) -> NDArray[np.bool_]:
        """As `Outcome.without_spread`."""
        same: NDArray[np.bool_] = self.lowest[0] == self.highest[0]
        return same & (self.bounds is None)

    def effective_queries(self) -> FloatArray | None:
        """As `Outcome.effective_queries`."""
        if self.baseline is None:
            return None
        part = self.baseline
        sums, squares = self.sums[0][part], self.products[0][part, part]
        return effective_number(sums, squares, self.lowest[part], self.highest[part])

    def interval(self, level: float | None = 0.95) -> tuple[FloatArray, FloatArray]:
        """Low and high at each depth; NaN with fewer than two defined queries, and everywhere for a level of None.

        It comes from the delta method with Student's t, on the measure's own scale (bits for BoR). A success rate has
        its exact mid-P interval. If all queries have the same figure, the bounds are those of `ends_if_all_agree`.
        """
        if level is None:
            return np.full(len(self.count), np.nan), np.full(len(self.count), np.nan)
        tail = (1 - level) / 2
        means, units = self._means(), self.count
        bounds = self._delta(means, tail)
        alike = self.lowest == self.highest
        plain = self.binary & alike[1:].all(axis=0) & (self.bounds is not None) & (units > 0)
        first = self.sums[0][0]
        if plain.any():
            for row, rate in enumerate(mid_p_rate(first, units, np.array([[1 - tail], [tail]]))):
                bounds[row] = np.where(plain, self._of(np.stack([rate, *means[1:]])), bounds[row])
        ends = ends_if_all_agree(list(means), alike[0], self.bounds, units, tail, self.aggregate)
        bounds = np.stack([np.fmin(bounds[0], ends[0]), np.fmax(bounds[1], ends[1])])
        if self.aggregate.form == "mean" and self.bounds is not None:
            few = ends_of_few(first, self.products[0][0, 0], units, self.bounds, tail, FEW)
            few = np.where(plain, np.nan, few)
            bounds = np.stack([np.fmin(bounds[0], few[0]), np.fmax(bounds[1], few[1])])
        known = (self.defined > 1) & ~self.without_spread()
        return np.where(known, bounds[0], np.nan), np.where(known, bounds[1], np.nan)

    def _delta(self, means: FloatArray, tail: float) -> FloatArray:
        from scipy.special import stdtrit

        units = self.count
        value = self._of(means)
        spread = np.sqrt(np.clip(self._variance(means), 0.0, None) / np.maximum(units - 1, 1))
        reach = -stdtrit(np.maximum(units - 1.0, 1.0), tail) * spread
        with np.errstate(invalid="ignore"):
            return np.stack([value - reach, value + reach])

    def _means(self) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.has_figures, self.sums[0], np.nan) / self.count

    def _of(self, means: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.aggregate.value(*means)

    def _variance(self, means: FloatArray) -> FloatArray:
        """The variance of the figure for one query, from the parts' covariances and the figure's slopes."""
        with np.errstate(invalid="ignore", divide="ignore"):
            covariance = self.products[0] / self.count - means[:, None] * means[None, :]
        slopes = np.zeros_like(means)
        for part in range(len(means)):
            step = np.zeros_like(means)
            step[part] = _STEP * np.sqrt(np.clip(covariance[part, part], 0.0, None) / np.maximum(self.count, 1))
            with np.errstate(invalid="ignore", divide="ignore"):
                slope = (self._of(means + step) - self._of(means - step)) / (2 * step[part])
            slopes[part] = np.where(np.isfinite(slope), slope, 0.0)
        result: FloatArray = np.einsum("id,ijd,jd->d", slopes, covariance, slopes)
        return result


def _sums_and_products(parts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The sums of float64[queries, parts, depths], and of the products of each two parts, with what rounding lost."""
    width, depths = parts.shape[1:]
    sums, products = np.zeros((2, width, depths)), np.zeros((2, width, width, depths))
    at_once = max(1, _CELLS // max(1, width * width * depths))
    for start in range(0, len(parts), at_once):
        some = parts[start : start + at_once]
        sums, products = _plus(sums, _summed(some)), _plus(products, _summed(some[:, :, None] * some[:, None]))
    return sums, products


def _summed(rows: FloatArray) -> FloatArray:
    """The sum of one row or more, and what rounding lost of it: float64[2, ...]."""
    total = np.stack([rows, np.zeros_like(rows)])
    while total.shape[1] > 1:
        if total.shape[1] % 2:
            total = np.concatenate([total, np.zeros_like(total[:, :1])], axis=1)
        total = _plus(total[:, ::2], total[:, 1::2])
    return total[:, 0]


def _plus(one: FloatArray, other: FloatArray) -> FloatArray:
    """The sum of two sums with what rounding lost of them: float64[2, ...] (Knuth 1969, The Art, 4.2.2)."""
    total = one[0] + other[0]
    added = total - one[0]
    lost = (one[0] - (total - added)) + (other[0] - added) + one[1] + other[1]
    rounded = total + lost
    return np.stack([rounded, lost - (rounded - total)])
