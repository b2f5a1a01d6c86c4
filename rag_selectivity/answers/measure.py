"""`measure_answers`: what an LLM answers from the sets that runs retrieve, with controls, order and distraction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_selectivity.answers.asking import AnswerStore, refuse_mixed_models
from rag_selectivity.answers.planning import (
    all_shown,
    controls_given,
    counts_given,
    instructions_given,
    read_all,
    refuse_names,
)
from rag_selectivity.answers.prompt import INSTRUCTIONS
from rag_selectivity.answers.references import read_references
from rag_selectivity.answers.reporting import planned_spending, report_of, scored_row, settings_of
from rag_selectivity.answers.scoring import ANSWER_RUBRIC, AnswerJudge, chosen_scores
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.judge import judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.runner import Runner
from rag_selectivity.grading.session import asking, blocking, raise_if_fatal
from rag_selectivity.grading.store import Store
from rag_selectivity.judged.reading import named_runs
from rag_selectivity.results.answers import AnswerReport, Spent
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.tables.cells import names_in

#: How many passages of each list are shown, unless the user says so.
DEFAULT_DEPTHS = (10,)


async def ameasure_answers(
    run: Any,
    *,
    corpus: Any,
    queries: Any,
    references: Any,
    model: Any,
    store: str | Path,
    depths: Sequence[int] = DEFAULT_DEPTHS,
    qrels: Any = None,
    scale: str | None = None,
    controls: Sequence[str] | None = None,
    orders: Sequence[str] = (),
    junk: Sequence[int] = (),
    scores: Sequence[str] | None = None,
    judge: Any = None,
    rubric: Rubric = ANSWER_RUBRIC,
    instructions: str = INSTRUCTIONS,
    cite: bool = True,
    abstain: bool = True,
    served: str | None = None,
    baseline: str | None = None,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    gate: Gate | None = None,
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
        The LLM that answers, such as `rag_selectivity.grading.openai_judge.OpenAIJudge`.
    store : str or Path
        Holds the answers; no prompt is sent twice.
    depths : sequence of int
        How many passages of each list are shown.
    qrels : qrels, DataFrame or path, optional
        Labels, for the ideal sets, junk, the decisive passage and citations.
    scale : {"trec", "utility"}, optional
        Of the labels.
    controls : sequence of {"closed-book", "random", "ideal"}, optional
        Default: all three; `ideal` only with labels.
    orders : sequence of {"worst-first", "shuffled", "middle"}
        Show the lists in these orders too.
    junk : sequence of int
        Numbers of hard negatives that are added to the relevant passages, such as (0, 2, 5, 10, 20). Hard negatives are
        judged passages of grade 1 or 2 (scale `trec`: 0), the best ranked first.
    scores : sequence of str, optional
        Of `rag_selectivity.measures.answers.SCORES`. Default: all that what was given allows.
    judge : Judge or async function, optional
        Grades answers from 1 to 5, and checks the claims of the references.
    rubric : Rubric
        Of the judge.
    instructions : str
        What the model is told first, in place of the default.
    cite, abstain : bool
        Whether the model is asked for its passages, and whether it may decline to answer.
    served : str, optional
        Count only answers of the model that the server calls so.
    baseline : str, optional
        The run that the others are compared with. Default: the first one.
    limits, budget : Limits, Budget
        For the model and the judge together.
    gate : Gate, optional
        As in `rag_selectivity.grade`.
    bootstrap : Bootstrap
        For the intervals, and the level, seed and clusters of the contrasts.
    seed : int
        Of the random passages and the shuffled orders.
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
    refuse_names(runs, baseline)
    right = read_references(references)
    multiple_choice = any(reference.choices for reference in right.values())
    kinds = chosen_scores(
        scores,
        multiple_choice=multiple_choice,
        cite=cite,
        abstain=abstain,
        labels=qrels is not None,
        judge=judge is not None,
    )
    asked, grader = judge_of(model), None if judge is None else judge_of(judge)
    chosen = controls_given(controls, labels=qrels is not None, alone=getattr(asked, "answers_without_passages", True))
    depths, junk = counts_given(depths, "depth", 1), counts_given(junk, "number of junk passages", 0)
    shown = all_shown(runs, depths, chosen, names_in(orders, "orders"), junk, labels=qrels is not None)
    wording = {"instructions": instructions_given(instructions), "cite": cite, "abstain": abstain}
    read = read_all(runs, corpus, queries, right, qrels, scale, shown, seed, wording)
    gate = gate or Gate(limits, budget)
    with Store(store) as opened:
        answers = AnswerStore(opened, asked, served)
        missing = answers.missing(read.planned)
        distinct = len({each.prompt.content for each in read.planned})
        settings = settings_of(asked, grader, depths, bootstrap)
        if dry_run:
            spent = planned_spending(distinct, missing, gate)
            return report_of(read, kinds, [], {}, bootstrap, baseline, spent, settings)
        judging = None
        with asking(asked, gate, len(missing), "answering", progress) as session:
            runner = session.runner
            await answers.ask(runner, missing)
            raise_if_fatal(gate)
            found = [(each, answer) for each in read.planned if (answer := answers.answer(each.prompt)) is not None]
            refuse_mixed_models(found)
            scoring = None if grader is None else AnswerJudge(opened, grader, rubric, list(kinds))
            if scoring is not None and grader is not None and gate.stop is None:
                judging = session.runner = Runner(grader, gate)
                await scoring.ask(judging, found, read.references)
                raise_if_fatal(gate)
        done = [runner.progress, *([judging.progress] if judging is not None else [])]
        rows = {(each.query, each.shown): scored_row(each, answer, read, kinds, scoring) for each, answer in found}
        errors: dict[str, int] = {}
        for progress_of in done:
            for name, count in progress_of.errors.items():
                errors[name] = errors.get(name, 0) + count
        spent = Spent(
            distinct,
            distinct - len(missing),
            gate.spending.requests,
            gate.spending.usage,
            gate.spending.cost,
            sum(each.failed for each in done),
            errors,
            next((each.last_error for each in reversed(done) if each.last_error), None),
            None if gate.stop is None else gate.stop.why,
            None if gate.stop is None else gate.stop.cause,
        )
        served_models = sorted({row.served_model for row in rows.values() if row.served_model is not None})
        return report_of(
            read,
            kinds,
            list(rows.values()),
            rows,
            bootstrap,
            baseline,
            spent,
            {**settings, "served": served_models},
        )


measure_answers = blocking(ameasure_answers)
