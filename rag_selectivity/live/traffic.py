"""How many retrievals there were, how long, how slow and how often empty, and what became of them."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field

from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.live.log_histogram import LogHistogram
from rag_selectivity.live.retrieval import Retrieval

__all__ = ["Requests", "Traffic"]

#: Requests whose late outcome can still be joined; a hundred bytes or two each.
_MOST_REQUESTS = 50_000
#: On either side of the interval of the outcomes.
_TAIL = 0.025


@dataclass(slots=True)
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
    longest : int
        The most passages shown at once.
    empty_passages, nan_scores : int
        Passages among those shown that have no text, and those whose score is NaN.
    outcomes : int
        Outcomes of the application.
    lost_outcomes : int
        Outcomes whose retrieval was not known, or no longer.
    not_traced : int
        Retrievals and late outcomes that the trace lacks, since it could not be written.
    """

    retrievals: int = 0
    labelled: int = 0
    failed: int = 0
    empty: int = 0
    sampled: int = 0
    longest: int = 0
    empty_passages: int = 0
    nan_scores: int = 0
    outcomes: int = 0
    lost_outcomes: int = 0
    not_traced: int = 0
    _shown: int = field(default=0, repr=False)
    _outcome: float = field(default=0.0, repr=False)
    _tokens: LogHistogram = field(default_factory=LogHistogram, repr=False)
    _seconds: LogHistogram = field(default_factory=LogHistogram, repr=False)

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
        self._shown += length
        self.empty += not length
        self.longest = max(self.longest, length)
        self.empty_passages += retrieval.empty_passages or 0
        self.nan_scores += retrieval.nan_scores or 0
        self._tokens.add(retrieval.tokens)
        self._seconds.add(retrieval.seconds)

    def add_outcome(self, value: float, before: float | None = None) -> None:
        """Count an outcome from 0 to 1, in place of the one before."""
        self.outcomes += before is None
        self._outcome += value - (before or 0.0)

    @property
    def shown(self) -> float:
        """The mean number of passages of the retrievals that did not fail; NaN without one."""
        worked = self.retrievals - self.failed
        return self._shown / worked if worked else math.nan

    @property
    def tokens(self) -> float:
        """The mean of the same retrievals; NaN where nobody said."""
        return self._tokens.mean

    @property
    def tokens_p50(self) -> float:
        """Half of them have at most so many; at most 1 % off."""
        return self._tokens.quantile(0.5)

    @property
    def tokens_p95(self) -> float:
        """95 % of them have at most so many; at most 1 % off."""
        return self._tokens.quantile(0.95)

    @property
    def seconds(self) -> float:
        """The mean of the same retrievals; NaN where nobody said."""
        return self._seconds.mean

    @property
    def seconds_p50(self) -> float:
        """Half of them take at most so long; at most 1 % off."""
        return self._seconds.quantile(0.5)

    @property
    def seconds_p95(self) -> float:
        """95 % of them take at most so long; at most 1 % off."""
        return self._seconds.quantile(0.95)

    @property
    def outcome(self) -> float:
        """The mean of the outcomes; NaN without one."""
        return self._outcome / self.outcomes if self.outcomes else math.nan

    @property
    def outcome_low(self) -> float:
        """The lower end of its 95 % interval, for independent outcomes; NaN with fewer than two."""
        return self._end(0)

    @property
    def outcome_high(self) -> float:
        """The upper end."""
        return self._end(1)

    def _end(self, side: int) -> float:
        return float(clopper_pearson(self._outcome, self.outcomes, _TAIL)[side]) if self.outcomes > 1 else math.nan


class Requests:
    """The outcomes of the last requests, by their ids."""

    def __init__(self) -> None:
        self._outcomes: OrderedDict[str, float | None] = OrderedDict()

    def __contains__(self, id_: str) -> bool:
        return id_ in self._outcomes

    def add(self, id_: str | None, outcome: float | None, traffic: Traffic) -> float | None:
        """Remember a request as the last, and count its outcome if there is one now; the one that it had before."""
        before = None
        if id_ is not None:
            before = self._outcomes.pop(id_, None)
            self._outcomes[id_] = before if outcome is None else outcome
            if len(self._outcomes) > _MOST_REQUESTS:
                self._outcomes.popitem(last=False)
        if outcome is not None:
            traffic.add_outcome(outcome, before)
        return before
