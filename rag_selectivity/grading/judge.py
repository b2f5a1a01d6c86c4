"""Judges: one request in, one reply out.

Everything that a judge of your own needs is here: the protocol `Judge`, its `Message`, `Request`, `Reply`, `Usage` and
`JudgeFailure`. A judge sends one request and nothing more. Whoever asks it repeats, counts, limits and pays requests,
and reads answers out of replies.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, partial
from importlib import import_module
from socket import gaierror
from ssl import SSLError
from typing import Any, Literal, Protocol, TypedDict, runtime_checkable
from urllib.parse import urlsplit

from pydantic import BaseModel

from rag_selectivity.errors import GradingError
from rag_selectivity.grading.store.records import PASSING
from rag_selectivity.results.usage import Usage
from rag_selectivity.tables.cells import number_or_nan, shown, whole_characters
from rag_selectivity.tables.files import json_value

__all__ = ["Ask", "CallableJudge", "Judge", "Message", "ModelJudge", "Reply", "Request", "Usage", "judge_of", "opened"]
__all__ += ["ADAPTED", "PASSING", "GradingError", "JudgeFailure", "failure_of"]
__all__ += ["first_text", "json_schema", "known_settings", "with_schema"]


# -- failures ------------------------------------------------------------------------------------------------

#: The kind of a failure after which the judge asks in another way, so that the request is sent again at once.
ADAPTED = "adapted"
LONGEST_MESSAGE = 300
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|exceed_context|maximum context|too many (?:input )?tokens|prompt is too long"
    r"|input is too long|longer than the (?:maximum|model)|reduce the length",
    re.IGNORECASE,
)
#: Words for an account, key or organisation that may not spend. "Check your plan and billing details" is not among
#: them, since some endpoints say it of a limit for a minute.
_MAY_NOT_SPEND = re.compile(
    r"insufficient[_ ](?:quota|credits?|funds|balance)|credit balance is too low|out of credits|payment required"
    r"|budget_exceeded|exceeded(?:token)?budget|budget has been exceeded|billing[_ ](?:hard|soft)[_ ]limit"
    r"|billing_not_active|spend(?:ing)?[_ ]limit|organization[_ ](?:has been )?restricted"
    r"|account .{0,60}(?:not active|suspended|deactivated)",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model_not_found|unknown model|invalid model|no such model|model .{0,80}(?:does not exist|not found)"
    r"|not a valid model",
    re.IGNORECASE | re.DOTALL,
)
_FILTER = re.compile(r"content_?filter|content management policy|moderation|flagged|content policy", re.IGNORECASE)


class JudgeFailure(GradingError):
    """A request to a judge failed.

    Attributes
    ----------
    kind : str
        `rate_limit`, `timeout`, `server_error` (5xx, a cut connection, a damaged reply) and `unreachable` are
        temporary: another attempt may succeed. `rejected`, `too_long`, `refusal`, `content_filter`, `cut` and
        `off_schema` concern this pair alone. `fatal` (a wrong key, an empty account, an unknown model) concerns every
        request. `adapted`: the endpoint refused a field, and the judge will not send it again.
    retry_after : float or None
        Seconds to wait before the next request, if the endpoint named them.
    overloaded : bool
        Whether fewer requests at the same time may help (429 and 503).
    usage : Usage or None
        Tokens of the failed request; None if they are unknown.
    answer : str or None
        What the judge or the endpoint answered, if anything.
    lasting : bool
        Whether a temporary failure seems to last: it is tried once more and no oftener, and many in a row end the run.
    """

    def __init__(
        self,
        message: str,
        kind: str,
        *,
        retry_after: float | None = None,
        overloaded: bool = False,
        usage: Usage | None = None,
        answer: str | None = None,
        lasting: bool = False,
    ) -> None:
        super().__init__(whole_characters(message))
        self.kind = kind
        self.retry_after = retry_after
        self.overloaded = overloaded or kind == "rate_limit"
        self.usage = usage
        self.answer = whole_characters(answer)
        self.lasting = lasting

    def with_words(self, message: str, answer: str | None = None) -> JudgeFailure:
        """The same failure with another message, and with this answer or none."""
        return JudgeFailure(message, **{**vars(self), "answer": answer})


def failure_of_status(status: int, headers: Mapping[str, str], text: str, *, told: str = "") -> JudgeFailure:
    """The failure that an HTTP status and a body mean; of the body, it quotes nothing where `told` is given."""
    words = None if told else _words(text)
    told = told or (f"{status}: {words[:LONGEST_MESSAGE]}" if words else f"status {status}")
    wait = _retry_after(headers)
    if status in (400, 403) and _FILTER.search(text):
        return JudgeFailure(f"the content filter refused the request: {told}", "content_filter", answer=words)
    unknown = status in (404, 405) or (status in (400, 422) and _UNKNOWN_MODEL.search(text) is not None)
    is_broke = may_not_spend(status, text)
    for holds, mend in (
        (status == 407, "the proxy needs a name and a password: give them in HTTPS_PROXY or HTTP_PROXY"),
        (is_broke, "the account has no credit left or may not spend it: add credit, or raise its limit"),
        (status == 401, "the key is wrong or missing"),
        (status == 403, "the key may not use this model: give another model (--model) or another key"),
        (unknown, "the endpoint does not know this model or address: check both (--model, --base-url)"),
        (300 <= status < 400, "the endpoint has moved: give its new address with --base-url"),
    ):
        if holds:
            return JudgeFailure(f"{told} ({mend})", "fatal")
    if status in (400, 413, 422) and (_TOO_LONG.search(text) or status == 413):
        return JudgeFailure(told, "too_long", answer=words)
    if status == 429:
        return JudgeFailure(told, "rate_limit", retry_after=wait)
    if status in (408, 409, 425) or (status >= 500 and status != 501):
        return JudgeFailure(told, "server_error", retry_after=wait, overloaded=status == 503, usage=Usage())
    return JudgeFailure(told, "rejected", answer=words)


def may_not_spend(status: int, text: str) -> bool:
    """Whether an error means the account and no single request: no credit, a budget that is used up, a suspension."""
    if status in (400, 403) and _FILTER.search(text):
        return False  # a filter may quote the passage
    return status == 402 or (400 <= status < 500 and _MAY_NOT_SPEND.search(text) is not None)


def _words(text: str) -> str:
    """The message of an error, from a body of JSON or HTML."""
    try:
        body = json_value(text)
    except ValueError:
        return " ".join(re.sub(r"<[^>]{0,200}>", " ", text[:5000]).split())
    for name in ("error", "message", "detail"):
        value = body.get(name) if isinstance(body, dict) else None
        if isinstance(value, dict):
            value = value.get("message") or json.dumps(value, ensure_ascii=False)
        if value:
            return " ".join(str(value).split())
    return " ".join(text.split())


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what led to it; of several, the first."""
    while error is not None:
        yield error
        group = getattr(error, "exceptions", None)
        error = group[0] if group else error.__cause__ or error.__context__


