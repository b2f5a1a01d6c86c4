"""The questions of a claim check: the claims and entities of a reference, and what each passage says about them."""

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


class ReferenceParts(_Lenient):
    """A reference answer taken apart."""

    claims: list[str] = Field(description="short statements that can be true or false by themselves")
    entities: list[str] = Field(description="named entities: people, places, organisations, works, dates, numbers")


class Statement(_Lenient):
    """A statement of a passage, and whether it bears on the question."""

    statement: str
    relevant: bool


_JUDGE = "You check what passages say, by their words and not by what you know yourself."
#: What a passage is asked for each check: the field of the answer, its type, and the words.
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
    """The checks that can be made, by what is known of the reference."""
    if checks == ("relevance",):
        return ("relevance",)
    if parts is None:
        return ()
    return tuple(check for check in checks if check not in _NEEDS or _NEEDS[check] in parts)


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


@cache
def _passage_shape(checks: tuple[str, ...]) -> type[BaseModel]:
    fields: dict[str, Any] = {"reason": (_Reason, Field("", description="one short sentence"))}
    fields |= {_FIELDS[check][0]: (_FIELDS[check][1], ...) for check in checks}
    return create_model("PassageCheck", __base__=_Lenient, **fields)


def passage_questions(sample: Sample, parts: Any, checks: Sequence[str]) -> list[Question]:
    """What each passage by itself supports and mentions."""
    possible = possible_checks(parts, checks)
    if not possible:
        return []
    known = [("question", sample.user_input)]
    if "precision" in possible:
        known.append(("reference answer", sample.reference or ""))
    known += [(name, _numbered(parts[name])) for check, name in _NEEDS.items() if check in possible]
    request = "\n".join(["Say of the passage:", *(_FIELDS[check][2] for check in possible)])
    return [
        question_of("passage", _JUDGE, [*known, ("passage", text)], request, _passage_shape(possible))
        for text in sample.retrieved_contexts
    ]


def _numbered(items: Sequence[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
