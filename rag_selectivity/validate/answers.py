"""The sets of passages that have a scored answer: the figures of each run, with the scores as further columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.correlation import Series
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import FloatArray, Measure, Real, parse_measure
from rag_selectivity.results.report import Report
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.validate.scores import AnswerScores

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

    @property
    def judged(self) -> JudgedRun:
        """The join that was measured."""
        return self.table.join

    def figures(self, measure: Measure) -> FloatArray:
        """float64[queries]"""
        outcome = self.table.outcome(measure)
        if outcome is None:
            raise InputError(f"{measure} is not among the figures of the report: evaluate with it")
        return rounded(outcome.parts[0][:, 0], _DECIMALS)

    def series(self, measure: Measure, k: int | None, *, closed_book: bool = False) -> Series:
        """The figures beside the scores, with those of answers without passages where they are asked for."""
        others = self.closed_book if closed_book else None
        return Series.of(self.figures(measure), self.scores[k], self.units, others)

    def between(self, k: int, low: float, high: float) -> IntArray:
        """The rows of the scored sets of K passages with low ≤ K / N_p < high; N_p: relevant passages of the query."""
        relevant = self.judged.relevant().astype(np.float64)
        ratios = k / np.where(relevant > 0, relevant, np.nan)
        return np.flatnonzero(~np.isnan(self.scores[k]) & (ratios >= low) & (ratios < high))


def rounded(values: FloatArray, decimals: int) -> FloatArray:
    """The values with so many decimals that equal ones are equal.

    >>> len(set(rounded(np.array([0.1 + 0.2, 0.3]), 12).tolist()))
    1
    """
    return np.round(values, decimals) + 0.0


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
        units = np.array([place[query] for query in part.queries], np.int64)
        units = units if clusters is None else clusters[units]
        columns = {k: _column(by_k[k], part.queries) for k in sorted(by_k, key=_known_last)}
        closed_book = _column(scores.closed_book, part.queries) if scores.closed_book else None
        found.append(AnsweredRun(name, part.figures, units, columns, closed_book))
    return found


def queries_of(report: Report) -> list[str]:
    """The queries of all runs, each once."""
    return list(dict.fromkeys(query for part in report.runs.values() for query in part.queries))


def _column(scores: Mapping[str, float], queries: Sequence[str]) -> FloatArray:
    return np.array([scores.get(query, np.nan) for query in queries], np.float64)


def _known_last(k: int | None) -> int:
    return -1 if k is None else k


def measures_of(report: Report) -> tuple[list[Measure], list[str]]:
    """The measures of a report that have a figure for each query and are better or worse, and the names of others."""
    measures = [parse_measure(key) for key in dict.fromkeys(k for part in report.runs.values() for k in part.per_query)]
    chosen = [each for each in measures if each.higher_is_better is not None and each.name != "Judged"]
    known = {each.without_depth for each in measures}
    bases = dict.fromkeys(each.without_depth for each in report.measures if each.higher_is_better is not None)
    return chosen, [str(base) for base in bases if base not in known]


def depth_of(measure: Measure) -> int | None:
    """The K of a measure; None if it is about whole lists, or at a recall level or a budget of tokens."""
    if measure.at is None or isinstance(measure.cutoff, Real) or is_budget(measure.at):
        return None
    return int(measure.at)


def places_of(measures: Iterable[Measure], runs: Sequence[AnsweredRun]) -> list[tuple[Measure, int | None]]:
    """Each measure beside the K of the answers; measures of whole lists beside each K.

    Raises
    ------
    InputError
        If there are answers of a K at which nothing was measured: no figure may be compared with answers from another
        set.
    """
    depth = {measure: depth_of(measure) for measure in measures}
    every = sorted({k for run in runs for k in run.scores}, key=_known_last)
    depths = sorted({each for each in depth.values() if each is not None})
    unmeasured = [k for k in every if k is not None and k not in depths]
    if depths and unmeasured:
        raise InputError(
            f"there are answers from K = {', '.join(map(str, unmeasured))} passages, and the figures are at "
            f"{', '.join(map(str, depths))}: measure at the same K (depths=…, --depths), since figures of another set "
            f"say nothing about these answers"
        )
    return [(each, k) for k in every for each in depth if k is None or depth[each] in (None, k)]
