"""The chance-corrected figures of a run whose judge graded random controls too."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.exact import clopper_pearson
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.rows import Controls
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import FloatArray, Measure, Outcome
from rag_selectivity.measures.chance import EF, BaselineMeasure, BoR, Lambda, refusal_of
from rag_selectivity.measures.hypergeometric import random_success
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust import controls as formulas
from rag_selectivity.trust.controls import Counts, Draw, RateDraws
from rag_selectivity.trust.reach import tails
from rag_selectivity.trust.sampled_totals import SampledTotal
from rag_selectivity.wording import counted, number

#: Draws for figures without an interval, whose median alone is wanted.
_DRAWS_OF_A_MEDIAN = 1000
#: Hits in effectively fewer queries say little about the other queries.
FEWEST_QUERIES_WITH_HITS = 3.0


@dataclass(frozen=True, slots=True)
class Controlled:
    """A figure with controls.

    Attributes
    ----------
    value, low, high : float
        NaN if undefined. If no control is relevant, the value is NaN, and the ends are what is shown without a model
        and the figure as judged.
    shown : float or None
        The bits that are shown without a model, for BoR.
    can_show : float or None
        The bits that these controls could show at most, for BoR.
    used : int
        The controls behind the figure, for BoR: those that are not in the top K of their query's list.
    reason : str or None
        Why there is no value.
    few_with_hits : float or None
        Over how many queries the relevant controls are spread, if these are too few.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    shown: float | None = None
    can_show: float | None = None
    used: int = 0
    reason: str | None = None
    few_with_hits: float | None = None


@dataclass(frozen=True, slots=True)
class _AtDepth:
    """What the figures of one depth are made of."""

    counts: Counts
    draw: Draw
    success: FloatArray
    chance: FloatArray
    miss: FloatArray
    success_rate: float
    #: The lowest success rate and the highest success of a random draw, without a model.
    success_low: float
    chance_high: float


