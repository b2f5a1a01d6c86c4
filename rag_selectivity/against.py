"""A report compared with a stored report: whether that is possible, over which queries, and how each figure changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, examples
from rag_selectivity.estimates import estimates_of
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.results.estimate import AS_JUDGED, WITH_CONTROLS, Estimate
from rag_selectivity.results.records import Fingerprint, QueryRecords
from rag_selectivity.results.report import Report
from rag_selectivity.results.stored import StoredReport, StoredRun
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.paired import paired_difference
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.wording import counted

#: The queries that a comparison with a stored report uses.
ON = ("all", "shared")
_FEWEST_SHARED = 2
#: Two figures with a smaller relative difference are equal but for rounding.
SAME = 1e-11


@dataclass(frozen=True, slots=True)
class Change:
    """A run's figure in a stored report and now.

    Attributes
    ----------
    before, now : Estimate
    low, high : float
        The paired interval of now − before; NaN if there is none.
    p : float
        The p-value of the paired test, to which the interval belongs; NaN if there is none.
    n : int
        The number of queries that are compared.
    reason : str or None
        Why the two figures cannot be compared; None if they can.
    """

    before: Estimate
    now: Estimate
    n: int
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    reason: str | None = None


def as_judged(estimate: Estimate) -> Estimate:
    """The estimate with the labels as they are, in place of one that rests on more."""
    if estimate.as_judged is None:
        return estimate
    low, high = estimate.as_judged_interval or (math.nan, math.nan)
    reason = None if math.isfinite(estimate.as_judged) else estimate.reason
    return replace(estimate, value=estimate.as_judged, low=low, high=high, reason=reason, basis=AS_JUDGED)


def _without_controls(estimate: Estimate) -> Estimate:
    return as_judged(estimate) if estimate.basis == WITH_CONTROLS else estimate


@dataclass(frozen=True, slots=True)
class Against:
    """A report with its stored report, after a check of queries, judgments, N, scale and policy.

    Attributes
    ----------
    notes : list of str
        With `on="shared"`, for each run: how many queries are compared, and how many are left out.
    """

    report: Report
    stored: StoredReport
    pairs: Mapping[str, Pair]
    bootstrap: Bootstrap | None

    @classmethod
    def of(
        cls,
        report: Report,
        stored: StoredReport,
        *,
        on: str = "all",
        bootstrap: Bootstrap | None = Bootstrap(),
        runs: Sequence[str] | None = None,
    ) -> Against:
        """Pair runs with their stored runs.

        Parameters
        ----------
        report : Report
        stored : StoredReport
        on : {"all", "shared"}
            `all` refuses a stored report with other queries or judgments. `shared` compares over the queries that
            both reports have with the same judgments, and recomputes both sides over these.
        bootstrap : Bootstrap or None
            For the paired intervals; None leaves them out, so that `low(…)` is refused.
        runs : sequence of str, optional
            Default: all of the report.

        Raises
        ------
        InputError
            If queries, judgments, corpus size, scale or policy differ (the message names what differs), or if fewer
            than two queries are shared.
        """
        if on not in ON:
            raise InputError(f"--on must be one of {', '.join(ON)}, got {on!r}")
        pairs = {run: _pair(report, run, stored, on) for run in (report if runs is None else runs)}
        return cls(report, stored, pairs, bootstrap)

    @property
    def notes(self) -> list[str]:
        return [pair.note for pair in self.pairs.values() if pair.note is not None]

    def change(self, run: str, measure: Measure) -> Change:
        """A stored figure and the same figure now, over the paired queries, with the interval of the difference.

        Figures with random controls are compared as judged: both reports have the same controls, since these are a part
        of the judgments, and so their random baselines are the same and cancel in BoR.
        """
        pair, now = self.pairs[run], _without_controls(self.report[run, measure])
        before = _without_controls(pair.estimate(measure))
        pair.check_pool(measure)
        outcomes = self.outcomes(run, measure, pair.rows)
        if pair.shared and (now.possible or before.possible):
            defined_now, defined_then = (outcome.defined[:, 0] for outcome in outcomes)
            return Change(
                before,
                now,
                int((defined_now & defined_then).sum()),
                reason="lists are judged in part, so it is a range, and --on shared cannot compare ranges",
            )
        return change_of(
            outcomes, pair.rows.queries, before, now, shared=pair.shared, path=pair.path, bootstrap=self.bootstrap
        )

    def outcomes(self, run: str, measure: Measure, rows: Rows) -> tuple[Outcome, Outcome]:
        """The outcomes of the paired queries, now and stored; figures that differ only by rounding are made equal."""
        outcome = self.report.outcome(run, measure)
        stored = rows.records.parts.get(str(measure), ())
        if outcome is None or len(stored) != len(outcome.parts):
            raise InputError(
                f"{self.stored.path}: the figures of each query do not fit {measure}; write the file again"
            )
        now = outcome.over(rows.now)
        then = (part[rows.then, None] for part in stored)
        return now, replace(now, parts=tuple(map(without_last_digits, then, now.parts)))


def change_of(
    outcomes: tuple[Outcome, Outcome],
    queries: Sequence[str],
    before: Estimate,
    now: Estimate,
    *,
    shared: bool,
    path: Path,
    bootstrap: Bootstrap | None,
) -> Change:
    """How a figure changed, over the paired queries, with the interval of the difference and its p-value.

    `outcomes` are those of now and of the stored file. With `shared`, both figures are computed anew over the queries
    that have one in both.
    """
    defined_now, defined_then = (outcome.defined[:, 0] for outcome in outcomes)
    n = int((defined_now & defined_then).sum())
    if shared:
        now, before = (_over(outcome, defined_now & defined_then) for outcome in outcomes)
    elif (defined_now != defined_then).any():
        return Change(before, now, n, reason=_undefined_in_one(queries, defined_now, defined_then, path))
    if bootstrap is None:
        return Change(before, now, n)
    difference = paired_difference(
        *outcomes, level=bootstrap.level, seed=bootstrap.seed, units=bootstrap.units(queries)
    )
    return Change(before, now, n, float(difference.low[0]), float(difference.high[0]), float(difference.p[0]))


@dataclass(frozen=True, slots=True)
class Rows:
    """The queries of a run that are compared.

    Attributes
    ----------
    queries : tuple of str
    now, then : int64[queries]
        Their rows in the report and in the stored report.
    records : QueryRecords
        The stored figures of each query.
    """

    queries: tuple[str, ...]
    now: IntArray
    then: IntArray
    records: QueryRecords

    def named(self, chosen: NDArray[np.bool_]) -> list[str]:
        """The ids of some of the queries."""
        return [self.queries[i] for i in np.flatnonzero(chosen).tolist()]


@dataclass(frozen=True, slots=True)
class Pair:
    """A run and its stored run, over the queries that are compared."""

    path: Path
    run: str
    stored: StoredRun
    same_pool: bool
    shared: bool
    rows: Rows
    note: str | None = None

    def estimate(self, measure: Measure) -> Estimate:
        """The stored estimate of a measure."""
        try:
            return self.stored.estimates[str(measure)]
        except KeyError:
            raise InputError(
                f"{self.path} has no {measure} of {self.run!r} (it has: {', '.join(self.stored.estimates)})"
            ) from None

    def check_pool(self, measure: Measure) -> None:
        """Refuse a measure that uses the pool if only one of the reports was given a pool."""
        if measure.uses_pool and not self.same_pool:
            raise InputError(
                f"{self.path} cannot be compared with run {self.run!r}: {measure} uses the pool (--pool), and only one "
                f"of the two was given one; give both a pool, or neither"
            )


def without_last_digits(part: FloatArray, other: FloatArray) -> FloatArray:
    """The part, with the figures of the other where the two differ only by rounding."""
    same = np.abs(part - other) <= SAME * np.maximum(np.abs(part), np.abs(other))
    return np.where(same, other, part)


def _undefined_in_one(
    queries: Sequence[str], defined_now: NDArray[np.bool_], defined_then: NDArray[np.bool_], path: Path
) -> str:
    """A text that names the queries that have a figure in only one of the reports."""
    counts = []
    for only, where in ((defined_now & ~defined_then, "now"), (defined_then & ~defined_now, f"in {path}")):
        if only.any():
            named = [queries[i] for i in np.flatnonzero(only).tolist()]
            counts.append(f"{counted(len(named), 'query', 'queries')} with a figure only {where} ({examples(named)})")
    return f"{' and '.join(counts)}; --on shared compares the queries with a figure in both"


def _over(outcome: Outcome, chosen: Any) -> Estimate:
    """A measure's estimate over some of the queries."""
    some = replace(outcome, parts=tuple(np.where(chosen[:, None], part, np.nan) for part in outcome.parts))
    none = np.full(1, np.nan)
    return estimates_of(some.value(), none, none, some.defined.sum(axis=0), int(chosen.sum()), outcome.reasons)[0]


