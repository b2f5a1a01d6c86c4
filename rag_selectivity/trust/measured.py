"""Measures on completed labels: M completions of Q queries are measured as one table of M · Q rows, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.judged.hits import Hits
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray, Measure, Outcome
from rag_selectivity.tables.ids import IntArray

#: The rows of a completion: all queries, and so many resamples of them.
ROWS, RESAMPLES = 9, 8
#: So many rows of a chunk stay in the processor's cache.
_ROWS_AT_ONCE = 100_000

#: The grade of each judgment, and the labels of each query with each level: int64[judgments], int64[queries, levels].
Completion = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class Measured:
    """A measure at some depths on several completions of the labels.

    Attributes
    ----------
    outcome : Outcome
        Of all completions, one after another.
    counts : float64[completions, queries, depths]
        How much each query counts: 0 where it has no figure, else 1, or its share of the largest weight.
    """

    outcome: Outcome
    counts: FloatArray

    @classmethod
    def of(cls, outcome: Outcome, completions: int) -> Measured:
        """From the outcome of all completions."""
        counts = outcome.counting()
        counts = outcome.defined.astype(np.float64) if counts is None else counts
        return cls(outcome, counts.reshape(completions, -1, counts.shape[1]))

    def values(self, weights: FloatArray, counts: FloatArray, successes: FloatArray | None = None) -> FloatArray:
        """The figure under each row of weights: float64[completions, rows, depths]; NaN without a defined query.

        Parameters
        ----------
        weights : float64[completions, rows, queries]
        counts : float64[completions, queries, depths]
        successes : float64[completions, rows], optional
            The share of all queries that succeed, in place of the first part's.
        """
        total = weights @ counts
        with np.errstate(invalid="ignore", divide="ignore"):
            means = [
                weights @ (np.where(counts > 0, part.reshape(counts.shape), 0.0) * counts) / total
                for part in self.outcome.parts
            ]
            if successes is not None:
                # A query without a relevant passage in this completion is none of the queries that the figure is over.
                share = (successes * weights.sum(axis=2))[:, :, None] / total
                means[0] = np.minimum(share, 1.0) if len(means) == 1 else share
            return np.asarray(self.outcome.aggregate.value(*means), np.float64)


@dataclass(frozen=True)
class Resampling:
    """Draws of queries, or of their clusters, for each completion."""

    units: IntArray | None
    queries: int
    random: np.random.Generator

    def rows(self) -> FloatArray:
        """1 for each query, and then how often each is drawn: float64[1 + resamples, queries]."""
        number = self.queries if self.units is None else int(self.units.max(initial=-1)) + 1
        result = np.ones((1 + RESAMPLES, self.queries))
        if number:
            drawn = self.random.integers(0, number, (RESAMPLES, number)) + np.arange(RESAMPLES)[:, None] * number
            counts = np.bincount(drawn.ravel(), minlength=RESAMPLES * number).reshape(RESAMPLES, number)
            result[1:] = counts if self.units is None else counts[:, self.units]
        return result


@dataclass
class Chunks:
    """The completions of a run's labels, in chunks, with the resampled queries of each.

    Attributes
    ----------
    runs : sequence of JudgedRun
        One run, or two that are compared on common completions.
    rows : int64[queries]
        The positions of the runs' queries among the labels'.
    levels : int64[levels]
    resampling : Resampling
    extra : callable
        What else is drawn for each completion, after its resampled queries.
    """

    runs: Sequence[JudgedRun]
    rows: IntArray
    levels: IntArray
    resampling: Resampling
    extra: Callable[[np.random.Generator], dict[Measure, FloatArray]] = field(default=lambda _: {})
    #: The median number of relevant passages of a query, in each completion so far.
    relevant: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Completions may have queries without a relevant passage.
        self.runs = [replace(run, policy=replace(run.policy, no_relevant="skip")) for run in self.runs]

    def each(self, completions: Iterable[Completion]) -> Iterator[tuple[Chunk, FloatArray, dict[Measure, FloatArray]]]:
        """(chunk, weights of its queries, extra draws): float64[completions, 1 + resamples, queries]."""
        size = max(1, _ROWS_AT_ONCE // max(1, *(len(run) + len(run.hits.query) for run in self.runs)))
        remaining = iter(completions)
        while some := list(islice(remaining, size)):
            weights, extra = [], []
            for _ in some:
                weights.append(self.resampling.rows())
                extra.append(self.extra(self.resampling.random))
            together = {measure: np.stack([each[measure] for each in extra]) for measure in extra[0]}
            first = _on(self.runs[0], self.rows, self.levels, some)
            self.relevant += np.median(first.relevant(None).reshape(len(some), -1), axis=1).tolist()
            yield Chunk(self, some, {0: first}), np.stack(weights), together


@dataclass(frozen=True)
class Chunk:
    """Some completions of the labels."""

    of: Chunks
    completions: Sequence[Completion]
    #: The runs on all of these completions together.
    together: dict[int, JudgedRun]

    def measured(self, place: int, measure: Measure, at: NDArray[Any]) -> Measured:
        """A measure of one of the runs on these completions, at all depths."""
        run, number = self.of.runs[place], len(self.completions)
        if measure.of_groups or (run.other_lists is not None and getattr(measure, "null", "random") == "lists"):
            # Completions of groups, and of the lists of other queries, do not stand one after another.
            runs = (_on(run, self.of.rows, self.of.levels, [completion]) for completion in self.completions)
            parts = [measure.outcome(each, at).settled() for each in runs]
            joint = tuple(np.concatenate(columns) for columns in zip(*(each.parts for each in parts), strict=True))
            weights = None if parts[0].weights is None else np.tile(parts[0].weights, number)
            return Measured.of(replace(parts[0], parts=joint, weights=weights), number)
        if place not in self.together:
            self.together[place] = _on(run, self.of.rows, self.of.levels, self.completions)
        return Measured.of(measure.outcome(self.together[place], at).settled(), number)


def _on(run: JudgedRun, rows: IntArray, levels: IntArray, completions: Sequence[Completion]) -> JudgedRun:
    """The join with completed labels, once for each completion."""
    times, queries = len(completions), len(run)
    grades = np.stack([grade for grade, _ in completions])

    def hits(of: Hits) -> Hits:
        query = (of.query + queries * np.arange(times)[:, None]).ravel()
        grade = grades[:, of.judgment].ravel()
        return Hits(query, np.tile(of.rank, times), grade, np.tile(of.repeated, times), np.tile(of.judgment, times))

    def tiled(column: NDArray[Any] | None) -> Any:
        return None if column is None else np.tile(column, times)

    others = run.other_lists
    return replace(
        run,
        queries=run.queries * times,
        hits=hits(run.hits),
        returned=tiled(run.returned),
        grades=levels,
        labels=np.concatenate([table[rows] for _, table in completions]),
        corpus_size=tiled(run.corpus_size),
        pool=None if run.pool is None else hits(run.pool),
        pool_returned=tiled(run.pool_returned),
        own_pool=tiled(run.own_pool),
        pool_sources={name: hits(source) for name, source in run.pool_sources.items()},
        missing=tiled(run.missing),
        fitting={budget: tiled(fitting) for budget, fitting in run.fitting.items()},
        copies=None if run.copies is None else hits(run.copies),
        first_repeat=tiled(run.first_repeat),
        weights=None if run.weights is None else replace(run.weights, values=tiled(run.weights.values)),
        other_lists=None if others is None or times > 1 else replace(others, grade=grades[0][others.judgment]),
    )
