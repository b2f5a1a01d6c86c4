"""Judges: messages and a response schema in, a validated object and token usage out.

pydantic is imported for the schemas; the clients of each judge only inside it.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol, TypedDict, TypeVar, runtime_checkable

from rag_selectivity.errors import MissingExtraError, SelectivityError
from rag_selectivity.results.usage import Usage

try:
    from pydantic import BaseModel, ValidationError
except ImportError:
    raise MissingExtraError("pydantic", "judge", "asking a judge") from None

__all__ = [
    "Answer",
    "CallableJudge",
    "GradingError",
    "Judge",
    "JudgeFailure",
    "Message",
    "Usage",
    "ask_until_valid",
    "failure_of",
    "json_schema",
    "judge_of",
    "parse_answer",
    "with_schema",
]


class Message(TypedDict):
    """One message of a conversation with a judge."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a judge said: an instance of the schema that was asked for, and what it took."""

    value: BaseModel
    usage: Usage = Usage()


class GradingError(SelectivityError):
    """Grading cannot go on, or a call failed."""


class JudgeFailure(GradingError):
    """A call to a judge failed.

    Attributes
    ----------
    kind : {"rate_limit", "transient", "rejected", "refusal", "off_schema", "fatal"}
        `rate_limit` and `transient` are worth another attempt; `rejected`, `refusal` and `off_schema` concern
        this pair alone; `fatal` (a wrong key, an unknown model) every call.
    retry_after : float or None
        Seconds to wait, where the endpoint said so.
    usage : Usage
        What the failed attempts took.
    """

    def __init__(self, message: str, kind: str, *, retry_after: float | None = None, usage: Usage = Usage()) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        self.usage = usage


@runtime_checkable
class Judge(Protocol):
    """Anything that answers messages in a given shape.

    `name` is the model's; `parameters` holds all that can change an answer besides the messages (temperature, …).
    """

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    async def ask(self, messages: Sequence[Message], schema: type[BaseModel]) -> Answer:
        """Answer the messages with an instance of the schema, or raise a JudgeFailure."""
        ...


T = TypeVar("T", bound=BaseModel)


@cache
def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of an answer's shape."""
    return schema.model_json_schema()


_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)


def parse_answer(content: Any, schema: type[T]) -> T:
    """An instance of the schema from JSON text, a dict or an instance; nothing is repaired or guessed.

    Raises
    ------
    ValueError
        With what is wrong, in words that a model can act on.
    """
    if isinstance(content, schema):
        return content
    if isinstance(content, BaseModel):
        content = content.model_dump()
    try:
        if isinstance(content, (str, bytes)):
            text = content.decode() if isinstance(content, bytes) else content
            fenced = _FENCE.fullmatch(text)
            return schema.model_validate_json(fenced.group(1) if fenced else text, strict=True)
        return schema.model_validate(content, strict=True)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'the answer'}: {problem['msg']}" for problem in error.errors()[:3]
        )
        raise ValueError(problems) from None


def with_schema(messages: Sequence[Message], schema: type[BaseModel]) -> list[Message]:
    """The messages with the schema in words, for a model that knows no structured output."""
    first, *rest = messages
    shape = json.dumps(json_schema(schema))
    said = f"{first['content']}\n\nAnswer with one JSON object of this schema and nothing else:\n{shape}"
    return [Message(role=first["role"], content=said), *rest]


def failure_of(error: BaseException) -> JudgeFailure:
    """An exception of some client by the HTTP status that it (or its cause) carries; the unknown is worth another try.

    The class and the status say enough: a client's text may quote a key.
    """
    carried = (getattr(each, "status_code", None) for each in (error, error.__cause__))
    status = next((found for found in carried if isinstance(found, int)), None)
    kind = "transient"
    if status == 429:
        kind = "rate_limit"
    elif status in (401, 403, 404):
        kind = "fatal"
    elif status is not None and 400 <= status < 500 and status not in (408, 409, 425):
        kind = "rejected"
    return JudgeFailure(f"{type(error).__name__}{f' {status}' if status else ''}", kind)


async def ask_until_valid(
    complete: Callable[[Sequence[Message]], Awaitable[tuple[Any, Usage]]],
    messages: Sequence[Message],
    schema: type[BaseModel],
    *,
    attempts: int = 3,
) -> Answer:
    """Ask; where the answer does not fit the schema, ask again with the error."""
    conversation = list(messages)
    usage = Usage()
    problem = ""
    for _ in range(attempts):
        content, spent = await complete(conversation)
        usage += spent
        try:
            return Answer(parse_answer(content, schema), usage)
        except ValueError as error:
            problem = str(error)
        said = content if isinstance(content, str) else json.dumps(content, default=str)
        conversation = [
            *messages,
            Message(role="assistant", content=said[:4000]),
            Message(role="user", content=f"That answer is not valid: {problem}. Answer again, with valid JSON only."),
        ]
    raise JudgeFailure(f"no valid answer in {attempts} attempts: {problem}", "off_schema", usage=usage)


@dataclass(frozen=True)
class CallableJudge:
    """An async function as a judge.

    `function(messages, json_schema)` gives JSON text, a dict, an instance of the schema, or one of these
    with a Usage. What it raises, except a JudgeFailure, counts as transient.
    """

    function: Callable[[Sequence[Message], dict[str, Any]], Awaitable[Any]]
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        called = getattr(self.function, "__call__", None)  # noqa: B004 - an object's method may be the coroutine
        if not (inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)):
            raise GradingError(f"judge {self.name!r}: an async function is needed, got {self.function!r}")

    async def ask(self, messages: Sequence[Message], schema: type[BaseModel]) -> Answer:
        async def complete(conversation: Sequence[Message]) -> tuple[Any, Usage]:
            try:
                result = await self.function(conversation, json_schema(schema))
            except JudgeFailure:
                raise
            except Exception as error:
                raise JudgeFailure(f"{type(error).__name__}: {error}", "transient") from None
            if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Usage):
                return result
            return result, Usage()

        return await ask_until_valid(complete, messages, schema)


def judge_of(value: Any) -> Judge:
    """A Judge as it is, or an async function as a CallableJudge named after itself."""
    if isinstance(value, Judge):
        return value
    if callable(value):
        return CallableJudge(value, getattr(value, "__name__", type(value).__name__))
    raise GradingError(f"a judge is an object with name, parameters and ask, or an async function; got {value!r}")
