"""Reports of measured runs: the estimates of each run and slice, what they rest on, and what the labels are worth."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rag_selectivity.evaluation.caveats import LabelFacts, in_part, of_concentration, of_labels, of_origins, of_strata
from rag_selectivity.evaluation.doubts import Doubts
from rag_selectivity.evaluation.labels import agreement_of, provenance_of, with_people, without_grades
from rag_selectivity.figures.by import Slicing
from rag_selectivity.figures.figures import Figures
from rag_selectivity.figures.weighting import weights_notes, weights_settings
from rag_selectivity.inference.bootstrap import Bootstrap, Ends
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures import Measure
from rag_selectivity.measures.base import Outcome
from rag_selectivity.measures.plan import Plan, absent_measures, ranks_in
from rag_selectivity.results.estimate import (
    CALIBRATED,
    CONCENTRATED,
    CONCENTRATED_CONTROLS,
    WITH_CONTROLS,
    WITH_TAIL,
    Caveat,
    Estimate,
)
from rag_selectivity.results.plain import finite
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.report import Report, Steps
from rag_selectivity.results.run_report import RunReport, Slice
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.completions import DRAWS, Completed, completed_figures
from rag_selectivity.trust.controls import controlled_figures
from rag_selectivity.trust.people import Ground, calibration_ground
from rag_selectivity.trust.placebo import AT_K, against_other_lists, labels_found_by_any, placebos_of
from rag_selectivity.wording import counted

Estimates = dict[str, Estimate]


def report_on(
    figures: Mapping[str, Figures],
    measures: Sequence[Measure],
    bootstrap: Bootstrap | None,
    notes: Mapping[str, list[str]] | None = None,
    ground: Ground | None = None,
    slicings: Sequence[Slicing] = (),
    completed: dict[Any, Completed] | None = None,
    provenance: Provenance | None = None,
) -> Report:
    """The report of figures that were measured before; `ground` calibrates them by people's labels.

    `completed` has what another report of the same runs computed. `provenance` says where the labels come
    from, if the joins do not.
    """
    judged, plan = {name: table.join for name, table in figures.items()}, next(iter(figures.values())).plan
    if bootstrap is not None:
        bootstrap = Bootstrap.required(bootstrap).for_queries(max(map(len, judged.values())))
    first, known, notes = next(iter(judged.values())), completed or {}, notes or {}
    size, provenance = first.corpus_size, provenance or _provenance(first, ground)
    shared = _Evaluation(judged, plan, tuple(measures), bootstrap, ground, known, provenance, slicings)
    found, source = labels_found_by_any(judged), None if first.qrels is None else first.qrels.source
    return Report(
        runs={name: shared.report_of(name, table, found[name], notes.get(name, ())) for name, table in figures.items()},
        measures=shared.measures,
        depths=tuple(ranks_in(plan).tolist()),
        corpus_size=int(size[0]) if size is not None and len(size) and (size == size[0]).all() else None,
        scale=first.scale.name,
        settings={**(bootstrap.settings if bootstrap else {}), **weights_settings(judged)},
        bootstrap=bootstrap,
        absent=absent_measures(shared.measures, sized=size is not None),
        ground=ground,
        provenance=provenance,
        completed=known,
        steps=Steps(labels=source or Steps.labels, files=[f"{name}=RUN" for name in figures]),
    )


def _provenance(run: JudgedRun, ground: Ground | None) -> Provenance | None:
    if run.qrels is None:
        return None
    known, size = provenance_of(run.qrels, scale=run.scale), run.corpus_size
    if size is not None and (run.left.labelled >= size).all():
        known = replace(known, chosen={"corpus": known.labels})
    if ground is None:
        return known
    known = with_people(known, agreement_of(ground, run.scale), ground.drawn_for_people)
    junk = bool(max(ground.human.max(), ground.settling.max()) < ground.scale.relevant_from)
    return replace(known, unused=ground.controls_left_out, calibrated=True, all_junk=junk)


@dataclass(frozen=True)
class _Evaluation:
    """What all runs of a report share.

    Attributes
    ----------
    plan : list of (Measure, depths)
        What is measured. Measures beside `measures` only give the upper ends of possible ranges.
    measures : tuple of Measure
        What is shown.
    """

    judged: Mapping[str, JudgedRun]
    plan: Plan
    measures: tuple[Measure, ...]
    bootstrap: Bootstrap | None
    ground: Ground | None
    completed: dict[Any, Completed]
    provenance: Provenance | None
    slicings: Sequence[Slicing]

    def report_of(self, name: str, figures: Figures, found: IntArray, notes: Iterable[str]) -> RunReport:
        """The report on one run and its slices, whose intervals all come from the same resamples.

        `found` is the number of labels of each query that some list or pool of the evaluation holds.
        """
        run, deepest = figures.join, int(ranks_in(self.plan).max(initial=0))
        facts = LabelFacts.of(run, self.plan, found)
        among = dict(zip(facts.place, facts.reach.shuffled_among_labels.T & (not facts.exhaustive), strict=True))
        placebos = {} if run.qrels is None else placebos_of(run, self.plan, figures.outcomes, among)
        outcomes = [*figures.outcomes, *(beyond for _, beyond in placebos.values())]
        places = [slicing.places(figures.queries) for slicing in self.slicings]
        parts: list[tuple[str | None, str, Any]] = [(None, "", np.ones(len(figures.queries), bool))]
        for slicing, of_slicing in zip(self.slicings, places, strict=True):
            parts += [(slicing.column, slicing.values[i], of_slicing == i) for i in np.unique(of_slicing).tolist()]
        ends = ends_of(outcomes, figures.queries, self.bootstrap, places)
        results, slices = [], dict[str, dict[str, Slice]]()
        for (column, value, chosen), of_part in zip(parts, ends, strict=True):
            shuffled = {measure: placebo.over(chosen) for measure, (placebo, _) in placebos.items()}
            table = figures.where(chosen)
            results.append(self._estimates(name, table, of_part, shuffled, facts, whole=column is None))
            if column is not None:
                slices.setdefault(column, {})[value] = Slice(column, value, len(table.queries), results[-1][0], table)
        estimates, controls, completed = results[0]
        doubts = None if run.made_of is None else Doubts(run.made_of, name, int(found.sum()))
        others = against_other_lists(figures, self.bootstrap)
        return RunReport(
            figures,
            estimates,
            run.coverage,
            (
                *notes,
                *(() if doubts is None else doubts.notes()),
                *_notes_of_coverage(run, deepest),
                *weights_notes(run),
                *_refusals(figures, estimates),
                *(() if self.ground is None else _notes_on_people(self.ground, completed)),
                *(note for slicing in self.slicings for note in slicing.notes),
                *(run.controls.notes_at(deepest) if run.controls is not None and self.ground is None else ()),
            ),
            input={
                **({} if doubts is None else doubts.as_input()),
                **({"controls": controls} if controls else {}),
                **({"other_lists": others} if others else {}),
            },
            label_caveats=tuple(of_origins(self.provenance)),
            slices=slices,
        )

    @cached_property
    def _completing(self) -> Ground | None:
        """What completes the labels: people's, or else the judge's of tails; None if nothing does."""
        run = next(iter(self.judged.values()))
        if self.ground is not None or run.qrels is None or run.documents is not None:
            return self.ground
        ground, _ = calibration_ground(run.qrels, None)
        return ground if ground.tail_open.any() else None

    def _estimates(
        self,
        name: str,
        figures: Figures,
        ends: Sequence[Ends],
        placebos: Mapping[Measure, Outcome],
        facts: LabelFacts,
        *,
        whole: bool,
    ) -> tuple[Estimates, dict[str, Any], Mapping[str, Completed]]:
        """The estimates of a run, or of a slice of it; what is known of its controls; and what completes its labels.

        The ends are those of the measures and then of what these have beyond their placebos.
        """
        labelled = as_judged(figures, ends[: len(self.plan)])
        estimates, controls = dict(labelled), dict[str, Any]()
        # The join of a slice is made only where it is needed.
        run = self.judged[name]
        if self.ground is None and run.controls is not None and run.corpus_size is not None:
            controls = _complete_by_controls(estimates, figures, self.bootstrap)
        completed: Mapping[str, Completed] = {}
        if self._completing is not None:
            shared = self.plan, self.bootstrap, None if whole else {name: figures.join}, self.completed
            completed = completed_figures(self._completing, self.judged, [(name,)], *shared)[(name,)]
        for key, figure in completed.items():
            basis = WITH_TAIL if self.ground is None else CALIBRATED
            estimates[key] = _of_completions(estimates[key], figure, basis, intervals=self.bootstrap is not None)
        shuffled = dict[Measure, Any]()
        for (base, outcome), of_it in zip(placebos.items(), ends[len(self.plan) :], strict=True):
            value = outcome.value()
            # Beyond the placebo of a ratio to chance lies the ratio to the placebo.
            is_ratio = outcome.aggregate.form == "ratio"
            shuffled[base] = np.stack([value, *(value * (end - 1) if is_ratio else end for end in of_it)], axis=1)
        known = tuple(of_origins(self.provenance)) if whole else ()
        shown, result = {measure.without_depth for measure in self.measures}, Estimates()
        for base, at in self.plan:
            for i, depth in enumerate(at.tolist() if base in shown else ()):
                measure = base @ depth
                estimate = estimates[key := str(measure)]
                if base.upper_end is not None or (base.unjudged_is_a_miss and not facts.exhaustive):
                    only_expected = self.provenance is not None and self.provenance.only_expected
                    estimate = in_part(measure, estimate, estimates, only_expected)
                if base in shuffled and (estimate.basis != CALIBRATED or facts.closed(measure)[1] == AT_K):
                    estimate = _beside_placebo(estimate, *shuffled[base][i].tolist())
                estimate = _with_reason(estimate, self.bootstrap)
                caveats = tuple(of_labels(measure, estimate, facts, labelled[key], known))
                result[key] = replace(estimate, caveats=(*estimate.caveats, *caveats)) if caveats else estimate
        return result, controls, completed


def _beside_placebo(estimate: Estimate, placebo: float, low: float, high: float) -> Estimate:
    """The estimate with its placebo and the interval of what it has beyond it, where it has any."""
    if math.isnan(placebo) or not math.isfinite(estimate.value) or estimate.basis == WITH_CONTROLS:
        return estimate
    return replace(estimate, placebo=placebo, above_placebo=None if math.isnan(low + high) else (low, high))


def _refusals(figures: Figures, shown: Iterable[str]) -> list[str]:
    """A note for each reason why some of a report's figures have no value for a whole run."""
    names: dict[str, list[str]] = {}
    for (measure, depths), outcome in zip(figures.plan, figures.outcomes, strict=True):
        for column in [] if (refused := outcome.refused) is None else np.flatnonzero(refused.refused).tolist():
            if refused is not None and (key := str(measure @ depths[column])) in shown:
                names.setdefault(refused.reason(column), []).append(key)
    return [f"no figure for {', '.join(keys)}, since {reason}" for reason, keys in names.items()]


