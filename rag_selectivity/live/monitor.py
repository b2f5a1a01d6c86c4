"""What live retrieval is worth: running moments over all of it, and a random sample for a closer look.

Knows no framework. An adapter hands in each retrieval as it happens; memory stays the same however long that goes on.
"""

from __future__ import annotations

import math
import random
import threading
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rag_selectivity.data.grades import scale_named
from rag_selectivity.data.policy import resolve_policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.data.run import Run
from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.estimates import estimates_of_moments, with_caveats
from rag_selectivity.join.joining import join
from rag_selectivity.join.judged_run import Coverage, JudgedRun
from rag_selectivity.live.alerts import Alarm, Alerts
from rag_selectivity.live.retrieval import Retrieval, Traffic
from rag_selectivity.live.trace import TraceWriter
from rag_selectivity.measures import Measure, Outcome, parse_measure
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray, Real, with_companions, with_upper_ends
from rag_selectivity.measures.plan import default_measures
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.report import Report, RunReport
from rag_selectivity.single import Labels
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.moments import Moments

#: Retrievals measured together: the join costs a few milliseconds however few there are.
_BATCH = 512
#: Where traffic is low, measured after this long: alarms must not wait for hours.
_SECONDS = 5.0
_DEPTHS = (1, 2, 5, 10, 20, 50)


class Grader(Protocol):
    """Grades some of the retrievals that it is offered, later."""

    def offer(self, retrieval: Retrieval, when_graded: Callable[[Retrieval], None]) -> None: ...

    def drain(self) -> None: ...


