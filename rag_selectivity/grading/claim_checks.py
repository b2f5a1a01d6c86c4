"""Claim checks: the questions about the answers and passages of a sample, and the check that their answers make."""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from rag_selectivity.grading.questions import Asker, Question, question_of
from rag_selectivity.grading.runner import Runner
from rag_selectivity.results.claims import CHECKS, GROUNDEDNESS, NOT_KNOWN, ClaimCheck
from rag_selectivity.results.samples import Sample

#: Part of every answer's key: raise it when a wording below changes, so that everything is asked again.
PROMPT_VERSION = "1"

#: Nothing rests on it, so that whatever is there will do.
_Reason = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class ResponseParts(_Lenient):
    """A response taken apart."""

    claims: list[str] = Field(description="short statements that can be true or false by themselves")


class ReferenceParts(ResponseParts):
    """A reference answer taken apart."""

    entities: list[str] = Field(description="named entities: people, places, organisations, works, dates, numbers")


class Statement(_Lenient):
    """A statement of a passage, and whether it bears on the question."""

    statement: str
    relevant: bool


class WholeSupport(_Lenient):
    """What passages support when they are read together."""

    reason: _Reason = ""
    supported: list[int] = Field(description="numbers of the supported claims")


class _Part(NamedTuple):
    """A field of the answers about a passage: its name, type and wording, and what it needs of the reference."""

    field: str
    type: Any
    wording: str
    needs: str | None = None


_JUDGE = "You check what passages say, by their words and not by what you know yourself."
_PARTS = {
    "recall": _Part(
        "supported", list[int], "supported: numbers of the claims that the passage by itself supports.", "claims"
    ),
    "precision": _Part("useful", bool, "useful: whether the passage helps to arrive at the reference answer."),
    "entities": _Part(
        "mentioned", list[int], "mentioned: numbers of the entities that it mentions, under whatever name.", "entities"
    ),
    "relevance": _Part(
        "statements",
        list[Statement],
        "statements: every statement that the passage makes, and whether it bears on the question.",
    ),
}


# -- questions ---------------------------------------------------------------------------------------------


def of_reference(sample: Sample) -> Question:
    """What the claims and entities of a sample's reference are."""
    return question_of(
        "reference",
        _JUDGE,
        [("question", sample.user_input), ("reference answer", sample.reference or "")],
        "Take the reference answer apart: its claims, each a short statement that can be true or false by itself, and "
        "the entities it names. Add nothing that it does not say.",
        ReferenceParts,
    )


def of_response(sample: Sample) -> Question:
    """What the claims of a sample's response are."""
    return question_of(
        "response",
        _JUDGE,
        [("question", sample.user_input), ("response", sample.response or "")],
        "Take the response apart: its claims, each a short statement that can be true or false by itself. Add nothing "
        "that it does not say.",
        ResponseParts,
    )


@cache
def _passage_shape(checks: tuple[str, ...], several: bool) -> type[BaseModel]:
    fields: dict[str, Any] = {"reason": (_Reason, Field("", description="one short sentence"))}
    if several:
        fields["passage"] = (int, Field(description="the passage's number"))
    fields |= {_PARTS[check].field: (_PARTS[check].type, ...) for check in checks}
    one = create_model("PassageCheck", __base__=_Lenient, **fields)
    every: Any = (list[one], ...)  # type: ignore[valid-type]
    return create_model("PassageChecks", __base__=_Lenient, passages=every) if several else one


def passage_questions(sample: Sample, parts: Any, checks: tuple[str, ...], batch: bool) -> list[Question]:
    """What each passage by itself supports and mentions; of a batch, one question about all."""
    known = _known_texts(sample, parts, checks)
    asked = "\n".join(_PARTS[check].wording for check in checks)
    passages = sample.retrieved_contexts
    if batch and passages:
        texts = [*known, *((f"passage {i}", text) for i, text in enumerate(passages, 1))]
        request = f"Say of every passage by itself, with its number:\n{asked}"
        return [question_of("passages", _JUDGE, texts, request, _passage_shape(checks, True))]
    request, shape = f"Say of the passage:\n{asked}", _passage_shape(checks, False)
    return [question_of("passage", _JUDGE, [*known, ("passage", text)], request, shape) for text in passages]


def _whole_question(sample: Sample, parts: Any, depth: int) -> Question | None:
    """What the top passages support together; None without claims or passages."""
    if parts is None or not parts.get("claims") or not sample.retrieved_contexts:
        return None
    passages = enumerate(sample.retrieved_contexts[:depth], 1)
    texts = [*_known_texts(sample, parts, ("recall",)), *((f"passage {i}", text) for i, text in passages)]
    request = "Read the passages together. Which claims do they support, by themselves or taken together?"
    return question_of("whole", _JUDGE, texts, request, WholeSupport)


def _known_texts(sample: Sample, parts: Any, checks: tuple[str, ...]) -> list[tuple[str, str]]:
    texts = [("question", sample.user_input)]
    if "precision" in checks:
        texts.append(("reference answer", sample.reference or ""))
    for check, name in (("recall", "claims"), ("entities", "entities")):
        if check in checks:
            texts.append((name, "\n".join(f"{number}. {item}" for number, item in enumerate(parts[name], 1))))
    return texts


# -- what their answers say --------------------------------------------------------------------------------


