"""Claims, answers, validations and online tests: their tables and sentences."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rag_selectivity.render.blocks import (
    BLANK,
    Block,
    Column,
    Heading,
    Note,
    Table,
    bare,
    change,
    cost_text,
    difference,
    ending,
    grouped,
    notes,
    p_value,
    shown,
    table_of,
)
from rag_selectivity.results.answers import AnswerReport, Contrast, Spent
from rag_selectivity.results.difference import BETTER, WORSE
from rag_selectivity.results.workflows import (
    BROKEN,
    EQUAL,
    KEPT,
    RUNS,
    WITHIN,
    ArmComparison,
    ExperimentDecision,
    Following,
    Preference,
    Validation,
)
from rag_selectivity.wording import counted, level_text, number, percent

# -- answers -----------------------------------------------------------------------------------------------------

_TITLES = {
    "lift": "Lift over no passages",
    "bits": "Bits over random of right answers",
    "depth": "More passages against fewer",
    "run": "Runs",
    "order": "Order against best first",
    "slope": "Junk beside the same relevant passages: change with each junk passage",
}
#: What a contrast is, where it is no difference.
_OF_KIND = {"bits": "bits", "slope": "change"}


@shown(AnswerReport, "What a model makes of passages")
def answer_blocks(report: AnswerReport) -> Iterator[Block]:
    """Means of what was shown, lifts, bits, order, depth, runs and junk."""
    yield Heading(f"{counted(len(report.queries), 'query', 'queries')}{_spent(report.spent, report.settings)}")
    if report.resume is not None:
        yield Note(f"go on with: {report.resume}")
    shown = list(dict.fromkeys(each for each, _ in report.figures))
    if shown:
        columns: list[Column] = [
            (name, {each: found for (each, score), found in report.figures.items() if score == name}.get)
            for name in report.kinds
        ]
        most = {each: max(found.n for (of, _), found in report.figures.items() if of == each) for each in shown}
        yield table_of(shown, ("shown", str), ("n", most.get), *columns, breaks=True)
    level = level_text(report.settings["level"])
    for kind, title in _TITLES.items():
        if contrasts := [each for each in report.contrasts if each.kind == kind]:
            yield Heading(title)
            yield from _contrast_blocks(kind, contrasts, level)
    yield from notes(report.notes)
    if (served := report.settings.get("served")) and list(served) != [report.settings["model"]]:
        yield Note(f"the server calls the model {served[0]}")


def _spent(spent: Spent, settings: Mapping[str, Any]) -> str:
    if not spent.prompts:
        return ""
    asked = dict.fromkeys(name for name in (settings["model"], settings["judge"]) if name)
    models = settings["model"] if spent.dry_run else " and ".join(asked)
    prompts, requests = counted(spent.prompts, "prompt"), f"{counted(spent.requests, 'request')} to {models}"
    if spent.dry_run:
        return (
            f": {prompts}, {spent.cached:,} answered already; {requests} to make, about {spent.usage.total:,} tokens"
            f"{cost_text(spent.cost)}; nothing was sent"
        )
    return f", {prompts}, {requests}{cost_text(spent.cost)}{ending(spent)}"


def _contrast_blocks(kind: str, contrasts: Sequence[Contrast], level: str) -> Iterator[Block]:
    title = f"{_OF_KIND.get(kind, 'difference')} [{level}]"
    yield table_of(
        contrasts,
        "score",
        "shown",
        ("against", lambda each: "no junk" if kind == "slope" and each.against.k == 0 else each.against),
        "n",
        (title, lambda each: None if math.isnan(each.value) and math.isnan(each.low) else each, change),
        ("ceiling", lambda each: each.ceiling if kind == "bits" else None),
        ("p Holm", lambda each: None if math.isnan(each.p_adjusted) else each.p_adjusted, p_value),
    )
    why = grouped((each.reason, f"{each.score} of {each.shown}") for each in contrasts if each.reason is not None)
    yield from (Note(f"{', '.join(about)}: {reason}.") for reason, about in why.items())


# -- validation --------------------------------------------------------------------------------------------------


@shown(Validation, "Which measures follow the answers")
def validation_blocks(result: Validation) -> Iterator[Block]:
    """Correlations with answers, and segments of K/N_p."""
    level = level_text(float(result.settings.get("level", 0.95)))
    yield Heading("Correlation with the scores of the answers, over queries")
    yield _correlations(result.main_rows, level)
    for over, words in (
        (WITHIN, "The same between runs, within each query (how hard a query is does not count)"),
        (RUNS, "The same over these runs: mean figure with mean score (intervals over queries; other runs may differ)"),
    ):
        if rows := [row for row in result.rows if row.over == over]:
            yield Heading(words)
            yield _correlations(rows, level)
    yield from map(Note, result.summary)
    for segment in result.segments:
        queries = counted(segment.queries, "query", "queries")
        yield Heading(f"{segment.name}: {counted(segment.sets, 'set')} of {queries}")
        yield _correlations(segment.rows, level)
        yield Note(segment.summary)
    yield from notes(result.notes)


def _correlations(rows: Sequence[Following], level: str) -> Table:
    return table_of(
        rows,
        ("", "measure"),
        ("K", lambda row: None if row.measure.endswith(f"@{row.k}") else row.k),
        "n",
        (f"Spearman [{level}]", "spearman", lambda found: BLANK if found.reason else change(found)),
        ("Pearson", "pearson", bare),
        ("Kendall", "kendall", bare),
        ("partial", "partial", bare),
        ("p Holm", lambda row: row.p_holm if row.verdict else None, p_value),
        breaks=True,
    )


# -- online ------------------------------------------------------------------------------------------------------


@shown(Preference, "Which system is preferred")
def preference_blocks(found: Preference) -> Iterator[Block]:
    """The votes, and what they show."""
    a, b = found.baseline, found.candidate
    yield Heading(f"{b} against {a}, interleaved: {counted(found.impressions, 'impression')}")
    yield table_of(
        [found],
        (f"{b} won", "wins"),
        "ties",
        (f"{a} won", "losses"),
        ("share", "share", percent),
        (f"{level_text(found.level)} interval", lambda each: f"[{percent(each.low)}, {percent(each.high)}]"),
        ("p", "p", p_value),
    )
    shown = f"{found.verdict}: without ties, {b} is shown to win"
    words = {
        BETTER: f"{shown} more than half of the {found.unit}s.",
        WORSE: f"{shown} fewer than half of the {found.unit}s.",
        EQUAL: f"{shown} a share of the {found.unit}s within 50% ± {percent(found.margin or 0)}.",
    }
    yield Note(words.get(found.verdict, f"not yet: the {found.unit}s so far do not show which system is better."))
    if found.needed is not None:
        units = f"{counted(found.needed, found.unit)}, if ties stay as frequent"
        yield Note(_needed(found, f"share of {percent(found.detect or 0)}", units))
    yield from notes(found.notes)


@shown(ArmComparison, "Which arm is better")
def arm_blocks(row: ArmComparison) -> Iterator[Block]:
    """One metric of two arms."""
    yield Heading(f"{row.metric}: arm b against arm a")
    yield _arm_table([row])
    yield from _of_arms([row])


@shown(ExperimentDecision, "Which arm is better")
def experiment_blocks(decided: ExperimentDecision) -> Iterator[Block]:
    """All metrics and guardrails, and what follows from them together."""
    yield Heading(f"metrics, {level_text(decided.level)} together (Holm)")
    adjusted = {row.metric: p for row, p in zip(decided.metrics, decided.p_adjusted, strict=True)}
    yield _arm_table(decided.metrics, ("p Holm", lambda row: adjusted[row.metric], p_value))
    if decided.guardrails:
        yield Heading(f"guardrails, {level_text(decided.level)} each")
        yield _arm_table(decided.guardrails)
    rows = [*decided.metrics, *decided.guardrails]
    yield from _of_arms(rows)
    bad = ", ".join(row.metric for row in rows if row.verdict in (WORSE, BROKEN))
    kept = "and every guardrail is kept."
    words = {
        BETTER: f"arm b is shown to be better in a metric, it is shown to be worse in none, {kept}",
        WORSE: f"arm b is shown to be worse in {bad}.",
        EQUAL: f"every metric is shown to differ by less than its margin, {kept}",
    }
    yield Note(f"{decided.verdict}: {words.get(decided.verdict, 'the values so far do not show which arm is better.')}")
    yield from notes(decided.notes)


def _arm_table(rows: Iterable[ArmComparison], p: Column = ("p", "p", p_value)) -> Table:
    means: list[Column] = ["metric", ("a", "mean_a"), ("b", "mean_b"), ("b − a [interval]", difference)]
    return table_of(rows, *means, p, ("n a", "n_a"), ("n b", "n_b"), "verdict")


def _of_arms(rows: Sequence[ArmComparison]) -> Iterator[Block]:
    for row in rows:
        margin = "" if row.margin is None else number(row.margin)
        looks = "valid at any look" if row.sequential else "for this one look"
        words = {
            BETTER: f"arm b is shown to be better ({looks}).",
            WORSE: f"arm b is shown to be worse ({looks}).",
            EQUAL: f"the difference is shown to be smaller than {margin} ({looks}).",
            KEPT: f"it is shown that arm b is not worse by {margin} or more ({looks}).",
            BROKEN: f"arm b is shown to be worse by more than {margin} ({looks}).",
        }
        conclusion = f"{row.metric}: {words.get(row.verdict, 'not decided yet.')}"
        if row.needed is not None:
            units = f"{row.needed:,} values of both arms together"
            conclusion += f" {_needed(row, f'difference of {number(row.detect or 0)}', units)}"
        yield Note(conclusion)
    yield from notes(dict.fromkeys(note for row in rows for note in row.notes))


def _needed(tested: Preference | ArmComparison, truth: str, units: str) -> str:
    more = counted(tested.still_needed, "more is", "more are") if tested.still_needed else "no more are"
    return f"A true {truth} is shown in {level_text(tested.power)} of such tests with {units}: {more} needed."
