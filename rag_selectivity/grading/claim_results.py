"""Ask a judge about the passages of samples, and make claim checks of its answers."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.grading.claim_questions import (
    Asker,
    Question,
    answered_ranks,
    of_passages,
    of_reference,
    of_response,
    passage_questions,
    possible_checks,
    whole_question,
)
from rag_selectivity.grading.runner import Runner
from rag_selectivity.measures.claims import CHECKS, GROUNDEDNESS
from rag_selectivity.results.claims import NOT_KNOWN, ClaimCheck
from rag_selectivity.results.samples import Sample


@dataclass(frozen=True, slots=True)
class Parts:
    """The claims of reference answers and of responses, by the identity of the sample; None where a call failed."""

    reference: Mapping[int, Any]
    response: Mapping[int, Any]


def about_reference(checks: Sequence[str]) -> tuple[str, ...]:
    """The checks that one call for each passage makes together: all but that of the response."""
    return tuple(check for check in checks if check != GROUNDEDNESS)


async def ask(
    asker: Asker,
    runner: Runner,
    runs: Mapping[str, Sequence[Sample]],
    checks: tuple[str, ...],
    whole: Sequence[int],
    batch: bool,
) -> Parts:
    """Ask for the claims of all answers, and then about all passages; what the store holds is not asked again."""
    every = [sample for of_run in runs.values() for sample in of_run]
    asked = about_reference(checks)
    referenced = [sample for sample in every if sample.reference is not None and asked not in ((), ("relevance",))]
    responded = every if GROUNDEDNESS in checks else []
    await asker.ask(runner, [*map(of_reference, referenced), *map(of_response, responded)])
    parts = Parts(
        {id(sample): asker.answer(of_reference(sample)) for sample in referenced},
        {id(sample): asker.answer(of_response(sample)) for sample in responded},
    )
    questions = []
    for sample in every:
        if asked:
            questions += of_passages(sample, parts.reference.get(id(sample)), asked, whole, batch)
        questions += _about_response(sample, parts.response.get(id(sample)), batch)
    await asker.ask(runner, questions)
    return parts


def _about_response(sample: Sample, parts: Any, batch: bool) -> list[Question]:
    """Which claims of the response each passage supports: the question of the check `recall`, about other claims."""
    if parts is None or not parts["claims"]:
        return []
    return passage_questions(sample, parts, ("recall",), batch)


def result_of(
    sample: Sample, known: Parts, asker: Asker, checks: tuple[str, ...], whole: Sequence[int], batch: bool
) -> ClaimCheck:
    """What the answers in the store say of a sample."""
    passages = sample.retrieved_contexts
    parts = known.reference.get(id(sample))
    response_claims, grounds, grounded = _grounds_of(sample, known.response.get(id(sample)), asker, batch)
    of_reference_checks = about_reference(checks)
    claims, entities = (tuple((parts or {}).get(name, ())) for name in ("claims", "entities"))
    support = np.zeros((len(claims), len(passages)), bool)
    mentions = np.zeros((len(entities), len(passages)), bool)
    useful = np.zeros(len(passages), bool)
    statements, relevant = np.zeros(len(passages), np.int64), np.zeros(len(passages), np.int64)
    possible: tuple[str, ...] = ()
    if parts is not None or of_reference_checks == ("relevance",):
        possible = possible_checks(parts, of_reference_checks)
    answers: list[Any] = [None] * len(passages)
    if possible:
        answers = _answers(asker, passage_questions(sample, parts, possible, batch), len(passages), batch)
    names, folded_passages = [folded(entity) for entity in entities], [f" {folded(text)} " for text in passages]
    for i, answer in enumerate(answers):
        if answer is None:
            continue
        _mark(support, answer.get("supported", ()), i)
        _mark(mentions, answer.get("mentioned", ()), i)
        mentions[:, i] |= np.array([bool(name) and f" {name} " in folded_passages[i] for name in names], bool)
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
        known={
            **{check: answered_ranks(check, answers) if check in possible else NOT_KNOWN for check in CHECKS},
            GROUNDEDNESS: grounded,
        },
        response_claims=response_claims,
        grounds=grounds,
    )


def _grounds_of(
    sample: Sample, parts: Any, asker: Asker, batch: bool
) -> tuple[tuple[str, ...], NDArray[np.bool_], int]:
    """The claims of the response, which passages support them, and to which rank that is known."""
    if parts is None:
        return (), np.zeros((0, len(sample.retrieved_contexts)), bool), NOT_KNOWN
    claims = tuple(parts["claims"])
    table = np.zeros((len(claims), len(sample.retrieved_contexts)), bool)
    questions = _about_response(sample, parts, batch)
    answers = _answers(asker, questions, table.shape[1], batch) if questions else []
    for i, answer in enumerate(answers):
        _mark(table, (answer or {}).get("supported", ()), i)
    return claims, table, answered_ranks("recall", answers) if questions else table.shape[1]


def _answers(asker: Asker, questions: Sequence[Question], passages: int, batch: bool) -> list[Any]:
    """The answer for each passage, or None; of a batch that names a passage twice with different answers, None."""
    if not batch:
        return [asker.answer(question) for question in questions]
    by_passage: list[list[Any]] = [[] for _ in range(passages)]
    for question in questions:
        for item in (asker.answer(question) or {"passages": ()})["passages"]:
            if 1 <= item["passage"] <= passages:
                by_passage[item["passage"] - 1].append({**item, "reason": ""})
    return [items[0] if items and all(item == items[0] for item in items) else None for items in by_passage]


def _mark(table: NDArray[np.bool_], numbers: Iterable[int], column: int) -> None:
    for number in numbers:
        if 1 <= number <= len(table):
            table[number - 1, column] = True


def _whole_share(sample: Sample, parts: Any, depth: int, asker: Asker) -> float:
    if parts is not None and parts.get("claims") and not sample.retrieved_contexts:
        return 0.0
    question = whole_question(sample, parts, depth)
    answer = asker.answer(question) if question is not None else None
    if answer is None:
        return float("nan")
    count = len(parts["claims"])
    return len({number for number in answer["supported"] if 1 <= number <= count}) / count


def folded(text: str) -> str:
    """Letters and digits without case and accents, single spaces between words.

    >>> folded("Béla  Bartók's")
    'bela bartok s'
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join("".join(c if c.isalnum() else " " for c in plain).split())
