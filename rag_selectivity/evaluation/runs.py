"""The runs of a report: their estimates and those of slices, what these rest on, and what the labels are worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.evaluation.caveats import LabelFacts, in_part, of_labels, of_strata, of_unchecked_judge
from rag_selectivity.evaluation.doubts import Doubts
from rag_selectivity.evaluation.estimates import as_judged, ends_of, resting_on
from rag_selectivity.figures.by import Slicing
from rag_selectivity.figures.figures import Figures
from rag_selectivity.figures.weighting import weights_notes
from rag_selectivity.inference.bootstrap import Bootstrap, Ends
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures import Measure
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.plan import Plan, ranks_in
from rag_selectivity.measures.utility import Judged
from rag_selectivity.results.estimate import (
    AS_JUDGED,
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
from rag_selectivity.results.run_report import RunReport, Slice
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.completions import DRAWS, Completed, completed_figures
from rag_selectivity.trust.controls import Controlled, controlled_figures
from rag_selectivity.trust.people import Ground, calibration_ground
from rag_selectivity.trust.placebo import against_other_lists, placebos_of
from rag_selectivity.wording import counted

Estimates = dict[str, Estimate]
_JUDGED = Judged()


@dataclass(frozen=True)
class Evaluation:
    """What all runs of a report share.

    Attributes
    ----------
    judged : {run: JudgedRun}
    plan : list of (Measure, depths)
        What is measured. Measures beside `measures` only give the upper ends of possible ranges.
    measures : sequence of Measure
        What is shown.
    bootstrap : Bootstrap or None
    ground : Ground or None
        The judge's labels beside people's, which calibrate all figures.
    completed : dict
        The completed figures that another report of the same runs computed.
    provenance : Provenance or None
    slicings : sequence of Slicing
    """

    judged: Mapping[str, JudgedRun]
    plan: Plan
    measures: Sequence[Measure]
    bootstrap: Bootstrap | None = None
    ground: Ground | None = None
    completed: dict[Any, Completed] = field(default_factory=dict)
    provenance: Provenance | None = None
    slicings: Sequence[Slicing] = ()

    def report_on(self, name: str, figures: Figures, found: IntArray, notes: Iterable[str]) -> RunReport:
        """The report on one run and its slices, whose intervals all come from the same resamples.

        `found` is the number of labels of each query that some list or pool of the evaluation holds.
        """
        run, deepest = figures.join, int(ranks_in(self.plan).max(initial=0))
        facts = LabelFacts.of(run, self.plan, found, calibrated=self.ground is not None)
        placebos = {}
        if run.qrels is not None:
            placebos = placebos_of(run, self.plan, figures.outcomes, facts.shuffled_among_labels(self.plan))
        outcomes = [*figures.outcomes, *(beyond for _, beyond in placebos.values())]
        places = [slicing.places(figures.queries) for slicing in self.slicings]
        parts = [
            (slicing.column, slicing.values[i], of_slicing == i)
            for slicing, of_slicing in zip(self.slicings, places, strict=True)
            for i in np.unique(of_slicing).tolist()
        ]
        ends = [ends_of(outcomes, figures.queries, None)] * (1 + len(parts))
        if self.bootstrap is not None:
            ends = self.bootstrap.of_slices(outcomes, figures.queries, places)

        def qualified(estimates: Estimates, of_part: Sequence[Ends], chosen: NDArray[np.bool_] | None) -> Estimates:
            of_placebos = {}
            for (measure, (placebo, _)), (low, high) in zip(placebos.items(), of_part[len(self.plan) :], strict=True):
                outcome = placebo if chosen is None else placebo.over(chosen)
                of_placebos[measure] = np.stack([outcome.value(), low, high], axis=1)
            return self._qualified(estimates, of_placebos, facts, whole=chosen is None)

        estimates, controls, remarks = self._estimates(name, figures, ends[0], whole=True)
        estimates = qualified(estimates, ends[0], None)
        slices: dict[str, dict[str, Slice]] = {}
        for (column, value, chosen), of_part in zip(parts, ends[1:], strict=True):
            of_slice, _, _ = self._estimates(name, figures.where(chosen), of_part, whole=False)
            of_slice = qualified(of_slice, of_part, chosen)
            slices.setdefault(column, {})[value] = Slice(column, value, int(chosen.sum()), of_slice)
        doubts = None if run.made_of is None else Doubts(run.made_of, name)
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
                *remarks,
                *(note for slicing in self.slicings for note in slicing.notes),
                *(run.controls.notes_at(deepest) if run.controls is not None and self.ground is None else ()),
            ),
            input={
                **({} if doubts is None else doubts.as_input()),
                **({"controls": controls} if controls else {}),
                **({"other_lists": others} if others else {}),
            },
            label_caveats=() if self.provenance is None else self.provenance.caveats,
            slices=slices,
        )

    # -- what estimates rest on ---------------------------------------------------------------------------

    @cached_property
    def _completing(self) -> Ground | None:
        """What completes the labels: people's, or else the judge's of tails; None if nothing does."""
        run = next(iter(self.judged.values()))
        origins = None if run.qrels is None else run.qrels.origins
        if self.ground is not None or run.qrels is None or origins is None or run.documents is not None:
            return self.ground
        ground, _ = calibration_ground(run.qrels, None)
        return ground if ground.tail_open.any() else None

    def _estimates(
        self, name: str, figures: Figures, ends: Sequence[Ends], *, whole: bool
    ) -> tuple[Estimates, dict[str, Any], list[str]]:
        """The estimates of a run, or of a slice of it; what is known of its controls; and notes on people's labels."""
        estimates, run = as_judged(figures, ends[: len(self.plan)]), self.judged[name]
        controls: dict[str, Any] = {}
        if self.ground is None and run.controls is not None and run.corpus_size is not None:
            controls = _complete_by_controls(estimates, figures, self.bootstrap)
        if self._completing is None:
            return estimates, controls, []
        parts, completing = None if whole else {name: figures.join}, self._completing
        shared = self.plan, self.bootstrap, parts, self.completed
        found = completed_figures(completing, self.judged, [(name,)], *shared)
        basis = WITH_TAIL if self.ground is None else CALIBRATED
        for key, figure in found[(name,)].items():
            estimates[key] = _of_completions(estimates[key], figure, basis, intervals=self.bootstrap is not None)
        return estimates, controls, [] if self.ground is None else _notes_on_people(self.ground, found[(name,)])

    # -- what the labels are worth -------------------------------------------------------------------------

    def _qualified(
        self, estimates: Estimates, placebos: Mapping[Measure, FloatArray], facts: LabelFacts, *, whole: bool
    ) -> Estimates:
        """The estimates of a run, or of a slice, with their possible ranges, placebos and caveats.

        `placebos` are the placebo and the ends of what the figure has beyond it: float64[depths, 3].
        """
        result, shown = {}, {measure.without_depth for measure in self.measures}
        judge = self.provenance.unchecked if whole and self.provenance is not None else None
        for base, at in self.plan:
            for i, depth in enumerate(at.tolist() if base in shown else ()):
                measure = base @ depth
                estimate = estimates[str(measure)]
                if base.upper_end is not None or (base.unjudged_is_a_miss and not facts.exhaustive):
                    estimate = _judged_in_part(measure, estimate, estimates)
                if base in placebos and math.isfinite(estimate.value) and estimate.basis in (AS_JUDGED, WITH_TAIL):
                    value, low, high = placebos[base][i].tolist()
                    above = None if math.isnan(low + high) else (low, high)
                    if not math.isnan(value):
                        estimate = replace(estimate, placebo=value, above_placebo=above)
                caveats = *of_labels(measure, estimate, facts), *of_unchecked_judge(measure, estimate, judge)
                result[str(measure)] = replace(estimate, caveats=(*estimate.caveats, *caveats)) if caveats else estimate
        return result


