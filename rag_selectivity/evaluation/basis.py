"""What the figures of a report rest on: the labels alone, people's labels, completed tails or random controls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rag_selectivity.evaluation.caveats import of_strata
from rag_selectivity.evaluation.estimates import as_judged, resting_on
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
from rag_selectivity.trust.completions import DRAWS, Completed, Sampling, completed_figures
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
    completed : dict
        The completed figures that another report of the same runs computed.
    """

    judged: Mapping[str, JudgedRun]
    plan: Plan
    ground: Ground | None = None
    bootstrap: Bootstrap | None = None
    completed: dict[Any, Completed] = field(default_factory=dict)

    @cached_property
    def completing(self) -> Ground | None:
        """What completes the labels: people's, or else the judge's of tails; None if nothing does."""
        run = next(iter(self.judged.values()))
        origins = None if run.qrels is None else run.qrels.origins
        if self.ground is not None or run.qrels is None or origins is None or run.documents is not None:
            return self.ground
        ground, _ = calibration_ground(run.qrels, None)
        return ground if ground.tail_open.any() else None

    def estimates(
        self, name: str, figures: Figures, ends: Sequence[Ends], *, whole: bool = True
    ) -> tuple[dict[str, Estimate], dict[str, Any], list[str]]:
        """The estimates of a run, or of a slice of it; what is known of its controls; and notes on people's labels."""
        estimates, run = as_judged(figures, ends), self.judged[name]
        facts: dict[str, Any] = {}
        if self.ground is None and run.controls is not None and run.corpus_size is not None:
            facts = _complete_by_controls(estimates, figures, self.bootstrap)
        if self.completing is None:
            return estimates, facts, []
        parts, sampling = None if whole else {name: figures.join}, Sampling.of(self.bootstrap)
        targets = [(name,)]
        known = self.completed
        found = completed_figures(self.completing, self.judged, targets, self.plan, sampling, parts, known)
        completed = found[(name,)]
        basis = WITH_TAIL if self.ground is None else CALIBRATED
        for key, figure in completed.items():
            estimates[key] = _of_completions(estimates[key], figure, basis, intervals=self.bootstrap is not None)
        return estimates, facts, [] if self.ground is None else _notes_on_people(self.ground, completed)


def _of_completions(judged: Estimate, figure: Completed, basis: str, *, intervals: bool) -> Estimate:
    """The estimate over completions of the labels."""
    reason = figure.reason
    if reason is None and not math.isfinite(figure.value):
        reason = judged.reason or "it is not a finite number in most completions of the labels"
    low, high = (figure.low, figure.high) if intervals else (math.nan, math.nan)
    figures = {"value": figure.value, "low": low, "high": high, "n": figure.n, "rough": figure.rough}
    caveats = (*judged.caveats, *of_strata(figure.without))
    return resting_on(basis, judged, **figures, reason=reason, caveats=caveats)


def _complete_by_controls(
    estimates: dict[str, Estimate], figures: Figures, bootstrap: Bootstrap | None
) -> dict[str, Any]:
    """Put the random controls into chance-corrected estimates; returns what to say of the controls, as plain data.

    That is in how many `queries` controls were graded, how many were `graded` and `relevant`, and for each BoR how many
    of them are `used` (those that the top K does not hold) and how many bits these `can_show` at most.
    """
    judged, controls = figures.join, figures.join.controls
    if controls is None:
        return {}
    controlled = ControlledFigures(judged, controls, bootstrap)
    can_show: dict[str, float | None] = {}
    used: dict[str, int] = {}
    for (measure, at), outcome in zip(figures.plan, figures.outcomes, strict=True):
        for depth in at.tolist():
            key, figure = str(measure @ depth), controlled.of(measure, depth, outcome)
            if figure is not None:
                estimates[key] = _of_controls(estimates[key], figure, len(judged))
            if figure is not None and figure.can_show is not None:
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
    rough = [key for key, figure in figures.items() if figure.rough]
    if rough:
        notes.append(
            f"rough: {', '.join(rough)}: most queries have fewer than two relevant passages, and the interval can be "
            f"too narrow"
        )
    undefined: dict[str, list[str]] = {}
    for key, figure in figures.items():
        if figure.reason is not None:
            undefined.setdefault(figure.reason, []).append(key)
    return notes + [f"no calibrated figure for {', '.join(keys)}: {reason}" for reason, keys in undefined.items()]
