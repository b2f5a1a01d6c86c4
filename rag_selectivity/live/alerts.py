"""Alarms about live retrievals: conditions such as `Success < .8` or `p95(seconds) > 2`, by a sequential test."""

import logging
import math
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.inference.sequential import RiseDetector
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.watching import Faults, shared_lock
from rag_selectivity.log import LOG
from rag_selectivity.measures import Measure, Outcome, parse_measure
from rag_selectivity.measures.conditions import limit_of, parts_of
from rag_selectivity.tables.cells import check_number, check_whole
from rag_selectivity.wording import amount, counted

#: The expected number of retrievals until a false alarm is at least this.
FALSE_ALARM_EVERY = 100_000
#: What can be watched of every retrieval, labelled or not.
TRAFFIC: dict[str, Callable[[Retrieval], float | None]] = {
    "tokens": lambda retrieval: None if retrieval.failed else retrieval.tokens,
    "seconds": lambda retrieval: None if retrieval.failed else retrieval.seconds,
    "shown": lambda retrieval: None if retrieval.failed else len(retrieval.shown),
    "empty": lambda retrieval: not retrieval.shown and not retrieval.failed,
    "failed": lambda retrieval: retrieval.failed,
    # Of a request, which may have several retrievals.
    "outcome": lambda retrieval: None,
}
#: Those without an upper end. Shares are quantities that lie between 0 and 1.
_UNBOUNDED = frozenset({"tokens", "seconds", "shown"})
#: That a mean is below a limit cannot be shown of numbers without an upper end, so they are cut at this many limits.
_CUT = 10.0
#: What is tested, by how a measure aggregates: for a limit the constant, and the factors of its first two parts.
#: −log2 of a mean is above the limit if the mean is below 2^−limit.
_TESTED: dict[str, Callable[[float], tuple[float, float, float]]] = {
    "mean": lambda limit: (-limit, 1.0, 0.0),
    "ratio": lambda limit: (0.0, 1.0, -limit),
    "bits": lambda limit: (0.0, 1.0, -(2.0**limit)),
    "ceiling": lambda limit: (2.0**-limit, -1.0, 0.0),
}
#: From so many values on, no random baseline is expected to be more than twice the largest so far.
_KNOWN_AFTER = 50
#: The largest number of bits whose power of 2 is a float.
_MOST_BITS = 1000.0


@dataclass(frozen=True, slots=True)
class Alarm:
    """A condition that is shown to hold, or to hold no longer.

    Attributes
    ----------
    condition : str
        As it was given: `Success < .8`.
    value : float
        The figure over the last `n` retrievals that have one. A quantile: over at most `window` of them. They are
        those since the change probably began, which show it most: the true figure is probably less extreme.
    n : int
        Retrievals that the value is of: those since the change probably began; of a quantile, no more than the window.
    raised : bool
        False when the condition is shown to hold no longer.
    since : float
        When the change probably began, in seconds since 1970.
    """

    condition: str
    value: float
    n: int
    raised: bool
    since: float = math.nan

    def __str__(self) -> str:
        began = f" since {datetime.fromtimestamp(self.since, UTC):%Y-%m-%d %H:%M:%S} UTC" if self.since > 0 else ""
        # The moment was chosen because the figure is beyond the limit.
        true = " (the true figure may be nearer to the limit)" if self.raised else ""
        over = f"{amount(self.value)} over the last {counted(self.n, 'retrieval')}{began}{true}"
        return f"{'ALARM' if self.raised else 'No longer'} {self.condition}: {over}"


class _Mark(NamedTuple):
    """How many retrievals there had been at a time, and the sums of their parts."""

    n: int
    sums: tuple[float, ...]
    time: float


