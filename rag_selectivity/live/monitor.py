"""Measures retrieval while it happens.

The monitor knows no framework: an adapter records each retrieval. Memory does not grow with the retrievals.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from rag_selectivity.errors import InputError
from rag_selectivity.live.alerts import Alarm, Alerts
from rag_selectivity.live.figures import LiveFigures
from rag_selectivity.live.retrieval import Retrieval, Traffic
from rag_selectivity.live.trace import TraceWriter
from rag_selectivity.live.traffic import TrafficCounts
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import LIVE_DEPTHS, absent_measures, given_depths, plan_of, wanted_measures
from rag_selectivity.results.report import Report
from rag_selectivity.single import Labels
from rag_selectivity.statistics.bootstrap import Bootstrap

#: Retrievals that are measured together, since a join takes a few milliseconds however few they are.
_BATCH = 512
#: Retrievals are measured after this long at the latest, so that alarms do not wait for a full batch.
_SECONDS = 5.0


class Grader(Protocol):
    """Grades some of the retrievals that it is offered, at a later time."""

    def offer(self, retrieval: Retrieval, when_graded: Callable[[Retrieval], None]) -> None: ...

    def drain(self) -> None: ...


class Monitor:
    """Measures retrieval while it happens, in memory that does not grow.

    Parameters
    ----------
    labels : qrels, label store, {query: {passage: grade}} or path, optional
        Grades of the queries, by their id or text. Retrievals of other queries are only counted.
    corpus_size : int, optional
        N, for the chance-corrected measures.
    measures : sequence of str or Measure, optional
        Default: `rag_selectivity.measures.default_measures` of the scale, with PROC and %PROC for 1–5 grades.
    depths : sequence of int
        Depths K of the figures. Figures without a depth, such as `report["BoR"]`, are about everything that each
        retrieval showed.
    sample : int
        Size of a random sample of the measured retrievals. While it holds all of them, intervals come from the
        bootstrap, and later from the moments (delta method).
    scale, grade_map
        As in `rag_selectivity.evaluate`.
    alerts : sequence of str
        Conditions such as `"BoR < 2"`, `"BoR_max < .074"`, `"Harm > .4"` or `"tokens > 8000"`.
    window : int
        Retrievals over which the alerts are computed.
    on_alert : callable, optional
        Called with each alarm; `rag_selectivity.live.alerts.Alerts` says where else alarms go.
    trace : path, optional
        A file to which every retrieval is appended as a line of JSON, for `rag-selectivity evaluate --trace` and
        `grade --trace`.
    trace_texts : bool
        Write the texts of the passages to the trace, too.
    grader : BackgroundGrader, optional
        Grades a share of the retrievals without labels, in a thread of its own.
    name : str
        Name of the run in the report.
    seed : int

    Every method may be called from any thread.

    Examples
    --------
    >>> monitor = Monitor({"who?": {"d1": 1}}, corpus_size=1024)
    >>> monitor.record(Retrieval("who?", ["d1", "d7"]))
    >>> monitor.record(Retrieval("who else?", ["d2"]))
    >>> monitor.report()["BoR"].value, monitor.traffic.labelled, monitor.traffic.retrievals
    (9.0, 1, 2)
    """

    def __init__(
        self,
        labels: Any = None,
        *,
        corpus_size: int | None = None,
        measures: Sequence[str | Measure] | None = None,
        depths: Sequence[int] = LIVE_DEPTHS,
        sample: int = 1000,
        scale: str | None = None,
        grade_map: Any = None,
        alerts: Sequence[str] = (),
        window: int = 200,
        on_alert: Callable[[Alarm], Any] | None = None,
        trace: str | Path | None = None,
        trace_texts: bool = False,
        grader: Grader | None = None,
        name: str = "live",
        seed: int = 7,
    ) -> None:
        if corpus_size is not None and (isinstance(corpus_size, bool) or int(corpus_size) < 1):
            raise InputError(f"corpus_size must be a whole number ≥ 1, got {corpus_size!r}")
        if sample < 0 or isinstance(sample, bool):
            raise InputError(f"sample must be a whole number ≥ 0, got {sample!r}")
        # A judge grades from 1 to 5, and labels on another scale would not go together with its grades.
        self.labels = Labels.of(labels, grade_map=grade_map, scale="utility" if grader and scale is None else scale)
        self.corpus_size = corpus_size
        self.name = name
        self._alerts = Alerts(alerts, window=window, on_alert=on_alert, name=name)
        sized = corpus_size is not None
        asked = [*wanted_measures(measures, self.labels.scale, sized=sized, pooled=True), *self._alerts.measures]
        self.measures = tuple(dict.fromkeys(replace(measure, at=None) for measure in asked))
        alert_depths = [measure.at for measure in self._alerts.measures if isinstance(measure.at, int)]
        grid = given_depths([*depths, *alert_depths], ())
        plan = plan_of(self.measures, grid, whole_lists=True)
        self._figures = LiveFigures(self.labels, corpus_size, plan, sample_size=sample, seed=seed, name=name)
        self._trace = TraceWriter(trace, texts=trace_texts) if trace is not None else None
        self._grader = grader
        self._lock = threading.Lock()
        self._measuring = threading.Lock()
        self._pending: list[Retrieval] = []
        self._since_measured = 0
        self._due = time.monotonic() + _SECONDS
        self._counts = TrafficCounts()

    # -- taking in ---------------------------------------------------------------------------------

    @property
    def wants_texts(self) -> bool:
        """Whether retrievals should come with their passages' texts."""
        return self._grader is not None or (self._trace is not None and self._trace.texts)

    def record(self, retrieval: Retrieval) -> None:
        """Record a retrieval. Retrievals are measured in batches of 512, or after five seconds."""
        labelled = retrieval.grades is not None or self._figures.query_in_labels(retrieval) is not None
        with self._lock:
            self._counts.add(retrieval)
            batch = self._batch_with(retrieval if labelled else None)
        self._alerts.traffic(retrieval)
        if self._trace is not None:
            self._trace.write(retrieval)
        if not labelled and self._grader is not None:
            self._grader.offer(retrieval, self._record_grades)
        if batch is not None:
            self._measure(batch)

    def _record_grades(self, retrieval: Retrieval) -> None:
        """Record the grades of a retrieval that was counted when it happened."""
        with self._lock:
            batch = self._batch_with(retrieval)
        if batch is not None:
            self._measure(batch)

    def _batch_with(self, retrieval: Retrieval | None) -> list[Retrieval] | None:
        """Add a labelled retrieval to the batch; the batch if it is time to measure it, else None."""
        if retrieval is not None:
            self._counts.labelled += 1
            self._pending.append(retrieval if retrieval.texts is None else replace(retrieval, texts=None))
        self._since_measured += 1
        if self._since_measured < _BATCH and time.monotonic() < self._due:
            return None
        self._since_measured, self._due = 0, time.monotonic() + _SECONDS
        batch, self._pending = self._pending, []
        return batch

    def failed(self) -> None:
        """Count a retrieval that raised an error."""
        with self._lock:
            self._counts.failed += 1

    def flush(self) -> None:
        """Measure everything recorded so far, and check the alerts."""
        with self._lock:
            batch, self._pending = self._pending, []
        self._measure(batch)

    def close(self) -> None:
        """Wait for the grader, measure what is left, and close the trace."""
        if self._grader is not None:
            self._grader.drain()
        self.flush()
        if self._trace is not None:
            self._trace.close()

    def _measure(self, batch: list[Retrieval]) -> None:
        with self._measuring:
            self._figures.add(batch, self._alerts.figures)
        self._alerts.check()

    # -- giving out --------------------------------------------------------------------------------

    @property
    def traffic(self) -> Traffic:
        """Counts and means of all retrievals so far, with or without labels."""
        with self._lock:
            return self._counts.traffic()

    @property
    def window(self) -> dict[str, float]:
        """The figure of each alert over its rolling window, by name: {"BoR": 4.2, "tokens": 2150.0}."""
        self.flush()
        return self._alerts.values()

    def report(self, bootstrap: Bootstrap = Bootstrap()) -> Report:
        """The figures over all retrievals so far, and the figures of each query of the sample.

        `report["BoR@5"]` is about the first five passages shown, `report["BoR"]` about all passages shown.

        Raises
        ------
        InputError
            If no retrieval had labels.
        """
        self.flush()
        with self._measuring:
            run, shown, settings = self._figures.report(self.measures, self.traffic, bootstrap)
        absent = absent_measures(self.measures, sized=self.corpus_size is not None)
        scale = self.labels.scale
        return Report({self.name: run}, self.measures, shown, self.corpus_size, scale, settings, absent=absent)

    @property
    def sample(self) -> list[Retrieval]:
        """A random sample of the measured retrievals."""
        self.flush()
        with self._measuring:
            return self._figures.sample