def unreachable(causes: Sequence[BaseException], where: str, given: str) -> JudgeFailure:
    """The failure of a connection that was not made to an address, which the user gives as `given`."""
    for each in causes:
        if isinstance(each, SSLError):
            why = f"no secure connection to {where} ({type(each).__name__}): give http:// in {given}, or "
            return JudgeFailure(f"{why}name the certificate to trust in SSL_CERT_FILE", "unreachable")
        if isinstance(each, gaierror):
            return JudgeFailure(f"the host of {where} is unknown: check {given}", "unreachable")
    number = next((each.errno for each in causes if isinstance(each, OSError) and each.errno), None)
    told = os.strerror(number) if number is not None and number > 0 else type(causes[-1]).__name__
    why = f"nothing listens at {where} ({told}): start the server, or give its address with {given}"
    return JudgeFailure(why, "unreachable")


def _address(causes: Sequence[BaseException]) -> str:
    """The host that a client asked, with the port and nothing that may be secret."""
    for each in causes:
        with suppress(Exception):
            parts = urlsplit(str(each.request.url))  # type: ignore[attr-defined]
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return "the model's address"


def failure_of(error: BaseException) -> JudgeFailure:
    """The failure that an exception of a client means, by the HTTP status of the exception or of its cause.

    Without a status it is `unreachable` if nothing answers at the address, else a `server_error`. The message has only
    the class, the status or the address, and what mends it, since the client's own text may quote a key.
    """
    causes = list(causes_of(error))
    if any(isinstance(each, (ConnectionRefusedError, gaierror)) for each in causes):
        return unreachable(causes, _address(causes), "base_url of its client")
    if isinstance(error, TimeoutError):
        return JudgeFailure(f"{type(error).__name__}: the model did not answer in time", "timeout")
    # A library that tries again puts an error of its own between the two.
    for each in causes[:3]:
        status = getattr(each, "status_code", None)
        if isinstance(status, int) and status >= 400:
            headers = getattr(getattr(each, "response", None), "headers", None)
            told, known = f"{type(error).__name__} {status}", headers if isinstance(headers, Mapping) else {}
            return failure_of_status(status, known, str(each), told=told)
    return JudgeFailure(type(error).__name__, "server_error")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of a Retry-After or Retry-After-ms header, which may be a number or a date."""
    named = headers.get("retry-after")
    seconds = number_or_nan(headers.get("retry-after-ms")) / 1000
    if math.isnan(seconds):
        seconds = number_or_nan(named)
    if math.isnan(seconds):
        try:
            seconds = (parsedate_to_datetime(str(named)) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return None
    return max(0.0, seconds)


# -- judges --------------------------------------------------------------------------------------------------

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


def opened(judge: Judge) -> AbstractAsyncContextManager[Ask]:
    """What asks a judge, with its connections open if it has any."""
    return judge.session() if hasattr(judge, "session") else nullcontext(judge.ask)


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


#: What makes a judge of a framework's model, by the package of the model's class.
_ADAPTERS = {
    "ragas": ("rag_selectivity_ragas.judging", "RagasJudge"),
    "llama_index": ("rag_selectivity_llama_index.judging", "LLMJudge"),
    "langchain_core": ("rag_selectivity_langchain.judging", "ChatModelJudge"),
}


def judge_of(value: Any) -> Judge:
    """The judge itself; an async function becomes a CallableJudge of its name, a framework's model its adapter.

    A `partial` of a class makes its judge here: the command line's key is asked for when its options are known to be
    right.
    """
    if isinstance(value, partial) and isinstance(value.func, type):
        value = value()
    if isinstance(value, Judge):
        return value
    for each in type(value).__mro__:
        if (adapter := _ADAPTERS.get(each.__module__.partition(".")[0])) is not None:
            module, name = adapter
            adapted: Judge = getattr(import_module(module), name)(value)
            return adapted
    if callable(value):
        return CallableJudge(value, getattr(value, "__name__", type(value).__name__))
    raise GradingError(
        f"a judge is an object with name, parameters and ask, an async function, or a model of Ragas (`llm_factory`), "
        f"LlamaIndex or LangChain, got {shown(value)}; for an endpoint like OpenAI's give "
        f"rag_selectivity.grading.openai_judge.OpenAIJudge(model, base_url=…)"
    )


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