class Monitor:
    """Measures retrieval while it happens, in memory that does not grow.

    Parameters
    ----------
    labels : qrels, label store, {query: {passage: grade}} or path, optional
        Of the queries (by id or text) whose retrievals can be measured; the rest are counted.
    corpus_size : int, optional
        N, for the chance-corrected measures.
    measures : sequence of str or Measure, optional
        Default: Success; with N BoR, BoR_max and lambda; with 1–5 grades RA-nWG, PROC, %PROC, Harm.
    depths : sequence of int
        Of the figures with a depth. Those without one, `report["BoR"]`, are of all that was shown, however
        much that was each time.
    sample : int
        Retrievals kept, drawn at random from all measured ones. As long as they are all kept, intervals
        come from the bootstrap; then from the moments (delta method).
    scale, grade_map
        As in `rag_selectivity.evaluate`.
    alerts : sequence of str
        Conditions such as `"BoR < 2"`, `"BoR_max < .074"`, `"Harm > .4"` or `"tokens > 8000"`, over a rolling `window`
        of retrievals; see `rag_selectivity.live.alerts.Alerts` for where alarms go, `on_alert` among others.
    trace : path, optional
        Append every retrieval to this file as a line of JSON, with the passages' texts if `trace_texts`;
        `rag-selectivity evaluate --trace` and `grade --trace` read it back.
    grader : BackgroundGrader, optional
        Grades a share of what has no labels, later and elsewhere.
    name : str
        Of the run in the report.
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
        depths: Sequence[int] = _DEPTHS,
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
        # A judge grades from 1 to 5, so labels of another kind would not go together with its own.
        self.labels = Labels.of(labels, grade_map=grade_map, scale="utility" if grader and scale is None else scale)
        self.corpus_size = corpus_size
        self.name = name
        self._alerts = Alerts(alerts, window=window, on_alert=on_alert, name=name)
        asked = [*_measures(measures, self.labels.scale, sized=corpus_size is not None), *self._alerts.measures]
        self.measures = tuple(dict.fromkeys(replace(measure, at=None) for measure in asked))
        grid = {*depths, *(measure.at for measure in self._alerts.measures if isinstance(measure.at, int))}
        self._plan = [(measure, _depths(measure, grid)) for measure in with_upper_ends(self.measures)]
        self._policy = resolve_policy(None, order="rank", depth="returned")
        self._check_measures()
        self._trace = TraceWriter(trace, texts=trace_texts) if trace is not None else None
        self._grader = grader
        self._size = sample
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._measuring = threading.Lock()
        self._pending: list[Retrieval] = []
        self._since = 0
        self._due = time.monotonic() + _SECONDS
        self._counts = _Counts()
        self._moments: list[Moments] | None = None
        self._sample: list[_Measured] = []
        self._coverage = Coverage()
        self._refused: dict[str, int] = {}
        self._matched = False
        self._clipped = 0

    # -- taking in ---------------------------------------------------------------------------------

    @property
    def wants_texts(self) -> bool:
        """Whether retrievals should come with their passages' texts."""
        return self._grader is not None or (self._trace is not None and self._trace.texts)

    def record(self, retrieval: Retrieval) -> None:
        """Take in a retrieval. What came since the last time is measured at every 512th, or after five seconds."""
        labelled = retrieval.grades is not None or self._label(retrieval) is not None
        with self._lock:
            self._counts.add(retrieval)
            batch = self._with(retrieval if labelled else None)
        self._alerts.traffic(retrieval)
        if self._trace is not None:
            self._trace.write(retrieval)
        if not labelled and self._grader is not None:
            self._grader.offer(retrieval, self._graded)
        if batch is not None:
            self._measure(batch)

    def _graded(self, retrieval: Retrieval) -> None:
        """Take in the grades of a retrieval that was counted when it happened."""
        with self._lock:
            batch = self._with(retrieval)
        if batch is not None:
            self._measure(batch)

    def _with(self, retrieval: Retrieval | None) -> list[Retrieval] | None:
        """Lay a labelled retrieval aside; gives what is to be measured when it is time."""
        if retrieval is not None:
            self._counts.labelled += 1
            self._pending.append(retrieval if retrieval.texts is None else replace(retrieval, texts=None))
        self._since += 1
        if self._since < _BATCH and time.monotonic() < self._due:
            return None
        self._since, self._due = 0, time.monotonic() + _SECONDS
        batch, self._pending = self._pending, []
        return batch

    def failed(self) -> None:
        """Count a retrieval that raised an error."""
        with self._lock:
            self._counts.failed += 1

    def flush(self) -> None:
        """Measure what has been recorded so far, and see to the alerts."""
        with self._lock:
            batch, self._pending = self._pending, []
        self._measure(batch)

    def close(self) -> None:
        """Measure what is left, wait for the grader, and close the trace."""
        if self._grader is not None:
            self._grader.drain()
        self.flush()
        if self._trace is not None:
            self._trace.close()

    # -- giving out --------------------------------------------------------------------------------

    @property
    def traffic(self) -> Traffic:
        """What was seen so far, labelled or not."""
        with self._lock:
            return self._counts.traffic()

    @property
    def window(self) -> dict[str, float]:
        """The figure of each alert over its rolling window, by name: {"BoR": 4.2, "tokens": 2150.0}."""
        self.flush()
        return self._alerts.values()

    def report(self, bootstrap: Bootstrap = Bootstrap()) -> Report:
        """The figures over all retrievals so far, and query by query over the sample.

        `report["BoR@5"]` is that of the first five shown, `report["BoR"]` of all that were shown.

        Raises
        ------
        InputError
            If nothing that was retrieved had labels.
        """
        self.flush()
        with self._measuring:
            if self._moments is None and self._refused:
                raise InputError(f"no retrieval could be measured so far: {next(iter(self._refused))}")
            if self._moments is None:
                raise InputError(
                    f"none of the {self.traffic.retrievals} retrievals so far had labels: are the labels' queries the "
                    f"ids or texts that were asked?"
                )
            longest = self.traffic.longest
            complete = len(self._sample) == self._moments[0].total
            stacked = self._stacked(self._moments)
            intervals = bootstrap.intervals(stacked) if complete else None
            estimates: dict[str, Estimate] = {}
            per_query: dict[str, FloatArray] = {}
            for i, (measure, at) in enumerate(self._plan):
                moments = self._moments[i]
                low, high = intervals[i] if intervals is not None else moments.interval(bootstrap.level)
                figures = estimates_of_moments(moments, low, high)
                for column, (depth, figure) in enumerate(zip(at.tolist(), figures, strict=True)):
                    if depth != WHOLE_LIST and depth > longest:
                        continue
                    key = str(measure @ depth)
                    estimates[key] = figure
                    if measure.per_query:
                        per_query[key] = stacked[i].parts[0][:, column]
            estimates = with_caveats(estimates, self.measures)
            per_query = {key: column for key, column in per_query.items() if key in estimates}
            depths = {int(k) for measure, at in self._plan if not isinstance(measure.cutoff, Real) for k in at}
            shown = sorted(k for k in depths if k != WHOLE_LIST and k <= longest)
            run = RunReport(
                tuple(self._names()), estimates, per_query, self._coverage, tuple(self._notes(complete)), None
            )
            settings = bootstrap.settings if complete else {"method": "delta", "level": bootstrap.level}
            return Report({self.name: run}, self.measures, tuple(shown), self.corpus_size, self.labels.scale, settings)

    @property
    def sample(self) -> list[Retrieval]:
        """The retrievals that were kept: a random sample of the measured ones."""
        self.flush()
        with self._measuring:
            return [kept.retrieval for kept in self._sample]

    # -- measuring ---------------------------------------------------------------------------------

    def _label(self, retrieval: Retrieval) -> str | None:
        """Under which name the labels know the query."""
        known = self.labels.by_query
        if retrieval.query_id is not None and retrieval.query_id in known:
            return retrieval.query_id
        return retrieval.query if retrieval.query in known else None

    def _measure(self, batch: list[Retrieval]) -> None:
        with self._measuring:
            for graded in (False, True):
                part = [retrieval for retrieval in batch if (retrieval.grades is not None) == graded]
                if part:
                    self._take_in(part)
        self._alerts.check()

    def _check_measures(self) -> None:
        """Refuse at once what could never be measured: BoR without N, RA-nWG on binary labels."""
        grade = scale_named(self.labels.scale).lowest
        judged = join(
            Qrels.from_dict({"q": {"d": max(1, grade)}}),
            Run.from_dict({"q": ["d"]}),
            corpus_size=self.corpus_size,
            scale=self.labels.scale,
            policy=self._policy,
        )
        for measure, at in self._plan:
            measure.outcome(judged, at)

    def _take_in(self, part: list[Retrieval]) -> None:
        try:
            judged = self._judged(part)
            outcomes = [measure.outcome(judged, at) for measure, at in self._plan]
        except InputError as error:
            if len(part) > 1:
                # One bad retrieval must not cost the others: halve until it stands alone.
                middle = len(part) // 2
                self._take_in(part[:middle])
                self._take_in(part[middle:])
            else:
                self._refused[str(error)] = self._refused.get(str(error), 0) + 1
            return
        if self._moments is None:
            self._moments = [Moments.of(outcome) for outcome in outcomes]
        else:
            for moments, outcome in zip(self._moments, outcomes, strict=True):
                moments.add(outcome)
        self._matched = self._matched or bool(len(judged.hits.query)) or bool(len(judged.candidates.query))
        coverage = judged.coverage
        self._coverage = replace(
            self._coverage,
            duplicates=self._coverage.duplicates + coverage.duplicates,
            outside_pool=self._coverage.outside_pool + coverage.outside_pool,
        )
        if judged.corpus_size is not None:
            self._clipped += int((judged.returned > judged.corpus_size).sum())
        self._draw(part, outcomes)
        self._alerts.figures(lambda measure: self._figure(measure, outcomes))

    def _figure(self, measure: Measure, outcomes: list[Outcome]) -> tuple[Outcome, int] | None:
        """A measure's outcome and the column of its depth; None where the labels lack what it needs."""
        at = WHOLE_LIST if measure.at is None else measure.at
        place = [known for known, _ in self._plan].index(replace(measure, at=None))
        if self._moments is None or not self._moments[place].premise:
            return None
        return outcomes[place], self._plan[place][1].tolist().index(at)

    def _judged(self, part: list[Retrieval]) -> JudgedRun:
        names = [str(i) for i in range(len(part))]
        # Those that brought grades along are apart, since the monitor's own labels are encoded already.
        if part[0].grades is not None:
            qrels = Qrels.from_dict({name: each.grades for name, each in zip(names, part, strict=True)})
        else:
            qrels = self.labels.qrels.under({n: self._label(each) or "" for n, each in zip(names, part, strict=True)})
        sizes: Any = None
        if self.corpus_size is not None:
            sizes = {name: each.corpus_size or self.corpus_size for name, each in zip(names, part, strict=True)}
        pools = {name: list(each.pool) for name, each in zip(names, part, strict=True) if each.pool is not None}
        with warnings.catch_warnings():
            # Whether ids match at all is a matter of the whole: see `_notes`.
            warnings.simplefilter("ignore", SelectivityWarning)
            return join(
                qrels,
                Run.from_dict({name: list(each.shown) for name, each in zip(names, part, strict=True)}),
                pool=Run.from_dict(pools) if pools else None,
                corpus_size=sizes,
                scale=self.labels.scale,
                policy=self._policy,
                name=self.name,
            )

    def _draw(self, part: list[Retrieval], outcomes: list[Outcome]) -> None:
        """Keep a random sample of everything measured, each with the same chance (Vitter's algorithm R)."""
        rows = np.concatenate([np.concatenate(outcome.parts, axis=1) for outcome in outcomes], axis=1)
        seen = self._moments[0].total - len(part) if self._moments else 0
        for i, retrieval in enumerate(part):
            seen += 1
            if len(self._sample) < self._size:
                self._sample.append(_Measured(retrieval, rows[i].copy()))
            else:
                place = self._random.randrange(seen)
                if place < self._size:
                    self._sample[place] = _Measured(retrieval, rows[i].copy())

    def _stacked(self, of_measures: list[Moments]) -> list[Outcome]:
        """The sample's figures as outcomes of a whole."""
        width = sum(moments.lowest.size for moments in of_measures)
        rows = np.stack([kept.row for kept in self._sample]) if self._sample else np.empty((0, width))
        result, start = [], 0
        for moments in of_measures:
            count, depths = moments.lowest.shape
            parts = tuple(rows[:, start + p * depths : start + (p + 1) * depths] for p in range(count))
            start += count * depths
            outcome = Outcome(parts, moments.undefined, moments.aggregate, moments.bounds, moments.premise)
            result.append(outcome.settled())
        return result

    def _names(self) -> list[str]:
        """The sampled queries; one that was asked again is numbered, since every retrieval counts."""
        asked: dict[str, int] = {}
        names = []
        for kept in self._sample:
            name = kept.retrieval.query_id or kept.retrieval.query
            asked[name] = asked.get(name, 0) + 1
            names.append(name if asked[name] == 1 else f"{name} ({asked[name]})")
        return names

    def _notes(self, complete: bool) -> list[str]:
        traffic = self.traffic
        notes = [
            f"{traffic.retrievals:,} retrievals, {traffic.labelled:,} of them with labels; {traffic.shown:.3g} shown "
            f"on average. Figures without a depth are of all that was shown"
        ]
        if not complete and self._moments is not None:
            notes.append(
                f"figures over {self._moments[0].total:,} retrievals, query by query a random sample of "
                f"{len(self._sample):,}"
            )
        if traffic.empty:
            notes.append(f"{traffic.empty:,} retrievals brought nothing")
        if traffic.failed:
            notes.append(f"{traffic.failed:,} retrievals raised an error and are not among them")
        if not self._matched:
            notes.append("not one labelled passage was ever retrieved: are the labels' passage ids those of the index?")
        if self._clipped:
            notes.append(f"{self._clipped:,} retrievals showed more passages than their corpus has: is N right?")
        if self._coverage.duplicates:
            notes.append(f"{self._coverage.duplicates:,} passages stood twice in their list")
        notes += [f"{count:,} retrievals could not be measured: {why}" for why, count in self._refused.items()]
        return notes


