"""Any OpenAI-compatible chat-completions endpoint as a judge."""

from __future__ import annotations

import json
import logging
import os
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from rag_selectivity.errors import InputError, needing
from rag_selectivity.grading.address import Secrets, without_secrets
from rag_selectivity.grading.judge import (
    ADAPTED,
    LONGEST_MESSAGE,
    Ask,
    JudgeFailure,
    Reply,
    Request,
    causes_of,
    failure_of_status,
    json_schema,
    may_not_spend,
    unreachable,
    with_schema,
)
from rag_selectivity.results.usage import Usage
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.files import json_value

# -- replies -------------------------------------------------------------------------------------------------

#: Bytes of a reply; the probabilities of 10,000 tokens take half of it.
_LONGEST_BODY = 16_000_000
#: Bytes of an error; what follows is not read.
_LONGEST_ERROR = 100_000
_LONGEST_NAME = 200
_RATE_LIMIT = re.compile(r"rate[ _-]?limit|too[ _]many[ _]requests|resource[ _]exhausted", re.IGNORECASE)


def reply_of(text: str, headers: Mapping[str, str], way: str) -> Reply:
    """The reply in the body of an answer with status 200.

    Raises
    ------
    JudgeFailure
        `server_error` if the body is damaged, `refusal` if the model refuses, `content_filter` if a filter does; if the
        body holds an error and no message, the failure of its status.
    """
    try:
        body = json_value(text)
    except ValueError:
        what = f"the endpoint's reply is not JSON: {shown(text)}"
        raise JudgeFailure(what, "server_error", answer=text[:500]) from None
    usage = _usage(body)
    choice = _first(body.get("choices")) if isinstance(body, dict) else {}
    message = _first([choice.get("message")])
    content, arguments = message.get("content"), tuple(_arguments(message))
    reasoning = next((each for name in ("reasoning_content", "reasoning") if (each := message.get(name))), None)
    if refusal := message.get("refusal"):
        said = str(refusal)
        raise JudgeFailure(f"the model refused: {said[:LONGEST_MESSAGE]}", "refusal", usage=usage, answer=said)
    if not (content or arguments or reasoning):
        for error in _errors(body, choice):
            raise _failure_of(error, headers, usage)
        if not message:
            why = f"the endpoint's reply holds no message: {shown(text)}"
            raise JudgeFailure(why, "server_error", usage=usage, answer=text[:500], lasting=True)
    finish = choice.get("finish_reason")
    if finish == "content_filter" and not content:
        raise JudgeFailure("the endpoint's content filter refused the answer", "content_filter", usage=usage)
    named = body.get("model")
    return Reply(
        content,
        usage,
        finish=finish if isinstance(finish, str) else None,
        reasoning=reasoning if isinstance(reasoning, str) else None,
        cost=_cost(body, headers),
        model=named[:_LONGEST_NAME] if isinstance(named, str) and named else None,
        way=way,
        arguments=arguments,
    )


def _first(values: Any) -> dict[str, Any]:
    """The first element of a list if it is an object, else an empty object."""
    return values[0] if isinstance(values, list) and values and isinstance(values[0], dict) else {}


