"""The sets of passages that have a scored answer: the figures of each run, with the scores as further columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.correlation import Series
from rag_selectivity.measures.base import FloatArray, Measure
from rag_selectivity.results.report import Report
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.tables.scores import AnswerScores

#: Figures that differ further down are equal but for rounding, and share their rank.
_DECIMALS = 12
_EVERYWHERE = ("Success", "P", "R", "nDCG", "T(form=code)", "F", "Fe")


def compared_with_answers(scale: str) -> tuple[str, ...]:
    """The measures that are validated if none is named: those of one query's set, on a scale.

    >>> compared_with_answers("trec")
    ('Success', 'P', 'R', 'nDCG', 'T(form=code)', 'F', 'Fe')
    """
    return (*_EVERYWHERE, "RA-nWG", "Harm") if scale == "utility" else _EVERYWHERE


@dataclass(frozen=True)
class AnsweredRun:
    """A run's figures by query, with the scores of the answers as further columns.

    Attributes
    ----------
    table : Figures
    units : int64[queries]
        The number of each query, or of its cluster, among those of all runs.
    scores : {K or None: float64[queries]}
        NaN without a score.
    closed_book : float64[queries] or None
        Of answers without passages; None if there are none of any run.
    """

    name: str
    table: Figures
    units: IntArray
    scores: Mapping[int | None, FloatArray]
    closed_book: FloatArray | None

    def figures(self, measure: Measure) -> FloatArray:
        """float64[queries]"""
        outcome = self.table.outcome(measure)
        if outcome is None:
            raise InputError(f"{measure} is not among the figures of the report: evaluate with it")
        return rounded(outcome.parts[0][:, 0], _DECIMALS)

    def series(self, at: Mapping[int | None, Measure], others: FloatArray | None = None) -> Series:
        """The figures of a measure beside the scores of the answers from each K, and beside a third column."""
        figures = np.concatenate([self.figures(measure) for measure in at.values()])
        scores, units = np.concatenate([self.scores[k] for k in at]), np.tile(self.units, len(at))
        return Series.of(figures, scores, units, others)

    @property
    def sets(self) -> IntArray:
        """The query (or cluster) of each set with a score."""
        scored = [self.units[~np.isnan(scores)] for scores in self.scores.values()]
        return np.concatenate([self.units[:0], *scored])

    def between(self, low: float, high: float) -> AnsweredRun:
        """The run with the scores of the sets of which low ≤ K/N_p < high alone; those of an unknown K are left out."""
        ratios: dict[int | None, FloatArray] = {k: self.ratios(k) for k in self.scores if k is not None}
        inside = {k: np.where((low <= each) & (each < high), self.scores[k], np.nan) for k, each in ratios.items()}
        return replace(self, scores=inside)

    def ratios(self, k: int, rel: int | None = None) -> FloatArray:
        """K / N_p, where N_p is the number of relevant passages of the query; NaN without any: float64[queries]."""
        relevant = self.table.join.relevant(rel).astype(np.float64)
        return k / np.where(relevant > 0, relevant, np.nan)


def rounded(values: FloatArray, decimals: int) -> FloatArray:
    """The values with so many decimals that equal ones are equal.

    >>> len(set(rounded(np.array([0.1 + 0.2, 0.3]), 12).tolist()))
    1
    """
    return np.round(values, decimals) + 0.0


def answered_runs(
    report: Report, scores: AnswerScores, queries: Sequence[str], clusters: IntArray | None
) -> list[AnsweredRun]:
    """The runs that have scored answers; `clusters` numbers the clusters of the queries of all runs, if any."""
    place = {query: i for i, query in enumerate(queries)}
    found = []
    for name, by_k in scores.by_run.items():
        part = report.runs[name]
        if part.judged is None:
            raise InputError(f"run {name!r} holds figures alone: give the report that evaluate(qrels, runs) makes")
        part.judged.refuse_weights("a correlation with scores of answers")
        units = np.array([place[query] for query in part.queries], np.int64)
        units = units if clusters is None else clusters[units]
        columns = {k: _column(by_k[k], part.queries) for k in sorted(by_k, key=lambda k: k or 0)}
        closed_book = _column(scores.closed_book, part.queries) if scores.closed_book else None
        found.append(AnsweredRun(name, part.figures, units, columns, closed_book))
    return found


def _column(scores: Mapping[str, float], queries: Sequence[str]) -> FloatArray:
    return np.array([scores.get(query, np.nan) for query in queries], np.float64)
