"""`compare`: runs beside a baseline, with paired differences, intervals, tests and what could have been seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.evaluation import Measured, join, measure_all, report_of_measured
from rag_selectivity.judged import JudgedRun
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.base import MEAN, FloatArray
from rag_selectivity.policy import Policy, resolve_policy
from rag_selectivity.report.report import Report, finite
from rag_selectivity.report.views import Views
from rag_selectivity.scales import Scale
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.paired import holm, sign_flip

SCHEMA = "rag-selectivity/comparison/1"
DEFAULT_DEPTHS = (5, 10, 20)
_SHOWN_QUERIES = 5


@dataclass(frozen=True, slots=True)
class Moved:
    """A query's figures under a run and the baseline."""

    query: str
    value: float
    baseline_value: float

    @property
    def difference(self) -> float:
        return self.value - self.baseline_value


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """A run beside the baseline under one measure at one depth, over the queries defined for both.

    Attributes
    ----------
    value, baseline_value, difference : float
        difference = value − baseline_value, whichever direction is better.
    low, high : float
        The bootstrap interval of the difference.
    p, p_adjusted : float
        Two-sided, and after Holm's correction over all differences of the comparison.
    test : {"exact", "randomised", "resampled"}
        Sign flips counted or drawn for means; paired resampling for ratios of means.
    effect : float
        The difference in standard deviations of a query's difference (Cohen's d for pairs).
    wins, ties, losses : int
        Queries that are better, equal, worse under the run; of Success for BoR and EF.
    detectable : float
        The smallest difference that so many queries show with the stated power.
    moved : tuple of Moved
        The queries that moved most, either way.
    reason : str or None
        Why the difference is not a finite number.
    """

    run: str
    baseline: str
    measure: Measure
    value: float
    baseline_value: float
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    test: str
    effect: float
    wins: int
    ties: int
    losses: int
    n: int
    n_total: int
    detectable: float
    moved: tuple[Moved, ...]
    reason: str | None = None

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or `no difference shown` at the family's level of .05."""
        if not self.p_adjusted < 0.05:
            return "no difference shown"
        return "better" if (self.difference > 0) == bool(self.measure.higher_is_better) else "worse"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: what is not finite is null."""
        numbers = ("value", "baseline_value", "difference", "low", "high", "p", "p_adjusted", "effect", "detectable")
        return {
            "run": self.run,
            "baseline": self.baseline,
            "measure": str(self.measure),
            **{name: finite(getattr(self, name)) for name in numbers},
            "test": self.test,
            "wins": self.wins,
            "ties": self.ties,
            "losses": self.losses,
            "n": self.n,
            "n_total": self.n_total,
            "verdict": self.verdict,
            "moved": [{"query": m.query, "value": m.value, "baseline_value": m.baseline_value} for m in self.moved],
            **({"reason": self.reason} if self.reason else {}),
        }


@dataclass(frozen=True)
class Comparison(Views):
    """What `compare` returns: `comparison["hybrid", "BoR@10"]` is a PairedDifference, `report` the runs themselves."""

    baseline: str
    rows: tuple[PairedDifference, ...]
    report: Report
    settings: Mapping[str, Any]

    def __getitem__(self, key: tuple[str, str]) -> PairedDifference:
        run, measure = key
        for row in self.rows:
            if row.run == run and str(row.measure) == measure:
                return row
        known = dict.fromkeys(str(row.measure) for row in self.rows)
        runs = dict.fromkeys(row.run for row in self.rows)
        raise InputError(
            f"{measure} of {run!r} was not compared with {self.baseline!r}; "
            f"runs: {', '.join(runs)}; measures: {', '.join(known)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "baseline": self.baseline,
            "settings": dict(self.settings),
            "differences": [row.to_dict() for row in self.rows],
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat row a difference, as the CSV view and the DataFrame have it."""
        return [{key: value for key, value in row.to_dict().items() if key != "moved"} for row in self.rows]

    def to_text(self, *, ruled: bool = True) -> str:
        """Tables for a terminal."""
        from rag_selectivity.report.tables import comparison_text

        return comparison_text(self, ruled=ruled)

    def to_markdown(self) -> str:
        """Tables for a pull request."""
        from rag_selectivity.report.tables import comparison_markdown

        return comparison_markdown(self)

    def to_latex(self) -> str:
        """The same for a paper (booktabs)."""
        from rag_selectivity.report.tables import comparison_latex

        return comparison_latex(self)


