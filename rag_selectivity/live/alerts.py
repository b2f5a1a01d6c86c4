"""Alarms about live retrievals, by a sequential test."""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.inference.sequential import RiseDetector
from rag_selectivity.live.conditions import (
    TRAFFIC,
    Condition,
    Excess,
    excess_of,
    excess_of_traffic,
    parse_condition,
)
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.log import LOG
from rag_selectivity.measures import Measure, Outcome

#: The expected number of retrievals until a false alarm is at least this.
FALSE_ALARM_EVERY = 100_000


@dataclass(frozen=True, slots=True)
class Alarm:
    """A condition that is shown to hold, or to hold no longer.

    Attributes
    ----------
    condition : str
        As it was given: `BoR < 2`.
    value : float
        The figure over the last `n` retrievals that have one. A quantile: over at most `window` of them.
    n : int
        Retrievals that the value is of: those since the change probably began; of a quantile, no more than the window.
    raised : bool
        False when the condition is shown to hold no longer.
    since : float
        When the change probably began, in seconds since 1970.
    evidence : float
        What a bet on the change has made of 1. A condition that does not hold makes this as large as the monitor's
        `false_alarm_every` once in that many retrievals, or less often.
    """

    condition: str
    value: float
    n: int
    raised: bool
    since: float = math.nan
    evidence: float = math.nan

    def __str__(self) -> str:
        state = "now" if self.raised else "no longer"
        began = f", since {datetime.fromtimestamp(self.since, UTC):%Y-%m-%d %H:%M:%S} UTC" if self.since > 0 else ""
        return f"{self.condition}: {state} ({self.value:.4g} over the last {self.n} retrievals{began})"


class _Mark(NamedTuple):
    """How many retrievals there had been at a time, and the sums of their parts."""

    n: int
    sums: tuple[float, ...]
    time: float


