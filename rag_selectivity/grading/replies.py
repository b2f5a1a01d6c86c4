"""Replies in the bodies of chat-completions endpoints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rag_selectivity.grading.judge import JudgeFailure, Reply, failure_of_status
from rag_selectivity.results.usage import Usage
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.files import json_value

#: Bytes of a reply; the probabilities of 10,000 tokens take half of it.
_LONGEST_BODY = 16_000_000
#: Bytes of an error; what follows is not read.
_LONGEST_ERROR = 100_000
_LONGEST_MESSAGE = 300
_LONGEST_NAME = 200
_RATE_LIMIT = re.compile(r"rate[ _-]?limit|too[ _]many[ _]requests|resource[ _]exhausted", re.IGNORECASE)


async def body_of(response: Any) -> bytes:
    """The body of a response of aiohttp, of an error its beginning.

    Raises
    ------
    JudgeFailure
        If the body is longer than any reply.
    """
    body, longest = bytearray(), _LONGEST_BODY if response.status < 300 else _LONGEST_ERROR
    async for part in response.content.iter_any():
        body += part
        if len(body) > longest and response.status < 300:
            raise JudgeFailure(f"the endpoint's reply is longer than {longest:,} bytes", "server_error")
        if len(body) > longest:
            break
    return bytes(body[:longest])


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
        raise JudgeFailure(
            f"the endpoint's reply is not JSON: {shown(text)}", "server_error", answer=text[:500]
        ) from None
    usage = _usage(body)
    choice, message = _message(body)
    content, arguments = message.get("content"), tuple(_arguments(message))
    reasoning = next((each for name in ("reasoning_content", "reasoning") if (each := message.get(name))), None)
    refusal = message.get("refusal")
    if refusal:
        raise JudgeFailure(
            f"the model refused: {str(refusal)[:_LONGEST_MESSAGE]}", "refusal", usage=usage, answer=str(refusal)
        )
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


def _message(body: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first choice of a body, and its message; empty where there is none."""
    choice = _first(body.get("choices")) if isinstance(body, dict) else {}
    message = choice.get("message")
    return choice, message if isinstance(message, dict) else {}


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
    kinds = " ".join(str(error.get(name)) for name in ("code", "status", "type"))
    return 429 if _RATE_LIMIT.search(kinds) else None


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
