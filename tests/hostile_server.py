"""A chat-completions server on 127.0.0.1 that misbehaves by a mode and records what reaches it.

A mode is a function (request, times this subject was asked so far) -> Reply. `good` is the mode of a server that
does everything right; the others do one thing wrong each. `per_passage` mixes modes.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any

KEY = "sk-hostile-THIS-MUST-NEVER-BE-WRITTEN-0123456789"
MODEL = "judge-1"


@dataclass(frozen=True)
class Request:
    """A request as the server saw it. `at_once` counts this one and those that had no answer yet."""

    time: float
    method: str
    target: str
    headers: dict[str, str]
    body: dict[str, Any]
    at_once: int

    @property
    def text(self) -> str:
        """The messages' texts."""
        contents = (message.get("content") or "" for message in self.body.get("messages", ()))
        return "\n".join(content if isinstance(content, str) else json.dumps(content) for content in contents)

    @property
    def passages(self) -> tuple[int, ...]:
        """Numbers of the passages that the request is about, in the order of the prompt."""
        return tuple(dict.fromkeys(int(number) for number in re.findall(r"passage number (\d+)", self.text)))

    @property
    def ids(self) -> dict[str, int]:
        """The opaque ids of a batch's passages: {id: number of the passage}."""
        found = re.findall(r"passage (\w+)\]?\n(?:[^\n]*\n)?passage number (\d+)", self.text)
        return {name: int(number) for name, number in found}

    @property
    def limit(self) -> int | None:
        """The most tokens of the answer."""
        limit: int | None = self.body.get("max_completion_tokens", self.body.get("max_tokens"))
        return limit

    @property
    def way(self) -> str:
        """How the request asks for JSON: json_schema, json_object, tools or text."""
        if "tools" in self.body:
            return "tools"
        kind: str = self.body.get("response_format", {}).get("type", "text")
        return kind