class _Watched:
    """A condition, the figures of its window, and the test for its change."""

    def __init__(self, condition: Condition, window: int, false_alarm_every: float) -> None:
        self.condition = condition
        self.outcome: Outcome | None = None
        self.is_refused = False
        self.excess: Excess | None = excess_of_traffic(condition) if condition.measure is None else None
        self._window: deque[tuple[float, ...]] = deque(maxlen=window)
        self._false_alarm_every, self._is_raised = false_alarm_every, False
        self._begin()

    def _begin(self) -> None:
        self._detector: RiseDetector[_Mark] = RiseDetector(self._false_alarm_every)
        self._total = _Mark(0, (), 0.0)

    def add(self, parts: tuple[float, ...]) -> Alarm | None:
        """Take in the parts of one retrieval; the alarm if a change is shown."""
        condition, excess = self.condition, self.excess
        self._window.append(parts)
        if excess is None:
            return None
        before, now = self._total, time.time()
        mark = _Mark(before.n, before.sums or (0.0,) * len(parts), now)
        tested = parts if condition.quantile is None else (float(parts[0] > condition.limit),)
        value, lowest, highest, cut = excess.of(tested)
        rising = condition.above != self._is_raised
        shown = self._detector.add(value, -lowest, mark) if rising else self._detector.add(-cut, highest, mark)
        self._total = _Mark(mark.n + 1, tuple(map(sum, zip(mark.sums, parts, strict=True))), now)
        return self._change(self._detector.mark or mark) if shown else None

    def _change(self, began: _Mark) -> Alarm:
        n = self._total.n - began.n
        if self.condition.quantile is None:
            sums = zip(self._total.sums, began.sums, strict=True)
            value = self._figure([(after - before) / n for after, before in sums])
        else:
            n = min(n, len(self._window))  # older values are not kept
            value = self._quantile(list(self._window)[-n:])
        self._is_raised = not self._is_raised
        alarm = Alarm(self.condition.text, value, n, self._is_raised, began.time, self._detector.evidence)
        self._begin()
        return alarm

    def _figure(self, means: Sequence[float]) -> float:
        if self.outcome is None:
            return means[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(self.outcome.aggregate.value(*(np.array([mean]) for mean in means))[0])

    def _quantile(self, rows: Sequence[tuple[float, ...]]) -> float:
        return float(np.quantile([row[0] for row in rows], self.condition.quantile or 0.0, method="inverted_cdf"))

    def value(self) -> float:
        """The figure over the window; NaN before there is one."""
        if not self._window:
            return math.nan
        if self.condition.quantile is not None:
            return self._quantile(self._window)
        return self._figure(np.array(self._window).mean(axis=0).tolist())


class Alerts:
    """Watches conditions such as `BoR < 2`, `Harm@10 > .3`, `tokens > 8000`, `p95(seconds) > 2` or `failed > .05`.

    Below .074 bits of BoR_max a random draw succeeds in 95 % of the queries: the collapse zone. A measure without a
    depth is of all that was shown.

    An alarm goes out when the retrievals show that a condition began to hold, and again when they show that it holds no
    longer: to the log `rag_selectivity`, to `on_alert`, and to OpenTelemetry where that is installed (the gauge
    `rag_selectivity.window` by figure and monitor, the counter `rag_selectivity.alarms` by condition and monitor). No
    value of a short window decides this, but the test of `rag_selectivity.inference.sequential.RiseDetector`:

    - A condition on a mean (or on a ratio of means such as BoR, or its logarithm) is about the mean of one quantity for
      each retrieval: `BoR < 2` holds if success − 4 · random success is below 0 on average.
    - `p95(seconds) > 2` holds if more than 5 % of the retrievals take more than 2 seconds.
    - While a condition does not hold, the expected number of retrievals until a false alarm is at least
      `false_alarm_every`; likewise, while it holds, until an alarm that it holds no longer. Each condition has a test
      of its own.
    - This is true of every distribution, with two limits. Numbers without an upper end (tokens, seconds, shown, lambda)
      are cut at ten times the limit when the test asks whether their mean is below the limit; it is not cut when the
      test asks whether it is above. And a test whether BoR or EF is above a limit expects no random success of more
      than twice the largest one among the retrievals before, from 50 retrievals on.
    - It is not true of the mean over a long time if retrievals depend on each other, as in bursts.

    Parameters
    ----------
    conditions : sequence of str
    window : int
        The last so many retrievals for which the figure exists: for `values` and the gauge.
    on_alert : callable, optional
        Takes each Alarm.
    name : str
        Of the monitor, in OpenTelemetry's attributes.
    false_alarm_every : float
    """

    def __init__(
        self,
        conditions: Sequence[str],
        *,
        window: int = 200,
        on_alert: Callable[[Alarm], Any] | None = None,
        name: str = "live",
        false_alarm_every: float = FALSE_ALARM_EVERY,
    ) -> None:
        if isinstance(conditions, str):
            raise InputError(f"alerts is a text, not a list of conditions: give alerts=[{conditions!r}]")
        if isinstance(window, bool) or not isinstance(window, int) or window < 1:
            raise InputError(f"window must be a whole number ≥ 1, got {window!r}")
        if isinstance(false_alarm_every, bool) or not 1 < false_alarm_every < math.inf:
            raise InputError(f"false_alarm_every must be a number of retrievals above 1, got {false_alarm_every!r}")
        self._watched = [_Watched(parse_condition(text), window, float(false_alarm_every)) for text in conditions]
        self._alarms: list[Alarm] = []
        self._on_alert, self.name = on_alert, name
        self._lock = threading.Lock()
        self._counter = _counter_of(self) if self._watched else None

    @property
    def measures(self) -> list[Measure]:
        """What has to be measured for the conditions."""
        return [watched.condition.measure for watched in self._watched if watched.condition.measure is not None]

    def traffic(self, retrieval: Retrieval) -> None:
        """Take in what is known of any retrieval, labelled or not."""
        for watched in self._watched:
            if watched.condition.measure is None:
                value = TRAFFIC[watched.condition.quantity](retrieval)
                if value is not None and 0 <= value < math.inf:
                    self._add(watched, [(float(value),)])

    def outcome(self, value: float) -> None:
        """Take in an outcome that became known after its retrieval."""
        for watched in self._watched:
            if watched.condition.quantity == "outcome":
                self._add(watched, [(float(value),)])

    def figures(self, outcomes: Mapping[Measure, tuple[Outcome, int]]) -> None:
        """Take in measured retrievals: the outcome of each measure that can be said, and the column of its depth."""
        for watched in self._watched:
            measure = watched.condition.measure
            if measure is None or measure not in outcomes:
                continue
            watched.outcome, column = outcomes[measure]
            if watched.excess is None and not watched.is_refused:
                watched.excess = excess_of(watched.condition, watched.outcome, column)
                watched.is_refused = watched.excess is None
                if watched.is_refused:
                    LOG.error("alert %r: %s is no mean, so it cannot be tested", watched.condition.text, measure)
            rows = np.stack([part[:, column] for part in watched.outcome.parts], axis=1)
            self._add(watched, map(tuple, rows[~np.isnan(rows[:, 0])].tolist()))

    def _add(self, watched: _Watched, rows: Iterable[tuple[float, ...]]) -> None:
        with self._lock:
            self._alarms += [alarm for row in rows if (alarm := watched.add(row)) is not None]

    @property
    def changed(self) -> bool:
        """Whether there is something to send out."""
        return bool(self._alarms)

    def check(self) -> None:
        """Send out what has changed."""
        with self._lock:
            alarms, self._alarms = self._alarms, []
        for alarm in alarms:
            LOG.log(logging.WARNING if alarm.raised else logging.INFO, "%s", alarm)
            if self._counter is not None and alarm.raised:
                self._counter.add(1, {"condition": alarm.condition, "monitor": self.name})
            if self._on_alert is not None:
                try:
                    self._on_alert(alarm)
                except Exception:
                    LOG.exception("on_alert failed for %s", alarm)

    def values(self) -> dict[str, float]:
        """The figure of each condition over its window; NaN before there is one."""
        with self._lock:
            return {watched.condition.name: watched.value() for watched in self._watched}


#: One gauge for the whole process, since a meter takes a name once; it must not keep monitors alive.
_observed: weakref.WeakSet[Alerts] = weakref.WeakSet()


def _counter_of(alerts: Alerts) -> Any:
    """A counter of alarms at OpenTelemetry's meter, beside the gauges; None where it is not installed."""
    try:
        from opentelemetry import metrics
    except ImportError:
        return None
    _observed.add(alerts)
    return _instruments(metrics)


@cache
def _instruments(metrics: Any) -> Any:
    meter = metrics.get_meter("rag_selectivity")

    def observe(_options: Any) -> list[Any]:
        return [
            metrics.Observation(value, {"figure": figure, "monitor": alerts.name})
            for alerts in list(_observed)
            for figure, value in alerts.values().items()
            if math.isfinite(value)
        ]

    meter.create_observable_gauge(
        "rag_selectivity.window", [observe], description="Figures over the window of the last retrievals"
    )
    return meter.create_counter("rag_selectivity.alarms", description="Conditions that began to hold")