def _judged_in_part(measure: Measure, estimate: Estimate, estimates: Estimates) -> Estimate:
    """The estimate with a caveat and its possible range, if some of its passages are unjudged."""
    judged = estimates.get(str(_JUDGED if measure.at is None else _JUDGED @ measure.at))
    most = None if measure.upper_end is None else estimates.get(str(measure.upper_end))
    if judged is None or not judged.value < 1 or (most is not None and not most.value > estimate.value):
        return estimate
    caveat = in_part(measure, judged.value, ranged=most is not None)
    possible = None if most is None else (estimate.value, most.value)
    return replace(estimate, possible=possible, caveats=(*estimate.caveats, caveat))


def _refusals(figures: Figures, shown: Iterable[str]) -> list[str]:
    """A note for each reason why some of a report's figures have no value for a whole run."""
    names: dict[str, list[str]] = {}
    for (measure, depths), outcome in zip(figures.plan, figures.outcomes, strict=True):
        refused = outcome.refused
        for column in [] if refused is None else np.flatnonzero(refused.refused).tolist():
            key = str(measure @ depths[column])
            if refused is not None and key in shown:
                names.setdefault(refused.reason(column), []).append(key)
    return [f"no figure for {', '.join(keys)}, since {reason}" for reason, keys in names.items()]


