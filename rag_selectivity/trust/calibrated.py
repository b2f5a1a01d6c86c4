"""Calibrated figures: every measure on each of many completions of the labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray, Measure, Real
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.plan import Plan
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.ground import Ground, Places, Strata, WithoutLabels, tops
from rag_selectivity.trust.measured import ROWS, Chunks, Measured, Resampling

#: Completions of the labels.
DRAWS = 150
#: The bytes of completions that are kept at most.
_MOST_KEPT = 64_000_000
#: By how much the half-widths are stretched: so many completions of so few labels are narrower than their errors.
STRETCH = 1.2
#: The same within a slice, which rests on a part of the labels and, of few, on what other queries say too.
STRETCH_IN_A_SLICE = 1.5
#: Below so many relevant passages a query, figures of success, and those that compare with all labels, are rough.
FEW_RELEVANT = 2.0
#: What a grade cannot change.
WITHOUT_GRADES = ("Judged",)


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

    value: float
    low: float
    high: float
    fixed_low: float
    fixed_high: float
    n: int
    reason: str | None = None
    rough: bool = False
    without: WithoutLabels | None = None

    @classmethod
    def none(cls, reason: str) -> Calibrated:
        """No figure."""
        return cls(*(math.nan,) * 5, 0, reason)


@dataclass(frozen=True)
class Sampling:
    """How completions are drawn: level, seed, number of completions, the clusters of queries; and the stretch."""

    level: float = 0.95
    seed: int = 7
    draws: int = DRAWS
    units: Callable[[Sequence[str]], IntArray | None] = field(default=lambda _: None)
    stretch: float = STRETCH

    @classmethod
    def of(cls, bootstrap: Bootstrap | None) -> Sampling:
        """With a bootstrap's level, seed and clusters."""
        return cls() if bootstrap is None else cls(bootstrap.level, bootstrap.seed, units=bootstrap.units)

    def in_a_slice(self) -> Sampling:
        """The same for the queries of a slice."""
        return replace(self, stretch=STRETCH_IN_A_SLICE)

    def resampling(self, run: JudgedRun, *seed: int) -> Resampling:
        """The resampled queries of a run."""
        return Resampling(self.units(run.queries), len(run), np.random.default_rng([self.seed, *seed]))


@dataclass(eq=False)
class Completed:
    """What was computed once of some runs, their labels and a sampling, for all that is shown of them.

    A figure is the same whatever other figures are wanted with it, and so are the completions that it is over.
    """

    figures: dict[tuple[Any, ...], Calibrated] = field(default_factory=dict)
    draws: dict[tuple[Any, ...], list[tuple[IntArray, IntArray]]] = field(default_factory=dict)
    _bytes: int = 0

    def __reduce__(self) -> tuple[type[Completed], tuple[()]]:
        # It can be computed again: copies and other processes start without it.
        return Completed, ()

    def not_known(self, name: str, plan: Plan, sampling: Sampling) -> Plan:
        """The part of a plan whose figures were not computed before."""
        wanted = [
            (measure, at[[(name, sampling, str(measure @ depth)) not in self.figures for depth in at.tolist()]])
            for measure, at in plan
        ]
        return [(measure, at) for measure, at in wanted if len(at)]

    def keep(self, name: str, sampling: Sampling, figures: Mapping[str, Calibrated]) -> None:
        """Keep figures of a run."""
        self.figures.update(((name, sampling, key), figure) for key, figure in figures.items())

    def known(self, name: str, plan: Plan, sampling: Sampling) -> dict[str, Calibrated]:
        """The figures of a plan, all of which were computed before."""
        keys = [str(measure @ depth) for measure, at in plan for depth in at.tolist()]
        return {key: self.figures[name, sampling, key] for key in keys}

    def drawn(
        self, key: tuple[Any, ...], strata: Strata, number: int, seed: Sequence[int]
    ) -> Iterable[tuple[IntArray, IntArray]]:
        """The completions of strata: drawn the first time, and kept unless they are too large."""
        if key in self.draws:
            yield from self.draws[key]
            return
        kept: list[tuple[IntArray, IntArray]] | None = []
        for grades, table in strata.draws(number, seed):
            self._bytes += grades.nbytes + table.nbytes
            kept = None if kept is None or self._bytes > _MOST_KEPT else [*kept, (grades, table)]
            yield grades, table
        if kept is not None:
            self.draws[key] = kept


