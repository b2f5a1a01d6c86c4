"""Replies in the bodies of chat-completions endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_selectivity.grading.failures import JudgeFailure, failure_of_status
from rag_selectivity.grading.judge import Reply
from rag_selectivity.io.limits import json_value
from rag_selectivity.results.usage import Usage

_LONGEST_MESSAGE = 300


def reply_of(text: str, headers: Mapping[str, str], way: str) -> Reply:
    """The reply in the body of an answer with status 200.

    Raises
    ------
    JudgeFailure
        `server_error` if the body is damaged, `refusal` if the model refuses, `content_filter` if a filter does; if the
        body holds an error, the failure of its code.
    """
    try:
        body = json_value(text)
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
        raise JudgeFailure(
            f"the model refused: {str(refusal)[:_LONGEST_MESSAGE]}", "refusal", usage=usage, answer=str(refusal)
        )
    finish = choice.get("finish_reason")
    if finish == "content_filter" and not content:
        raise JudgeFailure("the endpoint's content filter refused the answer", "content_filter", usage=usage)
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
