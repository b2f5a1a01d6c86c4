"""One run of a report: its estimates and those of its slices, with what its labels are worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.evaluation.basis import Basis
from rag_selectivity.evaluation.caveats import LabelFacts, in_part, of_labels, of_unchecked_judge
from rag_selectivity.evaluation.doubts import Doubts
from rag_selectivity.evaluation.estimates import ends_of, pool_sources_of
from rag_selectivity.evaluation.slices import remarks_on
from rag_selectivity.figures.by import Slicing
from rag_selectivity.figures.figures import Figures
from rag_selectivity.figures.weighting import weights_notes
from rag_selectivity.inference.bootstrap import Ends
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures import Measure
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray
from rag_selectivity.measures.plan import budgets_in, ranks_in
from rag_selectivity.measures.utility import Judged
from rag_selectivity.results.estimate import AS_JUDGED, WITH_TAIL, Caveat, Estimate
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.results.slices import Slice
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.placebo import Placebo, against_other_lists, placebos_of
from rag_selectivity.trust.reach import LabelReach, has_open_tails

#: The queries of a slice, by mask; None for all.
Chosen = NDArray[np.bool_] | None
_JUDGED = Judged()


def report_on_run(
    name: str,
    figures: Figures,
    measures: Sequence[Measure],
    basis: Basis,
    found: IntArray,
    *,
    provenance: Provenance | None,
    slicings: Sequence[Slicing],
    notes: Iterable[str],
) -> RunReport:
    """The report on one run and its slices, whose intervals all come from the same resamples.

    `found` is the number of labels of each query that some list or pool of the evaluation holds.
    """
    run, bootstrap = figures.join, basis.bootstrap
    labels = _Labels.of(figures, found, measures, calibrated=basis.ground is not None)
    outcomes, own = [*figures.outcomes, *(each.beyond for each in labels.placebos)], len(figures.outcomes)
    parts: list[tuple[str, str, Chosen]] = [("", "", None)]
    numbers = [slicing.places(figures.queries) for slicing in slicings]
    for slicing, places in zip(slicings, numbers, strict=True):
        parts += [(slicing.column, slicing.values[i], places == i) for i in np.unique(places).tolist()]
    ends = [ends_of(outcomes, figures.queries, None)] * len(parts)
    if bootstrap is not None:
        ends = bootstrap.of_slices(outcomes, figures.queries, numbers)

    def estimated(
        chosen: Chosen, of_part: Sequence[Ends], judge: Caveat | None = None
    ) -> tuple[dict[str, Estimate], dict[str, Any], list[str]]:
        table = figures if chosen is None else figures.where(chosen)
        estimates, controls, remarks = basis.estimates(name, table, of_part[:own], whole=chosen is None)
        placebos = {}
        for each, (low, high) in zip(labels.placebos, of_part[own:], strict=True):
            outcome = each.placebo if chosen is None else each.placebo.over(chosen)
            placebos[each.measure] = np.stack([outcome.value(), low, high], axis=1)
        return labels.qualified(figures, estimates, placebos, judge), controls, remarks

    estimates, controls, remarks = estimated(None, ends[0], None if provenance is None else provenance.unchecked)
    slices: dict[str, dict[str, Slice]] = {}
    for (column, value, chosen), of_part in zip(parts[1:], ends[1:], strict=True):
        queries = len(figures.queries) if chosen is None else int(chosen.sum())
        slices.setdefault(column, {})[value] = Slice(column, value, queries, estimated(chosen, of_part)[0])
    deepest = int(ranks_in(figures.plan).max(initial=0))
    others = against_other_lists(figures, bootstrap)
    return RunReport(
        figures,
        estimates,
        run.coverage,
        (
            *notes,
            *(() if run.made_of is None else Doubts(run.made_of).notes(name)),
            *_notes_of_coverage(run, deepest),
            *weights_notes(run),
            *_refusals(figures, estimates),
            *remarks,
            *(note for slicing in slicings for note in slicing.notes),
            *remarks_on(slices, basis.ground, slicings),
            *(run.controls.notes_at(deepest) if run.controls is not None and basis.ground is None else ()),
        ),
        input={
            **({} if run.made_of is None else Doubts(run.made_of).as_input()),
            **({"controls": controls} if controls else {}),
            **({"other_lists": others} if others else {}),
        },
        label_caveats=() if provenance is None else provenance.caveats,
        slices=slices,
        pool_sources=pool_sources_of(figures, bootstrap),
    )


@dataclass(frozen=True, slots=True)
class _Labels:
    """What a run's labels are worth: a property of the run, and so of each slice.

    Estimates of other than the `shown` measures only give the upper ends of possible ranges (`Estimate.possible`).
    """

    facts: LabelFacts
    placebos: list[Placebo]
    shown: set[Measure]

    @classmethod
    def of(cls, figures: Figures, found: IntArray, measures: Iterable[Measure], *, calibrated: bool) -> _Labels:
        run, plan = figures.join, figures.plan
        depths = np.array([*ranks_in(plan).tolist(), *budgets_in(plan), WHOLE_LIST])
        place = {depth: i for i, depth in enumerate(depths.tolist())}
        reach, exhaustive = LabelReach.of(run, depths, found), run.policy.unjudged == "worst"
        among = {depth: reach.shuffled_among_labels(i) and not exhaustive for depth, i in place.items()}
        universes = {base: np.array([among.get(depth, False) for depth in at.tolist()], bool) for base, at in plan}
        placebos = [] if run.qrels is None else placebos_of(run, plan, figures.outcomes, universes)
        facts = LabelFacts(
            place,
            reach,
            tail_ranks=None if run.qrels is None or run.qrels.origins is None else run.qrels.origins.tail_ranks,
            open_tails=has_open_tails(run),
            controls_unused=run.controls is not None and calibrated,
            exhaustive=exhaustive,
        )
        return cls(facts, placebos, {measure.without_depth for measure in measures})

    def qualified(
        self,
        figures: Figures,
        estimates: Mapping[str, Estimate],
        placebos: Mapping[Measure, FloatArray],
        judge: Caveat | None,
    ) -> dict[str, Estimate]:
        """The estimates of the run, or of a slice, with their possible ranges, placebos and caveats.

        `placebos` are the placebo and the ends of what the figure has beyond it: float64[depths, 3].
        """
        result = {}
        for base, at in figures.plan:
            for i, depth in enumerate(at.tolist() if base in self.shown else ()):
                measure = base @ depth
                estimate = estimates[str(measure)]
                if base.upper_end is not None or (base.unjudged_is_a_miss and not self.facts.exhaustive):
                    estimate = _judged_in_part(measure, estimate, estimates)
                if base in placebos and math.isfinite(estimate.value) and estimate.basis in (AS_JUDGED, WITH_TAIL):
                    value, low, high = placebos[base][i].tolist()
                    above = None if math.isnan(low + high) else (low, high)
                    if not math.isnan(value):
                        estimate = replace(estimate, placebo=value, above_placebo=above)
                caveats = *of_labels(measure, estimate, self.facts), *of_unchecked_judge(measure, estimate, judge)
                result[str(measure)] = replace(estimate, caveats=(*estimate.caveats, *caveats)) if caveats else estimate
        return result


def _judged_in_part(measure: Measure, estimate: Estimate, estimates: Mapping[str, Estimate]) -> Estimate:
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
        (of.outside_pool, "judged passages of the run are not in its pool and were added to it"),
        (of.missing_from_pool, "queries are not in the pool: their own lists are used as their pools"),
        (
            of.expected if of.graded else 0,
            f"of {of.expected + of.graded} labels are expected ids without a grade: they count as relevant, and "
            f"everything else that their queries retrieved is unjudged",
        ),
    )
    return [f"{count} {what}" for count, what in counts if count]
