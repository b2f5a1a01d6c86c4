"""A report compared with a stored report: whether that is possible, over which queries, and how each figure changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, examples
from rag_selectivity.evaluation.estimates import estimates_with, no_ends
from rag_selectivity.figures.figures import Facts, Figures, Rules
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.inference.paired import paired_difference
from rag_selectivity.measures import Measure, Outcome
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.results.estimate import AS_JUDGED, WITH_CONTROLS, Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.tables.ids import HashArray, IntArray
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
    stored: Report
    pairs: Mapping[str, Pair]
    bootstrap: Bootstrap | None

    @classmethod
    def of(
        cls,
        report: Report,
        stored: Report,
        *,
        on: str = "all",
        bootstrap: Bootstrap | None = Bootstrap(),
        runs: Sequence[str] | None = None,
    ) -> Against:
        """Pair runs with their stored runs.

        Parameters
        ----------
        report : Report
        stored : Report
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
        pairs = {run: _pair(report, run, stored, on == "shared") for run in (report if runs is None else runs)}
        return cls(report, stored, pairs, bootstrap)

    @property
    def notes(self) -> list[str]:
        return [pair.note for pair in self.pairs.values() if pair.note]

    def note(self, run: str) -> str:
        """Over which queries a run is compared, if not over all."""
        return self.pairs[run].note

    def change(self, run: str, measure: Measure) -> Change:
        """A stored figure and the same figure now, over the paired queries, with the interval of the difference.

        Figures with random controls are compared as judged: both reports have the same controls, since these are a part
        of the judgments, and so their random baselines are the same and cancel in BoR.
        """
        pair, now = self.pairs[run], _without_controls(self.report[run, measure])
        before = _without_controls(pair.estimate(measure))
        pair.check_pool(measure)
        outcomes = pair.outcomes(measure)
        if pair.shared and (now.possible or before.possible):
            defined_now, defined_then = (outcome.defined[:, 0] for outcome in outcomes)
            return Change(
                before,
                now,
                int((defined_now & defined_then).sum()),
                reason="lists are judged in part, so it is a range, and --on shared cannot compare ranges",
            )
        return change_of(
            outcomes, pair.now.queries, before, now, shared=pair.shared, path=pair.path, bootstrap=self.bootstrap
        )


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
class Pair:
    """A run and its stored run; `now` and `then` are their figures over the queries that are compared."""

    path: Path
    run: str
    stored: RunReport
    now: Figures
    then: Figures
    same_pool: bool
    shared: bool
    note: str = ""

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

    def outcomes(self, measure: Measure) -> tuple[Outcome, Outcome]:
        """The outcomes of the paired queries, now and stored; figures that differ only by rounding are made equal."""
        now, then = self.now.outcome(measure), self.then.outcome(measure)
        if now is None or then is None or len(then.parts) != len(now.parts):
            raise InputError(f"{self.path}: the figures of each query do not fit {measure}; write the file again")
        return now, replace(now, parts=tuple(map(without_last_digits, then.parts, now.parts)))


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


def _over(outcome: Outcome, chosen: NDArray[np.bool_]) -> Estimate:
    """A measure's estimate over some of the queries."""
    some = outcome.over(chosen)
    estimate = estimates_with(some, *no_ends([some])[0])[0]
    return replace(estimate, caveats=(), effective=None)


# -- whether two reports can be compared ------------------------------------------------------------------


def _pair(report: Report, run: str, stored: Report, shared: bool) -> Pair:
    """The run and its stored run; if they cannot be compared, an InputError that names every difference."""
    then, now, path = stored.run_like(run, len(report.runs)), report.runs[run].figures, stored.path
    kept, labels, is_known = then.figures, now.facts.labels, now.facts.labels is not None
    rules, rules_then = now.rules, kept.rules
    if path is None or kept.facts.labels is None or labels is None or rules is None or rules_then is None:
        raise InputError(
            f"{path} cannot be compared with run {run!r}: {path if is_known else 'the report'} does not "
            f"identify its queries and judgments (reports of live retrievals and of counts never do); evaluate both "
            f"with judgments"
        )
    paired = Paired.of(path, run, (now.queries, labels), (kept.queries, kept.facts.labels), shared=shared)
    pair = Pair(
        path,
        run,
        then,
        now.where(paired.now),
        kept.where(paired.then),
        rules.pool == rules_then.pool,
        shared,
        paired.note,
    )
    facts = now.facts.over(paired.now), kept.facts.over(paired.then)
    paired.check(
        [
            *_rules_that_differ(rules, rules_then, path),
            *_sizes_that_differ(*facts, pair.now.queries, path),
            *_weights_that_differ(*facts, pair.now.queries, path),
        ]
    )
    return pair


