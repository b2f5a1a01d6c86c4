"""Any OpenAI-compatible chat-completions endpoint as a judge, through the `openai` client."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from rag_selectivity.errors import MissingExtraError
from rag_selectivity.grading.judge import (
    Answer,
    GradingError,
    JudgeFailure,
    Message,
    ask_until_valid,
    json_schema,
    with_schema,
)
from rag_selectivity.results.usage import Usage

#: Ways to constrain an answer, the strictest first. If an endpoint refuses one, the next one is used.
_FORMATS = ("json_schema", "json_object", "text")


class OpenAIJudge:
    """A model behind an OpenAI-compatible endpoint.

    Parameters
    ----------
    model : str
    base_url : str, optional
        URL of a compatible server. Default: OPENAI_BASE_URL, or that of OpenAI.
    api_key : str, optional
        Default: OPENAI_API_KEY of the environment. A server given by `base_url` may need none.
    temperature : float, optional
        Default: that of the model; some models accept no other.
    timeout : float
        Seconds for a call.
    extra : mapping, optional
        More parameters of the request, such as `{"reasoning_effort": "low"}`.

    The key never occurs in a message, an error, a label or a report.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float | None = None,
        timeout: float = 60.0,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            import openai
        except ImportError:
            raise MissingExtraError("openai", "judge", "an OpenAI-compatible judge") from None
        key = api_key or os.environ.get("OPENAI_API_KEY")
        if not key and base_url is None:
            raise GradingError("no API key: set OPENAI_API_KEY, or name a server that needs none with --base-url")
        self.name = model
        self.parameters: dict[str, Any] = {
            **({"temperature": temperature} if temperature is not None else {}),
            **(extra or {}),
        }
        self._openai = openai
        self._key = key or ""
        # The runner repeats calls, since it knows the limits that all calls share.
        self._client = openai.AsyncOpenAI(api_key=key or "none", base_url=base_url, timeout=timeout, max_retries=0)
        self._format = _FORMATS[0]

    def __repr__(self) -> str:
        return f"<OpenAIJudge {self.name}>"

    async def ask(self, messages: Sequence[Message], schema: type[BaseModel]) -> Answer:
        """Answer the messages with an instance of the schema, or raise a JudgeFailure."""

        async def complete(conversation: Sequence[Message]) -> tuple[str, Usage]:
            return await self._complete(conversation, schema)

        return await ask_until_valid(complete, messages, schema)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _complete(self, messages: Sequence[Message], schema: type[BaseModel]) -> tuple[str, Usage]:
        while True:
            chosen = self._format
            try:
                # Plain JSON, since replies of compatible servers may lack fields that the client's types require.
                reply = await self._client.post(
                    "/chat/completions",
                    cast_to=object,
                    body={
                        "model": self.name,
                        "messages": list(messages) if chosen == "json_schema" else with_schema(messages, schema),
                        **_response_format(schema, chosen),
                        **self.parameters,
                    },
                )
            except self._openai.BadRequestError as error:
                following = _FORMATS.index(chosen) + 1
                if "response_format" in str(error) or "json_schema" in str(error):
                    if self._format == chosen and following < len(_FORMATS):
                        self._format = _FORMATS[following]
                    if self._format != chosen:
                        continue
                raise self._failure(error, "rejected") from None
            except self._openai.RateLimitError as error:
                raise self._failure(error, "rate_limit") from None
            except (
                self._openai.AuthenticationError,
                self._openai.PermissionDeniedError,
                self._openai.NotFoundError,
            ) as error:
                raise self._failure(error, "fatal") from None
            except self._openai.APIStatusError as error:
                kind = "transient" if error.status_code >= 500 or error.status_code in (408, 409, 425) else "rejected"
                raise self._failure(error, kind) from None
            except self._openai.APIError as error:
                raise self._failure(error, "transient") from None
            except ValueError as error:
                # The body is not JSON.
                raise JudgeFailure(f"the endpoint's reply is damaged ({type(error).__name__})", "transient") from None
            return self._content(reply)

    def _content(self, reply: Any) -> tuple[str, Usage]:
        if not isinstance(reply, dict):
            raise JudgeFailure("the endpoint's reply is not a JSON object", "transient")
        spent = reply.get("usage") or {}
        usage = Usage(_count(spent, "prompt_tokens"), _count(spent, "completion_tokens"))
        try:
            choice = reply["choices"][0]
            message = choice["message"]
            refusal, content = message.get("refusal"), message.get("content")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise JudgeFailure("the endpoint's reply holds no message", "transient", usage=usage) from None
        if refusal:
            raise JudgeFailure(f"refused: {self._clean(str(refusal))[:300]}", "refusal", usage=usage)
        if choice.get("finish_reason") == "content_filter":
            raise JudgeFailure("refused: the endpoint's content filter", "refusal", usage=usage)
        return content if isinstance(content, str) else "", usage

    def _failure(self, error: Any, kind: str) -> JudgeFailure:
        if kind == "rate_limit" and "insufficient_quota" in str(getattr(error, "code", "")):
            kind = "fatal"
        status = getattr(error, "status_code", None)
        text = f"{type(error).__name__}{f' {status}' if status else ''}: {self._clean(str(error))[:300]}"
        if status in (None, 404):
            text += f" (at {self._clean(str(self._client.base_url))}; is --base-url right?)"
        return JudgeFailure(text, kind, retry_after=_retry_after(error))

    def _clean(self, text: str) -> str:
        """The text without the key: some endpoints quote it in their errors, whole or in part."""
        if self._key:
            text = text.replace(self._key, "…")
        return re.sub(r"\b(sk|key|Bearer)[-_ ][\w*.\-]{4,}", r"\1-…", text)


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and value >= 0 else 0


def _response_format(schema: type[BaseModel], chosen: str) -> dict[str, Any]:
    if chosen == "json_schema":
        described = {"name": schema.__name__, "strict": True, "schema": json_schema(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": described}}
    return {"response_format": {"type": "json_object"}} if chosen == "json_object" else {}


def _retry_after(error: Any) -> float | None:
    """The seconds of a Retry-After or Retry-After-ms header, which may be a number or a date."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) / unit)
        except ValueError:
            pass
        from datetime import UTC, datetime
        from email.utils import parsedate_to_datetime

        try:
            return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
        except (TypeError, ValueError):
            return None
    return None