class _Watched:
    """A condition, the figures of its window, and the test for its change.

    Tested is the mean of constant + factor · first part + baseline · second part, which is above 0 exactly if the
    figure is above the limit. The first part lies from `low` to `high`, the second, a random baseline, from 0 to 1.

    Raises
    ------
    InputError
        If the text is not a condition, names no figure, or has a limit that no figure can have.
    """

    def __init__(self, text: str, window: int, false_alarm_every: float) -> None:
        if (found := parts_of(text, r"p\d{1,2}")) is None:
            raise InputError(f"alert {text!r} is no condition such as 'Harm > .4' or 'p95(seconds) > 2'")
        self.text, self.figure, self.above = text.strip(), found.name, found.sign[0] == ">"
        self.limit = limit_of(found.limit, f"alert {text!r}")
        percent = int(found.calls[0][1:]) if found.calls else None
        if percent == 0 or (percent is not None and found.name not in _UNBOUNDED):
            raise InputError(f"alert {text!r}: quantiles are known of {', '.join(sorted(_UNBOUNDED))}, from p1 to p99")
        if found.name in TRAFFIC and found.name not in _UNBOUNDED and not 0 <= self.limit <= 1:
            raise InputError(f"alert {text!r}: {found.name} is a share from 0 to 1: 5% is .05")
        self.quantile = None if percent is None else percent / 100
        # Of single values, the limit itself is not below it, and is above only if the condition says so.
        self._beyond = self.limit if found.sign in ("<", ">=") else math.nan
        self.measure = None if found.name in TRAFFIC else self._measure()
        #: The constant, factor and baseline; None while the measure is unknown, or for one that cannot be tested.
        self._weights: tuple[float, float, float] | None = None
        self._low, self._high = 0.0, 1.0
        if self.measure is None:
            # A quantile is above a limit if enough single values are.
            self._weights = (-self.limit if self.quantile is None else self.quantile - 1, 1.0, 0.0)
            self._high = math.inf if self.quantile is None and found.name in _UNBOUNDED else 1.0
        self.outcome: Outcome | None = None
        self._largest, self._seen, self._without = 0.0, 0, 0
        self._window: deque[tuple[float, ...]] = deque(maxlen=window)
        self._false_alarm_every, self._is_raised = false_alarm_every, False
        self._begin()

    def _measure(self) -> Measure:
        try:
            measure = parse_measure(self.figure)
        except InputError as error:
            meant = did_you_mean(self.figure, TRAFFIC)
            wrong = f"there is no figure {self.figure!r}{meant}" if meant else f"{error} (or {', '.join(TRAFFIC)})"
            if self.figure == "labelled":
                wrong = "no alert can watch it: compare traffic.labelled with traffic.retrievals yourself"
            raise InputError(f"alert {self.text!r}: {wrong}") from None
        if abs(self.limit) > _MOST_BITS and measure.name.startswith("BoR"):
            raise InputError(f"alert {self.text!r}: the limit must be from −{_MOST_BITS:g} to {_MOST_BITS:g} bits")
        self.figure = str(measure)
        return measure

    @property
    def name(self) -> str:
        """Of the figure: `BoR@10`, `tokens`, `p95(seconds)`."""
        return self.figure if self.quantile is None else f"p{round(100 * self.quantile)}({self.figure})"

    def take(self, outcome: Outcome) -> list[tuple[float, ...]]:
        """The parts of the measure for each retrieval that has a figure."""
        if self.outcome is None:
            if (form := outcome.aggregate.form) != "ceiling":
                self._low, self._high = outcome.ends_at(0) or (0.0, math.inf if form == "mean" else 1.0)
            if form in _TESTED:
                self._weights = _TESTED[form](self.limit)
            else:
                LOG.error("alert %r: %s is no mean, so it cannot be tested", self.text, self.measure)
            if self.measure is not None and (whole := self.measure.upper_end) is not None:
                LOG.warning("alert %r: passages without a label do not count; in %s they do", self.text, whole)
        self.outcome = outcome
        rows = np.stack([part[:, 0] for part in outcome.parts], axis=1)
        known = rows[~np.isnan(rows[:, 0])]
        if not len(known):
            self.lack(len(rows), outcome.reasons[0])
        return list(map(tuple, known.tolist()))

    def lack(self, count: int, why: str) -> None:
        """So many retrievals more have no figure; once a window of them lacks it, the log says why."""
        before, self._without = self._without, self._without + count
        if before < (self._window.maxlen or 0) <= self._without:
            silent = f"alert {self.text!r} cannot go off: no figure in {self._without:,} retrievals"
            LOG.warning("%s, since %s", silent, why)

    def _begin(self) -> None:
        self._detector: RiseDetector[_Mark] = RiseDetector(self._false_alarm_every)
        self._total = _Mark(0, (), 0.0)

    def add(self, parts: tuple[float, ...]) -> Alarm | None:
        """Take in the parts of one retrieval; the alarm if a change is shown."""
        self._window.append(parts)
        self._without = 0
        if self._weights is None:
            return None
        before, now = self._total, time.time()
        mark = _Mark(before.n, before.sums or (0.0,) * len(parts), now)
        tested = parts if self.quantile is None else (float(parts[0] > self.limit or parts[0] == self._beyond),)
        value, lowest, highest = self._excess(tested, *self._weights)
        bet = (value, -lowest) if self.above != self._is_raised else (-min(value, highest), highest)
        is_shown = self._detector.add(*bet, mark)
        self._total = _Mark(mark.n + 1, tuple(map(sum, zip(mark.sums, parts, strict=True))), now)
        return self._change(self._detector.mark or mark) if is_shown else None

    def _excess(
        self, parts: tuple[float, ...], constant: float, factor: float, baseline: float
    ) -> tuple[float, float, float]:
        """What is tested, and the lowest and the highest that it could have been."""
        value, ends = constant + factor * parts[0], (constant + factor * self._low, constant + factor * self._high)
        lowest, highest = min(ends), max(ends)
        if baseline:
            bound = min(1.0, 2 * self._largest) if self._seen >= _KNOWN_AFTER and self._largest else 1.0
            lowest, highest = lowest + min(0.0, baseline) * bound, highest + max(0.0, baseline) * bound
            self._largest, self._seen = max(self._largest, parts[1]), self._seen + 1
            value += baseline * parts[1]
        if highest == math.inf:
            # The constant is minus the limit here.
            highest = max(0.0, (_CUT - 1) * -constant)
        return value, lowest, highest

    def _change(self, began: _Mark) -> Alarm:
        n = self._total.n - began.n
        if self.quantile is None:
            sums = zip(self._total.sums, began.sums, strict=True)
            value = self._figure([(after - before) / n for after, before in sums])
        else:
            n = min(n, len(self._window))  # older values are not kept
            value = self._quantile(list(self._window)[-n:])
        self._is_raised = not self._is_raised
        alarm = Alarm(self.text, value, n, self._is_raised, began.time)
        self._begin()
        return alarm

    def _figure(self, means: Sequence[float]) -> float:
        if self.outcome is None:
            return means[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(self.outcome.aggregate.value(*(np.array([mean]) for mean in means))[0])

    def _quantile(self, rows: Sequence[tuple[float, ...]]) -> float:
        return float(np.quantile([row[0] for row in rows], self.quantile or 0.0, method="inverted_cdf"))

    def value(self) -> float:
        """The figure over the window; NaN before there is one."""
        if not self._window:
            return math.nan
        if self.quantile is not None:
            return self._quantile(self._window)
        return self._figure(np.array(self._window).mean(axis=0).tolist())


class Alerts:
    """Watches conditions such as `Success < .8`, `Harm@10 > .3`, `tokens > 8000`, `p95(seconds) > 2` or `failed > .05`.

    Below .074 bits of BoR_max a random draw succeeds in 95 % of the queries: the collapse zone. A measure without a
    depth is of all that was shown.

    An alarm goes out when the retrievals show that a condition began to hold, and again when they show that it holds no
    longer: to the log `rag_selectivity`, to `on_alert`, and to OpenTelemetry where that is installed (the gauge
    `rag_selectivity.window` by figure and monitor, the counter `rag_selectivity.alarms` by condition and monitor). No
    value of a short window decides this, but the test of `rag_selectivity.inference.sequential.RiseDetector`:

    - A condition on a mean (or on a ratio of means such as BoR, or its logarithm) is about the mean of one quantity for
      each retrieval: `BoR < 2` holds if success − 4 · random success is below 0 on average.
    - If every retrieval fails, `Success < .8` goes off after 9 of them and `Success < .5` after 21, but `BoR < L` after
      about 15 · 2^(BoR_max − L): after 1,253 for `BoR < 2` at a BoR_max of 8.4 bits. Set L a little below the usual
      BoR.
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
        check_whole("window", window or 0)
        check_number("false_alarm_every", false_alarm_every or 0, above=1)
        self._watched = [_Watched(text, window, float(false_alarm_every)) for text in conditions]
        #: What is to be sent out.
        self.unsent: list[Alarm] = []
        self._on_alert, self.name, self.guard = on_alert, name, Faults("on_alert failed")
        self._lock = shared_lock()
        #: OpenTelemetry's, where it is installed.
        self._counter: Any = None
        if self._watched:
            with suppress(ImportError):
                from opentelemetry import metrics

                self._counter = _instruments(metrics)
                _observed.add(self)

    @property
    def measures(self) -> list[Measure]:
        """What has to be measured for the conditions."""
        return [watched.measure for watched in self._watched if watched.measure is not None]

    def traffic(self, retrieval: Retrieval) -> None:
        """Take in what is known of any retrieval, labelled or not, but for its outcome."""
        for watched in self._watched:
            value = TRAFFIC[watched.figure](retrieval) if watched.measure is None else None
            if value is not None and 0 <= value < math.inf:
                self._add(watched, [(float(value),)])

    def outcome(self, value: float) -> None:
        """Take in the first outcome of a request."""
        for watched in self._watched:
            if watched.figure == "outcome":
                self._add(watched, [(float(value),)])

    def figures(self, outcomes: Mapping[Measure, Outcome] | str) -> None:
        """Take in measured retrievals: the outcome of each measure at its depth; or why one could not be measured."""
        for watched in self._watched:
            if watched.measure is not None and isinstance(outcomes, str):
                watched.lack(1, outcomes)
            elif watched.measure is not None and not isinstance(outcomes, str) and watched.measure in outcomes:
                self._add(watched, watched.take(outcomes[watched.measure]))

    def _add(self, watched: _Watched, rows: Iterable[tuple[float, ...]]) -> None:
        with self._lock:
            self.unsent += [alarm for row in rows if (alarm := watched.add(row)) is not None]

    def check(self) -> None:
        """Send out what has changed."""
        with self._lock:
            alarms, self.unsent = self.unsent, []
        for alarm in alarms:
            LOG.log(logging.WARNING if alarm.raised else logging.INFO, "%s", alarm)
            if self._counter is not None and alarm.raised:
                self._counter.add(1, {"condition": alarm.condition, "monitor": self.name})
            if self._on_alert is not None:
                with self.guard:
                    self._on_alert(alarm)

    def values(self) -> dict[str, float]:
        """The figure of each condition over its window; NaN before there is one."""
        with self._lock:
            return {watched.name: watched.value() for watched in self._watched}


#: One gauge for the whole process, since a meter takes a name once; it must not keep monitors alive.
_observed: weakref.WeakSet[Alerts] = weakref.WeakSet()


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
