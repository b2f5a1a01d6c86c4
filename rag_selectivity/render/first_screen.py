"""The first screen of every view: five answers, one line each; one table of at most five columns; notes, each once."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_selectivity.advice.decide import decide
from rag_selectivity.errors import InputError
from rag_selectivity.figures.figures import rules_in
from rag_selectivity.judged.policy import Policy
from rag_selectivity.measures.base import Measure, Real
from rag_selectivity.measures.plan import USUAL_DEPTH, nearest_depth, page_measures, without_depth
from rag_selectivity.render.blocks import (
    BLANK,
    Block,
    Column,
    Heading,
    Lines,
    Note,
    Table,
    bare,
    caveat_lines,
    difference,
    entry,
    grouped,
    mark_of,
    shown,
    table_of,
)
from rag_selectivity.results.decision import Answer, Decision, RunFigure
from rag_selectivity.results.difference import BETTER, UNCHANGED, WORSE
from rag_selectivity.results.estimate import CALIBRATED, WITH_CONTROLS, Caveat, Estimate
from rag_selectivity.results.provenance import NO_AGREEMENT, NOTHING
from rag_selectivity.results.report import Comparison, Report
from rag_selectivity.results.run_report import RunReport
from rag_selectivity.wording import MARKS, amount, counted, enumeration, level_text, named, number

#: The columns beside the run, in their order, where the report measured them; else what it was asked for.
COLUMNS = ("RA-nWG", "BoR", "Harm", "Success")
_SUBTITLES = {
    "BoR": "bits over random",
    "Success": "share of the queries",
    "RA-nWG": "best evidence shown",
    "PROC": "best evidence in the pool",
    "%PROC": "selected from the pool",
    "Harm": "share of junk",
}
#: So many notes stand on the first screen of a text; the others are among its details.
MOST_NOTES = 6
#: How a note of a run begins that says which figures there are none of, and how the reason ends where lists repeat.
NO_FIGURE, _REPEATS = "no figure for", "[repeated-passages]"
_SIGNS = {BETTER: " +", WORSE: " −"}
_K_FROM = {
    "given": "the given K",
    "shown": "the most that was shown",
    "advised": "the K that is advised for the run with the most evidence",
    "reached": "the last rank that the lists of another run reach",
    "assumed": "assumed, since no K was given or advised",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of the table: a measure, and its figure of each run."""

    name: str
    title: str
    figures: Mapping[str, RunFigure]

    @property
    def subtitle(self) -> str:
        """What the measure is, in a few words, and the rank down to which passages were drawn for it."""
        caveats = (caveat for figure in self.figures.values() for caveat in figure.estimate.caveats)
        reach = next((f" down to rank {x.figures['last_rank']}" for x in caveats if "last_rank" in x.figures), "")
        return f"{_SUBTITLES.get(self.name, '')}{reach}".strip()


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """What a person sees first; `runs` are best first, and `facts` say what the figures are about."""

    answers: tuple[Answer, ...]
    heading: str
    runs: tuple[str, ...]
    columns: tuple[Shown, ...]
    facts: str
    notes: tuple[str, ...]

    def blocks(self) -> Iterator[Block]:
        """As text: of the notes the first six."""
        yield Lines(answer_lines(self.answers))
        if self.columns:
            yield Heading(self.heading)
            columns = [(column.title, column.figures.get, figure_cell) for column in self.columns]
            yield table_of(self.runs, ("run", str), *columns)
        yield from map(Note, self.notes[:MOST_NOTES])
        if len(self.notes) > MOST_NOTES:
            yield Note(f"… and {len(self.notes) - MOST_NOTES} more.")


def report_of(result: Report | Comparison) -> Report:
    """The report, or that of a comparison."""
    return result.report if isinstance(result, Comparison) else result


def first_screen(result: Report | Comparison) -> FirstScreen:
    """The answers, the table and the notes of a report, or of that of a comparison and of slices that disagree."""
    report, known = report_of(result), decided_on(result)
    if isinstance(known, str):
        decision, depth, answers = None, nearest_depth(report.depths), tuple(_answers_without(report, known))
    else:
        decision, depth, answers = known, known.K, (_first_answer(report, known), *known.answers[1:])
    if by_slice := list(_turned(result)) if isinstance(result, Comparison) else []:
        *before, act, trust = answers
        # Which run is better then depends on the question, however many are asked.
        others = [] if act.text.startswith("Ask more questions") else [act.text]
        answers = (*before, replace(act, text=" ".join([*by_slice, *others])), trust)
    runs = tuple(report.runs) if decision is None else tuple(line.run for line in decision.lines)
    columns = tuple(_columns(report, decision, runs, depth))
    is_at_k = any(figure.measure.at == depth for column in columns for figure in column.figures.values())
    heading = "Whole lists" if depth is None else f"At K = {depth}" if is_at_k else "As asked for"
    if decision is None:
        heading += f", {counted(report.evaluated, 'query', 'queries')}"
    elif len(runs) > 1:
        heading += f", by {decision.measure}"
    notes = _notes(report, decision, columns)
    return FirstScreen(answers, heading, runs, columns, _facts(report, decision), tuple(notes))


