"""Failures of requests to a judge: their kinds, and the kinds of HTTP statuses, bodies and exceptions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from rag_selectivity.errors import GradingError
from rag_selectivity.results.usage import Usage
from rag_selectivity.tables.cells import whole_characters
from rag_selectivity.tables.files import json_value

#: Kinds of temporary failures, which have other causes than the pair: another attempt may succeed.
PASSING = ("rate_limit", "timeout", "server_error", "unreachable")
#: The kind of a failure after which the judge asks in another way, so that the request is sent again at once.
ADAPTED = "adapted"
_LONGEST_MESSAGE = 300
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
        kept = {name: getattr(self, name) for name in ("kind", "retry_after", "overloaded", "usage", "lasting")}
        return JudgeFailure(message, answer=answer, **kept)

    def __reduce__(self) -> tuple[Any, ...]:
        return (partial(JudgeFailure, **vars(self)), (str(self),))


def failure_of_status(status: int, headers: Mapping[str, str], text: str) -> JudgeFailure:
    """The failure that an HTTP status and a body mean."""
    words = _words(text)
    told = f"{status}: {words[:_LONGEST_MESSAGE]}" if words else f"status {status}"
    wait = _retry_after(headers)
    if status in (400, 403) and _FILTER.search(text):
        return JudgeFailure(f"the content filter refused the request: {told}", "content_filter", answer=words)
    unknown = status in (404, 405) or (status in (400, 422) and _UNKNOWN_MODEL.search(text) is not None)
    for holds, mend in (
        (status == 407, "the proxy needs a name and a password: give them in HTTPS_PROXY or HTTP_PROXY"),
        (
            may_not_spend(status, text),
            "the account has no credit left or may not spend it: add credit, or raise its limit",
        ),
        (status == 401, "the key is wrong or missing"),
        (status == 403, "the key may not use this model: give another --model or another key"),
        (unknown, "the endpoint does not know this model or address: check --model and --base-url"),
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


def failure_of(error: BaseException) -> JudgeFailure:
    """The failure that an exception of a client means, by the HTTP status of the exception or of its cause.

    Without a status it is a `server_error`. The message has only the class and the status, since the client's own text
    may quote a key.
    """
    if isinstance(error, TimeoutError):
        return JudgeFailure(f"{type(error).__name__}: the model did not answer in time", "timeout")
    for each in (error, error.__cause__):
        status = getattr(each, "status_code", None)
        if isinstance(status, int) and status >= 400:
            headers = getattr(getattr(each, "response", None), "headers", None)
            known = failure_of_status(status, headers if isinstance(headers, Mapping) else {}, str(each))
            return known.with_words(f"{type(error).__name__} {status}")
    return JudgeFailure(type(error).__name__, "server_error")


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
