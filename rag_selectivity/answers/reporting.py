"""The report of answers: a row for each answer, figures, contrasts, what was spent, and caveats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_selectivity.answers.asking import Planned, estimated_usage
from rag_selectivity.answers.figures import contrasts, estimates, scored_of
from rag_selectivity.answers.planning import Reading
from rag_selectivity.answers.prompt import Answer, AnswerPrompt
from rag_selectivity.answers.scoring import AnswerJudge, ruled_scores
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.judge import Judge
from rag_selectivity.measures.answers import ScoreKind
from rag_selectivity.results.answers import (
    CLOSED_BOOK,
    AnswerReport,
    AnswerRow,
    Contrast,
    Shown,
    Spent,
)
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.wording import counted


def planned_spending(distinct: int, missing: Sequence[AnswerPrompt], gate: Gate) -> Spent:
    usage, prices = estimated_usage(missing), gate.budget.prices
    cost = None if prices is None else prices.of(usage)
    return Spent(distinct, distinct - len(missing), len(missing), usage, cost, dry_run=True)


def scored_row(
    planned: Planned, answer: Answer, read: Reading, kinds: Mapping[str, ScoreKind], scoring: AnswerJudge | None
) -> AnswerRow:
    reference = read.references[planned.query]
    scores = ruled_scores(kinds, planned, answer, reference, read.sets.judged.get(planned.query))
    if scoring is not None:
        scores |= scoring.scores(planned, answer, reference)
    return AnswerRow(
        planned.query,
        planned.shown,
        planned.passages,
        answer.text,
        answer.abstained,
        tuple(planned.passages[number - 1] for number in answer.cited),
        {name: scores[name] for name in kinds},
        planned.prompt.content.hex(),
        answer.served_model,
    )


def settings_of(model: Judge, judge: Judge | None, depths: Sequence[int], bootstrap: Bootstrap) -> dict[str, Any]:
    return {
        "model": model.name,
        "parameters": dict(model.parameters),
        "judge": None if judge is None else judge.name,
        "depths": sorted(set(depths)),
        **bootstrap.settings,
    }


def report_of(
    read: Reading,
    kinds: Mapping[str, ScoreKind],
    rows: Sequence[AnswerRow],
    found: Mapping[tuple[str, Shown], AnswerRow],
    bootstrap: Bootstrap,
    baseline: str | None,
    spent: Spent,
    settings: Mapping[str, Any],
) -> AnswerReport:
    queries = tuple(read.references)
    figures: dict[tuple[Shown, str], Estimate] = {}
    differences: list[Contrast] = []
    if rows:
        for name, kind in kinds.items():
            values = ((row.query, row.shown, row.scores[name]) for row in rows)
            shown = [each for each in read.shown if not (kind.needs_passages and each.run == CLOSED_BOOK)]
            scored = scored_of(kind, queries, (value for value in values if value[1] in shown), shown)
            figures |= {(each, name): estimate for each, estimate in estimates(scored, bootstrap).items()}
            differences += contrasts(scored, bootstrap, baseline)
    notes = list(read.notes)
    lost = len(read.planned) - len(found)
    if rows and lost:
        notes.append(
            f"{lost:,} of {counted(len(read.planned), 'answer')} are missing, because calls failed or the run stopped; "
            f"each figure says over how many queries it is (n)"
        )
    return AnswerReport(figures, tuple(differences), queries, kinds, settings, tuple(rows), tuple(notes), spent)