class Checking:
    """The questions about one sample, and what the answers in the store say of it.

    Parameters
    ----------
    sample : Sample
    asker : Asker
    checks : sequence of str
    whole : sequence of int
        Depths at which the passages are read together too.
    batch : bool
        Whether one question is about all passages.
    """

    def __init__(self, sample: Sample, asker: Asker, checks: Sequence[str], whole: Sequence[int], batch: bool) -> None:
        self._sample, self._asker, self._whole, self._batch = sample, asker, whole, batch
        #: The checks that one question for each passage makes together.
        self._checks = tuple(check for check in checks if check != GROUNDEDNESS)
        about_reference = sample.reference is not None and any(check != "relevance" for check in self._checks)
        self._reference = of_reference(sample) if about_reference else None
        self._response = of_response(sample) if GROUNDEDNESS in checks else None

    def of_answers(self) -> list[Question]:
        """What the claims of the reference and of the response are; everything else is asked about these."""
        return [question for question in (self._reference, self._response) if question is not None]

    def of_passages(self) -> list[Question]:
        """A question for each passage (or one for all), and one for each K at which passages are read together."""
        parts, response = self._parts()
        together = (_whole_question(self._sample, parts, depth) for depth in self._whole)
        return [
            *self._about(parts, self._possible(parts)),
            *(question for question in together if question is not None),
            *self._about(response, _grounding(response)),
        ]

    def result(self) -> ClaimCheck:
        """The check that the answers in the store make."""
        sample, passages = self._sample, len(self._sample.retrieved_contexts)
        parts, response = self._parts()
        possible, grounding = self._possible(parts), _grounding(response)
        answers, grounds = self._answers(parts, possible), self._answers(response, grounding)
        claims, entities = (tuple((parts or {}).get(name, ())) for name in ("claims", "entities"))
        response_claims = tuple((response or {}).get("claims", ()))
        mentions = _table(entities, answers, "mentioned")
        names = [folded(entity) for entity in entities]
        for i, text in enumerate(sample.retrieved_contexts):
            known = f" {folded(text)} " if answers[i] is not None else ""
            mentions[:, i] |= np.array([bool(name) and f" {name} " in known for name in names], bool)
        statements = [(answer or {}).get("statements", ()) for answer in answers]
        grounded = NOT_KNOWN if response is None else passages
        return ClaimCheck(
            sample,
            claims,
            entities,
            _table(claims, answers, "supported"),
            mentions,
            np.array([bool((answer or {}).get("useful", False)) for answer in answers], bool),
            np.array([len(each) for each in statements], np.int64),
            np.array([sum(bool(one["relevant"]) for one in each) for each in statements], np.int64),
            whole={depth: self._whole_share(parts, depth) for depth in self._whole},
            known={
                **{check: _answered(check, answers) if check in possible else NOT_KNOWN for check in CHECKS},
                GROUNDEDNESS: _answered("recall", grounds) if grounding else grounded,
            },
            response_claims=response_claims,
            grounds=_table(response_claims, grounds, "supported"),
        )

    def _parts(self) -> tuple[Any, Any]:
        """The stored parts of the reference and of the response; None where they are not asked for, or failed."""
        reference, response = (
            None if question is None else self._asker.answer(question) for question in (self._reference, self._response)
        )
        return reference, response

    def _possible(self, parts: Any) -> tuple[str, ...]:
        """The checks for which the parts of the reference are known; none if they failed."""
        if parts is None:
            return () if self._reference is not None else self._checks
        return tuple(check for check in self._checks if _PARTS[check].needs in (None, *parts))

    def _about(self, parts: Any, checks: tuple[str, ...]) -> list[Question]:
        return passage_questions(self._sample, parts, checks, self._batch) if checks else []

    def _answers(self, parts: Any, checks: tuple[str, ...]) -> list[Any]:
        """The answer for each passage, or None; of a batch that names a passage twice with different answers, None."""
        questions, passages = self._about(parts, checks), len(self._sample.retrieved_contexts)
        if not self._batch or not questions:
            return [self._asker.answer(question) for question in questions] or [None] * passages
        by_passage: list[list[Any]] = [[] for _ in range(passages)]
        for item in (self._asker.answer(questions[0]) or {"passages": ()})["passages"]:
            if 1 <= item["passage"] <= passages:
                by_passage[item["passage"] - 1].append({**item, "reason": ""})
        return [items[0] if items and all(item == items[0] for item in items) else None for items in by_passage]

    def _whole_share(self, parts: Any, depth: int) -> float:
        if parts is not None and parts.get("claims") and not self._sample.retrieved_contexts:
            return 0.0
        question = _whole_question(self._sample, parts, depth)
        answer = None if question is None else self._asker.answer(question)
        return float("nan") if answer is None else share_of_claims(answer, parts)


async def check(
    samples: Iterable[Sample], asker: Asker, runner: Runner, checks: Sequence[str], whole: Sequence[int], batch: bool
) -> list[Checking]:
    """Ask for the claims of all answers, and then about all passages; what the store holds is not asked again."""
    every = [Checking(sample, asker, checks, whole, batch) for sample in samples]
    await asker.ask(runner, [question for each in every for question in each.of_answers()])
    await asker.ask(runner, [question for each in every for question in each.of_passages()])
    return every


def share_of_claims(answer: Any, parts: Any) -> float:
    """The share of the claims that an answer calls supported."""
    count = len(parts["claims"])
    return len({number for number in answer["supported"] if 1 <= number <= count}) / count


def _grounding(response: Any) -> tuple[str, ...]:
    """Which claims of the response each passage supports is asked as those of a reference are, if there are any."""
    return ("recall",) if response is not None and response.get("claims") else ()


def _answered(check: str, answers: Sequence[Any]) -> int:
    """How many passages from the top have an answer to a check."""
    return next((i for i, answer in enumerate(answers) if _PARTS[check].field not in (answer or ())), len(answers))


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
