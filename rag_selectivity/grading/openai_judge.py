"""Any OpenAI-compatible chat-completions endpoint as a judge."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from rag_selectivity.errors import InputError, MissingExtraError
from rag_selectivity.grading.failures import ADAPTED, GradingError, JudgeFailure, failure_of_status, may_not_spend
from rag_selectivity.grading.judge import Reply, Request
from rag_selectivity.grading.replies import reply_of
from rag_selectivity.grading.way import Way

_OPENAI = "https://api.openai.com/v1"
_KEY_ENV = "OPENAI_API_KEY"
_UNREADABLE_BEFORE_STEP = 2
#: A shorter value of a header, such as a version, is no secret and may occur in any text.
_SHORTEST_SECRET = 6


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
        try:
            import aiohttp
        except ImportError:
            raise MissingExtraError("aiohttp", "judge", "an OpenAI-compatible judge") from None
        key = api_key or os.environ.get(api_key_env)
        if not key and (api_key_env != _KEY_ENV or (base_url is None and not headers)):
            raise GradingError(
                f"no API key: the environment variable {api_key_env} is not set; set it, or "
                + (
                    "name a server that needs no key with --base-url"
                    if api_key_env == _KEY_ENV
                    else "leave --api-key-env out"
                )
                + " (how-to: stopped-grading)"
            )
        self._key_env = api_key_env
        self.name = model
        self.parameters: dict[str, Any] = {
            **({"temperature": temperature} if temperature is not None else {}),
            **(extra or {}),
        }
        self.way = Way()
        self._aiohttp = aiohttp
        self._url = _completions_url(base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI)
        self._headers = {"content-type": "application/json", **(headers or {})}
        if key and "authorization" not in map(str.lower, self._headers):
            self._headers["authorization"] = f"Bearer {key}"
        secrets = [secret for secret in (key, *(headers or {}).values()) if secret and len(secret) >= _SHORTEST_SECRET]
        self._secrets = sorted(secrets, key=len, reverse=True)
        self._proxy = _proxy_of(self._url)
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Any, int]] = WeakKeyDictionary()
        self._answered = self._has_guessed = False
        self._before_guesses: Way | None = None
        self._unreadable = 0

    def __repr__(self) -> str:
        return f"<OpenAIJudge {self.name}>"

    # -- connections -------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open connections for the running event loop; each call needs a `close`."""
        loop = asyncio.get_running_loop()
        session, users = self._sessions.get(loop, (None, 0))
        if session is None:
            # The gate limits the number of requests at the same time, and their seconds.
            session = self._aiohttp.ClientSession(
                connector=self._aiohttp.TCPConnector(limit=0),
                timeout=self._aiohttp.ClientTimeout(total=None, sock_connect=30),
                headers=self._headers,
                cookie_jar=self._aiohttp.DummyCookieJar(),
            )
        self._sessions[loop] = (session, users + 1)

    async def close(self) -> None:
        """Close the connections after the last user."""
        loop = asyncio.get_running_loop()
        session, users = self._sessions.pop(loop, (None, 0))
        if users > 1:
            self._sessions[loop] = (session, users - 1)
        elif session is not None:
            await session.close()

    # -- requests ----------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Reply:
        """Send one request."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            await self.open()
            try:
                return await self.ask(request)
            finally:
                await self.close()
        way = self.way
        fields = way.fields(request.messages, request.schema, request.answer_tokens, self.parameters)
        body = json.dumps({"model": self.name, **fields}).encode()
        status, headers, raw = await self._post(self._sessions[loop][0], body)
        text = raw.decode("utf-8", "replace")
        try:
            if status >= 300:
                raise failure_of_status(status, headers, text)
            reply = reply_of(text, headers, str(way))
        except JudgeFailure as failure:
            raise self._cleaned(self._refusal(failure, status, text, way)) from None
        self._answered, self._before_guesses = True, None
        answered = 0 if reply.usage is None else reply.usage.completion_tokens
        if answered > 1.1 * request.answer_tokens + 16 and self.way.limit == way.limit == "max_completion_tokens":
            # The endpoint seems to ignore the field.
            self.way = self.way.without("limit") or self.way
        return reply

    def unreadable(self) -> None:
        """Constrain answers in another way after several unreadable ones: the endpoint seems to ignore this way."""
        self._unreadable += 1
        if self._unreadable % _UNREADABLE_BEFORE_STEP == 0:
            self.way = self.way.without("answer") or self.way

    async def _post(self, session: Any, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        aiohttp = self._aiohttp
        try:
            async with session.post(self._url, data=body, allow_redirects=False, proxy=self._proxy) as response:
                return response.status, response.headers, await response.read()
        except aiohttp.InvalidURL:
            raise JudgeFailure(f"{self._where} is not a URL: give --base-url as http://HOST:PORT/v1", "fatal") from None
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            raise JudgeFailure(
                f"no secure connection to {self._where} ({type(error).__name__}): give http:// in --base-url, or a "
                f"certificate that this machine trusts",
                "unreachable",
            ) from None
        except aiohttp.ClientConnectorDNSError:
            raise JudgeFailure(f"the host of {self._where} is unknown: check --base-url", "unreachable") from None
        except aiohttp.ClientConnectorError as error:
            raise JudgeFailure(
                f"nothing listens at {self._where} ({_system_message(error)}): start the server, or give its address "
                f"with --base-url",
                "unreachable",
            ) from None
        except (aiohttp.ClientError, ConnectionError) as error:
            raise JudgeFailure(f"the connection was cut ({type(error).__name__})", "server_error") from None

    def _refusal(self, failure: JudgeFailure, status: int, text: str, way: Way) -> JudgeFailure:
        """The failure; `adapted` if it means a field of the request, which is left out from then on."""
        if failure.kind == "rejected" and status in (400, 422, 501):
            if way != self.way:
                # Another request has changed the way since this one was sent.
                return JudgeFailure("the request has a field that is no longer sent", ADAPTED)
            lower = way.stepped_down(text, self.parameters) or self._guess(way)
            if lower is not None:
                self.way = lower
                return JudgeFailure(str(failure), ADAPTED)
            if self._before_guesses is not None:
                # Without all of them it is refused too: the request itself is at fault, and others are not.
                self.way, self._before_guesses = self._before_guesses, None
        elif self._names_a_field(failure, status, text, way):
            return JudgeFailure(str(failure), ADAPTED)
        if status == 401:
            return JudgeFailure(
                f"{failure}: set {self._key_env} to a key of {self._where}, or give --api-key-env", "fatal"
            )
        if status in (404, 405):
            return JudgeFailure(f"{failure}; the address is {self._where}", "fatal")
        return failure

    def _names_a_field(self, failure: JudgeFailure, status: int, text: str, way: Way) -> bool:
        """Whether a failure of another kind names a field that was sent, which is then left out.

        Only in an error of status 4xx may the name stand anywhere; others may quote the request or an answer.
        """
        if failure.kind in ("content_filter", "refusal", "too_long") or may_not_spend(status, text):
            return False
        named = text if 400 <= status < 500 else str(failure)
        lower = way.without_named(named, self.parameters, limit=failure.kind != "rate_limit")
        if lower is not None and way == self.way:
            self.way = lower
        return lower is not None

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

    # -- secrets -----------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        """The address, without a user, a password and a query."""
        parts = urlsplit(self._url)
        host = parts.netloc.rpartition("@")[2]
        return self._clean(urlunsplit((parts.scheme, host, parts.path.removesuffix("/chat/completions"), "", "")))

    def _cleaned(self, failure: JudgeFailure) -> JudgeFailure:
        answer = None if failure.answer is None else self._clean(failure.answer)
        return failure.with_words(self._clean(str(failure)), answer)

    def _clean(self, text: str) -> str:
        """The text without keys, which some endpoints quote in their errors, whole or in part."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, "…")
        if "sk-" in text or "Bearer" in text:
            text = re.sub(r"\b(sk|Bearer)[-_ ][\w*.\-]{4,}", r"\1-…", text)
        return text


def _proxy_of(url: str) -> str | None:
    """The proxy that the environment names for an address; looked up once, since it takes a thread's time."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return None if proxy_bypass(host) else getproxies().get(parts.scheme)


def _completions_url(base: str) -> str:
    parts = urlsplit(base.strip())
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"base_url (--base-url) must be a URL such as http://localhost:8000/v1, got {base!r}")
    path = parts.path.rstrip("/")
    path = path if path.endswith("/chat/completions") else f"{path}/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _system_message(error: Any) -> str:
    number = getattr(getattr(error, "os_error", None), "errno", None)
    return os.strerror(number) if isinstance(number, int) and number > 0 else type(error).__name__