# -- whether two reports can be compared ------------------------------------------------------------------


def _pair(report: Report, run: str, stored: StoredReport, on: str) -> Pair:
    """The run and its stored run; if they cannot be compared, an InputError that names every difference."""
    then = stored.run(run, len(report.runs))
    now, judged = report.runs[run].fingerprint, report.runs[run].judged
    records = None if judged is None else QueryRecords.of(judged, {})
    is_known, was_known = (each is not None and each.labels is not None for each in (records, then.records))
    if now is None or records is None or then.fingerprint is None or then.records is None or not is_known & was_known:
        raise InputError(
            f"{stored.path} cannot be compared with run {run!r}: {stored.path if is_known else 'the report'} does not "
            f"identify its queries and judgments (reports of live retrievals and of counts never do); evaluate both "
            f"with judgments"
        )
    pair = Pair(
        stored.path,
        run,
        then,
        now.pool == then.fingerprint.pool,
        on == "shared",
        _rows_of_both(records, then.records),
    )
    return _paired(pair, records, _settings_that_differ(now, then.fingerprint, stored.path))


def _rows_of_both(records: QueryRecords, stored: QueryRecords) -> Rows:
    """The queries that both reports have."""
    place = {query: row for row, query in enumerate(stored.queries)}
    rows_then = np.array([place.get(query, -1) for query in records.queries], np.int64)
    rows_now = np.flatnonzero(rows_then >= 0)
    return Rows(tuple(records.queries[row] for row in rows_now.tolist()), rows_now, rows_then[rows_now], stored)


