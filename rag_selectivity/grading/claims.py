"""Claim checks: which passage supports which claim of a reference answer, and the measures that follow.

A judge splits the reference into claims and entities once. Then it checks every passage against them, one call for
each passage. The results give Context Precision, Recall, Entity Recall and Relevance at every K, the redundancy of the
passages, and the smallest set of passages that supports as much.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.data.samples import Sample
from rag_selectivity.errors import InputError
from rag_selectivity.estimates import estimates_with
from rag_selectivity.grading.claim_questions import (
    PROMPT_VERSION,
    Asker,
    Question,
    of_passages,
    of_reference,
    passage_questions,
    read_samples,
    whole_question,
)
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.judge import GradingError, judge_of
from rag_selectivity.grading.limits import Budget, Limits
from rag_selectivity.grading.runner import Runner
from rag_selectivity.grading.session import interruptible, progress_line, run_blocking
from rag_selectivity.grading.store import Settings, Store
from rag_selectivity.measures import Outcome as Figures
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.results.claims import CHECKS, ClaimCheck, ClaimMeasure, ClaimReport
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.statistics.bootstrap import Bootstrap


def check_claims(
    samples: Any,
    *,
    store: str | Path,
    judge: Any,
    checks: Sequence[str] = CHECKS,
    depths: Sequence[int] | None = None,
    whole_context: Sequence[int] = (),
    batch: bool = False,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    gate: Gate | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    progress: bool = True,
) -> ClaimReport:
    """Check the retrieved passages against the claims of reference answers.

    Parameters
    ----------
    samples : list of dict or objects, or path
        Samples with Ragas' fields: `user_input`, `retrieved_contexts` (in rank order) and `reference`. They may be
        the samples of a Ragas dataset, or a JSONL or Parquet file.
    store : str or Path
        Holds the judge's answers; no question is asked twice.
    judge : Judge or async function
    checks : sequence of {"precision", "recall", "entities", "relevance"}
        All four need no more calls than one of them. Only `relevance` needs no reference.
    depths : sequence of int, optional
        Default: 1, 2, 3, 5, 10 and 20, up to the length of the longest list.
    whole_context : sequence of int
        Depths K at which the judge also reads the top K together, for `ContextRecall(whole)@K`. This finds claims
        that only several passages together support. It takes one more call for each sample and K.
    batch : bool
        Check all passages of a sample in one call: cheaper than a call for each, but less reliable for long lists.
    limits, budget : Limits, Budget
    gate : Gate, optional
        As in `rag_selectivity.grade`.
    bootstrap : Bootstrap
        For the intervals of the means over samples.
    progress : bool
        Show a progress bar on a terminal.

    Returns
    -------
    ClaimReport

    Raises
    ------
    InputError
        If a sample lacks a field that its checks need.
    GradingError
        If the judge cannot be used at all.

    Notes
    -----
    A passage mentions an entity if it contains the entity's name, whatever the case and accents, or if the judge finds
    the entity under another name.
    """
    return run_blocking(
        lambda: acheck_claims(
            samples,
            store=store,
            judge=judge,
            checks=checks,
            depths=depths,
            whole_context=whole_context,
            batch=batch,
            limits=limits,
            budget=budget,
            gate=gate,
            bootstrap=bootstrap,
            progress=progress,
        )
    )


async def acheck_claims(
    samples: Any,
    *,
    store: str | Path,
    judge: Any,
    checks: Sequence[str] = CHECKS,
    depths: Sequence[int] | None = None,
    whole_context: Sequence[int] = (),
    batch: bool = False,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    gate: Gate | None = None,
    bootstrap: Bootstrap = Bootstrap(),
    progress: bool = True,
) -> ClaimReport:
    """`check_claims` for a running event loop."""
    chosen_checks = _checks(checks)
    read = read_samples(samples, needs_reference=chosen_checks != ("relevance",))
    asked = judge_of(judge)
    gate = gate or Gate(limits, budget)
    settings = Settings("claims", asked.name, asked.parameters, prompt_version=PROMPT_VERSION)
    with Store(store) as answers:
        asker = Asker(answers, answers.settings_id(settings))
        watch, close = progress_line(0, "checking", progress)
        runner = Runner(asked, gate, watch)
        try:
            with interruptible(runner):
                referenced = [sample for sample in read if sample.reference is not None]
                await asker.ask(runner, [of_reference(sample) for sample in referenced])
                parts = {id(sample): asker.answer(of_reference(sample)) for sample in referenced}
                questions = [
                    question
                    for sample in read
                    for question in of_passages(sample, parts.get(id(sample)), chosen_checks, whole_context, batch)
                ]
                await asker.ask(runner, questions)
        finally:
            close()
        done, spending, stop = runner.progress, gate.spending, gate.stop
        if stop is not None and stop.cause == "fatal":
            raise GradingError(f"{stop.why}; nothing more was sent (how-to: stopped-grading)")
        results = tuple(
            _result(sample, parts.get(id(sample)), asker, chosen_checks, whole_context, batch) for sample in read
        )
    at = _depths(depths, results)
    return ClaimReport(
        samples=results,
        checks=chosen_checks,
        depths=at,
        estimates=_estimates(results, chosen_checks, at, whole_context, bootstrap),
        usage=spending.usage,
        cost=spending.cost,
        calls=spending.requests,
        failed=done.failed,
        stopped=None if stop is None else stop.why,
        stopped_by=None if stop is None else stop.cause,
        errors=dict(done.errors),
        last_error=done.last_error,
        judge=asked.name,
    )


def _checks(checks: Sequence[str]) -> tuple[str, ...]:
    for name in checks:
        if name not in CHECKS:
            raise InputError(f"checks are {', '.join(CHECKS)}, got {name!r}")
    if not checks:
        raise InputError("no check was asked for")
    return tuple(name for name in CHECKS if name in checks)


def _depths(depths: Sequence[int] | None, results: Sequence[ClaimCheck]) -> tuple[int, ...]:
    if depths is not None:
        for depth in depths:
            if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
                raise InputError(f"depth {depth!r} is not a whole number ≥ 1")
        return tuple(sorted(set(depths)))
    longest = max(len(result.sample.retrieved_contexts) for result in results)
    return tuple(depth for depth in (1, 2, 3, 5, 10, 20) if depth <= max(1, longest))


# -- results -------------------------------------------------------------------------------------------


def _result(
    sample: Sample, parts: Any, asker: Asker, checks: tuple[str, ...], whole: Sequence[int], batch: bool
) -> ClaimCheck:
    passages = sample.retrieved_contexts
    claims = tuple(parts["claims"]) if parts else ()
    entities = tuple(parts["entities"]) if parts else ()
    support = np.zeros((len(claims), len(passages)), bool)
    mentions = np.zeros((len(entities), len(passages)), bool)
    useful = np.zeros(len(passages), bool)
    statements, relevant = np.zeros(len(passages), np.int64), np.zeros(len(passages), np.int64)
    complete = parts is not None or checks == ("relevance",)
    answers: list[Any] = [None] * len(passages)
    if complete:
        answers = _answers(asker, passage_questions(sample, parts, checks, batch), len(passages), batch)
    complete = complete and all(answer is not None for answer in answers)
    for i, answer in enumerate(answers):
        if answer is None:
            continue
        _mark(support, answer.get("supported", ()), i)
        _mark(mentions, answer.get("mentioned", ()), i)
        mentions[:, i] |= np.array([_names(entity, passages[i]) for entity in entities], bool)
        useful[i] = bool(answer.get("useful", False))
        statements[i] = len(answer.get("statements", ()))
        relevant[i] = sum(bool(statement["relevant"]) for statement in answer.get("statements", ()))
    return ClaimCheck(
        sample,
        claims,
        entities,
        support,
        mentions,
        useful,
        statements,
        relevant,
        whole={depth: _whole_share(sample, parts, depth, asker) for depth in whole},
        known=dict.fromkeys(checks, complete),
    )


def _answers(asker: Asker, questions: Sequence[Question], passages: int, batch: bool) -> list[Any]:
    """The answer for each passage, or None."""
    if not batch:
        return [asker.answer(question) for question in questions]
    by_passage: list[Any] = [None] * passages
    for question in questions:
        for item in (asker.answer(question) or {"passages": ()})["passages"]:
            if 1 <= item["passage"] <= passages:
                by_passage[item["passage"] - 1] = item
    return by_passage


def _mark(table: NDArray[np.bool_], numbers: Iterable[int], column: int) -> None:
    for number in numbers:
        if 1 <= number <= len(table):
            table[number - 1, column] = True


def _whole_share(sample: Sample, parts: Any, depth: int, asker: Asker) -> float:
    if parts is not None and parts["claims"] and not sample.retrieved_contexts:
        return 0.0
    question = whole_question(sample, parts, depth)
    answer = asker.answer(question) if question is not None else None
    if answer is None:
        return float("nan")
    count = len(parts["claims"])
    return len({number for number in answer["supported"] if 1 <= number <= count}) / count


def _names(entity: str, passage: str) -> bool:
    """Whether the passage contains the entity's name as whole words, whatever the case and accents."""
    name, text = folded(entity), f" {folded(passage)} "
    return bool(name) and f" {name} " in text


def folded(text: str) -> str:
    """Letters and digits without case and accents, single spaces between words.

    >>> folded("Béla  Bartók's")
    'bela bartok s'
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join("".join(c if c.isalnum() else " " for c in plain).split())


def _estimates(
    results: Sequence[ClaimCheck],
    checks: tuple[str, ...],
    depths: Sequence[int],
    whole: Sequence[int],
    bootstrap: Bootstrap,
) -> dict[ClaimMeasure, Estimate]:
    columns: dict[ClaimMeasure, FloatArray] = {}
    for check in checks:
        for depth in depths:
            columns[ClaimMeasure.of(check, depth)] = np.array([result.figure(check, depth) for result in results])
    for depth in whole:
        columns[ClaimMeasure("ContextRecall(whole)", depth)] = np.array([result.whole[depth] for result in results])
    table = Figures((np.stack(list(columns.values()), axis=1),), "no sample has what the check needs")
    ((low, high),) = bootstrap.intervals([table], [str(i) for i in range(len(results))])
    return dict(zip(columns, estimates_with(table, low, high), strict=True))
