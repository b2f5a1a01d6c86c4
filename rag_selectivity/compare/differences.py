"""The differences of pairs of runs: each with its interval, test, verdict and the detectable difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rag_selectivity.compare.rows import corrected, difference_row
from rag_selectivity.estimating.caveats import AS_JUDGED_BASELINE, equals_placebo, of_strata
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference import detectable
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.paired import Difference, paired_difference
from rag_selectivity.inference.unpaired import unpaired_difference
from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.chance import BoR
from rag_selectivity.measures.plan import Plan
from rag_selectivity.results.comparison import COMPLETED, RunDifference
from rag_selectivity.results.estimate import CALIBRATED, WITH_CONTROLS, Caveat, Estimate
from rag_selectivity.results.provenance import UNLABELLED_STRATA
from rag_selectivity.results.report import Report
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.trust.differences import CalibratedDifference, calibrated_differences
from rag_selectivity.trust.reporting import WITHOUT_GRADES, sampling_of


def differences(
    pairs: Sequence[tuple[str, str]],
    figures: Mapping[str, Figures],
    report: Report,
    bootstrap: Bootstrap,
    *,
    paired: bool = True,
    draws: int = 10_000,
    power: float | None = 0.8,
    whole: Mapping[str, JudgedRun] | None = None,
) -> tuple[RunDifference, ...]:
    """Every measured difference of the given pairs (run, baseline): the rows of one comparison, as one family of tests.

    `report` is made of these figures. If it holds labels by people, the differences rest on them. Without `power`, no
    detectable difference is computed. The figures are those of a slice of the runs `whole`, if these are given.
    """
    calibrated: dict[tuple[str, str, str], CalibratedDifference] = {}
    if report.ground is not None:
        plan = next(iter(figures.values())).plan
        graded = [(measure, at) for measure, at in plan if measure.name not in WITHOUT_GRADES]
        judged = {name: each.join for name, each in figures.items()}
        for base in dict.fromkeys(base for _, base in pairs):
            names = (base, *(name for name, other in pairs if other == base))
            compared, every = ({name: runs[name] for name in names} for runs in (judged, whole or judged))
            parts = None if whole is None else compared
            found = calibrated_differences(report.ground, every, base, graded, sampling_of(bootstrap), parts)
            calibrated |= {(name, base, key): difference for (name, key), difference in found.items()}
    return _Differences(figures, report, bootstrap, paired, draws, power, calibrated).rows(pairs)


@dataclass(frozen=True, slots=True)
class _Differences:
    """All differences of a comparison; each row comes from one pair of outcomes at one depth."""

    figures: Mapping[str, Figures]
    report: Report
    bootstrap: Bootstrap
    paired: bool
    draws: int
    power: float | None
    calibrated: Mapping[tuple[str, str, str], CalibratedDifference]

    def rows(self, pairs: Sequence[tuple[str, str]]) -> tuple[RunDifference, ...]:
        shown = {measure.without_depth for measure in self.report.measures}
        asked = [i for i, (measure, _) in enumerate(self._plan) if measure in shown]
        rows, shows = [], []
        for name, base in pairs:
            for i in asked:
                for column, row in enumerate(self._rows_of(name, base, i)):
                    rows.append(row)
                    shows.append(self._sensitivity(row, i, column))
        return corrected(rows, shows, self.bootstrap.level, self.power)

    @property
    def _plan(self) -> Plan:
        return next(iter(self.figures.values())).plan

    def _pair(self, name: str, base: str, i: int) -> tuple[Outcome, Outcome]:
        return self.figures[name].outcomes[i], self.figures[base].outcomes[i]

    def _rows_of(self, name: str, base: str, i: int) -> list[RunDifference]:
        (measure, depths), pair = self._plan[i], self._pair(name, base, i)
        # Judged is shown for information; its difference is not tested.
        tested = measure.name != "Judged"
        units = self.bootstrap.units(self.figures[base].queries) if self.paired else None
        difference = self._difference(*pair, units)
        rows = []
        for column, depth in enumerate(depths.tolist()):
            row = self._row((name, base), measure @ depth, pair, column, difference)
            if not tested or math.isnan(row.difference):
                row = replace(row, p=math.nan, low=math.nan, high=math.nan, test="")
            change = self.calibrated.get((name, base, str(measure @ depth)))
            rows.append(row if change is None else _calibrated(row, change))
        return rows

    def _difference(self, one: Outcome, other: Outcome, units: IntArray | None) -> Difference:
        options = {"level": self.bootstrap.level, "draws": self.draws, "seed": self.bootstrap.seed}
        if not self.paired:
            return unpaired_difference(one, other, **options)  # type: ignore[arg-type]
        return paired_difference(one, other, units=units, **options)  # type: ignore[arg-type]

    def _row(
        self,
        runs: tuple[str, str],
        measure: Measure,
        pair: tuple[Outcome, Outcome],
        column: int,
        difference: Difference,
    ) -> RunDifference:
        row = difference_row(
            runs, measure, pair, column, difference, self.figures[runs[1]].queries, self.bootstrap.level, self.paired
        )
        estimates = [self.report.runs[run].estimates.get(str(measure)) for run in runs]
        values, of_baseline = self._with_controls(measure, estimates, [row.value, row.baseline_value], row.difference)
        return replace(
            row,
            value=values[0],
            baseline_value=values[1],
            tested_as=str(self._test_of(measure, pair, column)),
            possible=_possible(*estimates),
            caveats=(*of_baseline, *_caveats_of_both(dict(zip(runs, estimates, strict=True)))),
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
        if self.power is None or not self.paired or not row.test or row.test == COMPLETED:
            return None
        units = self.bootstrap.units(self.figures[row.baseline].queries)
        return detectable.sensitivity(*self._pair(row.run, row.baseline, i), column, units=units, draws=self.draws)


def _calibrated(row: RunDifference, change: CalibratedDifference) -> RunDifference:
    """The row with the difference over completions of the labels, and the one as judged beside it."""
    # The difference has strata of its own.
    caveats = [caveat for caveat in row.caveats if caveat.code != UNLABELLED_STRATA]
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
        caveats=(*caveats, *of_strata(change.without)),
    )


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
