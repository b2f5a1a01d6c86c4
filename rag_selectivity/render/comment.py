"""The decision as a comment for a pull request: the answers, the table of the runs, and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag_selectivity.render.blocks import markdown
from rag_selectivity.render.decision_blocks import figures_of, marked_caveats, signs_text, table_of_runs
from rag_selectivity.render.first_lines import names_of_columns
from rag_selectivity.render.first_screen import facts_of, figure_text
from rag_selectivity.render.github import escaped
from rag_selectivity.results.changes import UNCHANGED, Changes, FigureChange, RunChange
from rag_selectivity.results.comparison import BETTER, JUDGED_IN_PART, NOT_SHOWN, NOT_TESTED, PLACEBO, WORSE
from rag_selectivity.results.decision import Answer, Decision
from rag_selectivity.results.report import Report
from rag_selectivity.wording import MARKS, counted, ends_text, enumeration, level_text, signed

#: A comment that is longer is not read.
MOST_LINES = 40
#: So many runs are shown in a table where all of them need more lines than that.
_MOST_RUNS = 10
#: So many names of runs are in a sentence.
_MOST_NAMES = 5
_WORDS = {
    BETTER: "**better**",
    WORSE: "**worse**",
    NOT_SHOWN: "not shown",
    JUDGED_IN_PART: "undecided: judged in part",
    PLACEBO: "undecided: no more than placebos",
    NOT_TESTED: "not tested",
}
#: Changes that a reader must not miss come first.
_FIRST = (WORSE, BETTER)
_NEW_LINE = "<br>"


def comment_of(report: Report, decision: Decision, changes: Changes | None = None) -> str:
    """The decision in at most 40 lines of Markdown, as GitHub shows it in a comment.

    It needs no extra package.

    Parameters
    ----------
    report : Report
        With the lists of the runs.
    decision : Decision
    changes : Changes, optional
        Since a stored report, such as that of the main branch, for each run that both have.

    Returns
    -------
    str
        A heading with K; the answers with the words of `Decision.to_dict`; the table of the runs; what changed. Ids and
        names are escaped: they become no markup, link or mention. Where all runs need more than 40 lines, a table
        has ten of them, and says how many it leaves out.

    >>> from rag_selectivity import evaluate
    >>> from rag_selectivity.advice import decide
    >>> qrels, run = {"q1": ["d1"], "q2": ["d2"]}, {"q1": ["d1", "d9"], "q2": ["d9", "d2"]}
    >>> report = evaluate(qrels, {"bm25": run}, corpus_size=9)
    >>> print(comment_of(report, decide(report, k=1)).splitlines()[0])
    ## Retrieval at K = 1
    """
    names = names_of_columns(report, decision)
    runs = table_of_runs(decision, names)
    lines: list[str] = []
    for most_runs, most_changes in ((None, None), (_MOST_RUNS, None), (_MOST_RUNS, _MOST_RUNS)):
        lines = [
            f"## Retrieval at K = {decision.K}",
            *(f"- **{answer.question}** {escaped(answer.text)}{_shown(answer)}" for answer in decision.answers),
            "",
            *_table(runs.header, [[escaped(run), *cells] for run, *cells in runs.rows], most_runs),
            "",
            _NEW_LINE.join(_legend(report, decision, names)),
            *([] if changes is None else ["", *_what_changed(changes, decision, most_changes)]),
        ]
        if len(lines) <= MOST_LINES:
            break
    return "\n".join(lines)


# -- the runs ------------------------------------------------------------------------------------------


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], most: int | None) -> list[str]:
    """The lines of a table, with the first column to the left; a last row counts those that are left out."""
    shown = [*rows[:most]]
    if left_out := len(rows) - len(shown):
        shown.append([f"… and {left_out:,} more", *("" for _ in header[1:])])
    lines = markdown(header, shown).splitlines()
    lines[1] = lines[1].replace("---:", ":---", 1)
    return lines


def _legend(report: Report, decision: Decision, names: Sequence[str]) -> Iterable[str]:
    yield f"{escaped(facts_of(report, decision))}."
    level = "" if decision.level is None else f" at the {level_text(decision.level)} level"
    if len(decision.lines) > 1:
        yield f"Best first under {decision.measure}."
        signs = signs_text(figure for _, figure in figures_of(decision, names))
        if signs:
            yield f"{signs}: shown against {escaped(decision.baseline)}{level}, after Holm's correction."
    yield from _caveats(decision, names)
    if decision.cheapest is not None:
        yield f"{escaped(str(decision.cheapest))}."
    yield from (f"{escaped(note[0].upper() + note[1:])}." for note in decision.notes)


def _caveats(decision: Decision, names: Sequence[str]) -> Iterable[str]:
    """Each kind of caveat with a mark once, in the words for the best run that has it."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for run, measure, caveat in marked_caveats(figures_of(decision, names)):
        found.setdefault((caveat.level, measure, caveat.code), {})[run] = caveat.text
    alike: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[str]] = {}
    for (level, measure, code), texts in found.items():
        alike.setdefault((level, code, tuple(texts.items())), []).append(measure)
    for (level, code, pairs), measures in alike.items():
        (first, text), *_ = pairs
        runs = f" of {_names([run for run, _ in pairs])}" if len(pairs) < len(decision.lines) else " of all runs"
        runs = runs if len(decision.lines) > 1 else ""
        whose = f" These are the words for {escaped(first)}." if len({text for _, text in pairs}) > 1 else ""
        yield f"{MARKS[level]} {escaped(enumeration(measures))}{runs}: {escaped(text)}{whose} [{code}]"