def decided_on(result: Report | Comparison) -> Decision | str:
    """The decision that a report holds, or the one that its lists give, made once; or why there is none."""
    report = report_of(result)
    if report.decision is not None:
        return report.decision
    # A report is frozen, and this is no part of its value: it follows from the rest.
    made: dict[Any, Decision | str] = vars(report).setdefault("_decided", {})
    about = (result.baseline, result.settings["paired"]) if isinstance(result, Comparison) else (None, True)
    if about not in made:
        made[about] = _decided(report, *about)
    return made[about]


def _decided(report: Report, baseline: str | None, paired: bool) -> Decision | str:
    # The depth of a measure is no K that was given.
    is_given = len(report.depths) == 1 and any(x.at is None and not x.takes_whole_lists for x in report.measures)
    try:
        return decide(report, k=report.depths[0] if is_given else None, baseline=baseline, paired=paired)
    except InputError as error:
        return str(error)


# -- the answers ---------------------------------------------------------------------------------------


def answer_lines(answers: Iterable[Answer]) -> list[str]:
    """Each answer on a line."""
    return [f"{answer.code.capitalize()}: {' '.join(answer.text.split())}" for answer in answers]


def _first_answer(report: Report, decision: Decision) -> Answer:
    """What the decision says, or how the figures of the only run changed since a stored report."""
    system, changes, measure = decision.answers[0], report.changes, decision.measure
    if changes is None or len(report.runs) > 1:
        return system
    row = next((each.row for each in changes.figures if each.row.measure == measure), None)
    if row is None:
        unknown = f"Whether {measure} changed since {changes.name} is not known (see below)."
        return replace(system, text=f"{unknown} {system.text}")
    now = f"{measure} is {number(row.value)}, before {number(row.baseline_value)} ({difference(row)})"
    said = [f"Against {changes.name}, {now}: {row.verdict if row.moved else UNCHANGED}"]
    said += ["as judged"] if changes.as_judged else []
    said += [f"by {judges} grades"] if (judges := report.trust.unchecked_judges) else []
    said += [f"over the {counted(row.n, 'query', 'queries')} that both have"] if changes.notes else []
    worse = [str(each.row.measure) for each in changes.figures if each.verdict == WORSE and each.row is not row]
    too = f" Worse, too: {enumeration(worse)}." if worse else ""
    is_shown = row.verdict in (BETTER, WORSE) and report.trust.standing != NOTHING
    return replace(system, text=f"{', '.join(said)}.{too}", shown=is_shown)


def _answers_without(report: Report, reason: str) -> Iterator[Answer]:
    """What stands in the place of the answers where there is no decision."""
    depth, trust = nearest_depth(report.depths), report.trust
    act, *others = trust.acts or ("Measure with evaluate(labels, runs), which reads whole lists.",)
    alone = f"{next(iter(report.runs), 'none')} is the only run."
    about = "All that was shown counts" if depth is None else f"The table is about K = {depth}"
    yield Answer("system", alone if len(report.runs) == 1 else f"Open: {reason.rstrip('.')}.", None)
    yield Answer("K", f"{about}; lists of runs would show which K is enough.", None)
    yield Answer("loss", "Open: lists of runs, and what was there before selection, would show it.", None)
    yield Answer("next", act, None, "\n".join(others))
    yield Answer("trust", trust.verdict, None, " ".join(trust.facts))


def _facts(report: Report, decision: Decision | None) -> str:
    """The number of runs and queries, N, the scale, K with its source, and the level of the intervals."""
    facts = [
        counted(len(report.runs), "run"),
        counted(report.evaluated if decision is None else decision.queries, "query", "queries"),
        *([] if report.corpus_size is None else [f"N = {report.corpus_size:,} passages"]),
        f"{report.scale} scale",
        *([] if report.weights is None else [f"weighted by {report.weights['source']}"]),
        *rules_of(report),
        *([] if decision is None else [f"K = {decision.K}, {_K_FROM.get(decision.K_from, decision.K_from)}"]),
    ]
    if "level" in (how := report.settings):
        drawn = f"{how['resamples']:,} resamples, seed {how['seed']}"
        facts.append(f"{level_text(how['level'])} intervals of {drawn}")
    return " · ".join(facts)


