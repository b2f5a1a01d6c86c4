"""The decision as a comment for a pull request: the answers, the table of the runs, and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rag_selectivity.render.blocks import bare, caveat_lines, difference
from rag_selectivity.render.decision_blocks import decision_table, figures_of, marked_caveats, signs_text
from rag_selectivity.render.first_lines import names_of_columns
from rag_selectivity.render.first_screen import facts_of
from rag_selectivity.render.github import escaped
from rag_selectivity.render.writers import markdown
from rag_selectivity.results.changes import UNCHANGED, Changes, FigureChange, RunChange
from rag_selectivity.results.comparison import BETTER, JUDGED_IN_PART, NOT_SHOWN, NOT_TESTED, PLACEBO, WORSE
from rag_selectivity.results.decision import Answer, Decision
from rag_selectivity.results.report import Report
from rag_selectivity.wording import counted, enumeration, level_text

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
    runs = decision_table(decision, names)
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


def _shown(answer: Answer) -> str:
    return "" if answer.shown is None else f" *({'shown' if answer.shown else 'not shown'})*"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], most: int | None) -> list[str]:
    """The lines of a table, with the first column to the left; a last row counts those that are left out."""
    shown = [*rows[:most]]
    if left_out := len(rows) - len(shown):
        shown.append([f"… and {left_out:,} more", *("" for _ in header[1:])])
    lines = markdown(header, shown).splitlines()
    lines[1] = lines[1].replace("---:", ":---", 1)
    return lines


def _legend(report: Report, decision: Decision, names: Sequence[str]) -> Iterator[str]:
    yield f"{escaped(facts_of(report, decision))}."
    figures = figures_of(decision, names)
    if len(decision.lines) > 1:
        yield f"Best first under {decision.measure}."
        if signs := signs_text(figure for _, figure in figures):
            level = "" if decision.level is None else f" at the {level_text(decision.level)} level"
            yield f"{signs}: shown against {escaped(decision.baseline)}{level}, after Holm's correction."
    yield from map(escaped, caveat_lines(marked_caveats(figures), len(decision.lines)))
    if decision.cheapest is not None:
        yield f"{escaped(str(decision.cheapest))}."
    yield from (f"{escaped(note[0].upper() + note[1:])}." for note in decision.notes)


# -- what changed --------------------------------------------------------------------------------------


def _what_changed(changes: Changes, decision: Decision, most: int | None) -> list[str]:
    changed = sorted((run for run in changes.runs if run.figures and not run.is_unchanged), key=_urgency)
    names = list(dict.fromkeys(name for run in changed for name in run.figures))
    measures = [next(run.figures[name].row.measure for run in changed if name in run.figures) for name in names]
    lines = [f"### What changed against {escaped(changes.name)}"]
    if changed:
        rows = [[_name(run), *(_cell(run.figures.get(name)) for name in names)] for run in changed]
        lines += [*_table(["run", *(escaped(str(measure)) for measure in measures)], rows, most), ""]
    return [*lines, _NEW_LINE.join(_notes(changes, decision, any_changed=bool(changed)))]


def _urgency(run: RunChange) -> int:
    verdicts = {each.verdict for each in run.figures.values()}
    return next((place for place, verdict in enumerate(_FIRST) if verdict in verdicts), len(_FIRST))


def _name(run: RunChange) -> str:
    was = "" if run.stored_as == run.run else f" (was {escaped(run.stored_as)})"
    return f"{escaped(run.run)}{was}"


def _cell(each: FigureChange | None) -> str:
    if each is None:
        return "–"
    if each.verdict == UNCHANGED:
        return f"{bare(each.now)}{_NEW_LINE}unchanged"
    by = [difference(each.row)] if each.before.possible is None and each.now.possible is None else []
    return _NEW_LINE.join([f"{bare(each.before)} → {bare(each.now)}", *by, _WORDS[each.verdict]])


def _notes(changes: Changes, decision: Decision, *, any_changed: bool) -> Iterator[str]:
    name = escaped(changes.name)
    same = [run.run for run in changes.runs if run.is_unchanged]
    if any_changed:
        yield from _about_tests(changes, decision)
        if same:
            yield f"Unchanged at every query: {_names(same)}."
    elif changes.runs and len(same) == len(changes.runs):
        yield "Nothing changed: every query has the same figures as before."
    if changes.new:
        yield f"New, without a figure in {name}: {_names(changes.new)}."
    if changes.gone:
        yield f"Gone, only in {name}: {_names(changes.gone)}."
    if changes.not_stored:
        yield f"Not in {name}: {escaped(enumeration(changes.not_stored))}."
    yield from _reasons(changes)
    yield from (f"{escaped(note[0].upper() + note[1:])}." for note in changes.notes)


def _about_tests(changes: Changes, decision: Decision) -> Iterator[str]:
    if changes.level is None:
        yield "Before → now, and the difference."
    else:
        level = level_text(changes.level)
        yield f"Before → now, and the difference with its paired interval of {level}, not corrected."
        of_ranking, others = (changes.tests.get(key, 0) for key in (str(decision.measure), ""))
        families = [f"{counted(of_ranking, 'test')} of {escaped(str(decision.measure))}"] if of_ranking else []
        families += [f"{counted(others, 'test')} of other measures"] if others else []
        if families:
            yield (
                f"Better and worse are shown at the {level} level after Holm's correction, over "
                f"{' and over '.join(families)}; “not shown” means that the queries do not show a change."
            )
    if changes.as_judged:
        yield "Figures are compared as judged: without random controls, and without labels that were completed."


def _reasons(changes: Changes) -> Iterator[str]:
    """What could not be compared, and why; runs with the same reason together."""
    found: list[tuple[str, str, str]] = [(run, "", reason) for run, reason in changes.not_compared.items()]
    found += [(run.run, measure, reason) for run in changes.runs for measure, reason in run.not_compared.items()]
    runs_of: dict[tuple[str, str], list[str]] = {}
    for run, measure, reason in found:
        key = measure and f"{measure} of ", reason.replace(f"run {run!r}", "this run").replace(repr(run), "this run")
        runs_of.setdefault(key, []).append(run)
    for (what, reason), runs in runs_of.items():
        yield f"Not compared: {escaped(what)}{_names(runs)}: {escaped(reason.rstrip('.'))}."


def _names(runs: Iterable[str]) -> str:
    named = list(map(escaped, runs))
    if len(named) > _MOST_NAMES:
        return f"{', '.join(named[:_MOST_NAMES])} and {len(named) - _MOST_NAMES:,} more"
    return enumeration(named)
