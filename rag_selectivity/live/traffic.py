"""How many retrievals there were, how long, how slow and how often empty, and what became of them."""

from __future__ import annotations

import math
import random
from collections.abc import Collection
from dataclasses import replace

from rag_selectivity.live.request import Requests
from rag_selectivity.live.retrieval import Retrieval, Traffic
from rag_selectivity.log import LOG
from rag_selectivity.statistics.intervals_of_means import interval_of_mean
from rag_selectivity.statistics.log_histogram import LogHistogram

#: Each arm has a sample of its own, which must not fill the memory.
MOST_ARMS = 16
#: Of so many retrievals without labels all texts are read for their lengths, and of one in so many after that.
TEXTS_READ_FIRST, ONE_TEXT_IN = 1000, 16


class TrafficCounts:
    """The running sums behind a Traffic."""

    def __init__(self) -> None:
        self.labelled = self.sampled = self.lost_outcomes = 0
        self._retrievals = self._empty = self._failed = self._longest = 0
        self._empty_passages = self._nan_scores = self._tokens_known = 0
        self._shown, self._tokens, self._seconds = _Mean(), _Sizes(), _Sizes()
        self.outcomes = Outcomes()

    def add(self, retrieval: Retrieval) -> None:
        """Count a retrieval; its outcome is counted apart."""
        self._retrievals += 1
        if retrieval.failed:
            # The time until an error, and nothing shown, say nothing about the retrievals that work.
            self._failed += 1
            return
        length = len(retrieval.shown)
        self._empty += not length
        self._longest = max(self._longest, length)
        if retrieval.nan_scores:
            self._nan_scores += retrieval.nan_scores
        self._shown.add(length)
        self._seconds.add(retrieval.seconds)
        if retrieval.text_weight:
            self._empty_passages += retrieval.text_weight * (retrieval.empty_passages or 0)
            self._tokens_known += retrieval.tokens is not None
            self._tokens.add(retrieval.tokens, retrieval.text_weight)

    def traffic(self) -> Traffic:
        """The counts and means so far."""
        outcome, low, high = self.outcomes.mean()
        return Traffic(
            retrievals=self._retrievals,
            labelled=self.labelled,
            empty=self._empty,
            failed=self._failed,
            shown=self._shown.value,
            tokens=self._tokens.value,
            seconds=self._seconds.value,
            longest=self._longest,
            empty_passages=self._empty_passages,
            nan_scores=self._nan_scores,
            tokens_p50=self._tokens.histogram.quantile(0.5),
            tokens_p95=self._tokens.histogram.quantile(0.95),
            seconds_p50=self._seconds.histogram.quantile(0.5),
            seconds_p95=self._seconds.histogram.quantile(0.95),
            sampled=self.sampled,
            outcomes=self.outcomes.count,
            outcome=outcome,
            outcome_low=low,
            outcome_high=high,
            lost_outcomes=self.lost_outcomes,
            tokens_known=self._tokens_known,
        )


class SampledTexts:
    """Chooses retrievals whose texts are read for their lengths: the first 1,000, and then a random one in each 16."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._left = TEXTS_READ_FIRST
        self._place, self._chosen = -1, 0

    def weight(self) -> int:
        """How many retrievals the next one stands for; 0 if its texts are not to be read."""
        if self._left > 0:
            self._left -= 1
            return 1
        self._place = place = (self._place + 1) % ONE_TEXT_IN
        if not place:
            # Not every 16th, since requests that retrieve several times in a fixed order make a pattern.
            self._chosen = self._random.randrange(ONE_TEXT_IN)
        return ONE_TEXT_IN if place == self._chosen else 0


class LiveTraffic:
    """Counts all retrievals, and those of each arm. One thread at a time may call it."""

    def __init__(self) -> None:
        self._all = TrafficCounts()
        self._arms: dict[str, TrafficCounts] = {}
        self._requests = Requests()
        self._warned = False

    def add(self, retrieval: Retrieval, outcome: float | None, *, labelled: bool, drawn: bool) -> None:
        """Count a retrieval with its outcome."""
        for counts in self._of(retrieval.arm):
            counts.add(retrieval)
            counts.labelled += labelled
            counts.sampled += drawn
        if retrieval.id is not None:
            self._requests.put(retrieval.id, retrieval.arm, None)
            if outcome is not None:
                self.add_late(retrieval.id, outcome)
        elif outcome is not None:
            for counts in self._of(retrieval.arm):
                counts.outcomes.add(outcome)

    def add_late(self, id_: str, outcome: float) -> tuple[bool, bool]:
        """Count a request's outcome in place of the one before: whether the request is known, and it is the first."""
        try:
            arm, before = self._requests.get(id_)
        except KeyError:
            self._all.lost_outcomes += 1
            return False, False
        for counts in self._of(arm):
            if before is not None:
                counts.outcomes.add(before, times=-1)
            counts.outcomes.add(outcome)
        self._requests.put(id_, arm, outcome)
        return True, before is None

    @property
    def arms(self) -> Collection[str]:
        """The arms that are counted apart."""
        return self._arms.keys()

    def traffic(self) -> Traffic:
        """What was seen so far."""
        return replace(self._all.traffic(), arms={arm: counts.traffic() for arm, counts in self._arms.items()})

    def _of(self, arm: str | None) -> tuple[TrafficCounts, ...]:
        if arm is None:
            return (self._all,)
        if arm not in self._arms:
            if len(self._arms) >= MOST_ARMS:
                if not self._warned:
                    self._warned = True
                    LOG.warning("more than %d arms: the others are in the figures of all only", MOST_ARMS)
                return (self._all,)
            self._arms[arm] = TrafficCounts()
        return self._all, self._arms[arm]


class _Mean:
    """A running mean of the values that are known."""

    def __init__(self) -> None:
        self._sum: float = 0
        self._count = 0

    def add(self, value: float | None, times: int = 1) -> bool:
        """Count a value; whether it is one."""
        if value is None or not 0 <= value < math.inf:
            return False
        self._sum += times * value
        self._count += times
        return True

    @property
    def value(self) -> float:
        return self._sum / self._count if self._count else math.nan


class _Sizes(_Mean):
    """The same with quantiles."""

    def __init__(self) -> None:
        super().__init__()
        self.histogram = LogHistogram()

    def add(self, value: float | None, times: int = 1) -> bool:
        known = super().add(value, times)
        if known and value is not None:
            self.histogram.add(value, times)
        return known


class Outcomes:
    """Sums of outcomes from 0 to 1."""

    def __init__(self) -> None:
        self.count = 0
        self._sum = self._squares = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Count an outcome; −1 times takes it back."""
        self.count += times
        self._sum += times * value
        self._squares += times * value * value

    def mean(self) -> tuple[float, float, float]:
        """The mean with its 95 % interval."""
        if not self.count:
            return math.nan, math.nan, math.nan
        return self._sum / self.count, *interval_of_mean(self._sum, self._squares, self.count)