def rules_of(report: Report) -> list[str]:
    """The rules that are not the usual ones."""
    known = next((run.figures.rules for run in report.runs.values()), None)
    chosen = {} if known is None else known.policy.items() - rules_in(Policy()).items()
    return [f"{name}={rule}" for name, rule in sorted(chosen)]


def _turned(comparison: Comparison) -> Iterator[str]:
    """Which runs are shown to be better in some slices, and worse in others."""
    for column, parts in comparison.slices.items():
        of = grouped(((x.run, x.measure, x.verdict), value) for value, part in parts.items() for x in part.rows)
        both = ((run, m) for run, m, verdict in of if verdict == BETTER and (run, m, WORSE) in of)
        where = (((run, enumeration(of[run, m, BETTER]), enumeration(of[run, m, WORSE])), str(m)) for run, m in both)
        for (run, better, worse), measures in grouped(where).items():
            said = f"{run} is shown to be better than {comparison.baseline} in {better}, and worse in {worse}"
            yield f"Decide by {column}: {said} ({enumeration(measures)})."


# -- the table -----------------------------------------------------------------------------------------


def _measures_of(report: Report, decision: Decision | None) -> list[Measure]:
    """At most four measures: those that were asked for, if one of them names a depth.

    Else, without depth, the usual ones and what ranks the runs, then what else was asked for.
    """
    # The depths that gates name beside the usual measures change no table.
    known = (each for each in report.measures if not isinstance(each.cutoff, Real))
    at = [each.at for each in known if each.at is not None or not each.takes_whole_lists]
    is_named = bool(at) and None not in at
    every = list(report.measures) if is_named else without_depth(report.measures)
    asked = [base for base in every if base.higher_is_better is not None and base.name != "Judged"] or every
    if is_named:
        return asked[: len(COLUMNS)]
    ranking = [] if decision is None or len(report.runs) == 1 else [replace(decision.measure, at=None)]
    usual = [base for name in COLUMNS for base in dict.fromkeys([*asked, *ranking]) if base.name == name]
    others = [base for base in asked if base.name not in COLUMNS]
    others = [base for base in others if base.name not in ("PROC", "%PROC")] or (others if not usual else [])
    return [*usual, *others][: len(COLUMNS)]


def _columns(report: Report, decision: Decision | None, runs: Sequence[str], depth: int | None) -> Iterator[Shown]:
    by_title: dict[str, tuple[str, dict[str, RunFigure]]] = {}
    for base in _measures_of(report, decision):
        for name in runs:
            figure = _figure(report, decision, name, base, depth)
            if figure is not None:
                # The heading says the K; a figure at another one says its own.
                same = figure.measure.at == depth and not isinstance(base.cutoff, Real)
                title = str(base.without_depth) if same else str(figure.measure)
                by_title.setdefault(title, (base.name, {}))[1][name] = figure
    for title, (name, figures) in by_title.items():
        yield Shown(name, f"{title}{_of_its_ceiling(figures.values())}", figures)


def _figure(report: Report, decision: Decision | None, run: str, base: Measure, depth: int | None) -> RunFigure | None:
    """A figure of the decision, else that of the report at the same K, or at the nearest one that it has."""
    estimates = report.runs[run].estimates
    if decision is not None:
        line = next(line for line in decision.lines if line.run == run)
        asked = base.taken_at(decision.K)
        if found := next((each for each in line.figures.values() if each.measure == asked), None):
            return found
    named = [measure for measure in report.measures if measure.at is not None and replace(measure, at=None) == base]
    # IPrec@1 is at recall 1, not at K = 1.
    depths = () if isinstance(base.cutoff, Real) else report.depths
    possible: Sequence[Measure] = named or [base.taken_at(each) for each in depths] or [base]
    known = [measure for measure in [*possible, base] if str(measure) in estimates]
    if not known:
        return None
    wanted = USUAL_DEPTH if depth is None else depth
    best = min(known, key=lambda each: abs(each.at - wanted) if isinstance(each.at, (int, float)) else 0)
    most = estimates.get(str(best).replace("BoR", "BoR_max", 1)) if best.name == "BoR" else None
    return RunFigure(best, estimates[str(best)], None, None if most is None else most.value)


