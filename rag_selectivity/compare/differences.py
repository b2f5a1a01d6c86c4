"""Differences of two tables of figures: of runs, in a slice, of a run and its stored form, of claims, of answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.evaluation.caveats import AS_JUDGED_BASELINE, equals_placebo, of_strata, of_unequal_labels, padded
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference import detectable
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.paired import BOUNDED, TURNED_BY_FEW, holm, paired_difference
from rag_selectivity.inference.unpaired import unpaired_difference
from rag_selectivity.judged.query_weights import effective_size
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.chance import BoR
from rag_selectivity.results.difference import COMPLETED, Moved, RunDifference
from rag_selectivity.results.estimate import CALIBRATED, NOTE, WITH_CONTROLS, WITH_TAIL, Caveat, Estimate
from rag_selectivity.results.provenance import UNLABELLED_STRATA
from rag_selectivity.results.run_report import RunReport, Slice
from rag_selectivity.trust.completions import Completed, completed_figures
from rag_selectivity.trust.people import Ground

#: (run, baseline)
Pairs = Sequence[tuple[str, str]]

#: Of how many queries a comparison says that they differ most.
_SHOWN_QUERIES = 5
#: Two figures with a smaller relative difference are equal but for rounding.
ROUNDING = 1e-11
_FEW_DECIDE = Caveat(
    "few-queries-decide",
    "One or two further queries that went far the other way could turn this difference. Ask more questions.",
)
_UNCOMPLETED = Caveat("difference-as-judged", "These figures are as judged; the report completes them by a tail.", NOTE)
_WITHOUT_CONTROLS = Caveat(AS_JUDGED_BASELINE, "These figures are as judged; `evaluate` has them with random controls.")


@dataclass(frozen=True, slots=True)
class Testing:
    """How differences are tested.

    Attributes
    ----------
    bootstrap : Bootstrap or None
        Its level, seed and clusters. Without one nothing is tested.
    paired : bool
        Whether the two tables are over the same queries.
    draws : int
        The number of random swaps, if there are too many to count all of them.
    power : float
        Of the detectable difference.
    """

    bootstrap: Bootstrap | None
    paired: bool = True
    draws: int = 10_000
    power: float = 0.8

    @property
    def level(self) -> float:
        return math.nan if self.bootstrap is None else self.bootstrap.level


def known_baseline(baseline: str | None, runs: Mapping[str, Any]) -> str:
    """The run that the others are compared with: the first one, or the one that is named."""
    if baseline is None:
        return next(iter(runs), "")
    if not (isinstance(baseline, str) and baseline in runs):
        meant = did_you_mean(baseline, runs)
        raise InputError(f"the baseline {baseline!r} is none of the runs {', '.join(runs)}{meant}")
    return baseline


def differences(
    pairs: Pairs,
    runs: Mapping[str, RunReport],
    measures: Sequence[Measure],
    testing: Testing,
    ground: Ground | None = None,
    within: tuple[str, str] | None = None,
) -> list[RunDifference]:
    """The differences of pairs of runs under some measures, each alone: `as_family` corrects the p-values.

    With `ground` they rest on labels by people. `within` names the column and the value of a slice of the queries; a
    pair is left out where one of its runs has no such queries.
    """
    parts: dict[str, RunReport | Slice] = dict(runs)
    if within is not None:
        column, value = within
        parts = {name: run.slices[column][value] for name, run in runs.items() if value in run.slices.get(column, {})}
        pairs = [pair for pair in pairs if set(pair) <= parts.keys()]
    tables = {name: part.figures.only(measures) for name, part in parts.items()}
    rows = []
    for pair in pairs:
        of_pair = difference_rows(pair, [tables[run] for run in pair], [parts[run].estimates for run in pair], testing)
        rows += [replace(row, by=within) for row in of_pair]
    if ground is None or testing.bootstrap is None:
        return rows
    completed: dict[tuple[str, ...], dict[str, Completed]] = {}
    for base in dict.fromkeys(base for _, base in pairs):
        targets = [(one, other) for one, other in pairs if other == base]
        names = [base, *(one for one, _ in targets)]
        whole, inside = ({name: each[name].figures.join for name in names} for each in (runs, parts))
        of_slice = None if within is None else inside
        completed |= completed_figures(ground, whole, targets, tables[base].plan, testing.bootstrap, of_slice)
    changes = [completed[row.run, row.baseline].get(str(row.measure)) for row in rows]
    both = zip(rows, changes, strict=True)
    return [row if change is None else _calibrated(row, change, parts) for row, change in both]


def difference_rows(
    names: Sequence[str], tables: Sequence[Figures], estimates: Sequence[Mapping[str, Estimate]], testing: Testing
) -> list[RunDifference]:
    """The difference of a run and its baseline in every column of their tables, which have the same columns.

    Paired, these are over the same queries in the same order. The estimates are what a report says of the figures: a
    possible range, a placebo, caveats.
    """
    (one, other), bootstrap, rows = tables, testing.bootstrap or Bootstrap(), []
    how: dict[str, Any] = {"level": bootstrap.level, "seed": bootstrap.seed}
    if testing.paired:
        how |= {"draws": testing.draws, "units": bootstrap.units(other.queries)}
    for (measure, depths), first, second in zip(one.plan, one.outcomes, other.outcomes, strict=True):
        pair = (first, _same_but_for_rounding(second, first)) if testing.paired else (first, second)
        tested = (paired_difference if testing.paired else unpaired_difference)(*pair, **how)
        furthest = math.inf if first.aggregate.form == "bits" else measure.ends[1] - measure.ends[0]
        for i, depth in enumerate(depths.tolist()):
            of_depth, value = [each.at(slice(i, i + 1)) for each in pair], float(tested.value[i])
            row = _row(names, measure @ depth, of_depth, value, other.queries, testing)
            # Judged is shown for information; its difference is not tested.
            if testing.bootstrap is not None and measure.name != "Judged" and not math.isnan(row.difference):
                # Figures from 0 to 1 differ by at most 1.
                low, high = tested.low.clip(-furthest)[i], tested.high.clip(max=furthest)[i]
                row = replace(row, low=float(low), high=float(high), p=float(tested.p[i]), test=tested.test[i])
            row = _qualified(row, estimates[0].get(str(row.measure)), estimates[1].get(str(row.measure)), testing)
            few_decide = row.test == BOUNDED or (row.p <= 1 - testing.level and tested.turned_by[i] <= TURNED_BY_FEW)
            unequal = of_unequal_labels(names, tables, estimates, row.measure)
            caveats = (*((_FEW_DECIDE,) if few_decide else ()), *row.caveats, *unequal)
            rows.append(replace(row, caveats=caveats, by_padding=padded(row, tables)))
    return rows


def as_family(
    rows: Sequence[RunDifference], testing: Testing, runs: Mapping[str, RunReport] | None = None
) -> tuple[tuple[RunDifference, ...], dict[str, Any]]:
    """The rows as one family of tests under Holm's correction, and how it was tested.

    With the `runs` of the rows, they have the smallest difference that would have been shown. A test that several rows
    share counts once; rows of slices with few queries are no part of the family.
    """
    keys = [(row.by, row.run, row.baseline, row.tested_as) if row.test and not row.few else None for row in rows]
    # Of rows that share a test, the one with the largest p-value comes last and stays.
    tests = dict(sorted(((key, row.p) for key, row in zip(keys, rows, strict=True) if key), key=itemgetter(1)))
    adjusted = dict(zip(tests, holm(np.array(list(tests.values()))).tolist(), strict=True))
    level = (1 - testing.level) / max(1, len(tests))
    found = []
    for key, row in zip(keys, rows, strict=True):
        least, times = (math.nan, math.nan) if runs is None else _detectable(row, runs, level, testing)
        after_holm = math.nan if key is None else adjusted[key]
        found.append(replace(row, p_adjusted=after_holm, detectable=least, times=times))
    how = {"paired": testing.paired, "draws": testing.draws, "power": testing.power}
    return tuple(found), {**how, "correction": "holm", "family": len(tests)}


def _detectable(
    row: RunDifference, runs: Mapping[str, RunReport], level: float, testing: Testing
) -> tuple[float, float]:
    """What `sensitivity` says of a row; NaN if it was not tested query by query."""
    one, other = (runs[name].figures for name in (row.run, row.baseline))
    first, second = one.outcome(row.measure), other.outcome(row.measure)
    is_tested = row.test not in ("", COMPLETED) and testing.paired
    if not is_tested or testing.bootstrap is None or first is None or second is None:
        return math.nan, math.nan
    units = testing.bootstrap.units(other.queries)
    return detectable.sensitivity(first, second, level, testing.power, units=units, draws=testing.draws)


# -- a row ------------------------------------------------------------------------------------------------


def _same_but_for_rounding(outcome: Outcome, other: Outcome) -> Outcome:
    """The outcome, with the figures of another in place of those that differ by rounding alone."""
    parts = []
    for part, own in zip(outcome.parts, other.parts, strict=True):
        same = np.abs(part - own) <= ROUNDING * np.maximum(np.abs(part), np.abs(own))
        parts.append(np.where(same, own, part))
    return replace(outcome, parts=tuple(parts))


def _row(
    names: Sequence[str],
    measure: Measure,
    pair: Sequence[Outcome],
    difference: float,
    queries: Sequence[str],
    testing: Testing,
) -> RunDifference:
    """What two outcomes at one depth say without a test."""
    known, gaps, weights = [outcome.defined[:, 0] for outcome in pair], np.zeros(0), pair[0].weights
    first, second = (outcome.parts[0][:, 0] for outcome in pair)
    if testing.paired:
        known = [known[0] & known[1]] * 2
        gaps = np.where(known[0], first - second, 0.0)
    values = [float(outcome.over(some).value()[0]) for outcome, some in zip(pair, known, strict=True)]
    better = gaps * (1 if measure.higher_is_better else -1)
    furthest = [i for i in np.argsort(-np.abs(gaps), kind="stable")[:_SHOWN_QUERIES].tolist() if gaps[i]]
    baselines = zip(pair[0].parts[1:], pair[1].parts[1:], strict=True)
    # With the same random baseline, BoR and EF differ exactly where Success does.
    alike = testing.paired and all(np.array_equal(part, base, equal_nan=True) for part, base in baselines)
    return RunDifference(
        run=names[0],
        baseline=names[1],
        measure=measure,
        value=values[0],
        baseline_value=values[1],
        difference=difference,
        tested_as=str(measure.differs_with if alike else measure),
        wins=int((better > 0).sum()),
        ties=int((known[0] & (better == 0)).sum()) if testing.paired else 0,
        losses=int((better < 0).sum()),
        n=int(known[0].sum()),
        n_baseline=int(known[1].sum()),
        n_total=len(first) if testing.paired else len(first) + len(second),
        level=testing.level,
        moved=tuple(Moved(queries[i], float(first[i]), float(second[i])) for i in furthest),
        reason=_reason(pair, known, values),
        effective=None if weights is None else effective_size(weights[known[0]]),
    )


def _reason(pair: Sequence[Outcome], known: Sequence[NDArray[np.bool_]], values: Sequence[float]) -> str | None:
    """Why the difference is not a finite number; None if it is."""
    if not all(some.any() for some in known):
        reasons = [outcome.reasons[0] for outcome in pair]
        refused = [reason for reason, outcome in zip(reasons, pair, strict=True) if reason != outcome.undefined]
        return [*refused, *reasons][0]
    if all(map(math.isfinite, values)):
        return None
    return "no query succeeded: log2 of 0" if -math.inf in values else "a random draw of this size can never succeed"


# -- what the report of both says -------------------------------------------------------------------------


def _qualified(row: RunDifference, one: Estimate | None, other: Estimate | None, testing: Testing) -> RunDifference:
    """The row with the possible range, the caveats, the figures and the random baseline that the estimates have."""
    if one is None or other is None:
        return row
    said: dict[tuple[str, str, str], Caveat] = {}
    key, possible, bases = attrgetter("code", "level", "text"), None, {one.basis, other.basis}
    by_both = set(map(key, one.caveats)) & set(map(key, other.caveats))
    for run, caveat in [(row.run, each) for each in one.caveats] + [(row.baseline, each) for each in other.caveats]:
        named = caveat if key(caveat) in by_both else replace(caveat, text=f"{run}: {caveat.text}")
        said.setdefault(key(caveat), named)
    caveats = list(said.values())
    if one.possible is not None or other.possible is not None:
        (low, high), (base_low, base_high) = (each.possible or (each.value, each.value) for each in (one, other))
        possible = low - base_high, high - base_low
    if any(each.basis == WITH_TAIL and each.value != each.as_judged for each in (one, other)):
        caveats.insert(0, _UNCOMPLETED)
    elif WITH_CONTROLS in bases:
        # The random baseline cancels in a difference of logarithms: only the level of both figures changes.
        same = testing.paired and isinstance(row.measure, BoR) and bases == {WITH_CONTROLS}
        if same and math.isfinite(value := other.value + row.difference):
            row = replace(row, value=value, baseline_value=other.value, basis=WITH_CONTROLS)
        else:
            caveats.insert(0, _WITHOUT_CONTROLS)
    placebos = equals_placebo(one) and equals_placebo(other)
    return replace(row, possible=possible, caveats=tuple(caveats), equal_to_placebos=placebos)


def _calibrated(row: RunDifference, change: Completed, parts: Mapping[str, RunReport | Slice]) -> RunDifference:
    """The row with the difference over completions of the labels, the one as judged, and each run's own figure."""
    # The difference has strata of its own.
    caveats = [caveat for caveat in row.caveats if caveat.code != UNLABELLED_STRATA]
    return replace(
        row,
        value=parts[row.run].estimates[str(row.measure)].value,
        baseline_value=parts[row.baseline].estimates[str(row.measure)].value,
        difference=change.value,
        low=change.low,
        high=change.high,
        p=change.p,
        reason=change.reason,
        test="" if math.isnan(change.value) else COMPLETED,
        tested_as=str(row.measure),
        basis=CALIBRATED,
        as_judged=row.difference,
        as_judged_interval=(row.low, row.high),
        caveats=(*caveats, *of_strata(change.without)),
    )
