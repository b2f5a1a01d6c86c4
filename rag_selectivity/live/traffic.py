"""How many retrievals there were, how long, how slow and how often empty, and what became of them."""

import math
from collections import Counter
from dataclasses import dataclass, field

from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.live.retrieval import Retrieval

#: Bins are so narrow that a bin's middle is within 1 % of every number in it.
_BINS_PER_E = 50.5
#: Numbers outside this range count as its ends, which bounds the bins to 2,400.
_LOWEST, _HIGHEST = 1e-8, 1e12


class LogHistogram:
    """Counts numbers in bins of equal ratio, which gives each quantile with a relative error of at most 1 %.

    As DDSketch does (Masson, Rim and Lee 2019, VLDB). Numbers up to 1e-8, 0 included, count as 0.

    Examples
    --------
    >>> histogram = LogHistogram()
    >>> for milliseconds in range(1, 1001):
    ...     histogram.add(milliseconds)
    >>> 495 <= histogram.quantile(0.5) <= 505, 940.5 <= histogram.quantile(0.95) <= 959.5
    (True, True)
    """

    def __init__(self) -> None:
        self._counts: Counter[float] = Counter()
        self._total, self._sum = 0, 0.0

    def add(self, value: float | None) -> None:
        """Count a number; one that is not known, not finite or below 0 is left out."""
        if value is not None and 0 <= value < math.inf:
            self._total += 1
            self._sum += value
            self._counts[-math.inf if value <= _LOWEST else round(math.log(min(value, _HIGHEST)) * _BINS_PER_E)] += 1

    @property
    def mean(self) -> float:
        """The exact mean; NaN without numbers."""
        return self._sum / self._total if self._total else math.nan

    def quantile(self, share: float) -> float:
        """The smallest number that at least this share of all numbers does not exceed; NaN without numbers."""
        left = max(1, math.ceil(share * self._total))
        for place in sorted(self._counts):
            left -= self._counts[place]
            if left <= 0:
                return math.exp(place / _BINS_PER_E)
        return math.nan


@dataclass
class Traffic:
    """What was seen, labelled or not.

    Attributes
    ----------
    retrievals, labelled : int
        All, and those whose query has labels.
    failed, empty : int
        Retrievals that raised an error, were cancelled, or returned None; and those that returned no passage.
    sampled : int
        Retrievals that were drawn by the `sample_rate`, so that they could be measured, traced and graded.
    empty_passages, nan_scores : int
        Passages among those shown that have no text, and those whose score is NaN.
    outcomes : int
        Outcomes of the application.
    lost_outcomes : int
        Outcomes whose retrieval was not known, or no longer.
    not_traced : int
        Retrievals and late outcomes that the trace lacks, since it could not be written.
    shown, tokens, seconds, outcome : float
        Means; of retrievals that did not fail, and of outcomes. NaN where there are none.
    tokens_p95, seconds_p95 : float
        Quantiles of the same retrievals, at most 1 % off.
    outcome_low, outcome_high : float
        The ends of the 95 % interval of the mean outcome, for independent outcomes; NaN with fewer than two.
    """

    retrievals: int = 0
    labelled: int = 0
    failed: int = 0
    empty: int = 0
    sampled: int = 0
    empty_passages: int = 0
    nan_scores: int = 0
    outcomes: int = 0
    lost_outcomes: int = 0
    not_traced: int = 0
    _passages: int = field(default=0, repr=False)
    _good: float = field(default=0.0, repr=False)
    _tokens: LogHistogram = field(default_factory=LogHistogram, repr=False)
    _seconds: LogHistogram = field(default_factory=LogHistogram, repr=False)

    shown = property(lambda self: _share(self._passages, self.retrievals - self.failed))
    tokens = property(lambda self: self._tokens.mean)
    tokens_p95 = property(lambda self: self._tokens.quantile(0.95))
    seconds = property(lambda self: self._seconds.mean)
    seconds_p95 = property(lambda self: self._seconds.quantile(0.95))
    outcome = property(lambda self: _share(self._good, self.outcomes))
    outcome_low = property(lambda self: self._ends()[0])
    outcome_high = property(lambda self: self._ends()[1])

    def add(self, retrieval: Retrieval, *, labelled: bool, drawn: bool) -> None:
        """Count a retrieval; its outcome is counted apart."""
        self.retrievals += 1
        self.labelled += labelled
        self.sampled += drawn
        if retrieval.failed:
            # The time until an error, and nothing shown, say nothing about the retrievals that work.
            self.failed += 1
            return
        length = len(retrieval.shown)
        self._passages += length
        self.empty += not length
        self.empty_passages += retrieval.empty_passages or 0
        self.nan_scores += retrieval.nan_scores or 0
        self._tokens.add(retrieval.tokens)
        self._seconds.add(retrieval.seconds)

    def add_outcome(self, value: float, before: float | None = None) -> None:
        """Count an outcome from 0 to 1, in place of the one before."""
        self.outcomes += before is None
        # What outcomes replaced must leave no sum a hair below 0, or above their number.
        self._good = min(max(self._good + value - (before or 0.0), 0.0), float(self.outcomes))

    def _ends(self) -> tuple[float, float]:
        low, high = clopper_pearson(self._good, self.outcomes) if self.outcomes > 1 else (math.nan, math.nan)
        return float(low), float(high)


def _share(total: float, number: int) -> float:
    return total / number if number else math.nan
