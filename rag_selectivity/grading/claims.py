"""Claim checks: which passage supports which claim of an answer, and the measures that follow.

A judge splits the reference into claims and entities once. Then it checks every passage against them, one call for
each passage. The results give Context Precision, Recall, Entity Recall and Relevance at every K, the redundancy of the
passages, and the smallest set of passages that supports as much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rag_selectivity.compare.differences import Side, Testing, as_family, differences_of, settings_of
from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.estimates import estimates_of_table
from rag_selectivity.grading.claim_questions import PROMPT_VERSION
from rag_selectivity.grading.claim_results import check
from rag_selectivity.grading.claim_samples import DEFAULT_K, Samples, read_samples, samples_of_runs
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.given import known_baseline, whole_numbers
from rag_selectivity.grading.judge import judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.questions import Asker
from rag_selectivity.grading.runner import asking, blocking
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.results.claim_measures import ClaimMeasure
from rag_selectivity.results.claims import CHECKS, SAMPLES, ClaimCheck, ClaimReport, ClaimRun, figures_of_claims
from rag_selectivity.results.comparison import RunDifference
from rag_selectivity.results.provenance import Provenance
from rag_selectivity.tables.cells import names_in


async def acheck_claims(
    samples: Any = None,
    *,
    run: Any = None,
    corpus: Any = None,
    queries: Any = None,
    references: Any = None,
    k: int | None = None,
    baseline: str | None = None,
    store: str | Path,
    judge: Any,
    checks: Sequence[str] | None = None,
    depths: Sequence[int] | None = None,
    measures: Sequence[str] = (),
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    gate: Gate | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    progress: bool = True,
) -> ClaimReport:
    """Check the retrieved passages against the claims of reference answers.

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
    references : {query: text}, records, DataFrame or path
        The right answers, in a column such as `reference`, `ground_truth`, `answer` or `text`.
    k : int, optional
        The number of passages of each list that are read. Default: the deepest of `depths` and `measures`, without
        them 10 of a run and all of a sample.
    baseline : str, optional
        The run that the others are compared with. Default: the first one.
    store : str or Path
        Holds the judge's answers; no question is asked twice.
    judge : Judge or async function
    checks : sequence of {"precision", "recall", "entities", "relevance"}, optional
        All four need no more calls than one of them. Default: all. Only `relevance` needs no reference.
    depths : sequence of int, optional
        Up to `k`. Default: 1, 2, 3, 5, 10 and 20, up to the length of the longest list, and `k`.
    measures : sequence of str
        What the report must have, such as "ContextRecall@4": its depth is added to `depths`, and an error says so
        before any request if its check is not made.
    limits, budget : Limits, Budget
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
    names_in(measures, "measures")
    whole_numbers(() if k is None else (k,), "k")
    of_runs = {"run": run, "corpus": corpus, "queries": queries, "references": references}
    chosen_checks = _checks(checks)
    needed = _needed(measures, chosen_checks)
    too_deep = [depth for depth in (*(depths or ()), *needed) if k is not None and depth > k]
    if too_deep:
        raise InputError(
            f"depth {too_deep[0]} is below the top {k} that is read: give k={too_deep[0]} (-k), or a depth ≤ {k}"
        )
    if samples is not None:
        given = [f"{name} (--{name})" for name, value in of_runs.items() if value is not None]
        if given:
            raise InputError(f"samples hold their own texts and lists: leave {', '.join(given)} out")
        read = Samples({SAMPLES: read_samples(samples, chosen_checks, k)})
    elif run is None:
        raise InputError("say what was retrieved: give samples, or run=… with corpus=…, queries=… and references=…")
    else:
        k = max((*(depths or ()), *needed), default=DEFAULT_K) if k is None else k
        read = samples_of_runs(run, corpus, queries, references, k)
    base = known_baseline(baseline, read.by_run)
    asked = judge_of(judge)
    gate = gate or Gate(limits, budget)
    settings = Settings("claims", asked.name, asked.parameters, prompt_version=PROMPT_VERSION)
    with Store(store) as answers:
        every = [sample for of_run in read.by_run.values() for sample in of_run]
        with asking(asked, gate, 0, "checking", progress) as runner:
            made = await check(every, Asker(answers, settings), runner, chosen_checks)
        runner.raise_if_fatal()
    at = tuple(sorted({*_depths(depths, made, k), *needed}))
    asked_for = [measure for name in chosen_checks for depth in at for measure in ClaimMeasure.all_of(name, depth)]
    results, of_run_in_turn = {}, iter(made)
    for name, of_run in read.by_run.items():
        results[name] = tuple(islice(of_run_in_turn, len(of_run)))
    verdicts = len(
        {
            (each.sample.id, claim, passage)
            for each in made
            for claim in each.claims
            for passage in each.sample.passage_ids[: max(0, each.known["recall"])]
        }
    )
    caveats = Provenance(verdicts, judges={asked.name: verdicts}).caveats
    checked_runs = {}
    for name, checks_of_run in results.items():
        table = figures_of_claims(checks_of_run, asked_for)
        checked_runs[name] = ClaimRun(checks_of_run, table, estimates_of_table(table, bootstrap), caveats)
    differences = _differences(checked_runs, base, bootstrap)
    return ClaimReport(
        runs=checked_runs,
        checks=chosen_checks,
        depths=at,
        **runner.told(),
        calls=gate.spending.requests,
        judge=asked.name,
        baseline=base,
        differences=differences,
        settings={**bootstrap.settings, **(settings_of(differences, Testing(bootstrap)) if differences else {})},
        bootstrap=bootstrap,
        notes=read.notes,
    )


