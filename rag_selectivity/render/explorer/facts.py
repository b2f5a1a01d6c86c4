"""What is known of each query: the figures of the runs, the diagnosis, and which runs answer it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.advice.which_k import success_of
from rag_selectivity.errors import InputError
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures import Measure
from rag_selectivity.measures.plan import at_depth
from rag_selectivity.measures.utility import RANWG
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import RunReport

#: A query has much junk on top if at least this share of the top K is junk.
MUCH_JUNK = 0.5
#: Figures of two runs are the same if they agree to so many decimals.
DECIMALS = 6
#: The highest grade that is junk on the utility scale.
_JUNK_GRADE = 2


@dataclass(frozen=True, slots=True)
class Terms:
    """What the words mean on this page: the lowest relevant grade, the hits of an answer, the highest junk grade."""

    rel: int
    m: int
    junk: int

    @classmethod
    def of(cls, report: Report) -> Terms:
        success = success_of(report.measures)
        scale = next((run.judged.scale for run in report.runs.values() if run.judged is not None), None)
        lowest = success.rel if success.rel is not None else 1 if scale is None else scale.relevant_from
        return cls(lowest, success.m, _JUNK_GRADE if report.scale == "utility" else lowest - 1)


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns of all queries that are known by themselves; figures and diagnoses have a row for each run.

    Attributes
    ----------
    relevant : int[queries]
        Relevant passages among the labels.
    figures : float[runs, queries]
        NaN where the measure is undefined for the query, or the run has no such figure.
    diagnoses : list of lists of (str or None)
    presets : {name: bool[queries]}
        Which lists of failures hold the query: no run answers it (`none`), no pool has the evidence (`pool`), one run
        alone answers it (`one`), a run has much junk on top (`junk`). Queries that the labels do not let anybody
        answer are in none.
    only : int[queries]
        The run that alone answers it; of others any.
    can_be_answered : bool[queries]
    """

    queries: list[str]
    relevant: NDArray[np.int64]
    figures: NDArray[np.float64]
    diagnoses: list[list[str | None]]
    presets: dict[str, NDArray[np.bool_]]
    only: NDArray[np.int64]
    can_be_answered: NDArray[np.bool_]

    @classmethod
    def of(cls, report: Report, measure: Measure, depth: int, terms: Terms) -> Facts:
        queries = list(dict.fromkeys(query for run in report.runs.values() for query in run.queries))
        place = {query: i for i, query in enumerate(queries)}
        shape = len(report.runs), len(queries)
        figures, junk = np.full(shape, np.nan), np.zeros(shape)
        relevant, hits, pool = (np.zeros(shape, np.int64) for _ in range(3))
        diagnoses: list[list[str | None]] = []
        for r, (name, run) in enumerate(report.runs.items()):
            at = np.array([place[query] for query in run.queries], np.int64)
            figures[r, at] = np.round(_figures(run, measure), DECIMALS)
            verdicts: Any = {}
            with suppress(InputError):
                verdicts = report.diagnosis(name, depth).queries
            diagnoses.append([verdicts.get(query) for query in queries])
            if run.judged is not None:
                k = np.array([depth])
                relevant[r, at] = run.judged.relevant(terms.rel)
                hits[r, at] = run.judged.hits_at(k, terms.rel)[:, 0]
                pool[r, at] = _in_pool(run.judged, terms.rel)
                slots = np.maximum(run.judged.slots_at(k)[:, 0], 1)
                junk[r, at] = run.judged.harmful_at(k, terms.junk)[:, 0] / slots
        answered = hits >= terms.m
        most = relevant.max(axis=0, initial=0)
        can: NDArray[np.bool_] = np.asarray((relevant >= terms.m).any(axis=0))
        presets = {
            "none": can & ~answered.any(axis=0),
            "pool": can & ~(pool >= terms.m).any(axis=0),
            "one": can & (answered.sum(axis=0) == 1) & (len(report.runs) > 1),
            "junk": can & (junk >= MUCH_JUNK).any(axis=0),
        }
        return cls(queries, most, figures, diagnoses, presets, answered.argmax(axis=0), can)


def chosen_measure(report: Report, depth: int) -> Measure:
    """What ranks the runs: RA-nWG on the utility scale, else Success with the report's parameters."""
    chosen: Measure = RANWG() if report.scale == "utility" else success_of(report.measures)
    of_report = at_depth({str(each): each for each in report.measures}, chosen, depth)
    return chosen @ depth if of_report is None else of_report


def best_run(report: Report, measure: Measure) -> str:
    """The run with the highest figure; the first one of equals, and where none has a figure."""

    def figure(name: str) -> float:
        estimate = report.runs[name].estimates.get(str(measure))
        return -np.inf if estimate is None or not np.isfinite(estimate.value) else estimate.value

    return max(report.runs, key=figure)


def _figures(run: RunReport, measure: Measure) -> NDArray[np.float64] | float:
    measured = run.per_query.get(str(measure))
    if measured is not None:
        return measured
    outcome = run.figures.outcome(measure)
    # A ratio of means has no figure for a single query.
    return np.nan if outcome is None or len(outcome.parts) != 1 else outcome.parts[0][:, 0]


def _in_pool(judged: JudgedRun, rel: int) -> NDArray[np.int64]:
    """Distinct relevant passages of each query's pool, with those of the run that its pool lacks."""
    counts = np.zeros(len(judged), np.int64)
    for hits in (judged.candidates.take(~judged.candidates.repeated), judged.hits_outside_pool()):
        counts += np.bincount(hits.query[hits.grade >= rel], minlength=len(judged))
    return counts