def compare(
    qrels: Any,
    runs: Mapping[str, Any],
    *,
    baseline: str | None = None,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    measures: Sequence[str | Measure] | str | None = None,
    depths: Sequence[int] | None = None,
    scale: str | Scale = "trec",
    grade_map: str | Mapping[int, int] | None = None,
    policy: str | Policy | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    pool: Any = None,
    draws: int = 10_000,
    power: float = 0.8,
    **choices: Any,
) -> Comparison:
    """Compare runs with a baseline on the same queries.

    Parameters
    ----------
    qrels, corpus_size, corpus, scale, grade_map, policy, bootstrap, pool, choices
        As in `evaluate`.
    runs : {name: run}
        Two or more.
    baseline : str, optional
        The run that the others are compared with; the first one if not given.
    measures : sequence of str or Measure, optional
        Default: Success, with a corpus size BoR, on the utility scale RA-nWG and Harm.
    depths : sequence of int, optional
        Default: 5, 10, 20, as far as the longest list and the corpus reach.
    draws : int
        Random assignments of signs, where they cannot all be counted.
    power : float
        With which a difference of at least `detectable` would have been shown, at a level of .05.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If there is nothing to compare, or a measure is a property of the corpus alone.

    Examples
    --------
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> found, lost = ["d", "x"], ["x", "d"]
    >>> runs = {"old": {q: lost for q in qrels}, "new": {q: found for q in qrels}}
    >>> row = compare(qrels, runs, corpus_size=100, depths=[1], measures=["Success"])["new", "Success@1"]
    >>> row.difference, row.p, row.test, row.wins
    (1.0, 0.0078125, 'exact', 8)
    """
    joined = join(
        qrels,
        runs,
        corpus_size=corpus_size,
        corpus=corpus,
        scale=scale,
        grade_map=grade_map,
        policy=resolve_policy(policy, **choices),
        pool=pool,
    )
    return comparison_of(
        joined.judged,
        baseline=baseline,
        measures=measures,
        depths=depths,
        bootstrap=bootstrap,
        draws=draws,
        power=power,
        notes=joined.notes,
    )


def comparison_of(
    judged: Mapping[str, JudgedRun],
    *,
    baseline: str | None = None,
    measures: Sequence[str | Measure] | str | None = None,
    depths: Sequence[int] | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    draws: int = 10_000,
    power: float = 0.8,
    notes: Mapping[str, list[str]] | None = None,
) -> Comparison:
    """Compare joins that have been made already; `compare` is this after `judge`."""
    if len(judged) < 2:
        raise InputError(f"a comparison needs at least two runs, got {', '.join(judged) or 'none'}")
    base = next(iter(judged)) if baseline is None else baseline
    if base not in judged:
        raise InputError(f"no run {base!r}{did_you_mean(base, judged)} to be the baseline (runs: {', '.join(judged)})")
    if not 0 < power < 1:
        raise InputError(f"`power` must be in the open interval (0, 1), got {power!r}")
    queries = {run.queries for run in judged.values()}
    if len(queries) > 1:
        raise InputError(
            'the runs are over different queries (missing_query="skip" leaves some out); '
            "compare them with the queries that one lacks counted as failures"
        )
    measured = measure_all(judged, _compared(measures, judged[base]), _depths(depths, judged))
    for measure in measured.wanted:
        if measure.higher_is_better is None:
            raise InputError(
                f"{measure} is a property of corpus, labels and K, the same for all runs: there is nothing to compare"
            )
    rows = _Differences(measured, judged[base].queries, base, bootstrap, draws, power).rows()
    settings = {**bootstrap.settings, "draws": draws, "power": power, "correction": "holm", "family": len(rows)}
    return Comparison(base, rows, report_of_measured(judged, measured, bootstrap, notes), settings)


def _compared(measures: Sequence[str | Measure] | str | None, judged: JudgedRun) -> Sequence[str | Measure] | str:
    if measures is not None:
        return measures
    with_size = ("BoR",) if judged.corpus_size is not None else ()
    with_grades = ("RA-nWG", "Harm") if judged.scale.name == "utility" else ()
    return ("Success", *with_size, *with_grades)


def _depths(depths: Sequence[int] | None, judged: Mapping[str, JudgedRun]) -> Sequence[int]:
    if depths is not None:
        return depths
    reach = max(int(run.returned.max(initial=1)) for run in judged.values())
    return [depth for depth in DEFAULT_DEPTHS if depth <= reach] or [reach]


