"""Calibrated figures and differences: every measure on each of many completions of the labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray, Measure, Real
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.plan import Plan
from rag_selectivity.trust.completed import DRAWS, RESAMPLES, Completion, Sampled, Sampling, quantile, sampled
from rag_selectivity.trust.ground import Ground
from rag_selectivity.trust.strata import Places, Strata, WithoutLabels
from rag_selectivity.wording import counted

#: The bytes of completions that are kept at most.
_MOST_KEPT = 64_000_000
#: Below so many relevant passages a query, figures of success, and those that compare with all labels, are rough.
_FEW_RELEVANT = 2.0
#: A figure that fewer completions have is none.
_MOST = 0.9
#: Below this, a difference is rounding.
_SAME = 1e-12
#: What a grade cannot change.
WITHOUT_GRADES = ("Judged",)
#: Measures whose figures rest on the same strata: the depth of these, the seed of their completions, the measures.
_Group = tuple[int, tuple[int, ...], Plan]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """One figure over all completions.

    Attributes
    ----------
    value : float
        The median.
    low, high : float
        The interval over completions and queries.
    fixed_low, fixed_high : float
        The interval over completions alone: for these very queries.
    n : int
        The median number of queries with a figure.
    reason : str or None
        Why there is no figure.
    rough : bool
        Whether the interval is known to be too narrow.
    without : WithoutLabels or None
        About strata without a label by people.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    fixed_low: float = math.nan
    fixed_high: float = math.nan
    n: int = 0
    reason: str | None = None
    rough: bool = False
    without: WithoutLabels | None = None

    @classmethod
    def of(cls, figure: Sampled, sampling: Sampling) -> Calibrated:
        """The median and the intervals of the first run's figure."""
        values, resampled = figure.values[:, 0, 0], figure.values[:, 0, 1:].ravel()
        known, resampled = values[~np.isnan(values)], resampled[~np.isnan(resampled)]
        outcome, n = figure.outcome, int(np.median(figure.defined))
        if len(known) < _MOST * len(values):
            return cls(reason=outcome.reasons[figure.column])
        value = quantile(known, 0.5)
        form = outcome.aggregate.form
        bounds = own = outcome.ends_at(figure.column) if form == "mean" else None
        if own is None and form != "bits" and len(resampled) and resampled.min() >= 0:
            bounds = (0.0, math.inf)

        def around(of: FloatArray) -> tuple[float, float]:
            if not len(of):
                return math.nan, math.nan
            ends = np.array(sampling.ends(of))
            low, high = (sampling.stretched(ends, value) if math.isfinite(value) else ends).tolist()
            low, high = min(low, value), max(high, value)
            return (low, high) if bounds is None else (max(low, bounds[0]), min(high, bounds[1]))

        low, high = around(resampled)
        if own is not None and n > 1 and low == high and value in own:
            # What so many queries without any spread can tell of an end of the range (Clopper and Pearson).
            reach = (1 - ((1 - sampling.level) / 2) ** (1 / float(np.median(figure.effective)))) * (own[1] - own[0])
            low, high = (value, value + reach) if value == own[0] else (value - reach, value)
        if n < 2:
            low = high = math.nan
        return cls(value, low, high, *around(known), n)


