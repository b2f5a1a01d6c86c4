"""Alarms over a rolling window of live retrievals."""

from __future__ import annotations

import logging
import math
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.gates import compared
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.measures import Measure, Outcome, parse_measure

_log = logging.getLogger("rag_selectivity")
_CONDITION = re.compile(r"\s*(?P<name>[^<>]+?)\s*(?P<op>[<>]=?)\s*(?P<limit>\S+)\s*")

#: What can be watched besides measures, labelled or not: means over the retrievals of the window.
_TRAFFIC: dict[str, Callable[[Retrieval], float | None]] = {
    "tokens": lambda retrieval: retrieval.tokens,
    "seconds": lambda retrieval: None if retrieval.failed else retrieval.seconds,
    "shown": lambda retrieval: None if retrieval.failed else len(retrieval.shown),
    "empty": lambda retrieval: not retrieval.shown and not retrieval.failed,
    "failed": lambda retrieval: retrieval.failed,
}
_ENOUGH = 50


@dataclass(frozen=True, slots=True)
class Alarm:
    """A condition that began to hold, or no longer does.

    Attributes
    ----------
    condition : str
        As it was given: `BoR < 2`.
    value : float
        Over the window.
    n : int
        Retrievals that the value rests on.
    raised : bool
        False when the condition has ceased to hold.
    """

    condition: str
    value: float
    n: int
    raised: bool

    def __str__(self) -> str:
        state = "now" if self.raised else "no longer"
        return f"{self.condition}: {state} ({self.value:.4g} over the last {self.n} retrievals)"


@dataclass
class _Watched:
    """A condition with the figures of its window."""

    text: str
    name: str
    measure: Measure | None
    holds: Callable[[float], bool]
    window: deque[tuple[float, ...]]
    outcome: Outcome | None = None
    raised: bool = field(default=False)

    def value(self) -> float:
        if not self.window:
            return math.nan
        means = np.array(self.window).mean(axis=0)
        if self.outcome is None:
            return float(means[0])
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(self.outcome.aggregate.value(*(np.array([mean]) for mean in means))[0])


class Alerts:
    """Watches conditions such as `BoR < 2`, `BoR_max < .074`, `Harm@10 > .3` or `tokens > 8000`.

    Below .074 bits of BoR_max a random draw succeeds in 95 % of the queries: the collapse zone. A measure without a
    depth is of all that was shown. An alarm goes out when a condition begins to hold, and again when it ceases to: to
    the log `rag_selectivity`, to `on_alert`, and to OpenTelemetry where that is
    installed (gauges `rag_selectivity.window` by figure and monitor, a counter `rag_selectivity.alarms` by condition).

    Parameters
    ----------
    conditions : sequence of str
    window : int
        The last so many retrievals for which the figure exists; from 50 (or the window, if that is smaller) on.
    on_alert : callable, optional
        Takes each Alarm.
    name : str
        Of the monitor, in OpenTelemetry's attributes.
    """

    def __init__(
        self,
        conditions: Sequence[str],
        *,
        window: int = 200,
        on_alert: Callable[[Alarm], Any] | None = None,
        name: str = "live",
    ) -> None:
        if isinstance(window, bool) or not isinstance(window, int) or window < 1:
            raise InputError(f"window must be a whole number ≥ 1, got {window!r}")
        self._watched = [_parsed(text, window) for text in conditions]
        self._traffic = [watched for watched in self._watched if watched.measure is None]
        self._enough = min(_ENOUGH, window)
        self._on_alert = on_alert
        self._lock = threading.Lock()
        self.name = name
        self._counter = _counter_of(self) if self._watched else None

    @property
    def measures(self) -> list[Measure]:
        """What has to be measured for the conditions."""
        return [watched.measure for watched in self._watched if watched.measure is not None]

    def traffic(self, retrieval: Retrieval) -> None:
        """Take in what is known of any retrieval, labelled or not."""
        for watched in self._traffic:
            value = _TRAFFIC[watched.name](retrieval)
            if value is not None:
                with self._lock:
                    watched.window.append((value,))

    def figures(self, outcome_of: Callable[[Measure], tuple[Outcome, int] | None]) -> None:
        """Take in measured retrievals: a measure's outcome and the column of its depth."""
        with self._lock:
            for watched in self._watched:
                found = outcome_of(watched.measure) if watched.measure is not None else None
                if found is None:
                    continue
                outcome, column = found
                watched.outcome = outcome
                rows = np.stack([part[:, column] for part in outcome.parts], axis=1)
                watched.window.extend(map(tuple, rows[~np.isnan(rows[:, 0])].tolist()))

    def check(self) -> list[Alarm]:
        """Send out what has changed."""
        alarms = []
        with self._lock:
            for watched in self._watched:
                value = watched.value()
                if len(watched.window) < self._enough or math.isnan(value) or watched.holds(value) == watched.raised:
                    continue
                watched.raised = not watched.raised
                alarms.append(Alarm(watched.text, value, len(watched.window), watched.raised))
        for alarm in alarms:
            _log.log(logging.WARNING if alarm.raised else logging.INFO, "%s", alarm)
            if self._counter is not None and alarm.raised:
                self._counter.add(1, {"condition": alarm.condition, "monitor": self.name})
            if self._on_alert is not None:
                try:
                    self._on_alert(alarm)
                except Exception:
                    _log.exception("on_alert failed for %s", alarm)
        return alarms

    def values(self) -> dict[str, float]:
        """The figure of each condition over its window; NaN before there is one."""
        with self._lock:
            return {watched.name: watched.value() for watched in self._watched}


def _parsed(text: str, window: int) -> _Watched:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InputError(f"alert {text!r} is not a condition such as 'BoR < 2' or 'tokens > 8000'")
    try:
        limit = float(match["limit"])
    except ValueError:
        raise InputError(f"alert {text!r}: {match['limit']!r} is not a number") from None
    name, measure = match["name"], None
    if name not in _TRAFFIC:
        try:
            measure = parse_measure(name)
        except InputError as error:
            hint = did_you_mean(name, _TRAFFIC)
            raise InputError(f"alert {text!r}: {error}{hint and f', or{hint}'}; also: {', '.join(_TRAFFIC)}") from None
        name = str(measure)
    return _Watched(text.strip(), name, measure, compared(match["op"], limit), deque(maxlen=window))


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
