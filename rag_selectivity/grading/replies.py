"""What the bodies of chat-completions endpoints mean: replies, and refusals by status and words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from rag_selectivity.grading.judge import JudgeFailure, Reply
from rag_selectivity.results.usage import Usage

_LONGEST_MESSAGE = 300
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|exceed_context|maximum context|too many (?:input )?tokens|prompt is too long"
    r"|input is too long|longer than the (?:maximum|model)|reduce the length",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|credits?|funds|balance)|credit balance is too low|out of credits|payment required",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model_not_found|unknown model|invalid model|no such model|model .{0,80}(?:does not exist|not found)"
    r"|not a valid model",
    re.IGNORECASE | re.DOTALL,
)
_FILTER = re.compile(r"content_?filter|content management policy|moderation|flagged|content policy", re.IGNORECASE)


def reply_of(text: str, headers: Mapping[str, str], way: str) -> Reply:
    """The reply in a body with status 200.

    Raises
    ------
    JudgeFailure
        `server_error` if the body is damaged, `refusal` or `content_filter` if the model declines.
    """
    try:
        body = json.loads(text)
    except ValueError:
        raise JudgeFailure("the endpoint's reply is not JSON", "server_error", answer=text[:500]) from None
    if isinstance(body, dict) and isinstance(body.get("error"), dict) and "choices" not in body:
        # Some routers answer 200 and put the error of the model behind them into the body.
        code = body["error"].get("code")
        raise failure_of_status(code if isinstance(code, int) and code >= 400 else 502, headers, text)
    usage = _usage(body)
    try:
        choice = body["choices"][0]
        message = choice["message"]
        refusal, content = message.get("refusal"), message.get("content")
        calls = message.get("tool_calls") or []
        arguments = calls[0]["function"]["arguments"] if calls else None
    except (KeyError, IndexError, TypeError, AttributeError):
        raise JudgeFailure(
            "the endpoint's reply holds no message", "server_error", usage=usage, answer=text[:500]
        ) from None
    if refusal:
        raise JudgeFailure(f"refused: {str(refusal)[:_LONGEST_MESSAGE]}", "refusal", usage=usage, answer=str(refusal))
    finish = choice.get("finish_reason")
    if finish == "content_filter" and not content:
        raise JudgeFailure("refused: the endpoint's content filter", "content_filter", usage=usage)
    probabilities = choice.get("logprobs")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    named = body.get("model")
    return Reply(
        arguments if arguments and not content else content,
        usage,
        finish=finish if isinstance(finish, str) else None,
        reasoning=reasoning if isinstance(reasoning, str) else None,
        logprobs=probabilities.get("content") if isinstance(probabilities, dict) else None,
        cost=_cost(body, headers),
        model=named if isinstance(named, str) and named else None,
        way=way,
    )


def failure_of_status(status: int, headers: Mapping[str, str], text: str) -> JudgeFailure:
    """The failure that a status and a body stand for."""
    words = _words(text)
    told = f"{status}: {words[:_LONGEST_MESSAGE]}" if words else f"status {status}"
    wait = _retry_after(headers)
    if status == 407:
        return JudgeFailure(f"{told} (the proxy asks for a name and a password)", "fatal")
    if status == 402 or (status in (400, 403, 429) and _QUOTA.search(text)):
        return JudgeFailure(f"{told} (the account has no credit left)", "fatal")
    if status == 401:
        return JudgeFailure(f"{told} (the key is wrong or missing: set OPENAI_API_KEY, or --api-key-env)", "fatal")
    if status in (400, 403) and _FILTER.search(text):
        return JudgeFailure(f"refused: {told}", "content_filter", answer=words)
    if status == 403:
        return JudgeFailure(f"{told} (the key may not use this model)", "fatal")
    if status in (404, 405) or (status in (400, 422) and _UNKNOWN_MODEL.search(text)):
        return JudgeFailure(f"{told} (is --model right?)", "fatal")
    if status in (400, 413, 422) and (_TOO_LONG.search(text) or status == 413):
        return JudgeFailure(told, "too_long", answer=words)
    if status == 429:
        return JudgeFailure(told, "rate_limit", retry_after=wait)
    if status in (408, 409, 425) or (status >= 500 and status != 501):
        return JudgeFailure(told, "server_error", retry_after=wait, overloaded=status == 503, usage=Usage())
    if 300 <= status < 400:
        return JudgeFailure(f"{told} (the endpoint has moved: give its new --base-url)", "fatal")
    return JudgeFailure(told, "rejected", answer=words)


def _words(text: str) -> str:
    """What an error says: its message, from JSON or HTML."""
    try:
        body = json.loads(text)
    except ValueError:
        return " ".join(re.sub(r"<[^>]{0,200}>", " ", text[:5000]).split())
    for name in ("error", "message", "detail"):
        value = body.get(name) if isinstance(body, dict) else None
        if isinstance(value, dict):
            value = value.get("message") or json.dumps(value, ensure_ascii=False)
        if value:
            return " ".join(str(value).split())
    return " ".join(text.split())


def _usage(body: Any) -> Usage | None:
    spent = body.get("usage") if isinstance(body, dict) else None
    if not isinstance(spent, dict):
        return None
    prompt, completion = spent.get("prompt_tokens"), spent.get("completion_tokens")
    if not isinstance(prompt, int) or not isinstance(completion, int) or prompt < 0 or completion < 0:
        return None
    return Usage(prompt, completion)


def _cost(body: Mapping[str, Any], headers: Mapping[str, str]) -> float | None:
    """What the endpoint says that the request cost: a field of `usage`, or a header."""
    spent = body.get("usage")
    value = spent.get("cost") if isinstance(spent, dict) else None
    try:
        cost = float(headers["x-litellm-response-cost"] if value is None else value)
    except (KeyError, TypeError, ValueError):
        return None
    return cost if 0 <= cost < float("inf") else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of a Retry-After or Retry-After-ms header, which may be a number or a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            try:
                seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
            except (TypeError, ValueError):
                continue
        if seconds == seconds:
            return max(0.0, seconds)
    return None
