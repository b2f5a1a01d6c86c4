"""What is known of each query: the figures of the runs, the diagnosis, and who answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.advice.by_loss import parameters_of
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures import Measure
from rag_selectivity.measures.chance import Success
from rag_selectivity.measures.plan import at_depth
from rag_selectivity.measures.utility import PROC, RANWG, PercentPROC
from rag_selectivity.results.plain import finite
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import RunReport

#: A query has much junk on top if at least this share of the top K is junk.
MUCH_JUNK = 0.5
#: The highest grade that is junk on the utility scale.
JUNK_GRADE = 2
#: Figures of two runs are the same if they agree to so many decimals.
DECIMALS = 6


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """A query as the table of queries shows it; `figures`, `diagnoses` and `answered` are in the order of the runs.

    Attributes
    ----------
    relevant : int
        Relevant passages among the labels.
    figures : tuple of (float or None)
        None where the measure is undefined for the query, or the run has no such figure.
    diagnoses : tuple of (str or None)
    can_be_answered : bool
        Whether the labels hold enough relevant passages for an answer; the presets leave out all other queries.
    answered, in_pool : tuple of bool
        Whether the run's top K, and its pool, hold enough relevant passages for an answer.
    junk : float
        The largest share of junk that a run has in its top K.
    """

    id: str
    relevant: int
    figures: tuple[float | None, ...]
    diagnoses: tuple[str | None, ...]
    can_be_answered: bool
    answered: tuple[bool, ...]
    in_pool: tuple[bool, ...]
    junk: float

    @property
    def presets(self) -> tuple[str, ...]:
        """The presets that list this query, besides `all`."""
        if not self.can_be_answered:
            return ()
        listed = []
        if not any(self.answered):
            listed.append("none")
        if not any(self.in_pool):
            listed.append("pool")
        if len(self.answered) > 1 and sum(self.answered) == 1:
            listed.append("one")
        if self.junk >= MUCH_JUNK:
            listed.append("junk")
        return tuple(listed)

    @property
    def only(self) -> int | None:
        """The position of the only run that answers it; None if there is another, or no other run at all."""
        return self.answered.index(True) if "one" in self.presets else None


@dataclass(frozen=True, slots=True)
class Terms:
    """What the words mean on this page: the lowest relevant grade, the hits of an answer, the highest junk grade."""

    rel: int
    m: int
    junk: int

    @classmethod
    def of(cls, report: Report) -> Terms:
        rel, m = parameters_of(report.measures)
        scale = next((run.judged.scale for run in report.runs.values() if run.judged is not None), None)
        lowest = rel if rel is not None else 1 if scale is None else scale.relevant_from
        return cls(lowest, m or 1, JUNK_GRADE if report.scale == "utility" else lowest - 1)


def chosen_measure(report: Report, depth: int) -> Measure:
    """What ranks the runs: RA-nWG on the utility scale, else Success with the report's parameters."""
    rel, m = parameters_of(report.measures)
    chosen: Measure = RANWG() if report.scale == "utility" else Success(rel=rel, m=m or 1)
    of_report = at_depth({str(each): each for each in report.measures}, chosen, depth)
    return chosen @ depth if of_report is None else of_report


def best_run(report: Report, measure: Measure, facts: Sequence[QueryFacts]) -> str:
    """The run with the highest mean figure; the first one of equals."""

    def mean(position: int, name: str) -> float:
        estimate = report.runs[name].estimates.get(str(measure))
        if estimate is not None and np.isfinite(estimate.value):
            return estimate.value
        known = [value for each in facts if (value := each.figures[position]) is not None]
        return float(np.mean(known)) if known else -np.inf

    names = list(report.runs)
    return names[max(range(len(names)), key=lambda i: (mean(i, names[i]), -i))]


def facts_of(report: Report, measure: Measure, depth: int, terms: Terms) -> list[QueryFacts]:
    """The facts of every query that is known by itself; none for a report of sums."""
    parts = [_RunFacts(report, name, measure, depth, terms) for name in report.runs]
    queries = dict.fromkeys(query for part in parts for query in part.position)
    result = []
    for query in queries:
        places = [part.position.get(query) for part in parts]
        known = [(part, i) for part, i in zip(parts, places, strict=True) if i is not None]
        result.append(
            QueryFacts(
                query,
                max((int(part.relevant[i]) for part, i in known), default=0),
                tuple(part.figure(i) for part, i in zip(parts, places, strict=True)),
                tuple(part.verdicts.get(query) for part in parts),
                any(part.relevant[i] >= terms.m for part, i in known),
                tuple(i is not None and bool(part.hits[i] >= terms.m) for part, i in zip(parts, places, strict=True)),
                tuple(i is not None and bool(part.pool[i] >= terms.m) for part, i in zip(parts, places, strict=True)),
                max((float(part.junk[i]) for part, i in known), default=0.0),
            )
        )
    return result


class _RunFacts:
    """Columns of one run, by the position of the query."""

    def __init__(self, report: Report, name: str, measure: Measure, depth: int, terms: Terms) -> None:
        run = report.runs[name]
        self.position = {query: i for i, query in enumerate(run.queries)}
        self.values = _values(report, name, run, measure)
        self.verdicts: Mapping[str, str | None] = {}
        if all(at_depth(run.per_query, each, depth) is not None for each in (PROC(), PercentPROC())) and all(
            at_depth(run.estimates, each, depth) is not None for each in (PROC(), PercentPROC())
        ):
            self.verdicts = report.diagnosis(name, depth).queries
        nothing: NDArray[Any] = np.zeros(len(run.queries))
        self.relevant = self.hits = self.pool = self.junk = nothing
        if run.judged is not None:
            at = np.array([depth])
            self.relevant = run.judged.relevant(terms.rel)
            self.hits = run.judged.hits_at(at, terms.rel)[:, 0]
            self.pool = _in_pool(run.judged, terms.rel)
            self.junk = run.judged.harmful_at(at, terms.junk)[:, 0] / np.maximum(run.judged.slots_at(at)[:, 0], 1)

    def figure(self, position: int | None) -> float | None:
        value = None if position is None or self.values is None else finite(float(self.values[position]))
        return None if value is None else round(value, DECIMALS)


def _values(report: Report, name: str, run: RunReport, measure: Measure) -> NDArray[np.float64] | None:
    measured = run.per_query.get(str(measure))
    if measured is not None:
        return measured
    outcome = run.figures.outcome(measure)
    # A ratio of means has no figure for a single query.
    return None if outcome is None or len(outcome.parts) != 1 else outcome.parts[0][:, 0]


def _in_pool(judged: JudgedRun, rel: int) -> NDArray[np.int64]:
    """Distinct relevant passages of each query's pool, with those of the run that its pool lacks."""
    counts = np.zeros(len(judged), np.int64)
    for hits in (judged.candidates.chosen(~judged.candidates.repeated), judged.hits_outside_pool()):
        counts += np.bincount(hits.query[hits.grade >= rel], minlength=len(judged))
    return counts
