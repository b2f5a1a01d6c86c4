"""Ask a judge about the passages of samples, and make claim checks of its answers."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.grading.claim_questions import (
    answered_ranks,
    of_reference,
    of_response,
    passage_questions,
    possible_checks,
    whole_question,
)
from rag_selectivity.grading.questions import Asker, Question
from rag_selectivity.grading.runner import Runner
from rag_selectivity.results.claims import CHECKS, GROUNDEDNESS, NOT_KNOWN, ClaimCheck
from rag_selectivity.results.samples import Sample


@dataclass(frozen=True, slots=True)
class Checking:
    """The questions about one sample, and what the answers in the store say of it.

    Attributes
    ----------
    asker : Asker
    checks : tuple of str
    whole : sequence of int
        Depths at which the passages are read together too.
    batch : bool
        Whether one question is about all passages.
    """

    sample: Sample
    asker: Asker
    checks: tuple[str, ...]
    whole: Sequence[int]
    batch: bool

    @property
    def of_answers(self) -> list[Question]:
        """What the claims of the reference and of the response are; everything else is asked about these."""
        return [*self._of_reference, *self._of_response]

    def of_passages(self) -> list[Question]:
        """A question for each passage (or one for all), and one for each K at which passages are read together."""
        parts = self._parts(self._of_reference)
        together = (whole_question(self.sample, parts, depth) for depth in self.whole)
        return [
            *self._about_reference(parts),
            *(question for question in together if question is not None),
            *self._about_response(self._parts(self._of_response)),
        ]

    def result(self) -> ClaimCheck:
        """The check that the answers in the store make."""
        sample, passages = self.sample, len(self.sample.retrieved_contexts)
        parts, response = self._parts(self._of_reference), self._parts(self._of_response)
        possible = self._possible(parts)
        answers = self._answers(self._about_reference(parts)) if possible else [None] * passages
        claims, entities = (tuple((parts or {}).get(name, ())) for name in ("claims", "entities"))
        response_claims = () if response is None else tuple(response["claims"])
        grounds = self._answers(self._about_response(response)) if response_claims else []
        grounded = NOT_KNOWN if response is None else passages
        if response_claims and passages:
            grounded = answered_ranks("recall", grounds)
        mentions = _table(entities, answers, "mentioned", passages)
        names = [folded(entity) for entity in entities]
        for i, text in enumerate(sample.retrieved_contexts):
            known = f" {folded(text)} " if answers[i] is not None else ""
            mentions[:, i] |= np.array([bool(name) and f" {name} " in known for name in names], bool)
        statements = [(answer or {}).get("statements", ()) for answer in answers]
        return ClaimCheck(
            sample,
            claims,
            entities,
            _table(claims, answers, "supported", passages),
            mentions,
            np.array([bool((answer or {}).get("useful", False)) for answer in answers], bool),
            np.array([len(each) for each in statements], np.int64),
            np.array([sum(bool(one["relevant"]) for one in each) for each in statements], np.int64),
            whole={depth: self._whole_share(parts, depth) for depth in self.whole},
            known={
                **{check: answered_ranks(check, answers) if check in possible else NOT_KNOWN for check in CHECKS},
                GROUNDEDNESS: grounded,
            },
            response_claims=response_claims,
            grounds=_table(response_claims, grounds, "supported", passages),
        )

    @property
    def _asked(self) -> tuple[str, ...]:
        """The checks that one question for each passage makes together: all but that of the response."""
        return tuple(check for check in self.checks if check != GROUNDEDNESS)

    @property
    def _of_reference(self) -> list[Question]:
        is_asked = self.sample.reference is not None and self._asked not in ((), ("relevance",))
        return [of_reference(self.sample)] if is_asked else []

    @property
    def _of_response(self) -> list[Question]:
        return [of_response(self.sample)] if GROUNDEDNESS in self.checks else []

    def _parts(self, questions: Sequence[Question]) -> Any:
        return self.asker.answer(questions[0]) if questions else None

    def _possible(self, parts: Any) -> tuple[str, ...]:
        is_known = parts is not None or self._asked == ("relevance",)
        return possible_checks(parts, self._asked) if is_known else ()

    def _about_reference(self, parts: Any) -> list[Question]:
        possible = self._possible(parts)
        return passage_questions(self.sample, parts, possible, self.batch) if possible else []

    def _about_response(self, parts: Any) -> list[Question]:
        """Which claims of the response each passage supports: the question of the check `recall`."""
        has_claims = parts is not None and parts["claims"]
        return passage_questions(self.sample, parts, ("recall",), self.batch) if has_claims else []

    def _answers(self, questions: Sequence[Question]) -> list[Any]:
        """The answer for each passage, or None; of a batch that names a passage twice with different answers, None."""
        if not self.batch:
            return [self.asker.answer(question) for question in questions]
        passages = len(self.sample.retrieved_contexts)
        by_passage: list[list[Any]] = [[] for _ in range(passages)]
        for question in questions:
            for item in (self.asker.answer(question) or {"passages": ()})["passages"]:
                if 1 <= item["passage"] <= passages:
                    by_passage[item["passage"] - 1].append({**item, "reason": ""})
        return [items[0] if items and all(item == items[0] for item in items) else None for items in by_passage]

    def _whole_share(self, parts: Any, depth: int) -> float:
        if parts is not None and parts.get("claims") and not self.sample.retrieved_contexts:
            return 0.0
        question = whole_question(self.sample, parts, depth)
        answer = None if question is None else self.asker.answer(question)
        return float("nan") if answer is None else share_of_claims(answer, parts)


async def check(
    samples: Iterable[Sample],
    asker: Asker,
    runner: Runner,
    checks: tuple[str, ...],
    whole: Sequence[int],
    batch: bool,
) -> list[Checking]:
    """Ask for the claims of all answers, and then about all passages; what the store holds is not asked again."""
    every = [Checking(sample, asker, checks, whole, batch) for sample in samples]
    await asker.ask(runner, [question for each in every for question in each.of_answers])
    await asker.ask(runner, [question for each in every for question in each.of_passages()])
    return every


def share_of_claims(answer: Any, parts: Any) -> float:
    """The share of the claims that an answer calls supported."""
    count = len(parts["claims"])
    return len({number for number in answer["supported"] if 1 <= number <= count}) / count


def _table(rows: Sequence[str], answers: Sequence[Any], name: str, passages: int) -> NDArray[np.bool_]:
    """bool[rows, passages]: whose numbers (from 1) the answer about each passage names."""
    table = np.zeros((len(rows), passages), bool)
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
