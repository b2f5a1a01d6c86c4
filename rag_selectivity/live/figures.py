"""The figures of live retrievals: exact sums over all of them, and a random sample with its figures one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.estimating.caveats import LabelFacts, universes, with_label_caveats
from rag_selectivity.estimating.estimates import estimates_of_moments, notes_of_refusals, with_caveats
from rag_selectivity.figures.figures import Figures
from rag_selectivity.judged.facts import note_of_lost_labels
from rag_selectivity.judged.hits import Coverage
from rag_selectivity.judged.joining import join
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.reach import LabelReach
from rag_selectivity.judged.run import Run
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.traffic import Traffic
from rag_selectivity.log import LOG
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray
from rag_selectivity.measures.plan import Plan, ranks_in
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.single import Labels
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.moments import Moments
from rag_selectivity.statistics.placebos import PlaceboSums
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.tables.matching import Meeting
from rag_selectivity.tables.passage_counts import PassageCounts
from rag_selectivity.wording import counted

#: Reasons name values of the application; these bound what a faulty one can fill.
_MOST_REASONS, _OTHER_REASONS = 100, "other reasons, which are not named"

#: The slots of an empty list if nothing was shown so far.
_SLOTS_IF_UNKNOWN = 10

#: Gives the outcome of a measure and the column of its depth; None where the labels lack what the measure needs.
OutcomeOf = Callable[[Measure], tuple[Outcome, int] | None]


@dataclass(frozen=True, slots=True)
class _Sampled:
    """A retrieval of the sample with its figures: every part of every outcome at every depth."""

    retrieval: Retrieval
    figures: FloatArray


class LiveFigures:
    """Measures retrievals batch by batch, in memory that does not grow. One thread at a time may call it.

    Parameters
    ----------
    labels : Labels
    corpus_size : int or None
    plan : Plan
        The measures and their depths.
    sample_size : int
        Retrievals in the random sample.
    seed : int
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
        self,
        labels: Labels,
        corpus_size: int | None,
        plan: Plan,
        sample_size: int,
        seed: int,
        name: str,
    ) -> None:
        self._labels = labels
        self._corpus_size = corpus_size
        self._plan = plan
        self._name = name
        self._policy = resolve_policy(None, order="rank", short_lists="returned")
        self._sample_size = sample_size
        self._random = random.Random(seed)
        self._sample: list[_Sampled] = []
        self._moments: list[Moments] | None = None
        self._coverage = Coverage()
        self._refused: dict[str, int] = {}
        self._clipped = self._lost_labels = 0
        #: The measured lists that hold something, and the passages in them.
        self._lists = self._passages = 0
        self.ids_are_right = False
        self.passages_of: PassageCounts | None = None
        self._met = Meeting()
        #: The queries of the labels that were asked, and how many retrievals they had.
        self._asked: set[str] = set()
        self._askings = 0
        #: The depths of what is known of the labels: the ranks, and all that was shown.
        self._reached = np.append(ranks_in(plan), WHOLE_LIST)
        self._reach: LabelReach | None = None
        self._placebos = PlaceboSums()
        self._check_measures()

    @property
    def sample(self) -> list[Retrieval]:
        """The retrievals of the random sample."""
        return [sampled.retrieval for sampled in self._sample]

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

    # -- measuring ---------------------------------------------------------------------------------

    def add(self, batch: Iterable[Retrieval], when_measured: Callable[[OutcomeOf], None]) -> None:
        """Measure retrievals that have labels; `when_measured` gets the figures of each part of the batch."""
        part = list(batch)
        self._lists += sum(bool(each.shown) for each in part)
        self._passages += sum(len(each.shown) for each in part)
        if part:
            self._add_part(part, when_measured)

    def _add_part(self, part: list[Retrieval], when_measured: Callable[[OutcomeOf], None]) -> None:
        try:
            judged = self._judged(part)
            outcomes = [measure.outcome(judged, at) for measure, at in self._plan]
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
                reason = reason if is_kept else _OTHER_REASONS
                self._refused[reason] = self._refused.get(reason, 0) + 1
            return
        if self._moments is None:
            self._moments = [Moments.of(outcome) for outcome in outcomes]
        else:
            for moments, outcome in zip(self._moments, outcomes, strict=True):
                moments.add(outcome)
        reach = LabelReach.of(judged, self._reached)
        self._reach = reach if self._reach is None else self._reach + reach
        self._placebos.add(judged, self._plan, outcomes, in_corpus=not self._reach.stays_among_labels)
        self._count(judged)
        for retrieval in part:
            name = retrieval.name_in(self._labels.by_query)
            labels = {} if name is None else self._labels.by_query[name]
            self._met.add([*retrieval.shown, *(retrieval.pool or ())], labels)
            if name is not None:
                self._asked.add(name)
                self._askings += 1
        self._draw(part, outcomes)
        # While passages came and none was labelled, ids may be those of something else: no alarm must rest on that.
        if self._met.known or not self._met.lists or self.ids_are_right:
            when_measured(lambda measure: self._outcome_of(measure, outcomes))

    def _count(self, judged: JudgedRun) -> None:
        self._lost_labels += judged.facts.not_in_index
        coverage = judged.coverage
        self._coverage = replace(
            self._coverage,
            duplicates=self._coverage.duplicates + coverage.duplicates,
            outside_pool=self._coverage.outside_pool + coverage.outside_pool,
        )
        if judged.corpus_size is not None:
            self._clipped += int((judged.returned > judged.corpus_size).sum())

    def _outcome_of(self, measure: Measure, outcomes: list[Outcome]) -> tuple[Outcome, int] | None:
        at = WHOLE_LIST if measure.at is None else measure.at
        place = [planned for planned, _ in self._plan].index(measure.without_depth)
        column = self._plan[place][1].tolist().index(at)
        if self._moments is None or not self._moments[place].has_figures[column]:
            return None
        return outcomes[place], column

    def _empty_slots(self) -> int:
        """The slots of an empty list where no depth is given: as many as the other lists have on average."""
        return round(self._passages / self._lists) if self._lists else _SLOTS_IF_UNKNOWN

    def _judged(self, part: list[Retrieval]) -> JudgedRun:
        by_name = {str(i): retrieval for i, retrieval in enumerate(part)}
        qrels = self._labels.qrels.under(
            {name: each.name_in(self._labels.by_query) or "" for name, each in by_name.items()}
        )
        sizes: Any = self._corpus_size
        own = {name: each.corpus_size for name, each in by_name.items()}
        if sizes is not None and (self.passages_of is not None or any(size is not None for size in own.values())):
            sizes = {name: self._corpus_size if size is None else size for name, size in own.items()}
        pools = {name: each.pool for name, each in by_name.items() if each.pool is not None}
        judged = join(
            qrels,
            Run.of({name: each.shown for name, each in by_name.items()}),
            pool=Run.of(pools) if pools else None,
            corpus_size=sizes,
            passages_of=self.passages_of,
            scale=self._labels.scale,
            policy=self._policy,
            name=self._name,
            ids="exact",
            # Whether any ids match can be said only of all retrievals: see `_notes`.
            part_of_whole=True,
        )
        return replace(judged, empty_slots=self._empty_slots())

    def _draw(self, part: list[Retrieval], outcomes: list[Outcome]) -> None:
        """Update the random sample, in which each retrieval has the same chance to be (Vitter's algorithm R)."""
        rows = np.concatenate([np.concatenate(outcome.parts, axis=1) for outcome in outcomes], axis=1)
        seen = self._moments[0].total - len(part) if self._moments else 0
        for i, retrieval in enumerate(part):
            seen += 1
            if len(self._sample) < self._sample_size:
                self._sample.append(_Sampled(retrieval, rows[i].copy()))
            else:
                place = self._random.randrange(seen)
                if place < self._sample_size:
                    self._sample[place] = _Sampled(retrieval, rows[i].copy())

    # -- reporting ---------------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether the sample holds every measured retrieval."""
        return self._moments is None or len(self._sample) == self._moments[0].total

    def report(
        self, measures: tuple[Measure, ...], traffic: Traffic, bootstrap: Bootstrap, *, resampled: bool = True
    ) -> tuple[RunReport, tuple[int, ...], dict[str, Any]]:
        """The figures so far, the depths of their table, and how their intervals were made.

        Without `resampled`, intervals come from the moments, even if the sample holds every measured retrieval.

        Raises
        ------
        InputError
            If no retrieval was measured, or if ten or more were and none of them brought a labelled passage.
        """
        if self._moments is None and self._refused:
            raise InputError(f"no retrieval could be measured so far: {next(iter(self._refused))}")
        if self._moments is None and not traffic.retrievals:
            raise InputError("no retrieval was recorded so far: if there were some, the log names what went wrong")
        if self._moments is None and not self._labels.by_query:
            raise InputError(
                f"there are no labels, and figures need some: give labels=…, or let a judge grade a trace "
                f"(Monitor(trace=…, trace_texts=True), then rag-selectivity grade --trace). What needs none is in "
                f"`traffic`: {counted(traffic.retrievals, 'retrieval')}, {traffic.failed:,} failed, {traffic.empty:,} "
                f"empty"
            )
        if self._moments is None:
            raise InputError(
                f"none of the {traffic.retrievals} retrievals so far had labels: are the labels' queries the "
                f"ids or texts that were asked?"
            )
        if self.ids_do_not_meet is not None:
            raise InputError(self.ids_do_not_meet)
        resampled = resampled and self.complete
        sampled = self._sampled_outcomes(self._moments)
        intervals = bootstrap.intervals(sampled) if resampled else None
        estimates: dict[str, Estimate] = {}
        for i, (measure, at) in enumerate(self._plan):
            moments = self._moments[i]
            low, high = intervals[i] if intervals is not None else moments.interval(bootstrap.level)
            figures = estimates_of_moments(moments, low, high)
            for depth, figure in zip(at.tolist(), figures, strict=True):
                if depth != WHOLE_LIST and depth > traffic.longest:
                    continue
                estimates[str(measure @ depth)] = figure
        estimates = with_caveats(estimates, measures)
        if self._reach is not None:
            shuffled = universes(self._plan, self._reached, self._reach, exhaustive=False)
            placebos = self._placebos.figures(shuffled, bootstrap.level)
            facts = LabelFacts(self._reached, self._reach, placebos)
            estimates = with_label_caveats(estimates, facts, dict(self._plan))
        table = Figures(tuple(self._names()), self._plan, sampled)
        notes = tuple(self._notes(traffic, table, estimates, self.complete, self._moments[0].total))
        run = RunReport(table, estimates, self._coverage, notes)
        depths = tuple(depth for depth in ranks_in(self._plan).tolist() if depth <= traffic.longest)
        return run, depths, bootstrap.settings if resampled else {"method": "delta", "level": bootstrap.level}

    def _sampled_outcomes(self, moments_of_measures: list[Moments]) -> list[Outcome]:
        """The figures of the sample as outcomes of a whole dataset."""
        width = sum(moments.lowest.size for moments in moments_of_measures)
        rows = np.stack([sampled.figures for sampled in self._sample]) if self._sample else np.empty((0, width))
        outcomes, start = [], 0
        for moments in moments_of_measures:
            count, depths = moments.lowest.shape
            parts = tuple(rows[:, start + p * depths : start + (p + 1) * depths] for p in range(count))
            start += count * depths
            outcome = Outcome(
                parts,
                moments.undefined,
                moments.aggregate,
                moments.bounds,
                moments.premise,
                refused=moments.refused,
            )
            outcomes.append(outcome.settled())
        return outcomes

    def _names(self) -> list[str]:
        """The queries of the sample; a query that occurs again gets a number, since every retrieval counts."""
        times: dict[str, int] = {}
        names = []
        for retrieval in self.sample:
            name = retrieval.query_id or retrieval.query
            times[name] = times.get(name, 0) + 1
            names.append(name if times[name] == 1 else f"{name} ({times[name]})")
        return names

    def _notes(
        self, traffic: Traffic, table: Figures, figures: Container[str], complete: bool, measured: int
    ) -> Iterable[str]:
        yield (
            f"{traffic.retrievals:,} retrievals, {traffic.labelled:,} of them with labels; {traffic.shown:.3g} shown "
            f"on average. Figures without a depth are of all that was shown"
        )
        if self._askings > len(self._asked):
            queries = counted(len(self._asked), "labelled query", "labelled queries")
            yield (
                f"{self._askings:,} retrievals are of {queries}. The intervals take each retrieval as independent: "
                f"about queries that were not asked they say too much"
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
        if not complete:
            size = len(self._sample)
            yield f"figures over {measured:,} retrievals; figures of single queries for a random sample of {size:,}"
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
        if self._clipped:
            yield f"{self._clipped:,} retrievals showed more passages than their corpus has: is N right?"
        if self._coverage.duplicates:
            yield f"{self._coverage.duplicates:,} passages stood twice in their list"
        yield from note_of_lost_labels(self._lost_labels)
        yield from notes_of_refusals(table, figures)
        for reason, count in self._refused.items():
            yield f"{count:,} retrievals could not be measured: {reason}"
