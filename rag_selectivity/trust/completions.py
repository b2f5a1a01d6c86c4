"""Figures on completed labels: every measure on each of many completions, for one run or the difference of two.

M completions of Q queries are measured as one table of M · Q rows, in chunks.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.paired import paired_difference
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.rows import NO_HITS, Hits
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray, Measure, Outcome, Real
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.plan import Plan
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.people import BoolArray, Ground
from rag_selectivity.trust.strata import Completion, Strata, WithoutLabels

#: Completions of the labels, and for each of them the resamples of the queries beside all of these.
DRAWS, RESAMPLES = 150, 8
#: Random swaps of the queries' means.
_SWAPS = 2000
#: By how much the half-widths are stretched: so many completions of so few labels are narrower than their errors. The
#: same within a slice, which rests on a part of the labels and, of few, on what other queries say too.
STRETCH, _STRETCH_IN_A_SLICE = 1.2, 1.5
#: So many rows of a chunk stay in the processor's cache.
_ROWS_AT_ONCE = 100_000
#: Below so many relevant passages a query, figures of success, and those that compare with all labels, are rough.
_FEW_RELEVANT = 2.0
#: Why figures are rough.
_FEW = "most queries have fewer than two relevant passages, and the interval can be too narrow"
_UNEVEN = "many queries seem to have no relevant passage: BoR can be too high, and the interval too narrow"
#: A figure that fewer completions have is none.
_MOST = 0.9
#: Below this, a difference is rounding.
_SAME = 1e-12

#: One run, or a run and its baseline.
Names = tuple[str, ...]
#: Measures that rest on the same strata, by their names with the depth: (measure, depth).
Wanted = dict[str, tuple[Measure, int]]
#: The depth of some strata, the seed of the completions, and the measures that rest on them.
Groups = Iterator[tuple[int, tuple[int, ...], Wanted]]


@dataclass(frozen=True, slots=True)
class Completed:
    """A figure over all completions, or a run's figure minus the baseline's.

    Attributes
    ----------
    value : float
        The median.
    low, high : float
        The interval over completions and queries; that of a difference contains 0 if and only if p is more than
        1 − level.
    fixed : (float, float)
        The interval over completions alone: for these very queries.
    n : int
        The median number of queries with a figure.
    p : float
        Two-sided, of no difference; NaN for a figure.
    reason : str or None
        Why there is no figure.
    rough : str
        Why the interval is known to be too narrow; empty if it is not.
    without : WithoutLabels or None
        About strata without a label by people.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    fixed: tuple[float, float] = (math.nan, math.nan)
    n: int = 0
    p: float = math.nan
    reason: str | None = None
    rough: str = ""
    without: WithoutLabels | None = None


def completed_figures(
    ground: Ground,
    judged: Mapping[str, JudgedRun],
    targets: Sequence[Names],
    plan: Plan,
    bootstrap: Bootstrap | None,
    parts: Mapping[str, JudgedRun] | None = None,
    known: dict[Any, Completed] | None = None,
    draws: int = DRAWS,
) -> dict[Names, dict[str, Completed]]:
    """Every figure, or difference, that completions bear on: {target: {measure with its depth: figure}}.

    With people's labels the strata of a figure are those of its own K, so each K has completions of its own. Without,
    the judge's own grades complete what it did not grade of tails, and all depths share their completions. A
    difference has strata of its own, and both runs have the same completions.

    Parameters
    ----------
    targets : sequence of (run,) or (run, baseline)
        Of the same queries.
    bootstrap : Bootstrap or None
        Gives level, seed and clusters.
    parts : {run: JudgedRun}, optional
        The runs over the queries of a slice: their figures rest on what people labelled there.
    known : dict, optional
        What was computed before of the same runs and labels; what is new is added.
    """
    bootstrap = bootstrap or Bootstrap()
    known = {} if known is None or parts is not None else known
    result: dict[Names, dict[str, Completed]] = {names: {} for names in targets}
    for depth, seed, wanted in _of_people(plan) if ground.has_people else _of_tails(ground, judged, plan):
        tops = ground.tops(judged, depth)
        for names in targets:
            runs = [(judged if parts is None else parts)[name] for name in names]
            keys = {key: (names, bootstrap.level, bootstrap.seed, key) for key in wanted}
            if new := {key: each for key, each in wanted.items() if keys[key] not in known}:
                lists = {names[0]: tops[names[0]]}
                if len(names) == 2:
                    one, other = (tops[name] for name in names)
                    lists = {f"{names[0]} only": one & ~other, f"{names[1]} only": other & ~one}
                    lists[f"both {names[0]} and {names[1]}"] = one & other
                top = "whole list" if depth == WHOLE_LIST else f"top {TokenBudget.of(depth) or depth}"
                others = [each for name, each in tops.items() if name not in names]
                rows, counts = ground.labels.positions(runs[0].queries), None
                if runs[0].weights is not None:
                    counts = np.zeros(len(ground.labels))
                    counts[rows] = runs[0].weights.values / runs[0].weights.values.max()
                strata = Strata.of(ground, lists, others, top, None if parts is None else rows, counts)
                salt = (seed[0] + 2 * (len(names) - 1), *seed[1:])
                stretch = STRETCH if parts is None else _STRETCH_IN_A_SLICE
                drawn = _Drawn(strata, runs, rows, bootstrap, salt, draws, stretch)
                for key, figure in drawn.figures(new, tops[names[0]]).items():
                    known[keys[key]] = replace(figure, without=strata.without)
            result[names] |= {key: known[keys[key]] for key in wanted}
    return result


