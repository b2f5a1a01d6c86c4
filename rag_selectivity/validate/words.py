"""What a validation shows, in sentences, and what else may explain it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rag_selectivity.inference.correlation import FEWEST, SPEARMAN
from rag_selectivity.measures.base import FloatArray, Measure, parse_measure
from rag_selectivity.measures.chance import DEGRADED_FROM
from rag_selectivity.results.report import Report
from rag_selectivity.results.run_report import FEWEST as FEW
from rag_selectivity.results.workflows import FALLS, NOT_SHOWN, QUERIES, RISES, Following, Validation
from rag_selectivity.tables.scores import AnswerScores
from rag_selectivity.validate.answers import AnsweredRun
from rag_selectivity.validate.following import Row, beaten_by, differences_of
from rag_selectivity.wording import counted, enumeration, level_text, number, percent

#: From this share on, the most common score is said to be a ceiling or a floor.
_MOST_COMMON = 0.8
#: T fails where K is so many times N_p, Fe where recall by the pool is so much higher than by the labels, and nDCG
#: where such a share of the passages is not relevant.
_FAR_ABOVE, _POOR, _MUCH_JUNK = 3.0, 0.25, 0.5
#: What one measure does, for each verdict.
_WORDS = {RISES: "rise{} with the scores of the answers", FALLS: "fall{} as the scores of the answers rise"}


def summary_of(result: Validation) -> Iterator[str]:
    """What the answers show about the measures of the family that is corrected."""
    rows = result.main_rows
    reasons = list(dict.fromkeys(row.spearman.reason for row in rows))
    if all(reasons):
        yield f"No measure has a correlation with the scores of the answers: {enumeration(reasons)}."
        return
    tested = counted(result.settings["tested"], "correlation")
    for verdict, words in _WORDS.items():
        some = [_name(row) for row in rows if row.verdict == verdict]
        if some:
            verb = words.format("s" if len(some) == 1 else "")
            yield f"It is shown that {enumeration(some)} {verb} (Holm over {tested})."
    if all(row.verdict == NOT_SHOWN for row in rows):
        yield f"No measure is shown to change with the scores of the answers (Holm over {tested})."
    beaten, over = beaten_by(result.differences), f"(Holm over {counted(len(result.differences), 'pair')})"
    for best, others in beaten.items():
        yield f"{best} is shown to follow the answers better than {enumeration(others)} {over}."
    if result.differences and not beaten:
        yield f"No measure is shown to follow the answers better than another one at the same K {over}."
    n, power = counted(max(row.n for row in rows), "query", "queries"), level_text(result.settings["power"])
    if result.detectable >= 1:
        yield f"{n} are too few to show any correlation among {tested}."
        return
    yield (
        f"With {n} and {tested}, a true correlation of about {number(result.detectable)} is shown in {power} of such "
        f"samples; a smaller one can be missed."
    )


def _name(row: Following) -> str:
    return row.measure if row.k is None or row.measure.endswith(f"@{row.k}") else f"{row.measure} at K = {row.k}"


def of_segment(rows: Sequence[Row], level: float, sets: int, queries: int) -> str:
    """Which measure follows the answers best in a segment, and what it is shown to be better than."""
    known = [row for row in rows if not row.oriented.reason]
    if not known:
        return f"No measure has a correlation here: {rows[0].oriented.reason}."
    row = max(known, key=lambda row: row.oriented.value)
    best, these = str(row.measure), f"these {counted(sets, 'set')} of {counted(queries, 'query', 'queries')}"
    if row.oriented.value <= 0:
        text = f"No measure goes the right way in {these}: the answers are not better where its figures are"
    else:
        text = f"{best} follows the answers best in {these} (correlation {number(row.found[SPEARMAN].value)})"
        if beaten := beaten_by(differences_of(rows, level)).get(best, []):
            text += f", and it is shown to follow them better than {enumeration(beaten)}"
        elif len(rows) > 1:
            text += ", but it is not shown to follow them better than another measure"
    return f"{text}. Fewer than {FEW} queries say little." if queries < FEW else f"{text}."


def notes_of(
    result: Validation, report: Report, scores: AnswerScores, runs: Sequence[AnsweredRun], left_out: Iterable[str]
) -> Iterator[str]:
    """What was left out, and what else may explain a correlation."""
    yield from scores.remarks
    yield from (f"no answer of {name} has a score: left out" for name in report.runs if name not in scores.by_run)
    yield from (f"{name} has no figure for a single query to compare with its answer" for name in left_out)
    if all(k is None for run in runs for k in run.scores) and len(report.depths) > 1:
        yield "no column k says from how many passages the answers were made: the figures at all depths are compared"
    for run in runs:
        yield from _of_run(run)
    for over, reason in dict.fromkeys((row.over, row.spearman.reason) for row in result.rows if row.spearman.reason):
        names = dict.fromkeys(_name(row) for row in result.rows if (row.over, row.spearman.reason) == (over, reason))
        each = ", or not for each run" if over == QUERIES and len(runs) > 1 else ""
        yield f"no correlation of {enumeration(names)} over {over}{each}: {reason}"
    undefined = [f"{row.measure} in {row.undefined:,}" for row in result.main_rows if row.undefined]
    if undefined:
        yield f"undefined in queries that have a score, and left out there: {enumeration(undefined)}"
    for row in result.main_rows:
        measure = parse_measure(row.measure)
        if row.k is not None and measure.at == row.k:
            yield from (f"{measure}: {failure}" for failure in _failures(measure, row.k, runs))
    if scores.closed_book:
        known = counted(len(scores.closed_book), "query", "queries")
        yield f"partial: Spearman's correlation without what the scores without passages explain ({known})"
    else:
        yield "what the model knows by itself scores high with any passages: scores of k = 0 (closed_book) take it out"
    level = level_text(result.settings["level"])
    yield f"the intervals are at {level}, unadjusted; that better retrieval causes better answers is not shown"


def _failures(measure: Measure, k: int, runs: Sequence[AnsweredRun]) -> Iterator[str]:
    """What is known to go wrong with a measure in sets of K passages such as these."""
    name, rel = measure.name, getattr(measure, "rel", None)

    def figures(other: str, **own: Any) -> FloatArray:
        return np.concatenate([run.figures(replace(parse_measure(f"{other}@{k}"), **own)) for run in runs])

    def mean(values: FloatArray) -> float:
        known = values[~np.isnan(values)]
        return float(known.sum() / max(1, len(known)))

    if name == "T" and (ratio := mean(np.concatenate([run.ratios(k, rel) for run in runs]))) >= _FAR_ABOVE:
        yield f"K is {ratio:.1f} times N_p: most of the K passages cannot be relevant, and T counts them against a run"
    if name == "Fe" and (gap := mean(figures("Fe", rel=rel, alpha=0.0) - figures("R", rel=rel))) >= _POOR:
        yield f"recall is {gap:.2f} higher by the first {2 * k} of the pools than by the labels, so Fe is too high"
    if name == "RA-nWG" and (share := mean(np.isnan(figures("N-Recall5")).astype(np.float64))):
        yield f"{percent(share)} of the queries have no passage of grade 5: there a grade 4 weighs as much as a 5"
    if name == "nDCG" and (junk := 1 - mean(figures("P", rel=rel))) >= _MUCH_JUNK:
        yield f"{percent(junk)} of the top {k} are not relevant, and nDCG has no penalty for them"
    if name == "Success" and all(run.table.facts.sizes is not None for run in runs):
        chance = mean(figures("RandomSuccess", rel=rel, m=getattr(measure, "m", 1)))
        if chance >= DEGRADED_FROM:
            yield f"a random draw of {k} succeeds in {percent(chance)} of the queries: in or near BoR's collapse zone"


def _of_run(run: AnsweredRun) -> Iterator[str]:
    """Queries without a score, answers from longer lists, and scores that are nearly all the same."""
    longest = int(run.table.join.returned.max(initial=0))
    deeper = [str(k) for k in run.scores if k is not None and k > longest]
    if deeper:
        yield f"{run.name}: there are answers from K = {enumeration(deeper)}, and no list is longer than {longest}"
    for k, scores in run.scores.items():
        name, known = run.name + ("" if k is None else f" at K = {k}"), scores[~np.isnan(scores)]
        if len(known) < len(scores):
            yield f"{name}: {counted(len(scores) - len(known), 'query', 'queries')} without a score left out"
        values, counts = np.unique(known, return_counts=True)
        if len(known) >= FEWEST and len(values) > 1 and counts.max() / len(known) >= _MOST_COMMON:
            place, others = int(counts.argmax()), len(known) - int(counts.max())
            what = "a ceiling: " if place == len(values) - 1 else "a floor: " if place == 0 else ""
            yield (
                f"{name}: {percent(counts.max() / len(known))} of the answers have the score {values[place]:g}; {what}"
                f"only the other {others} can tell measures apart"
            )