@dataclass(frozen=True, slots=True)
class CalibratedDifference:
    """A run's figure minus the baseline's, over all completions; p, interval and verdict are of one distribution.

    Attributes
    ----------
    value, baseline_value, difference : float
        Medians. The difference is the median of the differences.
    low, high : float
        The interval over completions and queries; it contains 0 if and only if p is more than 1 − level.
    fixed_low, fixed_high : float
        The interval over completions alone: for these very queries.
    p : float
        Two-sided.
    reason : str or None
        Why there is no difference.
    without : WithoutLabels or None
        About strata without a label by people.
    """

    value: float = math.nan
    baseline_value: float = math.nan
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    fixed_low: float = math.nan
    fixed_high: float = math.nan
    p: float = math.nan
    reason: str | None = None
    without: WithoutLabels | None = None

    @classmethod
    def of(cls, one: FloatArray, other: FloatArray, sampling: Sampling, undefined: str = "") -> CalibratedDifference:
        """The medians, the intervals and p of figures on common completions: float64[completions, 1 + resamples]."""
        with np.errstate(invalid="ignore"):
            differences = one - other
        finite = ~np.isnan(differences[:, 0])
        if finite.sum() < _MOST * len(one):
            known = ~np.isnan(one[:, 0]) & ~np.isnan(other[:, 0])
            return cls(reason=undefined if known.mean() < _MOST else "no query succeeded: log2 of 0")
        middle = quantile(differences[finite, 0], 0.5)
        resampled = differences[:, 1:].ravel()
        resampled = sampling.stretched(resampled[~np.isnan(resampled)], middle)
        low, high = sampling.ends(resampled)
        p = min(1.0, 2 * min(float((resampled <= _SAME).mean()), float((resampled >= -_SAME).mean())))
        p = max(p, 2 / (len(resampled) + 1))
        if p > 1 - sampling.level:
            low, high = min(low, 0.0), max(high, 0.0)
        fixed = sampling.ends(sampling.stretched(differences[finite, 0], middle))
        value, base = (quantile(of[finite, 0], 0.5) for of in (one, other))
        return cls(value, base, middle, low, high, fixed[0], fixed[1], p)


@dataclass(eq=False)
class Completed:
    """What was computed once of some runs, their labels and a sampling, for all that is shown of them.

    A figure is the same whatever other figures are wanted with it, and so are the completions that it is over.
    """

    figures: dict[tuple[Any, ...], Calibrated] = field(default_factory=dict)
    draws: dict[tuple[Any, ...], list[Completion]] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type[Completed], tuple[()]]:
        # It can be computed again: copies and other processes start without it.
        return Completed, ()

    def missing(self, name: str, plan: Plan, sampling: Sampling) -> Plan:
        """The part of a plan whose figures of a run were not computed before."""
        new = [(m, at[[(name, sampling, str(m @ each)) not in self.figures for each in at.tolist()]]) for m, at in plan]
        return [(measure, at) for measure, at in new if len(at)]

    def drawn(self, name: str, strata: Strata, sampling: Sampling, salt: tuple[int, ...]) -> Iterable[Completion]:
        """The completions of a run's strata: drawn the first time, and kept unless they are too large."""
        key = (name, sampling.seed, sampling.draws, *salt)
        if key not in self.draws:
            draws = strata.draws(sampling.draws, (sampling.seed, *salt))
            labels = strata.ground.labels
            size = 8 * sampling.draws * (len(labels.query) + len(labels) * len(strata.levels))
            if size * (1 + len(self.draws)) > _MOST_KEPT:
                return draws
            self.draws[key] = list(draws)
        return self.draws[key]


def calibrated_figures(
    ground: Ground,
    judged: Mapping[str, JudgedRun],
    plan: Plan,
    sampling: Sampling,
    parts: Mapping[str, JudgedRun] | None = None,
    completed: Completed | None = None,
) -> dict[str, dict[str, Calibrated]]:
    """Every figure of every run that completions bear on: {run: {measure with its depth: figure}}.

    With people's labels the strata of a figure are those of its own K, so each K has completions of its own. Without,
    the judge's own grades complete what it did not grade of tails, and all depths share their completions.

    Parameters
    ----------
    parts : {run: JudgedRun}, optional
        The runs over the queries of a slice: their figures rest on what people labelled there.
    completed : Completed, optional
        What was computed before.
    """
    if completed is None or parts is not None:
        completed = Completed()
    sampling = sampling if parts is None else sampling.in_a_slice()
    measured = judged if parts is None else parts
    result: dict[str, dict[str, Calibrated]] = {name: {} for name in measured}
    for depth, salt, wanted in _of_people(plan) if ground.has_people else _of_tails(ground, judged, plan):
        tops = ground.tops(judged, depth)
        for name, run in measured.items():
            new = completed.missing(name, wanted, sampling)
            if new:
                others = [top for other, top in tops.items() if other != name]
                places = Places.of({name: tops[name]}, others, _named(depth), ground.in_tail)
                queries = None if parts is None else ground.rows_of(run)
                strata = Strata.of(ground, places, queries, ground.counts_of(run))
                figures = _figures_of(strata, name, run, new, (depth, salt), sampling, completed)
                completed.figures |= {(name, sampling, key): figure for key, figure in figures.items()}
            keys = [str(measure @ at) for measure, ats in wanted for at in ats.tolist()]
            result[name] |= {key: completed.figures[name, sampling, key] for key in keys}
    return result