check_claims = blocking(acheck_claims)


def _checks(checks: Sequence[str] | None) -> tuple[str, ...]:
    """The checks in their order; by default all."""
    checks = CHECKS if checks is None else names_in(checks, "checks")
    for name in checks:
        if name not in CHECKS:
            raise InputError(f"checks are {', '.join(CHECKS)}, got {name!r}")
    if not checks:
        raise InputError("no check was asked for")
    return tuple(name for name in CHECKS if name in checks)


def _needed(measures: Sequence[str], checks: Sequence[str]) -> list[int]:
    """The depths of measures that the report must have; an InputError if the check of one is not made."""
    given = {measure.name for check in checks for measure in ClaimMeasure.all_of(check, 1)}
    wanted = [ClaimMeasure.parse(measure) for measure in measures]
    for measure in wanted:
        if measure.name not in given:
            raise InputError(f"{measure} is not checked: the checks are {', '.join(checks)} (checks=…, --check NAME)")
    return [int(measure.at or 0) for measure in wanted]


def _depths(depths: Sequence[int] | None, results: Sequence[ClaimCheck], k: int | None) -> tuple[int, ...]:
    if depths is not None:
        return tuple(sorted(set(depths)))
    longest = max(len(result.sample.retrieved_contexts) for result in results) if k is None else k
    usual = {depth for depth in (1, 2, 3, 5, 10, 20) if depth <= max(1, longest)}
    return tuple(sorted(usual if k is None else {*usual, k}))


def _differences(runs: Mapping[str, ClaimRun], baseline: str, bootstrap: Bootstrap) -> tuple[RunDifference, ...]:
    """The paired differences of each run from the baseline, as one family of tests.

    Measures of which neither more nor less is better are left out.
    """
    asked = [measure for measure, _ in runs[baseline].figures.plan if measure.higher_is_better is not None]
    if len(runs) < 2 or not asked:
        return ()
    sides = {name: Side(name, run.figures.only(asked), run.estimates) for name, run in runs.items()}
    base, testing = sides[baseline], Testing(bootstrap)
    rows = [row for side in sides.values() if side is not base for row in differences_of(side, base, testing)]
    return as_family(rows, sides.values(), testing)