def figure_cell(figure: RunFigure | None) -> str:
    """A figure of the table: its value or its range, its ceiling, its marks, and how it compares with the baseline."""
    if figure is None:
        return BLANK
    value = bare(replace(figure.estimate, caveats=()))
    most = "" if figure.ceiling is None or math.isnan(figure.ceiling) else f" of {number(figure.ceiling)}"
    return f"{value}{most}{mark_of(tuple(_own(figure.estimate)))}{_SIGNS.get(figure.verdict or '', '')}"


def in_words(estimate: Estimate) -> str:
    """What a screen reader says besides the value: the interval, or why there is no value."""
    if estimate.possible is not None:
        return "possible range"
    if math.isnan(estimate.value):
        return estimate.reason or "undefined"
    return "" if math.isnan(estimate.low) else f"interval {number(estimate.low)} to {number(estimate.high)}"


def _own(estimate: Estimate) -> Iterator[Caveat]:
    """The caveats of a figure that the answer about trust does not say of all."""
    # That nobody checked the judge is true of all that it graded: the answer about trust says so.
    return (each for each in estimate.caveats if each.code != NO_AGREEMENT)


def _of_its_ceiling(figures: Iterable[RunFigure]) -> str:
    """What the name of a column ends with, whose figures stand beside the most that is possible."""
    return "" if all(x.ceiling is None or math.isnan(x.ceiling) for x in figures) else " of its ceiling"


# -- notes ---------------------------------------------------------------------------------------------


def _notes(report: Report, decision: Decision | None, columns: Sequence[Shown]) -> Iterator[str]:
    """What signs and marks mean, what was left out, and the notes of the runs: each once."""
    figures = [(run, figure) for column in columns for run, figure in column.figures.items()]
    signs = [f"{sign.strip()} {word}" for word, sign in _SIGNS.items() if word in {x.verdict for _, x in figures}]
    if signs and decision is not None:
        yield f"{' and '.join(signs)} than {decision.baseline}: shown by a test, after Holm's correction."
    yield from _without_figure(report, figures)
    yield from _counts_of_queries(report, columns)
    if by := dict.fromkeys(column for run in report.runs.values() for column in run.slices):
        yield f"The figures of the groups by {enumeration(by)} are among the details."
    shown = {figure.measure.without_depth for _, figure in figures}
    others = (str(x) for x in report.measures if x.without_depth not in shown and x.higher_is_better is not None)
    # A page has some measures by itself, the answer about the loss names two, and every report has Judged.
    is_page = {x.name for x in report.measures}.issuperset(page_measures(report.scale, sized=False))
    usual = page_measures(report.scale, sized=True) if is_page else ("PROC", "%PROC")
    if more := [each for each in others if each not in usual and not each.startswith("Judged")]:
        yield f"{enumeration(more)} {'is' if len(more) == 1 else 'are'} among the details."
    marked = (
        (run, str(figure.measure), caveat)
        for run, figure in figures
        for caveat in _own(figure.estimate)
        if MARKS[caveat.level]
    )
    yield from caveat_lines(marked, len(report.runs))
    yield from left_out(report.runs)
    if decision is not None:
        of_runs = [(line.run, line.costs.items()) for line in decision.lines if line.costs]
        if costs := [f"{run} {enumeration(_cost(*x) for x in each)}" for run, each in of_runs]:
            yield f"Mean cost of a query: {'; '.join(costs)}."
        longest = ((longest_list(run), name) for name, run in report.runs.items())
        short = grouped((k, name) for k, name in longest if 0 < k < decision.K)
        if parts := [f"{enumeration(runs)} has more than {counted(k, 'passage')}" for k, runs in short.items()]:
            yield f"No list of {enumeration(parts)}: at K = {decision.K} the missing are no hits, no junk and no merit."
    if "BoR" in report.absent:
        yield f"No BoR: {report.absent['BoR']}."
    yield from _notes_of_runs(report)


def _counts_of_queries(report: Report, columns: Sequence[Shown]) -> Iterator[str]:
    """Over how many queries the figures are, where some queries have labels that give them no figure."""
    total = report.evaluated
    figures = (figure for column in columns if column.name != "Harm" for figure in column.figures.values())
    counts = grouped((str(each.measure.without_depth), each.estimate.n) for each in figures)
    if over := grouped((max(each), name) for name, each in counts.items() if 0 < max(each) < total):
        parts = [f"{enumeration(names)} {'are' if len(names) > 1 else 'is'} over {n:,}" for n, names in over.items()]
        bases = {x.estimate.basis for column in columns if column.name == "BoR" for x in column.figures.values()}
        of, also = counted(total, "query", "queries"), f" BoR is over all {total:,}." * (WITH_CONTROLS in bases)
        yield f"Of the {of}, {enumeration(parts)}: the others have no label that counts for it.{also}"
    harm = ((run, x.estimate) for column in columns if column.name == "Harm" for run, x in column.figures.items())
    if lacking := dict.fromkeys(f"{x.n:,} of {run}'s {x.n_total:,} queries" for run, x in harm if 0 < x.n < x.n_total):
        yield f"Harm is over {enumeration(lacking)}: the others have no list, or none of its passages counts."


