"""Measures retrieval while it happens.

The monitor knows no framework: an adapter records each retrieval. Memory does not grow with the retrievals.
"""

import os
import random
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError, SelectivityWarning
from rag_selectivity.evaluation.doubts import passages_apart
from rag_selectivity.indexes import documents_in_index, given_size, passages_under_filter
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.policy import resolve_policy
from rag_selectivity.judged.terms import size_of
from rag_selectivity.live.alerts import FALSE_ALARM_EVERY, Alarm, Alerts
from rag_selectivity.live.asked import Asked
from rag_selectivity.live.identity import Identity, Waiting
from rag_selectivity.live.retrieval import Passages, Retrieval, approximate_tokens, checked_outcome
from rag_selectivity.live.trace import TraceWriter
from rag_selectivity.live.traffic import Traffic
from rag_selectivity.live.watching import Latest, Shared, Watcher, check_options, shared_lock, tell
from rag_selectivity.live.window import Window
from rag_selectivity.live.worker import Worker
from rag_selectivity.log import LOG
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import given_depths, wanted_measures
from rag_selectivity.results.report import Report
from rag_selectivity.single import Labels
from rag_selectivity.tables.cells import check_number, check_whole
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.identity import AUTO
from rag_selectivity.tables.small import passage_counts_of
from rag_selectivity.wording import counted

#: Retrievals that are measured together, since a join takes a few milliseconds however few they are; and the seconds
#: after which they are measured at the latest, so that alarms do not wait for a full batch.
_BATCH, _SECONDS = 512, 5.0
#: Retrievals that wait to be measured; beyond these, the thread that records measures.
_MOST_WAITING = 8192
#: A look at the figures gives up when nothing was measured for so long, as when `on_alert` does not return.
_PATIENCE = 30.0
#: Requests whose late outcome can still be joined; a hundred bytes or two each.
_MOST_REQUESTS = 50_000
#: The id, query id and arm of the request that is under way. Tasks and threads that copy the context keep it.
_REQUEST: ContextVar[dict[str, str]] = ContextVar("rag_selectivity_request")


