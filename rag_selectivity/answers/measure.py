"""`measure_answers`: what an LLM answers from the sets that runs retrieve, with controls, order and distraction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_selectivity.answers.asking import (
    AnswerStore,
    Planned,
    estimated_usage,
    refuse_mixed_models,
)
from rag_selectivity.answers.figures import contrasts, estimates, scored_of
from rag_selectivity.answers.prompt import INSTRUCTIONS, Answer, AnswerPrompt
from rag_selectivity.answers.references import Reference, read_references
from rag_selectivity.answers.scoring import ANSWER_RUBRIC, AnswerJudge, chosen_scores, ruled_scores
from rag_selectivity.answers.sets import HARD_NEGATIVE, Judged, Sets, controls_of, judged_passages, needs_labels
from rag_selectivity.data.cells import iterated, names_in
from rag_selectivity.data.columns import PASSAGE_NAMES, QUERY_NAMES
from rag_selectivity.data.grades import SCALES
from rag_selectivity.errors import InputError, did_you_mean, examples
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.judge import GradingError, Judge, judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.runner import Runner
from rag_selectivity.grading.session import interruptible, progress_line, run_blocking
from rag_selectivity.grading.store import Store
from rag_selectivity.io.reading import is_path, named_runs, qrels_of, ranked_lists, read_corpus_ids
from rag_selectivity.io.texts import needed_texts, read_texts
from rag_selectivity.measures.answers import ScoreKind
from rag_selectivity.results.answers import (
    BEST_FIRST,
    CLOSED_BOOK,
    CONTROLS,
    IDEAL,
    JUNK,
    ORDERS,
    RANDOM,
    RESERVED,
    AnswerReport,
    AnswerRow,
    Contrast,
    Shown,
    Spent,
)
from rag_selectivity.results.estimate import SOFT, Caveat, Estimate
from rag_selectivity.results.provenance import SAME_FAMILY, SELF_PREFERENCE, family_of
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.wording import counted

#: How many passages of each list are shown, unless the user says so.
DEFAULT_DEPTHS = (10,)


@dataclass(frozen=True, slots=True)
class _Read:
    """What the user gave, read: the references, and the sets and texts that are shown."""

    references: Mapping[str, Reference]
    sets: Sets
    shown: tuple[Shown, ...]
    planned: tuple[Planned, ...]
    notes: tuple[str, ...]


def measure_answers(
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
    return run_blocking(
        lambda: ameasure_answers(
            run,
            corpus=corpus,
            queries=queries,
            references=references,
            model=model,
            store=store,
            depths=depths,
            qrels=qrels,
            scale=scale,
            controls=controls,
            orders=orders,
            junk=junk,
            scores=scores,
            judge=judge,
            rubric=rubric,
            instructions=instructions,
            cite=cite,
            abstain=abstain,
            served=served,
            baseline=baseline,
            limits=limits,
            budget=budget,
            gate=gate,
            bootstrap=bootstrap,
            seed=seed,
            dry_run=dry_run,
            progress=progress,
        )
    )


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
    """`measure_answers` for a running event loop."""
    runs = named_runs(run)
    _refuse_names(runs, baseline)
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
    chosen = _controls(controls, labels=qrels is not None, alone=getattr(asked, "answers_without_passages", True))
    shown = _shown(runs, depths, chosen, orders, junk, labels=qrels is not None)
    wording = {"instructions": instructions, "cite": cite, "abstain": abstain}
    read = _read(runs, corpus, queries, right, qrels, scale, shown, seed, wording)
    gate = gate or Gate(limits, budget)
    with Store(store) as opened:
        answers = AnswerStore(opened, asked, served)
        missing = answers.missing(read.planned)
        distinct = len({each.prompt.content for each in read.planned})
        settings = _settings(asked, grader, depths, bootstrap)
        if dry_run:
            spent = _planned_spending(distinct, missing, gate)
            return _report(read, kinds, [], {}, bootstrap, baseline, spent, settings)
        watch, close = progress_line(len(missing), "answering", progress)
        runner = Runner(asked, gate, watch)
        judging = None
        try:
            with interruptible(runner) as interruption:
                await answers.ask(runner, missing)
                _raise_if_fatal(gate)
                found = [(each, answer) for each in read.planned if (answer := answers.answer(each.prompt)) is not None]
                refuse_mixed_models(found)
                scoring = None if grader is None else AnswerJudge(opened, grader, rubric, list(kinds))
                if scoring is not None and grader is not None and gate.stop is None:
                    judging = interruption.runner = Runner(grader, gate)
                    await scoring.ask(judging, found, read.references)
                    _raise_if_fatal(gate)
        finally:
            close()
        done = [runner.progress, *([judging.progress] if judging is not None else [])]
        rows = {(each.query, each.shown): _scored(each, answer, read, kinds, scoring) for each, answer in found}
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
        caveats = _caveats(asked, grader, served_models)
        return _report(
            read,
            kinds,
            list(rows.values()),
            rows,
            bootstrap,
            baseline,
            spent,
            {**settings, "served": served_models},
            caveats,
        )


# -- what was given ------------------------------------------------------------------------------------


def _refuse_names(runs: Mapping[str, Any], baseline: str | None) -> None:
    taken = [name for name in runs if name in RESERVED]
    if taken:
        raise InputError(
            f"a run cannot be called {taken[0]!r}, which is a control: name it otherwise (--run NAME=FILE); the names "
            f"{', '.join(RESERVED)} are taken"
        )
    if baseline is not None and not (isinstance(baseline, str) and baseline in runs):
        raise InputError(
            f"the baseline {baseline!r} is none of the runs {', '.join(runs)}{did_you_mean(baseline, runs)}"
        )


def _controls(given: Sequence[str] | None, *, labels: bool, alone: bool) -> Sequence[str]:
    """The controls asked for, or all that are possible; `alone`: whether the model answers without passages."""
    if given is None:
        return [name for name in CONTROLS if (name != IDEAL or labels) and (name != CLOSED_BOOK or alone)]
    given = names_in(given, "controls")
    if CLOSED_BOOK in given and not alone:
        raise InputError(f"this pipeline gives no answer without passages: leave the control {CLOSED_BOOK!r} out")
    return given


def _shown(
    runs: Mapping[str, Any],
    depths: Sequence[int],
    controls: Sequence[str],
    orders: Sequence[str],
    junk: Sequence[int],
    *,
    labels: bool,
) -> list[Shown]:
    """All that the model is shown, checked."""
    for what, numbers, lowest in (("depth", depths, 1), ("number of junk passages", junk, 0)):
        for number in iterated(numbers, f"{what}: give a list of whole numbers"):
            if isinstance(number, bool) or not isinstance(number, int) or number < lowest:
                raise InputError(f"{what} {number!r} is not a whole number ≥ {lowest}")
    if not depths:
        raise InputError("no depth was given: say how many passages are shown, as in depths=[10] (-k 10)")
    for known, names, what in ((CONTROLS, controls, "control"), (ORDERS, orders, "order")):
        for name in names_in(names, f"{what}s"):
            if name not in known:
                raise InputError(f"{what}s are {', '.join(known)}, got {name!r}{did_you_mean(name, known)}")
    if len(set(junk)) == 1:
        raise InputError(
            f"junk={tuple(junk)}: two different numbers of junk passages are needed for a slope (--junk 0,5)"
        )
    at = sorted(set(depths))
    shown = [Shown(name, k, order) for name in runs for k in at for order in dict.fromkeys((BEST_FIRST, *orders))]
    shown += [*controls_of(list(dict.fromkeys(controls)), at), *(Shown(JUNK, count) for count in sorted(set(junk)))]
    of_labels = [each for each in shown if needs_labels(each)]
    if of_labels and not labels:
        raise InputError(
            f"{of_labels[0]} needs to know which passages are relevant: give labels, qrels=… (--qrels FILE)"
        )
    return shown


def _read(
    runs: Mapping[str, Any],
    corpus: Any,
    queries: Any,
    references: Mapping[str, Reference],
    qrels: Any,
    scale: str | None,
    shown: Sequence[Shown],
    seed: int,
    wording: Mapping[str, Any],
) -> _Read:
    depth = max(each.k or 0 for each in shown if each.is_run)
    # Hard negatives are those that rank high in the whole lists.
    whole = any(each.run == JUNK for each in shown)
    lists = {name: dict(ranked_lists(each, None if whole else depth)) for name, each in runs.items()}
    ids = _corpus_ids(corpus) if any(each.run == RANDOM for each in shown) else []
    deepest = max((each.k or 0 for each in shown if each.run == RANDOM), default=0)
    if ids and deepest > len(ids):
        raise InputError(f"{deepest} random passages cannot be drawn from a corpus of {len(ids):,}: give a smaller K")
    judged = _judged(qrels, scale, references, lists)
    sets = Sets(lists, judged, ids, seed)
    planned, lacking = _sets_of_all(sets, list(references), shown)
    passages = dict.fromkeys(passage for _, _, ids_of_set in planned for passage in ids_of_set)
    questions = needed_texts(queries, "queries", QUERY_NAMES, dict.fromkeys(references))
    texts = needed_texts(corpus, "corpus", PASSAGE_NAMES, passages)
    prompts = tuple(
        Planned(
            query,
            each,
            ids_of_set,
            AnswerPrompt(
                questions[query],
                tuple((passage, texts[passage]) for passage in ids_of_set),
                references[query].choices,
                **wording,
            ),
        )
        for query, each, ids_of_set in planned
    )
    notes = [*_notes_on_lists(lists, references), *_notes_on_sets(lacking, len(references))]
    return _Read(references, sets, tuple(shown), prompts, tuple(notes))


def _sets_of_all(
    sets: Sets, queries: Sequence[str], shown: Sequence[Shown]
) -> tuple[list[tuple[str, Shown, tuple[str, ...]]], dict[Shown, list[str]]]:
    """The sets query by query, so that a run that stops has whole queries; and the queries that lack a set.

    A query without one of the sets with junk has none of them: the slope compares the same queries at all numbers.
    """
    planned: list[tuple[str, Shown, tuple[str, ...]]] = []
    lacking: dict[Shown, list[str]] = {each: [] for each in shown}
    for query in queries:
        of_query = {each: sets.passages(query, each) for each in shown}
        no_junk = any(passages is None for each, passages in of_query.items() if each.run == JUNK)
        for each, passages in of_query.items():
            if passages is None or (no_junk and each.run == JUNK):
                lacking[each].append(query)
            else:
                planned.append((query, each, passages))
    return planned, lacking


def _corpus_ids(corpus: Any) -> list[str]:
    """The ids of all passages, sorted: the draw does not depend on the order of a file."""
    if is_path(corpus):
        return sorted(set(read_corpus_ids(corpus)))
    if isinstance(corpus, Mapping):
        return sorted(map(str, corpus))
    return sorted({id_ for id_, _ in read_texts(corpus, "corpus", PASSAGE_NAMES)})


def _judged(
    qrels: Any, scale: str | None, references: Mapping[str, Reference], lists: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, Judged]:
    if qrels is None:
        return {}
    labels = qrels_of(qrels).on_scale(scale)
    settled = SCALES[str(labels.scale)]
    junk_to = HARD_NEGATIVE if settled.name == "utility" else settled.relevant_from - 1
    known = [query for query in references if query in labels]
    if not known:
        raise InputError(
            f"qrels: none of the {counted(len(references), 'query', 'queries')} with a reference has a label: labels "
            f"have {examples(labels)}, references {examples(references)}; do both use the same ids?"
        )
    return {
        query: judged_passages(
            labels[query], settled.relevant_from, junk_to, [each.get(query, ()) for each in lists.values()]
        )
        for query in known
    }


def _notes_on_lists(lists: Mapping[str, Mapping[str, Sequence[str]]], references: Mapping[str, Reference]) -> list[str]:
    notes = []
    for name, each in lists.items():
        lacking = [query for query in references if query not in each]
        if len(lacking) == len(references):
            raise InputError(
                f"run {name} has no list of any query with a reference: the run has {examples(each) or 'none'}, the "
                f"references are of {examples(references)}; do both use the same ids?"
            )
        if lacking:
            notes.append(
                f"{name} lacks {counted(len(lacking), 'query', 'queries')} with a reference ({examples(lacking)}); the "
                f"model answers these without passages"
            )
        left_out = [query for query in each if query not in references]
        if left_out:
            verb = "is" if len(left_out) == 1 else "are"
            notes.append(
                f"{counted(len(left_out), 'query', 'queries')} of {name} without a reference {verb} left out "
                f"({examples(left_out)})"
            )
        repeated = [query for query in references if len(set(each.get(query, ()))) < len(each.get(query, ()))]
        if repeated:
            notes.append(
                f"{name} has a passage twice in the lists of {counted(len(repeated), 'query', 'queries')} "
                f"({examples(repeated)}); the model is shown it twice, as your application would"
            )
    return notes


def _notes_on_sets(lacking: Mapping[Shown, Sequence[str]], total: int) -> list[str]:
    notes = []
    junk = [each for each in lacking if each.run == JUNK]
    if junk and lacking[junk[-1]]:
        without = lacking[junk[-1]]
        notes.append(
            f"{len(without):,} of {counted(total, 'query', 'queries')} have no relevant passage or fewer than "
            f"{junk[-1].k} judged hard negatives ({examples(without)}), and are no part of the figures with junk"
        )
    for each, without in lacking.items():
        if without and each.run == IDEAL:
            notes.append(
                f"{len(without):,} of {counted(total, 'query', 'queries')} have no relevant passage in the labels "
                f"({examples(without)}), and no ideal answer"
            )
        elif without and each.run != JUNK:
            notes.append(
                f"{each}: {len(without):,} of {counted(total, 'list')} hold no relevant passage to put in the middle, "
                f"and are left out of this order"
            )
    return notes


def _planned_spending(distinct: int, missing: Sequence[AnswerPrompt], gate: Gate) -> Spent:
    usage, prices = estimated_usage(missing), gate.budget.prices
    cost = None if prices is None else prices.of(usage)
    return Spent(distinct, distinct - len(missing), len(missing), usage, cost, dry_run=True)


# -- what becomes of it --------------------------------------------------------------------------------


def _raise_if_fatal(gate: Gate) -> None:
    if gate.stop is not None and gate.stop.cause == "fatal":
        raise GradingError(f"{gate.stop.why}; nothing more was sent (how-to: stopped-grading)")


def _scored(
    planned: Planned, answer: Answer, read: _Read, kinds: Mapping[str, ScoreKind], scoring: AnswerJudge | None
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


def _settings(model: Judge, judge: Judge | None, depths: Sequence[int], bootstrap: Bootstrap) -> dict[str, Any]:
    return {
        "model": model.name,
        "parameters": dict(model.parameters),
        "judge": None if judge is None else judge.name,
        "depths": sorted(set(depths)),
        **bootstrap.settings,
    }


def _caveats(model: Judge, judge: Judge | None, served: Sequence[str]) -> tuple[Caveat, ...]:
    """What a judge's own likes may do to its scores."""
    if judge is None:
        return ()
    if judge.name == model.name or judge.name in served:
        text = (
            f"{judge.name} judges its own answers, and models tend to prefer what they wrote themselves: its grades "
            f"may be too high, more so for some sets than for others. Have another model judge."
        )
        return (Caveat(SELF_PREFERENCE, text, SOFT, {"model": model.name}),)
    if family_of(judge.name) == family_of(model.name):
        text = (
            f"the judge {judge.name} and the answering model {model.name} have one maker, and judges tend to favour "
            f"what their own family writes."
        )
        return (Caveat(SAME_FAMILY, text, SOFT, {"families": [family_of(judge.name)]}),)
    return ()


def _report(
    read: _Read,
    kinds: Mapping[str, ScoreKind],
    rows: Sequence[AnswerRow],
    found: Mapping[tuple[str, Shown], AnswerRow],
    bootstrap: Bootstrap,
    baseline: str | None,
    spent: Spent,
    settings: Mapping[str, Any],
    caveats: tuple[Caveat, ...] = (),
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
    return AnswerReport(
        figures, tuple(differences), queries, kinds, settings, tuple(rows), tuple(notes), caveats, spent
    )
