"""`measure_answers`: what an LLM answers from the sets that runs retrieve, with controls, order and distraction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_selectivity.answers.figures import Scored, figures_of
from rag_selectivity.answers.prompt import INSTRUCTIONS, PROMPT_VERSION, read_references
from rag_selectivity.answers.scoring import ANSWER_RUBRIC, AnswerJudge, chosen_scores, ruled_scores
from rag_selectivity.answers.sets import Plan, all_shown, plan
from rag_selectivity.compare.differences import known_baseline
from rag_selectivity.errors import InputError
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.given import whole_numbers
from rag_selectivity.grading.judge import judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.questions import Asker, Question
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.runner import asking, blocking
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.reading import named_runs
from rag_selectivity.results.answers import CLOSED_BOOK, RESERVED, AnswerReport, AnswerRow, ScoreKind, Spent
from rag_selectivity.results.usage import Usage
from rag_selectivity.wording import counted

#: How many passages of each list are shown, unless the user says so.
DEFAULT_DEPTHS = (10,)
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
        Of `rag_selectivity.results.answers.SCORES`. Default: all that what was given allows.
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
    if taken := [name for name in runs if name in RESERVED]:
        raise InputError(
            f"a run cannot be called {taken[0]!r}, which is a control: name it otherwise (NAME=FILE); the names "
            f"{', '.join(RESERVED)} are taken"
        )
    known_baseline(baseline, runs)
    right = read_references(references)
    kinds = chosen_scores(
        scores,
        multiple_choice=any(reference.choices for reference in right.values()),
        cite=cite,
        abstain=abstain,
        labels=qrels is not None,
        judge=judge is not None,
    )
    depths, junk = whole_numbers(depths, "depth"), whole_numbers(junk, "number of junk passages", 0)
    alone = getattr(model, "answers_without_passages", True)
    shown = all_shown(runs, depths, controls, orders, junk, labels=qrels is not None, alone=alone)
    if not isinstance(instructions, str):
        raise InputError(f"instructions must be a text, got {instructions!r:.80}")
    asked, grader = judge_of(model), None if judge is None else judge_of(judge)
    wording = {"instructions": instructions, "cite": cite, "abstain": abstain}
    planned = plan(runs, corpus, queries, right, (qrels, scale), shown, seed, wording)
    gate, rows = Gate(limits, budget), list[AnswerRow]()
    settings = {
        "model": asked.name,
        "parameters": dict(asked.parameters),
        "judge": None if grader is None else grader.name,
        "depths": sorted(set(depths)),
        **bootstrap.settings,
    }
    with Store.of_run(store, dry_run=dry_run) as opened:
        answering = Settings("answer", asked.name, asked.parameters, prompt_version=PROMPT_VERSION)
        answers = Asker(opened, answering, served)
        missing = answers.missing(each.prompt for each in planned.prompts)
        prompts = len({each.prompt.content for each in planned.prompts})
        cached = prompts - len(missing)
        if dry_run:
            spent = Spent(prompts, cached, len(missing), dry_run=True, **_estimated(missing, budget))
            return _report(planned, kinds, (), bootstrap, baseline, settings, spent)
        scoring = None if grader is None else AnswerJudge(opened, grader, rubric, list(kinds))
        with asking(asked, gate, len(missing), "answering", progress) as runner:
            await answers.ask(runner, missing)
            runner.raise_if_fatal()
            stored = [(each, found) for each in planned.prompts if (found := answers.found(each.prompt)) is not None]
            said = [
                (each.prompt.question, each.prompt.row(each.query, each.shown, *found), right[each.query])
                for each, found in stored
            ]
            _refuse_mixed_models([row for _, row, _ in said])
            if scoring is not None and grader is not None and gate.stop is None:
                runner.turn_to(grader)
                await scoring.ask(runner, said)
                runner.raise_if_fatal()
        for question, row, reference in said:
            by_name = ruled_scores(kinds, row, reference, planned.relevant.get(row.query, ()))
            if scoring is not None:
                by_name |= scoring.scores(question, row, reference)
            rows.append(replace(row, scores={name: by_name[name] for name in kinds}))
        spent = Spent(prompts, cached, gate.spending.requests, **runner.told())
    settings["served"] = sorted({row.served_model for row in rows if row.served_model is not None})
    return _report(planned, kinds, rows, bootstrap, baseline, settings, spent)


measure_answers = blocking(ameasure_answers)


def _estimated(missing: Sequence[Question], budget: Budget) -> dict[str, Any]:
    """The tokens that prompts would take, at four characters a token, and their cost; None without prices."""
    characters = sum(len(message["content"]) for prompt in missing for message in prompt.messages())
    usage = Usage(characters // 4, _ANSWER_TOKENS * len(missing))
    return {"usage": usage, "cost": budget.price(usage)}


def _report(
    planned: Plan,
    kinds: Mapping[str, ScoreKind],
    rows: Sequence[AnswerRow],
    bootstrap: Bootstrap,
    baseline: str | None,
    settings: Mapping[str, Any],
    spent: Spent,
) -> AnswerReport:
    queries, notes, scored = tuple(planned.references), planned.notes, []
    for name, kind in kinds.items() if rows else ():
        shown = [each for each in planned.shown if not (kind.needs_passages and each.run == CLOSED_BOOK)]
        by_query = {each: {row.query: row.scores[name] for row in rows if row.shown == each} for each in shown}
        scored.append(Scored.of(kind, queries, by_query))
    if rows and (lost := len(planned.prompts) - len(rows)):
        notes += (
            f"{lost:,} of {counted(len(planned.prompts), 'answer')} are missing, because calls failed or the run "
            f"stopped; each figure says over how many queries it is (n)",
        )
    figures, differences = figures_of(scored, bootstrap, baseline)
    return AnswerReport(figures, differences, queries, kinds, settings, tuple(rows), notes, spent)


def _refuse_mixed_models(rows: Sequence[AnswerRow]) -> None:
    """Refuse answers of several models behind one name."""
    if len(named := Counter(row.served_model for row in rows if row.served_model is not None)) < 2:
        return
    first = {row.served_model: row for row in reversed(rows)}
    each = "; ".join(
        f"{name} gave {count:,}, such as that of query {first[name].query!r} with {first[name].shown}"
        for name, count in named.most_common()
    )
    newest = named.most_common(1)[0][0]
    raise InputError(
        f"the model changed between the answers, and no figure mixes models: {each}. Choose one with served={newest!r} "
        f"(-c judge.served={newest}): the answers of the others are asked for again"
    )