class Monitor(Shared):
    """Measures retrieval while it happens, in memory that does not grow.

    Parameters
    ----------
    labels : qrels, label store, {query: {passage: grade}} or path, optional
        Grades of the queries, by their id or text. Retrievals of other queries are only counted.
    corpus_size : int, {query: int}, index, vector store or retriever, optional
        N, for the chance-corrected measures; of an index, the number of passages that it can return now.
    passages_of : {document: number of its passages}, optional
        For labels that name documents while passages (chunks) are retrieved, as in `rag_selectivity.evaluate`. Default:
        counted in the index that was given as `corpus_size`, if it can list its passages.
    measures : sequence of str or Measure, optional
        Default: `rag_selectivity.measures.default_measures` of the scale, with PROC and %PROC for 1–5 grades.
    depths : sequence of int, optional
        Depths K of the figures. Default: 1, 2, 5, 10, … as far as the lists reach, and the longest list. Figures
        without a depth, such as `report["BoR"]`, are about everything that each retrieval showed.
    sample_rate : float
        The share of the retrievals to measure and trace, above 0 and up to 1. Each one is drawn
        with this probability, whatever it holds, so the figures speak of all of them. Traffic, outcomes, and alerts
        about the traffic take in every retrieval.
    kept : int
        The report is of the last so many retrievals with labels.
    scale, grade_map
        As in `rag_selectivity.evaluate`.
    alerts : sequence of str
        Conditions such as `"Success < .8"`, `"BoR_max < .074"`, `"Harm > .4"`, `"tokens > 8000"`, `"p95(seconds) > 2"`
        or `"outcome < .6"`. A sequential test decides: `rag_selectivity.live.alerts.Alerts` says what it promises, and
        after how many failures in a row it goes off.
    window : int
        Retrievals of the property `window`.
    false_alarm_every : float
        While a condition does not hold, the expected number of retrievals until a false alarm is at least this.
    on_alert : callable, optional
        Called with each alarm; `rag_selectivity.live.alerts.Alerts` says where else alarms go.
    trace : path, optional
        A file to which every retrieval is appended as a line of JSON, for `rag-selectivity evaluate --trace` and
        `grade --trace`. If the monitor chooses the id of the passages, it writes the lines after the choice.
    trace_texts : bool
        Write the texts of queries and passages to the trace. Without it, a hash takes the place of a query's text.
    ids : str, optional
        The form in which the ids of passages are those of the labels, as in `rag_selectivity.evaluate`. `"exact"` says
        that they are right. Without it, ten or more retrievals without one labelled passage are an error, and no alert
        about a measure goes out.
    duplicates : {"count_once", "drop", "error"}, optional
        A passage twice in a list, as in `rag_selectivity.Policy`. A list with one that is an error is not measured.
    name : str
        Name of the run in the report.
    seed : int

    Notes
    -----
    Every method may be called from any thread. A thread of its own measures what was recorded, 512 retrievals at once
    or after five seconds, and calls `on_alert`; whoever asks for figures measures what waits.

    Memory has these limits, however many retrievals there are. Figures are of the last `kept` retrievals with labels,
    and intervals take those of one query together. The traffic is that of all retrievals: counts and means are exact,
    and quantiles come from a histogram. An outcome that becomes known late finds the last 50,000 requests; the others
    are counted as lost. The first 100 reasons for which retrievals could not be measured are named. At most 8,192
    retrievals wait to be measured, and none is left out.

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
        corpus_size: Any = None,
        passages_of: Any = None,
        measures: Sequence[str | Measure] | None = None,
        depths: Sequence[int] | None = None,
        sample_rate: float = 1.0,
        kept: int = 10_000,
        scale: str | None = None,
        grade_map: Any = None,
        alerts: Sequence[str] = (),
        window: int = 200,
        false_alarm_every: float = FALSE_ALARM_EVERY,
        on_alert: Callable[[Alarm], Any] | None = None,
        trace: str | Path | None = None,
        trace_texts: bool = False,
        ids: str | None = None,
        duplicates: str | None = None,
        name: str = "live",
        seed: int = 7,
    ) -> None:
        counts = passage_counts_of(passages_of)
        self._index = None if isinstance(corpus_size, (str, Real)) else corpus_size
        corpus_size = self.corpus_size = size_of(given_size(corpus_size), counts)
        check_whole("kept", kept or 0)
        check_number("sample_rate", sample_rate or 0, above=0, most=1)
        self.labels, form = Labels.of(labels, grade_map=grade_map, scale=scale, measures=measures), IdForm.of(ids)
        left = passages_under_filter([self._index], self.labels.by_query)
        self.name = name
        self._alerts = Alerts(alerts, window=window, on_alert=on_alert, name=name, false_alarm_every=false_alarm_every)
        self.guard = self._alerts.guard
        is_sized, alerted = corpus_size is not None, self._alerts.measures
        asked = [*wanted_measures(measures, self.labels.scale, sized=is_sized, pooled=True), *alerted]
        if depths is not None:
            depths = given_depths([*depths, *(each.at for each in asked if isinstance(each.at, int))], ()).tolist()
        self.measures = tuple(dict.fromkeys(measure.without_depth for measure in asked))
        # A list keeps its own order, and is as long as it is.
        policy = resolve_policy(None, order="rank", short_lists="returned", duplicates=duplicates)
        latest, of = deque[Retrieval](maxlen=kept), (corpus_size, left, counts)
        self._window = Window(name, self.labels, *of, self.measures, depths, alerted, latest, form, policy)
        self._trace = TraceWriter(trace, texts=trace_texts) if trace is not None else None
        #: All retrievals, and the outcomes of the last requests by their ids.
        self._traffic, self._requests = Traffic(), Latest[float | None](_MOST_REQUESTS)
        self._lock, self._measuring = shared_lock(), shared_lock()
        self._worker = Worker[Retrieval | None](self._measure, _MOST_WAITING, delay=_SECONDS, at_once=_BATCH)
        self._has_warned = False
        self._sample_rate, self._random = float(sample_rate), random.Random(seed)
        self._identity = Identity(None)
        self._asked = Asked(self.labels.by_query)

    # -- taking in ---------------------------------------------------------------------------------

    @property
    def wants_texts(self) -> bool:
        """Whether retrievals should come with their passages' texts."""
        return self._trace is not None and self._trace.texts

    def wants_ids(self, query: str, query_id: str | None = None) -> bool:
        """Whether it matters which passages a query gets: it has labels, or a trace takes them."""
        names = query, _REQUEST.get({}).get("query_id") if query_id is None else query_id
        return self._trace is not None or not self.labels.by_query.keys().isdisjoint(names)

    def identity(self, identity: str | None) -> Identity:
        """How an adapter is to name passages, for the value of its option `identity`.

        With `"auto"`, an adapter gives every id that a passage has, and the monitor chooses the one by which the
        labels know it. Without labels, the monitor cannot choose: it takes the first id of a passage, or a hash of its
        text.
        """
        with self._lock:
            if self._identity.given == AUTO:
                return self._identity if identity == AUTO else Identity(identity)
            self._identity = Identity(identity, self.labels.by_query)
            if self._identity.given == AUTO and self._trace is not None:
                # Also at the exit of the interpreter.
                weakref.finalize(self, _write_waiting, self._identity, self._trace)
            return self._identity

    def record(self, retrieval: Retrieval) -> None:
        """Record a retrieval, which a thread of the monitor measures later.

        If the id of the passages is not chosen yet, it is measured after the choice. If more than 8,192 retrievals
        wait, since they come faster than they can be measured, the thread that records one measures what waits.
        """
        if lacking := {name: value for name, value in _REQUEST.get({}).items() if getattr(retrieval, name) is None}:
            retrieval = replace(retrieval, **lacking)  # type: ignore[arg-type]
        ready: list[Waiting] = []
        with self._lock:
            labelled, drawn = self._asked.retrieve(retrieval), self._draw()
            self._traffic.add(retrieval, labelled=labelled, drawn=drawn)
            self._add_outcome(retrieval.id, retrieval.outcome)
            if drawn and (labelled or self._trace is not None):
                ready = self._identity.take(Waiting(retrieval, labelled))
        self._alerts.traffic(retrieval)
        self._check_alerts()
        self._take(ready)
        self._warn(self._identity.doubt if self._identity.has_failed else None)

    def asked(self, *names: str | None) -> None:
        """Say that a question was asked and answered, by its id or text, whatever was retrieved for it.

        A question with labels for which nothing was retrieved then counts as an empty list. Adapters say so of what the
        outermost chain, engine, workflow or span was asked, and `request` of its `query_id`.
        """
        with self._lock:
            if self._draw():
                self._asked.ask(*names)

    def _draw(self) -> bool:
        return self._sample_rate == 1 or self._random.random() < self._sample_rate

    @contextmanager
    def request(self, id: str | None = None, *, arm: str | None = None, query_id: str | None = None) -> Iterator[None]:
        """Say of a request what a framework does not: `with monitor.request("r17", arm="b"): chain.invoke(…)`.

        Every retrieval that is recorded inside takes what it lacks from here, also in tasks and in threads that copy
        the context, as asyncio and LangChain do. Of nested requests, the innermost counts.

        Parameters
        ----------
        id : str, optional
            The application's own id of the request; see `outcome`.
        arm : str, optional
            The arm of an A/B test, for the trace.
        query_id : str, optional
            Of the user's question in the labels, if an agent words it anew. If the labels have it and nothing is
            retrieved for it, it counts as an empty list.

        Raises
        ------
        InputError
            If one of them is not a text.
        """
        # Which refuses what is no text.
        Retrieval("", (), id=id, arm=arm, query_id=query_id)
        given = {"id": id, "arm": arm, "query_id": query_id}
        token = _REQUEST.set({name: value for name, value in given.items() if value is not None})
        try:
            yield
        finally:
            # A generator may be closed from another context; its own context is gone then.
            with suppress(ValueError):
                _REQUEST.reset(token)
            self.asked(query_id)

    def outcome(self, id: str, outcome: float) -> bool:
        """Record the outcome of a request that became known after its retrievals: whether the answer was accepted.

        A request has one outcome, however many retrievals it had; a later outcome takes the place of an earlier one.
        The monitor remembers the last 50,000 requests. The trace gets every outcome.

        Parameters
        ----------
        id : str
            As in `Retrieval.id` or `request`.
        outcome : number or bool
            From 0 to 1.

        Returns
        -------
        bool
            False if no known retrieval has the id. `traffic.lost_outcomes` counts these.

        Raises
        ------
        InputError
            If the outcome is not from 0 to 1.
        """
        value = checked_outcome(outcome)
        with self._lock:
            if known := id in self._requests:
                self._add_outcome(id, value)
            self._traffic.lost_outcomes += not known
        self._check_alerts()
        if self._trace is not None:
            self._trace.write_outcome(id, value, time.time())
        return known

    def _check_alerts(self) -> None:
        if self._alerts.unsent:
            self._later(None)

    def _add_outcome(self, id: str | None, outcome: float | None) -> None:
        """Remember a request as the last, and count its outcome if there is one now."""
        before = None
        if id is not None:
            before = self._requests.take(id)
            self._requests.keep(id, before if outcome is None else outcome)
        if outcome is not None:
            self._traffic.add_outcome(outcome, before)
            if before is None:
                self._alerts.outcome(outcome)

    def _take(self, ready: Iterable[Waiting]) -> None:
        """Write retrievals whose ids are known, and have them measured."""
        for seen in ready:
            if self._trace is not None:
                self._trace.write(seen.retrieval, seen.time)
            if seen.labelled and not self._identity.has_failed:
                self._later(seen.retrieval if seen.retrieval.texts is None else replace(seen.retrieval, texts=None))

    def _later(self, retrieval: Retrieval | None) -> None:
        """Have a retrieval measured, and the alerts checked."""
        if not self._worker.put(retrieval):
            # Too many wait, or the interpreter is about to end.
            self._worker.drain(_PATIENCE)
            self._measure([retrieval])

    def _measure(self, batch: list[Retrieval | None]) -> None:
        try:
            with self._measuring:
                identity = self._identity.settled
                if self._index is not None and identity is not None:
                    # By their ids, the passages of each document can be counted in the index now.
                    self._window.passages_of = self._window.passages_of or documents_in_index(self._index, identity)
                    self._index = None
                for figures in self._window.add([each for each in batch if each is not None]):
                    self._alerts.figures(figures)
                unmatched = self._window.ids_do_not_meet
            self._alerts.check()
            self._warn(unmatched, "no figures so far")
        except SelectivityWarning:
            pass  # warnings are errors here, and the log has it already
        except Exception:
            LOG.exception("monitor %r: %d retrievals could not be measured", self.name, len(batch))

    def flush(self) -> None:
        """Measure everything recorded so far, and check the alerts."""
        with self._lock:
            ready = self._identity.decide()
        self._take(ready)
        if not self._worker.drain(_PATIENCE):
            LOG.warning("monitor %r: no retrieval was measured for %d seconds", self.name, _PATIENCE)

    def close(self) -> None:
        """Measure what is left, and close the trace."""
        with self._lock:
            ready = [*self._identity.decide(), *self._identity.give_up()]
        self._take(ready)
        self.flush()
        if self._trace is not None:
            for nothing in [] if self._trace.is_closed else self.without:
                self._trace.write(nothing, time.time())
            self._trace.close()
        self._warn(self._identity.doubt if self._identity.has_failed else None)

    def _warn(self, why: object, no_figures: str = "no figures") -> None:
        """Say once why there are no figures, if that is so."""
        if why is not None and not self._has_warned:
            self._has_warned = True
            tell(f"monitor {self.name!r} has {no_figures}: {why}")

    # -- giving out --------------------------------------------------------------------------------

    @property
    def traffic(self) -> Traffic:
        """Counts and means of all retrievals so far, with or without labels."""
        with self._lock:
            traffic = deepcopy(self._traffic)
        traffic.not_traced = 0 if self._trace is None else self._trace.lost
        return traffic

    @property
    def without(self) -> list[Retrieval]:
        """An empty retrieval for each labelled question that was asked and for which nothing was retrieved."""
        with self._lock:
            return self._asked.without

    @property
    def window(self) -> dict[str, float]:
        """The figure of each alert over its rolling window, by name: {"BoR": 4.2, "tokens": 2150.0}."""
        self.flush()
        return self._alerts.values()

    def report(self, bootstrap: Bootstrap = Bootstrap()) -> Report:
        """The figures over the last retrievals, all that were measured unless these are more than are kept.

        `report["BoR@5"]` is about the first five passages shown, `report["BoR"]` about all passages shown.

        Raises
        ------
        InputError
            If no retrieval had labels; if ten or more had labels and brought no labelled passage; or if the labels do
            not tell by which id they know the passages.
        """
        self.flush()
        if self._identity.doubt is not None:
            raise InputError(str(self._identity.doubt))
        with self._lock:
            without, notes = self._asked.without, self._asked.notes
        with self._measuring:
            report = self._window.report(self.traffic, without, notes, bootstrap)
        facts, about_identity = self._identity.about()
        if (odd := passages_apart(report.runs[self.name].judged, self.name)) is not None:
            facts["ids_apart"], warning = odd
            tell(warning.text, warning.code)
        return report.with_input(self.name, facts, about_identity)

    @property
    def retrievals(self) -> list[Retrieval]:
        """The retrievals that the report is of."""
        self.flush()
        with self._measuring:
            return [*self._window.kept, *self.without]