@dataclass(frozen=True, slots=True)
class _Measured:
    """A retrieval of the sample, and its figures: every part of every outcome at every depth."""

    retrieval: Retrieval
    row: FloatArray


class _Counts:
    """Running sums over all retrievals."""

    def __init__(self) -> None:
        self.retrievals = self.labelled = self.empty = self.failed = self.longest = self.shown = 0
        self._sums = {"tokens": 0.0, "seconds": 0.0}
        self._known = {"tokens": 0, "seconds": 0}

    def add(self, retrieval: Retrieval) -> None:
        length = len(retrieval.shown)
        self.retrievals += 1
        self.empty += not length
        self.shown += length
        self.longest = max(self.longest, length)
        if retrieval.tokens is not None:
            self._sums["tokens"] += retrieval.tokens
            self._known["tokens"] += 1
        if retrieval.seconds is not None:
            self._sums["seconds"] += retrieval.seconds
            self._known["seconds"] += 1

    def traffic(self) -> Traffic:
        tokens, seconds = (
            self._sums[name] / self._known[name] if self._known[name] else math.nan for name in ("tokens", "seconds")
        )
        shown = self.shown / self.retrievals if self.retrievals else math.nan
        return Traffic(self.retrievals, self.labelled, self.empty, self.failed, shown, tokens, seconds, self.longest)


def _measures(wanted: Sequence[str | Measure] | None, scale: str, *, sized: bool) -> tuple[Measure, ...]:
    if wanted is None:
        wanted = default_measures(scale, sized=sized, pooled=True)
    chosen = [replace(parse_measure(measure), at=None) for measure in wanted]
    if not chosen:
        raise InputError("no measure was asked for")
    return tuple(with_companions(chosen))


def _depths(measure: Measure, depths: Collection[int]) -> Any:
    """Where a measure is taken: at the depths given and over all that was shown."""
    for depth in depths:
        if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or depth < 1:
            raise InputError(f"depth {depth!r} is not a whole number ≥ 1")
    grid = measure.default_depths(np.array(sorted({int(depth) for depth in depths}), np.int64))
    whole = measure.takes_whole_lists or isinstance(measure.cutoff, Real)
    return grid if whole else np.append(grid, WHOLE_LIST)