def _notes_of_coverage(run: JudgedRun, deepest: int) -> list[str]:
    """Notes on what the join and the random draws treated specially."""
    of = run.coverage
    clipped = 0
    if run.corpus_size is not None:
        clipped = int((run.slots_at(np.array([deepest]))[:, 0] > run.corpus_size).sum())
    counts = (
        (clipped, "queries have a corpus smaller than K: their random draw is the whole corpus"),
        (of.duplicates, "passages repeat an earlier passage of their list"),
        (of.negative_judgments, "judgments below 0 were treated as not judged"),
        (of.outside_pool, "judged passages are not in the pool of the run, and were added to it"),
        (of.missing_from_pool, "queries are not in the pool: their own lists are used as their pools"),
        (
            of.expected if of.graded else 0,
            f"of {of.expected + of.graded} labels are expected ids without a grade: they count as relevant, and "
            f"everything else that their queries retrieved is unjudged",
        ),
    )
    return [f"{count} {what}" for count, what in counts if count]


def _of_completions(judged: Estimate, figure: Completed, basis: str, *, intervals: bool) -> Estimate:
    """The estimate over completions of the labels."""
    reason = figure.reason
    if reason is None and not math.isfinite(figure.value):
        reason = judged.reason or "it is not a finite number in most completions of the labels"
    low, high = (figure.low, figure.high) if intervals else (math.nan, math.nan)
    figures = {"value": figure.value, "low": low, "high": high, "n": figure.n, "rough": figure.rough}
    caveats = (*judged.caveats, *of_strata(figure.without))
    return resting_on(basis, judged, **figures, reason=reason, caveats=caveats)


def _complete_by_controls(estimates: Estimates, figures: Figures, bootstrap: Bootstrap | None) -> dict[str, Any]:
    """Put the random controls into chance-corrected estimates; returns what to say of the controls, as plain data.

    That is in how many `queries` controls were graded, how many were `graded` and `relevant`, and for each BoR how many
    of them are `used` (those that the top K does not hold) and how many bits these `can_show` at most.
    """
    judged, controls = figures.join, figures.join.controls
    if controls is None:
        return {}
    can_show: dict[str, float | None] = {}
    used: dict[str, int] = {}
    for key, figure in controlled_figures(figures, bootstrap).items():
        estimates[key] = _of_controls(estimates[key], figure, len(judged))
        if figure.can_show is not None:
            can_show[key], used[key] = finite(figure.can_show), figure.used
    graded, relevant = controls.counts(len(judged), judged.threshold(), depth=0)
    counts = {"queries": (graded > 0).sum(), "graded": graded.sum(), "relevant": relevant.sum()}
    return {**{name: int(count) for name, count in counts.items()}, "used": used, "can_show": can_show}


def _of_controls(judged: Estimate, figure: Controlled, queries: int) -> Estimate:
    """The estimate with controls."""
    caveats = [caveat for caveat in judged.caveats if caveat.code != CONCENTRATED]
    if figure.few_with_hits is not None:
        few = f"The relevant controls are in few queries (effectively {figure.few_with_hits:.1f})."
        caveats.append(Caveat(CONCENTRATED_CONTROLS, f"{few} The interval is probably too narrow."))
    figures = {"value": figure.value, "low": figure.low, "high": figure.high, "n": queries, "shown": figure.shown}
    total = max(queries, judged.n_total)
    return resting_on(WITH_CONTROLS, judged, **figures, n_total=total, reason=figure.reason, caveats=tuple(caveats))


def _notes_on_people(ground: Ground, figures: Mapping[str, Completed]) -> list[str]:
    """What a report says of the labels by people."""
    notes = [
        f"{ground.calibrated_by}, by the judge's grade and the place in the lists, over {DRAWS} completions; figures "
        f"of single queries are as judged"
    ]
    if settling := int((ground.settling >= 0).sum()):
        notes.append(f"{counted(settling, 'further label')} of people settle the success of queries one by one")
    if any(figure.rough for figure in figures.values()):
        notes.append("rough: most queries have fewer than two relevant passages, and the interval can be too narrow")
    undefined: dict[str, list[str]] = {}
    for key, figure in figures.items():
        if figure.reason is not None:
            undefined.setdefault(figure.reason, []).append(key)
    return notes + [f"no calibrated figure for {', '.join(keys)}: {reason}" for reason, keys in undefined.items()]
