"""`compare`: the differences between runs and a baseline run, with intervals, tests and the detectable difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.calibrated.differences import CalibratedDifference, calibrated_differences
from rag_selectivity.calibrated.ground import Ground
from rag_selectivity.calibrated.reporting import WITHOUT_GRADES, calibrated_by, sampling_of
from rag_selectivity.caveats import AS_JUDGED_BASELINE, equals_placebo
from rag_selectivity.data.grades import Scale
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.evaluate import Measured, measure_all, report_on
from rag_selectivity.join.judged_run import JudgedRun
from rag_selectivity.joined import join_runs
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.measures.chance import BoR
from rag_selectivity.measures.plan import compared_depths, compared_measures
from rag_selectivity.results.comparison import COMPLETED, Comparison, Moved, RunDifference
from rag_selectivity.results.estimate import CALIBRATED, WITH_CONTROLS, Caveat, Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.statistics import detectable
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.paired import Difference, holm, paired_difference
from rag_selectivity.statistics.unpaired import unpaired_difference

#: Runs that share less than this share of their queries are compared query by query only if the user asks for it.
LEAST_SHARED = 0.5
_SHOWN_QUERIES = 5


def compare(
    qrels: Any,
    runs: Mapping[str, Any],
    *,
    baseline: str | None = None,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    passages_of: Any = None,
    measures: Sequence[str | Measure] | str | None = None,
    depths: Sequence[int] | None = None,
    scale: str | Scale | None = None,
    grade_map: str | Mapping[int, int] | None = None,
    policy: str | Policy | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    pool: Any = None,
    controls: Any = None,
    paired: bool = True,
    draws: int = 10_000,
    power: float = 0.8,
    ids: str | None = None,
    human: Any = None,
    **choices: Any,
) -> Comparison:
    """Compare runs with a baseline run: query by query, or as samples of different queries.

    Parameters
    ----------
    qrels, corpus_size, corpus, passages_of, scale, grade_map, policy, bootstrap, pool, controls, ids, choices
        As in `evaluate`. The bootstrap's level, seed and clusters apply to the differences too. With controls, both
        runs of a paired comparison have the same random baseline, so that the difference in BoR and its test are those
        of Success and rest on no estimate of it: `baseline_value` is then the figure with controls, and `value` is
        `baseline_value` + `difference`. EF, and all unpaired rows, stay as judged, and a caveat says so.
    human : qrels, path of a label store, or PeoplesLabels, optional
        As in `evaluate`. Both runs of a difference are then measured on the same completions of the labels; p, interval
        and verdict come from these. `RunDifference.as_judged` is the difference with the judge's labels alone. Wins,
        ties and losses stay as judged.
    runs : {name: run}
        Two or more.
    baseline : str, optional
        The run that the others are compared with. Default: the first one.
    measures : sequence of str or Measure, optional
        Default: Success; with a corpus size also BoR; on the utility scale also RA-nWG and Harm.
    depths : sequence of int, optional
        Default: 5, 10, 20, up to the length of the longest list.
    paired : bool
        False for runs over different queries, such as the arms of an A/B test: each is measured over its own.
    draws : int
        The number of random swaps (unpaired: permutations), used when there are too many to count all of them.
    power : float
        The power for `detectable`: the probability that a true difference of that size would have been shown.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If there are fewer than two runs; if a measure does not depend on the run; if two runs share less than half of
        their queries and neither `paired=False` nor `missing_query` is given.

    Examples
    --------
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> hit_first, hit_second = ["d", "x"], ["x", "d"]
    >>> runs = {"old": {q: hit_second for q in qrels}, "new": {q: hit_first for q in qrels}}
    >>> row = compare(qrels, runs, corpus_size=100, depths=[1], measures=["Success"])["new", "Success@1"]
    >>> row.difference, row.p, row.test, row.wins
    (1.0, 0.0078125, 'exact', 8)
    """
    chosen = resolve_policy(policy, **choices)
    joined = join_runs(
        qrels,
        runs,
        corpus_size=corpus_size,
        corpus=corpus,
        passages_of=passages_of,
        scale=scale,
        grade_map=grade_map,
        # The queries that a run lacks must be known here: a run over other queries is refused below.
        policy=replace(chosen, missing_query="fail") if chosen.missing_query == "skip" else chosen,
        pool=pool,
        controls=controls,
        ids=ids,
        human=human,
    )
    return comparison_of(
        joined.judged,
        baseline=baseline,
        measures=measures,
        depths=depths,
        bootstrap=bootstrap,
        paired=paired,
        missing_query=chosen.missing_query if "missing_query" in choices or isinstance(policy, Policy) else None,
        draws=draws,
        power=power,
        notes=joined.notes,
        ground=joined.ground,
    )


def comparison_of(
    judged: Mapping[str, JudgedRun],
    *,
    baseline: str | None = None,
    measures: Sequence[str | Measure] | str | None = None,
    depths: Sequence[int] | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    paired: bool = True,
    missing_query: str | None = None,
    draws: int = 10_000,
    power: float = 0.8,
    notes: Mapping[str, list[str]] | None = None,
    ground: Ground | None = None,
) -> Comparison:
    """Compare joins; `compare` joins first and then calls this.

    `missing_query` is the user's choice: "fail" counts a query that a run lacks as its failure, "skip" compares over
    the queries that all runs have, None refuses two runs that share less than half of their queries.
    """
    if len(judged) < 2:
        raise InputError(f"a comparison needs at least two runs, got {', '.join(judged) or 'none'}")
    base = next(iter(judged)) if baseline is None else baseline
    if base not in judged:
        raise InputError(f"the baseline {base!r} is none of the runs {', '.join(judged)}{did_you_mean(base, judged)}")
    if not 0 < power < 1:
        raise InputError(f"`power` must be in the open interval (0, 1), got {power!r}")
    if not paired and bootstrap.clusters is not None:
        raise InputError(
            "an unpaired comparison cannot use clusters, since it draws single queries: leave out the clusters, "
            "or compare in pairs (paired=True)"
        )
    judged, query_notes = _over_shared_queries(judged, base, paired, missing_query)
    if measures is None:
        measures = compared_measures(judged[base].scale, sized=judged[base].corpus_size is not None)
    if depths is None:
        depths = compared_depths(max(int(run.returned.max(initial=1)) for run in judged.values()))
    measured = measure_all(judged, measures, depths)
    for measure in measured.measures:
        if measure.higher_is_better is None:
            raise InputError(
                f"{measure} cannot be compared: it depends on corpus, judgments and K only and is the same for all "
                f"runs; leave it out"
            )
    if ground is not None and not paired:
        raise InputError(
            "labels by people (human) calibrate differences over the same queries only: leave out paired=False "
            "(--unpaired), or evaluate each run alone"
        )
    report = report_on(judged, measured, bootstrap, notes, ground)
    calibrated: Mapping[tuple[str, str], CalibratedDifference] = {}
    if ground is not None:
        graded = [(measure, at) for measure, at in measured.plan if measure.name not in WITHOUT_GRADES]
        calibrated = calibrated_differences(ground, judged, base, graded, sampling_of(bootstrap))
    rows = _Differences(measured, judged, report, base, bootstrap, paired, draws, power, calibrated).rows()
    family = len({(row.run, row.tested_as) for row in rows if row.test})
    settings = {
        **bootstrap.settings,
        "paired": paired,
        "draws": draws,
        "power": power,
        "correction": "holm",
        "family": family,
    }
    if ground is not None:
        query_notes.insert(0, calibrated_by(ground))
    return Comparison(base, rows, report, settings, tuple(query_notes))


def _over_shared_queries(
    judged: Mapping[str, JudgedRun], base: str, paired: bool, missing_query: str | None
) -> tuple[Mapping[str, JudgedRun], list[str]]:
    """The joins over the queries that count for each run, and notes on queries that a run lacks."""
    has = {name: run.in_run for name, run in judged.items()}
    if not paired:
        arms = {name: run.over(has[name]) for name, run in judged.items()}
        return arms, _shared_by_arms(has, base)
    if missing_query == "skip":
        shared = np.logical_and.reduce(list(has.values()))
        if not shared.any():
            raise InputError(
                f"no query is in all of the runs {', '.join(judged)}: compare them with paired=False (--unpaired)"
            )
        left_out = int((~shared).sum())
        notes = [f"{left_out} queries are left out, since not every run has them"] if left_out else []
        return {name: run.over(shared) for name, run in judged.items()}, notes
    notes = []
    for name, mask in has.items():
        if name == base:
            continue
        shared, either = int((mask & has[base]).sum()), int((mask | has[base]).sum())
        if missing_query is None and shared < LEAST_SHARED * either:
            queries = np.array(judged[name].queries, object)
            skip = (
                'missing_query="skip" (--missing-query skip) to compare over the shared queries, or '
                if shared
                else "or "
            )
            raise InputError(
                f"{name} and {base} share {shared} of {either} queries (only {name} has "
                f"{examples(queries[mask & ~has[base]].tolist()) or 'none'}, only {base} has "
                f"{examples(queries[has[base] & ~mask].tolist()) or 'none'}): a query that a run lacks would count as "
                f"its failure. Use paired=False (--unpaired) for samples of different queries, {skip}"
                f'missing_query="fail" (--missing-query fail) if a missing query is a failure'
            )
    for name, mask in has.items():
        if lacking := int((~mask).sum()):
            notes.append(
                f"{name} lacks {lacking} of the {len(mask)} queries; they count as its failures, "
                f"but Harm and Judged leave them out"
            )
    return judged, notes


def _shared_by_arms(has: Mapping[str, NDArray[np.bool_]], base: str) -> list[str]:
    return [
        f"{name} and {base} share {shared} queries; the comparison treats these as different queries"
        for name, mask in has.items()
        if name != base and (shared := int((mask & has[base]).sum()))
    ]


@dataclass(frozen=True, slots=True)
class _Differences:
    """All differences of a comparison; each row comes from one pair of outcomes at one depth."""

    measured: Measured
    judged: Mapping[str, JudgedRun]
    report: Report
    baseline: str
    bootstrap: Bootstrap
    paired: bool
    draws: int
    power: float
    calibrated: Mapping[tuple[str, str], CalibratedDifference]

    def rows(self) -> tuple[RunDifference, ...]:
        others = [name for name in self.measured.outcomes if name != self.baseline]
        asked = [i for i, (measure, _) in enumerate(self.measured.plan) if measure in self._shown()]
        rows, shows = [], []
        for name in others:
            for i in asked:
                for column, row in enumerate(self._rows_of(name, i)):
                    rows.append(row)
                    shows.append(self._sensitivity(row, i, column))
        # A test that several rows share counts once in Holm's correction.
        tests = {(row.run, row.tested_as): row.p for row in rows if row.test}
        adjusted = dict(zip(tests, holm(np.array(list(tests.values()))).tolist(), strict=True))
        level = (1 - self.bootstrap.level) / max(1, len(tests))
        return tuple(
            replace(
                row,
                p_adjusted=adjusted.get((row.run, row.tested_as), math.nan) if row.test else math.nan,
                detectable=sensitivity(level, self.power) if sensitivity is not None else math.nan,
            )
            for row, sensitivity in zip(rows, shows, strict=True)
        )

    def _shown(self) -> set[Measure]:
        return {replace(measure, at=None) for measure in self.measured.measures}

    def _rows_of(self, name: str, i: int) -> list[RunDifference]:
        measure, depths = self.measured.plan[i]
        pair = self.measured.outcomes[name][i], self.measured.outcomes[self.baseline][i]
        # Judged is shown for information; its difference is not tested.
        tested = measure.name != "Judged"
        difference = self._difference(*pair)
        rows = []
        for column, depth in enumerate(depths.tolist()):
            row = self._row(name, measure @ depth, pair, column, difference)
            if not tested or math.isnan(row.difference):
                row = replace(row, p=math.nan, low=math.nan, high=math.nan, test="")
            change = self.calibrated.get((name, str(measure @ depth)))
            rows.append(row if change is None else _calibrated(row, change))
        return rows

    def _difference(self, one: Outcome, other: Outcome) -> Difference:
        options = {"level": self.bootstrap.level, "draws": self.draws, "seed": self.bootstrap.seed}
        if not self.paired:
            return unpaired_difference(one, other, **options)  # type: ignore[arg-type]
        units = self.bootstrap.units(self.judged[self.baseline].queries)
        return paired_difference(one, other, units=units, **options)  # type: ignore[arg-type]

    def _row(
        self, name: str, measure: Measure, pair: tuple[Outcome, Outcome], column: int, difference: Difference
    ) -> RunDifference:
        known = [outcome.defined[:, column] for outcome in pair]
        if self.paired:
            known = [known[0] & known[1]] * 2
        values = [_value(outcome, some, column) for outcome, some in zip(pair, known, strict=True)]
        reason = None
        if not all(some.any() for some in known):
            refused = [outcome for outcome in pair if outcome.refused is not None]
            reason = [*refused, *pair][0].undefined
        elif not all(map(math.isfinite, values)):
            reason = "no query succeeded: log2 of 0" if -math.inf in values else "undefined for one of the runs"
        gaps = _gaps(*(outcome.parts[0][:, column] for outcome in pair)) if self.paired else np.full(0, np.nan)
        better = gaps[~np.isnan(gaps)] * (1 if measure.higher_is_better else -1)
        estimates = [self.report.runs[run].estimates.get(str(measure)) for run in (name, self.baseline)]
        values, of_baseline = self._with_controls(measure, estimates, values, float(difference.value[column]))
        return RunDifference(
            run=name,
            baseline=self.baseline,
            measure=measure,
            value=values[0],
            baseline_value=values[1],
            difference=float(difference.value[column]),
            low=float(difference.low[column]),
            high=float(difference.high[column]),
            p=float(difference.p[column]),
            p_adjusted=math.nan,
            test=difference.test[column],
            tested_as=str(self._test_of(measure, pair, column)),
            effect=_effect(gaps),
            wins=int((better > 0).sum()),
            ties=int((better == 0).sum()),
            losses=int((better < 0).sum()),
            n=int(known[0].sum()),
            n_baseline=int(known[1].sum()),
            n_total=len(known[0]) if self.paired else len(known[0]) + len(known[1]),
            detectable=math.nan,
            level=self.bootstrap.level,
            possible=_possible(*estimates),
            caveats=(*of_baseline, *_caveats_of_both(dict(zip((name, self.baseline), estimates, strict=True)))),
            moved=self._moved(pair, column, gaps),
            reason=reason,
            equal_to_placebos=all(each is not None and equals_placebo(each) for each in estimates),
        )

    def _with_controls(
        self, measure: Measure, estimates: Sequence[Estimate | None], values: list[float], difference: float
    ) -> tuple[list[float], tuple[Caveat, ...]]:
        """Both figures with the controls' random baseline, if both runs have the same; else a caveat.

        The baseline cancels in a difference of logarithms, so that only the level of both figures changes.
        """
        known = [estimate for estimate in estimates if estimate is not None and estimate.basis == WITH_CONTROLS]
        if not known:
            return values, ()
        base = estimates[1]
        if (
            self.paired
            and isinstance(measure, BoR)
            and base is not None
            and len(known) == 2
            and math.isfinite(base.value + difference)
        ):
            return [base.value + difference, base.value], ()
        text = "These figures are as judged; `evaluate` has the figures with random controls."
        return values, (Caveat(AS_JUDGED_BASELINE, text),)

    def _test_of(self, measure: Measure, pair: tuple[Outcome, Outcome], column: int) -> Measure:
        """The measure that is tested: Success in place of BoR and EF, if both runs have the same random baseline."""
        alike = self.paired and all(
            np.array_equal(one[:, column], other[:, column], equal_nan=True)
            for one, other in zip(pair[0].parts[1:], pair[1].parts[1:], strict=True)
        )
        return measure.differs_with if alike else measure

    def _sensitivity(self, row: RunDifference, i: int, column: int) -> Callable[[float, float], float] | None:
        """(level, power) → the detectable difference of the row; None if it was not tested query by query."""
        if not self.paired or not row.test or row.test == COMPLETED:
            return None
        pair = self.measured.outcomes[row.run][i], self.measured.outcomes[self.baseline][i]
        units = self.bootstrap.units(self.judged[self.baseline].queries)
        return detectable.sensitivity(*pair, column, units=units, draws=self.draws)

    def _moved(self, pair: tuple[Outcome, Outcome], column: int, gaps: FloatArray) -> tuple[Moved, ...]:
        known = np.flatnonzero(~np.isnan(gaps) & (gaps != 0))
        order = known[np.argsort(-np.abs(gaps[known]), kind="stable")][:_SHOWN_QUERIES]
        queries = self.judged[self.baseline].queries
        return tuple(
            Moved(queries[i], *(float(outcome.parts[0][i, column]) for outcome in pair)) for i in order.tolist()
        )


def _calibrated(row: RunDifference, change: CalibratedDifference) -> RunDifference:
    """The row with the difference over completions of the labels, and the one as judged beside it."""
    return replace(
        row,
        value=change.value,
        baseline_value=change.baseline_value,
        difference=change.difference,
        low=change.low,
        high=change.high,
        p=change.p,
        test="" if math.isnan(change.difference) else COMPLETED,
        tested_as=str(row.measure),
        reason=change.reason,
        basis=CALIBRATED,
        as_judged=row.difference,
        as_judged_interval=(row.low, row.high),
    )


def _value(outcome: Outcome, some: NDArray[np.bool_], column: int) -> float:
    if not some.any():
        return math.nan
    means = [np.asarray(part[some, column].mean()) for part in outcome.parts]
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(outcome.aggregate.value(*means))


def _gaps(values: FloatArray, others: FloatArray) -> FloatArray:
    """The differences query by query; a difference that is only rounding is a tie."""
    gaps = values - others
    same = np.abs(gaps) <= 1e-11 * np.maximum(np.abs(values), np.abs(others))
    return np.where(same, 0.0, gaps)


def _effect(gaps: FloatArray) -> float:
    known = gaps[~np.isnan(gaps)]
    if not len(known):
        return math.nan
    if not known.any():
        return 0.0
    spread = float(known.std(ddof=1)) if len(known) > 1 else 0.0
    return float(known.mean()) / spread if spread > 0 else math.nan


def _caveats_of_both(estimates: Mapping[str, Estimate | None]) -> list[Caveat]:
    """The caveats of two runs' figures, each with the name of its run; one that both have stands once, without."""
    runs_of: dict[tuple[str, str, str], dict[str, Caveat]] = {}
    for run, estimate in estimates.items():
        for caveat in () if estimate is None else estimate.caveats:
            runs_of.setdefault((caveat.code, caveat.level, caveat.text), {})[run] = caveat
    return [
        caveat if len(by_run) > 1 else replace(caveat, text=f"{run}: {caveat.text}")
        for by_run in runs_of.values()
        for run, caveat in list(by_run.items())[:1]
    ]


def _possible(one: Any, other: Any) -> tuple[float, float] | None:
    """The possible range of the difference, whatever the grades of the unjudged passages are."""
    if one is None or other is None or (one.possible is None and other.possible is None):
        return None
    ends = [each.possible or (each.value, each.value) for each in (one, other)]
    return ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]