def _notes_of_coverage(run: JudgedRun, deepest: int) -> list[str]:
    """Notes on what the join and the random draws treated specially."""
    of, sizes = run.coverage, run.corpus_size
    clipped = 0 if sizes is None else int((run.slots_at(np.array([deepest]))[:, 0] > sizes).sum())
    counts = (
        (len(run.outside.query), "label is", "labels are", "outside the filter: only a random draw leaves them out"),
        (clipped, "query has", "queries have", "a corpus smaller than K: the random draw is the whole corpus"),
        (of.duplicates, "passage repeats", "passages repeat", "an earlier passage of the same list"),
        (of.negative_judgments, "judgment below 0 counts", "judgments below 0 count", "as not judged"),
        (of.outside_pool, "judged passage is", "judged passages are", "not in the pool of the run, and counted in it"),
        (of.missing_from_pool, "query is", "queries are", "not in the pool: the run's own list is used as the pool"),
    )
    expected = [f"{of.expected} {without_grades(of.expected + of.graded)}"] if of.graded and of.expected else []
    return [*(f"{counted(count, one, many)} {rest}" for count, one, many, rest in counts if count), *expected]


def filtered_out(run: JudgedRun) -> str:
    """What of the relevant passages a retriever's filter leaves out, as a sentence; empty if it is none."""
    relevant, left = run.relevant(), run.left.relevant()
    whole = int(((relevant > 0) & (left == 0)).sum())
    every = f", all of {counted(whole, 'query', 'queries')}" if whole else ""
    fact = f"The filter leaves out {(relevant - left).sum():,} of {relevant.sum():,} relevant passages{every}. "
    return fact if (relevant > left).any() else ""