def _arguments(message: dict[str, Any]) -> Iterator[str]:
    """The arguments of each call of a tool."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        given = function.get("arguments") if isinstance(function, dict) else None
        if given and isinstance(given, (str, dict)):
            yield given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _errors(body: Any, choice: dict[str, Any]) -> Iterator[Any]:
    """What the body says of an error, wherever endpoints write it."""
    for part in (choice, body if isinstance(body, dict) else _first(body)):
        for name in ("error", "detail", "message"):
            value = part.get(name)
            if value and not (part is choice and name == "message"):
                yield {**part, "message": value} if name == "message" else value


def _failure_of(error: Any, headers: Mapping[str, str], usage: Usage | None) -> JudgeFailure:
    """The failure that an error in an answer with status 200 means; without a status, its words decide."""
    status = _status(error)
    failure = failure_of_status(status or 400, headers, json.dumps({"error": error}, ensure_ascii=False))
    if status is not None:
        return failure
    words = str(failure).removeprefix("400: ")
    if failure.kind != "rejected":
        return failure.with_words(words, failure.answer)
    why = f"the endpoint answers with an error in place of a message: {words}"
    return JudgeFailure(why, "server_error", usage=usage or Usage(), answer=failure.answer, lasting=True)


def _status(error: Any) -> int | None:
    """The HTTP status that an error names, by a number, a text or its kind."""
    if not isinstance(error, dict):
        return None
    for name in ("code", "status", "status_code"):
        code = str(error.get(name))
        if re.fullmatch(r"[45][0-9]{2}", code):
            return int(code)
    return 429 if _RATE_LIMIT.search(" ".join(str(error.get(name)) for name in ("code", "status", "type"))) else None


def _usage(body: Any) -> Usage | None:
    spent = body.get("usage") if isinstance(body, dict) else None
    if not isinstance(spent, dict):
        return None
    prompt, completion = spent.get("prompt_tokens"), spent.get("completion_tokens")
    return Usage(prompt, completion) if isinstance(prompt, int) and isinstance(completion, int) else None


def _cost(body: Mapping[str, Any], headers: Mapping[str, str]) -> float | None:
    """What the endpoint says that the request cost: a field of `usage`, or a header."""
    spent = body.get("usage")
    value = spent.get("cost") if isinstance(spent, dict) else None
    try:
        return float(headers["x-litellm-response-cost"] if value is None else value)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


# -- how an endpoint is asked --------------------------------------------------------------------------------

#: Ways to constrain an answer, the strictest first.
ANSWERS = ("json_schema", "json_object", "tools", "text")
_LIMITS = ("max_completion_tokens", "max_tokens", None)
#: Words by which an endpoint names what it refuses, the field first that endpoints lack most often.
_WORDS = {
    "answer": r"response_?format|json_?schema|json_?object|structured|guided|grammar|tool|function",
    "limit": r"max_(?:completion_)?tokens",
    "temperature": r"temperature",
}


@dataclass(frozen=True, slots=True)
class Way:
    """The fields of a request besides the messages.

    Attributes
    ----------
    answer : {"json_schema", "json_object", "tools", "text"}
        What constrains the answer.
    limit : {"max_completion_tokens", "max_tokens"} or None
        The field that limits its length.
    refused : tuple of str
        Fields that the user gave and the endpoint refused.
    """

    answer: str = ANSWERS[0]
    limit: str | None = _LIMITS[0]
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As JSON, as labels keep it."""
        shown = {"answer": self.answer, "limit": self.limit, "refused": self.refused}
        return json.dumps({name: value for name, value in shown.items() if value != ()})

    def fields(self, request: Request, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request, without its model."""
        schema = request.schema
        body: dict[str, Any] = {"messages": list(request.messages)}
        body |= {name: value for name, value in parameters.items() if name not in self.refused}
        if self.limit is not None:
            body[self.limit] = request.answer_tokens
        if self.answer == "json_schema":
            described = {"name": schema.__name__, "strict": True, "schema": json_schema(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        elif self.answer == "tools":
            function = {"name": "answer", "description": "Give the answer.", "parameters": json_schema(schema)}
            body["tools"] = [{"type": "function", "function": function}]
            body["tool_choice"] = {"type": "function", "function": {"name": "answer"}}
        else:
            body["messages"] = with_schema(request.messages, schema)
            if self.answer == "json_object":
                body["response_format"] = {"type": "json_object"}
        return body

    def without(self, what: str) -> Way | None:
        """The way without a thing that was refused: `answer` and `limit` step down by one; None if it is not sent."""
        if what == "answer":
            lower = ANSWERS[ANSWERS.index(self.answer) + 1 :]
            return replace(self, answer=lower[0]) if lower else None
        if what == "limit":
            return None if self.limit is None else replace(self, limit=_LIMITS[_LIMITS.index(self.limit) + 1])
        return None if what in self.refused else replace(self, refused=(*self.refused, what))

    def without_field(self, error: str, parameters: Mapping[str, Any], *, limit: bool) -> Way | None:
        """The way without a field whose exact name stands in an error; None if there is none.

        Without `limit` the limit of tokens stays, since an error about a rate may name it.
        """
        names = {
            "answer": {"tools": ("tools", "tool_choice"), "text": ()}.get(
                self.answer, ("response_format", self.answer)
            ),
            "limit": (self.limit,) if limit and self.limit is not None else (),
            "temperature": ("temperature",),
        }
        patterns = {what: rf"\b(?:{'|'.join(fields)})\b" for what, fields in names.items() if fields}
        return self.without_named(error, parameters, patterns)

    def without_any(self, parameters: Mapping[str, Any], fields: Iterable[str] = _WORDS) -> Way | None:
        """The way without the first of the fields that is sent; None if none is."""
        sent = (what for what in fields if what != "temperature" or what in parameters)
        return next((lower for what in sent if (lower := self.without(what)) is not None), None)

    def without_named(self, text: str, parameters: Mapping[str, Any], words: Mapping[str, str] = _WORDS) -> Way | None:
        """The way without what a text names, by default in whatever words; None if it names nothing that is sent."""
        for name in parameters:
            if name not in ("temperature", *self.refused) and re.search(rf"\b{re.escape(name)}\b", text):
                return self.without(name)
        return self.without_any(parameters, [what for what in words if re.search(words[what], text, re.IGNORECASE)])


# -- the judge -----------------------------------------------------------------------------------------------

_OPENAI = "https://api.openai.com/v1"
_KEY_ENV = "OPENAI_API_KEY"
_UNREADABLE_BEFORE_STEP = 2
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)


class OpenAIJudge:
    """A model behind an OpenAI-compatible endpoint.

    The first requests find what the endpoint can do: a field that it refuses is left out from then on. A proxy is
    taken from the environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY).

    Parameters
    ----------
    model : str
    base_url : str, optional
        URL of a compatible server, to which `/chat/completions` is added before its query, if it has one. Default:
        OPENAI_BASE_URL, or that of OpenAI.
    api_key : str, optional
        Default: the environment variable `api_key_env`. A server given by `base_url` may need none.
    api_key_env : str
        Must be set if it is not OPENAI_API_KEY and no `api_key` is given.
    headers : {name: value}, optional
        More headers of each request, such as `{"api-key": …}` for Azure.
    temperature : float, optional
        Default: that of the model. Some models accept no other; it is then left out.
    extra : mapping, optional
        More parameters of the request, such as `{"reasoning_effort": "low"}`.

    Attributes
    ----------
    way : Way
        How the endpoint is asked now.

    Keys and the values of headers never occur in a message, an error, a label or a report.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_env: str = _KEY_ENV,
        headers: Mapping[str, str] | None = None,
        temperature: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        with needing("openai", "judge", "an OpenAI-compatible judge"):
            import openai
        # A secret that is mounted as a file often ends in a newline.
        key = (api_key or os.environ.get(api_key_env) or "").strip()
        if not key and (api_key_env != _KEY_ENV or (base_url is None and not headers)):
            is_usual = api_key_env == _KEY_ENV
            mend = "name a server that needs no key with --base-url" if is_usual else "leave judge.api_key_env out"
            why = f"no API key: the environment variable {api_key_env} is not set; set it, or {mend}"
            raise InputError(f"{why} (how-to: stopped-grading)")
        self._key_env = api_key_env
        self.name = model
        self.parameters: dict[str, Any] = {} if temperature is None else {"temperature": temperature}
        self.parameters |= extra or {}
        self.way = Way()
        self._openai: Any = openai
        address = _split(base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI)
        credentials, _, host = address.netloc.rpartition("@")
        path = address.path.rstrip("/").removesuffix("/chat/completions")
        self._base = urlunsplit((address.scheme, host, path, "", ""))
        self._query = address.query.encode()
        self._headers = _checked(headers or {})
        names = [name.lower() for name in self._headers]
        self._has_two_keys = bool(credentials) and (bool(key) or "authorization" in names)
        if credentials:
            user, _, password = credentials.partition(":")
            plain = f"{unquote(user)}:{unquote(password)}"
            self._headers["authorization"] = f"Basic {b64encode(plain.encode()).decode()}"
        elif key and "authorization" not in names:
            self._headers["authorization"] = f"Bearer {_sendable(key, f'the key in {api_key_env}')}"
        self._secrets = Secrets(key, headers or {}, address)
        #: The address in messages.
        self._where = self._secrets.taken_out(self._base)
        if self._query:
            # The client and its transport log whole addresses.
            for logger in ("httpx", "httpx2", "openai._base_client"):
                logging.getLogger(logger).addFilter(self._secrets.clean)
        self._answered = self._has_guessed = False
        self._before_guesses: Way | None = None
        self._unreadable = 0

    def __repr__(self) -> str:
        return f"<OpenAIJudge {self.name}>"

    # -- requests ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Ask]:
        """Keep connections open; what it gives asks with them."""
        if self._has_two_keys:
            raise InputError(
                f"base_url (--base-url) holds a user and a password, and {self._key_env} or a header (--header) holds "
                f"a key; a request has room for one of them: take the user and the password out of the address, or "
                f"unset {self._key_env}"
            )
        # The gate repeats, paces and times requests, so that the budget counts each of them.
        try:
            http = self._openai.DefaultAsyncHttpxClient(auth=self._addressed, follow_redirects=False)
            client = self._openai.AsyncOpenAI(
                api_key="in a header", base_url=self._base, http_client=http, max_retries=0, timeout=None
            )
        except Exception as error:
            raise self._unsendable(error) from None
        # The client imports what asks on its first use, which is not the first request's time.
        completions = client.chat.completions.with_streaming_response
        async with client:
            yield partial(self._ask, completions)

    def _addressed(self, request: Any) -> Any:
        """The client's request with the query of the address, and with the headers that the user gave."""
        request.url = request.url.copy_with(query=self._query) if self._query else request.url
        del request.headers["authorization"]
        for name, value in self._headers.items():
            request.headers[name] = value
        return request

    async def ask(self, request: Request) -> Reply:
        """Send one request, with a connection of its own."""
        async with self.session() as ask:
            return await ask(request)

    async def _ask(self, completions: Any, request: Request) -> Reply:
        way = self.way
        status, headers, raw = await self._post(completions, way.fields(request, self.parameters))
        if len(raw) > _LONGEST_BODY:
            raise JudgeFailure(f"the reply is longer than {_LONGEST_BODY:,} bytes", "server_error")
        text = self._secrets.taken_out_of_body(raw.decode("utf-8", "replace"))
        try:
            if status >= 300:
                raise failure_of_status(status, headers, text)
            reply = reply_of(text, headers, str(way))
        except JudgeFailure as failure:
            told = self._refusal(failure, status, text, way)
            answer = None if told.answer is None else self._secrets.taken_out(told.answer)
            raise told.with_words(self._secrets.taken_out(str(told)), answer) from None
        self._answered, self._before_guesses = True, None
        answered = reply.usage.completion_tokens if reply.usage is not None and reply.usage.is_possible else 0
        if answered > 1.1 * request.answer_tokens + 16 and self.way.limit == way.limit == "max_completion_tokens":
            # The endpoint seems to ignore the field.
            self.way = self.way.without("limit") or self.way
        return reply

    def unreadable(self) -> None:
        """Constrain answers in another way after several unreadable ones: the endpoint seems to ignore this way."""
        self._unreadable += 1
        if self._unreadable % _UNREADABLE_BEFORE_STEP == 0:
            self.way = self.way.without("answer") or self.way

    async def _post(self, completions: Any, fields: dict[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        body = bytearray()
        try:
            # The client goes over each field of its own for every type that it may have; these it sends as they are.
            async with completions.create(model=self.name, messages=(), extra_body=fields) as response:
                async for part in response.iter_bytes():
                    body += part
                    if len(body) > _LONGEST_BODY:
                        break
                return response.status_code, response.headers, bytes(body)
        except self._openai.APIStatusError as error:
            return error.status_code, error.response.headers, error.response.content[:_LONGEST_ERROR]
        except Exception as error:  # the client's own, and those of its transport while a body is read
            raise self._no_connection(error) from None

    def _no_connection(self, error: BaseException) -> JudgeFailure:
        """The failure that an error of the client without any answer means."""
        causes = list(causes_of(error))
        names = [type(each).__name__ for each in causes]
        if "ConnectError" not in names:
            if "UnsupportedProtocol" in names or any(isinstance(each, (TypeError, ValueError)) for each in causes):
                return self._unsendable(causes[-1])
            return JudgeFailure(f"the connection was cut ({names[-1]})", "server_error")
        return unreachable(causes, self._where, "--base-url")

    def _unsendable(self, error: BaseException) -> JudgeFailure:
        why = f"no request can be sent to {self._where} ({type(error).__name__}): check --base-url, --header, and "
        return JudgeFailure(f"{why}the proxy in HTTPS_PROXY or HTTP_PROXY", "fatal")

    def _refusal(self, failure: JudgeFailure, status: int, text: str, way: Way) -> JudgeFailure:
        """The failure; `adapted` if it means a field of the request, which is left out from then on."""
        lower = None
        if failure.kind == "rejected" and status in (400, 422, 501):
            if way != self.way:
                # Another request has changed the way since this one was sent.
                return JudgeFailure("the request has a field that is no longer sent", ADAPTED)
            lower = way.without_named(text, self.parameters) or self._guess(way)
            if lower is None and self._before_guesses is not None:
                # Without all of them it is refused too: the request itself is at fault, and others are not.
                self.way, self._before_guesses = self._before_guesses, None
        elif failure.kind not in ("content_filter", "refusal", "too_long") and not may_not_spend(status, text):
            # Only in an error of status 4xx may the name of a field stand anywhere; others may quote the request.
            named = text if 400 <= status < 500 else str(failure)
            lower = way.without_field(named, self.parameters, limit=failure.kind != "rate_limit")
        if lower is not None:
            self.way = lower if way == self.way else self.way
            return JudgeFailure(str(failure), ADAPTED)
        if status == 401:
            mend = f"set {self._key_env} to a key of {self._where}, or give judge.api_key_env"
            return JudgeFailure(f"{failure}: {mend}", "fatal")
        return JudgeFailure(f"{failure}; the address is {self._where}", "fatal") if status in (404, 405) else failure

    def _guess(self, way: Way) -> Way | None:
        """The way without the field that most endpoints lack, if this one has refused a request without saying why.

        It is tried for one request, and only before the first answer.
        """
        if self._answered or (self._has_guessed and self._before_guesses is None):
            return None
        lower = way.without_any(self.parameters)
        if lower is not None and not self._has_guessed:
            self._has_guessed, self._before_guesses = True, way
        return lower


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, if all of them can be sent."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            wrong = f"{name!r} is not the name of a header: give letters, digits and hyphens"
            raise InputError(f"headers (--header): {wrong}")
        _sendable(value, f"headers (--header): the value of {name}")
    return dict(headers)


def _sendable(value: str, what: str) -> str:
    """The value of a header; an InputError if no header can hold it."""
    if not isinstance(value, str):
        raise InputError(f"{what} must be a text, not {type(value).__name__}")
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]", value):
        raise InputError(f"{what} holds a line break or another character that no header can hold: remove it")
    return value


def _split(base: str) -> SplitResult:
    try:
        parts = urlsplit(base.strip())
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_url = False
    if not is_url:
        raise InputError(
            f"base_url (--base-url) must be a URL such as http://localhost:8000/v1, got {without_secrets(base)!r}"
        )
    return parts