def calibrated_figures(
    ground: Ground,
    judged: Mapping[str, JudgedRun],
    plan: Plan,
    sampling: Sampling,
    parts: Mapping[str, JudgedRun] | None = None,
    completed: Completed | None = None,
) -> dict[str, dict[str, Calibrated]]:
    """Every figure of every run that grades bear on: {run: {measure with its depth: figure}}.

    The strata of a figure are those of its own K, so each K has completions of its own. `parts` are the runs over the
    queries of a slice: their figures rest on what people labelled there. `completed` has what was computed before.
    """
    completed = completed if completed is not None and parts is None else Completed()
    measured = judged if parts is None else parts
    sampling = sampling if parts is None else sampling.in_a_slice()
    result: dict[str, dict[str, Calibrated]] = {name: {} for name in measured}
    served = [(measure, at) for measure, at in plan if measure.name not in WITHOUT_GRADES]
    for depth, wanted in by_depth(served).items():
        top = tops(judged, ground.labels, depth)
        for name, run in measured.items():
            if completed.not_known(name, wanted, sampling):
                queries = None if parts is None else rows_of(ground, run)
                places = Places.of_run(top, name, named_depth(depth))
                strata = Strata.of(ground, places, queries, counts_of(ground, run))
                figures = _figures_at(strata, name, run, wanted, depth, sampling, completed)
            else:
                figures = completed.known(name, wanted, sampling)
            result[name].update(figures)
    return result


def figures_with_tails(
    ground: Ground,
    judged: Mapping[str, JudgedRun],
    plan: Plan,
    first: int,
    sampling: Sampling,
    parts: Mapping[str, JudgedRun] | None = None,
    completed: Completed | None = None,
) -> dict[str, dict[str, Calibrated]]:
    """The figures that other labels bear on, with the ungraded passages of tails completed by the judge's own grades.

    These compare a list with all labels, or leave out the queries without a relevant one (Success). Figures against a
    random draw rest on the controls instead, where there are any. Only the tails are completed, so all depths share one
    set of completions. `first` is the first rank of the tails. `parts` are the runs over the queries of a slice, whose
    tails are completed by their own grades. `completed` has what was computed before.
    """
    completed = completed if completed is not None and parts is None else Completed()
    controlled = any(run.controls is not None for run in judged.values())
    plan = [
        (measure, at)
        for measure, at in plan
        if (measure.compares_with_all_labels or isinstance(measure, Success))
        and measure.higher_is_better is not None
        and not (controlled and measure.needs_corpus_size)
    ]
    top = tops(judged, ground.labels, first - 1)
    result = {}
    for name, run in (judged if parts is None else parts).items():
        wanted = completed.not_known(name, plan, sampling)
        if wanted:
            rows = rows_of(ground, run)
            places = Places.of_run(top, name, named_depth(first - 1))
            strata = Strata.of(ground, places, None if parts is None else rows, counts_of(ground, run))
            chunks = Chunks([run], rows, strata.levels, sampling.resampling(run, 8))
            drawn = completed.drawn((name, "tail", sampling.seed), strata, sampling.draws, (sampling.seed, 7))
            collected = _collected(chunks, drawn, wanted)
            completed.keep(name, sampling, {key: each.figure(sampling) for key, each in collected.items()})
        result[name] = completed.known(name, plan, sampling)
    return result


def by_depth(plan: Plan) -> dict[int, Plan]:
    """{K: measures with what stands after their @}; a recall level takes the whole list."""
    wanted: dict[int, Plan] = {}
    for measure, depths in plan:
        for place, at in enumerate(depths.tolist()):
            key = WHOLE_LIST if isinstance(measure.cutoff, Real) else int(at)
            wanted.setdefault(key, []).append((measure, depths[place : place + 1]))
    return wanted


