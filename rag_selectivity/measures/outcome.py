"""The figures of a measure for every query, how they make one figure, and where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
#: A draw takes every passage once. A list that repeats an id holds chunks of one document, or copies: R, N and K then
#: count different things.
_REPEATS = (
    "lists repeat a passage within their top K: if these are chunks of documents, give passages_of=… (-c "
    "data.passages_of=FILE); if they are copies, duplicates='drop' (-c rules.duplicates=drop) takes them out, and "
    "duplicates='count_once' lets them fill their slots (how-to: chunks-and-documents) [repeated-passages]"
)
#: In more than one of so many lists repeats are no accident.
_ONE_OF = 10


@dataclass(frozen=True, slots=True)
class Refusal:
    """How many of the lists of a dataset repeat a passage within each depth. Parts of a dataset add their numbers.

    >>> both = Refusal((0, 1), 1) + Refusal((0, 1), 12)
    >>> both.refused.tolist(), both.reason(1)[:33]
    ([False, True], '2 of 13 lists repeat a passage wi')
    """

    repeating: tuple[int, ...]
    lists: int

    @property
    def refused(self) -> NDArray[np.bool_]:
        """Whether the measure has no figure at each depth: bool[depths]."""
        return _ONE_OF * np.array(self.repeating, np.int64) > self.lists

    def reason(self, column: int) -> str:
        """Why there is no figure at a depth."""
        return f"{self.repeating[column]} of {self.lists} {_REPEATS}"

    def at(self, columns: slice) -> Refusal:
        """At some of the depths."""
        return Refusal(self.repeating[columns], self.lists)

    def __add__(self, other: Refusal) -> Refusal:
        both = zip(self.repeating, other.repeating, strict=True)
        return Refusal(tuple(one + more for one, more in both), self.lists + other.lists)


def joint_refusal(refusals: Iterable[Refusal | None]) -> Refusal | None:
    """The refusal of a dataset, from those of its parts; None if no part has one."""
    given = [refusal for refusal in refusals if refusal is not None]
    return sum(given[1:], given[0]) if given else None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """How the means of a measure's parts become its value over all queries.

    Attributes
    ----------
    statistic : callable
        Means of the parts → a finite number of which the value is a monotone function. Intervals are quantiles of this.
    link : callable
        statistic → value, applied to quantiles: log2 after, so that a resample without a success is no NaN.
    exact : callable or None
        Means of the parts → value, where this has a form that keeps more digits.
    form : {"mean", "ratio", "bits", "ceiling", "other"}
        The mean of the first part; the ratio of the first two parts' means, or log2 of it; −log2 of the first part's
        mean; or something else. The last two are properties of corpus, labels and depth and are not compared between
        runs.
    """

    statistic: Callable[..., FloatArray]
    link: Callable[[FloatArray], FloatArray]
    form: Literal["mean", "ratio", "bits", "ceiling", "other"] = "other"
    exact: Callable[..., FloatArray] | None = None

    def value(self, *means: FloatArray) -> FloatArray:
        """The value of means of the parts."""
        return self.link(self.statistic(*means)) if self.exact is None else self.exact(*means)


def itself(mean: FloatArray, *_: FloatArray) -> FloatArray:
    """The mean of the first part."""
    return mean


def _ratio(top: FloatArray, bottom: FloatArray, *_: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return top / bottom


def log2_of_ratio(ratio: FloatArray) -> FloatArray:
    """A ratio in bits: −∞ for 0, never −0.0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log2(ratio) + 0.0


MEAN = Aggregate(itself, itself, "mean")
RATIO = Aggregate(_ratio, itself, "ratio")
BITS_OF_RATIO = Aggregate(_ratio, log2_of_ratio, "bits")