def _paired(pair: Pair, records: QueryRecords, settings: list[str]) -> Pair:
    """The pair after the checks; with `shared`, only with the queries of the same judgments."""
    common, stored = pair.rows, pair.rows.records
    relabelled = np.zeros(len(common.now), bool)
    if records.labels is not None and stored.labels is not None:
        relabelled = records.labels[common.now] != stored.labels[common.then]
    known = set(common.queries)
    left_out = queries_that_differ(
        pair.path,
        [query for query in records.queries if query not in known],
        [query for query in stored.queries if query not in known],
        common.named(relabelled),
    )
    rows = common
    if pair.shared:
        rows = Rows(tuple(common.named(~relabelled)), common.now[~relabelled], common.then[~relabelled], stored)
    sizes = _sizes_that_differ(records, rows, pair.path)
    weights = _weights_that_differ(records, rows, pair.path)
    _refuse(pair, [*settings, *sizes, *weights], [] if pair.shared else left_out)
    if not pair.shared:
        return pair
    if len(rows.queries) < _FEWEST_SHARED:
        shared = counted(len(rows.queries), "query", "queries")
        raise InputError(
            f"{pair.path} cannot be compared with run {pair.run!r}: both have only {shared} with the same judgments, "
            f"and at least {_FEWEST_SHARED} are needed ({'; '.join(left_out)})"
        )
    note = (
        f"{pair.run} and {pair.path} are compared over {len(rows.queries):,} queries with the same judgments; "
        f"left out: {'; '.join(left_out) or 'none'}"
    )
    return replace(pair, rows=rows, note=note)