def _of_completions(judged: Estimate, figure: Completed, basis: str, *, intervals: bool) -> Estimate:
    """The estimate over completions of the labels."""
    if (reason := figure.reason) is None and not math.isfinite(figure.value):
        reason = judged.reason or "it is not a finite number in most completions of the labels"
    low, high = (figure.low, figure.high) if intervals else (math.nan, math.nan)
    figures = {"value": figure.value, "low": low, "high": high, "n": figure.n, "rough": figure.rough != ""}
    return resting_on(basis, judged, **figures, reason=reason, caveats=(*judged.caveats, *of_strata(figure.without)))


def _complete_by_controls(estimates: Estimates, figures: Figures, bootstrap: Bootstrap | None) -> dict[str, Any]:
    """Put the random controls into chance-corrected estimates; returns what to say of the controls, as plain data.

    That is in how many `queries` controls were graded, how many were `graded` and `relevant`, and for each BoR how many
    of them are `used` (those that the top K does not hold) and how many bits these `can_show` at most.
    """
    judged, controls = figures.join, figures.join.controls
    if controls is None:
        return {}
    found = controlled_figures(figures, bootstrap)
    for key, figure in found.items():
        as_it_was, total = estimates[key], len(judged)
        caveats = [caveat for caveat in as_it_was.caveats if caveat.code != CONCENTRATED]
        if figure.narrow:
            caveats.append(Caveat(CONCENTRATED_CONTROLS, f"{figure.narrow} The interval is probably too narrow."))
        numbers = {name: getattr(figure, name) for name in ("value", "low", "high", "shown", "reason")}
        counts_of = {"n": total, "n_total": max(total, as_it_was.n_total)}
        estimates[key] = resting_on(WITH_CONTROLS, as_it_was, **numbers, **counts_of, caveats=tuple(caveats))
    # The controls of a query count once, also if several rows are of that query.
    graded, relevant = (counts[judged.is_first] for counts in controls.counts(len(judged), judged.threshold(), depth=0))
    counts = {"queries": int((graded > 0).sum()), "graded": int(graded.sum()), "relevant": int(relevant.sum())}
    can_show = {key: finite(figure.can_show) for key, figure in found.items() if figure.can_show is not None}
    return {**counts, "used": {key: found[key].used for key in can_show}, "can_show": can_show}