#: Why a figure of all queries together is undefined.
OF_A_PART = "the lists of the other queries are known of a whole run only, not of a part of its queries"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A measure's figures for every query.

    Attributes
    ----------
    parts : tuple of float64[queries, depths]
        The quantities whose means over the defined queries make the value; NaN where a query is undefined.
    undefined : str
        Why a query may be undefined.
    aggregate : Aggregate
    bounds : (low, high) or None
        Between which the first part lies, whatever the queries; None where it is a property of corpus,
        labels and depth, of which no retriever's luck is a part.
    premise : bool
        Whether the labels hold what the measure speaks of at all (junk, for Harm).
    baseline : int or None
        Which of the parts is the random baseline, whose mean few queries can carry.
    refused : Refusal or None
        At which depths the measure is undefined for the whole dataset that these queries are a part of.
    weights : float64[queries] or None
        How much each query counts in means over queries, above 0; None where all count alike.
    of_all : bool
        Whether the figures are those of all queries together: a part of them has none.
    """

    parts: tuple[FloatArray, ...]
    undefined: str
    aggregate: Aggregate = MEAN
    bounds: tuple[Any, Any] | None = (0.0, 1.0)
    premise: bool = True
    baseline: int | None = None
    refused: Refusal | None = None
    weights: FloatArray | None = None
    of_all: bool = False

    def settled(self) -> Outcome:
        """The outcome of a whole dataset: without its premise, or where it is refused, every query is undefined."""
        if self.premise and self.refused is None:
            return self
        nowhere = np.full(self.parts[0].shape[1], not self.premise)
        if self.refused is not None:
            nowhere |= self.refused.refused
        if not nowhere.any():
            return self
        return replace(self, parts=tuple(np.where(nowhere, np.nan, part) for part in self.parts), premise=True)

    @property
    def reasons(self) -> list[str]:
        """Why a query, or all of them, may be undefined at each depth."""
        refused = [False] * self.parts[0].shape[1] if self.refused is None else self.refused.refused.tolist()
        return [
            self.refused.reason(i) if self.refused is not None and no else self.undefined
            for i, no in enumerate(refused)
        ]

    @classmethod
    def beside(cls, outcomes: Sequence[Outcome]) -> Outcome:
        """The outcome at all depths from those at some of them, one after the other."""
        parts = tuple(map(np.hstack, zip(*(outcome.parts for outcome in outcomes), strict=True)))
        refused = None
        given = [outcome.refused for outcome in outcomes if outcome.refused is not None]
        if given:
            refused = Refusal(tuple(count for each in given for count in each.repeating), given[0].lists)
        ends = [outcome.ends for outcome in outcomes if outcome.ends is not None]
        bounds = (*np.hstack(ends),) if len(ends) == len(outcomes) else None
        premise = any(outcome.premise for outcome in outcomes)
        return replace(outcomes[0], parts=parts, bounds=bounds, premise=premise, refused=refused)

    @property
    def ends(self) -> FloatArray | None:
        """Between what the first part lies at each depth: float64[2, depths]; None where that is not known."""
        if self.bounds is None:
            return None
        ends = np.empty((2, self.parts[0].shape[1]))
        ends[0], ends[1] = self.bounds
        return ends

    def over(self, rows: NDArray[Any] | slice) -> Outcome:
        """The outcome of some of its queries, by mask, by position or by slice."""
        weights = None if self.weights is None else self.weights[rows]
        # The figures of a depth lie side by side, so that they are added up fast.
        part = replace(self, parts=tuple(np.asfortranarray(part[rows]) for part in self.parts), weights=weights)
        if not self.of_all or len(part.parts[0]) == len(self.parts[0]):
            return part
        return replace(part, parts=tuple(np.full_like(each, np.nan) for each in part.parts), undefined=OF_A_PART)

    def counting(self) -> FloatArray | None:
        """How much each query counts at each depth, from 0 (undefined) to 1: float64[queries, depths].

        None where all queries count alike, so that there is nothing to weight. At a depth at which all defined queries
        have the same weight, all of them have 1.
        """
        if self.weights is None or not len(self.weights) or self.weights.min() == self.weights.max():
            return None
        counts: FloatArray = self.defined * self.weights[:, None]
        largest = counts.max(axis=0)
        return counts / np.where(largest > 0, largest, 1.0)

    def at(self, columns: slice) -> Outcome:
        """The outcome at some of its depths."""
        ends = self.ends
        bounds = None if ends is None else (*ends[:, columns],)
        refused = None if self.refused is None else self.refused.at(columns)
        return replace(self, parts=tuple(part[:, columns] for part in self.parts), bounds=bounds, refused=refused)

    def ends_at(self, column: int) -> tuple[float, float] | None:
        """Between what the first part lies at one of the depths; None where that is not known."""
        ends = self.ends
        return None if ends is None else (*ends[:, column].tolist(),)

    def without_spread(self) -> NDArray[np.bool_]:
        """Whether it is a property of corpus and labels that all queries share, at each depth: bool[depths]."""
        if self.bounds is not None:
            return np.zeros(self.parts[0].shape[1], bool)
        first = self.parts[0]
        lowest = np.where(self.defined, first, np.inf).min(axis=0, initial=np.inf)
        same: NDArray[np.bool_] = lowest == np.where(self.defined, first, -np.inf).max(axis=0, initial=-np.inf)
        return same

    def effective_queries(self) -> FloatArray | None:
        """Over how many queries the random baseline is spread: (Σp)²/Σp² at each depth; None without a baseline.

        With weights it is (Σwp)²/Σ(wp)².
        As many as there are where chance is the same for all of them; 1 where a single query carries it. Infinite
        where all queries have the very same chance, so that there is no spread to know (Kish 1965, Survey Sampling).
        """
        if self.baseline is None:
            return None
        chance, counts = self.parts[self.baseline], self.counting()
        carried = chance if counts is None else chance * counts
        lowest = np.where(np.isnan(chance), np.inf, chance).min(axis=0, initial=np.inf)
        highest = np.where(np.isnan(chance), -np.inf, chance).max(axis=0, initial=-np.inf)
        with np.errstate(invalid="ignore", divide="ignore"):
            effective = np.nansum(carried, axis=0) ** 2 / np.nansum(carried**2, axis=0)
            return np.where(highest - lowest <= 1e-12 * np.abs(highest), np.inf, effective)

    def value(self, weights: NDArray[Any] | None = None) -> FloatArray:
        """The measure's figure at each depth; with weights, as if each query were there so many times.

        By default the weights are those of the outcome.
        """
        own = self.counting() if weights is None else None
        counted = self.defined * (np.ones(len(self.parts[0])) if weights is None else weights)[:, None]
        counted = counted if own is None else own
        with np.errstate(invalid="ignore", divide="ignore"):
            total = counted.sum(axis=0)
            # NumPy sums pairwise along the last axis only, and pairwise sums have the smaller rounding error.
            parts = [(np.where(self.defined, part, 0.0) * counted).T.copy() for part in self.parts]
            means = [part.sum(axis=1) / total for part in parts]
            return self.aggregate.value(*means)

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Whether each query counts at each depth."""
        result: NDArray[np.bool_] = ~np.isnan(self.parts[0])
        return result