def _refuse(pair: Pair, settings: list[str], queries: list[str]) -> None:
    """Raise an error that names the differences and what to do, if there are any."""
    if not settings and not queries:
        return
    what_to_do = f"evaluate with the settings of {pair.path}, or write that report again"
    if not settings:
        what_to_do = f"use the queries that both have with the same judgments (--on shared), or write {pair.path} again"
    raise InputError(
        f"{pair.path} cannot be compared with run {pair.run!r}: {'; '.join([*settings, *queries])}. "
        f"To compare them, {what_to_do}"
    )


def _settings_that_differ(now: Fingerprint, then: Fingerprint, path: Path) -> list[str]:
    """The differences in scale, numbers of passages of documents, and policy."""
    differences = []
    if now.scale != then.scale:
        differences.append(f"the scale is {now.scale} here and {then.scale} in {path}")
    if now.passages_of != then.passages_of:
        if now.passages_of is None or then.passages_of is None:
            differences += _given_in_one("passages_of is given", now.passages_of, then.passages_of, path)
        else:
            differences.append(f"the numbers of passages in passages_of are not those in {path}")
    for name in dict.fromkeys([*now.policy, *then.policy]):
        value_now, value_then = now.policy.get(name), then.policy.get(name)
        if value_now != value_then:
            differences.append(f"the policy {name} is {value_now} here and {value_then} in {path}")
    return differences


def _given_in_one(what: str, now: object, then: object, path: Path) -> list[str]:
    """What only one of the two reports has; nothing if neither has it."""
    if now is None and then is None:
        return []
    given, lacking = (f"in {path}", "here") if now is None else ("here", f"in {path}")
    return [f"{what} {given} and not {lacking}"]


def _sizes_that_differ(records: QueryRecords, rows: Rows, path: Path) -> list[str]:
    """The difference in N between the paired queries."""
    stored = rows.records
    if records.sizes is None or stored.sizes is None:
        return _given_in_one("the corpus size N is given", records.sizes, stored.sizes, path)
    mine, theirs = records.sizes[rows.now], stored.sizes[rows.then]
    differing = np.flatnonzero(mine != theirs)
    if not len(differing):
        return []
    if (mine == mine[0]).all() and (theirs == theirs[0]).all():
        return [f"the corpus size N is {mine[0]:,} here and {theirs[0]:,} in {path}"]
    shown = ", ".join(
        f"{rows.queries[i]!r}: {mine[i]:,} here, {theirs[i]:,} in the file" for i in differing[:3].tolist()
    )
    return [f"the corpus size N of {counted(len(differing), 'query', 'queries')} is not that in {path} ({shown})"]


def _weights_that_differ(records: QueryRecords, rows: Rows, path: Path) -> list[str]:
    """The difference in the weights of the paired queries, of which only ratios matter."""
    stored = rows.records
    if records.weights is None or stored.weights is None:
        return _given_in_one("the queries are weighted", records.weights, stored.weights, path)
    mine, theirs = records.weights[rows.now], stored.weights[rows.then]
    if not len(mine):
        return []
    differing = np.flatnonzero(~np.isclose(mine / mine[0], theirs / theirs[0], rtol=1e-9, atol=0.0))
    if not len(differing):
        return []
    return [
        f"the weights of {counted(len(differing), 'query', 'queries')} are not those in {path} "
        f"({examples([rows.queries[i] for i in differing.tolist()])})"
    ]


def queries_that_differ(
    path: Path,
    only_here: Sequence[str],
    only_there: Sequence[str],
    relabelled: Sequence[str],
    otherwise: str = "other judgments",
) -> list[str]:
    """What of the queries differs, one text for each kind of difference; `otherwise` names what `relabelled` have."""
    groups = (
        (only_here, "only here"),
        (only_there, f"only in {path}"),
        (relabelled, f"with {otherwise} in {path}"),
    )
    return [f"{counted(len(names), 'query', 'queries')} {what} ({examples(names)})" for names, what in groups if names]
