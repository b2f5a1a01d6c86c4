"""Claim checks: which passage supports which claim of an answer, and the measures that follow.

A judge splits the reference into claims and entities once. Then it checks every passage against them, one call for
each passage. The results give Context Precision, Recall, Entity Recall and Relevance at every K, the redundancy of the
passages, and the smallest set of passages that supports as much. The claims of a response are checked in the same way:
that is Groundedness.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rag_selectivity.compare.differences import Testing, as_family, differences, known_baseline
from rag_selectivity.errors import InputError, examples
from rag_selectivity.evaluation.caveats import of_origins
from rag_selectivity.evaluation.report import estimates_of_table
from rag_selectivity.grading.claim_checks import PROMPT_VERSION, check
from rag_selectivity.grading.claim_verdicts import compared_with_people, name_of, read_verdicts
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.given import notes_on_lists, refuse_questions, whole_numbers
from rag_selectivity.grading.judge import judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.questions import Asker
from rag_selectivity.grading.runner import asking, blocking
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.reading import named_runs, ranked_lists
from rag_selectivity.results.claims import (
    ALL_CHECKS,
    CHECKS,
    GROUNDEDNESS,
    SAMPLES,
    WHOLE,
    ClaimCheck,
    ClaimMeasure,
    ClaimReport,
    ClaimRun,
    figures_of_claims,
)
from rag_selectivity.results.difference import RunDifference
from rag_selectivity.results.samples import Sample
from rag_selectivity.tables.cells import check_one_of, is_missing, iterated, names_in, shown
from rag_selectivity.tables.exact import read_records
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.small import needed_texts, read_texts
from rag_selectivity.wording import counted

REFERENCE_NAMES = ("reference", "reference_answer", "ground_truth", "answer", "text", "contents", "content")
RESPONSE_NAMES = ("response", "generated_answer", "answer", "output", "text", "contents", "content")
#: How many passages of each list are read, unless the user says so.
DEFAULT_K = 10
#: The checks that need no reference answer.
WITHOUT_REFERENCE = ("relevance", GROUNDEDNESS)


async def acheck_claims(
    samples: Any = None,
    *,
    run: Any = None,
    corpus: Any = None,
    queries: Any = None,
    references: Any = None,
    responses: Any = None,
    k: int | None = None,
    baseline: str | None = None,
    store: str | Path,
    judge: Any,
    checks: Sequence[str] | None = None,
    depths: Sequence[int] | None = None,
    measures: Sequence[str] = (),
    whole_context: Sequence[int] = (),
    batch: bool = False,
    human: Any = None,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    gate: Gate | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    progress: bool = True,
) -> ClaimReport:
    """Check the retrieved passages against the claims of reference answers, of responses, or of both.

    Give either samples, or a run with the texts of its queries and passages.

    Parameters
    ----------
    samples : list of dict or objects, or path
        Samples with Ragas' fields: `user_input`, `retrieved_contexts` (in rank order) and `reference`. They may be
        the samples of a Ragas dataset, or a JSONL or Parquet file.
    run : run, or {name: run}
        What was retrieved. Several runs are compared query by query. A passage that several of them hold is checked
        once.
    corpus, queries : {id: text}, records, DataFrame or path
        The texts of the passages and of the questions.
    references : {query: text}, records, DataFrame or path, optional
        The right answers, in a column such as `reference`, `ground_truth`, `answer` or `text`.
    responses : {query: text}, records, DataFrame or path, or {run: one of these}, optional
        What was answered with the passages of the run, in a column such as `response`, `answer` or `text`. Several runs
        need one each.
    k : int, optional
        The number of passages of each list that are read. Default: the deepest of `depths` and `measures`, without
        them 10 of a run and all of a sample.
    baseline : str, optional
        The run that the others are compared with. Default: the first one.
    store : str or Path
        Holds the judge's answers; no question is asked twice.
    judge : Judge, async function, or model of Ragas, LlamaIndex or LangChain
    checks : sequence of {"precision", "recall", "entities", "relevance", "groundedness"}, optional
        The first four need no more calls than one of them; `groundedness` takes one more for each passage. Default: the
        first four; of runs, `groundedness` too if there are responses, and `relevance` without references. Only
        `relevance` and `groundedness` need no reference.
    depths : sequence of int, optional
        Up to `k`. Default: 1, 2, 3, 5, 10 and 20, up to the length of the longest list, and `k`.
    measures : sequence of str
        What the report must have, such as "ContextRecall@4": its depth is added to `depths`, and an error says so
        before any request if its check is not made.
    whole_context : sequence of int
        Depths K at which the judge also reads the top K together, for `ContextRecall(whole)@K`. This finds claims
        that only several passages together support. It takes one more call for each sample and K.
    batch : bool
        Check all passages of a sample in one call: cheaper than a call for each, but less reliable for long lists, and
        runs share no passages.
    human : path, records, or DataFrame, optional
        People's verdicts for some of the claims and passages: `query_id`, `claim`, `passage_id` and `verdict`, as a
        sheet of `rag_selectivity.grading.claim_verdicts.verdict_sheet` has them. The report then says how far the
        judge agrees with them.
    limits, budget : Limits, Budget
    gate : Gate, optional
        As in `rag_selectivity.grade`.
    bootstrap : Bootstrap
        For the intervals of the means over samples, and the level and seed of the differences.
    progress : bool
        Show a progress bar on a terminal.

    Returns
    -------
    ClaimReport

    Raises
    ------
    InputError
        If a sample lacks a field that its checks need, or a text of a run is missing.
    GradingError
        If the judge cannot be used at all.

    Notes
    -----
    A passage mentions an entity if it contains the entity's name, whatever the case and accents, or if the judge finds
    the entity under another name.
    """
    depths = None if depths is None else whole_numbers(depths, "depth")
    whole_context = whole_numbers(whole_context, "depth")
    names_in(measures, "measures")
    whole_numbers(() if k is None else (k,), "k")
    of_runs = {"run": run, "corpus": corpus, "queries": queries, "references": references, "responses": responses}
    chosen_checks = _checks(checks, references=samples is not None or references is not None, responses=responses)
    needed = _needed(measures, chosen_checks, whole_context)
    too_deep = [depth for depth in (*(depths or ()), *whole_context, *needed) if k is not None and depth > k]
    if too_deep:
        mend = f"give k={too_deep[0]} (-k), or a depth ≤ {k}"
        raise InputError(f"depth {too_deep[0]} is below the top {k} that is read: {mend}")
    if samples is not None:
        if given := [f"{name} (--{name})" for name, value in of_runs.items() if value is not None]:
            raise InputError(f"samples hold their own texts and lists: leave {', '.join(given)} out")
        by_run, notes = {SAMPLES: read_samples(samples, chosen_checks, k)}, list[str]()
    elif run is None:
        raise InputError("say what was retrieved: give samples, or run=… with corpus=…, queries=… and references=…")
    else:
        _check_needs(chosen_checks, references, responses)
        k = max((*(depths or ()), *whole_context, *needed), default=DEFAULT_K) if k is None else k
        by_run, notes = samples_of_runs(run, corpus, queries, references, responses, k)
    base = known_baseline(baseline, by_run)
    people = None if human is None else read_verdicts(human)
    asked = judge_of(judge)
    gate = gate or Gate(limits, budget)
    settings = Settings("claims", asked.name, asked.parameters, prompt_version=PROMPT_VERSION)
    with Store(store) as answers:
        every = [sample for of_run in by_run.values() for sample in of_run]
        with asking(asked, gate, 0, "checking", progress) as runner:
            checked = await check(every, Asker(answers, settings), runner, chosen_checks, whole_context, batch)
        runner.raise_if_fatal()
        made = iter([each.result() for each in checked])
        results = {name: tuple(islice(made, len(of_run))) for name, of_run in by_run.items()}
    at = tuple(sorted({*_depths(depths, [each for of_run in results.values() for each in of_run], k), *needed}))
    asked_for = [measure for check in chosen_checks for depth in at for measure in ClaimMeasure.all_of(check, depth)]
    asked_for += [ClaimMeasure.named(WHOLE, depth) for depth in whole_context]
    provenance, agreement, on_people = compared_with_people(results, asked.name, people, name_of(human), bootstrap)
    figures = {name: figures_of_claims(of_run, asked_for) for name, of_run in results.items()}
    caveats = tuple(of_origins(provenance))
    checked_runs = {
        name: ClaimRun(table, estimates_of_table(table, bootstrap), label_caveats=caveats, samples=results[name])
        for name, table in figures.items()
    }
    rows, how = _differences(checked_runs, base, bootstrap)
    return ClaimReport(
        runs=checked_runs,
        checks=chosen_checks,
        depths=at,
        **runner.told(),
        calls=gate.spending.requests,
        judge=asked.name,
        baseline=base,
        differences=rows,
        settings={**bootstrap.settings, **how},
        bootstrap=bootstrap,
        agreement=agreement,
        notes=(*notes, *on_people),
    )


check_claims = blocking(acheck_claims)


def _checks(checks: Sequence[str] | None, *, references: bool, responses: Any) -> tuple[str, ...]:
    """The checks in their order; by default those that what was given allows."""
    if checks is None:
        checks = (*(CHECKS if references else ("relevance",)), *(() if responses is None else (GROUNDEDNESS,)))
    checks = names_in(checks, "checks")
    for name in checks:
        check_one_of("checks (--check)", name, ALL_CHECKS)
    if not checks:
        raise InputError("no check was asked for")
    return tuple(name for name in ALL_CHECKS if name in checks)


def _needed(measures: Sequence[str], checks: Sequence[str], whole: Sequence[int]) -> list[int]:
    """The depths of measures that the report must have; an InputError if the check of one is not made."""
    given = {measure.name for check in checks for measure in ClaimMeasure.all_of(check, 1)}
    depths = []
    for measure in map(ClaimMeasure.parse, measures):
        if measure.name == WHOLE:
            if measure.at not in whole:
                raise InputError(f"{measure} needs whole_context=[{measure.at}] (-c judge.whole_context={measure.at})")
        elif measure.name not in given:
            raise InputError(f"{measure} is not checked: the checks are {', '.join(checks)} (checks=…, --check NAME)")
        else:
            depths.append(int(measure.at or 0))
    return depths


def _check_needs(checks: Sequence[str], references: Any, responses: Any) -> None:
    """Refuse checks of a run without the answers that they are about."""
    about_references = [check for check in checks if check not in WITHOUT_REFERENCE]
    if about_references and references is None:
        raise InputError(f"the check {about_references[0]} needs reference answers: references=… (--references FILE)")
    if GROUNDEDNESS in checks and responses is None:
        raise InputError(f"the check {GROUNDEDNESS} needs responses: responses=… (--responses FILE)")


def _depths(depths: Sequence[int] | None, results: Sequence[ClaimCheck], k: int | None) -> tuple[int, ...]:
    if depths is not None:
        return tuple(sorted(set(depths)))
    longest = max(len(result.sample.retrieved_contexts) for result in results) if k is None else k
    usual = {depth for depth in (1, 2, 3, 5, 10, 20) if depth <= max(1, longest)}
    return tuple(sorted(usual if k is None else {*usual, k}))


# -- figures -----------------------------------------------------------------------------------------------


def _differences(
    runs: Mapping[str, ClaimRun], baseline: str, bootstrap: Bootstrap
) -> tuple[tuple[RunDifference, ...], dict[str, Any]]:
    """The paired differences of each run from the baseline, as one family of tests, and how it was tested.

    Measures of which neither more nor less is better are left out.
    """
    asked = [measure for measure, _ in runs[baseline].figures.plan if measure.higher_is_better is not None]
    testing, pairs = Testing(bootstrap), [(name, baseline) for name in runs if name != baseline]
    rows, how = as_family(differences(pairs, runs, asked, testing), testing, runs)
    return rows, how if rows else {}


# -- samples -----------------------------------------------------------------------------------------------


def read_samples(source: Any, checks: Sequence[str], k: int | None = None) -> list[Sample]:
    """Samples from dicts, objects with Ragas' fields, a Ragas dataset, or a JSONL or Parquet file.

    `k` is the number of passages of each sample that are read; None reads all.
    """
    if is_path(source):
        rows: Iterable[tuple[str, Any]] = ((f"{source}:{line}", row) for line, row in read_records(source))
    else:
        expected = "samples: give a file, a dataset of Ragas or a list of samples"
        given = enumerate(iterated(getattr(source, "samples", source), expected), 1)
        rows = ((f"sample {number}", row) for number, row in given)
    if not (samples := [_sample(row, where, checks, k) for where, row in rows]):
        raise InputError("there are no samples to check")
    return samples


def _sample(row: Any, where: str, checks: Sequence[str], k: int | None) -> Sample:
    def value(name: str) -> Any:
        return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)

    question, contexts, reference = value("user_input"), value("retrieved_contexts"), value("reference")
    response, ids = value("response"), value("retrieved_context_ids")
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{where}: user_input (the question) is missing")
    if not isinstance(contexts, (list, tuple)) or not all(isinstance(text, str) for text in contexts):
        raise InputError(f"{where}: retrieved_contexts must be a list of texts, got {contexts!r}")
    if reference is not None and not isinstance(reference, str):
        raise InputError(f"{where}: reference must be a text, got {reference!r}")
    if not set(checks) <= set(WITHOUT_REFERENCE) and not (reference or "").strip():
        others = "only the checks `relevance` and `groundedness` do without"
        raise InputError(f"{where}: reference (the right answer) is missing; {others}")
    if GROUNDEDNESS in checks and (not isinstance(response, str) or not response.strip()):
        raise InputError(f"{where}: response (what was answered) is missing; the check `groundedness` needs it")
    for name in ("id", "query_id"):
        if not isinstance(value(name), (str, int, float, type(None))):
            raise InputError(f"{where}: {name} must be a text or a number, got {shown(value(name))}")
    named = isinstance(ids, (list, tuple)) and len(ids) == len(contexts)
    return Sample(
        question,
        tuple(contexts[:k]),
        reference,
        str(next((id_ for id_ in (value("id"), value("query_id")) if not is_missing(id_)), where.split()[-1])),
        response if isinstance(response, str) else None,
        tuple(str(each) for each in ids[:k]) if named else (),
    )


def samples_of_runs(
    run: Any, corpus: Any, queries: Any, references: Any, responses: Any, k: int
) -> tuple[dict[str, list[Sample]], list[str]]:
    """The samples of each run over the queries that have a reference answer, and notes on queries that are left out.

    Without references, over the queries that have a response. A query that a run lacks has an empty list.

    Raises
    ------
    InputError
        If something is missing: an argument, the text of a question or of a passage, or every query of a run.
    """
    for name, value in (("corpus", corpus), ("queries", queries)):
        if value is None:
            raise InputError(f"a run needs texts: give {name} too, as {{id: text}} or a file")
    if references is None and responses is None:
        raise InputError("say what to look for in the passages: give references (right answers), responses, or both")
    known = {} if references is None else dict(read_texts(references, "references", REFERENCE_NAMES))
    runs = named_runs(run)
    said = _responses_of(responses, runs)
    asked = dict.fromkeys(known if references is not None else (id_ for each in said.values() for id_ in each))
    if not asked:
        raise InputError(f"the {'references' if references is not None else 'responses'} are empty")
    for what, texts in (("references", known), *((f"responses of {name}", each) for name, each in said.items())):
        if empty := [id_ for id_, text in texts.items() if not text.strip()]:
            queries = counted(len(empty), "query", "queries")
            raise InputError(f"{what}: {queries} with an empty text ({examples(empty)})")
    questions = needed_texts(queries, "queries", asked)
    refuse_questions(known, questions)
    lists = {name: dict(ranked_lists(each, k)) for name, each in runs.items()}
    passages = dict.fromkeys(passage for each in lists.values() for query in asked for passage in each.get(query, ()))
    needed = "reference answer" if references is not None else "response"
    notes = notes_on_lists(lists, asked, needed, "they count as lists without a passage")
    held = needed_texts(corpus, "corpus", passages)
    by_run: dict[str, list[Sample]] = {}
    for name, each in lists.items():
        answers = said.get(name, {})
        if lacking := [query for query in asked if query not in answers and responses is not None]:
            raise InputError(
                f"responses of {name}: {counted(len(lacking), 'query', 'queries')} without a response "
                f"({examples(lacking)}); add them, or leave the responses out"
            )
        by_run[name] = []
        for query in asked:
            ids = tuple(each.get(query, ()))
            contexts = tuple(held[passage] for passage in ids)
            by_run[name].append(Sample(questions[query], contexts, known.get(query), query, answers.get(query), ids))
    return by_run, notes


def _responses_of(responses: Any, runs: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """{run: {query: response}}; a table for all runs, or {run: its table}."""
    if responses is None:
        return {}
    named = isinstance(responses, Mapping) and bool(responses) and all(str(name) in runs for name in responses)
    if named and len(responses) < len(runs):
        raise InputError(f"responses are of {', '.join(map(str, responses))} alone, but runs of {', '.join(runs)}")
    tables = {str(name): table for name, table in responses.items()} if named else dict.fromkeys(runs, responses)
    if not named and len(runs) > 1:
        mend = f"give them by run ({', '.join(runs)})"
        raise InputError(f"each run has its own responses, since other passages make other answers: {mend}")
    return {name: dict(read_texts(table, "responses", RESPONSE_NAMES)) for name, table in tables.items()}
