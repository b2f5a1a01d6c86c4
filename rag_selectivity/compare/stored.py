"""A run compared with its stored form: whether that is possible, over which queries, and how each figure changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_selectivity.compare.differences import Side, Testing, differences_of
from rag_selectivity.errors import InputError, examples
from rag_selectivity.figures.figures import Figures, Rules
from rag_selectivity.measures import Measure
from rag_selectivity.measures.base import WHOLE_LIST, FloatArray, Outcome
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
        raise InputError(f"on (gates.on) must be one of {', '.join(ON)}, got {on!r}")
    what = "judgments"
    if isinstance(stored, ClaimReport) and isinstance(report, ClaimReport):
        stored.refuse_other(report.judge, list(report.runs))
        what = "questions or reference answers"
    path, reports = str(stored.path), (report.runs[run], stored.run_like(run, len(report.runs)))
    for measure in measures:
        if str(measure) not in reports[1].estimates:
            raise InputError(f"{path} has no {measure} of {run!r} (it has: {', '.join(reports[1].estimates)})")
    now, then, note = _paired(run, reports[0].figures, reports[1].figures, path, what, shared=on == "shared")
    pools = [of_run.figures.rules and of_run.figures.rules.pool for of_run in reports]
    estimates = [{key: as_judged(each) for key, each in of_run.estimates.items()} for of_run in reports]
    rows = []
    for measure in measures:
        pair = _columns(measure, now, then, path)
        plan = [(measure.without_depth, np.array([WHOLE_LIST if measure.at is None else measure.at]))]
        one, other = (Figures(now.queries, plan, [outcome]) for outcome in pair)
        (row,) = differences_of(
            Side(run, one, estimates[0]), Side(path, other, estimates[1]), Testing(report.bootstrap)
        )
        reason = None
        if measure.uses_pool and pools[0] != pools[1]:
            reason = f"{measure} uses the pool (--pool), and only one of the two was given one"
        elif on == "all":
            reason = _undefined_in_one(now.queries, pair, path)
        elif row.possible is not None:
            reason = "lists are judged in part, so it is a range, and gates.on=shared cannot compare ranges"
        if reason is not None:
            row = replace(row, difference=math.nan, low=math.nan, high=math.nan, p=math.nan, test="", reason=reason)
        rows.append(row)
    return Since(tuple(rows), note)


def as_judged(estimate: Estimate) -> Estimate:
    """The estimate with the labels as they are, in place of one that rests on more."""
    if estimate.as_judged is None:
        return estimate
    low, high = estimate.as_judged_interval or (math.nan, math.nan)
    reason = None if math.isfinite(estimate.as_judged) else estimate.reason
    return replace(estimate, value=estimate.as_judged, low=low, high=high, reason=reason, basis=AS_JUDGED)


def _paired(
    run: str, now: Figures, then: Figures, path: str, what: str, *, shared: bool
) -> tuple[Figures, Figures, str]:
    """The rows of the queries that are compared, in the same order, and with `shared` a note on them.

    Queries are paired by their ids; with `shared`, those that have the same labels on both sides.
    """
    problem = f"{path} cannot be compared with run {run!r}"
    labels = now.facts.labels, then.facts.labels
    if labels[0] is None or labels[1] is None or now.rules is None or then.rules is None:
        raise InputError(
            f"{problem}: {'the report' if labels[0] is None else path} does not identify its queries and "
            f"judgments (reports of live retrievals and of counts never do); evaluate both with judgments"
        )
    if len(set(now.queries)) < len(now.queries):
        raise InputError(f"run {run!r} has two samples of one id, so they cannot be paired: give each an id (query_id)")
    place = {query: row for row, query in enumerate(then.queries)}
    rows = np.array([place.get(query, -1) for query in now.queries], np.int64)
    known = rows >= 0
    alike = known & (labels[0] == labels[1][rows])
    names, only_then = np.array(now.queries, object), set(then.queries) - set(now.queries)
    groups = (
        (names[~known].tolist(), "only here"),
        ([query for query in then.queries if query in only_then], f"only in {path}"),
        (names[known & ~alike].tolist(), f"with other {what} in {path}"),
    )
    left_out = "; ".join(f"{_queries(len(ids))} {where} ({examples(ids)})" for ids, where in groups if ids)
    chosen = np.flatnonzero(alike if shared else known)
    settings = [*_other_rules(now.rules, then.rules, path), *_other_facts(now, then, chosen, rows[chosen], path)]
    found = [*settings, *([left_out] if left_out and not shared else [])]
    if found:
        mend = f"use the queries that both have with the same {what} (-c gates.on=shared), or write {path} again"
        if settings:
            mend = f"evaluate with the settings of {path}, or write that report again"
        raise InputError(f"{problem}: {'; '.join(found)}. To compare them, {mend}")
    if shared and len(chosen) < _FEWEST_SHARED:
        raise InputError(
            f"{problem}: both have only {_queries(len(chosen))} with the same {what}, and at least {_FEWEST_SHARED} "
            f"are needed ({left_out})"
        )
    note = f"{run} and {path} are compared over {_queries(len(chosen))} with the same labels"
    note = f"{note}; left out: {left_out or 'none'}" if shared else ""
    return now.where(chosen), then.where(rows[chosen]), note


def _other_rules(given: Rules, stored: Rules, path: str) -> Iterator[str]:
    """Which rules of the two tables differ."""
    named = []
    for rules in (given, stored):
        passages = {} if rules.passages_of is None else {"passages_of": f"the table {rules.passages_of[:8]}"}
        policy = {f"the policy {each}": rule for each, rule in rules.policy.items()}
        named.append({"the scale": rules.scale, **policy, **passages})
    for name in dict.fromkeys([*named[0], *named[1]]):
        here, there = (each.get(name, "not given") for each in named)
        if here != there:
            yield f"{name} is {here} here and {there} in {path}"


def _other_facts(now: Figures, then: Figures, mine: IntArray, theirs: IntArray, path: str) -> Iterator[str]:
    """Whether N and the weights of the paired queries differ."""
    facts = now.facts.over(mine), then.facts.over(theirs)
    weights = [None if each.weights is None else each.weights / each.weights[:1] for each in facts]
    columns = (("the corpus size N", facts[0].sizes, facts[1].sizes), ("the weight", weights[0], weights[1]))
    for name, here, there in columns:
        if here is None or there is None:
            if here is not there:
                only = f"here and not in {path}" if there is None else f"in {path} and not here"
                yield f"{name} is given {only}"
            continue
        rows = np.flatnonzero(~np.isclose(here, there, rtol=1e-9, atol=0.0))
        if len(rows) and np.ptp(here) == np.ptp(there) == 0:
            yield f"{name} is {here[0]:,.12g} here and {there[0]:,.12g} in {path}"
        elif len(rows):
            shown = ", ".join(
                f"{now.queries[mine[row]]!r}: {here[row]:,.12g} here, {there[row]:,.12g} there" for row in rows[:3]
            )
            yield f"{name} of {_queries(len(rows))} is not that in {path} ({shown})"


def _columns(measure: Measure, now: Figures, then: Figures, path: str) -> tuple[Outcome, Outcome]:
    """One column on both sides; figures that differ only by rounding are made equal."""
    one, other = now.outcome(measure), then.outcome(measure)
    if one is None or other is None or len(other.parts) != len(one.parts):
        raise InputError(f"{path}: the figures of each query do not fit {measure}; write the file again")
    # A stored table has numbers alone: how they aggregate is the measure's.
    return one, replace(one, parts=tuple(map(_rounded_to, one.parts, other.parts)), refused=None)


def _rounded_to(part: FloatArray, other: FloatArray) -> FloatArray:
    """The other part, with the figures of this one where the two differ only by rounding."""
    same = np.abs(part - other) <= SAME * np.maximum(np.abs(part), np.abs(other))
    return np.where(same, part, other)


def _undefined_in_one(queries: Sequence[str], pair: tuple[Outcome, Outcome], path: str) -> str | None:
    """A text that names the queries that have a figure in only one of the reports; None without any."""
    now, then = (outcome.defined[:, 0] for outcome in pair)
    counts = []
    for only, where in ((now & ~then, "now"), (then & ~now, f"in {path}")):
        named = [queries[i] for i in np.flatnonzero(only).tolist()]
        if named:
            counts.append(f"{_queries(len(named))} with a figure only {where} ({examples(named)})")
    return f"{' and '.join(counts)}; gates.on=shared compares the queries with a figure in both" if counts else None


def _queries(count: int) -> str:
    return counted(count, "query", "queries")
