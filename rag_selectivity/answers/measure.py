"""`measure_answers`: what an LLM answers from the passages that runs retrieve, beside controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.answers.figures import Scored, figures_of
from rag_selectivity.answers.references import Reference, read_references
from rag_selectivity.answers.scoring import (
    ANSWER_RUBRIC,
    JUDGED,
    answer_text,
    chosen_scores,
    grade_question,
    scores_of,
)
from rag_selectivity.answers.sets import PROMPT_VERSION, Planned, all_shown, plan
from rag_selectivity.errors import InputError
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.given import known_baseline, whole_numbers
from rag_selectivity.grading.judge import judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.questions import Asker, Question
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.runner import asking, blocking
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.reading import named_runs
from rag_selectivity.results.answers import CONTROLS, AnswerReport, AnswerRow, Shown, Spent
from rag_selectivity.results.usage import Usage
from rag_selectivity.wording import counted

#: Tokens of an answer, for the estimate of a dry run.
_ANSWER_TOKENS = 60


async def ameasure_answers(
    run: Any,
    *,
    corpus: Any,
    queries: Any,
    references: Any,
    model: Any,
    store: str | Path,
    depths: Sequence[int] = (10,),
    qrels: Any = None,
    scale: str | None = None,
    controls: Sequence[str] | None = None,
    scores: Sequence[str] | None = None,
    judge: Any = None,
    rubric: Rubric = ANSWER_RUBRIC,
    baseline: str | None = None,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    bootstrap: Bootstrap = Bootstrap(),
    seed: int = 7,
    dry_run: bool = False,
    progress: bool = True,
) -> AnswerReport:
    """Have an LLM answer from exactly the passages that runs retrieved, and score what it answers.

    Parameters
    ----------
    run : run, or {name: run}
    corpus, queries : {id: text}, records, DataFrame or path
        The texts of the passages and of the questions.
    references : {query: right answer or list of right answers}, records, DataFrame or path
        With a column `choices`, multiple choice. Queries without a reference are left out.
    model : Judge or async function
        The LLM that answers, such as `rag_selectivity.grading.openai_judge.OpenAIJudge`; or an async function of the
        messages and the schema, which may answer from `messages.question` and `messages.passages`.
    store : str or Path
        Holds the answers; no prompt is sent twice.
    depths : sequence of int
        How many passages of each list are shown.
    qrels : qrels, DataFrame or path, optional
        Labels, for the ideal sets.
    scale : {"trec", "utility"}, optional
        Of the labels.
    controls : sequence of {"closed-book", "random", "ideal"}, optional
        Default: all three; `ideal` only with labels.
    scores : sequence of str, optional
        Of `rag_selectivity.results.answers.SCORES`. Default: all that what was given allows.
    judge : Judge or async function, optional
        Grades answers from 1 to 5.
    rubric : Rubric
        Of the judge.
    baseline : str, optional
        The run that the others are compared with. Default: the first one.
    limits, budget : Limits, Budget
        For the model and the judge together.
    bootstrap : Bootstrap
        For the intervals, and the level, seed and clusters of the contrasts.
    seed : int
        Of the random passages.
    dry_run : bool
        Send nothing, and say what would be sent.
    progress : bool
        Show a progress bar on a terminal.

    Returns
    -------
    AnswerReport

    Raises
    ------
    InputError
        If something that was given is wrong or missing, or if the server named several models.
    GradingError
        If the model cannot be used at all.
    """
    runs = named_runs(run)
    for name in runs:
        if name in CONTROLS:
            raise InputError(f"a run cannot be called {name!r}, which is a control: name it otherwise (NAME=FILE)")
    known_baseline(baseline, runs)
    right = read_references(references)
    multiple_choice = any(reference.choices for reference in right.values())
    kinds = chosen_scores(scores, multiple_choice=multiple_choice, judge=judge is not None)
    asked, grader = judge_of(model), None if judge is None else judge_of(judge)
    shown = all_shown(runs, whole_numbers(depths, "depth"), controls, labels=qrels is not None)
    planned, notes = plan(runs, corpus, queries, right, qrels, scale, shown, seed)
    gate = Gate(limits, budget)
    settings = {
        "model": asked.name,
        "parameters": dict(asked.parameters),
        "judge": None if grader is None else grader.name,
        "depths": sorted(set(depths)),
        **bootstrap.settings,
    }
    rows: list[AnswerRow] = []
    with Store(store) as opened:
        answers = Asker(opened, Settings("answer", asked.name, asked.parameters, prompt_version=PROMPT_VERSION))
        missing = answers.missing(each.prompt for each in planned)
        prompts = len({each.prompt.content for each in planned})
        cached = prompts - len(missing)
        if dry_run:
            spent = Spent(prompts, cached, len(missing), *_estimated(missing, budget), dry_run=True)
        else:
            with asking(asked, gate, len(missing), "answering", progress) as runner:
                await answers.ask(runner, missing)
                runner.raise_if_fatal()
                stored = [(each, found) for each in planned if (found := answers.found(each.prompt)) is not None]
                said = [(each, answer_text(value, right[each.query]), served) for each, (value, served) in stored]
                _refuse_mixed_models(said)
                grades = None
                if grader is not None and not kinds.keys().isdisjoint(JUDGED) and gate.stop is None:
                    version = rubric.version
                    grading = Settings("answer grade", grader.name, grader.parameters, rubric.name, version, "1")
                    grades = Asker(opened, grading)
                    about = [_about(rubric, each, text, right) for each, text, _ in said if text.strip()]
                    runner.turn_to(grader)
                    await grades.ask(runner, about)
                    runner.raise_if_fatal()
            for each, text, served in said:
                graded = partial(_grade, grades, _about(rubric, each, text, right))
                passages = tuple(passage for passage, _ in each.prompt.passages)
                of_answer = scores_of(kinds, text, right[each.query], graded)
                rows.append(AnswerRow(each.query, each.shown, passages, text, of_answer, served))
            spent = Spent(prompts, cached, gate.spending.requests, **runner.told())
            settings["served"] = sorted({row.served_model for row in rows if row.served_model is not None})
            if lost := len(planned) - len(rows):
                notes.append(
                    f"{lost:,} of {counted(len(planned), 'answer')} are missing, because calls failed or the run "
                    f"stopped; each figure says over how many queries it is (n)"
                )
    scored = [Scored(kind, tuple(right), _columns(rows, name, right, shown)) for name, kind in kinds.items() if rows]
    figures, differences = figures_of(scored, bootstrap, baseline)
    return AnswerReport(figures, differences, tuple(right), kinds, settings, tuple(rows), tuple(notes), spent)


measure_answers = blocking(ameasure_answers)


def _about(rubric: Rubric, planned: Planned, text: str, references: Mapping[str, Reference]) -> Question:
    return grade_question(rubric, planned.prompt.question, references[planned.query], text)


def _grade(grades: Asker | None, question: Question) -> float:
    """The grade in the store; NaN if there is none."""
    found = None if grades is None else grades.answer(question)
    return float("nan") if found is None else float(found["grade"])


def _columns(
    rows: Sequence[AnswerRow], score: str, queries: Mapping[str, Any], shown: Sequence[Shown]
) -> dict[Shown, Any]:
    """{what was shown: float64[queries]} of a score; NaN without an answer."""
    place = {query: i for i, query in enumerate(queries)}
    values = {each: np.full(len(place), np.nan) for each in shown}
    for row in rows:
        values[row.shown][place[row.query]] = row.scores[score]
    return values


def _estimated(missing: Sequence[Question], budget: Budget) -> tuple[Usage, float | None]:
    """The tokens that prompts would take, at four characters a token, and their cost; None without prices."""
    characters = sum(len(message["content"]) for prompt in missing for message in prompt.messages())
    usage = Usage(characters // 4, _ANSWER_TOKENS * len(missing))
    return usage, None if budget.prices is None else budget.prices.of(usage)


def _refuse_mixed_models(answers: Sequence[tuple[Planned, str, str | None]]) -> None:
    """Refuse answers of several models behind one name."""
    named = Counter(served for _, _, served in answers if served is not None)
    if len(named) > 1:
        each = "; ".join(f"{name} gave {count:,}" for name, count in named.most_common())
        raise InputError(
            f"the model changed between the answers, and no figure mixes models: {each}. Name the one that you mean "
            f"(model=…, --model), or give a new store"
        )