class ControlledFigures:
    """The chance-corrected figures of a run with its random controls, at any depth.

    All queries of the labels count, also those without a relevant label: over the queries with a relevant one alone, a
    run whose labels are its own finds succeeds always.
    """

    def __init__(self, judged: JudgedRun, controls: Controls, bootstrap: Bootstrap | None) -> None:
        self._judged, self._controls, self._interval = judged, controls, bootstrap is not None
        self._bootstrap = bootstrap or Bootstrap(_DRAWS_OF_A_MEDIAN)
        self._tail = (1 - self._bootstrap.level) / 2
        self._units = self._bootstrap.units(judged.queries)
        self._tails, self._tail_size = tails(judged)
        self._rates: dict[bytes, RateDraws] = {}
        self._depths: dict[tuple[int, int], _AtDepth | None] = {}

    def of(self, measure: Measure, depth: int, outcome: Outcome) -> Controlled | None:
        """The figure of a measure at a depth; None if the measure does not use the controls, or none is left.

        `outcome` is that of the measure as judged; it gives the aggregate.
        """
        if not isinstance(measure, (BaselineMeasure, Lambda)) or not measure.needs_corpus_size:
            return None
        self._judged.refuse_weights(
            "a random baseline from controls",
            ", or name measures without a random baseline, as in measures=['Success'] (--measure Success)",
        )
        if is_budget(depth):
            return Controlled(
                reason="random controls give a random baseline at depths K, and not at a budget of tokens"
            )
        refused = refusal_of(self._judged, np.array([depth])) if isinstance(measure, EF) else None
        if refused is not None and refused.refused[0]:
            return None
        key = self._judged.threshold(measure.rel), depth
        if key not in self._depths:
            self._depths[key] = self._at(*key, measure.rel)
        at = self._depths[key]
        if at is None:
            return None
        if isinstance(measure, Lambda):
            return self._lambda(at, depth, measure.rel)
        if measure.m != 1:
            return Controlled(reason=f"random controls give a random baseline for m=1 only, and here m={measure.m}")

        def figure(success: Any, chance: Any, miss: Any) -> FloatArray:
            return np.asarray(outcome.aggregate.value(*measure.parts_of(*map(np.asarray, (success, chance, miss)))))

        draws = figure(at.success, at.chance, at.miss)
        # Beta(s + ½, Q − s + ½) excludes 1 also where all succeed: the upper end is then that of success 1.
        upper = figure(np.where(at.success_rate == 1, 1.0, at.success), at.chance, at.miss)
        least = figure(at.success_low, at.chance_high, 1 - at.chance_high)
        as_judged = figure(at.success_rate, at.draw.found.mean(), at.draw.missed.mean())
        result = self._figure(draws, upper, (float(least), float(as_judged)), at.counts)
        if not isinstance(measure, BoR):
            return result
        shown = formulas.bits_between(at.success_low, at.chance_high)
        can_show = formulas.most_bits_shown(at.counts, depth, self._tail)
        if not at.counts.hits:
            reason = (
                f"none of the {counted(at.counts.total, 'control')} is relevant: the figure is between "
                f"{number(result.low)} ({'shown' if shown > 0 else 'nothing is shown'}) and {number(result.high)} (as "
                f"judged); use low({measure @ depth}) or shown({measure @ depth})"
            )
            result = replace(result, reason=reason)
        return replace(result, shown=shown, can_show=can_show, used=at.counts.total)

    def _figure(self, draws: FloatArray, upper: FloatArray, ends: tuple[float, float], counts: Counts) -> Controlled:
        """Median and quantiles of the draws, the upper end of draws of its own.

        Without a relevant control, the two ends of what is possible.
        """
        if not counts.hits:
            low, high = (math.nan, math.nan) if math.isnan(sum(ends)) else sorted(ends)
            reason = (
                f"none of the {counted(counts.total, 'control')} is relevant: only the ends of the figure are known"
            )
            return Controlled(low=low, high=high, reason=reason)
        value, low = np.quantile(draws, [0.5, self._tail]).tolist()
        high = float(np.quantile(upper, 1 - self._tail))
        if not self._interval:
            low = high = math.nan
        spread = counts.queries_with_hits
        few = spread if counts.hits > 1 and spread < FEWEST_QUERIES_WITH_HITS else None
        return Controlled(value + 0.0, low + 0.0, high + 0.0, few_with_hits=few)

    def _lambda(self, at: _AtDepth, depth: int, rel: int | None) -> Controlled:
        sizes, relevant, outside, more = self._corpus(rel)
        share = self._judged.drawn_at(np.array([depth]))[:, 0] / np.maximum(sizes, 1)
        inside, per_rate = float((share * (relevant + more)).mean()), float((share * outside).mean())
        highest = float(clopper_pearson(0.0, float(at.counts.queries), self._tail)[1])
        draws = inside + per_rate * self._rate_draws(at.counts).rate
        return self._figure(draws, draws, (inside, inside + per_rate * highest), at.counts)

    # -- one depth -------------------------------------------------------------------------------

    def _at(self, threshold: int, depth: int, rel: int | None) -> _AtDepth | None:
        judged, depths = self._judged, np.array([depth])
        counts = Counts(*self._controls.counts(len(judged), threshold, depth), self._units)
        if not counts.total:
            return None
        draw, in_tail = self._draw(depths, rel, threshold)
        succeeded = judged.hits_at(depths, rel)[:, 0] >= 1
        rng = np.random.default_rng([self._bootstrap.seed, 1])
        chance, miss = formulas.chance_draws(draw, counts, self._rate_draws(counts), rng)
        success = formulas.success_draws(succeeded, self._units, self._bootstrap.resamples, rng)
        trials, rate = formulas.effective_units(self._units, len(succeeded)), float(succeeded.mean())
        outside = formulas.most_found_outside(counts, int(judged.drawn_at(depths).max(initial=1)), self._tail)
        lowest = float(clopper_pearson(rate * trials, trials, self._tail)[0])
        highest = min(1.0, outside + in_tail + float(draw.found.mean()))
        return _AtDepth(counts, draw, success, chance, miss, rate, lowest, highest)

    def _rate_draws(self, counts: Counts) -> RateDraws:
        key = counts.graded.tobytes() + counts.relevant.tobytes()
        if key not in self._rates:
            rng = np.random.default_rng([self._bootstrap.seed, 0])
            self._rates[key] = formulas.rate_draws(counts, self._bootstrap.resamples, rng)
        return self._rates[key]

    def _draw(self, depths: IntArray, rel: int | None, threshold: int) -> tuple[Draw, float]:
        """The random draw as far as it is known, and a bound of how often it finds what a sampled tail stands for."""
        sizes, relevant, outside, more = self._corpus(rel)
        drawn = self._judged.drawn_at(depths)[:, 0]
        found, missed = random_success(sizes, relevant, drawn)
        with np.errstate(invalid="ignore", divide="ignore"):
            slots = np.where(sizes > relevant, drawn * outside / (sizes - relevant), 0.0)
            tail = np.where(more > 0, more * np.log1p(-np.minimum(drawn / sizes, 1 - 1e-12)), 0.0)
        in_tail, labelled = self._tail_labels(threshold), self._tails.sum(axis=1)
        known = labelled > 0
        each = more[known] / np.maximum(in_tail[known], 1)
        squares = float((each * more[known]).sum())
        hits = float(more.sum()) ** 2 / squares if squares else 0.0
        # A draw finds a relevant passage of the tail at most as often as it holds such passages on average.
        size = np.maximum(self._tail_size, labelled)[known]
        chance = (drawn / np.maximum(sizes, 1))[known] / len(sizes)
        held = SampledTotal(size, labelled[known], in_tail[known], chance)
        bound = held.interval(self._tail)[1] - float((chance * in_tail[known]).sum())
        return Draw(found, missed, slots, tail, hits), bound

    def _corpus(self, rel: int | None) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """For each query: N; the known relevant; the passages that controls stand for; the relevant ones of the tail.

        The last is what the drawn passages of a tail stand for beyond themselves.
        """
        judged = self._judged
        sizes = judged.require_corpus_size("an estimate with random controls")
        in_tail = self._tail_labels(judged.threshold(rel))
        labelled = self._tails.sum(axis=1)
        rest = np.where(labelled > 0, np.maximum(self._tail_size - labelled, 0), 0)
        outside = np.maximum(sizes - judged.labels.sum(axis=1) - rest, 0).astype(np.float64)
        return sizes, judged.relevant(rel), outside, rest * in_tail / np.maximum(labelled, 1)

    def _tail_labels(self, threshold: int) -> IntArray:
        """Relevant labels drawn from the tail of each query."""
        relevant: IntArray = self._tails[:, self._judged.grades >= threshold].sum(axis=1)
        return relevant
