"""The sets of passages that have a scored answer: one for each query, run and K, with its figures and its score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures.base import FloatArray, Measure
from rag_selectivity.results.report import Report
from rag_selectivity.statistics.correlation import Series
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.scores import AnswerScores
from rag_selectivity.validate.measures import depth_of

#: Figures that differ further down are equal but for rounding, and share their rank.
_DECIMALS = 12


def without_rounding(values: FloatArray, decimals: int = _DECIMALS) -> FloatArray:
    """The values with so many decimals that equal ones are equal.

    >>> len(set(without_rounding(np.array([0.1 + 0.2, 0.3])).tolist()))
    1
    """
    return np.round(values, decimals) + 0.0


@dataclass(frozen=True)
class AnsweredRun:
    """A run's queries with the scores of their answers.

    Attributes
    ----------
    judged : JudgedRun
    units : int64[queries]
        The number of each query, or of its cluster, among those of all runs.
    scores : {K or None: float64[queries]}
        NaN without a score.
    closed_book : float64[queries]
    """

    name: str
    judged: JudgedRun
    units: IntArray
    scores: Mapping[int | None, FloatArray]
    closed_book: FloatArray

    def figures(self, measure: Measure, k: int | None = None) -> FloatArray:
        """The figures of each query, at the measure's own depth or at K."""
        at = measure.at if k is None else k
        depths = np.array([at if at is not None else measure.default_depths(np.array([1]))[0]])
        return without_rounding(replace(measure, at=None).outcome(self.judged, depths).settled().parts[0][:, 0])

    def ratios(self, k: int, rel: int | None = None) -> FloatArray:
        """K / N_p of each query; NaN without a relevant passage."""
        relevant = self.judged.relevant(rel)
        with np.errstate(divide="ignore"):
            return np.where(relevant > 0, k / np.where(relevant > 0, relevant, 1), np.nan)


@dataclass(frozen=True)
class Answered:
    """Some sets of a run: the queries of `rows`, with the answers from K passages.

    Attributes
    ----------
    k : int or None
        The K of the answers.
    at : int or None
        The K of the figures; None for the measure's own.
    rows : int64[sets]
    """

    run: AnsweredRun
    k: int | None
    at: int | None
    rows: IntArray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def scores(self) -> FloatArray:
        """float64[sets]"""
        return self.run.scores[self.k][self.rows]

    @property
    def units(self) -> IntArray:
        """int64[sets]"""
        return self.run.units[self.rows]

    def figures(self, measure: Measure) -> FloatArray:
        """The figures of the sets: float64[sets]."""
        return self.run.figures(measure, self.at)[self.rows]


@dataclass(frozen=True)
class Place:
    """A measure beside the answers that it belongs to.

    Attributes
    ----------
    measure : Measure
        With its depth.
    k : int or None
        The K of the answers.
    """

    measure: Measure
    k: int | None


def answered_runs(report: Report, scores: AnswerScores, clusters: IntArray | None) -> list[AnsweredRun]:
    """The runs that have scored answers; `clusters` numbers the clusters of `queries_of`, if there are any."""
    place = {query: i for i, query in enumerate(queries_of(report))}
    found = []
    for name, by_k in scores.by_run.items():
        part = report.runs[name]
        if part.judged is None:
            raise InputError(
                f"run {name!r} holds no lists (its report was made from sums, from live retrievals or from a file): "
                f"give the report that evaluate(qrels, runs) makes"
            )
        part.judged.refuse_weights("a correlation with scores of answers")
        rows = np.array([place[query] for query in part.queries], np.int64)
        found.append(
            AnsweredRun(
                name,
                part.judged,
                rows if clusters is None else clusters[rows],
                {k: _column(by_k[k], part.queries) for k in sorted(by_k, key=lambda k: -1 if k is None else k)},
                _column(scores.closed_book, part.queries),
            )
        )
    return found


def queries_of(report: Report) -> list[str]:
    """The queries of all runs, each once."""
    return list(dict.fromkeys(query for part in report.runs.values() for query in part.queries))


def _column(scores: Mapping[str, float], queries: Sequence[str]) -> FloatArray:
    return np.array([scores.get(query, np.nan) for query in queries], np.float64)


def places_of(measures: Iterable[Measure], runs: Sequence[AnsweredRun]) -> list[Place]:
    """Each measure beside the answers of its K; measures of whole lists beside those of each K.

    Raises
    ------
    InputError
        If there are answers of a K at which nothing was measured: no figure may be compared with answers from another
        set.
    """
    measures = list(measures)
    every = list(dict.fromkeys(k for run in runs for k in run.scores))
    depths = sorted({depth for measure in measures if (depth := depth_of(measure)) is not None})
    unmeasured = [k for k in every if k is not None and depths and k not in depths]
    if unmeasured:
        raise InputError(
            f"there are answers from K = {', '.join(map(str, unmeasured))} passages, and the figures are at "
            f"{', '.join(map(str, depths))}: measure at the same K (depths=…, --depths), since figures of another set "
            f"say nothing about these answers"
        )
    places = []
    for k in sorted(every, key=lambda k: -1 if k is None else k):
        places += [Place(each, k) for each in measures if k is None or depth_of(each) in (None, k)]
    return places


def with_answers(runs: Iterable[AnsweredRun], k: int | None) -> Iterator[AnsweredRun]:
    """The runs that have answers of a K."""
    return (run for run in runs if k in run.scores)


def series_of(run: AnsweredRun, figures: FloatArray, k: int | None, *, partial: bool) -> Series:
    """The figures of a run beside the scores of its answers, with those without passages where they are asked for."""
    return Series.of(figures, run.scores[k], run.units, run.closed_book if partial else None)


def joined(parts: Sequence[Series]) -> Series:
    """Several series one after the other."""
    return Series(
        np.concatenate([part.figures for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.units for part in parts]),
    )
