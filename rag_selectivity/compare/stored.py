"""A run compared with its stored form: whether that is possible, over which queries, and how each figure changed."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from rag_selectivity.compare.differences import Testing, as_family, difference_rows
from rag_selectivity.errors import InputError, examples
from rag_selectivity.figures.figures import Figures
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.measures import Measure
from rag_selectivity.measures.base import Outcome, parse_measure
from rag_selectivity.measures.plan import plan_as_named
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.difference import Changes, FigureChange, RunDifference
from rag_selectivity.results.estimate import AS_JUDGED, Estimate
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.results.stored import ReportOrFile, read_report
from rag_selectivity.tables.cells import check_one_of
from rag_selectivity.wording import counted

#: The queries that a comparison with a stored report uses.
ALL, SHARED = "all", "shared"
_FEWEST_SHARED = 2


def differences_since(
    run: str,
    now: RunReport,
    then: RunReport,
    path: str,
    measures: Sequence[Measure],
    bootstrap: Bootstrap | None,
    *,
    on: str = ALL,
    labels: str = "judgments",
) -> tuple[list[RunDifference], str]:
    """The figures of a run minus those that a stored report has of it, paired query by query.

    Parameters
    ----------
    run, path : str
        The names of both sides: the run, and the file of the stored report.
    now, then : RunReport
    measures : sequence of Measure
        With their depths.
    bootstrap : Bootstrap or None
    on : {"all", "shared"}
        `all` refuses a stored report with other queries or labels. `shared` compares over the queries that both have
        with the same labels, and computes both sides over these.
    labels : str
        What the labels of a query are called.

    Returns
    -------
    rows : list of RunDifference
        As judged, each as a family of its own. What cannot be compared has a reason and no difference.
    note : str
        With `on="shared"`, over how many queries; else empty.

    Raises
    ------
    InputError
        If queries, labels, corpus size, scale or policy differ (the message names what differs), if fewer than two
        queries are shared, or if the stored report lacks a measure.
    """
    for measure in measures:
        if str(measure) not in then.estimates:
            raise InputError(f"{path} has no {measure} of {run!r} (it has: {', '.join(then.estimates)})")
    check_one_of("on (gates.on)", on, (ALL, SHARED))
    one, other, note = _paired(run, now.figures, then.figures, path, labels, on)
    pairs = [_columns(measure, one, other, path) for measure in measures]
    plan = plan_as_named(measures)
    tables = [replace(side, plan=plan, outcomes=[pair[i] for pair in pairs]) for i, side in enumerate((one, other))]
    estimates = [{key: as_judged(each) for key, each in side.estimates.items()} for side in (now, then)]
    rows, pools = [], {table.rules is not None and table.rules.pool for table in (now.figures, then.figures)}
    for row, pair in zip(difference_rows((run, path), tables, estimates, Testing(bootstrap)), pairs, strict=True):
        reason = _undefined_in_one(one.queries, pair, path) if on == ALL else None
        if row.measure.uses_pool and len(pools) > 1:
            reason = f"{row.measure} uses the pool (--pool), and only one of the two was given one"
        elif on == SHARED and row.possible is not None:
            reason = "lists are judged in part, so it is a range, and gates.on=shared cannot compare ranges"
        if reason is not None:
            row = replace(row, difference=math.nan, low=math.nan, high=math.nan, p=math.nan, test="", reason=reason)
        rows.append(row)
    return rows, note


def changes_since(report: Report, decision: Decision, stored: ReportOrFile, *, on: str = ALL) -> Changes:
    """The figures of a decision against those of a stored report, paired query by query.

    What differs between the two reports is not an error but a reason in the result.

    Parameters
    ----------
    report : Report
        With the lists of the runs; the decision was made from it.
    decision : Decision
    stored : Report or path
    on : {"all", "shared"}
        As in `differences_since`.

    Notes
    -----
    Holm's correction is over two families: the changes of all runs under the measure that ranks the runs, and the
    changes under all other measures. BoR changes exactly where Success does and shares its test. A figure that is the
    same for every query has no test and is in no family.
    """
    stored = read_report(stored)
    path, testing, ranking = str(stored.path or "the stored report"), Testing(report.bootstrap), str(decision.measure)
    cells = {line.run: {str(each.measure): each.estimate for each in line.figures.values()} for line in decision.lines}
    stored_as = {run: run for run in cells if run in stored.runs}
    if len(cells) == len(stored.runs) == 1:
        # With a single run on both sides its name does not matter.
        stored_as = dict(zip(cells, stored.runs, strict=True))
    changes, not_compared = dict[tuple[str, str], FigureChange](), dict[str, dict[str, str]]()
    notes = dict[str, None]()
    for run, name in stored_as.items():
        # A decision need not be about a K that the report has.
        then, shown = stored.runs[name], cells[run]
        both = [parse_measure(key) for key in shown if key in then.estimates]
        try:
            now = replace(report.runs[run], estimates=shown)
            rows, note = differences_since(run, now, then, path, both, report.bootstrap, on=on)
        except InputError as error:
            not_compared[run] = {"": str(error).removeprefix(_problem(run, path))}
            continue
        notes |= {note: None} if note else {}
        for row in rows:
            key = str(row.measure)
            # Without a success on both sides nothing has changed.
            if math.isnan(row.difference) and not row.value == row.baseline_value == -math.inf:
                not_compared.setdefault(run, {})[key] = row.reason or ""
            else:
                # Both are of the queries that are compared, which need not be all.
                before = replace(as_judged(then.estimates[key]), value=row.baseline_value)
                changes[run, key] = FigureChange(before, replace(as_judged(shown[key]), value=row.value), row)
    tests = dict[str, int]()
    for family in (ranking, ""):
        moved = [each.row for each in changes.values() if each.row.moved]
        tested, how = as_family([row for row in moved if (row.tested_as == ranking) == bool(family)], testing)
        tests[family] = how["family"]
        for row in tested:
            changes[row.run, str(row.measure)] = replace(changes[row.run, str(row.measure)], row=row)
    asked = {each.without_depth for each in report.measures}
    keys = [key for key in dict.fromkeys(chain(*cells.values())) if parse_measure(key).without_depth in asked]
    return Changes(
        name=path if stored.path is None else stored.path.name,
        figures=tuple(changes.values()),
        stored_as=stored_as,
        new=tuple(run for run in cells if run not in stored_as),
        gone=tuple(name for name in stored.runs if name not in stored_as.values()),
        not_compared=not_compared,
        not_stored=tuple(key for key in keys if not any(key in run.estimates for run in stored.runs.values())),
        level=None if report.bootstrap is None else report.bootstrap.level,
        tests=tests,
        as_judged=any(each.basis != AS_JUDGED for shown in cells.values() for each in shown.values()),
        notes=tuple(notes),
    )


def as_judged(estimate: Estimate) -> Estimate:
    """The estimate with the labels as they are, in place of one that rests on more."""
    if estimate.as_judged is None:
        return estimate
    low, high = estimate.as_judged_interval or (math.nan, math.nan)
    reason = None if math.isfinite(estimate.as_judged) else estimate.reason
    return replace(estimate, value=estimate.as_judged, low=low, high=high, reason=reason, basis=AS_JUDGED)


def _problem(run: str, path: str) -> str:
    return f"{path} cannot be compared with run {run!r}: "


def _paired(run: str, now: Figures, then: Figures, path: str, labels: str, on: str) -> tuple[Figures, Figures, str]:
    """The rows of the queries that are compared, in the same order, and with `shared` a note on them.

    Queries are paired by their ids; with `shared`, those that have the same labels on both sides.
    """
    problem, hashes = _problem(run, path), (now.facts.labels, then.facts.labels)
    if hashes[0] is None or hashes[1] is None:
        raise InputError(
            f"{problem}{'the report' if hashes[0] is None else path} does not identify its queries and judgments "
            f"(reports of live retrievals and of counts never do); evaluate both with judgments"
        )
    place, asked = {query: row for row, query in enumerate(then.queries)}, set(now.queries)
    if len(asked) < len(now.queries):
        raise InputError(f"run {run!r} has two samples of one id, so they cannot be paired: give each an id (query_id)")
    rows = np.array([place.get(query, -1) for query in now.queries], np.int64)
    known, names = rows >= 0, np.array(now.queries, object)
    alike = known & (hashes[0] == hashes[1][rows])
    groups = (
        (names[~known].tolist(), "only here"),
        ([query for query in place if query not in asked], f"only in {path}"),
        (names[known & ~alike].tolist(), f"with other {labels} in {path}"),
    )
    left_out = "; ".join(f"{_queries(len(ids))} {where} ({examples(ids)})" for ids, where in groups if ids)
    chosen = np.flatnonzero(alike if on == SHARED else known)
    one, other = now.where(chosen), then.where(rows[chosen])
    settings = "; ".join(_other_settings(one, other, path))
    if settings or (left_out and on == ALL):
        shared = f"use the queries that both have with the same {labels} (-c gates.on=shared), or "
        mend = f"{shared * int(alike.sum() >= _FEWEST_SHARED)}write {path} again"
        if settings:
            mend = f"evaluate with the settings of {path}, or write that report again"
        found = [settings, left_out if on == ALL else ""]
        raise InputError(f"{problem}{'; '.join(filter(None, found))}. To compare them, {mend}")
    over = f"{_queries(len(chosen))} with the same"
    if on == SHARED and len(chosen) < _FEWEST_SHARED:
        needed = f"at least {_FEWEST_SHARED} are needed ({left_out})"
        raise InputError(f"{problem}both have only {over} {labels}, and {needed}")
    note = f"{run} and {path} are compared over {over} labels; left out: {left_out or 'none'}"
    return one, other, note if on == SHARED else ""


def _other_settings(now: Figures, then: Figures, path: str) -> Iterator[str]:
    """Which rules differ, and whether N and the weights of the queries do."""
    named = []
    for rules in filter(None, (now.rules, then.rules)):
        passages = {} if rules.passages_of is None else {"passages_of": f"the table {rules.passages_of[:8]}"}
        policy = {f"the policy {each}": rule for each, rule in rules.policy.items()}
        named.append({"the scale": rules.scale, **policy, **passages})
    for name in dict.fromkeys(name for rules in named for name in rules):
        texts = [rules.get(name, "not given") for rules in named]
        if texts[0] != texts[-1]:
            yield f"{name} is {texts[0]} here and {texts[-1]} in {path}"
    facts = now.facts, then.facts
    weights = [None if each.weights is None else each.weights / each.weights[:1] for each in facts]
    columns = (("the corpus size N", facts[0].sizes, facts[1].sizes), ("the weight", weights[0], weights[1]))
    for name, here, there in columns:
        if here is None or there is None:
            if here is not there:
                yield f"{name} is given {f'here and not in {path}' if there is None else f'in {path} and not here'}"
            continue
        rows = np.flatnonzero(~np.isclose(here, there, rtol=1e-9, atol=0.0))
        if len(rows) and np.ptp(here) == np.ptp(there) == 0:
            yield f"{name} is {here[0]:,.12g} here and {there[0]:,.12g} in {path}"
        elif len(rows):
            first = (f"{now.queries[i]!r}: {here[i]:,.12g} here, {there[i]:,.12g} there" for i in rows[:3].tolist())
            yield f"{name} of {_queries(len(rows))} is not that in {path} ({', '.join(first)})"


def _columns(measure: Measure, now: Figures, then: Figures, path: str) -> tuple[Outcome, Outcome]:
    """One column on both sides."""
    one, other = now.outcome(measure), then.outcome(measure)
    if one is None or other is None or len(other.parts) != len(one.parts):
        raise InputError(f"{path}: the figures of each query do not fit {measure}; write the file again")
    # A stored table has numbers alone: how they aggregate is the measure's.
    return one, replace(one, parts=other.parts, refused=None)


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
