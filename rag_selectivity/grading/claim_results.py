"""Claim checks out of the answers of a judge."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.grading.claim_questions import answered_ranks, of_reference, passage_questions, possible_checks
from rag_selectivity.grading.questions import Asker
from rag_selectivity.grading.runner import Runner
from rag_selectivity.results.claim_measures import CHECKS
from rag_selectivity.results.claims import NOT_KNOWN, ClaimCheck
from rag_selectivity.results.samples import Sample


async def check(samples: Sequence[Sample], asker: Asker, runner: Runner, checks: tuple[str, ...]) -> list[ClaimCheck]:
    """Ask for the claims of all references, then about all passages; what the store holds is not asked again."""
    asked = [sample for sample in samples if sample.reference is not None and checks != ("relevance",)]
    await asker.ask(runner, map(of_reference, asked))
    parts = {id(sample): asker.answer(of_reference(sample)) for sample in asked}
    questions = [passage_questions(sample, parts.get(id(sample)), checks) for sample in samples]
    await asker.ask(runner, [question for of_sample in questions for question in of_sample])
    return [
        _result(sample, parts.get(id(sample)), checks, [asker.answer(question) for question in of_sample])
        for sample, of_sample in zip(samples, questions, strict=True)
    ]


def _result(sample: Sample, parts: Any, checks: tuple[str, ...], answers: Sequence[Any]) -> ClaimCheck:
    """The check that the answers make: None stands for a call that failed."""
    passages, possible = len(sample.retrieved_contexts), possible_checks(parts, checks)
    answers = answers or [None] * passages
    claims, entities = (tuple((parts or {}).get(name, ())) for name in ("claims", "entities"))
    mentions = _table(entities, answers, "mentioned")
    names = [folded(entity) for entity in entities]
    for i, text in enumerate(sample.retrieved_contexts):
        known = f" {folded(text)} " if answers[i] is not None else ""
        mentions[:, i] |= np.array([bool(name) and f" {name} " in known for name in names], bool)
    statements = [(answer or {}).get("statements", ()) for answer in answers]
    return ClaimCheck(
        sample,
        claims,
        entities,
        _table(claims, answers, "supported"),
        mentions,
        np.array([bool((answer or {}).get("useful", False)) for answer in answers], bool),
        np.array([len(each) for each in statements], np.int64),
        np.array([sum(bool(one["relevant"]) for one in each) for each in statements], np.int64),
        known={check: answered_ranks(check, answers) if check in possible else NOT_KNOWN for check in CHECKS},
    )


def _table(rows: Sequence[str], answers: Sequence[Any], name: str) -> NDArray[np.bool_]:
    """bool[rows, passages]: whose numbers (from 1) the answer about each passage names."""
    table = np.zeros((len(rows), len(answers)), bool)
    for i, answer in enumerate(answers):
        for number in (answer or {}).get(name, ()):
            if 1 <= number <= len(rows):
                table[number - 1, i] = True
    return table


def folded(text: str) -> str:
    """Letters and digits without case and accents, single spaces between words.

    >>> folded("Béla  Bartók's")
    'bela bartok s'
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join("".join(c if c.isalnum() else " " for c in plain).split())
