"""The figures of live retrievals: a table of the last of them, a row for each retrieval."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.evaluate import Measured, report_on
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.joining import join
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.traffic import Traffic
from rag_selectivity.log import LOG
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.base import WHOLE_LIST
from rag_selectivity.measures.outcome import joint_refusal
from rag_selectivity.measures.plan import Plan
from rag_selectivity.results.report import Report
from rag_selectivity.single import Labels
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.tables.identity import numbered_queries
from rag_selectivity.tables.matching import Meeting
from rag_selectivity.tables.small import PassageCounts
from rag_selectivity.wording import counted

#: Reasons name values of the application; these bound what a faulty one can fill.
_MOST_REASONS, _OTHER_REASONS = 100, "other reasons, which are not named"

#: The slots of an empty list if nothing was shown so far.
_SLOTS_IF_UNKNOWN = 10

#: Gives the outcome of a measure and the column of its depth; None where the labels lack what the measure needs.
OutcomeOf = Callable[[Measure], tuple[Outcome, int] | None]


class LiveFigures:
    """Keeps the last retrievals that have labels, and measures them when a report is made.

    Only what alerts are about is measured as it comes. One thread at a time may call it.

    Parameters
    ----------
    labels : Labels
    corpus_size : int or None
    plan : Plan
        The measures and their depths.
    alerted : sequence of Measure
        What alerts are about, each with its depth.
    kept : int
        How many retrievals are kept.
    name : str
        Of the run, for warnings.

    Attributes
    ----------
    ids_are_right : bool
        Whether the passage ids are known to be those of the labels, even if not one of them is ever retrieved.
    passages_of : PassageCounts or None
        The number of passages of each document, if labels and lists name documents. Set it before the first `add`.

    Raises
    ------
    InputError
        If a measure can never have a figure: BoR without a corpus size, or RA-nWG with binary labels.
    """

    def __init__(
        self, labels: Labels, corpus_size: int | None, plan: Plan, alerted: Sequence[Measure], kept: int, name: str
    ) -> None:
        self._labels, self._corpus_size, self._plan, self._name = labels, corpus_size, plan, name
        self._alerted = dict.fromkeys(measure.without_depth for measure in alerted)
        self._policy = resolve_policy(None, order="rank", short_lists="returned")
        self.kept: deque[Retrieval] = deque(maxlen=kept)
        self._measured = 0
        #: What the measures of alerts need and are refused, over all retrievals so far, without the figures.
        self._so_far: dict[Measure, Outcome] = {}
        self._refused: Counter[str] = Counter()
        #: The measured lists that hold something, and the passages in them.
        self._lists = self._passages = 0
        self.ids_are_right = False
        self.passages_of: PassageCounts | None = None
        self._met = Meeting()
        self._check_measures()

    @property
    def ids_do_not_meet(self) -> str | None:
        """Why there are no figures, if ten retrievals or more brought no labelled passage; else None."""
        if self.ids_are_right or not self._met.nothing:
            return None
        return (
            f"not one labelled passage was retrieved for {self._met.lists:,} labelled queries: "
            f"{self._met.sides('the retriever brought')}. Record passages by the ids of the labels (an adapter with "
            f"identity='auto' looks for them). If the ids are right and the retriever found nothing, give ids='exact'"
        )

    @property
    def ids_hardly_meet(self) -> str | None:
        """What is odd, if far fewer labelled passages were retrieved than the labels promise; else None."""
        if self.ids_are_right or not self._met.too_few:
            return None
        return (
            f"the lists hold {self._met.known:,} labelled passages, and could hold {self._met.promised:,}: "
            f"{self._met.sides('the retriever brought')}. Check whether both have the same ids and the same units "
            f"(chunks or documents); if they do, the retriever finds few labelled passages"
        )

    def _check_measures(self) -> None:
        lowest = scale_named(self._labels.scale).lowest
        judged = join(
            Qrels.of({"q": {"d": max(1, lowest)}}),
            Run.of({"q": ["d"]}),
            corpus_size=self._corpus_size,
            scale=self._labels.scale,
            policy=self._policy,
        )
        for measure, at in self._plan:
            measure.outcome(judged, at)

    # -- taking in ---------------------------------------------------------------------------------

    def add(self, batch: Iterable[Retrieval], when_measured: Callable[[OutcomeOf], None]) -> None:
        """Take in retrievals that have labels; `when_measured` gets what alerts are about, part by part."""
        part = list(batch)
        self._lists += sum(bool(each.shown) for each in part)
        self._passages += sum(len(each.shown) for each in part)
        if part:
            self._add_part(part, when_measured)

    def _add_part(self, part: list[Retrieval], when_measured: Callable[[OutcomeOf], None]) -> None:
        try:
            judged = self._judged({str(i): each for i, each in enumerate(part)})
            plan = [(measure, at) for measure, at in self._plan if measure in self._alerted]
            outcomes = {measure: measure.outcome(judged, at) for measure, at in plan}
        except Exception as error:
            if len(part) > 1:
                # One bad retrieval must not cost the others: halve the part until it is alone.
                middle = len(part) // 2
                self._add_part(part[:middle], when_measured)
                self._add_part(part[middle:], when_measured)
            else:
                reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
                if not isinstance(error, InputError):
                    LOG.error("run %r: a retrieval could not be measured", self._name, exc_info=error)
                is_kept = reason in self._refused or len(self._refused) < _MOST_REASONS
                self._refused[reason if is_kept else _OTHER_REASONS] += 1
            return
        self.kept.extend(part)
        self._measured += len(part)
        for measure, outcome in outcomes.items():
            before = self._so_far.get(measure, outcome)
            refused = outcome.refused if before is outcome else joint_refusal((before.refused, outcome.refused))
            # No figure is kept here.
            some = outcome.over(slice(0, 0))
            self._so_far[measure] = replace(some, premise=before.premise or outcome.premise, refused=refused)
        for retrieval in part:
            name = retrieval.name_in(self._labels.by_query)
            labels = {} if name is None else self._labels.by_query[name]
            self._met.add([*retrieval.shown, *(retrieval.pool or ())], labels)
        # While passages came and none was labelled, ids may be those of something else: no alarm must rest on that.
        if self._met.known or not self._met.lists or self.ids_are_right:
            when_measured(lambda measure: self._outcome_of(measure, outcomes))

    def _outcome_of(self, measure: Measure, outcomes: Mapping[Measure, Outcome]) -> tuple[Outcome, int] | None:
        at = WHOLE_LIST if measure.at is None else measure.at
        base = measure.without_depth
        column = dict(self._plan)[base].tolist().index(at)
        so_far = self._so_far[base]
        if not so_far.premise or (so_far.refused is not None and so_far.refused.refused[column]):
            return None
        return outcomes[base], column

    def _empty_slots(self) -> int:
        """The slots of an empty list where no depth is given: as many as the other lists have on average."""
        return round(self._passages / self._lists) if self._lists else _SLOTS_IF_UNKNOWN

    def _judged(self, retrievals: Mapping[str, Retrieval]) -> JudgedRun:
        """The join of retrievals, each under a name of its own."""
        qrels = self._labels.qrels.under(
            {name: each.name_in(self._labels.by_query) or "" for name, each in retrievals.items()}
        )
        sizes: Any = self._corpus_size
        own = {name: each.corpus_size for name, each in retrievals.items()}
        if sizes is not None and (self.passages_of is not None or any(size is not None for size in own.values())):
            sizes = {name: self._corpus_size if size is None else size for name, size in own.items()}
        pools = {name: each.pool for name, each in retrievals.items() if each.pool is not None}
        judged = join(
            qrels,
            Run.of({name: each.shown for name, each in retrievals.items()}),
            pool=Run.of(pools) if pools else None,
            corpus_size=sizes,
            passages_of=self.passages_of,
            scale=self._labels.scale,
            policy=self._policy,
            name=self._name,
            ids="exact",
            # Whether any ids match can be said only of all retrievals: see `_notes`.
        )
        return replace(judged, empty_slots=self._empty_slots())

    # -- reporting ---------------------------------------------------------------------------------

    def report(
        self,
        runs: Mapping[str, Iterable[Retrieval]],
        traffic: Mapping[str, Traffic],
        measures: Sequence[Measure],
        bootstrap: Bootstrap,
    ) -> Report:
        """The figures of retrievals that are kept, by the name of the run: all of them, or those of each arm.

        Raises
        ------
        InputError
            If no retrieval was measured, or if ten or more were and none of them brought a labelled passage.
        """
        self._refuse_without_figures(next(iter(traffic.values())))
        longest = max(each.longest for each in traffic.values())
        plan = [(measure, at[(at == WHOLE_LIST) | (at <= longest)]) for measure, at in self._plan]
        figures, notes, query_of = {}, {}, {}
        for name, retrievals in runs.items():
            named = _named(retrievals)
            judged = self._judged(named)
            outcomes = [measure.outcome(judged, at).settled() for measure, at in plan]
            figures[name] = Figures(judged.queries, plan, outcomes, (judged, None))
            query_of.update({row: each.name_in(self._labels.by_query) for row, each in named.items()})
            notes[name] = list(self._notes(traffic[name], len(named), len({query_of[row] for row in named})))
        if len(set(query_of.values())) < len(query_of) and bootstrap.clusters is None:
            bootstrap = replace(bootstrap, clusters=query_of)
        report = report_on(Measured(list(measures), figures), bootstrap, notes, provenance=self._labels.provenance)
        # Live retrievals cannot be repeated, so a later report is not compared with this one query by query.
        parts = {
            name: replace(run, figures=replace(run.figures, whole=None), input={}) for name, run in report.runs.items()
        }
        return replace(report, runs=parts)

    def _refuse_without_figures(self, traffic: Traffic) -> None:
        if not self._measured and self._refused:
            raise InputError(f"no retrieval could be measured so far: {next(iter(self._refused))}")
        if not self._measured and not traffic.retrievals:
            raise InputError("no retrieval was recorded so far: if there were some, the log names what went wrong")
        if not self._measured and not self._labels.by_query:
            raise InputError(
                f"there are no labels, and figures need some: give labels=…, or let a judge grade a trace "
                f"(Monitor(trace=…, trace_texts=True), then rag-selectivity grade --trace). What needs none is in "
                f"`traffic`: {counted(traffic.retrievals, 'retrieval')}, {traffic.failed:,} failed, {traffic.empty:,} "
                f"empty"
            )
        if not self._measured:
            raise InputError(
                f"none of the {traffic.retrievals} retrievals so far had labels: are the labels' queries the "
                f"ids or texts that were asked?"
            )
        if self.ids_do_not_meet is not None:
            raise InputError(self.ids_do_not_meet)

    def _notes(self, traffic: Traffic, kept: int, queries: int) -> Iterable[str]:
        yield (
            f"{traffic.retrievals:,} retrievals, {traffic.labelled:,} of them with labels; {traffic.shown:.3g} shown "
            f"on average. Figures without a depth are of all that was shown"
        )
        if kept < self._measured and len(self.kept) == self.kept.maxlen:
            yield f"figures over the last {kept:,} of the measured retrievals"
        if queries < kept:
            yield (
                f"{kept:,} retrievals are of {counted(queries, 'labelled query', 'labelled queries')}: the intervals "
                f"take those of one query together"
            )
        if traffic.sampled < traffic.retrievals:
            share = traffic.sampled / traffic.retrievals
            yield f"a random {share:.3g} of all retrievals ({traffic.sampled:,}) was taken for the figures"
        if traffic.outcomes:
            bounds = f" [{traffic.outcome_low:.3g}, {traffic.outcome_high:.3g}]" if traffic.outcomes > 1 else ""
            yield f"outcome {traffic.outcome:.3g}{bounds} on average over {traffic.outcomes:,} outcomes"
        if traffic.lost_outcomes:
            yield f"{traffic.lost_outcomes:,} outcomes came with an id that no known retrieval has, and are not counted"
        if traffic.not_traced:
            yield f"the trace lacks {traffic.not_traced:,} retrievals and outcomes, since it could not be written"
        if traffic.empty:
            yield f"{traffic.empty:,} retrievals returned nothing"
        if traffic.failed:
            yield (
                f"{traffic.failed:,} retrievals failed (an error, a cancellation, or None as the result) and count as "
                f"lists without a passage; the means of passages shown, tokens and seconds leave them out"
            )
        if traffic.empty_passages:
            yield f"{traffic.empty_passages:,} of the passages shown have no text"
        if traffic.nan_scores:
            yield f"{traffic.nan_scores:,} of the passages shown have NaN as their score, so their rank means nothing"
        if not self._met.known:
            yield "not one labelled passage was ever retrieved: are the labels' passage ids those of the index?"
        if self.ids_hardly_meet is not None:
            yield self.ids_hardly_meet
        for reason, count in self._refused.items():
            yield f"{count:,} retrievals could not be measured: {reason}"


def _named(retrievals: Iterable[Retrieval]) -> dict[str, Retrieval]:
    """The retrievals by their queries; a query that occurs again gets a number, since every retrieval counts."""
    kept = list(retrievals)
    return dict(zip(numbered_queries(each.query_id or each.query for each in kept), kept, strict=True))