def named_depth(depth: int) -> str:
    """A depth in a sentence."""
    if depth == WHOLE_LIST:
        return "whole list"
    return f"top {TokenBudget.of(depth) or depth}"


def _figures_at(
    strata: Strata,
    name: str,
    run: JudgedRun,
    wanted: Plan,
    depth: int,
    sampling: Sampling,
    completed: Completed,
) -> dict[str, Calibrated]:
    if strata.missing is not None:
        return {str(measure @ at[0]): Calibrated.none(strata.missing) for measure, at in wanted}
    rows, key = rows_of(strata.ground, run), min(depth, 1 << 30)
    settled = Settled.of(strata.ground, run, rows, depth)
    served = [measure for measure, _ in wanted if settled.serves(measure)]
    chunks = Chunks([run], rows, strata.levels, sampling.resampling(run, 2, key), lambda r: settled.shares(served, r))
    drawn = completed.drawn((name, depth, sampling.seed), strata, sampling.draws, (sampling.seed, 1, key))
    collected = _collected(chunks, drawn, wanted)
    few = bool(chunks.relevant and np.median(chunks.relevant) < FEW_RELEVANT)
    figures = {}
    for measure, at in wanted:
        figure = collected[str(measure @ at[0])].figure(sampling)
        rough = few and (measure.compares_with_all_labels or measure.name == Success.name)
        rough = rough or (settled.given and settled.serves(measure))
        figures[str(measure @ at[0])] = replace(figure, rough=rough, without=strata.without)
    if not settled.given:
        # Figures that settled queries serve take their random numbers one after another, in the order of the plan.
        completed.keep(name, sampling, figures)
    return figures


def rows_of(ground: Ground, run: JudgedRun) -> IntArray:
    """The positions of a join's queries among the labels' queries."""
    return np.array([ground.labels.position(query) for query in run.queries], np.int64)


def counts_of(ground: Ground, run: JudgedRun) -> FloatArray | None:
    """How much each of the labels' queries counts in the figures of a join: float64[queries]; None where all alike."""
    if run.weights is None:
        return None
    counts = np.zeros(len(ground.labels))
    counts[rows_of(ground, run)] = run.weights.values / run.weights.values.max()
    return counts


@dataclass(frozen=True)
class Settled:
    """Queries whose success people settled: how many, and how many of them are successes."""

    number: int
    successes: int
    queries: int
    weighted: bool = False

    @property
    def given(self) -> bool:
        """Whether any query is settled."""
        return self.number > 0

    @classmethod
    def of(cls, ground: Ground, run: JudgedRun, rows: IntArray, depth: int) -> Settled:
        """From the labels that settle: a query is settled once one is relevant or the list has no other passage."""
        if not (ground.settling >= 0).any():
            return cls(0, 0, len(run))
        known = np.where(ground.settling >= 0, ground.settling, ground.human)
        budget = TokenBudget.of(depth)
        top = run.hits.chosen(run.hits.rank <= depth) if budget is None else run.within(budget).hits
        grade = known[top.judgment]
        relevant = np.bincount(top.query, grade >= ground.scale.relevant_from, minlength=len(run)) > 0
        left = np.bincount(top.query, grade < 0, minlength=len(run)) > 0
        begun = np.bincount(ground.labels.query[ground.settling >= 0], minlength=len(ground.labels)) > 0
        settled = begun[rows] & (relevant | ~left)
        return cls(int(settled.sum()), int((relevant & settled).sum()), len(run), run.weights is not None)

    def serves(self, measure: Measure) -> bool:
        """Whether the settled queries tell this measure: success by one passage that is relevant on the scale."""
        if not self.given or self.weighted or measure.name not in ("Success", "BoR", "EF"):
            return False
        alone = getattr(measure, "rel", None) is None and getattr(measure, "m", 1) == 1
        return alone and getattr(measure, "null", "random") == "random"

    def shares(self, measures: Iterable[Measure], random: np.random.Generator) -> dict[Measure, FloatArray]:
        """For each measure, draws of the share of all queries that succeed: one for each row of a completion."""
        return {measure: self._share(random) for measure in measures}

    def _share(self, random: np.random.Generator) -> FloatArray:
        chance = random.beta(self.successes + 0.5, self.number - self.successes + 0.5, ROWS)
        left: FloatArray = random.binomial(self.queries - self.number, chance).astype(np.float64)
        return (self.successes + left) / self.queries