def _of_people(plan: Plan) -> Groups:
    """The measures by their own K, whose strata they rest on; a recall level takes the whole list."""
    groups: dict[int, Wanted] = {}
    for measure, depths in plan:
        for at in depths.tolist() if measure.name != "Judged" else ():
            of_depth = groups.setdefault(WHOLE_LIST if isinstance(measure.cutoff, Real) else at, {})
            of_depth[str(measure @ at)] = measure, at
    for depth, wanted in groups.items():
        yield depth, (1, min(depth, 1 << 30)), wanted


def _of_tails(ground: Ground, judged: Mapping[str, JudgedRun], plan: Plan) -> Groups:
    """The measures that the judge's own grades complete down to the last rank of the tails.

    These compare a list with all labels, or leave out the queries without a relevant one (Success). Figures against a
    random draw rest on the controls instead, where there are any, and those of groups of passages stay as judged. At
    which ranks of a list the relevant passages of a tail stand is not known, so that figures of these ranks do too.
    """
    if (origins := ground.labels.origins) is None or origins.tail_ranks is None:
        return
    controlled, pooled = any(run.controls is not None for run in judged.values()), origins.tail_ranks[0] - 1
    below = max(int(run.returned.max(initial=0)) for run in judged.values()) > pooled
    wanted: Wanted = {}
    for measure, depths in plan:
        left_out = measure.of_groups or measure.higher_is_better is None
        if not _looks_outside(measure) or left_out or (controlled and measure.needs_corpus_size):
            continue
        for at in depths.tolist():
            if not (measure.counts_ranks and below and (at > pooled or isinstance(measure.cutoff, Real))):
                wanted[str(measure @ at)] = measure, at
    yield pooled, (7,), wanted


