"""Judges: one request in, one reply out.

Everything that a judge of your own needs is here: the protocol `Judge`, its `Message`, `Request`, `Reply`, `Usage` and
`JudgeFailure`. A judge sends one request and nothing more. Whoever asks it repeats, counts, limits and pays requests,
and reads answers out of replies.
"""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol, TypedDict, runtime_checkable

from pydantic import BaseModel

from rag_selectivity.errors import GradingError
from rag_selectivity.grading.failures import ADAPTED, PASSING, JudgeFailure, failure_of
from rag_selectivity.results.usage import Usage
from rag_selectivity.tables.cells import whole_characters

__all__ = ["Ask", "CallableJudge", "Judge", "Message", "ModelJudge", "Reply", "Request", "Usage", "judge_of", "opened"]
__all__ += ["ADAPTED", "PASSING", "GradingError", "JudgeFailure", "failure_of"]
__all__ += ["first_text", "json_schema", "known_settings", "with_schema"]

#: What a function raises again however often it is called.
_MISTAKES = (TypeError, NameError, AttributeError, ImportError, NotImplementedError)


class Message(TypedDict):
    """One message of a conversation with a judge."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """What a judge is asked.

    Attributes
    ----------
    messages : sequence of Message
    schema : type of BaseModel
        The shape of the answer.
    answer_tokens : int
        The most tokens of the answer, with its reasoning.
    """

    messages: Sequence[Message]
    schema: type[BaseModel]
    answer_tokens: int = 1000


@dataclass(frozen=True, slots=True)
class Reply:
    """What a judge replies.

    Attributes
    ----------
    content : str, dict, or instance of the schema
    usage : Usage or None
        None if the endpoint does not say.
    finish : str or None
        Why the answer ended: "stop", "length", "content_filter".
    reasoning : str or None
        What the model wrote before its answer, if the endpoint keeps the two apart.
    cost : float or None
        What the endpoint says that the request cost.
    model : str or None
        The model that the endpoint names.
    way : str or None
        How the endpoint was asked, as JSON.
    arguments : tuple of str
        The arguments of each call of a tool, as JSON; they are read before the content.
    """

    content: Any
    usage: Usage | None = None
    finish: str | None = None
    reasoning: str | None = None
    cost: float | None = None
    model: str | None = None
    way: str | None = None
    arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("content", "reasoning", "model", "arguments"):
            value = getattr(self, name)
            if isinstance(value, BaseModel):
                value = value.model_validate(whole_characters(value.model_dump()))
            object.__setattr__(self, name, whole_characters(value))


#: Sends one request; a JudgeFailure if it fails.
Ask = Callable[[Request], Awaitable[Reply]]


@runtime_checkable
class Judge(Protocol):
    """Anything that replies to a request.

    `name` is the name of the model. `parameters` holds everything besides the messages that can change an answer, such
    as the temperature. A judge may have two methods more: `session()`, an async context manager around many requests,
    which gives what to ask with in place of `ask`; and `unreadable()`, which is called when its reply held no answer
    and no other reply has held one yet.
    """

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    async def ask(self, request: Request) -> Reply:
        """Send one request; a JudgeFailure if it fails."""
        ...


@asynccontextmanager
async def opened(judge: Judge) -> AsyncIterator[Ask]:
    """What asks a judge, with its connections open if it has any."""
    if not hasattr(judge, "session"):
        yield judge.ask
        return
    async with judge.session() as ask:
        yield ask


@cache
def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of an answer; every field is required, and no other is allowed."""
    described = schema.model_json_schema()
    for part in (described, *described.get("$defs", {}).values()):
        part["required"] = list(part["properties"])
        part["additionalProperties"] = False
        for each in part["properties"].values():
            each.pop("default", None)
    return described


def with_schema(messages: Sequence[Message], schema: type[BaseModel]) -> list[Message]:
    """The messages with the schema in the text, for a model without structured output."""
    first, *rest = messages
    shape = json.dumps(json_schema(schema))
    content = f"{first['content']}\n\nAnswer with one JSON object of this schema and nothing else:\n{shape}"
    return [Message(role=first["role"], content=content), *rest]


