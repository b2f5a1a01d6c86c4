"""Reading answers: what a model wrote, as an instance of the schema; nothing is guessed."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from rag_selectivity.grading.judge import Reply
from rag_selectivity.grading.prompts import grade_of
from rag_selectivity.tables.cells import whole_characters

T = TypeVar("T", bound=BaseModel)

#: An answer longer than this is read from its end, where the answer stands.
_LONGEST = 50_000
#: The patterns take time in proportion to the text: no two repetitions of one can share the same characters.
_CLOSED_REASONING = re.compile(r"</(?:think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)
_OPEN_REASONING = re.compile(r"<(?:think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final[^<]{0,200}<\|message\|>")
#: What a grade is called: the first of these that an answer has names it.
_CALLED = (
    r"\bgrade\b",
    r"\b(?:score|rating)\b",
    r"(?:评分|評分|打分|得分|分数|分數|等级|等級|評価|점수|평점|\b(?:оценка|bewertung)\b)",
)
_GRADES_IN_WORDS = [
    re.compile(
        called
        + r"[\s\"'*_`>]{0,20}+(?:[(（][^()（）\n]{0,20}[)）][\s*_`]{0,5}+)?(?:is\b|of\b|[:：=-])?[\s\"'*_`]{0,20}+"
        r"(\d{1,9}(?:(?:[.,]|\s?[/–-]\s?|\s(?:out )?of\s)\d{1,9}){0,3})(?!\d)",
        re.IGNORECASE,
    )
    for called in _CALLED
]
#: Failed attempts to find JSON may read so many times the length of an answer; an answer that was cut takes three.
_MOST_ATTEMPTS = 8
#: Levels of lists and objects around the items of a batch.
_DEEPEST = 5
#: What may stand around a grade that is the whole answer.
_AROUND = " \t\r\n\"'*_`.。"


class Unreadable(ValueError):
    """The reply holds no answer, or several; the message tells the model what is wrong.

    Attributes
    ----------
    part : BaseModel or None
        What of the answer can be read, for whoever can do with a part of it.
    """

    part: BaseModel | None = None


class _Contradiction(Unreadable):
    """The reply gives several answers, or a grade that is none: what stands elsewhere in it does not mend that."""


def read_answer(reply: Reply, schema: type[T]) -> T:
    """The one answer that a reply holds.

    The arguments of tool calls come first, then the content, then the reasoning: some servers put a constrained answer
    there. Reasoning before the answer, code fences and prose around one JSON object are passed over, the names of
    fields may have capitals, and a whole number may be written as "4", 4.0 or "4/5". An answer whose only necessary
    field is the grade may say it in words ("Grade: 4").

    Raises
    ------
    Unreadable
        If no object fits the schema, or two differ.
    """
    if isinstance(reply.content, schema):
        return reply.content
    problem = None
    is_grade_alone = [name for name, field in schema.model_fields.items() if field.is_required()] == ["grade"]
    for text, objects in _places(reply):
        try:
            return _one_of(objects, schema) if objects or not is_grade_alone else _in_words(text, schema)
        except _Contradiction:
            raise
        except Unreadable as error:
            problem = problem or error
    raise problem or Unreadable("the answer is empty")


def read_batch(reply: Reply, item: type[T], ids: Sequence[str]) -> dict[str, T]:
    """The answers for the passages of a batch by id; one that is missing, invalid or there twice is left out.

    Every complete item counts, even if the reply is cut.
    """
    by_id: dict[str, list[T | None]] = {id_: [] for id_ in ids}
    for each in _items([value for _, objects in _places(reply) for value in objects]):
        if (found := by_id.get(str(each.get("passage")))) is not None:
            try:
                found.append(item.model_validate(each))
            except ValidationError:
                found.append(None)
    return {id_: found[0] for id_, found in by_id.items() if len(found) == 1 and found[0] is not None}


def read_part(reply: Reply, schema: type[T]) -> T | None:
    """Those fields of the one object of a reply that fit the schema, or the items of its `passages` with theirs.

    None if the reply says nothing about any of them. Fields that do not fit are missing in the answer.
    """
    objects = next((objects for _, objects in _places(reply) if objects), [])
    if "passages" in schema.model_fields:
        (item,) = get_args(schema.model_fields["passages"].annotation)
        parts = [part for each in _items(objects) if (part := _part(each, item)) is not None]
        return schema.model_construct(passages=parts) if parts else None
    several = list(_unwrapped(objects))
    return _part(several[0], schema) if len(several) == 1 else None


def _part(value: Mapping[str, Any], schema: type[T]) -> T | None:
    part = schema.model_construct()
    for name in schema.model_fields.keys() & value.keys():
        with suppress(ValidationError):
            schema.__pydantic_validator__.validate_assignment(part, name, value[name])
    read = part.model_fields_set
    is_whose = "passage" in read or "passage" not in schema.model_fields
    return part if is_whose and read - {"reason", "passage"} and not isinstance(value, _Ambiguous) else None


def answer_text(reply: Reply) -> str:
    """What the judge said, to show to a person: the content, else the reasoning."""
    if isinstance(reply.content, BaseModel):
        return reply.content.model_dump_json()
    if isinstance(reply.content, Mapping):
        try:
            return json.dumps(reply.content, ensure_ascii=False, default=_plain)
        except (TypeError, ValueError):  # keys that JSON does not have, or a dict within itself
            return str(reply.content)
    return _text_of(reply.content).strip() or _text_of(reply.arguments) or reply.reasoning or ""


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else str(value)


# -- objects -------------------------------------------------------------------------------------------


def _text_of(content: Any) -> str:
    """The text of a content, which may be a list of parts."""
    if isinstance(content, (list, tuple)):
        return "".join(_text_of(part.get("text")) if isinstance(part, Mapping) else _text_of(part) for part in content)
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    return content if isinstance(content, str) else ""


def _places(reply: Reply) -> Iterator[tuple[str, list[Any]]]:
    """Where an answer may stand, in the order of reading: the text without its reasoning, and the JSON objects in it.

    Some servers put a constrained answer where the reasoning belongs: without content, it is looked for there.
    """
    if isinstance(reply.content, (Mapping, BaseModel)):
        yield "", list(_objects_in(answer_text(reply)))
        return
    if called := _text_of(reply.arguments)[-_LONGEST:]:
        yield called, list(_objects_in(called))
    if text := _without_reasoning(_text_of(reply.content)[-_LONGEST:]):
        yield text, list(_objects_in(text))
    elif not called and (objects := list(_objects_in(_without_reasoning((reply.reasoning or "")[-_LONGEST:])))):
        yield "", objects


def _without_reasoning(text: str) -> str:
    for pattern in (_FINAL_CHANNEL, _CLOSED_REASONING):
        *_, last = (0, *(match.end() for match in pattern.finditer(text)))
        text = text[last:]
    opened = _OPEN_REASONING.search(text)
    return text[: opened.start() if opened else None].strip()


class _Ambiguous(dict[str, Any]):
    """An object that names a field twice, with different values."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; the names of fields count without their capitals, which models do not keep."""
    pairs = [(whole_characters(name).strip().lower(), _whole(value)) for name, value in pairs]
    result = dict(pairs)
    if len(result) < len(pairs) and any(result[name] != value for name, value in pairs):
        return _Ambiguous(result)
    return result