@dataclass(frozen=True)
class _Drawn:
    """Completions of the labels of one run, or of two, and how they are drawn.

    Attributes
    ----------
    strata : Strata
    runs : list of JudgedRun
    rows : int64[queries]
        The positions of the runs' queries among those of the labels.
    bootstrap : Bootstrap
    salt : tuple of int
        Seeds what is drawn.
    draws : int
    stretch : float
    """

    strata: Strata
    runs: list[JudgedRun]
    rows: IntArray
    bootstrap: Bootstrap
    salt: tuple[int, ...]
    draws: int
    stretch: float

    def figures(self, wanted: Wanted, listed: BoolArray) -> dict[str, Completed]:
        """The figures of the run, or the differences of the two; `listed` are the judgments in the first list."""
        strata, ground, runs, seed = self.strata, self.strata.ground, self.runs, self.bootstrap.seed
        if strata.missing is not None:
            text, is_outside = strata.missing
            inside = {key: (x, at) for key, (x, at) in wanted.items() if is_outside and not _looks_outside(x)}
            known = replace(self, strata=replace(strata, missing=None)).figures(inside, listed) if inside else {}
            return {key: known.get(key, Completed(reason=text)) for key in wanted}
        units = self.bootstrap.units(runs[0].queries)
        random = np.random.default_rng([seed, self.salt[0] + 1, *self.salt[1:]])
        of_success, of_tails = random.spawn(2)
        size = max(1, _ROWS_AT_ONCE // max(1, *(len(run) + len(run.hits.query) for run in runs)))
        completions = strata.draws(self.draws, (seed, *self.salt))
        settled, successes = ground.settled(listed, self.rows)
        own = 1.0 if runs[0].weights is None else runs[0].weights.values / runs[0].weights.values.max()
        alone = settled > 0 and len(runs) == 1 and runs[0].weights is None
        served = {key for key, (measure, _) in wanted.items() if alone and _is_of_one_success(measure)}
        relevant: list[float] = []
        outcomes: dict[str, Outcome] = {}
        columns: dict[str, list[tuple[FloatArray, ...]]] = {key: [] for key in wanted}
        totals: dict[str, Any] = dict.fromkeys(wanted, 0.0)
        while some := list(islice(completions, size)):
            weights = np.stack([_resampled(units, len(runs[0]), random) for _ in some])
            # The share of all queries that succeed: those that people settled, and what these tell of the others.
            chance = of_success.beta(successes + 0.5, settled - successes + 0.5, weights.shape[:2])
            share = (successes + of_success.binomial(len(self.rows) - settled, chance)) / max(1, len(self.rows))
            undrawn = self._undrawn(some, of_tails)
            together = [self._completed(run, some, undrawn) for run in runs]
            relevant += np.median(together[0].relevant(None).reshape(len(some), -1), axis=1).tolist()
            for key, (measure, at) in wanted.items():
                of_runs = [self._outcome(measure, at, *each, some) for each in zip(runs, together, strict=True)]
                outcomes[key] = of_runs[0]
                defined = np.logical_and.reduce([each.defined.reshape(len(some), -1) for each in of_runs])
                counts = defined * own
                parts = ([part.reshape(defined.shape) for part in each.parts] for each in of_runs)
                totals[key] += np.where(defined, [[*each, defined] for each in parts], 0.0).sum(axis=2)
                of_all = share if key in served else None
                values = np.stack([_values(outcome, weights, counts, of_all) for outcome in of_runs], axis=1)
                effective = counts.sum(axis=1) ** 2 / np.maximum((counts**2).sum(axis=1), np.finfo(np.float64).tiny)
                columns[key].append((values, (counts > 0).sum(axis=1), effective))
        few, result = ground.has_people and float(np.median(relevant)) < _FEW_RELEVANT, {}
        uneven = _FEW if few else _UNEVEN * (len(runs) == 1 and strata.too_even)
        for key, (measure, _) in wanted.items():
            values, number, effective = (np.concatenate(each) for each in zip(*columns[key], strict=True))
            n, outcome = int(np.median(number)), outcomes[key]
            if len(runs) == 2:
                found = self._difference(values[:, 0], values[:, 1], outcome, totals[key])
            else:
                found = self._figure(values[:, 0], float(np.median(effective)), outcome)
                # Units are numbered from 0: without another number there is one.
                one_unit = n < 2 or not (units is None or units.any())
                found = replace(found, low=math.nan, high=math.nan) if one_unit else found
            in_tails = measure.compares_with_all_labels and not measure.needs_corpus_size and ground.tail_in_clumps
            rough = _FEW * (key in served) or uneven * _looks_outside(measure) or _UNEVEN * in_tails
            result[key] = replace(found, n=0 if found.reason else n, rough=rough)
        return result

    def _figure(self, values: FloatArray, effective: float, outcome: Outcome) -> Completed:
        """The median and the intervals of a figure: float64[completions, 1 + resamples].

        `effective` says as how many queries of equal weight they count. The outcome is that of the last completions,
        which says how the figures aggregate.
        """
        known, resampled = (each[~np.isnan(each)] for each in (values[:, 0], values[:, 1:].ravel()))
        if len(known) < _MOST * len(values):
            return Completed(reason=outcome.reasons[0])
        value, form = quantile(known, 0.5), outcome.aggregate.form
        own = outcome.ends_at(0) if form == "mean" else None
        positive = form != "bits" and len(resampled) > 0 and resampled.min() >= 0
        least, most = own or (0.0 if positive else -math.inf, math.inf)

        def around(of: FloatArray) -> tuple[float, float]:
            if not len(of):
                return math.nan, math.nan
            low, high = stretched_ends(of, value, self.bootstrap.level, self.stretch)
            return max(min(low, value), least), min(max(high, value), most)

        low, high = around(resampled)
        if own is not None and low == high and value in own:
            # What so many queries without any spread can tell of an end of the range (Clopper and Pearson).
            reach = (1 - ((1 - self.bootstrap.level) / 2) ** (1 / effective)) * (own[1] - own[0])
            low, high = (value, value + reach) if value == own[0] else (value - reach, value)
        return Completed(value, low, high, around(known))

    def _difference(self, one: FloatArray, other: FloatArray, outcome: Outcome, totals: FloatArray) -> Completed:
        """The medians, intervals and p of a difference, all of one distribution: float64[completions, 1 + …].

        Resamples of few queries vary too little. So the test of two runs on each query's means over the completions has
        its say too: p is the larger one, and the interval holds both.
        """
        level, undefined = self.bootstrap.level, outcome.reasons[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            differences, means = one - other, totals[:, :-1] / totals[:, -1:]
        if (finite := ~np.isnan(differences[:, 0])).sum() < _MOST * len(one):
            known = ~np.isnan(one[:, 0]) & ~np.isnan(other[:, 0])
            return Completed(reason=undefined if known.mean() < _MOST else "no query succeeded: log2 of 0")
        middle = quantile(differences[finite, 0], 0.5)
        resampled = differences[:, 1:][~np.isnan(differences[:, 1:])]
        with np.errstate(invalid="ignore"):
            spread = np.where(np.isinf(resampled), resampled, middle + self.stretch * (resampled - middle))
        p = min(1.0, 2 * min(float((spread <= _SAME).mean()), float((spread >= -_SAME).mean())))
        sides = [replace(outcome.over(slice(len(self.rows))), parts=tuple(side[:, :, None])) for side in means]
        units, seed = self.bootstrap.units(self.runs[0].queries), self.bootstrap.seed
        of_means = paired_difference(*sides, level=level, draws=_SWAPS, seed=seed, units=units)
        p = max(p, 2 / (len(spread) + 1), float(of_means.p[0]))
        low, high = stretched_ends(resampled, middle, level, self.stretch)
        ends = outcome.ends_at(0) if outcome.aggregate.form == "mean" else None
        both, furthest = (low, high, of_means.low[0], of_means.high[0]), math.inf if ends is None else ends[1] - ends[0]
        low, high = np.clip([np.min(both), np.max(both)], -furthest, furthest).tolist()
        if p > 1 - level:
            low, high = min(low, 0.0), max(high, 0.0)
        return Completed(middle, low, high, stretched_ends(differences[finite, 0], middle, level, self.stretch), p=p)

    def _outcome(
        self, measure: Measure, at: int, run: JudgedRun, together: JudgedRun, some: Sequence[Completion]
    ) -> Outcome:
        """A measure on some completions, one after another."""
        if run.other_lists is None or getattr(measure, "null", "random") != "lists":
            return measure.outcome(together, np.array([at])).settled()
        # Completions of the lists of other queries do not stand one after another.
        outcomes = [measure.outcome(self._completed(run, [each]), np.array([at])).settled() for each in some]
        joint = tuple(np.concatenate(columns) for columns in zip(*(each.parts for each in outcomes), strict=True))
        weights = outcomes[0].weights
        return replace(outcomes[0], parts=joint, weights=None if weights is None else np.tile(weights, len(some)))

    def _undrawn(self, completions: Sequence[Completion], random: np.random.Generator) -> Hits:
        """The passages of the tails that nobody graded, by their completed grades, junk left out.

        Each stands in a list where a drawn passage of the same grade stands, whose number is its `judgment`, or in none
        if that one stands in none: which passages they are is not known. Each completion resamples the drawn ones, for
        these are few (Rubin and Schenker 1986, approximate Bayesian bootstrap). `rank` is open.
        """
        ground, found = self.strata.ground, [NO_HITS]
        for number, (grades, _, more) in enumerate(completions):
            some = random.choice(drawn := np.flatnonzero(ground.in_tail), len(drawn))
            for level in np.flatnonzero(self.strata.people.steps > 0).tolist():
                query = np.repeat(np.arange(len(self.rows)), more[self.rows, level])
                rows, grade = query + len(self.rows) * number, np.full(len(query), self.strata.levels[level])
                alike = some[grades[some] == self.strata.levels[level]]
                stand = random.choice(alike if len(alike) else some, len(query))
                found.append(Hits(rows, np.zeros_like(rows), grade, np.zeros(len(rows), bool), stand))
        return Hits.together(found)

    def _completed(self, run: JudgedRun, completions: Sequence[Completion], undrawn: Hits = NO_HITS) -> JudgedRun:
        """The join with completed labels, once for each completion; what is `undrawn` stands in lists and pool too."""
        times, queries = len(completions), len(run)
        grades = np.stack([grades for grades, *_ in completions])

        def tiled(value: Any) -> Any:
            if isinstance(value, Hits):
                every = value.take(np.tile(np.arange(len(value.query)), times))
                query = every.query + np.repeat(queries * np.arange(times), len(value.query))
                every = replace(every, query=query, grade=grades[:, value.judgment].ravel())
                if value is run.copies or not len(undrawn.query):
                    return every
                rank = np.zeros(grades.shape[1], np.int64)
                rank[value.judgment[::-1]] = value.rank[::-1]  # of copies, the first
                more = replace(undrawn, rank=rank[undrawn.judgment])
                every = every.beside([more.take(more.rank > 0)])
                return every.take(np.lexsort((every.rank, every.query)))
            return None if value is None else np.tile(value, times)

        others = run.other_lists
        columns = ("returned", "corpus_size", "pool_returned", "own_pool", "missing", "first_repeat")
        return replace(
            run,
            **{name: tiled(getattr(run, name)) for name in (*columns, "hits", "pool", "copies", "outside")},
            queries=run.queries * times,
            grades=self.strata.levels,
            labels=np.concatenate([labels[self.rows] for _, labels, _ in completions]),
            # Completions may have queries without a relevant passage.
            policy=replace(run.policy, no_relevant="skip"),
            fitting={budget: tiled(fitting) for budget, fitting in run.fitting.items()},
            weights=None if run.weights is None else replace(run.weights, values=tiled(run.weights.values)),
            other_lists=None if others is None or times > 1 else replace(others, grade=grades[0][others.judgment]),
        )


def _looks_outside(measure: Measure) -> bool:
    """Whether labels of passages outside the lists bear on a measure: by them Success leaves out queries."""
    return measure.compares_with_all_labels or isinstance(measure, Success)


def _is_of_one_success(measure: Measure) -> bool:
    """Whether settled queries tell a measure: success by one relevant passage, also against a random draw."""
    first = getattr(measure, "rel", None) is None and getattr(measure, "m", 1) == 1
    return measure.name in ("Success", "BoR", "EF") and first and getattr(measure, "null", "random") == "random"


def quantile(values: FloatArray, at: float) -> float:
    """A quantile that does not average an infinite value with a finite one."""
    return float(np.quantile(values, at, method="inverted_cdf" if np.isinf(values).any() else "linear"))


def stretched_ends(values: FloatArray, middle: float, level: float, stretch: float = STRETCH) -> tuple[float, float]:
    """The quantiles at the two ends of the level, with their distances from the middle stretched."""
    low, high = (
        end if math.isinf(end) or not math.isfinite(middle) else middle + stretch * (end - middle)
        for end in (quantile(values, (1 - level) / 2), quantile(values, 1 - (1 - level) / 2))
    )
    return low, high


def _resampled(units: IntArray | None, queries: int, random: np.random.Generator) -> FloatArray:
    """1 for each query, and then how often each, or its cluster, is drawn: float64[1 + resamples, queries]."""
    units = np.arange(queries) if units is None else units
    number = int(units.max(initial=-1)) + 1
    result = np.ones((1 + RESAMPLES, queries))
    drawn = random.integers(0, max(number, 1), (RESAMPLES, number)) + np.arange(RESAMPLES)[:, None] * number
    counts = np.bincount(drawn.ravel(), minlength=RESAMPLES * number).reshape(RESAMPLES, number)
    result[1:] = counts[:, units]
    return result


def _values(outcome: Outcome, weights: FloatArray, counts: FloatArray, share: FloatArray | None) -> FloatArray:
    """The figure under each row of weights: float64[completions, rows]; NaN without a defined query.

    Parameters
    ----------
    weights : float64[completions, rows, queries]
    counts : float64[completions, queries]
    share : float64[completions, rows], optional
        The share of all queries that succeed, in place of the first part's mean.
    """
    counted = [np.where(counts > 0, part.reshape(counts.shape), 0.0) * counts for part in outcome.parts]
    total, *sums = ((weights @ each[:, :, None])[:, :, 0] for each in (counts, *counted))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [each / total for each in sums]
        if share is not None:
            # A query without a relevant passage in this completion is none of the queries that the figure is over.
            means[0] = share * weights.sum(axis=2) / total
            if len(means) == 1:
                means[0] = np.minimum(means[0], 1.0)
        return np.asarray(outcome.aggregate.value(*means), np.float64)