class ModelJudge(ABC):
    """A judge that asks a framework's model. A subclass gives it a name and says how the model is called.

    Parameters
    ----------
    name : str
        The model's name; labels are kept under it.
    parameters : {name: value}
        All that can change an answer besides the messages, such as the temperature: other parameters grade anew.

    Examples
    --------
    >>> class Constant(ModelJudge):
    ...     async def complete(self, conversation, schema):
    ...         return {"reason": "always", "grade": 3}, Usage(prompt_tokens=12, completion_tokens=4)
    >>> Constant("constant", {"temperature": 0}).name
    'constant'
    """

    def __init__(self, name: str, parameters: Mapping[str, Any]) -> None:
        self.name = name
        self.parameters: Mapping[str, Any] = dict(parameters)

    @classmethod
    def of(cls, model: Any) -> Judge:
        """A judge as it is, or a framework's model as the judge that a subclass makes of it."""
        make: Callable[[Any], Judge] = cls
        return model if isinstance(model, Judge) else make(model)

    @abstractmethod
    async def complete(self, conversation: Sequence[Message], schema: type[BaseModel]) -> tuple[Any, Usage | None]:
        """Call the model once.

        Returns
        -------
        (answer, usage)
            The answer is an instance of the schema, a dict, or JSON text. One that does not fit the schema is sent
            back to the model with the error. The usage is None if the framework does not say it.

        Any exception may be raised: a JudgeFailure stays as it is, any other becomes one by the HTTP status that
        it carries.
        """

    async def ask(self, request: Request) -> Reply:
        """Send one request."""
        try:
            content, usage = await self.complete(request.messages, request.schema)
        except JudgeFailure:
            raise
        except Exception as error:
            raise failure_of(error) from None
        return Reply(content, usage if usage is not None and usage.total else None)


@dataclass(frozen=True)
class CallableJudge:
    """An async function as a judge.

    `function(messages, json_schema)` returns JSON text, a dict, an instance of the schema or a `Reply`; the first three
    alone or in a tuple with a Usage. An exception that is not a JudgeFailure becomes one by the HTTP status that it
    carries, and else counts as `server_error`; a mistake in the function, such as a TypeError, ends the run.
    """

    function: Callable[[Sequence[Message], dict[str, Any]], Awaitable[Any]]
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        called = getattr(self.function, "__call__", None)  # noqa: B004 - an object's method may be the coroutine
        if not (inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(called)):
            raise GradingError(f"judge {self.name!r}: an async function is needed, got {self.function!r}")

    async def ask(self, request: Request) -> Reply:
        """Call the function once."""
        try:
            result = await self.function(request.messages, json_schema(request.schema))
        except JudgeFailure:
            raise
        except _MISTAKES as error:
            why = f"the judge function {self.name!r} has a mistake ({type(error).__name__}: {error})"
            raise JudgeFailure(f"{why}: correct it, and run the same again", "fatal") from error
        except Exception as error:
            raise failure_of(error).with_words(f"{type(error).__name__}: {error}") from None
        if isinstance(result, Reply):
            return result
        is_with_usage = isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Usage)
        return Reply(*result) if is_with_usage else Reply(result)


def judge_of(value: Any) -> Judge:
    """The judge itself; an async function becomes a CallableJudge of its name."""
    if isinstance(value, Judge):
        return value
    if callable(value):
        return CallableJudge(value, getattr(value, "__name__", type(value).__name__))
    raise GradingError(f"a judge is an object with name, parameters and ask, or an async function; got {value!r}")


def first_text(value: Any, *names: str) -> str | None:
    """The first of the attributes that is a non-empty string, or None.

    >>> class Model:
    ...     model_name = "gpt-5-mini"
    >>> first_text(Model(), "model", "model_name")
    'gpt-5-mini'
    """
    texts = (getattr(value, name, None) for name in names)
    return next((text for text in texts if isinstance(text, str) and text), None)


def known_settings(source: Any, names: Sequence[str]) -> dict[str, Any]:
    """Those settings of a model that have a value, from its attributes or from a dict.

    >>> known_settings({"temperature": 0.2, "max_tokens": None}, ["temperature", "max_tokens"])
    {'temperature': 0.2}
    """
    values = source if isinstance(source, Mapping) else {name: getattr(source, name, None) for name in names}
    return {name: values[name] for name in names if values.get(name) is not None}
