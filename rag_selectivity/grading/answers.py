"""Reading answers: what a model wrote, as an instance of the schema; nothing is guessed."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeVar

from rag_selectivity.data.cells import whole_characters
from rag_selectivity.errors import MissingExtraError

try:
    from pydantic import BaseModel, ValidationError
except ImportError:
    raise MissingExtraError("pydantic", "judge", "asking a judge") from None

from rag_selectivity.grading.judge import Reply

T = TypeVar("T", bound=BaseModel)

#: An answer longer than this is read from its end, where the answer stands.
_LONGEST = 50_000
_CLOSED_REASONING = re.compile(r".*</(?:think|thinking|thought|reasoning|reflection)>", re.DOTALL | re.IGNORECASE)
_OPEN_REASONING = re.compile(r"<(?:think|thinking|thought|reasoning|reflection)>.*", re.DOTALL | re.IGNORECASE)
_FINAL_CHANNEL = re.compile(r".*<\|channel\|>final[^<]*<\|message\|>", re.DOTALL)
_GRADE_IN_WORDS = re.compile(r"\bgrade\b[\s\"'*_`]*(?:is|of|:|=|-)?[\s\"'*_`]*(\d+(?:[.,/]\d+)*)", re.IGNORECASE)
_BARE_GRADE = re.compile(r"[\s\"'*_`]*(\d(?:\.0+)?)[\s\"'*_`.]*")
_GRADE_IN_JSON = re.compile(r'"grade"\s*:\s*"?\s*([1-5])')
_PASSAGE_IN_JSON = re.compile(r'"passage"\s*:\s*"([^"]*)"')
#: Less probability than this on the grades that are seen says nothing about those that are not.
_LEAST_SEEN = 0.5


class Unreadable(ValueError):
    """The reply holds no answer, or several; the message tells the model what is wrong."""


def read_answer(reply: Reply, schema: type[T]) -> T:
    """The one answer that a reply holds.

    Reasoning before the answer, code fences and prose around one JSON object are passed over, and a whole number may
    be written as "4" or 4.0. An answer whose only necessary field is the grade may say it in words ("Grade: 4").

    Raises
    ------
    Unreadable
        If no object fits the schema, or two differ.
    """
    if isinstance(reply.content, schema):
        return reply.content
    text, objects = _objects_of(reply)
    read, problem = _one_of(objects, schema)
    if read is None and problem is None and text and _is_grade_alone(schema):
        return schema.model_validate({"grade": _grade_in_words(text)})
    if read is None:
        raise Unreadable(problem or ("the answer is empty" if not text else "the answer holds no JSON object"))
    return read


def read_batch(reply: Reply, item: type[T], ids: Sequence[str]) -> dict[str, T]:
    """The answers for the passages of a batch by id; one that is missing, invalid or there twice is left out.

    Every complete item counts, even if the reply is cut.
    """
    by_id: dict[str, list[T | None]] = {id_: [] for id_ in ids}
    for each in _items(_objects_of(reply)[1]):
        found = by_id.get(str(each.get("passage")))
        if found is not None:
            try:
                found.append(item.model_validate(each))
            except ValidationError:
                found.append(None)
    return {id_: found[0] for id_, found in by_id.items() if len(found) == 1 and found[0] is not None}


def expected_grade(reply: Reply) -> float | None:
    """The mean grade from 1 to 5 under the probabilities of the grade's token; None without them."""
    return next(reversed(list(_expected_grades(reply.logprobs or ()).values())), None)


def expected_grades(reply: Reply) -> dict[str, float]:
    """The mean grades of a batch by the ids of its passages, where the probabilities are known."""
    return {id_: value for id_, value in _expected_grades(reply.logprobs or ()).items() if id_ is not None}


def answer_text(reply: Reply) -> str:
    """What the judge said, to show to a person: the content, else the reasoning."""
    if isinstance(reply.content, BaseModel):
        return reply.content.model_dump_json()
    if isinstance(reply.content, Mapping):
        try:
            return json.dumps(reply.content, ensure_ascii=False, default=str)
        except (TypeError, ValueError):  # keys that JSON does not have, or a dict within itself
            return str(reply.content)
    return _text_of(reply.content) or reply.reasoning or ""


# -- objects -------------------------------------------------------------------------------------------


def _text_of(content: Any) -> str:
    """The text of a content, which may be a list of parts."""
    if isinstance(content, (list, tuple)):
        return "".join(_text_of(part.get("text")) if isinstance(part, Mapping) else _text_of(part) for part in content)
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    return content if isinstance(content, str) else ""


def _objects_of(reply: Reply) -> tuple[str, list[Any]]:
    """The text of the answer without its reasoning, and the JSON objects in it.

    Some servers put a constrained answer where the reasoning belongs: without content, it is looked for there.
    """
    if isinstance(reply.content, Mapping):
        return "", [reply.content]
    if isinstance(reply.content, BaseModel):
        return "", [reply.content.model_dump()]
    text = _without_reasoning(_text_of(reply.content)[-_LONGEST:])
    if text:
        return text, list(_objects_in(text))
    return "", list(_objects_in(_without_reasoning((reply.reasoning or "")[-_LONGEST:])))


