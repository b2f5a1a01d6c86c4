"""The last live retrievals with labels: a row each, and the report on them."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.report import report_on
from rag_selectivity.figures.figures import Facts, Figures
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.joining import join
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import Policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.traffic import Traffic
from rag_selectivity.log import LOG
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.base import WHOLE_LIST
from rag_selectivity.measures.outcome import Refusal, joint_refusal
from rag_selectivity.measures.plan import default_depths, plan_of
from rag_selectivity.results.report import Report
from rag_selectivity.single import Labels
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.tables.identity import numbered_queries
from rag_selectivity.tables.matching import Meeting
from rag_selectivity.tables.small import PassageCounts, UnderFilter
from rag_selectivity.wording import counted, named

#: Reasons name values of the application; these bound what a faulty one can fill.
_MOST_REASONS, _OTHER_REASONS = 100, "other reasons, which are not named"
#: The slots of an empty list if nothing was shown so far.
_SLOTS_IF_UNKNOWN = 10
#: Notes about the traffic: what each counts, and what is said of it.
_NOTES = {
    "lost_outcomes": ("outcome", "came with an id that no known retrieval has: not counted"),
    "not_traced": ("line", "could not be written to the trace"),
    "empty": ("retrieval", "returned nothing"),
    "failed": (
        "retrieval",
        "failed (an error, a cancellation, or None as the result): counted as a list without a passage; the means of "
        "passages shown, tokens and seconds leave it out",
    ),
    "empty_passages": ("passage", "shown had no text"),
    "nan_scores": ("passage", "shown had NaN as the score, so that its rank means nothing"),
}


@dataclass
class Window:
    """Keeps the last retrievals that have labels, and measures them when a report is made.

    Only what alerts are about is measured as it comes. One thread at a time may call it.

    Attributes
    ----------
    name : str
        Of the run.
    labels : Labels
    corpus_size : int, {query: int} or None
        By the id or the text of a query.
    corpus : UnderFilter or None
        The passages that the filter of the retriever leaves, if it has one.
    passages_of : PassageCounts or None
        The number of passages of each document, if labels and lists name documents.
    measures : sequence of Measure
        Of the report, without their depths.
    depths : sequence of int or None
        Of the report, as far as its lists reach. None stands for the usual ones and the longest list.
    alerted : sequence of Measure
        What alerts are about.
    kept : deque of Retrieval
        As many as its limit allows.
    form : IdForm
        In which passage ids are those of the labels; it may say that they are right, even if none is ever retrieved.
    policy : Policy

    Raises
    ------
    InputError
        If a measure can never have a figure: BoR without a corpus size, or RA-nWG with binary labels.
    """

    name: str
    labels: Labels
    corpus_size: int | dict[str, int] | None
    corpus: UnderFilter | None
    passages_of: PassageCounts | None
    measures: Sequence[Measure]
    depths: Sequence[int] | None
    alerted: Sequence[Measure]
    kept: deque[Retrieval]
    form: IdForm
    policy: Policy
    #: Of what alerts are about, over all retrievals so far: where it is undefined for the whole.
    _undefined: dict[Measure, Refusal | None] = field(default_factory=dict)
    _refused: Counter[str] = field(default_factory=Counter)
    _met: Meeting = field(default_factory=Meeting)
    #: All measured retrievals, the lists among them that hold something, and the passages in these.
    _measured: int = 0
    _lists: int = 0
    _passages: int = 0
    #: Whether a retriever has brought candidates beyond those shown.
    _pooled: bool = False

    def __post_init__(self) -> None:
        junk = {"q": {"d": max(1, scale_named(self.labels.scale).lowest)}}
        size, scale = None if self.corpus_size is None else 1, self.labels.scale
        probe = join(Qrels.of(junk), Run.of({"q": ["d"]}), corpus_size=size, scale=scale, policy=self.policy)
        for measure in [*self.measures, *self.alerted]:
            measure.outcome(probe, _depth_of(measure))

    @property
    def ids_do_not_meet(self) -> str | None:
        """Why there are no figures, if ten retrievals or more brought no labelled passage; else None."""
        if self.form.exact or not self._met.nothing:
            return None
        unmet = f"not one labelled passage was retrieved in {self._met.lists:,} retrievals with labels"
        mend = "Record passages by the ids of the labels (an adapter with identity='auto' looks for them)"
        exact = "If the ids are right and the retriever found nothing, give ids='exact'"
        return f"{unmet}: {self._met.sides('the retriever brought')}. {mend}. {exact}"

    # -- taking in ---------------------------------------------------------------------------------

    def add(self, batch: Sequence[Retrieval]) -> Iterator[dict[Measure, Outcome] | str]:
        """Take in retrievals that have labels; gives the figures that alerts are about, or why one has none."""
        self._lists += sum(bool(each.shown) for each in batch)
        self._passages += sum(len(each.shown) for each in batch)
        self._pooled |= any(each.pool is not None for each in batch)
        if self.form.changes_ids:
            batch = list(map(self._spelled, batch))
        parts = [batch] if batch else []
        while parts:
            part = parts.pop(0)
            try:
                judged = self._judged({str(i): each for i, each in enumerate(part)})
                outcomes = {measure: measure.outcome(judged, _depth_of(measure)) for measure in self.alerted}
            except Exception as error:
                if len(part) == 1:
                    yield self._refuse(error)
                else:
                    # One bad retrieval must not cost the others.
                    parts = [[each] for each in part]
                continue
            self.kept.extend(part)
            self._measured += len(part)
            for retrieval in part:
                self._met.add([*retrieval.shown, *(retrieval.pool or ())], self._grades(retrieval), self.corpus)
            yield self._known(outcomes)

    def _grades(self, retrieval: Retrieval) -> Mapping[str, int]:
        return self.labels.by_query.get(retrieval.name_in(self.labels.by_query) or "", {})

    def _spelled(self, retrieval: Retrieval) -> Retrieval:
        """The retrieval with its ids as its labels spell them."""
        labels, pool = self._grades(retrieval), retrieval.pool
        pool = None if pool is None else self.form.spelled(pool, labels)
        return replace(retrieval, shown=self.form.spelled(retrieval.shown, labels), pool=pool)

    def _known(self, outcomes: Mapping[Measure, Outcome]) -> dict[Measure, Outcome]:
        """The same figures, undefined if they cannot be said of the whole."""
        for measure, outcome in outcomes.items():
            self._undefined[measure] = joint_refusal((self._undefined.get(measure), outcome.refused))
        # While passages came and none was labelled, ids may be those of something else: no alarm must rest on that.
        if not self._met.known and self._lists and not self.form.exact:
            return {}
        return {each: replace(of, refused=self._undefined[each]).settled() for each, of in outcomes.items()}

    def _refuse(self, error: Exception) -> str:
        reason = str(error)
        if not isinstance(error, InputError):
            LOG.error("run %r: a retrieval could not be measured", self.name, exc_info=error)
            reason = f"{type(error).__name__}: {error}"
        self._refused[reason if reason in self._refused or len(self._refused) < _MOST_REASONS else _OTHER_REASONS] += 1
        return reason

    def _judged(self, retrievals: Mapping[str, Retrieval]) -> JudgedRun:
        """The join of retrievals, each under a name of its own."""
        sizes = {name: self._size(each) for name, each in retrievals.items()}
        for name, each in retrievals.items():
            if (size := sizes[name]) is not None and (count := len({*each.shown})) > size:
                fact = f"{counted(count, 'different passage')} were shown, more than the corpus has (N = {size:,})"
                raise InputError(f"{fact}: N counts all chunks that can be retrieved (how-to: corpus-size)")
        pools = {name: each.pool for name, each in retrievals.items() if self._pooled and each.pool is not None}
        judged = join(
            self.labels.qrels.under(self._queries(retrievals)),
            Run.of({name: each.shown for name, each in retrievals.items()}),
            pool=Run.of(pools) if self._pooled else None,
            corpus_size=None if self.corpus_size is None else sizes,
            corpus=self.corpus,
            passages_of=self.passages_of,
            scale=self.labels.scale,
            policy=self.policy,
            name=self.name,
            ids="exact" if self.form.exact else None,
        )
        # An empty list has as many slots as the others on average, where no depth is given.
        return replace(judged, empty_slots=round(self._passages / self._lists) if self._lists else _SLOTS_IF_UNKNOWN)

    def _size(self, each: Retrieval) -> int | None:
        of = self.corpus_size
        return each.corpus_size or (of.get(each.name_in(of) or "") if isinstance(of, dict) else of)

    def _queries(self, retrievals: Mapping[str, Retrieval]) -> dict[str, str]:
        return {name: each.name_in(self.labels.by_query) or "" for name, each in retrievals.items()}

    # -- reporting ---------------------------------------------------------------------------------

    def report(self, traffic: Traffic, without: list[Retrieval], more: list[str], bootstrap: Bootstrap) -> Report:
        """The figures of the retrievals that are kept, and of questions without one; `more` are further notes.

        Raises
        ------
        InputError
            If no retrieval was measured, or if ten or more were and none of them brought a labelled passage.
        """
        self._refuse_without_figures(traffic, without)
        kept = [*self.kept, *without]
        rows = dict(zip(numbered_queries(each.query_id or each.query for each in kept), kept, strict=True))
        judged = self._judged(rows)
        longest = int(judged.returned.max(initial=0))
        usual = [*default_depths(longest).tolist(), longest]
        depths = {depth for depth in (usual if self.depths is None else self.depths) if 0 < depth <= longest}
        query_of = self._queries(rows)
        if (queries := len(set(query_of.values()))) < len(rows) and bootstrap.clusters is None:
            bootstrap = replace(bootstrap, clusters=query_of)
        plan = plan_of(self.measures, np.array(sorted(depths), np.int64), whole_lists=True)
        outcomes = [measure.outcome(judged, at).settled() for measure, at in plan]
        # Live retrievals cannot be repeated, so a later report is not compared with this one query by query.
        figures = Figures(judged.queries, plan, outcomes, (judged, None), (Facts(), None))
        notes = {self.name: [*self._notes(traffic, len(rows) - len(without), queries - len(without)), *more]}
        report = report_on({self.name: figures}, self.measures, bootstrap, notes, provenance=self.labels.provenance)
        run = replace(report.runs[self.name], input={"not_made": len(without)} if without else {})
        size = None if isinstance(self.corpus_size, dict) else self.corpus_size
        return replace(report, runs={self.name: run}, corpus_size=size)

    def _refuse_without_figures(self, traffic: Traffic, without: Sequence[Retrieval]) -> None:
        if self._measured:
            why = self.ids_do_not_meet
        elif self._refused:
            why = f"no retrieval could be measured so far: {next(iter(self._refused))}"
        elif without and not traffic.retrievals:
            were = counted(len(without), "labelled question was", "labelled questions were")
            asked = f"{were} asked{named([each.query for each in without], len(without))}, and no retrieval was seen"
            why = f"{asked}: does the retriever get the callbacks, or run inside the watched call?"
        elif not traffic.retrievals:
            why = "no retrieval was recorded so far: if there were some, the log names what went wrong"
        elif not self.labels.by_query:
            grade = "(Monitor(trace=…, trace_texts=True), then rag-selectivity grade --trace)"
            mend = f"give labels=…, or let a judge grade a trace {grade}. What needs none is in `traffic`"
            seen = f"{counted(traffic.retrievals, 'retrieval')}, {traffic.failed:,} failed, {traffic.empty:,} empty"
            why = f"there are no labels, and figures need some: {mend}: {seen}"
        else:
            seen = f"{counted(traffic.retrievals, 'retrieval')} so far, none of them with labels"
            mend = 'config={"metadata": {"query_id": …}} in LangChain, else monitor.request(query_id=…)'
            unmet = f"{seen}: are the labels' queries the ids or texts that were asked?"
            why = f"{unmet} Give the id where an agent rewrites them: {mend}"
        if why is not None:
            raise InputError(why)

    def _notes(self, traffic: Traffic, kept: int, queries: int) -> Iterable[str]:
        shown = f"; {traffic.shown:.3g} shown on average" if traffic.failed < traffic.retrievals else ""
        seen = f"{counted(traffic.retrievals, 'retrieval')}, {traffic.labelled:,} with labels{shown}"
        yield f'{seen}. Figures are of what was shown (short_lists="returned"), those without a depth of all of it'
        if kept < self._measured:
            yield f"figures over the last {counted(kept, 'retrieval')} that were measured"
        if queries < kept:
            of = counted(queries, "labelled query", "labelled queries")
            yield f"{kept:,} retrievals are of {of}: the intervals take those of one query together"
        if traffic.sampled < traffic.retrievals:
            share = traffic.sampled / traffic.retrievals
            yield f"a random {share:.3g} of all retrievals ({traffic.sampled:,}) was taken for the figures"
        if traffic.outcomes:
            bounds = f" [{traffic.outcome_low:.3g}, {traffic.outcome_high:.3g}]" if traffic.outcomes > 1 else ""
            yield f"outcome {traffic.outcome:.3g}{bounds} on average over {counted(traffic.outcomes, 'outcome')}"
        for name, note in _NOTES.items():
            if count := getattr(traffic, name):
                yield f"{counted(count, note[0])} {note[1]}"
        for reason, count in self._refused.items():
            yield f"{counted(count, 'retrieval')} could not be measured: {reason}"


def _depth_of(measure: Measure) -> NDArray[Any]:
    """The depth of a measure that is computed alone; whole lists where it names none."""
    return measure.default_depths(np.array([WHOLE_LIST])) if measure.at is None else np.array([measure.at])
