"""Measures on completed labels: M completions of Q queries are measured as one table of M · Q rows, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.hits import Hits
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray, Measure, Outcome
from rag_selectivity.measures.plan import Plan
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.strata import Strata

#: Completions of the labels, and for each of them the resamples of the queries beside all of these.
DRAWS, RESAMPLES = 150, 8
#: By how much the half-widths are stretched: so many completions of so few labels are narrower than their errors.
STRETCH = 1.2
#: The same within a slice, which rests on a part of the labels and, of few, on what other queries say too.
_STRETCH_IN_A_SLICE = 1.5
#: So many rows of a chunk stay in the processor's cache.
_ROWS_AT_ONCE = 100_000

#: The grade of each judgment, and the labels of each query with each level: int64[judgments], int64[queries, levels].
Completion = tuple[IntArray, IntArray]


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
        return replace(self, stretch=_STRETCH_IN_A_SLICE)

    def stretched(self, values: FloatArray, middle: float) -> FloatArray:
        """The values with their distances from the middle stretched; what is infinite stays so."""
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(values), values, middle + self.stretch * (values - middle))

    def ends(self, values: FloatArray) -> tuple[float, float]:
        """The quantiles at the two ends of the level."""
        tail = (1 - self.level) / 2
        return quantile(values, tail), quantile(values, 1 - tail)


@dataclass(frozen=True)
class Sampled:
    """A measure at one depth on every completion of the labels of one run, or of two that are compared.

    Attributes
    ----------
    values : float64[completions, runs, 1 + resamples]
        Over all queries, and over each resample of them; over queries that are defined in all of the runs.
    defined, effective : float64[completions]
        How many queries the first run's figure is over, and as how many of equal weight they count.
    relevant : float
        The median over completions of the median number of relevant passages of a query.
    outcome : Outcome
        The first run's figures of the last completions, which say how these aggregate.
    column : int
        The depth's column there.
    """

    values: FloatArray
    defined: FloatArray
    effective: FloatArray
    relevant: float
    outcome: Outcome
    column: int


def sampled(
    strata: Strata,
    runs: Sequence[JudgedRun],
    plan: Plan,
    sampling: Sampling,
    salt: tuple[int, ...],
    completions: Iterable[Completion] | None = None,
) -> dict[str, Sampled]:
    """Each measure of a plan with its depth, on completions of the labels; `salt` seeds what is drawn.

    `completions` are those that were drawn before from these strata.
    """
    if completions is None:
        completions = strata.draws(sampling.draws, (sampling.seed, *salt))
    # Completions may have queries without a relevant passage.
    runs = [replace(run, policy=replace(run.policy, no_relevant="skip")) for run in runs]
    rows, units = strata.ground.rows_of(runs[0]), sampling.units(runs[0].queries)
    random = np.random.default_rng([sampling.seed, salt[0] + 1, *salt[1:]])
    size = max(1, _ROWS_AT_ONCE // max(1, *(len(run) + len(run.hits.query) for run in runs)))
    remaining = iter(completions)
    parts: list[list[tuple[FloatArray, FloatArray, FloatArray]]] = [[] for _ in plan]
    outcomes: dict[int, Outcome] = {}
    relevant: list[float] = []
    while some := list(islice(remaining, size)):
        weights = np.stack([_resampled(units, len(runs[0]), random) for _ in some])
        together = [_on(run, rows, strata.levels, some) for run in runs]
        relevant += np.median(together[0].relevant(None).reshape(len(some), -1), axis=1).tolist()
        for place, (measure, at) in enumerate(plan):
            of_runs = [
                _outcome(measure, at, run, joined, (rows, strata.levels, some))
                for run, joined in zip(runs, together, strict=True)
            ]
            outcomes[place] = of_runs[0]
            of_each = [_counts(outcome).reshape(len(some), -1, len(at)) for outcome in of_runs]
            counts = of_each[0] * np.logical_and.reduce([each > 0 for each in of_each])
            values = np.stack([_values(outcome, weights, counts) for outcome in of_runs], axis=1)
            total, squares = counts.sum(axis=1), (counts**2).sum(axis=1)
            effective = total**2 / np.where(squares > 0, squares, 1.0)
            parts[place].append((values, (counts > 0).sum(axis=1), effective))
    result = {}
    for place, (measure, at) in enumerate(plan):
        columns = [np.concatenate(each) for each in zip(*parts[place], strict=True)]
        for i, depth in enumerate(at.tolist()):
            values, defined, effective = (each[..., i] for each in columns)
            few = float(np.median(relevant))
            result[str(measure @ depth)] = Sampled(values, defined, effective, few, outcomes[place], i)
    return result


def quantile(values: FloatArray, at: float) -> float:
    """A quantile that does not average an infinite value with a finite one."""
    return float(np.quantile(values, at, method="inverted_cdf" if np.isinf(values).any() else "linear"))


def _resampled(units: IntArray | None, queries: int, random: np.random.Generator) -> FloatArray:
    """1 for each query, and then how often each, or its cluster, is drawn: float64[1 + resamples, queries]."""
    number = queries if units is None else int(units.max(initial=-1)) + 1
    result = np.ones((1 + RESAMPLES, queries))
    if number:
        drawn = random.integers(0, number, (RESAMPLES, number)) + np.arange(RESAMPLES)[:, None] * number
        counts = np.bincount(drawn.ravel(), minlength=RESAMPLES * number).reshape(RESAMPLES, number)
        result[1:] = counts if units is None else counts[:, units]
    return result


def _outcome(
    measure: Measure,
    at: NDArray[Any],
    run: JudgedRun,
    together: JudgedRun,
    completed: tuple[IntArray, IntArray, Sequence[Completion]],
) -> Outcome:
    """A measure on some completions, one after another."""
    if not measure.of_groups and (run.other_lists is None or getattr(measure, "null", "random") != "lists"):
        return measure.outcome(together, at).settled()
    # Completions of groups, and of the lists of other queries, do not stand one after another.
    rows, levels, completions = completed
    outcomes = [measure.outcome(_on(run, rows, levels, [each]), at).settled() for each in completions]
    joint = tuple(np.concatenate(columns) for columns in zip(*(each.parts for each in outcomes), strict=True))
    first = outcomes[0]
    weights = None if first.weights is None else np.tile(first.weights, len(completions))
    return replace(first, parts=joint, weights=weights)


def _counts(outcome: Outcome) -> FloatArray:
    """How much each query counts: 0 where it has no figure, else 1, or its share of the largest weight."""
    counts = outcome.counting()
    return outcome.defined.astype(np.float64) if counts is None else counts


def _values(outcome: Outcome, weights: FloatArray, counts: FloatArray) -> FloatArray:
    """The figure under each row of weights: float64[completions, rows, depths]; NaN without a defined query.

    Parameters
    ----------
    weights : float64[completions, rows, queries]
    counts : float64[completions, queries, depths]
    """
    total = weights @ counts
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [
            weights @ (np.where(counts > 0, part.reshape(counts.shape), 0.0) * counts) / total for part in outcome.parts
        ]
        return np.asarray(outcome.aggregate.value(*means), np.float64)


def _on(run: JudgedRun, rows: IntArray, levels: IntArray, completions: Sequence[Completion]) -> JudgedRun:
    """The join with completed labels, once for each completion."""
    times, queries = len(completions), len(run)
    grades = np.stack([grade for grade, _ in completions])

    def hits(of: Hits | None) -> Any:
        if of is None:
            return None
        query = (of.query + queries * np.arange(times)[:, None]).ravel()
        grade = grades[:, of.judgment].ravel()
        return Hits(query, np.tile(of.rank, times), grade, np.tile(of.repeated, times), np.tile(of.judgment, times))

    def tiled(column: NDArray[Any] | None) -> Any:
        return None if column is None else np.tile(column, times)

    others = run.other_lists
    columns = ("returned", "corpus_size", "pool_returned", "own_pool", "missing", "first_repeat")
    return replace(
        run,
        **{name: tiled(getattr(run, name)) for name in columns},
        **{name: hits(getattr(run, name)) for name in ("hits", "pool", "copies")},
        queries=run.queries * times,
        grades=levels,
        labels=np.concatenate([table[rows] for _, table in completions]),
        pool_sources={name: hits(source) for name, source in run.pool_sources.items()},
        fitting={budget: tiled(fitting) for budget, fitting in run.fitting.items()},
        weights=None if run.weights is None else replace(run.weights, values=tiled(run.weights.values)),
        other_lists=None if others is None or times > 1 else replace(others, grade=grades[0][others.judgment]),
    )