def _without_reasoning(text: str) -> str:
    text = _FINAL_CHANNEL.sub("", text)
    if "</" in text:
        text = _CLOSED_REASONING.sub("", text)
    if "<" in text:
        text = _OPEN_REASONING.sub("", text)
    return text.strip()


class _Ambiguous(dict[str, Any]):
    """An object that names a field twice, with different values."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    pairs = [(whole_characters(name), _whole(value)) for name, value in pairs]
    result = dict(pairs)
    if len(result) < len(pairs) and any(result[name] != value for name, value in pairs):
        return _Ambiguous(result)
    return result


def _whole(value: Any) -> Any:
    """As `whole_characters`; objects within were made by `_pairs`, and may be ambiguous."""
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return whole_characters(value) if isinstance(value, str) else value


def _not_a_number(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_not_a_number)


def _objects_in(text: str) -> Iterator[Any]:
    """The JSON objects of a text, each as large as possible."""
    place = text.find("{")
    while place >= 0:
        try:
            value, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
        else:
            yield value
        place = text.find("{", place)


def _items(objects: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """The items of a batch: the objects with a `passage`, by themselves or in a list of an object around them."""
    for value in objects:
        if not isinstance(value, Mapping):
            continue
        if "passage" in value:
            yield value
        else:
            yield from _items([item for inner in value.values() if isinstance(inner, list) for item in inner])


def _one_of(objects: Sequence[Any], schema: type[T]) -> tuple[T | None, str | None]:
    """The only answer among objects, or the problem; neither if there is no object."""
    read: list[T] = []
    problem: str | None = None
    for value in objects:
        inner = [each for each in value.values() if isinstance(each, Mapping)] if len(value) == 1 else []
        for each in inner if len(inner) == 1 else [value]:
            if isinstance(each, _Ambiguous):
                return None, "the answer names a field twice, with different values"
            try:
                read.append(schema.model_validate(each))
            except ValidationError as error:
                problem = _problems(error)
                if "grade" in each:
                    return None, problem
    if not read:
        return None, problem
    if any(_verdict(each) != _verdict(read[0]) for each in read):
        return None, "the answer holds several different answers: give one JSON object"
    return read[-1], None


def _verdict(value: BaseModel) -> Any:
    return getattr(value, "grade", value)


def _problems(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'the answer'}: {each['msg'].removeprefix('Value error, ')}"
        for each in error.errors()[:3]
    )


# -- a grade in words ----------------------------------------------------------------------------------


def _is_grade_alone(schema: type[BaseModel]) -> bool:
    return [name for name, field in schema.model_fields.items() if field.is_required()] == ["grade"]


def _grade_in_words(text: str) -> int:
    bare = _BARE_GRADE.fullmatch(text)
    numbers = {bare.group(1)} if bare else {match.group(1) for match in _GRADE_IN_WORDS.finditer(text)}
    grades = {number.removesuffix(".0") for number in numbers}
    if len(grades) > 1:
        raise Unreadable(f"the answer names {len(grades)} grades: give one JSON object")
    grade = next(iter(grades), "")
    if grade not in ("1", "2", "3", "4", "5"):
        raise Unreadable("the answer holds no JSON object" + (f", and no grade from 1 to 5 ({grade})" if grade else ""))
    return int(grade)


# -- probabilities -------------------------------------------------------------------------------------


def _expected_grades(tokens: Sequence[Mapping[str, Any]]) -> dict[str | None, float]:
    """The mean grade of each grade in an answer, by the passage named before it (None: none is)."""
    try:
        texts = [str(token["token"]) for token in tokens]
        ends = list(accumulate(map(len, texts)))
        whole = "".join(texts)
        passages = [(match.start(), match.group(1)) for match in _PASSAGE_IN_JSON.finditer(whole)]
        result: dict[str | None, float] = {}
        for match in _GRADE_IN_JSON.finditer(whole):
            number = bisect_right(ends, match.start(1))
            value = _mean_grade(tokens[number], match.start(1) - (ends[number] - len(texts[number])))
            before = bisect_right(passages, (match.start(), ""))
            name = passages[before - 1][1] if before else None
            if value is not None:
                result[name] = value
    except (KeyError, TypeError, ValueError, AttributeError):
        # An endpoint that gives probabilities in a form of its own gives none.
        return {}
    return result


def _mean_grade(token: Mapping[str, Any], place: int) -> float | None:
    """The mean of the grades that may stand at a place of a token."""
    said = str(token["token"])
    weights: dict[int, float] = {}
    for each in token.get("top_logprobs") or ():
        text = str(each["token"])
        digit = text[place : place + 1]
        if (
            text[:place] == said[:place]
            and digit in ("1", "2", "3", "4", "5")
            and not text[place + 1 : place + 2].isdigit()
        ):
            weights[int(digit)] = weights.get(int(digit), 0.0) + math.exp(float(each["logprob"]))
    seen = sum(weights.values())
    if not seen or (seen < _LEAST_SEEN and len(weights) < 5):
        return None
    return sum(grade * weight for grade, weight in weights.items()) / seen
