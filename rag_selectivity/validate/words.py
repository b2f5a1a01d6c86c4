"""What a validation shows, in sentences, and what else may explain it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rag_selectivity.inference.correlation import FEWEST
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import FEWEST as FEW
from rag_selectivity.results.workflows import FALLS, NOT_SHOWN, RISES, Following, Validation
from rag_selectivity.validate.answers import AnsweredRun
from rag_selectivity.validate.following import Found, Row, beaten_by, differences_of
from rag_selectivity.validate.scores import AnswerScores
from rag_selectivity.wording import counted, enumeration, level_text, number, percent

#: From this share on, the most common score is said to be a ceiling or a floor.
_MOST_COMMON = 0.8
#: (many measures, one measure) for each verdict.
_WORDS = {
    RISES: ("rise with the scores of the answers", "rises with the scores of the answers"),
    FALLS: ("fall as the scores of the answers rise", "falls as the scores of the answers rise"),
}


def summary_of(result: Validation) -> Iterator[str]:
    """What the answers show about the measures of the family that is corrected."""
    rows = result.main_rows
    if not rows:
        yield "No measure could be compared with the answers."
        return
    reasons = list(dict.fromkeys(row.spearman.reason for row in rows))
    if all(reasons):
        yield f"No measure has a correlation with the scores of the answers: {enumeration(reasons)}."
        return
    tested = counted(result.settings["tested"], "correlation")
    over = f"Holm over {tested}"
    for verdict, (many, one) in _WORDS.items():
        some = [_name(row) for row in rows if row.verdict == verdict]
        if some:
            yield f"It is shown that {enumeration(some)} {one if len(some) == 1 else many} ({over})."
    if all(row.verdict == NOT_SHOWN for row in rows):
        yield f"No measure is shown to change with the scores of the answers ({over})."
    beaten = beaten_by(result.differences)
    pairs = counted(len(result.differences), "pair")
    for best, others in beaten.items():
        yield f"{best} is shown to follow the answers better than {enumeration(others)} (Holm over {pairs})."
    if result.differences and not beaten:
        yield f"No measure is shown to follow the answers better than another one at the same K (Holm over {pairs})."
    n = counted(max(row.n for row in rows), "query", "queries")
    if result.detectable < 1:
        yield (
            f"With {n} and {tested}, a true correlation of about "
            f"{number(result.detectable)} is shown in {level_text(result.settings['power'])} of such samples; a "
            f"smaller one can be missed."
        )
    else:
        yield f"{n} are too few to show any correlation among {tested}."


def _name(row: Following) -> str:
    return row.measure if row.k is None or row.measure.endswith(f"@{row.k}") else f"{row.measure} at K = {row.k}"


def of_segment(plan: Sequence[Row], found: Found, level: float, sets: int, queries: int) -> str:
    """Which measure has the highest correlation in a segment, and what it is shown to be better than."""
    oriented = [(row, rho) for row in plan if not (rho := row.oriented(found)).reason]
    if not oriented:
        return f"No measure has a correlation here: {plan[0].oriented(found).reason}."
    row, rho = max(oriented, key=lambda each: each[1].value)
    best, value = str(row.measure), rho.value if row.measure.higher_is_better else -rho.value
    of_sets = f"{counted(sets, 'set')} of {counted(queries, 'query', 'queries')}"
    strongest = "strongest" if value * rho.value < 0 else "highest"
    text = f"{best} has the {strongest} correlation in these {of_sets} ({number(value)})"
    if beaten := beaten_by(differences_of(plan, found, level)).get(best, []):
        text += f", and it is shown to follow the answers better than {enumeration(beaten)}."
    elif len(plan) > 1:
        text += ", but it is not shown to follow the answers better than another measure."
    else:
        text += "."
    return f"{text} Fewer than {FEW} queries say little." if queries < FEW else text


def notes_of(
    result: Validation,
    report: Report,
    scores: AnswerScores,
    runs: Sequence[AnsweredRun],
    left_out: Sequence[str],
) -> Iterator[str]:
    """What was left out, and what else may explain a correlation."""
    yield from scores.remarks
    absent = [name for name in report.runs if name not in scores.by_run]
    if absent:
        yield f"no answer of {enumeration(absent)} has a score: left out"
    if left_out:
        verb = "has" if len(left_out) == 1 else "have"
        yield f"{enumeration(left_out)} {verb} no figure for a single query, and cannot be compared with its answer"
    if scores.without_one_k() and len(report.depths) > 1:
        yield (
            "the scores do not say from how many passages the answers were made (a column k): figures at all depths "
            "are compared with the same answers"
        )
    for run in runs:
        yield from _of_run(run)
    reasons: dict[str, dict[str, None]] = {}
    for row in result.rows:
        if row.spearman.reason:
            reasons.setdefault(row.spearman.reason, {})[_name(row)] = None
    for reason, measures in reasons.items():
        yield f"no correlation of {enumeration([*measures])}, or not for each run: {reason}"
    undefined = {row.measure: row.undefined for row in result.main_rows if row.undefined}
    if undefined:
        each = [f"{measure} in {count:,}" for measure, count in undefined.items()]
        yield f"undefined in queries that have a score, and left out there: {enumeration(each)}"
    if scores.closed_book:
        known = counted(len(scores.closed_book), "query", "queries")
        yield f"partial: Spearman's correlation without what the scores without passages explain ({known})"
    else:
        yield (
            "a query that the model can answer by itself scores high whatever was retrieved; scores without passages "
            "(rows of k = 0, or closed_book) would show how much of a correlation that explains"
        )
    yield (
        f"the intervals are at {level_text(result.settings['level'])}, unadjusted, and queries are drawn whole; a "
        f"correlation does not show that better retrieval causes better answers"
    )


def _of_run(run: AnsweredRun) -> Iterator[str]:
    """Queries without a score, answers from longer lists, and scores that are nearly all the same."""
    longest = int(run.judged.returned.max(initial=0))
    deeper = [str(k) for k in run.scores if k is not None and k > longest]
    if deeper:
        yield (
            f"{run.name}: no list has more than {counted(longest, 'passage')}, and there are answers from K = "
            f"{enumeration(deeper)}: if they were made from longer lists, give those"
        )
    for k, scores in run.scores.items():
        name, known = run.name + ("" if k is None else f" at K = {k}"), ~np.isnan(scores)
        if not known.all():
            yield f"{name}: {counted(int((~known).sum()), 'query has', 'queries have')} no score, and are left out"
        values, counts = np.unique(scores[known], return_counts=True)
        n, most, place = int(counts.sum()), int(counts.max(initial=0)), int(np.argmax(counts)) if len(counts) else 0
        if n >= FEWEST and len(values) > 1 and most / n >= _MOST_COMMON:
            what = "a ceiling: " if place == len(values) - 1 else "a floor: " if place == 0 else ""
            yield (
                f"{name}: {percent(most / n)} of the answers have the score {values[place]:g}; {what}only the other "
                f"{n - most} can tell measures apart"
            )