def _whole(value: Any) -> Any:
    """As `whole_characters`; objects within were made by `_pairs`, and may be ambiguous."""
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return whole_characters(value) if isinstance(value, str) else value


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs)


def _objects_in(text: str) -> Iterator[Any]:
    """The JSON objects of a text, each as large as possible.

    What follows a bracket without an end is read again for the objects in it; that is given up where it would take many
    times the length of the text.
    """
    place, left = text.find("{"), _MOST_ATTEMPTS * len(text)
    while place >= 0 and left > 0:
        try:
            # Cut off first, since an error counts the lines of all that stands before it.
            value, read = _DECODER.raw_decode(text[place:])
        except (ValueError, RecursionError) as error:
            left, place = left - getattr(error, "pos", len(text)), place + 1
        else:
            place += read
            yield value
        place = text.find("{", place)


def _items(objects: Sequence[Any], deep: int = 0) -> Iterator[Mapping[str, Any]]:
    """The items of a batch: the objects with a `passage`, by themselves or in a list of an object around them."""
    for value in objects:
        if not isinstance(value, Mapping):
            continue
        if "passage" in value:
            yield value
        elif deep < _DEEPEST:
            inner = [item for inner in value.values() if isinstance(inner, list) for item in inner]
            yield from _items(inner, deep + 1)


def _one_of(objects: Sequence[Any], schema: type[T]) -> T:
    """The only answer among objects."""
    read: list[T] = []
    problem = "the answer holds no JSON object"
    for value in _unwrapped(objects):
        if isinstance(value, _Ambiguous):
            raise _Contradiction("the answer names a field twice, with different values")
        try:
            read.append(schema.model_validate(value))
        except ValidationError as error:
            problem = problems_of(error)
            if "grade" in value:
                raise _Contradiction(problem) from None
    if not read:
        raise Unreadable(problem)
    verdicts = [getattr(each, "grade", each) for each in read]
    if any(verdict != verdicts[0] for verdict in verdicts):
        raise _Contradiction("the answer holds several different answers: give one JSON object")
    return read[-1]


def _unwrapped(objects: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """The objects, each without an object of one field around it."""
    for value in objects:
        inner = next(iter(value.values())) if len(value) == 1 and not isinstance(value, _Ambiguous) else None
        yield inner if isinstance(inner, Mapping) else value


def problems_of(error: ValidationError) -> str:
    """What does not fit a schema, and where."""
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'the answer'}: {each['msg'].removeprefix('Value error, ')}"
        for each in error.errors()[:3]
    )


# -- a grade in words ----------------------------------------------------------------------------------


def _in_words(text: str, schema: type[T]) -> T:
    """The answer of a text that is a grade ("4/5"), or names one ("Grade: 4")."""
    alone = text.strip(_AROUND)
    named = (pattern.findall(text) for pattern in _GRADES_IN_WORDS)
    numbers = {alone} if grade_of(alone) else set(next(filter(None, named), ()))
    if len(grades := {grade_of(number) for number in numbers}) > 1:
        raise _Contradiction(f"the answer names {len(grades)} grades: give one JSON object")
    if None in grades or not grades:
        wrong = f", and no grade from 1 to 5 ({', '.join(sorted(numbers)[:3])})" if numbers else ""
        raise Unreadable(f"the answer holds no JSON object{wrong}")
    return schema.model_validate({"grade": grades.pop()})
