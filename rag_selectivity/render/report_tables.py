"""A report and a comparison as tables: figures over K, those of slices, differences, changes, and notes."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.judged.token_budget import is_budget
from rag_selectivity.measures.base import Measure, Real, parse_measure
from rag_selectivity.measures.chance import BoR, BoR_max, Delta, Lambda, regime
from rag_selectivity.measures.plan import USUAL_DEPTH, at_depth, nearest_depth, without_depth
from rag_selectivity.measures.utility import PROC, PercentPROC
from rag_selectivity.render.blocks import (
    BLANK,
    Block,
    Column,
    Heading,
    Note,
    Table,
    bare,
    caveat_lines,
    cell,
    difference,
    entry,
    grouped,
    notes,
    p_value,
    shown,
    table_of,
)
from rag_selectivity.render.first_screen import MOST_NOTES, NO_FIGURE, cost_notes, first_screen, longest_list
from rag_selectivity.results.difference import BETTER, UNCHANGED, VERDICTS, WORSE, Changes, FigureChange, RunDifference
from rag_selectivity.results.estimate import AS_JUDGED, CALIBRATED, NOTE, WITH_CONTROLS, Estimate
from rag_selectivity.results.report import Comparison, Report
from rag_selectivity.results.run_report import FEWEST, RunReport, Slice
from rag_selectivity.wording import between, counted, enumeration, level_text, number, signed

#: The mark of a slice with few queries.
FEW = "*"


@shown(Report, "What retrieval is worth")
def report_blocks(report: Report) -> Iterable[Block]:
    """What the first screen has no room for: further notes, and more on its answers; then the blocks of each run."""
    screen = first_screen(report)
    yield from map(Note, screen.notes[MOST_NOTES:])
    yield from (Note(line) for answer in screen.answers for line in answer.more.splitlines())
    for name, run in report.runs.items():
        size = f", N = {report.corpus_size:,}" if report.corpus_size is not None else ""
        queries = counted(len(run.queries) or run.evaluated, "query", "queries") + " (weighted)" * bool(report.weights)
        yield Heading(f"{name}: {queries}{size}, {report.scale} scale")
        yield from run_blocks(report, name)
    if report.decision is not None:
        yield from cost_notes(report.decision)


def run_blocks(report: Report, name: str) -> Iterator[Block]:
    """All figures of a run, its slices, and the notes."""
    run = report.runs[name]
    tables = [_over_k(report, name, run), _of_whole_lists(report, run), _with_controls(run)]
    yield from (table for table in tables if len(table.header) > 1 and table.rows)
    yield from notes(_notes(report, run))
    for column, by_value in run.slices.items():
        yield Heading(f"{name} by {column}")
        yield from _slice_blocks(report, by_value)


# -- the figures of a run ------------------------------------------------------------------------------------


def _over_k(report: Report, name: str, run: RunReport) -> Table:
    """One row for each depth, one column for each measure; ΔBoR beside BoR, and K/N_p beside lambda."""
    columns: list[Column] = [("K", str)]
    for base in without_depth(report.measures):
        cells = {k: at_depth(run.estimates, base, k) for k in report.cutoffs}
        # IPrec@1 is at recall 1, not at K = 1.
        if isinstance(base.cutoff, Real) or not any(cells.values()):
            continue
        has_ends = any(each is not None and not math.isnan(each.low) for each in cells.values())
        ends = f" [{level_text(report.settings['level'])}]" if has_ends and base.higher_is_better is not None else ""
        columns.append((f"{base}{ends}", cells.get, _style_of(base)))
        if base == PercentPROC() and at_depth(run.estimates, PROC(), report.cutoffs[0]) is not None:
            columns.append(("who lost it (queries)", lambda k: _loss(report, name, k)))
        if isinstance(base, Lambda):
            columns.append(("slots per relevant", report.slots_per_relevant(name, rel=base.rel).get))
        if isinstance(base, BoR) and any(each is not None and not math.isnan(each.value) for each in cells.values()):
            changes = list(_changes(report, name, base))
            columns.append(("change", {k: found.observed for k, found in changes}.get))
            columns.append(("predicted change", {k: found.predicted for k, found in changes}.get))
    return table_of(report.cutoffs, *columns, breaks=True)


def _style_of(base: Measure) -> Callable[[Estimate], str]:
    return _ceiling if isinstance(base, BoR_max) else bare if base.higher_is_better is None else cell


def _ceiling(estimate: Estimate) -> str:
    """A ceiling with the regime of its K, unless that is healthy: it is −log2 of the mean RandomSuccess."""
    of_k = regime(2**-estimate.value)
    return bare(estimate) if of_k == "healthy" else f"{of_k} {bare(estimate)}"


def _loss(report: Report, name: str, depth: int) -> str | None:
    """In how many queries each step is the weak one: a test, which the first answers name, shows who lost more."""
    with suppress(InputError):
        of_queries = report.diagnosis(name, depth).counts.items()
        weak = {what.removesuffix("-limited").removeprefix("limited by "): n for what, n in of_queries}
        return ", ".join(f"{step} {weak[step]}" for step in sorted(weak) if step != "healthy") or None
    return None


def _changes(report: Report, name: str, base: BoR) -> Iterator[tuple[int, Delta]]:
    """ΔBoR from the depth before, observed and predicted, for each depth; none without Success."""
    # Between budgets of tokens K differs from query to query.
    depths = [k for k in report.depths if at_depth(report.runs[name].estimates, base, k) and not is_budget(k)]
    with suppress(InputError):
        for before, depth in pairwise(depths):
            yield depth, report.delta(name, base, before, depth)


def _of_whole_lists(report: Report, run: RunReport) -> Table:
    """Each measure of whole lists, and each point of a precision–recall curve."""
    measured = {parse_measure(key): each for key, each in run.estimates.items()}
    rows = [
        (measure, each)
        for base in without_depth(report.measures)
        for measure, each in measured.items()
        if measure == base or (isinstance(base.cutoff, Real) and replace(measure, at=None) == base)
    ]
    return table_of(rows, ("measure", lambda row: row[0]), ("figure", lambda row: row[1]))


def _with_controls(run: RunReport) -> Table:
    """What random passages that the judge graded show of each BoR, in bits."""
    facts = run.input.get("controls") or {"can_show": {}, "used": {}, "graded": 0}
    rows = [(k, each) for k, each in run.estimates.items() if each.basis == WITH_CONTROLS and each.shown is not None]
    return table_of(
        rows,
        ("with random passages", lambda row: row[0]),
        ("bits", lambda row: row[1]),
        ("at least", lambda row: max(row[1].shown, 0.0)),
        ("so many show at most", lambda row: max(facts["can_show"].get(row[0], math.nan), 0.0)),
        ("without them", lambda row: row[1].as_judged),
        ("random passages", lambda row: facts["used"].get(row[0], facts["graded"])),
        breaks=True,
    )


def _notes(report: Report, run: RunReport) -> Iterator[str]:
    """Figures that are missing, and the caveats; the first screen has said what was left out."""
    yield from (note for note in run.notes if note.startswith(NO_FIGURE))
    if deeper := [str(k) for k in report.cutoffs if 0 < (longest := longest_list(run)) < k]:
        ends = f"no list has more than {counted(longest, 'passage')}: at K = {enumeration(deeper)}"
        yield f"{ends} the missing are neither relevant nor junk"
    of_all = {each.code for each in run.label_caveats}
    own = (
        (key, str(replace(parse_measure(key), at=None)), caveat)
        for key, estimate in run.estimates.items()
        for caveat in estimate.caveats
        if caveat.code not in of_all
    )
    yield from caveat_lines(own)
    # What is the same for all runs stands once, below the last.
    if run is list(report.runs.values())[-1]:
        missing = grouped((reason, measure) for measure, reason in report.absent.items())
        yield from (f"{enumeration(measures)} could not be measured: {reason}" for reason, measures in missing.items())
        yield from caveat_lines(("", "all, marked or not", each) for each in run.label_caveats if each.level != NOTE)


# -- slices --------------------------------------------------------------------------------------------------


def _slice_blocks(report: Report, by_value: Mapping[str, Slice]) -> Iterator[Block]:
    """A row for each slice, at the depth nearest to the K of the decision, or to the usual one, and notes."""
    parts = list(by_value.values())
    measures = [parse_measure(key) for key in parts[0].estimates]
    shown = at_one_depth(measures, report)
    columns = [(str(measure), entry("estimates", str(measure)), _style_of(measure)) for measure in shown]
    yield table_of(parts, ("", lambda part: f"{part.value}{FEW * part.few}"), "queries", *columns, breaks=True)
    if any(part.few for part in parts):
        yield Note(f"{FEW} under {FEWEST} queries: the figures say little", "note")
    if left_out := len(measures) - len(shown):
        yield Note(f"{counted(left_out, 'further figure')} of each slice: in JSON, CSV and DataFrames", "note")
    figures = [(part.value, str(measure), part[measure]) for part in parts for measure in shown]
    of_slices = ((value, name, caveat) for value, name, each in figures for caveat in each.caveats)
    yield from notes(caveat_lines(of_slices, len(parts)))
    yield from reasons((f"{name} of", value, each.value, each.reason) for value, name, each in figures)


def reasons(figures: Iterable[tuple[str, str, float, str | None]]) -> Iterator[Note]:
    """Why figures do not exist, from what there is none of, and where; those with the same reason together."""
    missing = grouped(((what, why), where) for what, where, value, why in figures if why and math.isnan(value))
    yield from notes(f"no {what} {', '.join(places)}: {why}" for (what, why), places in missing.items())


def at_one_depth(measures: Sequence[Measure], report: Report) -> list[Measure]:
    """The measures at the one rank that a table shows, and those of whole lists; no curve over recall levels."""
    ranks = {measure: measure.at for measure in measures if isinstance(measure.at, int) and not is_budget(measure.at)}
    near = nearest_depth(ranks.values(), USUAL_DEPTH if report.decision is None else report.decision.K)
    return [x for x in measures if (x not in ranks or x.at == near) and not isinstance(x.cutoff, Real)]


@shown(Comparison, "Runs compared")
def comparison_blocks(comparison: Comparison) -> Iterable[Block]:
    """All differences of a comparison, those within slices, and what costs show."""
    for name in dict.fromkeys(row.run for row in comparison.rows):
        of_run = [row for row in comparison.rows if row.run == name]
        yield from difference_blocks(of_run, comparison.settings, comparison.notes)
        for column, by_value in comparison.slices.items():
            if rows := [row for part in by_value.values() for row in part.rows if row.run == name]:
                yield Heading(f"{name} compared with {comparison.baseline} by {column}")
                yield from _slice_differences(rows, comparison)
    if comparison.settings["paired"] and any(row.test for row in comparison.rows):
        yield Note("the first answer tests all pairs of runs, in one measure and as a family of their own")
    if comparison.report.decision is not None:
        yield from cost_notes(comparison.report.decision)


def difference_blocks(
    rows: Sequence[RunDifference], settings: Mapping[str, Any], notes: Sequence[str] = ()
) -> Iterator[Block]:
    """A table for each run that is compared with the baseline, and what is to be said of it."""
    for name in dict.fromkeys(row.run for row in rows):
        of_run = [row for row in rows if row.run == name]
        queries = counted(of_run[0].n_total, "query", "queries") + " (weighted)" * ("weights" in settings)
        if not settings["paired"]:
            others = counted(max(row.n_baseline for row in of_run), "query", "queries")
            queries = f"{max(row.n for row in of_run):,} and {others}, unpaired"
        yield Heading(f"{name} compared with {of_run[0].baseline}: {queries}")
        yield table_of(
            of_run,
            ("", "measure"),
            *_figures_of_both(of_run),
            _interval_column(settings),
            ("p Holm", "p_adjusted", p_value),
            ("W/T/L", lambda row: f"{row.wins}/{row.ties}/{row.losses}" if row.wins + row.ties + row.losses else None),
            ("shows ≥", "detectable"),
        )
        yield from _findings(of_run, settings)
        yield from map(Note, notes)


def _figures_of_both(rows: Sequence[RunDifference]) -> Sequence[Column]:
    """The figures of both runs; with labels by people none, since a difference need not be that of its two figures."""
    return () if any(row.basis == CALIBRATED for row in rows) else (("base", "baseline_value"), ("run", "value"))


def _interval_column(settings: Mapping[str, Any]) -> Column:
    title = f"difference [{level_text(settings['level'])}, unadjusted]"
    return title, lambda row: row if row.test else None, difference


def _findings(rows: Sequence[RunDifference], settings: Mapping[str, Any]) -> Iterator[Note]:
    """The notes below a table: verdicts, ranges, caveats, and the queries with the largest differences."""
    tested = [row for row in rows if row.test]
    for verdict in VERDICTS:
        if names := [str(row.measure) for row in tested if row.verdict == verdict]:
            yield Note(f"{verdict}: {', '.join(names)}")
    for row in tested:
        if row.possible is not None:
            yield Note(f"{row.measure}: the difference is {between(row.possible)}, whatever the unjudged passages are")
    yield from map(Note, caveat_lines(("", str(row.measure), each) for row in rows for each in row.caveats))
    if calibrated := [row for row in rows if row.basis == CALIBRATED]:
        of_labels = ((row.measure, math.nan if row.as_judged is None else row.as_judged) for row in calibrated)
        as_judged = ", ".join(f"{measure} {signed(value)}" for measure, value in of_labels)
        yield Note(f"differences as judged: {as_judged}; W/T/L and the queries below are as judged too")
    yield from reasons(("calibrated difference for", str(x.measure), x.difference, x.reason) for x in calibrated)
    if any(not math.isnan(row.detectable) for row in tested):
        power, family = level_text(settings["power"]), counted(settings["family"], "test")
        least = f"the smallest true difference that is shown with a power of {power}, at the level of"
        yield Note(f"shows ≥: {least} Holm's correction for a family of {family}")
    # Of differences that are all the same, as those in Success are, the first ones are the largest by chance.
    found = (x for x in rows if getattr(x.measure, "per_query", True) and len({abs(m.difference) for m in x.moved}) > 1)
    if (first := next(found, None)) is not None:
        moved = ", ".join(f"{m.query} ({number(m.baseline_value)} → {number(m.value)})" for m in first.moved)
        yield Note(f"largest differences in {first.measure}: {moved}")


def _slice_differences(rows: Sequence[RunDifference], comparison: Comparison) -> Iterator[Block]:
    """The differences of a run in the slices of a column."""
    tested = dict.fromkeys(row.measure for row in rows if row.test and isinstance(row.measure, Measure))
    shown = [row for measure in at_one_depth(list(tested), comparison.report) for row in rows if row.measure == measure]
    yield table_of(
        shown,
        ("", "measure"),
        ("slice", lambda row: f"{_slice_of(row)}{FEW if row.few else ''}"),
        ("n", lambda row: row.n if row.n == row.n_baseline else f"{row.n:,}, {row.n_baseline:,}"),
        *_figures_of_both(shown),
        _interval_column(comparison.settings),
        ("p Holm", "p_adjusted", p_value),
        ("verdict", lambda row: BLANK if row.few else row.verdict),
    )
    if any(row.few for row in shown):
        yield Note(f"{FEW} under {FEWEST} queries: no verdict")
    yield from reasons((f"{row.measure} of", _slice_of(row), row.difference, row.reason) for row in shown)
    mixed = {row.measure for row in shown if row.basis == WITH_CONTROLS}
    if own := [f"{x.measure} of {_slice_of(x)}" for x in shown if x.n and x.measure in mixed and x.basis == AS_JUDGED]:
        yield Note(f"as judged, the other slices with random controls: {', '.join(own)}")
    yield Note(f"p Holm: over {counted(comparison.settings['family_of_slices'], 'test')} in all slices, at all depths")


def _slice_of(row: RunDifference) -> str:
    return "" if row.by is None else row.by[1]


# -- since a stored report -------------------------------------------------------------------------------


def change_blocks(changes: Changes) -> Iterator[Block]:
    """The figures of a decision before and now, those with a shown change first, and what was not compared."""
    yield Heading(f"What changed against {changes.name}")
    changed, same = list[FigureChange](), []
    for run, figures in grouped((each.row.run, each) for each in changes.figures).items():
        if run not in changes.not_compared and all(each.verdict == UNCHANGED for each in figures):
            same.append(run)
        else:
            changed += figures
    if changed:
        called = {run: run if was == run else f"{run} (was {was})" for run, was in changes.stored_as.items()}
        how = ", as judged" if changes.as_judged else ""
        yield table_of(
            # Changes that a reader must not miss come first.
            sorted(changed, key=lambda each: [WORSE, BETTER, each.verdict].index(each.verdict)),
            ("run", lambda each: called[each.row.run]),
            ("", "row.measure"),
            (f"before{how}", lambda each: bare(replace(each.before, caveats=()))),
            (f"now{how}", lambda each: bare(replace(each.now, caveats=()))),
            ("difference", lambda each: None if each.before.possible or each.now.possible else each.row, difference),
            "verdict",
        )
        yield Note(_about_tests(changes))
    for what, names in (
        ("Unchanged at every query", same),
        (f"New, without a figure in {changes.name}", changes.new),
        (f"Gone, only in {changes.name}", changes.gone),
        (f"Not in {changes.name}", changes.not_stored),
    ):
        if names:
            yield Note(f"{what}: {enumeration(names)}.")
    for run, reasons_of in sorted(changes.not_compared.items(), key=lambda each: "" not in each[1]):
        for measure, reason in reasons_of.items():
            yield Note(f"Not compared: {f'{measure} of {run}' if measure else run}: {reason.rstrip('.')}.")
    yield from (Note(f"{note}.") for note in changes.notes)


def _about_tests(changes: Changes) -> str:
    if changes.level is None:
        return "The difference is now − before."
    families = [f"{counted(n, 'test')} of {name or 'other measures'}" for name, n in changes.tests.items() if n]
    over = f", over {enumeration(families)}" if families else ""
    return (
        f"The difference is now − before, with its paired interval of {level_text(changes.level)}, not corrected; "
        f"better and worse are shown after Holm's correction{over}."
    )