def _notes_on_people(ground: Ground, figures: Mapping[str, Completed]) -> list[str]:
    """What a report says of the labels by people."""
    undefined = {key: figure.reason for key, figure in figures.items() if figure.reason is not None}
    how = f"by the judge's grade and the place in the lists, over {DRAWS} completions"
    calibrated = f"{ground.calibrated_by}, {how}; figures of single queries are as judged"
    notes = [calibrated] if len(undefined) < len(figures) else []
    if settling := int((ground.settling >= 0).sum()):
        notes.append(f"{counted(settling, 'further label')} of people settle the success of queries one by one")
    notes += [f"rough: {why}" for why in dict.fromkeys(figure.rough for figure in figures.values()) if why]
    keys = {reason: ", ".join(key for key in undefined if undefined[key] == reason) for reason in undefined.values()}
    return notes + [f"no figure for {of_reason}, since {reason}" for reason, of_reason in keys.items()]


# -- figures of a table ------------------------------------------------------------------------------------


def estimates_of_table(figures: Figures, bootstrap: Bootstrap | None) -> dict[str, Estimate]:
    """The estimates of a table, with intervals unless there is no bootstrap: {measure: estimate}."""
    (ends,) = ends_of(figures.outcomes, figures.queries, bootstrap)
    return {key: _with_reason(estimate, bootstrap) for key, estimate in as_judged(figures, ends).items()}