class RetrievalWatcher(Watcher):
    """What an adapter that watches retrievals is given.

    Parameters
    ----------
    labels, **options
        As in `Monitor`.
    identity : str, optional
        How labels know a passage; `"auto"` chooses by the labels.
    query_id_key : str
        Under which the framework's metadata have the id of the query.
    count_tokens : callable, optional
        Text → tokens; default: four characters a token.
    monitor : Monitor, optional
        One that is there already.
    """

    monitor: Monitor

    def __init__(
        self,
        labels: Any = None,
        *,
        identity: str | None = AUTO,
        query_id_key: str = "query_id",
        count_tokens: Callable[[str], int] = approximate_tokens,
        monitor: Monitor | None = None,
        **options: Any,
    ) -> None:
        check_options(options, type(self), RetrievalWatcher, Monitor)
        super().__init__(monitor if monitor is not None else Monitor(labels, **options))
        self.labelled = self.monitor.labels.by_query
        self.identity = self.monitor.identity(identity)
        self.query_id_key, self.count_tokens = query_id_key, count_tokens

    def passages(self, ids: Sequence[str], texts: Sequence[str], scores: Iterable[float | None] = ()) -> Passages:
        """Ids and lengths, taken at once, since a framework's objects may change; and texts, if they are wanted."""
        return Passages(
            tuple(ids),
            sum(map(self.count_tokens, texts)),
            tuple(texts) if self.monitor.wants_texts else None,
            sum(map(str.isspace, texts)) + list(texts).count(""),
            # Only NaN differs from itself.
            len([score for score in scores if score != score]),
        )

    def report(self, **options: Any) -> Report:
        """The figures of all retrievals so far; `report()["BoR"]` is of all that was shown.

        Raises
        ------
        InputError
            As `Monitor.report`, with the last fault of the watching if there was one.
        """
        faults = f"{counted(self.guard.count, 'error')} in watching: retrievals are missing or incomplete; the last"
        notes = [f"{faults}: {self.guard.last}"] if self.guard.count else []
        try:
            return self.monitor.report(**options).with_input(self.monitor.name, {}, notes)
        except InputError as error:
            raise InputError(". ".join([str(error), *notes])) from None


def _write_waiting(choice: Identity, trace: TraceWriter) -> None:
    """Write what waits for the choice of an id, of a monitor that nobody closed."""
    for seen in (*choice.decide(), *choice.give_up()):
        # What a parent process waits with is its own to write.
        if seen.process == os.getpid():
            trace.write(seen.retrieval, seen.time)