@dataclass(frozen=True, slots=True)
class Paired:
    """The queries of a run that are compared with those of a stored run.

    Attributes
    ----------
    now, then : int64[queries]
        Their rows in both.
    left_out : list of str
        What of the other queries differs.
    same : str
        What the queries that are compared must share.
    """

    path: Path
    run: str
    now: IntArray
    then: IntArray
    left_out: list[str]
    shared: bool
    same: str

    @classmethod
    def of(
        cls,
        path: Path,
        run: str,
        now: tuple[Sequence[str], HashArray],
        then: tuple[Sequence[str], HashArray],
        *,
        shared: bool,
        same: str = "judgments",
        otherwise: str = "other judgments",
    ) -> Paired:
        """Pair the queries by their ids; with `shared`, those that have the same hash on both sides."""
        place, known = {query: row for row, query in enumerate(then[0])}, set(now[0])
        rows = np.array([place.get(query, -1) for query in now[0]], np.int64)
        alike = rows >= 0
        alike[alike] = now[1][alike] == then[1][rows[alike]]
        groups = (
            ([query for query in now[0] if query not in place], "only here"),
            ([query for query in then[0] if query not in known], f"only in {path}"),
            ([now[0][i] for i in np.flatnonzero((rows >= 0) & ~alike).tolist()], f"with {otherwise} in {path}"),
        )
        left_out = [f"{_queries(len(names))} {what} ({examples(names)})" for names, what in groups if names]
        chosen = np.flatnonzero(alike if shared else rows >= 0)
        return cls(path, run, chosen, rows[chosen], left_out, shared, same)

    def check(self, settings: Sequence[str] = ()) -> None:
        """Raise an error that names every difference and what to do, or that says that too few queries are left."""
        problem = f"{self.path} cannot be compared with run {self.run!r}"
        if settings or (self.left_out and not self.shared):
            mend = f"evaluate with the settings of {self.path}, or write that report again"
            if not settings:
                both = f"the queries that both have with the same {self.same} (--on shared)"
                mend = f"use {both}, or write {self.path} again"
            found = [*settings, *([] if self.shared else self.left_out)]
            raise InputError(f"{problem}: {'; '.join(found)}. To compare them, {mend}")
        if self.shared and len(self.now) < _FEWEST_SHARED:
            raise InputError(
                f"{problem}: both have only {_queries(len(self.now))} with the same {self.same}, and at least "
                f"{_FEWEST_SHARED} are needed ({'; '.join(self.left_out)})"
            )

    @property
    def note(self) -> str:
        """With `shared`, how many queries are compared and which are left out; else empty."""
        if not self.shared:
            return ""
        return (
            f"{self.run} and {self.path} are compared over {len(self.now):,} queries with the same {self.same}; "
            f"left out: {'; '.join(self.left_out) or 'none'}"
        )


def _queries(count: int) -> str:
    return counted(count, "query", "queries")


def _rules_that_differ(now: Rules, then: Rules, path: Path) -> list[str]:
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


def _sizes_that_differ(now: Facts, then: Facts, queries: Sequence[str], path: Path) -> list[str]:
    """The difference in N between the paired queries."""
    if now.sizes is None or then.sizes is None:
        return _given_in_one("the corpus size N is given", now.sizes, then.sizes, path)
    mine, theirs = now.sizes, then.sizes
    differing = np.flatnonzero(mine != theirs)
    if not len(differing):
        return []
    if (mine == mine[0]).all() and (theirs == theirs[0]).all():
        return [f"the corpus size N is {mine[0]:,} here and {theirs[0]:,} in {path}"]
    shown = ", ".join(f"{queries[i]!r}: {mine[i]:,} here, {theirs[i]:,} in the file" for i in differing[:3].tolist())
    return [f"the corpus size N of {counted(len(differing), 'query', 'queries')} is not that in {path} ({shown})"]


def _weights_that_differ(now: Facts, then: Facts, queries: Sequence[str], path: Path) -> list[str]:
    """The difference in the weights of the paired queries, of which only ratios matter."""
    if now.weights is None or then.weights is None:
        return _given_in_one("the queries are weighted", now.weights, then.weights, path)
    if not len(now.weights):
        return []
    alike = np.isclose(now.weights / now.weights[0], then.weights / then.weights[0], rtol=1e-9, atol=0.0)
    differing = np.flatnonzero(~alike)
    if not len(differing):
        return []
    return [
        f"the weights of {counted(len(differing), 'query', 'queries')} are not those in {path} "
        f"({examples([queries[i] for i in differing.tolist()])})"
    ]