@dataclass(frozen=True)
class Reply:
    """What the server does with a request: a completion by default."""

    content: Any = '{"reason": "as it is", "grade": 3}'
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Any = None
    body: bytes | None = None
    message: Mapping[str, Any] = field(default_factory=dict)
    finish: str | None = "stop"
    usage: Mapping[str, Any] | None = field(default_factory=lambda: {"prompt_tokens": 500, "completion_tokens": 20})
    model: str = MODEL
    delay: float = 0.0
    #: Never answer.
    hang: bool = False
    #: Announce more than is sent, then close the connection.
    cut: bool = False
    #: Close the connection after the answer, unannounced.
    close: bool = False
    #: Seconds between the bytes of the answer.
    drip: float = 0.0

    def payload(self) -> bytes:
        """The body."""
        if self.body is not None:
            return self.body
        if self.status != 200:
            error = self.error if self.error is not None else {"message": "no", "type": "error", "code": None}
            return json.dumps({"error": error} if isinstance(error, dict) and "detail" not in error else error).encode()
        message = {"role": "assistant", "content": self.content, **self.message}
        choice = {"index": 0, "finish_reason": self.finish, "message": message}
        data = {"id": "c", "object": "chat.completion", "created": 1, "model": self.model, "choices": [choice]}
        if self.usage is not None:
            total = sum(self.usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
            data["usage"] = {"total_tokens": total, **self.usage}
        return json.dumps(data).encode()


Mode = Callable[[Request, int], Reply]


# -- good answers ---------------------------------------------------------------------------------


def grade_of(passage: int) -> int:
    """The grade that a good answer gives to a passage by its number."""
    return passage % 5 + 1


def answer(request: Request) -> str:
    """The right answer as JSON."""
    ids = request.ids
    if ids:
        items = [{"passage": name, "reason": "r", "grade": grade_of(number)} for name, number in ids.items()]
        return json.dumps({"grades": items})
    (number,) = request.passages
    return json.dumps({"reason": f"number {number}", "grade": grade_of(number)})


def good(request: Request, n: int) -> Reply:
    """The right answer, in the form that the request asks for."""
    if request.way == "tools":
        return tool_call(answer(request), request.body["tools"][0]["function"]["name"])
    return Reply(answer(request))


def tool_call(arguments: str, name: str = "answer") -> Reply:
    """An answer as the arguments of a call."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return Reply(None, message={"tool_calls": [call]}, finish="tool_calls")


def says(content: Any, **options: Any) -> Mode:
    """The same content for every passage."""
    return lambda request, n: Reply(content, **options)


def but(mode: Mode, **changes: Any) -> Mode:
    """A mode whose replies have some fields changed."""
    return lambda request, n: replace(mode(request, n), **changes)


def per_passage(modes: Mapping[int, Mode], other: Mode = good) -> Mode:
    """A mode for each of some passages, by number. A batch gets that of the first one it holds."""

    def respond(request: Request, n: int) -> Reply:
        mode = next((modes[number] for number in request.passages if number in modes), other)
        return mode(request, n)

    return respond


def first(times: int, mode: Mode, then: Mode = good) -> Mode:
    """A mode for the first so many requests of all."""
    counter = iter(range(times))
    return lambda request, n: (mode if next(counter, None) is not None else then)(request, n)


def after(times: int, mode: Mode, before: Mode = good) -> Mode:
    """A mode for all requests but the first so many."""
    return first(times, before, mode)


def once_each(mode: Mode, times: int = 1) -> Mode:
    """A mode for the first requests about each passage, then good answers."""
    return lambda request, n: (mode if n <= times else good)(request, n)


# -- errors ---------------------------------------------------------------------------------------


def fails(status: int, message: str = "no", **error: Any) -> Mode:
    """An error in OpenAI's form."""
    headers = error.pop("headers", {})
    body = {"message": message, "type": "error", "param": None, "code": None, **error}
    return lambda request, n: Reply(status=status, headers=headers, error=body)


#: What ends a run: by the name of the case.
FATAL: dict[str, Mode] = {
    "wrong key": fails(401, f"Incorrect API key provided: {KEY}.", code="invalid_api_key"),
    "empty account": fails(402, "Insufficient credits. Add more and retry.", code=402),
    "not allowed": fails(403, "Your project does not have access to this model.", code="model_not_allowed"),
    "no such model": fails(404, f"The model `{MODEL}` does not exist.", code="model_not_found"),
    "quota": fails(429, "You exceeded your current quota.", type="insufficient_quota", code="insufficient_quota"),
    "unknown model": fails(400, f"{MODEL} is not a valid model ID", code="model_not_found", param="model"),
}

#: What fails one passage for good: by the kind of failure that the store keeps.
FAILS_ONE: dict[str, Mode] = {
    "content_filter": fails(
        400,
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        code="content_filter",
        param="prompt",
        innererror={"code": "ResponsibleAIPolicyViolation"},
    ),
    "too_long": fails(
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9100 tokens.",
        type="invalid_request_error",
        param="messages",
        code="context_length_exceeded",
    ),
    "refusal": lambda request, n: Reply(None, message={"refusal": "I cannot help with that."}),
}


def flagged(request: Request, n: int) -> Reply:
    """OpenRouter's moderation: a 403 that means this passage and not the account."""
    error = {
        "code": 403,
        "message": "Your chosen model requires moderation and your input was flagged",
        "metadata": {"reasons": ["violence"], "flagged_input": "passage", "provider_name": "OpenAI"},
    }
    return Reply(status=403, error=error)


def filtered(request: Request, n: int) -> Reply:
    """An answer that the server's filter stopped."""
    return Reply("", finish="content_filter")


def html_page(status: int) -> Mode:
    """The error page of a proxy in front of the server."""
    page = f"<html><head><title>{status}</title></head><body><h1>{status} Bad Gateway</h1>nginx</body></html>".encode()
    return lambda request, n: Reply(status=status, body=page, headers={"content-type": "text/html"})


def no_json(request: Request, n: int) -> Reply:
    """A body that is no JSON."""
    return Reply(body=b'{"id": "c", "choices": [{"index": 0, "mess')


def error_in_200(code: int, message: str = "Provider returned error") -> Mode:
    """An error in the body of an answer with status 200, as OpenRouter sends it."""
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    return lambda request, n: Reply(body=body)


def cut_off(request: Request, n: int) -> Reply:
    """A connection that is cut in the middle of the answer."""
    return Reply(answer(request), cut=True)


def hangs(request: Request, n: int) -> Reply:
    """No answer at all."""
    return Reply(hang=True)


def drips(request: Request, n: int) -> Reply:
    """A byte of the answer now and then."""
    return Reply(answer(request), drip=0.1)


def wait(value: str | float, status: int = 429) -> Mode:
    """A rate limit with Retry-After: seconds, or the text of the header."""
    return fails(status, "Rate limit reached.", code="rate_limit_exceeded", headers={"retry-after": str(value)})


def wait_until(seconds: float) -> Mode:
    """A rate limit whose Retry-After is a date so many seconds ahead."""
    return lambda request, n: wait(formatdate(time.time() + seconds, usegmt=True))(request, n)


def at_most(limit: int, seconds: float) -> Mode:
    """429 for each request beyond the limit within a window, as hosted servers do; good answers within it."""
    accepted: list[float] = []

    def respond(request: Request, n: int) -> Reply:
        recent = [moment for moment in accepted if request.time - moment < seconds]
        if len(recent) >= limit:
            return wait(round(seconds - (request.time - recent[0]), 2))(request, n)
        accepted.append(request.time)
        return good(request, n)

    return respond


# -- what a server cannot do ----------------------------------------------------------------------


def uses(request: Request, feature: str) -> bool:
    """Whether a request uses a feature: a way to ask for JSON, or a field of the body."""
    return feature in (request.way, *request.body)


def refuses(*features: str, status: int = 400, named: bool = True, otherwise: Mode = good) -> Mode:
    """Refuses features, in the words of OpenAI (400), of FastAPI (422) or of a stub (501); or without naming them."""

    def respond(request: Request, n: int) -> Reply:
        refused = next((feature for feature in features if uses(request, feature)), None)
        if refused is None:
            return otherwise(request, n)
        parameter = "response_format" if refused in ("json_schema", "json_object") else refused
        if not named:
            return Reply(status=status, error={"message": "Bad Request", "type": "invalid_request_error"})
        if status == 422:
            detail = {"type": "extra_forbidden", "loc": ["body", parameter], "msg": "Extra inputs are not permitted"}
            return Reply(status=422, error={"detail": [detail]})
        text = f"Unsupported value: '{parameter}' of type {refused} is not supported with this model."
        error = {"message": text, "type": "invalid_request_error", "param": parameter, "code": "unsupported_parameter"}
        return Reply(status=status, error=error)

    return respond


def reasons(tokens: int = 3000, obeys: bool = True) -> Mode:
    """A model that thinks for so many tokens before it answers; one that obeys the limit is cut short by it."""

    def respond(request: Request, n: int) -> Reply:
        limit = request.limit if obeys else None
        if limit is not None and limit < tokens:
            return Reply("", finish="length", usage={"prompt_tokens": 500, "completion_tokens": limit})
        reply = good(request, n)
        usage = {"prompt_tokens": 500, "completion_tokens": tokens}
        return replace(reply, usage=usage, message={**reply.message, "reasoning_content": "Let me think. " * 20})

    return respond


def cut_below(tokens: int) -> Mode:
    """JSON that is cut where the limit leaves fewer tokens than the answer needs."""

    def respond(request: Request, n: int) -> Reply:
        if request.limit is not None and request.limit < tokens:
            usage = {"prompt_tokens": 500, "completion_tokens": request.limit}
            return Reply(answer(request)[:12], finish="length", usage=usage)
        return good(request, n)

    return respond


# -- the server -----------------------------------------------------------------------------------


class HostileServer:
    """The server, in a thread of its own.

    Parameters
    ----------
    mode : Mode
    port : int
        0 for any free one.
    key : str, optional
        The key that every request must carry, else 401.

    Attributes
    ----------
    requests : list of Request
        In order of arrival.
    answered : list of (Request, Reply)
        In order of the answers that were sent whole.
    asked : Counter
        Requests by the numbers of their passages.
    """

    def __init__(self, mode: Mode = good, *, port: int = 0, key: str | None = None) -> None:
        self.mode = mode
        self.key = key
        self.requests: list[Request] = []
        self.answered: list[tuple[Request, Reply]] = []
        self.asked: Counter[tuple[int, ...]] = Counter()
        self._open = 0
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", port, backlog=256))
        self.port = self._server.sockets[0].getsockname()[1]
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def __enter__(self) -> HostileServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and cut every connection; nothing listens on the port from then on."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def wait_for(self, requests: int, seconds: float = 20) -> None:
        """Wait until so many requests have arrived."""
        end = time.monotonic() + seconds
        while len(self.requests) < requests:
            if time.monotonic() > end:
                raise TimeoutError(f"{len(self.requests)} of {requests} requests came within {seconds} s")
            time.sleep(0.01)

    @property
    def tokens(self) -> int:
        """What the usage of all answers adds up to."""
        counts = ("prompt_tokens", "completion_tokens")
        return sum((r.usage or {}).get(name, 0) for _, r in self.answered if r.status == 200 for name in counts)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        self._open += 1
        try:
            request = Request(time.monotonic(), method, target, headers, json.loads(raw or "{}"), at_once=self._open)
            self.requests.append(request)
            self.asked[request.passages] += 1
            return await self._answer(request, writer)
        finally:
            self._open -= 1

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            reply = FATAL["wrong key"](request, 1)
        else:
            reply = self.mode(request, self.asked[request.passages])
        if reply.hang:
            await asyncio.sleep(3600)
        await asyncio.sleep(reply.delay)
        body = reply.payload()
        headers = {"content-type": "application/json", **reply.headers, "content-length": str(len(body))}
        head = f"HTTP/1.1 {reply.status} Status\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
        if reply.cut:
            writer.write(head.encode() + body[: len(body) // 2])
            await writer.drain()
            return False
        if reply.drip:
            for byte in head.encode() + body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(reply.drip)
        else:
            writer.write(head.encode() + body)
            await writer.drain()
        self.answered.append((request, reply))
        return not reply.close