def _of_people(plan: Plan, first: int = 1) -> Iterator[_Group]:
    """The measures of each K, whose strata are those of this K; a recall level takes the whole list."""
    wanted: dict[int, Plan] = {}
    for measure, depths in plan:
        for place, at in enumerate(depths.tolist()):
            key = WHOLE_LIST if isinstance(measure.cutoff, Real) else int(at)
            if measure.name not in WITHOUT_GRADES:
                wanted.setdefault(key, []).append((measure, depths[place : place + 1]))
    for depth, of_depth in wanted.items():
        yield depth, (first, min(depth, 1 << 30)), of_depth


def _of_tails(ground: Ground, judged: Mapping[str, JudgedRun], plan: Plan) -> Iterator[_Group]:
    """The measures that other labels bear on, which the judge's own grades complete down to the last rank of the tails.

    These compare a list with all labels, or leave out the queries without a relevant one (Success). Figures against a
    random draw rest on the controls instead, where there are any. At which ranks of a list the relevant passages of a
    tail stand is not known, so that figures of these ranks stay as judged.
    """
    origins = ground.labels.origins
    if origins is None or origins.tail_ranks is None:
        return
    controlled, pooled = any(run.controls is not None for run in judged.values()), origins.tail_ranks[0] - 1
    longest = max(int(run.returned.max(initial=0)) for run in judged.values())
    wanted: Plan = []
    for measure, at in plan:
        compares = measure.compares_with_all_labels or isinstance(measure, Success)
        if measure.counts_ranks and longest > pooled:
            at = at[at <= pooled] if not isinstance(measure.cutoff, Real) else at[:0]
        if compares and measure.higher_is_better is not None and not (controlled and measure.needs_corpus_size):
            wanted.append((measure, at))
    yield pooled, (7,), wanted


def _named(depth: int) -> str:
    return "whole list" if depth == WHOLE_LIST else f"top {TokenBudget.of(depth) or depth}"


def _figures_of(
    strata: Strata,
    name: str,
    run: JudgedRun,
    plan: Plan,
    at: tuple[int, tuple[int, ...]],
    sampling: Sampling,
    completed: Completed,
) -> dict[str, Calibrated]:
    depth, salt = at
    keys = {str(measure @ each): measure for measure, ats in plan for each in ats.tolist()}
    if strata.missing is not None:
        return {key: Calibrated(reason=strata.missing) for key in keys}
    settled = Settled.of(strata.ground, run, depth)
    served = [measure for measure, _ in plan if settled.serves(measure)]
    drawn = completed.drawn(name, strata, sampling, salt)
    found = sampled(strata, [run], plan, sampling, salt, drawn, lambda random: settled.shares(served, random))
    figures = {}
    for key, measure in keys.items():
        few = strata.ground.has_people and found[key].relevant < _FEW_RELEVANT
        rough = few and (measure.compares_with_all_labels or measure.name == Success.name)
        figure = Calibrated.of(found[key], sampling)
        figures[key] = replace(figure, rough=rough or measure in served, without=strata.without)
    return figures


