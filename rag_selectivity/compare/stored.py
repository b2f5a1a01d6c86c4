"""A run compared with its stored form: whether that is possible, over which queries, and how each figure changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.compare.differences import Side, Testing, differences_of
from rag_selectivity.errors import InputError, examples
from rag_selectivity.figures.figures import Figures
from rag_selectivity.measures import Measure
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray
from rag_selectivity.measures.plan import Plan
from rag_selectivity.results.claims import ClaimReport
from rag_selectivity.results.comparison import RunDifference
from rag_selectivity.results.estimate import AS_JUDGED, Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.tables.ids import IntArray
from rag_selectivity.wording import counted

#: The queries that a comparison with a stored report uses.
ON = ("all", "shared")
_FEWEST_SHARED = 2
#: Two figures with a smaller relative difference are equal but for rounding.
SAME = 1e-11


@dataclass(frozen=True, slots=True)
class Since:
    """The differences of a run from its stored form, in the order of the measures.

    Attributes
    ----------
    rows : tuple of RunDifference
        As judged, each as a family of its own. What cannot be compared has a reason and no difference.
    note : str
        With `on="shared"`, over how many queries; else empty.
    """

    rows: tuple[RunDifference, ...]
    note: str = ""


def differences_since(
    report: Report | ClaimReport,
    run: str,
    stored: Report | ClaimReport,
    measures: Sequence[Measure],
    *,
    on: str = "all",
) -> Since:
    """The figures of a run minus those that a stored report has of it, paired query by query.

    Parameters
    ----------
    report : Report or ClaimReport
    run : str
    stored : Report or ClaimReport
    measures : sequence of Measure
        With their depths.
    on : {"all", "shared"}
        `all` refuses a stored report with other queries or labels. `shared` compares over the queries that both have
        with the same labels, and computes both sides over these.

    Raises
    ------
    InputError
        If queries, labels, corpus size, scale, policy or judge differ (the message names what differs), if fewer than
        two queries are shared, or if the stored report lacks a measure.
    """
    if on not in ON:
        raise InputError(f"--on must be one of {', '.join(ON)}, got {on!r}")
    if isinstance(stored, ClaimReport) and isinstance(report, ClaimReport):
        stored.refuse_other(report.judge, list(report.runs))
    then, now = stored.run_like(run, len(report.runs)), report.runs[run]
    for measure in measures:
        if str(measure) not in then.estimates:
            raise InputError(f"{stored.path} has no {measure} of {run!r} (it has: {', '.join(then.estimates)})")
    what = "questions or reference answers" if isinstance(report, ClaimReport) else "judgments"
    pairing = _Pairing.of(run, now.figures, then.figures, str(stored.path), what, shared=on == "shared")
    of_now, of_then = ({key: as_judged(each) for key, each in of_run.estimates.items()} for of_run in (now, then))
    rows = []
    for measure in measures:
        pair = pairing.tables(measure)
        sides = Side(run, pair[0], of_now), Side(str(stored.path), pair[1], of_then)
        (row,) = differences_of(*sides, Testing(report.bootstrap))
        rows.append(pairing.without_difference(row, pair))
    return Since(tuple(rows), pairing.note)


def as_judged(estimate: Estimate) -> Estimate:
    """The estimate with the labels as they are, in place of one that rests on more."""
    if estimate.as_judged is None:
        return estimate
    low, high = estimate.as_judged_interval or (math.nan, math.nan)
    reason = None if math.isfinite(estimate.as_judged) else estimate.reason
    return replace(estimate, value=estimate.as_judged, low=low, high=high, reason=reason, basis=AS_JUDGED)


@dataclass(frozen=True, slots=True)
class _Pairing:
    """The queries of a run that are compared with those of its stored form.

    Attributes
    ----------
    now, then : Figures
        Of these queries alone, in the same order.
    same_pool : bool
    left_out : str
        What of the other queries differs.
    """

    now: Figures
    then: Figures
    path: str
    run: str
    same_pool: bool
    shared: bool
    left_out: str

    @classmethod
    def of(cls, run: str, now: Figures, then: Figures, path: str, what: str, *, shared: bool) -> _Pairing:
        """Pair the queries by their ids; with `shared`, those that have the same labels on both sides."""
        problem = f"{path} cannot be compared with run {run!r}"
        if now.facts.labels is None or then.facts.labels is None or now.rules is None or then.rules is None:
            raise InputError(
                f"{problem}: {'the report' if now.facts.labels is None else path} does not identify its queries and "
                f"judgments (reports of live retrievals and of counts never do); evaluate both with judgments"
            )
        if len(set(now.queries)) < len(now.queries):
            raise InputError(
                f"run {run!r} has two samples of one id, so they cannot be paired: give each an id (query_id)"
            )
        place = {query: row for row, query in enumerate(then.queries)}
        rows = np.array([place.get(query, -1) for query in now.queries], np.int64)
        known = rows >= 0
        alike = known & (now.facts.labels == then.facts.labels[rows])
        lacking = set(then.queries) - set(now.queries)
        groups = (
            ([now.queries[i] for i in np.flatnonzero(~known).tolist()], "only here"),
            ([query for query in then.queries if query in lacking], f"only in {path}"),
            ([now.queries[i] for i in np.flatnonzero(known & ~alike).tolist()], f"with other {what} in {path}"),
        )
        left_out = [f"{_queries(len(names))} {where} ({examples(names)})" for names, where in groups if names]
        chosen = np.flatnonzero(alike if shared else known)
        settings = _differing(now, then, chosen, rows[chosen], path)
        if settings or (left_out and not shared):
            mend = f"evaluate with the settings of {path}, or write that report again"
            if not settings:
                mend = f"use the queries that both have with the same {what} (--on shared), or write {path} again"
            found = [*settings, *([] if shared else left_out)]
            raise InputError(f"{problem}: {'; '.join(found)}. To compare them, {mend}")
        if shared and len(chosen) < _FEWEST_SHARED:
            raise InputError(
                f"{problem}: both have only {_queries(len(chosen))} with the same {what}, and at least "
                f"{_FEWEST_SHARED} are needed ({'; '.join(left_out)})"
            )
        some = now.where(chosen), then.where(rows[chosen])
        return cls(*some, path, run, now.rules.pool == then.rules.pool, shared, "; ".join(left_out) or "none")

    @property
    def note(self) -> str:
        """With `shared`, how many queries are compared and which are left out; else empty."""
        compared = (
            f"{self.run} and {self.path} are compared over {_queries(len(self.now.queries))} with the same labels"
        )
        return f"{compared}; left out: {self.left_out}" if self.shared else ""

    def tables(self, measure: Measure) -> tuple[Figures, Figures]:
        """One column on both sides; figures that differ only by rounding are made equal."""
        now, then = self.now.outcome(measure), self.then.outcome(measure)
        if now is None or then is None or len(then.parts) != len(now.parts):
            raise InputError(f"{self.path}: the figures of each query do not fit {measure}; write the file again")
        # A stored table has numbers alone: how they aggregate is the measure's.
        then = replace(now, parts=tuple(map(_without_last_digits, then.parts, now.parts)), refused=None)
        plan: Plan = [(measure.without_depth, np.array([WHOLE_LIST if measure.at is None else measure.at]))]
        return Figures(self.now.queries, plan, [now]), Figures(self.now.queries, plan, [then])

    def without_difference(self, row: RunDifference, pair: tuple[Figures, Figures]) -> RunDifference:
        """The row; without its difference and with the reason, if the two figures cannot be compared."""
        reason = None
        if row.measure.uses_pool and not self.same_pool:
            reason = f"{row.measure} uses the pool (--pool), and only one of the two was given one"
        elif self.shared and row.possible is not None:
            reason = "lists are judged in part, so it is a range, and --on shared cannot compare ranges"
        elif not self.shared:
            reason = self._undefined_in_one(*(each.outcomes[0].defined[:, 0] for each in pair))
        if reason is None:
            return row
        nothing = dict.fromkeys(("difference", "low", "high", "p"), math.nan)
        return replace(row, **nothing, test="", reason=reason)  # type: ignore[arg-type]

    def _undefined_in_one(self, now: NDArray[np.bool_], then: NDArray[np.bool_]) -> str | None:
        """A text that names the queries that have a figure in only one of the reports; None without any."""
        counts = []
        for only, where in ((now & ~then, "now"), (then & ~now, f"in {self.path}")):
            if only.any():
                named = [self.now.queries[i] for i in np.flatnonzero(only).tolist()]
                counts.append(f"{_queries(len(named))} with a figure only {where} ({examples(named)})")
        return f"{' and '.join(counts)}; --on shared compares the queries with a figure in both" if counts else None


def _without_last_digits(part: FloatArray, other: FloatArray) -> FloatArray:
    """The part, with the figures of the other where the two differ only by rounding."""
    same = np.abs(part - other) <= SAME * np.maximum(np.abs(part), np.abs(other))
    return np.where(same, other, part)


def _queries(count: int) -> str:
    return counted(count, "query", "queries")


def _differing(now: Figures, then: Figures, mine: IntArray, theirs: IntArray, path: str) -> list[str]:
    """What else must be the same on both sides and is not: rules, and N and weights of the paired queries."""
    given, stored = _rules_of(now), _rules_of(then)
    found = [
        f"{name} is {given.get(name, 'not given')} here and {stored.get(name, 'not given')} in {path}"
        for name in dict.fromkeys([*given, *stored])
        if given.get(name) != stored.get(name)
    ]
    facts = now.facts.over(mine), then.facts.over(theirs)
    weights = [None if each.weights is None else each.weights / each.weights[:1] for each in facts]
    columns = (("the corpus size N", facts[0].sizes, facts[1].sizes), ("the weight", weights[0], weights[1]))
    for name, here, there in columns:
        if here is None or there is None:
            if here is not there:
                only = f"here and not in {path}" if there is None else f"in {path} and not here"
                found.append(f"{name} is given {only}")
            continue
        rows = np.flatnonzero(~np.isclose(here, there, rtol=1e-9, atol=0.0))
        if len(rows) and np.ptp(here) == np.ptp(there) == 0:
            found.append(f"{name} is {here[0]:,.12g} here and {there[0]:,.12g} in {path}")
        elif len(rows):
            ends = zip(mine[rows[:3]].tolist(), here[rows].tolist(), there[rows].tolist(), strict=False)
            shown = ", ".join(f"{now.queries[i]!r}: {one:,.12g} here, {other:,.12g} there" for i, one, other in ends)
            found.append(f"{name} of {_queries(len(rows))} is not that in {path} ({shown})")
    return found


def _rules_of(figures: Figures) -> dict[str, str]:
    """The rules of a table by name, as a message shows them."""
    rules = figures.rules
    if rules is None:
        return {}
    passages = {} if rules.passages_of is None else {"passages_of": f"the table {rules.passages_of[:8]}"}
    return {"the scale": rules.scale, **{f"the policy {each}": rule for each, rule in rules.policy.items()}, **passages}
