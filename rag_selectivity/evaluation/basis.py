"""What the figures of a report rest on: the labels alone, people's labels, completed tails or random controls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rag_selectivity.estimating.caveats import of_strata
from rag_selectivity.evaluation.estimates import as_judged
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap, Ends
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.plan import Plan
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
from rag_selectivity.trust.calibrated import Calibrated, Completed, calibrated_figures, notes_on_people
from rag_selectivity.trust.completed import Sampling
from rag_selectivity.trust.controlled import Controlled, ControlledFigures
from rag_selectivity.trust.ground import Ground
from rag_selectivity.trust.people import calibration_ground


@dataclass(frozen=True)
class Basis:
    """What completes the labels of an evaluation.

    Attributes
    ----------
    judged : {run: JudgedRun}
    plan : list of (Measure, depths)
    ground : Ground or None
        The judge's labels beside people's, which calibrate all figures.
    bootstrap : Bootstrap or None
    completed : Completed
        What another report of the same runs computed.
    """

    judged: Mapping[str, JudgedRun]
    plan: Plan
    ground: Ground | None
    bootstrap: Bootstrap | None
    completed: Completed = field(default_factory=Completed)

    @cached_property
    def completing(self) -> Ground | None:
        """What completes the labels: people's, or else the judge's of tails; None if nothing does."""
        run = next(iter(self.judged.values()))
        origins = None if run.qrels is None else run.qrels.origins
        if self.ground is not None or run.qrels is None or origins is None or origins.tail_ranks is None:
            return self.ground
        ground, _ = calibration_ground(run.qrels, None)
        return ground if run.documents is None and ground.tail_open.any() else None

    def estimates(
        self, name: str, figures: Figures, ends: Sequence[Ends], *, whole: bool = True
    ) -> tuple[dict[str, Estimate], dict[str, Any], list[str]]:
        """The estimates of a run, or of a slice of it; what is known of its controls; and notes on people's labels."""
        estimates, intervals = as_judged(figures, ends), self.bootstrap is not None
        if self.ground is not None:
            completed = self._completed(self.ground, name, None if whole else {name: figures.join})
            estimates = completed_estimates(estimates, completed, intervals, CALIBRATED)
            return estimates, {}, notes_on_people(self.ground, completed)
        controls: dict[str, Any] = {}
        if self.judged[name].controls is not None and self.judged[name].corpus_size is not None:
            estimates, controls = with_controls(estimates, figures, self.bootstrap)
        if self.completing is not None:
            completed = self._completed(self.completing, name, None if whole else {name: figures.join})
            estimates = completed_estimates(estimates, completed, intervals, WITH_TAIL)
        return estimates, controls, []

    def _completed(self, ground: Ground, name: str, parts: Mapping[str, JudgedRun] | None) -> dict[str, Calibrated]:
        """The figures of a run, or of its part, over completions of its labels."""
        sampling = Sampling.of(self.bootstrap)
        return calibrated_figures(ground, self.judged, self.plan, sampling, parts, self.completed)[name]


def completed_estimates(
    estimates: Mapping[str, Estimate], figures: Mapping[str, Calibrated], intervals: bool, basis: str
) -> dict[str, Estimate]:
    """The estimates over completions of the labels, and the ones as judged beside them."""
    completed = {key: _completed(estimates[key], each, intervals, basis) for key, each in figures.items()}
    return {**estimates, **completed}


def _completed(judged: Estimate, figure: Calibrated, intervals: bool, basis: str) -> Estimate:
    reason = figure.reason
    if reason is None and not math.isfinite(figure.value):
        reason = judged.reason or "it is not a finite number in most completions of the labels"
    return replace(
        judged,
        value=figure.value,
        low=figure.low if intervals else math.nan,
        high=figure.high if intervals else math.nan,
        n=figure.n,
        reason=reason,
        basis=basis,
        as_judged=judged.value,
        as_judged_interval=(judged.low, judged.high),
        rough=figure.rough,
        caveats=(*judged.caveats, *of_strata(figure.without)),
    )


def with_controls(
    estimates: Mapping[str, Estimate], figures: Figures, bootstrap: Bootstrap | None
) -> tuple[dict[str, Estimate], dict[str, Any]]:
    """The estimates, chance-corrected ones with the random controls; and what to say of the controls.

    The second is plain data: in how many `queries` controls were graded, how many were `graded` and `relevant`, and for
    each BoR how many of them are `used` (those that the top K does not hold) and how many bits these `can_show` at
    most.
    """
    judged = figures.join
    controls = judged.controls
    if controls is None:
        return dict(estimates), {}
    controlled = ControlledFigures(judged, controls, bootstrap)
    result = dict(estimates)
    can_show: dict[str, float | None] = {}
    used: dict[str, int] = {}
    for (measure, at), outcome in zip(figures.plan, figures.outcomes, strict=True):
        for depth in at.tolist():
            key = str(measure @ depth)
            figure = controlled.of(measure, depth, outcome)
            if figure is None:
                continue
            result[key] = _with_controls(estimates[key], figure, len(judged))
            if figure.can_show is not None:
                can_show[key] = finite(figure.can_show)
                used[key] = figure.used
    graded, relevant = controls.counts(len(judged), judged.threshold(), depth=0)
    facts = {
        "queries": int((graded > 0).sum()),
        "graded": int(graded.sum()),
        "relevant": int(relevant.sum()),
        "used": used,
        "can_show": can_show,
    }
    return result, facts


def _with_controls(estimate: Estimate, figure: Controlled, queries: int) -> Estimate:
    """The estimate with controls; the one as judged stands beside it."""
    caveats = tuple(caveat for caveat in estimate.caveats if caveat.code != CONCENTRATED)
    if figure.few_with_hits is not None:
        spread = (
            f"The relevant controls are in few queries (effectively {figure.few_with_hits:.1f}). "
            f"The interval is probably too narrow."
        )
        caveats = (*caveats, Caveat(CONCENTRATED_CONTROLS, spread))
    return replace(
        estimate,
        value=figure.value,
        low=figure.low,
        high=figure.high,
        n=queries,
        n_total=max(queries, estimate.n_total),
        reason=figure.reason,
        caveats=caveats,
        basis=WITH_CONTROLS,
        as_judged=estimate.value,
        as_judged_interval=(estimate.low, estimate.high),
        shown=figure.shown,
    )