# -- what changed --------------------------------------------------------------------------------------


def _what_changed(changes: Changes, decision: Decision, most: int | None) -> list[str]:
    changed = [run for run in changes.runs if run.figures and not run.is_unchanged]
    changed.sort(key=_urgency)
    names = list(dict.fromkeys(name for run in changed for name in run.figures))
    measures = [next(run.figures[name].row.measure for run in changed if name in run.figures) for name in names]
    header = ["run", *(escaped(str(measure)) for measure in measures)]
    rows = [[_name(run), *(_cell(run.figures.get(name)) for name in names)] for run in changed]
    lines = [f"### What changed against {escaped(changes.name)}"]
    if rows:
        lines += [*_table(header, rows, most), ""]
    return [*lines, _NEW_LINE.join(_notes(changes, decision, rows=len(rows)))]


def _urgency(run: RunChange) -> int:
    verdicts = {each.verdict for each in run.figures.values()}
    return next((place for place, verdict in enumerate(_FIRST) if verdict in verdicts), len(_FIRST))


def _name(run: RunChange) -> str:
    was = "" if run.stored_as == run.run else f" (was {escaped(run.stored_as)})"
    return f"{escaped(run.run)}{was}"


def _cell(each: FigureChange | None) -> str:
    if each is None:
        return "–"
    before, now, row = each.before, each.now, each.row
    if each.verdict == UNCHANGED:
        return f"{figure_text(now)}{_NEW_LINE}unchanged"
    lines = [f"{figure_text(before)} → {figure_text(now)}"]
    if before.possible is None and now.possible is None:
        lines.append(f"{signed(row.difference)}{ends_text(row.low, row.high, signed)}")
    lines.append(_WORDS[each.verdict])
    return _NEW_LINE.join(lines)


def _notes(changes: Changes, decision: Decision, *, rows: int) -> Iterable[str]:
    if rows:
        yield from _about_tests(changes, decision)
    elif changes.runs and all(run.is_unchanged for run in changes.runs):
        yield "Nothing changed: every query has the same figures as before."
    same = [run.run for run in changes.runs if run.is_unchanged]
    if same and rows:
        yield f"Unchanged at every query: {_names(same)}."
    if changes.new:
        yield f"New, without a figure in {escaped(changes.name)}: {_names(changes.new)}."
    if changes.gone:
        yield f"Gone, only in {escaped(changes.name)}: {_names(changes.gone)}."
    if changes.not_stored:
        yield f"Not in {escaped(changes.name)}: {escaped(enumeration(changes.not_stored))}."
    yield from _reasons(changes)
    yield from (f"{escaped(note[0].upper() + note[1:])}." for note in changes.notes)


def _about_tests(changes: Changes, decision: Decision) -> Iterable[str]:
    yield "Before → now, and the difference" + (
        "." if changes.level is None else f" with its paired interval of {level_text(changes.level)}, not corrected."
    )
    if changes.level is not None:
        of_ranking, others = (changes.tests.get(key, 0) for key in (str(decision.measure), ""))
        families = [
            *([f"{counted(of_ranking, 'test')} of {escaped(str(decision.measure))}"] if of_ranking else []),
            *([f"{counted(others, 'test')} of other measures"] if others else []),
        ]
        if families:
            yield (
                f"Better and worse are shown at the {level_text(changes.level)} level after Holm's correction, over "
                f"{' and over '.join(families)}; “not shown” means that the queries do not show a change."
            )
    if changes.as_judged:
        yield "Figures are compared as judged: without random controls, and without labels that were completed."


def _reasons(changes: Changes) -> Iterable[str]:
    """What could not be compared, and why; runs with the same reason together."""
    runs_of: dict[tuple[str, str], list[str]] = {}
    reasons: Mapping[str, Mapping[str, str]] = {run.run: run.not_compared for run in changes.runs}
    for run, reason in changes.not_compared.items():
        runs_of.setdefault(("", reason.replace(repr(run), "this run")), []).append(run)
    for run, by_measure in reasons.items():
        for measure, reason in by_measure.items():
            runs_of.setdefault(
                (measure, reason.replace(f"run {run!r}", "this run").replace(repr(run), "it")), []
            ).append(run)
    for (measure, reason), runs in runs_of.items():
        what = f"{measure} of " if measure else ""
        yield f"Not compared: {escaped(what)}{_names(runs)}: {escaped(reason.rstrip('.'))}."


def _names(runs: Sequence[str]) -> str:
    shown = [escaped(run) for run in runs[:_MOST_NAMES]]
    if left_out := len(runs) - len(shown):
        return f"{', '.join(shown)} and {left_out:,} more"
    return enumeration(shown)


def _shown(answer: Answer) -> str:
    return "" if answer.shown is None else f" *({'shown' if answer.shown else 'not shown'})*"