@dataclass(frozen=True)
class Settled:
    """Queries whose success people settled: how many, and how many of them are successes."""

    number: int
    successes: int
    queries: int
    weighted: bool = False

    @classmethod
    def of(cls, ground: Ground, run: JudgedRun, depth: int) -> Settled:
        """From the labels that settle: a query is settled once one is relevant or the list has no other passage."""
        known = np.where(ground.settling >= 0, ground.settling, ground.human)
        budget = TokenBudget.of(depth)
        top = run.hits.chosen(run.hits.rank <= depth) if budget is None else run.within(budget).hits
        grade = known[top.judgment]
        relevant = np.bincount(top.query, grade >= ground.scale.relevant_from, minlength=len(run)) > 0
        left = np.bincount(top.query, grade < 0, minlength=len(run)) > 0
        begun = np.bincount(ground.labels.query[ground.settling >= 0], minlength=len(ground.labels)) > 0
        settled = begun[ground.rows_of(run)] & (relevant | ~left)
        return cls(int(settled.sum()), int((relevant & settled).sum()), len(run), run.weights is not None)

    def serves(self, measure: Measure) -> bool:
        """Whether the settled queries tell this measure: success by one passage that is relevant on the scale."""
        if not self.number or self.weighted or measure.name not in ("Success", "BoR", "EF"):
            return False
        alone = getattr(measure, "rel", None) is None and getattr(measure, "m", 1) == 1
        return alone and getattr(measure, "null", "random") == "random"

    def shares(self, measures: Iterable[Measure], random: np.random.Generator) -> dict[Measure, FloatArray]:
        """For each measure, draws of the share of all queries that succeed: one for each row of a completion."""
        shares = {}
        for measure in measures:
            chance = random.beta(self.successes + 0.5, self.number - self.successes + 0.5, 1 + RESAMPLES)
            left = random.binomial(self.queries - self.number, chance)
            shares[measure] = (self.successes + left) / self.queries
        return shares


def calibrated_differences(
    ground: Ground,
    judged: Mapping[str, JudgedRun],
    baseline: str,
    plan: Plan,
    sampling: Sampling,
    parts: Mapping[str, JudgedRun] | None = None,
) -> dict[tuple[str, str], CalibratedDifference]:
    """Every difference from the baseline: {(run, measure with its depth): difference}.

    `parts` are as in `calibrated_figures`.

    Raises
    ------
    InputError
        If the runs are over different queries.
    """
    sampling = sampling if parts is None else sampling.in_a_slice()
    measured = judged if parts is None else parts
    base = measured[baseline]
    result: dict[tuple[str, str], CalibratedDifference] = {}
    for depth, salt, wanted in _of_people(plan, 3):
        tops = ground.tops(judged, depth)
        for name, run in measured.items():
            if name == baseline:
                continue
            if run.queries != base.queries:
                raise InputError(
                    "labels by people (human) calibrate differences over the same queries only: leave out "
                    "paired=False (intervals.unpaired)"
                )
            one, other = tops[name], tops[baseline]
            lists = {
                f"{name} only": one & ~other,
                f"{baseline} only": other & ~one,
                f"both {name} and {baseline}": one & other,
            }
            further = [top for each, top in tops.items() if each not in (name, baseline)]
            places = Places.of(lists, further, _named(depth), ground.in_tail)
            queries = None if parts is None else ground.rows_of(run)
            strata = Strata.of(ground, places, queries, ground.counts_of(run))
            keys = [str(measure @ at[0]) for measure, at in wanted]
            if strata.missing is not None:
                result |= {(name, key): CalibratedDifference(reason=strata.missing) for key in keys}
                continue
            found = sampled(strata, [run, base], wanted, sampling, salt)
            for key in keys:
                figure = found[key]
                undefined = figure.outcome.reasons[figure.column]
                change = CalibratedDifference.of(figure.values[:, 0], figure.values[:, 1], sampling, undefined)
                result[name, key] = replace(change, without=strata.without)
    return result


def notes_on_people(ground: Ground, figures: Mapping[str, Calibrated]) -> list[str]:
    """What a report says of the labels by people."""
    notes = [
        f"{ground.calibrated_by}, by the judge's grade and the place in the lists, over {DRAWS} completions; figures "
        f"of single queries are as judged"
    ]
    settling = int((ground.settling >= 0).sum())
    if settling:
        notes.append(f"{counted(settling, 'further label')} of people settle queries one by one")
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
