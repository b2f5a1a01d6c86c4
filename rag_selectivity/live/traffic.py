"""How many retrievals there were, how long, how slow and how often empty, and what became of them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.live.log_histogram import LogHistogram
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.log import LOG

__all__ = ["LiveTraffic", "Traffic"]

#: Each arm has a sample of its own, which must not fill the memory.
MOST_ARMS = 16
#: Requests whose late outcome can still be joined; a hundred bytes or two each.
_MOST_REQUESTS = 50_000
#: On either side of the interval of the outcomes.
_TAIL = 0.025


@dataclass(frozen=True, slots=True)
class Traffic:
    """What was seen, labelled or not.

    Attributes
    ----------
    retrievals, labelled : int
        All, and those whose query has labels.
    failed, empty : int
        Retrievals that raised an error, were cancelled, or returned None; and those that returned no passage.
    shown, tokens, seconds : float
        Means over the retrievals that did not fail; NaN where nobody said.
    tokens_p50, tokens_p95, seconds_p50, seconds_p95 : float
        Quantiles over the same retrievals, each at most 1 % off: half of the retrievals have at most the p50, 95 % at
        most the p95.
    sampled : int
        Retrievals that were drawn by the `sample_rate`, so that they could be measured, traced and graded.
    longest : int
        The most passages shown at once.
    empty_passages, nan_scores : int
        Passages among those shown that have no text, and those whose score is NaN.
    outcomes : int
        Outcomes of the application.
    outcome : float
        Their mean; NaN without one.
    outcome_low, outcome_high : float
        The 95 % interval of the mean, for independent outcomes; NaN with fewer than two.
    lost_outcomes : int
        Outcomes whose retrieval was not known, or no longer.
    arms : {arm: Traffic}
        The same for each arm; empty unless retrievals name arms.
    not_traced : int
        Retrievals and late outcomes that the trace lacks, since it could not be written.
    """

    retrievals: int
    labelled: int
    empty: int
    failed: int
    shown: float
    tokens: float
    seconds: float
    longest: int
    empty_passages: int = 0
    nan_scores: int = 0
    tokens_p50: float = math.nan
    tokens_p95: float = math.nan
    seconds_p50: float = math.nan
    seconds_p95: float = math.nan
    sampled: int = 0
    outcomes: int = 0
    outcome: float = math.nan
    outcome_low: float = math.nan
    outcome_high: float = math.nan
    lost_outcomes: int = 0
    arms: Mapping[str, Traffic] = field(default_factory=dict)
    not_traced: int = 0


class _Sizes:
    """The mean and the quantiles of the values that are known."""

    def __init__(self) -> None:
        self._sum: float = 0
        self._count = 0
        self._histogram = LogHistogram()
        self.quantile = self._histogram.quantile

    def add(self, value: float | None) -> None:
        if value is not None and 0 <= value < math.inf:
            self._sum += value
            self._count += 1
            self._histogram.add(value)

    @property
    def mean(self) -> float:
        return self._sum / self._count if self._count else math.nan


class _Counts:
    """The running sums behind a Traffic."""

    def __init__(self) -> None:
        self.retrievals = self.labelled = self.sampled = self.empty = self.failed = self.lost_outcomes = 0
        self.shown = self.longest = self.empty_passages = self.nan_scores = 0
        self.tokens, self.seconds = _Sizes(), _Sizes()
        self.outcomes, self.outcome_sum = 0, 0.0

    def add(self, retrieval: Retrieval) -> None:
        """Count a retrieval; its outcome is counted apart."""
        self.retrievals += 1
        if retrieval.failed:
            # The time until an error, and nothing shown, say nothing about the retrievals that work.
            self.failed += 1
            return
        length = len(retrieval.shown)
        self.shown += length
        self.empty += not length
        self.longest = max(self.longest, length)
        self.empty_passages += retrieval.empty_passages or 0
        self.nan_scores += retrieval.nan_scores or 0
        self.tokens.add(retrieval.tokens)
        self.seconds.add(retrieval.seconds)

    def add_outcome(self, value: float, times: int = 1) -> None:
        """Count an outcome from 0 to 1; −1 times takes it back."""
        self.outcomes += times
        self.outcome_sum += times * value

    def traffic(self) -> Traffic:
        """The counts and means so far."""
        worked, n = self.retrievals - self.failed, self.outcomes
        low, high = clopper_pearson(self.outcome_sum, n, _TAIL) if n > 1 else (math.nan, math.nan)
        same = ("retrievals", "labelled", "empty", "failed", "longest", "empty_passages", "nan_scores", "sampled")
        return Traffic(
            **{name: getattr(self, name) for name in (*same, "outcomes", "lost_outcomes")},
            shown=self.shown / worked if worked else math.nan,
            tokens=self.tokens.mean,
            seconds=self.seconds.mean,
            tokens_p50=self.tokens.quantile(0.5),
            tokens_p95=self.tokens.quantile(0.95),
            seconds_p50=self.seconds.quantile(0.5),
            seconds_p95=self.seconds.quantile(0.95),
            outcome=self.outcome_sum / n if n else math.nan,
            outcome_low=float(low),
            outcome_high=float(high),
        )


class LiveTraffic:
    """Counts all retrievals, and those of each arm, and remembers the last requests. One thread at a time may call it.

    Attributes
    ----------
    arms : {arm: counts}
        The arms that are counted apart.
    """

    def __init__(self) -> None:
        self._all = _Counts()
        self.arms: dict[str, _Counts] = {}
        #: The arm and the outcome of each request, by its id.
        self._requests: OrderedDict[str, tuple[str | None, float | None]] = OrderedDict()
        self._has_warned = False

    def add(self, retrieval: Retrieval, outcome: float | None, *, labelled: bool, drawn: bool) -> None:
        """Count a retrieval with its outcome."""
        for counts in self._of(retrieval.arm):
            counts.add(retrieval)
            counts.labelled += labelled
            counts.sampled += drawn
            if outcome is not None and retrieval.id is None:
                counts.add_outcome(outcome)
        if retrieval.id is not None:
            arm, before = self._requests.pop(retrieval.id, (None, None))
            self._remember(retrieval.id, arm if retrieval.arm is None else retrieval.arm, before)
            if outcome is not None:
                self.add_late(retrieval.id, outcome)

    def add_late(self, id_: str, outcome: float) -> tuple[bool, bool]:
        """Count a request's outcome in place of the one before: whether the request is known, and it is the first."""
        if id_ not in self._requests:
            self._all.lost_outcomes += 1
            return False, False
        arm, before = self._requests.pop(id_)
        for counts in self._of(arm):
            if before is not None:
                counts.add_outcome(before, times=-1)
            counts.add_outcome(outcome)
        self._remember(id_, arm, outcome)
        return True, before is None

    def _remember(self, id_: str, arm: str | None, outcome: float | None) -> None:
        self._requests[id_] = arm, outcome
        if len(self._requests) > _MOST_REQUESTS:
            self._requests.popitem(last=False)

    def traffic(self) -> Traffic:
        """What was seen so far."""
        return replace(self._all.traffic(), arms={arm: counts.traffic() for arm, counts in self.arms.items()})

    def _of(self, arm: str | None) -> tuple[_Counts, ...]:
        if arm is None:
            return (self._all,)
        if arm not in self.arms:
            if len(self.arms) >= MOST_ARMS:
                if not self._has_warned:
                    self._has_warned = True
                    LOG.warning("more than %d arms: the others are in the figures of all only", MOST_ARMS)
                return (self._all,)
            self.arms[arm] = _Counts()
        return self._all, self.arms[arm]
