"""The questions of a claim check: the claims and entities of a reference, and what passages say about them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from rag_selectivity.grading.questions import Question, question_of
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


_JUDGE = "You check what passages say, by their words and not by what you know yourself."
_FIELDS: dict[str, tuple[str, Any, str]] = {
    "recall": ("supported", list[int], "supported: numbers of the claims that the passage by itself supports."),
    "precision": ("useful", bool, "useful: whether the passage helps to arrive at the reference answer."),
    "entities": ("mentioned", list[int], "mentioned: numbers of the entities that it mentions, under whatever name."),
    "relevance": (
        "statements",
        list[Statement],
        "statements: every statement that the passage makes, and whether it bears on the question.",
    ),
}


#: What a check needs to know of the reference.
_NEEDS = {"recall": "claims", "entities": "entities"}


def possible_checks(parts: Any, checks: Sequence[str]) -> tuple[str, ...]:
    """The checks for which the parts of the reference are known; all of them if no parts were asked for."""
    return tuple(check for check in checks if parts is None or check not in _NEEDS or _NEEDS[check] in parts)


def answered_ranks(check: str, answers: Sequence[Any]) -> int:
    """How many passages from the top have an answer to a check."""
    field = _FIELDS[check][0]
    return next((i for i, answer in enumerate(answers) if field not in (answer or ())), len(answers))


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
    fields |= {_FIELDS[check][0]: (_FIELDS[check][1], ...) for check in checks}
    one = create_model("PassageCheck", __base__=_Lenient, **fields)
    every: Any = (list[one], ...)  # type: ignore[valid-type]
    return create_model("PassageChecks", __base__=_Lenient, passages=every) if several else one


def passage_questions(sample: Sample, parts: Any, checks: tuple[str, ...], batch: bool) -> list[Question]:
    """What each passage by itself supports and mentions."""
    checks = possible_checks(parts, checks)
    if not checks:
        return []
    known = _known_texts(sample, parts, checks)
    asked = "\n".join(_FIELDS[check][2] for check in checks)
    passages = sample.retrieved_contexts
    if batch and passages:
        texts = [*known, *((f"passage {i}", text) for i, text in enumerate(passages, 1))]
        request = f"Say of every passage by itself, with its number:\n{asked}"
        return [question_of("passages", _JUDGE, texts, request, _passage_shape(checks, True))]
    request = f"Say of the passage:\n{asked}"
    return [
        question_of("passage", _JUDGE, [*known, ("passage", text)], request, _passage_shape(checks, False))
        for text in passages
    ]


def whole_question(sample: Sample, parts: Any, depth: int) -> Question | None:
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
    if "recall" in checks:
        texts.append(("claims", _numbered(parts["claims"])))
    if "entities" in checks:
        texts.append(("entities", _numbered(parts["entities"])))
    return texts


def _numbered(items: Sequence[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