def _with_reason(estimate: Estimate, bootstrap: Bootstrap | None) -> Estimate:
    """The estimate with the reason why it lacks the interval that was asked for, if it does."""
    if bootstrap is None or estimate.reason is not None or not math.isnan(estimate.low):
        return estimate
    return replace(estimate, reason=f"one {'query' if estimate.n == 1 else 'cluster'} has no interval")


def as_judged(figures: Figures, ends: Iterable[Ends]) -> dict[str, Estimate]:
    """The estimates of a table with the labels as they are, from the ends of its intervals: {measure: estimate}."""
    estimates: dict[str, Estimate] = {}
    for (measure, at), outcome, of_outcome in zip(figures.plan, figures.outcomes, ends, strict=True):
        keys = [str(measure @ depth) for depth in at.tolist()]
        estimates.update(zip(keys, estimates_of(outcome, of_outcome), strict=True))
    return estimates


def ends_of(
    outcomes: Sequence[Outcome], queries: Sequence[str], bootstrap: Bootstrap | None, slicings: Sequence[IntArray] = ()
) -> list[list[Ends]]:
    """Low and high of each outcome, over all queries and in each slice of some slicings; NaN without a bootstrap."""
    if bootstrap is not None:
        return bootstrap.of_slices(outcomes, queries, slicings)
    nothing = [(np.full(outcome.parts[0].shape[1], np.nan),) * 2 for outcome in outcomes]
    return [nothing] * (1 + sum(len(np.unique(slicing)) for slicing in slicings))


def estimates_of(outcome: Outcome, ends: Ends, total: int | None = None) -> list[Estimate]:
    """The estimate at each depth; if a figure or an interval does not exist, the reason says why.

    `total` is the number of queries; by default it is the number of rows of the outcome.
    """
    total = len(outcome.parts[0]) if total is None else total
    counts, spread = outcome.defined.sum(axis=0), outcome.effective_queries()
    values, constant = np.where(counts > 0, outcome.value(), np.nan), outcome.without_spread()
    estimates = []
    for i, (value, n) in enumerate(zip(values.tolist(), counts.tolist(), strict=True)):
        reason, low, high = None, float(ends[0][i]), float(ends[1][i])
        if n == 0:
            reason = outcome.reasons[i]
        elif value == -math.inf:
            reason = "no query succeeded: log2 of 0"
        elif not math.isfinite(value):
            value, reason = math.nan, "a random draw of this size can never succeed"
        elif n == 1:
            reason = "one query has no interval"
        elif constant[i]:
            reason = "all queries have the same figure: there is no interval"
        if math.isnan(value):
            low = high = math.nan
        caveats = () if spread is None or not math.isfinite(value) else of_concentration(float(spread[i]), n)
        effective = None if outcome.weights is None else effective_size(outcome.weights[outcome.defined[:, i]])
        estimates.append(Estimate(value, low, high, n, total, reason, caveats=caveats, effective=effective))
    return estimates


def resting_on(basis: str, judged: Estimate, **figures: Any) -> Estimate:
    """An estimate whose figures rest on more than the labels as they are; the one as judged stands beside it."""
    return replace(judged, basis=basis, as_judged=judged.value, as_judged_interval=(judged.low, judged.high), **figures)
