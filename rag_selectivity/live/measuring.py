"""Measures recorded retrievals in a thread of its own, so that the application's threads do not wait for it."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rag_selectivity.errors import SelectivityWarning
from rag_selectivity.live.alerts import Alerts
from rag_selectivity.live.arms import Arms
from rag_selectivity.live.figures import LiveFigures
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.traffic import LiveTraffic
from rag_selectivity.live.worker import Worker
from rag_selectivity.log import LOG
from rag_selectivity.tables.passage_counts import PassageCounts

__all__ = ["Measuring", "warn"]


#: Retrievals that wait to be measured; beyond these, the thread that records measures.
_MOST_WAITING = 8192
#: Batches that wait are measured together up to this size, since a join takes milliseconds however little it joins.
_TOGETHER = 512
#: A look at the figures gives up when nothing was measured for so long, as when `on_alert` does not return.
_SECONDS = 30.0
#: How long a thread that records waits, or looks for work, before it tries again to hand over its own.
_MOMENT = 0.01
#: So many seconds it only waits for the worker: each thread that measures leaves free memory of its own in the
#: process, which the C library keeps for that thread.
_PATIENCE = 0.2


class Measuring:
    """Measures batches of retrievals, in their order.

    Nothing is dropped: where batches come faster than they can be measured, the threads that bring them wait, and
    measure too if the worker does not get on.

    Parameters
    ----------
    figures : LiveFigures
    arms : Arms
    alerts : Alerts
        Gets the figures, and sends out what has changed.
    traffic : LiveTraffic
    count_passages : callable
        Gives the number of passages of each document as soon as they can be counted; called before a measurement.
    name : str
        Of the monitor, in warnings.
    """

    def __init__(
        self,
        figures: LiveFigures,
        arms: Arms,
        alerts: Alerts,
        traffic: LiveTraffic,
        count_passages: Callable[[], PassageCounts | None],
        name: str,
    ) -> None:
        self._figures, self._arms, self._alerts, self._traffic = figures, arms, alerts, traffic
        self._count_passages, self._name = count_passages, name
        self._lock = threading.Lock()
        self._has_warned = False
        self._worker = Worker(self._work, _MOST_WAITING, name="rag-selectivity-monitor")

    def later(self, batch: list[Retrieval]) -> None:
        """Have a batch measured, and the alerts checked."""
        if not batch and not self._alerts.changed:
            return
        if Worker.exiting or self._worker.works_here:
            self.now(batch)
            return
        until = time.monotonic() + _PATIENCE
        while not self._worker.put(batch, len(batch)):
            if time.monotonic() < until:
                time.sleep(_MOMENT)
            else:
                self._worker.drain(_MOMENT)

    def now(self, batch: list[Retrieval]) -> None:
        """Measure what waits, and then a batch."""
        if self._worker.works_here:
            # An alert's `on_alert` asks for the figures.
            for waiting in self._worker.take():
                self.measure(waiting)
        else:
            before = self._worker.waiting
            while not self._worker.drain(_SECONDS):
                if self._worker.waiting >= before:
                    LOG.warning("monitor %r: no retrieval was measured for %d seconds", self._name, _SECONDS)
                    break
                before = self._worker.waiting
        self.measure(batch)

    def measure(self, batch: list[Retrieval]) -> None:
        """Measure a batch in this thread."""
        with self._lock:
            if batch and (counts := self._count_passages()) is not None:
                self._figures.passages_of = counts
            self._figures.add(batch, self._alerts.figures)
            self._arms.measure(batch, self._traffic.arms, self._figures.passages_of)
            unmatched = self._figures.ids_do_not_meet
            is_new, self._has_warned = unmatched is not None and not self._has_warned, unmatched is not None
        self._alerts.check()
        if is_new:
            warn(f"monitor {self._name!r} has no figures so far: {unmatched}", "ids-do-not-match")

    def _work(self, batch: list[Retrieval]) -> None:
        for more in self._worker.take(_TOGETHER - len(batch)):
            batch = batch + more
        try:
            self.measure(batch)
        except SelectivityWarning:
            pass  # warnings are errors here, and the log has it already
        except Exception:
            LOG.exception("monitor %r: %d retrievals could not be measured", self._name, len(batch))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is measured meanwhile."""
        with self._lock:
            yield


def warn(text: str, code: str) -> None:
    """Log a warning, and give it as a Python warning."""
    warning = SelectivityWarning(text, code)
    LOG.warning("%s", warning)
    warnings.warn(warning, stacklevel=3)