@dataclass(frozen=True, slots=True)
class _Differences:
    """All differences of a comparison, each row from one pair of outcomes at one depth."""

    measured: Measured
    queries: tuple[str, ...]
    baseline: str
    bootstrap: Bootstrap
    draws: int
    power: float

    def rows(self) -> tuple[PairedDifference, ...]:
        others = [name for name in self.measured.outcomes if name != self.baseline]
        # Judged comes along for the reader of the report; it is nobody's hypothesis.
        kept = [i for i, (measure, _) in enumerate(self.measured.plan) if measure.name != "Judged"]
        keys = [(name, i) for name in others for i in kept]
        outcomes = self.measured.outcomes
        pairs = [(outcomes[name][i], outcomes[self.baseline][i]) for name, i in keys]
        found = []
        for (name, i), pair, difference in zip(
            keys, pairs, self.bootstrap.differences(pairs, self.queries), strict=True
        ):
            measure, depths = self.measured.plan[i]
            gaps = _gaps(*(outcome.parts[0] for outcome in pair))
            if pair[0].aggregate is MEAN:
                flips = sign_flip(self._by_unit(gaps), draws=self.draws, seed=self.bootstrap.seed)
                p, tests = flips.p, flips.test
            else:
                p, tests = difference.p, ("resampled",) * len(depths)
            for column, depth in enumerate(depths.tolist()):
                row = self._row(name, measure @ depth, pair, gaps[:, column], column)
                error = float(difference.error[column])
                gap = float(difference.value[column])
                defined = row.n > 0 and not math.isnan(gap)
                found.append(
                    replace(
                        row,
                        difference=gap,
                        low=float(difference.low[column]),
                        high=float(difference.high[column]),
                        p=float(p[column]) if defined else math.nan,
                        test=tests[column],
                        effect=_effect(gap, error, row.n),
                        detectable=self._detectable(error),
                    )
                )
        adjusted = holm(np.array([row.p for row in found]))
        return tuple(replace(row, p_adjusted=float(p)) for row, p in zip(found, adjusted, strict=True))

    def _row(
        self, name: str, measure: Measure, pair: tuple[Outcome, Outcome], gaps: FloatArray, column: int
    ) -> PairedDifference:
        """What needs no resampling."""
        known = np.flatnonzero(~np.isnan(gaps))
        values = []
        for outcome in pair:
            means = [
                np.asarray(part[known, column].mean()) if len(known) else np.asarray(np.nan) for part in outcome.parts
            ]
            with np.errstate(invalid="ignore", divide="ignore"):
                values.append(float(outcome.aggregate.value(*means)))
        better = gaps[known] if measure.higher_is_better else -gaps[known]
        reason = None
        if not len(known):
            reason = pair[0].undefined
        elif not all(map(math.isfinite, values)):
            reason = "no success at all: log2 of 0" if -math.inf in values else "undefined for one of the runs"
        order = known[np.argsort(-np.abs(gaps[known]), kind="stable")][:_SHOWN_QUERIES]
        return PairedDifference(
            run=name,
            baseline=self.baseline,
            measure=measure,
            value=values[0],
            baseline_value=values[1],
            difference=math.nan,
            low=math.nan,
            high=math.nan,
            p=math.nan,
            p_adjusted=math.nan,
            test="",
            effect=math.nan,
            wins=int((better > 0).sum()),
            ties=int((better == 0).sum()),
            losses=int((better < 0).sum()),
            n=len(known),
            n_total=len(gaps),
            detectable=math.nan,
            moved=tuple(
                Moved(self.queries[i], *(float(outcome.parts[0][i, column]) for outcome in pair))
                for i in order.tolist()
                if gaps[i] != 0
            ),
            reason=reason,
        )

    def _by_unit(self, gaps: FloatArray) -> FloatArray:
        """Differences whose signs can be flipped: of queries, or of whole clusters."""
        if self.bootstrap.clusters is None:
            return gaps
        groups: dict[object, int] = {}
        number = [groups.setdefault(self.bootstrap.clusters[query], len(groups)) for query in self.queries]
        sums = np.zeros((len(groups), gaps.shape[1]))
        np.add.at(sums, number, np.nan_to_num(gaps, nan=0.0))
        return sums

    def _detectable(self, error: float) -> float:
        from scipy.special import ndtri

        # Without any spread there is no telling what would have been seen.
        return float((ndtri(0.975) + ndtri(self.power)) * error) if error > 0 else math.nan


def _gaps(values: FloatArray, others: FloatArray) -> FloatArray:
    """Query by query differences; what differs in the last digits alone is a tie."""
    gaps = values - others
    same = np.abs(gaps) <= 1e-11 * np.maximum(np.abs(values), np.abs(others))
    return np.where(same, 0.0, gaps)


def _effect(gap: float, error: float, n: int) -> float:
    if gap == 0:
        return 0.0
    return gap / (error * math.sqrt(n)) if error > 0 and math.isfinite(gap) else math.nan