@dataclass
class _Collected:
    """A measure's figure on every completion, at one depth: only numbers are kept."""

    values: list[FloatArray] = field(default_factory=list)
    resampled: list[FloatArray] = field(default_factory=list)
    defined: list[int] = field(default_factory=list)
    effective: list[float] = field(default_factory=list)
    bounds: tuple[float, float] | None = None
    undefined: str = ""
    form: str = "mean"

    def add(self, measured: Measured, values: FloatArray, column: int) -> None:
        """Take in the figures of some completions: float64[completions, 1 + resamples, depths]."""
        self.values.append(values[:, 0, column])
        self.resampled.append(values[:, 1:, column].ravel())
        for counts in measured.counts[:, :, column]:
            self.defined.append(int((counts > 0).sum()))
            self.effective.append(effective_size(counts[counts > 0]))
        self.undefined = measured.outcome.reasons[column]
        self.form = measured.outcome.aggregate.form
        self.bounds = measured.outcome.ends_at(column) if self.form == "mean" else None

    def figure(self, sampling: Sampling) -> Calibrated:
        """The median and the intervals."""
        values = np.concatenate(self.values) if self.values else np.empty(0)
        known = values[~np.isnan(values)]
        # A figure that most completions do not have is none.
        if len(known) < 0.9 * len(values) or not len(values):
            return Calibrated.none(self.undefined)
        value = quantile(known, 0.5)
        resampled = np.concatenate(self.resampled)
        resampled = resampled[~np.isnan(resampled)]
        bounds = self.bounds
        if bounds is None and self.form != "bits" and len(resampled) and resampled.min() >= 0:
            bounds = (0.0, math.inf)
        low, high = stretched(resampled, value, sampling, bounds)
        n = int(np.median(self.defined))
        if self.bounds is not None and low == high and n > 1:
            low, high = _if_all_agree(value, float(np.median(self.effective)), sampling.level, self.bounds)
        if n < 2:
            low = high = math.nan
        return Calibrated(value, low, high, *stretched(known, value, sampling, bounds), n)


def _collected(chunks: Chunks, completions: Iterable[tuple[IntArray, IntArray]], plan: Plan) -> dict[str, _Collected]:
    """The figures of a plan on completions of one run's labels."""
    collected = {str(measure @ depth): _Collected() for measure, at in plan for depth in at.tolist()}
    for chunk, weights, shares in chunks.each(completions):
        for measure, at in plan:
            measured = chunk.measured(0, measure, at)
            values = measured.values(weights, measured.counts, shares.get(measure))
            for column, depth in enumerate(at.tolist()):
                collected[str(measure @ depth)].add(measured, values, column)
    return collected


def _if_all_agree(value: float, queries: float, level: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """What so many queries without any spread can tell of a mean at an end of its range (Clopper and Pearson)."""
    share = ((1 - level) / 2) ** (1 / queries)
    low, high = bounds
    if value == high:
        return low + share * (high - low), value
    if value == low:
        return value, high - share * (high - low)
    return value, value


def stretched(
    values: FloatArray, value: float, sampling: Sampling, bounds: tuple[float, float] | None
) -> tuple[float, float]:
    """The quantiles of the values with stretched half-widths; NaN without values."""
    if not len(values):
        return math.nan, math.nan
    ends = []
    for tail in ((1 - sampling.level) / 2, (1 + sampling.level) / 2):
        end = quantile(values, tail)
        ends.append(value + sampling.stretch * (end - value) if math.isfinite(end) and math.isfinite(value) else end)
    low, high = min(ends[0], value), max(ends[1], value)
    return (low, high) if bounds is None else (max(low, bounds[0]), min(high, bounds[1]))


def quantile(values: FloatArray, at: float) -> float:
    """A quantile that does not average an infinite value with a finite one."""
    if np.isinf(values).any():
        return float(np.quantile(values, at, method="inverted_cdf"))
    return float(np.quantile(values, at))