#: Where the number and the first ids of queries are, and what is said of them.
_LEFT_OUT = (
    ("missing_from_run", "first_missing", "of the qrels", ("is", "are"), "missing from"),
    ("not_in_qrels", "first_unknown", "without labels", ("was", "were"), "left out of"),
)


def left_out(runs: Mapping[str, RunReport]) -> Iterator[str]:
    """How many queries have labels and no list, or a list and no labels, with the first of them by name."""
    for count, first, which, (one, many), done in _LEFT_OUT:
        words = f"query {which} {one} {done}", f"queries {which} {many} {done}"
        known = {run: (getattr(part.coverage, count), getattr(part.coverage, first)) for run, part in runs.items()}
        if parts := [f"{counted(n, *words)} {run}{named(names, n)}" for run, (n, names) in known.items() if n]:
            yield f"{enumeration(parts)}."


def longest_list(run: RunReport) -> int:
    """The passages of a run's longest list, where the slots below it count; 0 where they do not."""
    judged = run.judged
    return int(judged.returned.max(initial=0)) if judged and judged.policy.short_lists == "requested" else 0


def _without_figure(report: Report, figures: Iterable[tuple[str, RunFigure]]) -> Iterator[str]:
    """Why the table shows no figure where lists repeat passages, or where people's labels are too few."""
    reasons = grouped(((x.estimate.reason or "", x.estimate.basis), (run, str(x.measure))) for run, x in figures)
    for (reason, basis), concerned in reasons.items():
        if reason.endswith(_REPEATS) or (reason and basis == CALIBRATED):
            runs, measures = (dict.fromkeys(names) for names in zip(*concerned, strict=True))
            whose = "" if len(runs) == len(report.runs) else f"{enumeration(runs)}: "
            yield f"{whose}{NO_FIGURE} {enumeration(measures)}, since {reason}"


def _notes_of_runs(report: Report) -> Iterator[str]:
    """The notes of the runs: each once, and those that differ in their number alone as one."""
    counts: dict[str, dict[str, str]] = {}
    for name, run in report.runs.items():
        for note in (note for note in run.notes if not note.startswith(NO_FIGURE)):
            count, _, rest = note.partition(" ")
            is_count = count.replace(",", "").isdecimal()
            counts.setdefault(rest if is_count else note, {})[name] = count if is_count else ""
    for note, of_runs in counts.items():
        several = len(report.runs) > 1
        if any(of_runs.values()):
            yield f"{enumeration([f'{run}: {n}' if several else n for run, n in of_runs.items()])} {note}"
        else:
            yield note if len(of_runs) == len(report.runs) else f"{enumeration(of_runs)}: {note}"


# -- a decision as a result of its own --------------------------------------------------------------------


@shown(Decision, "Decision")
def decision_blocks(decision: Decision) -> Iterable[Block]:
    """The answers, and the table of the runs."""
    yield Lines(answer_lines(decision.answers))
    yield Heading(f"At K = {decision.K}, by {decision.measure}")
    yield decision_table(decision)
    yield from cost_notes(decision)


def cost_notes(decision: Decision) -> Iterable[Block]:
    """The cheapest run that keeps up, and what the costs rest on."""
    if (best := decision.cheapest) is not None:
        at = f"{_cost(best.kind, best.cost)} a query at K = {best.K}"
        yield Note(f"{best.run} is the cheapest run that keeps up with the best: {at}")
    yield from map(Note, decision.notes)


def _cost(kind: str, cost: float) -> str:
    return f"a price of {amount(cost)}" if kind == "price" else f"{amount(cost)} {kind}"


def decision_table(decision: Decision) -> Table:
    """A row for each run, best first, with all figures and costs.

    + and − mark what is shown to be better and worse than the baseline.
    """
    columns: list[Column] = []
    for name in dict.fromkeys(name for line in decision.lines for name in line.figures):
        ceiling = _of_its_ceiling(line.figures[name] for line in decision.lines if name in line.figures)
        columns.append((f"{name}{ceiling}", entry("figures", name), figure_cell))
    costs = dict.fromkeys(name for line in decision.lines for name in line.costs)
    return table_of(decision.lines, "run", *columns, *((name, entry("costs", name), amount) for name in costs))
